"""What a bundle is refused for: every reason, and the checks of its texts, its description, its
owner and its rows.

`contents` finds what cannot be read as a bundle, and `record` what the record of published figures
contradicts.
"""

from __future__ import annotations

import math
import re
import shlex
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import duckdb

from ipu_results.comparison.words import KnownWords, load_known_words
from ipu_results.ground.limits import MAX_SUBMITTED_CELL, MAX_SUBMITTED_TEXT
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import find_lookalike, format_count, get_skeleton, mark_formula
from ipu_results.normalise.values import UnreadableCellError, parse_number, parse_whole_number
from ipu_results.schema.accelerators import find_accelerator
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.submission.bundle import (
    DESCRIPTION,
    MEASURED,
    RESULTS,
    SIDECAR,
    SUBMISSIONS,
    Bundle,
    Submission,
    format_sidecar,
    get_folder,
    make_slug,
)

Reason = Literal[
    "not-a-bundle",  # a file is missing or cannot be read
    "unknown-file",  # a file that a bundle does not have, a script or another archive among them
    # the name of an archive's entry leads out of the bundle, or a folder of another id
    "out-of-place",
    "link",  # a link, a device, a pipe
    "too-large",  # bytes, entries, rows, characters
    # an archive that unpacks to far more than it is, is encrypted, or uses another method
    "compression",
    "encoding",  # not UTF-8, or with a NUL
    "control-characters",  # what a terminal acts on, or what hides text
    "formula",  # a cell that a spreadsheet computes
    "markup",  # HTML
    "code",  # a shell or template expression, SQL, the address of a script or of a local file
    "schema",  # a key, column or value that the description or the table does not accept
    "licence",  # none, or not an open one
    "unknown-word",  # a word that neither the vocabulary nor the bundle declares
    "unreadable-figure",  # a figure that is not one, or that no unit fits
    "contradiction",  # two figures for one configuration
    "duplicate",  # the same figure twice, or a bundle that is here already
    "copied",  # figures of a row of the record
    "emulated",  # figures of an emulator
    "implausible",  # Little's law, the peak of the chips, an error flag of a quality rule
    "unit",  # a thousandfold of the nearest row
    "id",  # an id that the content does not have
    "owner",  # the name, folder or ORCID of somebody else
]
REASONS: tuple[str, ...] = get_args(Reason)


Row = Mapping[str, Any]


class Fault(NamedTuple):
    """One reason for refusing a bundle, with the place and what to do."""

    reason: Reason
    message: str
    place: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.reason, self.place, self.message) if part)


HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of Unicode that show nothing
# What shows nothing in another category: joiners, fillers, variation selectors, the blank of
# Braille.
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# HTML, links of Markdown
MARKUP = re.compile(r"<\s*[a-z!/?]|&(?:#\w{1,8}|[a-z]{2,8});|\]\(\s*(?:[a-z]+:|//|www\.)", re.I)
# combining marks on one letter: the Stream-Safe Text Format of Unicode (UAX #15) has no more
MAX_MARKS = 30
CODE = re.compile(r"\$\(|\$\{|\{\{|`|<%|(?:javascript|vbscript|data|file)\s*:(?!\s)", re.I)
SQL = re.compile(
    r"\b(?:drop|alter|create)\s+(?:table|view|schema|database|macro)\b|\b(?:delete|select)\b.*\bfrom\s+\w+\s*(?:;|where\b|$)"
    r"|\binsert\s+into\b|\bupdate\s+\w+\s+set\b|\bunion\s+(?:all\s+)?select\b|\b(?:attach|install|load|copy)\s+'"
    r"|'\s*(?:or|and)\s+['\d]|/\*",
    re.I,
)


