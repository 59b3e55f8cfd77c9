"""The sidecar of a document: its keys, what each accepts, and the placeholders of a drafted one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ipu_results.errors import CatalogueError
from ipu_results.ground.files import open_regular_file
from ipu_results.ground.limits import MAX_TOML_CHARACTERS
from ipu_results.ground.text import escape_unprintable, parse_toml
from ipu_results.schema import table
from ipu_results.schema.vocabulary import ALIASES, KINDS

RUN, LOCAL_PUBLISHER = "run", "local"
SUBMISSION = "submission"  # kind of the figures that a user handed in
INGESTED = tuple(name for name, kind in KINDS.items() if kind.is_ingested)
NOT_UTF8 = "the name of the file or of a folder is not UTF-8; rename it"
PLACEHOLDER = "TODO"  # begins a value of a drafted sidecar that a person has still to fill in

FileName = Annotated[str, msgspec.Meta(pattern=r"^(?:\w[\w.-]*/)?\w[\w.-]*$")]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


class ExpectedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sidecar says of a table: its number of source rows, and the platform its section is about.

    `place` is what the source calls the table, where our transcription has its rows in the order of the source.
    """

    rows: int
    platform: str | None = None
    place: str | None = None


class SourceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a public repository that was read, with the digest of its bytes."""

    repository: str
    path: str
    commit: str
    sha256: Digest

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}:{self.path} (sha256 {self.sha256})"


class FetchTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a document is downloaded from; `url` is that of the document if it is left out."""

    url: str | None = None
    media_type: str = "text/html"


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a sidecar.

    `transcription_of` names, for a capture, the document that it is a version of. `claims_of` names, for claims, the
    document that makes them if it has another id here. `attachments` are files next to the document, or one folder
    below, with their sha256. `commit` is the version of a repository that was read, `missing` are files whose content
    was absent in the copy of it. `sources` are the files that a
    transcription was made from; `measured_by`, `measured_on` and `verified` say who measured, on what, and how the
    transcription was verified. Only a local run and a submission have no `url`.
    """

    document_id: str
    title: str
    publisher: str
    url: str | None = None
    commit: str | None = None
    missing: tuple[str, ...] = ()
    kind: str
    licence: str
    sha256: Digest
    reader: str
    note: str
    published_on: date | None = None
    retrieved_on: date | None = None
    tables: Mapping[str, ExpectedTable] = {}
    fetch: FetchTarget | None = None
    transcription_of: str | None = None
    claims_of: str | None = None
    attachments: Mapping[FileName, Digest] = {}
    sources: tuple[SourceFile, ...] = ()
    measured_by: str | None = None
    measured_on: str | None = None
    verified: str | None = None

    def __post_init__(self) -> None:
        """Replace a former name of the reader with its present one."""
        msgspec.structs.force_setattr(self, "reader", ALIASES.get(self.reader, self.reader))


def read_entry(path: Path, place: str) -> dict[str, Any]:
    """Return the content of a sidecar. Raises CatalogueError that names its place."""
    if not _is_utf8(place):
        raise CatalogueError(NOT_UTF8, place=escape_unprintable(place))
    try:
        with open_regular_file(path) as file:
            return parse_toml(file.read(4 * MAX_TOML_CHARACTERS + 1).decode())
    except OSError as error:
        raise CatalogueError(f"is not a readable sidecar: {error.strerror}", place=place) from error
    except ValueError as error:
        raise CatalogueError(f"is not a readable sidecar: {error}", place=place) from error


def _is_utf8(name: str) -> bool:
    """Return whether a name has no byte that the file system could not decode."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def list_placeholders(entry: Mapping[str, Any]) -> list[str]:
    """Return the keys of a sidecar that a person has still to fill in."""
    return [key for key, value in entry.items() if isinstance(value, str) and value.startswith(PLACEHOLDER)]


def parse_sidecar(entry: Mapping[str, Any], place: str) -> Sidecar:
    """Check the content of a sidecar. Raises CatalogueError for what is invalid in it."""
    if unfilled := list_placeholders(entry):
        message = f"the sidecar is a draft: fill in {', '.join(unfilled)}, which begin with {PLACEHOLDER}"
        raise CatalogueError(message, place=place)
    if wrong := _find_wrong_keys(entry):
        raise CatalogueError(f"the sidecar is invalid: {wrong}", place=place)
    try:
        sidecar = msgspec.convert(entry, Sidecar)
    except msgspec.ValidationError as error:
        raise CatalogueError(f"the sidecar is invalid: {error}", place=place) from error
    if invalid := _find_invalid(sidecar):
        raise CatalogueError(f"the sidecar is invalid: {invalid}", place=place)
    return sidecar


def _find_wrong_keys(entry: Mapping[str, Any]) -> str | None:
    """Return all missing keys, with the words that they accept, and all unknown ones with the nearest known one."""
    fields = {field.name: field for field in msgspec.structs.fields(Sidecar)}
    choices = {"kind": table("documents").choices("kind"), "reader": INGESTED}
    parts = []
    for name, field in fields.items():
        if field.required and name not in entry:
            words = f" (one of {', '.join(choices[name])})" if name in choices else ""
            parts.append(f"missing required field `{name}`{words}")
    for name in entry.keys() - fields.keys():
        nearest = difflib.get_close_matches(name, fields, 1)
        parts.append(f"unknown field `{name}`" + (f", nearest: `{nearest[0]}`" if nearest else ""))
    return "; ".join(sorted(parts)) or None


def _find_invalid(sidecar: Sidecar) -> str | None:
    """Return what the schema of `documents` or the registry of kinds refuses, with the accepted values."""
    if sidecar.reader not in INGESTED:
        return f"reader {sidecar.reader!r} is not one of {', '.join(INGESTED)}"
    for name in ("document_id", "kind", "url"):
        column, value = table("documents").column(name), getattr(sidecar, name)
        if column.choices and value not in column.choices:
            return f"{name} {value!r} is not one of {', '.join(column.choices)}"
        if column.pattern and value is not None and not re.fullmatch(column.pattern, value):
            return f"{name} {value!r} does not match {column.pattern}"
    is_run = sidecar.kind == RUN
    if KINDS[sidecar.reader].local is not is_run:
        return f"reader {sidecar.reader!r} does not go with kind {sidecar.kind!r}"
    if (sidecar.publisher == LOCAL_PUBLISHER) is not is_run:
        return f"publisher {sidecar.publisher!r} does not go with kind {sidecar.kind!r}"
    if sidecar.url is None and sidecar.kind not in (RUN, SUBMISSION):
        return "url is missing; only a local run and a submission have none"
    return None
