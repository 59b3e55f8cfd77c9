"""Lay an accepted bundle in `raw/submissions/<who>/<id>/`, where the next `ingest` reads it as a document."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ipu_results.errors import SubmissionError
from ipu_results.ground.files import is_inside, write_atomically, write_folder
from ipu_results.ground.limits import MAX_SUBMITTED_CELL, MAX_SUBMITTED_ROWS, MAX_SUBMITTED_TEXT
from ipu_results.ground.text import parse_toml
from ipu_results.sources.catalogue import PART
from ipu_results.sources.sidecar import SUBMISSION
from ipu_results.submission.contents import DESCRIPTION, ENVIRONMENT, RESULTS, SIDECAR, Files
from ipu_results.submission.fault import Fault
from ipu_results.submission.template import COLUMNS, READER, REQUIRED, TABLE
from ipu_results.submission.text import check_text, decode_text

SUBMISSIONS = "submissions"


def get_folder(raw: Path, submission: Submission) -> Path:
    """Return where the bundle of a submission belongs."""
    return raw / SUBMISSIONS / submission.folder / submission.id


def format_sidecar(bundle: Bundle) -> bytes:
    """Return the sidecar of the figures of a bundle; it follows from the bundle alone."""
    submission = bundle.submission
    who = submission.who
    sources = ", ".join(f"{source.file} ({source.adapter}, sha256 {source.sha256})" for source in submission.sources)
    notes = [
        f"Handed in by a user and not repeated here. How it was measured: {' '.join(submission.how.split())}",
        f"Relation to the maker of the machine: {submission.relation}.",
        f"Read from: {sources or 'the template itself'}.",
    ]
    attached = {name: data for name, data in sorted(bundle.files.items()) if name not in (RESULTS, SIDECAR)}
    entry = {
        "document_id": submission.document_id,
        "title": f"Figures handed in by {who.name} on {submission.submitted_on}: {submission.machine}",
        "publisher": who.name,
        "published_on": submission.submitted_on,
        "retrieved_on": submission.submitted_on,
        "kind": SUBMISSION,
        "licence": submission.licence,
        "sha256": _digest(bundle.files[RESULTS]),
        "reader": READER,
        "note": " ".join(notes),
        "measured_by": ", ".join(filter(None, (who.name, who.affiliation))),
        "measured_on": submission.machine,
        "tables": {TABLE: {"rows": len(bundle.rows)}},
        "attachments": {name: _digest(data) for name, data in attached.items()},
    }
    return tomli_w.dumps(entry).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lay_bundle(bundle: Bundle, raw: Path) -> Path:
    """Write the bundle with its sidecar under `raw` in one step, or only the sidecar, and return the folder.

    Raises IpuResultsError if it cannot be written, SubmissionError for a folder that is a link.
    """
    folder = get_folder(raw, bundle.submission)
    if not is_inside(folder, str(raw / SUBMISSIONS)):
        raise SubmissionError("is a link that leads out of the folder of submissions", place=str(folder))
    files = {**bundle.files, SIDECAR: format_sidecar(bundle)}
    if folder.is_dir():
        write_atomically(folder / SIDECAR, files[SIDECAR])
    else:
        write_bundle(folder, files)
    return folder


def write_bundle(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a bundle as a new folder, whole or not at all."""
    write_folder(folder, files, folder.with_name(f".{folder.name}{PART}"))


MEASURED = "measured"
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
ID_DIGITS = 12
FIRST_DAY = date(2020, 1, 1)
MAX_SLUG = 60
MAX_DEPTH, MAX_VALUES = 4, 500  # of the environment


