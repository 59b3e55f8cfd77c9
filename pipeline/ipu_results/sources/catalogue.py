"""The catalogue: one sidecar `<file>.toml` beside each document in `raw/`, and the bytes it vouches for.

A finished local run is a folder of documents; that of an unfinished one is passed over whole.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

from ipu_results.errors import CatalogueError, DamagedDocumentError, DocumentTooLargeError
from ipu_results.schema import table
from ipu_results.sources.kinds import INGESTED, LOCAL, MAX_BYTES, UNFINISHED

REQUIRED = ("document_id", "title", "publisher", "url", "kind", "licence", "sha256", "reader", "note")
OPTIONAL = ("published_on", "retrieved_on", "tables", "fetch", "transcription_of", "claims_of", "attachments")
RUN, LOCAL_PUBLISHER = "run", "local"
PDF = b"%PDF-"
NOT_DOCUMENTS = frozenset({".toml", ".md", ".py", ".pyc", ".part"})


@dataclass(frozen=True)
class Document:
    """One catalogue entry. `tables` gives, per table, the source rows that must be found and facts of its section.

    `transcription_of` names, for a capture, the document that it is a version of, `claims_of`, for claims, the document
    that makes them where it stands here under another id. `attachments` are files beside it or one folder below that go
    with it, by name, each with its sha256. `url` is None for a local run alone.
    """

    document_id: str
    title: str
    publisher: str
    url: str | None
    kind: str
    licence: str
    sha256: str
    reader: str
    note: str
    path: Path
    file: str
    published_on: date | None = None
    retrieved_on: date | None = None
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fetch: Mapping[str, str] = field(default_factory=dict)
    transcription_of: str | None = None
    claims_of: str | None = None
    attachments: Mapping[str, str] = field(default_factory=dict)

    def bytes(self, max_bytes: int = MAX_BYTES) -> bytes:
        """The file's bytes, checked for size, digest and type; its attachments are checked for their digests."""
        data = read_limited(self.path, self.document_id, max_bytes)
        self._assert_digest(self.file, hashlib.sha256(data).hexdigest(), self.sha256)
        check_file_type(self.path.name, data, self.document_id)
        for path, told in self.attached.items():
            self._assert_digest(path.name, _digest(path, self.document_id), told)
        return data

    def attached_texts(self, suffix: str) -> dict[str, str]:
        """The text of each attachment of a suffix, by its name without folder and suffix; UTF-8, its digest checked."""
        found = {}
        for path, told in self.attached.items():
            if path.suffix == suffix:
                data = read_limited(path, self.document_id, MAX_BYTES)
                self._assert_digest(path.name, hashlib.sha256(data).hexdigest(), told)
                try:
                    found[path.stem] = data.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DamagedDocumentError(
                        "is no UTF-8 text", document=self.document_id, place=path.name
                    ) from error
        return found

    @property
    def attached(self) -> dict[Path, str]:
        """The attachments' paths, each with its sha256."""
        return {self.path.parent / name: told for name, told in sorted(self.attachments.items())}

    def _assert_digest(self, place: str, found: str, told: str) -> None:
        if found != told:
            message = f"sha256 is {found[:12]}…, the sidecar says {told[:12]}…: the file or the sidecar was changed"
            raise CatalogueError(message, document=self.document_id, place=place)

    def record(self) -> dict[str, Any]:
        """The document's row in `documents`."""
        names = (
            "document_id",
            "title",
            "publisher",
            "url",
            "published_on",
            "kind",
            "sha256",
            "licence",
            "retrieved_on",
        )
        return {name: getattr(self, name) for name in (*names, "file", "note")}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_date(value: object) -> bool:
    return type(value) is date


def _is_address(value: object) -> bool:
    return isinstance(value, dict) and value.keys() <= {"url", "media_type"} and all(map(_is_text, value.values()))


def _are_promises(value: object) -> bool:
    """Tables by name, each with its whole number of rows and, if one is told, the platform of its section."""
    return isinstance(value, dict) and all(
        isinstance(promise, dict)
        and type(promise.get("rows")) is int
        and promise.keys() <= {"rows", "platform"}
        and _is_text(promise.get("platform", ""))
        for promise in value.values()
    )


def _are_digests(value: object) -> bool:
    """File names, in one folder at most, each with its sha256."""
    return isinstance(value, dict) and all(
        re.fullmatch(r"(?:\w[\w.-]*/)?\w[\w.-]*", name)
        and isinstance(told, str)
        and re.fullmatch(r"[0-9a-f]{64}", told)
        for name, told in value.items()
    )


TYPES: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys((*REQUIRED, "transcription_of", "claims_of"), _is_text),
    **dict.fromkeys(("published_on", "retrieved_on"), _is_date),
    "fetch": _is_address,
    "tables": _are_promises,
    "attachments": _are_digests,
}


