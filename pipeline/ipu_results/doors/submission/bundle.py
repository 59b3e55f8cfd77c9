"""A bundle: its files and columns, its description and id, and its place in
`raw/submissions/<who>/<id>/`.

The next `ingest` reads a bundle that was laid there as a document.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ipu_results.errors import SubmissionError
from ipu_results.kit.files import is_inside, write_atomically, write_folder
from ipu_results.record.sources.catalogue import BUNDLE, PART, SUBMISSION
from ipu_results.schema.vocabulary import load_vocabulary

SUBMISSIONS = "submissions"
DESCRIPTION = BUNDLE
RESULTS = "results.csv"
ENVIRONMENT = "environment.json"
SIDECAR = f"{RESULTS}.toml"  # of a bundle that is laid in `raw/`
READER = "comparators"
TABLE = "independent_results"
HEADER = load_vocabulary().header_of(READER, TABLE)
COLUMNS: tuple[str, ...] = tuple(name for name, _ in HEADER.fields)
"""The columns of the CSV template, `results.csv` in a bundle: one figure a line, each as it was
printed.
"""
MEASURED = "measured"
CLAUSE_END = re.compile(r"[;=]|[.!?:](?=\s)")
# of a condition's value: room for no sentence, as the pattern of schema/submission/lines.toml has
# it
MAX_VALUE_WORDS = 6
MAX_VALUE_CHARACTERS = 60
MAX_SLUG = 60  # characters of a folder's name
ID_DIGITS = 12  # 48 bits: two of a million bundles have one id with a probability of 0.2 %

Files = dict[str, bytes]
Line = Mapping[str, Any]
"""The texts of a line of `results.csv` by column, and its number as `line`."""


class Submitter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who measured. `account` is the account on GitHub that hands the bundle in."""

    name: str
    orcid: str | None = None
    affiliation: str | None = None
    contact: str | None = None
    account: str | None = None


class ReadSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the figures were read from, with the adapter that read it; the file itself is not
    handed in.
    """

    file: str
    adapter: str
    sha256: str


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `submission.toml`.

    `new_words` are names that the record does not know and that are meant.
    """

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
    """A bundle that could be read: its description, its rows by line and column, its environment,
    and its files.
    """

    submission: Submission
    rows: Sequence[Line]
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Files = field(default_factory=dict)


def make_slug(name: str) -> str:
    """Return the folder of a name: ASCII letters and digits, or a digest where it has none."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.findall("[a-z0-9]+", ascii_name)
    slug = "-".join(words)[:MAX_SLUG].rstrip("-")
    return slug or hashlib.sha256(name.encode()).hexdigest()[:ID_DIGITS]


def compute_id(description: Mapping[str, Any], results: bytes, environment: bytes | None) -> str:
    """Return the id of a bundle: a digest of all that it holds except the id itself."""
    stated = {key: value for key, value in description.items() if key != "id"}
    text = json.dumps(stated, sort_keys=True, ensure_ascii=True, default=str)
    # the digest of each part: bytes cannot move from one part to the next
    digest = hashlib.sha256()
    for part in (text.encode(), results, environment or b""):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:ID_DIGITS]


def format_rows(rows: Iterable[Mapping[str, str]]) -> bytes:
    """Format rows as the template; a column that a row lacks is blank."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def format_conditions(conditions: Mapping[str, str]) -> str:
    """Format the conditions that are known as `name = value; name = value`.

    A value keeps the words of its first clause that `schema/submission/lines.toml` accepts.
    """
    pairs = []
    for name, text in conditions.items():
        words = CLAUSE_END.split(text)[0].split()[:MAX_VALUE_WORDS]
        value = " ".join(words)[:MAX_VALUE_CHARACTERS].rstrip(" .!?:")
        if value:
            pairs.append(f"{name} = {value}")
    return "; ".join(pairs)


def get_folder(raw: Path, submission: Submission) -> Path:
    """Return where the bundle of a submission belongs."""
    return raw / SUBMISSIONS / submission.folder / submission.id


def format_sidecar(bundle: Bundle) -> bytes:
    """Return the sidecar of the figures of a bundle; it follows from the bundle alone."""
    submission = bundle.submission
    who = submission.who
    sources = [
        f"{source.file} ({source.adapter}, sha256 {source.sha256})" for source in submission.sources
    ]
    how = " ".join(submission.how.split())
    note = (
        f"Handed in by a user and not repeated here. How it was measured: {how}"
        f" Relation to the maker of the machine: {submission.relation}."
        f" Read from: {', '.join(sources) or 'the template itself'}."
    )
    attachments = {}
    for name, data in sorted(bundle.files.items()):
        if name not in (RESULTS, SIDECAR):
            attachments[name] = _digest(data)
    title = f"Figures handed in by {who.name} on {submission.submitted_on}: {submission.machine}"
    entry = {
        "document_id": submission.document_id,
        "title": title,
        "publisher": who.name,
        "published_on": submission.submitted_on,
        "retrieved_on": submission.submitted_on,
        "kind": SUBMISSION,
        "licence": submission.licence,
        "sha256": _digest(bundle.files[RESULTS]),
        "reader": READER,
        "note": note,
        "measured_by": ", ".join(filter(None, (who.name, who.affiliation))),
        "measured_on": submission.machine,
        "tables": {TABLE: {"rows": len(bundle.rows)}},
        "attachments": attachments,
    }
    return tomli_w.dumps(entry).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lay_bundle(bundle: Bundle, raw: Path) -> Path:
    """Write the bundle with its sidecar under `raw` in one step, or only the sidecar, and return
    the folder.

    Raises IpuResultsError if it cannot be written, SubmissionError for a folder that is a link.
    """
    folder = get_folder(raw, bundle.submission)
    if not is_inside(folder, str(raw / SUBMISSIONS)):
        raise SubmissionError(
            "is a link that leads out of the folder of submissions", place=str(folder)
        )
    files = {**bundle.files, SIDECAR: format_sidecar(bundle)}
    if folder.is_dir():
        write_atomically(folder / SIDECAR, files[SIDECAR])
    else:
        write_bundle(folder, files)
    return folder


def write_bundle(folder: Path, files: Files) -> None:
    """Write the files of a bundle as a new folder, whole or not at all."""
    write_folder(folder, files, folder.with_name(f".{folder.name}{PART}"))