def check_text(
    text: str, place: str, limit: int = MAX_SUBMITTED_CELL, *, lines: bool = False
) -> Iterator[Fault]:
    """Yield what is wrong with a text.

    With `lines` it is prose: line breaks, lists and quotes are accepted.
    """
    if len(text) > limit:
        yield Fault(
            "too-large", f"has {len(text):,} characters, at most {limit:,} are accepted", place
        )
        return
    kept = text.replace("\n", " ").replace("`", " ") if lines else text
    if hidden := next(
        (char for char in kept if unicodedata.category(char) in HIDDEN or BLANK.match(char)), None
    ):
        yield Fault(
            "control-characters",
            f"has the character U+{ord(hidden):04X}, which shows nothing",
            place,
        )
    marks = (
        run
        for is_mark, run in groupby(kept, lambda char: unicodedata.combining(char) > 0)
        if is_mark
    )
    if any(len(list(run)) > MAX_MARKS for run in marks):
        yield Fault(
            "control-characters", f"has more than {MAX_MARKS} combining marks on one letter", place
        )
    if char := find_lookalike(kept):
        message = (
            f"has U+{ord(char):04X} among Latin letters, which looks like one of them; write one"
            " script"
        )
        yield Fault("control-characters", message, place)
    # a spreadsheet takes a wide sign for the sign
    start = unicodedata.normalize("NFKC", kept.strip())
    if not lines and mark_formula(start) != start:
        yield Fault(
            "formula", "begins like a formula of a spreadsheet; write text or a figure", place
        )
    if MARKUP.search(kept):
        yield Fault("markup", "holds HTML or a link of Markdown; write plain text", place)
    if CODE.search(kept) or SQL.search(kept):
        yield Fault("code", "holds a script, a shell expression or SQL; write plain text", place)


LICENCES = (
    *("CC0-1.0", "CC-BY-4.0", "CC-BY-3.0", "PDDL-1.0", "ODC-By-1.0", "CDLA-Permissive-2.0"),
    *("Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause"),
)
"""Licences under which the figures may be published again, as SPDX ids."""
RELATIONS = ("none", "maker", "employee", "customer", "partner")
"""What the submitter is to the maker of the machine."""
ORCID = re.compile(r"[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]")
ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}")
FILE_NAME = re.compile(r"\w[\w .()+@-]{0,199}")
FIRST_DAY = date(2020, 1, 1)


def check_description(submission: Submission) -> Iterator[Fault]:
    who = submission.who
    texts = {
        **{"machine": submission.machine, "who.name": who.name, "licence": submission.licence},
        **{"who.affiliation": who.affiliation or "", "who.contact": who.contact or ""},
        **{f"new_words {number}": word for number, word in enumerate(submission.new_words, 1)},
    }
    for key, text in texts.items():
        yield from check_text(text, f"{DESCRIPTION}, {key}")
    yield from check_text(submission.how, f"{DESCRIPTION}, how", MAX_SUBMITTED_TEXT, lines=True)
    for key, text in (
        ("who.name", who.name),
        ("how", submission.how),
        ("machine", submission.machine),
    ):
        if not text.strip():
            step = (
                ": it is the platforms of the figures, unless --set machine=TEXT says it"
                if key == "machine"
                else ""
            )
            yield Fault("schema", f"is blank{step}", f"{DESCRIPTION}, {key}")
    if submission.origin != MEASURED:
        message = f"origin is {submission.origin[:40]!r}: only measured figures are accepted"
        yield Fault("emulated", message, DESCRIPTION)
    # another time zone
    if not FIRST_DAY <= submission.submitted_on <= date.today() + timedelta(days=1):
        message = f"{submission.submitted_on} is not a day on which it can have been handed in"
        yield Fault("schema", message, f"{DESCRIPTION}, submitted_on")
    if submission.licence not in LICENCES:
        message = f"{submission.licence[:40]!r} is not one of {', '.join(LICENCES)}"
        yield Fault("licence", message, f"{DESCRIPTION}, licence")
    if submission.relation not in RELATIONS:
        yield Fault("schema", f"is not one of {', '.join(RELATIONS)}", f"{DESCRIPTION}, relation")
    if who.orcid is not None and not is_orcid(who.orcid):
        yield Fault(
            "owner",
            "is not an ORCID iD: its check digit or form is wrong",
            f"{DESCRIPTION}, who.orcid",
        )
    if who.account is not None and not ACCOUNT.fullmatch(who.account):
        yield Fault("schema", "is not the name of an account", f"{DESCRIPTION}, who.account")
    yield from _check_sources(submission)


