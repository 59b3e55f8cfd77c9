"""What a bundle is refused for: every reason, and the checks of its texts, its description, its
owner and its rows.

`contents` finds what cannot be read as a bundle, and `judge` what the record of published figures
contradicts.
"""

from __future__ import annotations

import re
import shlex
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from ipu_results.doors.comparison.words import KnownWords, load_known_words
from ipu_results.doors.submission.bundle import (
    DESCRIPTION,
    RESULTS,
    SIDECAR,
    SUBMISSIONS,
    Bundle,
    Line,
    Submission,
    format_sidecar,
    get_folder,
    make_slug,
)
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.limits import MAX_SUBMITTED_CELL, MAX_SUBMITTED_TEXT
from ipu_results.kit.sql import Connection, run_query
from ipu_results.kit.text import (
    find_hidden,
    find_lookalike,
    format_count,
    get_skeleton,
    mark_formula,
)
from ipu_results.record.check.gate import GateFailure, find_failures
from ipu_results.record.normalise import RejectedRow
from ipu_results.record.normalise.values import describe_unknown_words
from ipu_results.schema import load_table
from ipu_results.schema.accelerators import find_accelerator
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

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


class Fault(NamedTuple):
    """One reason for refusing a bundle, with the place and what to do."""

    reason: Reason
    message: str
    place: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.reason, self.place, self.message) if part)


class RefusedError(Exception):
    """A part of a bundle cannot be read."""

    def __init__(self, reason: Reason, message: str, place: str | None = None) -> None:
        super().__init__(message)
        self.fault = Fault(reason, message, place)