def check_file_type(name: str, data: bytes, document: str) -> None:
    """Refuse a file whose first bytes contradict its suffix, such as an HTML error page saved as PDF."""
    is_pdf = data.lstrip()[:5] == PDF
    if not data.strip():
        raise DamagedDocumentError("is empty", document=document)
    if name.lower().endswith(".pdf") and not is_pdf:
        what = "an HTML page" if data.lstrip()[:1] == b"<" else "something else"
        raise DamagedDocumentError(f"is not a PDF but {what}", document=document, place="first bytes")
    if is_pdf and not name.lower().endswith(".pdf"):
        raise DamagedDocumentError("is a PDF under another suffix", document=document, place="first bytes")


def read_limited(path: Path, document: str, max_bytes: int) -> bytes:
    """The bytes of a file that is not larger than the limit."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        place = path.name if path.name != document else None
        raise CatalogueError(f"cannot be read: {error.strerror}", document=document, place=place) from error
    if len(data) > max_bytes:
        raise DocumentTooLargeError(f"is too large: the limit is {max_bytes:,} bytes", document=document)
    return data


def _digest(path: Path, document: str) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CatalogueError(f"cannot be read: {error.strerror}", document=document, place=path.name) from error


def load_catalogue(raw: Path) -> list[Document]:
    """All documents of `raw`, sorted by id.

    Raises CatalogueError for a folder without sidecars, a sidecar that is incomplete or unknown in a key, and for two
    documents of one id or of the same bytes. Two runs may have the same bytes: an emulated one repeats.
    """
    if not raw.is_dir():
        raise CatalogueError("no such folder", place=str(raw))
    documents = sorted((_load(raw, path) for path in _files(raw, "*.toml")), key=lambda document: document.document_id)
    if not documents:
        raise CatalogueError("holds no sidecar (<file>.toml)", place=str(raw))
    for one, other in pairwise(documents):
        if one.document_id == other.document_id:
            raise CatalogueError(f"stands in {one.file} and in {other.file}", document=one.document_id)
    ours = (document for document in documents if document.transcription_of is None and document.kind != RUN)
    for one, other in pairwise(sorted(ours, key=lambda document: document.sha256)):
        if one.sha256 == other.sha256:
            raise CatalogueError(f"has the same bytes as {other.document_id}", document=one.document_id)
    return documents


def find_orphans(raw: Path, documents: Sequence[Document]) -> list[str]:
    """Files under `raw` that no sidecar speaks of, but for those of unfinished runs."""
    known = {document.path for document in documents}.union(*(document.attached for document in documents))
    files = (path for path in _files(raw, "*") if path.suffix not in NOT_DOCUMENTS)
    return sorted(path.relative_to(raw).as_posix() for path in files if path not in known)


def find_unfinished_runs(raw: Path) -> list[str]:
    """The ids of the runs under `raw` that are not finished."""
    folders = (path for path in raw.rglob(f"*{UNFINISHED}") if path.is_dir())
    return sorted(path.name.removesuffix(UNFINISHED) for path in folders)


def _files(raw: Path, pattern: str) -> Iterator[Path]:
    for path in raw.rglob(pattern):
        within = path.relative_to(raw).parent.parts
        if path.is_file() and not any(part.endswith(UNFINISHED) for part in within):
            yield path


def _is_allowed(key: str, entry: Mapping[str, Any]) -> bool:
    """Whether a value is one that `documents` or the readers take; a missing key is told elsewhere."""
    if key not in entry or key == "reader":
        return entry.get(key, INGESTED[0]) in INGESTED
    column = table("documents").column(key)
    fits = column.pattern is None or re.fullmatch(column.pattern, entry[key]) is not None
    return fits and (column.choices is None or entry[key] in column.choices)


def _load(raw: Path, path: Path) -> Document:
    place = path.relative_to(raw).as_posix()
    try:
        entry = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise CatalogueError(f"is not a readable sidecar: {error}", place=place) from error
    is_run = entry.get("kind") == RUN
    missing = [key for key in REQUIRED if key not in entry and not (is_run and key == "url")]
    unknown = [key for key in entry if key not in (*REQUIRED, *OPTIONAL)]
    wrong = [key for key in entry if key in TYPES and not TYPES[key](entry[key])]
    wrong = wrong or [key for key in ("document_id", "kind", "url", "sha256", "reader") if not _is_allowed(key, entry)]
    wrong = wrong or [key for key, fits in _of_runs(entry).items() if is_run is not fits]
    for what, keys in (("lacks", missing), ("has unknown", unknown), ("has no valid", wrong)):
        if keys:
            raise CatalogueError(f"the sidecar {what} {', '.join(keys)}", place=place)
    file = path.with_suffix("")
    return Document(**{"url": None, **entry}, path=file, file=file.relative_to(raw).as_posix())


def _of_runs(entry: Mapping[str, Any]) -> dict[str, bool]:
    """Keys whose value is one that local runs have, and no other document."""
    return {"reader": entry.get("reader") in LOCAL, "publisher": entry.get("publisher") == LOCAL_PUBLISHER}