def _check_sources(submission: Submission) -> Iterator[Fault]:
    for number, source in enumerate(submission.sources, 1):
        place = f"{DESCRIPTION}, sources {number}"
        if not FILE_NAME.fullmatch(source.file):
            yield Fault(
                "out-of-place", "file is not the plain name of a file, without a folder", place
            )
        if not re.fullmatch(r"[0-9a-f]{64}", source.sha256) or not re.fullmatch(
            r"[\w -]{1,60}", source.adapter
        ):
            yield Fault("schema", "sha256 or adapter is not one", place)


def is_orcid(text: str) -> bool:
    """Return whether a text is an ORCID iD with the right check digit (ISO 7064, MOD 11-2)."""
    if not ORCID.fullmatch(text):
        return False
    digits = text.replace("-", "")
    total = 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    expected = (12 - total % 11) % 11
    return digits[-1] == ("X" if expected == 10 else str(expected))


PERSON = ("name", "orcid", "account")


def check_owner(
    bundle: Bundle, raw: Path, publishers: frozenset[str], account: str | None, place: str | None
) -> Iterator[Fault]:
    """Yield what is wrong with whose bundle it says it is; `place` is its `<who>/<id>` in a folder
    of submissions.

    `account` is the account that hands it in, None where it is not known. A damaged description
    here raises nothing: its folder still has an owner, whom no other bundle can be.
    """
    submission = bundle.submission
    who = submission.who
    own = f"{submission.folder}/{submission.id}"
    if place is not None and place != own:
        yield Fault("out-of-place", f"belongs in {SUBMISSIONS}/{own}", place)
    looks = get_skeleton(who.name)
    if looks in map(get_skeleton, publishers) or submission.folder in map(make_slug, publishers):
        message = (
            f"{who.name} publishes figures that the record has from elsewhere; use your own name"
            " and affiliation"
        )
        yield Fault("owner", message, f"{DESCRIPTION}, who.name")
    if account is not None and (who.account or "").casefold() != account.casefold():
        message = (
            f"is {who.account or 'not stated'}, but {account} hands the bundle in (submit --set"
            f" account={account})"
        )
        yield Fault("owner", message, f"{DESCRIPTION}, who.account")
    for folder, other in _list_others(raw):
        # what tells two submitters apart: a stated ORCID or account that the other has not, or else
        # the name
        differing = [name for name in PERSON if other.get(name) != getattr(who, name)]
        if folder == submission.folder and differing:
            message = (
                f"{SUBMISSIONS}/{folder} belongs to somebody with another {' and '.join(differing)}"
            )
            yield Fault(
                "owner",
                f"{message}; add --set orcid=ID or account=LOGIN as before, or use another name",
                DESCRIPTION,
            )
            break
        if folder != submission.folder and who.orcid and other.get("orcid") == who.orcid:
            yield Fault("owner", f"is that of {SUBMISSIONS}/{folder}", f"{DESCRIPTION}, who.orcid")
            break
        if folder != submission.folder and get_skeleton(str(other.get("name"))) == looks:
            yield Fault(
                "owner", f"looks like that of {SUBMISSIONS}/{folder}", f"{DESCRIPTION}, who.name"
            )
            break


def check_present(bundle: Bundle, raw: Path, path: Path) -> Iterator[Fault]:
    """Yield a fault for a bundle that `raw` has elsewhere, and for a sidecar that does not follow
    from it.
    """
    folder = get_folder(raw, bundle.submission)
    if folder.is_dir() and folder.resolve() != path.resolve():
        yield Fault(
            "duplicate",
            f"is here already: {SUBMISSIONS}/{bundle.submission.folder}/{bundle.submission.id}",
        )
    sidecar = bundle.files.get(SIDECAR)
    if sidecar is not None and sidecar != format_sidecar(bundle):
        yield Fault("unknown-file", "is not the sidecar of this bundle; leave it out", SIDECAR)