# HTML, links of Markdown
MARKUP = re.compile(r"<\s*[a-z!/?]|&(?:#\w{1,8}|[a-z]{2,8});|\]\(\s*(?:[a-z]+:|//|www\.)", re.I)
# combining marks on one letter: the Stream-Safe Text Format of Unicode (UAX #15) has no more
MAX_MARKS = 30
MAX_DEPTH = 4  # of values in values
CODE = re.compile(r"\$\(|\$\{|\{\{|`|<%|(?:javascript|vbscript|data|file)\s*:(?!\s)", re.I)
SQL = re.compile(
    r"\b(?:drop|alter|create)\s+(?:table|view|schema|database|macro)\b"
    r"|\b(?:delete|select)\b.*\bfrom\s+\w+\s*(?:;|where\b|$)"
    r"|\binsert\s+into\b"
    r"|\bupdate\s+\w+\s+set\b"
    r"|\bunion\s+(?:all\s+)?select\b"
    r"|\b(?:attach|install|load|copy)\s+'"
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
    kept = text
    if lines:
        kept = text.replace("\n", " ").replace("`", " ")
    unshown = find_hidden(kept)
    if unshown:
        message = f"has the character U+{ord(unshown):04X}, which shows nothing"
        yield Fault("control-characters", message, place)
    if _count_marks(kept) > MAX_MARKS:
        message = f"has more than {MAX_MARKS} combining marks on one letter"
        yield Fault("control-characters", message, place)
    lookalike = find_lookalike(kept)
    if lookalike:
        message = (
            f"has U+{ord(lookalike):04X} among Latin letters, which looks like one of them; write"
            " one script"
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


def _count_marks(text: str) -> int:
    """Return the most combining marks that follow one another."""
    most = 0
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        most = max(most, marks)
    return most


REASON_OF_COLUMN: Mapping[str, Reason] = {
    "origin": "emulated",
    "licence": "licence",
    "who.orcid": "owner",
    "file": "out-of-place",
}


def list_texts(value: Any, place: str, depth: int = MAX_DEPTH) -> Iterator[tuple[str, str]]:
    """Yield each key and text with its place. Raises RefusedError below the deepest level."""
    if depth < 0:
        raise RefusedError("too-large", f"has more than {MAX_DEPTH} levels", place)
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, f"{place}, a key"
            yield from list_texts(item, f"{place}, {key[:MAX_SUBMITTED_CELL]}", depth - 1)
    elif isinstance(value, list):
        for item in value:
            yield from list_texts(item, place, depth - 1)
    else:
        yield value if isinstance(value, str) else "", place


def check_description(submission: Submission) -> Iterator[Fault]:
    """Yield what is wrong with the texts of the description, and what its schema refuses."""
    entry = msgspec.to_builtins(submission, builtin_types=(date,))
    yield from check_text(entry["how"], f"{DESCRIPTION}, how", MAX_SUBMITTED_TEXT, lines=True)
    for text, place in list_texts({**entry, "how": ""}, DESCRIPTION):
        yield from check_text(text, place)
    who = {f"who.{key}": text for key, text in entry["who"].items()}
    yield from check_schema("description", [{**entry, **who}], DESCRIPTION)
    for number, source in enumerate(entry["sources"], 1):
        place = f"{DESCRIPTION}, sources {number}"
        yield from check_schema("sources", [{"number": number, **source}], place)


def check_schema(name: str, rows: Sequence[Line], place: str) -> Iterator[Fault]:
    """Yield a fault for each column with cells that `schema/submission/<name>.toml` refuses."""
    definition = load_table(name, "submission")
    # a cell of blanks is a blank cell
    frame = build_frame(definition, rows).replace(r"^\s*$", None, regex=True)
    failures: dict[tuple[str, str], list[GateFailure]] = {}
    for failure in find_failures(definition, frame):
        failures.setdefault((failure.column, failure.reason), []).append(failure)
    for (column, _), alike in failures.items():
        first, *others = alike
        where = place
        if "line" in rows[0]:
            where = f"{place}, line {rows[first.row]['line']}"
            if others:
                where += f" and {len(others)} more"
        message = f"{first.message}. {definition.column(column).description}"
        yield Fault(REASON_OF_COLUMN.get(column, "schema"), message, where)


# what tells two submitters apart
PERSON = ("name", "orcid", "account")
PUBLISHERS = "SELECT DISTINCT publisher FROM documents WHERE kind <> 'submission'"


def check_owner(
    bundle: Bundle,
    raw: Path,
    record: Connection,
    account: str | None,
    place: str | None,
) -> Iterator[Fault]:
    """Yield what is wrong with whose bundle it says it is; `place` is its `<who>/<id>` in a folder
    of submissions.

    `account` is the account that hands it in, None where it is not known. A damaged description
    here raises nothing: its folder still has an owner, whom no other bundle can be.
    """
    submission = bundle.submission
    who = submission.who
    right_place = f"{submission.folder}/{submission.id}"
    if place is not None and place != right_place:
        yield Fault("out-of-place", f"belongs in {SUBMISSIONS}/{right_place}", place)
    looks = get_skeleton(who.name)
    publishers = [publisher for (publisher,) in record.execute(PUBLISHERS).fetchall()]
    has_name = looks in map(get_skeleton, publishers)
    has_folder = submission.folder in map(make_slug, publishers)
    if has_name or has_folder:
        message = (
            f"{who.name} publishes figures that the record has from elsewhere; use your own name"
            " and affiliation"
        )
        yield Fault("owner", message, f"{DESCRIPTION}, who.name")
    elif maker := _find_maker(who.name):
        message = f"{who.name} reads as {maker}, which did not hand this in; use your own name"
        yield Fault("owner", message, f"{DESCRIPTION}, who.name")
    if account is not None and (who.account or "").casefold() != account.casefold():
        message = (
            f"is {who.account or 'not stated'}, but {account} hands the bundle in (submit --set"
            f" account={account})"
        )
        yield Fault("owner", message, f"{DESCRIPTION}, who.account")
    for folder, other in _list_others(raw):
        fault = _find_clash(submission, folder, other)
        if fault:
            yield fault
            break


def _find_clash(submission: Submission, folder: str, other: Mapping[str, Any]) -> Fault | None:
    """Return why a submitter cannot be told apart from the `other` one of a folder, if so."""
    who = submission.who
    differing = [name for name in PERSON if other.get(name) != getattr(who, name)]
    place = f"{SUBMISSIONS}/{folder}"
    if folder == submission.folder:
        if not differing:
            return None
        message = (
            f"{place} belongs to somebody with another {' and '.join(differing)}; add --set"
            " orcid=ID or account=LOGIN as before, or use another name"
        )
        return Fault("owner", message, DESCRIPTION)
    if who.orcid and "orcid" not in differing:
        return Fault("owner", f"is that of {place}", f"{DESCRIPTION}, who.orcid")
    if get_skeleton(str(other.get("name"))) == get_skeleton(who.name):
        return Fault("owner", f"looks like that of {place}", f"{DESCRIPTION}, who.name")
    return None


def _find_maker(name: str) -> str | None:
    """Return the maker of chips that words of a name spell, such as Graphcore in Graph-Core Ltd."""
    makers = {
        get_skeleton(maker["name"]): maker["name"]
        for maker in load_schema_file("vocabulary/makers.toml")["maker"]
    }
    words = re.findall(r"\w+", name)
    # of all words that follow one another
    for first, end in combinations(range(len(words) + 1), 2):
        maker = makers.get(get_skeleton("".join(words[first:end])))
        if maker is not None:
            return str(maker)
    return None


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
        if not isinstance(who, dict):
            who = {}
        yield path.parent.parent.name, who


NAMED = ("model", "platform", "chip", "framework", "precision")
"""Columns whose words are kept as printed where they are declared as new."""
NAMED_BY_RECORD = """
    SELECT DISTINCT chip, framework
    FROM results
    WHERE relationship IS DISTINCT FROM 'submitted'
"""


def load_submission_words(connection: Connection) -> KnownWords:
    """Load the known words of a comparison, and every chip and framework that the record names."""
    words = load_known_words(connection)
    chips: dict[str, str] = {}
    frameworks: dict[str, str] = {}
    for row in run_query(connection, NAMED_BY_RECORD).to_pylist():
        for name, named in (("chip", chips), ("framework", frameworks)):
            if row[name]:
                named[normalise_name(row[name])] = row[name]
    chips |= load_vocabulary().chips
    frameworks |= words.fields["framework"]
    return replace(words, fields={**words.fields, "chip": chips, "framework": frameworks})


def list_unknown_words(rows: Sequence[Line], words: KnownWords) -> Counter[tuple[str, str]]:
    """Count the rows of each unknown word by column."""
    unknown: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for name in NAMED:
            text = row[name].strip()
            if text and words.find(name, text) is None:
                unknown[name, text] += 1
    return unknown


def check_words(bundle: Bundle, words: KnownWords) -> Iterator[Fault]:
    """Yield a fault for each unknown word that the bundle does not declare as new."""
    declared = set(bundle.submission.new_words)
    for (name, text), rows in sorted(list_unknown_words(bundle.rows, words).items()):
        looks = get_skeleton(text)
        alike = [known for key, known in words.fields[name].items() if get_skeleton(key) == looks]
        is_known_chip = name == "chip" and find_accelerator(text) is not None
        if alike:
            message = (
                f"{name} {text!r} is {alike[0]} in another spelling, or looks like it; write"
                f" {alike[0]}"
            )
            yield Fault("unknown-word", message, RESULTS)
        elif text not in declared and not is_known_chip:
            message = f"{words.describe_unknown(name, text)}, in {format_count(rows, 'row')}"
            yield Fault(
                "unknown-word",
                f"{message}; correct it, or declare it as new: --new-word {shlex.quote(text)}",
                RESULTS,
            )


CONTRADICTIONS = ("conflicting-rows", "item-contradicts-model", "micro-batch")


def list_rejected(
    rows: Iterable[RejectedRow], unreadable: Sequence[RejectedRow]
) -> Iterator[Fault]:
    """Yield a fault for each row of a bundle that is refused, by the reader if it is `unreadable`,
    else by a gate.
    """
    for rejected in rows:
        reason: Reason = "schema"
        if rejected.words:
            reason = "unknown-word"
        elif rejected.reason in CONTRADICTIONS:
            reason = "contradiction"
        elif rejected in unreadable:
            reason = "unreadable-figure"
        words = describe_unknown_words(rejected.words, load_vocabulary())
        # the message and the words often agree
        if not any(text.startswith(rejected.message) for text in words):
            words = [rejected.message, *words]
        yield Fault(reason, "; ".join(words), f"{RESULTS}, {rejected.locator}")