class Submitter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who measured. `account` is the account on GitHub that hands the bundle in."""

    name: str
    orcid: str | None = None
    affiliation: str | None = None
    contact: str | None = None
    account: str | None = None


class ReadSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the figures were read from, with the adapter that read it; the file itself is not handed in."""

    file: str
    adapter: str
    sha256: str


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `submission.toml`. `new_words` are names that the record does not know and that are meant."""

    id: str
    origin: str
    submitted_on: date
    licence: str
    how: str
    machine: str
    relation: str = "none"
    new_words: tuple[str, ...] = ()
    who: Submitter
    sources: tuple[ReadSource, ...] = ()

    @property
    def folder(self) -> str:
        """The name of the submitter's folder."""
        return make_slug(self.who.name)

    @property
    def document_id(self) -> str:
        return f"submission-{self.folder}-{self.id}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that could be read: its description, its rows as texts by column, its environment, and its files."""

    submission: Submission
    rows: tuple[Mapping[str, str], ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def make_slug(name: str) -> str:
    """Return the folder of a name: ASCII letters and digits, or a digest for a name that has none."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:MAX_SLUG].strip("-")
    return slug or hashlib.sha256(name.encode()).hexdigest()[:ID_DIGITS]


def compute_id(description: Mapping[str, Any], results: bytes, environment: bytes | None) -> str:
    """Return the id of a bundle: a digest of all that it holds except the id itself."""
    stated = {key: value for key, value in description.items() if key != "id"}
    text = json.dumps(stated, sort_keys=True, ensure_ascii=True, default=str)
    parts = (text.encode(), results, environment or b"")
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts))
    return digest.hexdigest()[:ID_DIGITS]


def parse_bundle(files: Files) -> tuple[Bundle | None, list[Fault]]:
    """Return the bundle, None if its description or its rows cannot be read, and what is wrong with it."""
    faults: list[Fault] = []
    texts: dict[str, str] = {}
    for name, data in files.items():
        text = decode_text(data, name)
        if isinstance(text, Fault):
            faults.append(text)
        else:
            texts[name] = text
    if faults:
        return None, faults
    entry = _parse_toml(texts[DESCRIPTION], faults)
    submission = entry and _parse_submission(entry, faults)
    rows = _parse_rows(texts[RESULTS], faults)
    environment = _parse_environment(texts[ENVIRONMENT], faults) if ENVIRONMENT in texts else {}
    if submission:
        faults += _check_submission(submission)
        expected = compute_id(entry, files[RESULTS], files.get(ENVIRONMENT))
        if submission.id != expected:
            message = f"the id is {submission.id[:40]!r}, but what the bundle holds has the id {expected}"
            faults.append(Fault("id", f"{message}; do not copy an id or change a bundle, make it again", DESCRIPTION))
    if not submission or rows is None or environment is None:
        return None, faults
    return Bundle(submission, tuple(rows), environment, files), faults


def _parse_toml(text: str, faults: list[Fault]) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        faults.append(Fault("not-a-bundle", f"is not TOML: {str(error)[:200]}", DESCRIPTION))
        return {}


def _parse_submission(entry: Mapping[str, Any], faults: list[Fault]) -> Submission | None:
    fields = [known.name for known in msgspec.structs.fields(Submission)]
    for key in entry.keys() - set(fields):
        near = get_close_matches(key, fields, 1)
        hint = f"; the nearest key is {near[0]}" if near else ""
        faults.append(Fault("schema", f"unknown key {key[:60]!r}{hint}", DESCRIPTION))
    try:
        return msgspec.convert({key: entry[key] for key in fields if key in entry}, Submission)
    except msgspec.ValidationError as error:
        faults.append(Fault("schema", str(error), DESCRIPTION))
        return None


def _check_submission(submission: Submission) -> Iterator[Fault]:
    who = submission.who
    texts = {
        **{"machine": submission.machine, "who.name": who.name, "licence": submission.licence},
        **{"who.affiliation": who.affiliation or "", "who.contact": who.contact or ""},
        **{f"new_words {number}": word for number, word in enumerate(submission.new_words, 1)},
    }
    for key, text in texts.items():
        yield from check_text(text, f"{DESCRIPTION}, {key}")
    yield from check_text(submission.how, f"{DESCRIPTION}, how", MAX_SUBMITTED_TEXT, lines=True)
    for key, text in (("who.name", who.name), ("how", submission.how), ("machine", submission.machine)):
        if not text.strip():
            yield Fault("schema", "is blank", f"{DESCRIPTION}, {key}")
    if submission.origin != MEASURED:
        message = f"origin is {submission.origin[:40]!r}: only measured figures are accepted"
        yield Fault("emulated", message, DESCRIPTION)
    if not FIRST_DAY <= submission.submitted_on <= date.today() + timedelta(days=1):  # another time zone
        yield Fault(
            "schema",
            f"{submission.submitted_on} is not a day on which it can have been handed in",
            f"{DESCRIPTION}, submitted_on",
        )
    if submission.licence not in LICENCES:
        message = f"{submission.licence[:40]!r} is not one of {', '.join(LICENCES)}"
        yield Fault("licence", message, f"{DESCRIPTION}, licence")
    if submission.relation not in RELATIONS:
        yield Fault("schema", f"is not one of {', '.join(RELATIONS)}", f"{DESCRIPTION}, relation")
    if who.orcid is not None and not is_orcid(who.orcid):
        yield Fault("owner", "is not an ORCID iD: its check digit or form is wrong", f"{DESCRIPTION}, who.orcid")
    if who.account is not None and not ACCOUNT.fullmatch(who.account):
        yield Fault("schema", "is not the name of an account", f"{DESCRIPTION}, who.account")
    for number, source in enumerate(submission.sources, 1):
        place = f"{DESCRIPTION}, sources {number}"
        if not FILE_NAME.fullmatch(source.file):
            yield Fault("out-of-place", "file is not the plain name of a file, without a folder", place)
        if not re.fullmatch(r"[0-9a-f]{64}", source.sha256) or not re.fullmatch(r"[\w -]{1,60}", source.adapter):
            yield Fault("schema", "sha256 or adapter is not one", place)


def is_orcid(text: str) -> bool:
    """Return whether a text is an ORCID iD with the right check digit (ISO 7064, MOD 11-2)."""
    if not ORCID.fullmatch(text):
        return False
    digits, total = text.replace("-", ""), 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    expected = (12 - total % 11) % 11
    return digits[-1] == ("X" if expected == 10 else str(expected))


def _parse_rows(text: str, faults: list[Fault]) -> list[Mapping[str, str]] | None:
    """Return the rows of `results.csv` as texts by column."""
    try:
        header, *lines = list(csv.reader(io.StringIO(text, newline=""), strict=True)) or [[]]
    except csv.Error as error:
        faults.append(Fault("not-a-bundle", f"is not CSV: {error}", RESULTS))
        return None
    if tuple(header) != COLUMNS:
        faults.append(Fault("schema", f"the columns are not {','.join(COLUMNS)}", f"{RESULTS}, line 1"))
        return None
    if not lines or not text.endswith("\n"):
        message = "has no figure" if not lines else "does not end with a line break: it was cut off"
        faults.append(Fault("not-a-bundle", message, RESULTS))
        return None
    if len(lines) > MAX_SUBMITTED_ROWS:
        message = f"has {len(lines):,} rows, at most {MAX_SUBMITTED_ROWS:,} are accepted; hand in several bundles"
        faults.append(Fault("too-large", message, RESULTS))
        return None
    rows: list[Mapping[str, str]] = []
    for number, cells in enumerate(lines, 2):
        place = f"{RESULTS}, line {number}"
        if len(cells) != len(COLUMNS):
            faults.append(Fault("schema", f"has {len(cells)} cells, not {len(COLUMNS)}", place))
            continue
        row = dict(zip(COLUMNS, cells, strict=True))
        for name, cell in row.items():
            faults += check_text(cell, f"{place}, {name}")
        if blank := [name for name in REQUIRED if not row[name].strip()]:
            faults.append(Fault("schema", f"{', '.join(blank)} is blank", place))
        rows.append(row)
    return rows


def _parse_environment(text: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return the environment, None if it cannot be read."""
    try:
        environment = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_parse_float, object_pairs_hook=_refuse_repetition
        )
    except (ValueError, RecursionError) as error:
        faults.append(Fault("not-a-bundle", f"is not JSON: {str(error)[:200]}", ENVIRONMENT))
        return None
    if not isinstance(environment, dict):
        faults.append(Fault("schema", "is not a JSON object", ENVIRONMENT))
        return None
    values = list(_list_texts(environment, ENVIRONMENT, MAX_DEPTH))
    if len(values) > MAX_VALUES or any(place is None for _, place in values):
        message = f"has more than {MAX_VALUES} values or {MAX_DEPTH} levels"
        faults.append(Fault("too-large", message, ENVIRONMENT))
        return None
    for value, place in values:
        faults += check_text(value, str(place))
    return environment


def _list_texts(value: Any, place: str, depth: int) -> Iterator[tuple[str, str | None]]:
    """Yield each key and value as text with its place; the place is None below the deepest level."""
    if depth < 0:
        yield "", None
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key, f"{place}, a key"
            yield from _list_texts(item, f"{place}, {key[:MAX_SUBMITTED_CELL]}", depth - 1)
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item, place, depth - 1)
    else:
        yield value if isinstance(value, str) else "", place


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _parse_float(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]} is too large")
    return value


def _refuse_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)