def _list_others(raw: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the folder and the submitter of each bundle in `raw`."""
    for path in sorted((raw / SUBMISSIONS).glob(f"*/*/{DESCRIPTION}")):
        try:
            who = tomllib.loads(path.read_text(encoding="utf-8")).get("who")
        except (OSError, ValueError, RecursionError):
            who = None
        yield path.parent.parent.name, who if isinstance(who, dict) else {}


COUNTS = ("batch_size", "micro_batch_size")
EMULATED = re.compile(r"\b(?:emulat|simulat)\w*|\bpredicted\b|\bIPU_?Model\b", re.I)
EMULATED_IN = {
    **dict.fromkeys(("variant", "platform", "chip", "framework", "conditions"), EMULATED),
    "model": re.compile(r"\bemulat\w*", re.I),  # networks may simulate
}
PERCENT = 100
SUSPECT = re.compile(r"\bsuspect\b[^;]*")


def find_emulated(bundle: Bundle) -> Iterator[Fault]:
    """Yield a fault for figures whose own texts say that an emulator made them."""
    for number, row in enumerate(bundle.rows, 2):
        for name, pattern in EMULATED_IN.items():
            if word := pattern.search(row[name]):
                message = f"says {word[0]!r}: an emulated figure may not be handed in as measured"
                yield Fault("emulated", message, f"{RESULTS}, line {number}, {name}")
                return
    if word := EMULATED.search(bundle.submission.machine):
        yield Fault(
            "emulated",
            f"says {word[0]!r}: figures of an emulator are not measured",
            f"{DESCRIPTION}, machine",
        )
    if bundle.environment.get("backend") in ("emulator", "simulator"):
        yield Fault(
            "emulated",
            "the backend is an emulator: its figures are not measured",
            "environment.json",
        )


def list_suspects(bundle: Bundle) -> Iterator[str]:
    """Describe the rows whose conditions say that the tool marked them as suspect, each once."""
    texts = {
        match[0].strip(" ,;") for row in bundle.rows if (match := SUSPECT.search(row["conditions"]))
    }
    for text in sorted(texts):
        marked = text.replace("suspect ", "suspect, ", 1)
        yield (
            f"the tool marked a row as {marked}: measure it again on a quiet machine, or say why it"
            " counts"
        )


def find_unreadable(bundle: Bundle) -> Iterator[Fault]:
    """Yield a fault for a batch size that the readers would leave blank, and for a quality above
    100 %.
    """
    for number, row in enumerate(bundle.rows, 2):
        for name in COUNTS:
            if text := row[name].strip():
                try:
                    parse_whole_number(text)
                except UnreadableCellError as error:
                    yield Fault(
                        "unreadable-figure", str(error), f"{RESULTS}, line {number}, {name}"
                    )
        if row["unit"].strip() == "%" and row["metric"].strip().startswith("quality"):
            with suppress(UnreadableCellError):  # the preview names it
                if parse_number(row["value"].strip()) > PERCENT:
                    yield Fault(
                        "implausible",
                        f"a quality of {row['value'].strip()} %",
                        f"{RESULTS}, line {number}",
                    )


NAMED = ("model", "platform", "chip", "framework", "precision")
"""Columns whose words are kept as printed where they are declared as new."""


NAMED_BY_RECORD = """
    SELECT DISTINCT chip, framework
    FROM results
    WHERE relationship IS DISTINCT FROM 'submitted'
"""


def load_submission_words(connection: duckdb.DuckDBPyConnection) -> KnownWords:
    """Load the known words of a comparison, and every chip and framework that the record names."""
    words = load_known_words(connection)
    rows = run_query(connection, NAMED_BY_RECORD).to_pylist()
    chips, frameworks = (
        {normalise_name(row[name]): str(row[name]) for row in rows if row[name]}
        for name in ("chip", "framework")
    )
    named = {
        "chip": {**chips, **load_vocabulary().chips},
        "framework": {**frameworks, **words.fields["framework"]},
    }
    return replace(words, fields={**words.fields, **named})


def list_unknown_words(
    rows: tuple[Mapping[str, str], ...], words: KnownWords
) -> Counter[tuple[str, str]]:
    """Count the rows of each unknown word by column."""
    texts = Counter(
        (name, row[name].strip()) for row in rows for name in NAMED if row[name].strip()
    )
    return Counter({key: count for key, count in texts.items() if words.find(*key) is None})


def check_words(bundle: Bundle, words: KnownWords) -> Iterator[Fault]:
    """Yield a fault for each unknown word that the bundle does not declare as new."""
    declared = set(bundle.submission.new_words)
    for (name, text), rows in sorted(list_unknown_words(bundle.rows, words).items()):
        looks = get_skeleton(text)
        if same := next(
            (known for key, known in words.fields[name].items() if get_skeleton(key) == looks), None
        ):
            message = (
                f"{name} {text!r} is {same} in another spelling, or looks like it; write {same}"
            )
            yield Fault("unknown-word", message, RESULTS)
        elif text not in declared and not (name == "chip" and find_accelerator(text)):
            message = f"{words.describe_unknown(name, text)}, in {format_count(rows, 'row')}"
            yield Fault(
                "unknown-word",
                f"{message}; correct it, or declare it as new: --new-word {shlex.quote(text)}",
                RESULTS,
            )


# Columns of which none can be above a later one. A mean can be above a percentile, so it has a line
# of its own.
ASCENDING = (
    ("latency_min_ms", "latency_median_ms", "latency_p90_ms", "latency_p99_ms", "latency_max_ms"),
    ("latency_min_ms", "latency_ms", "latency_max_ms"),
    ("micro_batch_size", "batch_size"),
)


def find_inconsistencies(row: Row, words: KnownWords, place: str) -> Iterator[Fault]:
    """Yield a fault for each pair of columns that cannot both be right."""
    for names in ASCENDING:
        stated = [name for name in names if row[name] is not None]
        for first, second in combinations(stated, 2):
            if row[first] - row[second] > _get_rounding(row[first]) + _get_rounding(row[second]):
                message = f"{first} {row[first]:.12g} is above {second} {row[second]:.12g}"
                yield Fault("contradiction", message, place)
    yield from _check_machine(row, words.machines.get(row["platform"], {}), place)


def _check_machine(row: Row, machine: Mapping[str, Any], place: str) -> Iterator[Fault]:
    """Yield a fault for more chips than the machine has, and for another chip; a part of a machine
    has fewer.
    """
    chips = frozenset(load_vocabulary().chips.values())
    count = machine.get("chip_count")
    if row["chip_count"] and count and row["chip_count"] > count:
        message = (
            f"chip_count is {row['chip_count']}, but {row['platform']} has {count} chips; name the"
            " larger machine"
        )
        yield Fault("contradiction", message, place)
    own, theirs = row["chip"], machine.get("chip")
    if theirs and {own, theirs} <= chips and not _is_part_of_name(own, theirs):
        message = f"chip is {row['chip']}, but {row['platform']} has {machine['chip']}"
        yield Fault("contradiction", message, place)


def _is_part_of_name(first: str, second: str) -> bool:
    """Return whether one name of a chip says less than the other: A100-40GB of A100-SXM-40GB."""
    shorter, longer = sorted((first, second), key=len)
    return set(re.split("[- ]", shorter)) <= set(re.split("[- ]", longer))


def _get_rounding(value: float) -> float:
    """Return half a unit of the last digit of a figure that is not zero."""
    return (
        10.0 ** (math.floor(math.log10(abs(value))) - count_digits(value) + 1) / 2 if value else 0.0
    )


def count_digits(value: float) -> int:
    """Count the significant digits of a figure, zeros at its end excluded."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)
