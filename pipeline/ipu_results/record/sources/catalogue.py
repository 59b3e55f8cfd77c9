"""The catalogue: one sidecar `<file>.toml` next to each document in `raw/`, and the bytes that it
describes.

A finished local run is a folder of documents. The folder of an unfinished run is skipped as a
whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ipu_results.errors import (
    CatalogueError,
    DamagedDocumentError,
    DamagedRunError,
    DocumentTooLargeError,
)
from ipu_results.kit.files import UNFINISHED, hash_file, read_up_to
from ipu_results.kit.limits import MAX_BYTES, MAX_EVIDENCE_BYTES, MAX_TOML_CHARACTERS
from ipu_results.kit.text import (
    escape_unprintable,
    find_lookalike,
    find_nearest_words,
    parse_toml,
)
from ipu_results.schema import table
from ipu_results.schema.records import DocumentsRow
from ipu_results.schema.vocabulary import ALIASES, KINDS

RUN = "run"  # kind of what a local run measured
LOCAL_PUBLISHER = "local"
SUBMISSION = "submission"  # kind of the figures that a user handed in
INGESTED = tuple(name for name, kind in KINDS.items() if kind.is_ingested)
NOT_UTF8 = "the name of the file or of a folder is not UTF-8; rename it"
EVIDENCE = ".shown.json"  # ends the name of the file with what a browser shows of a page
PLACEHOLDER = "TODO"  # begins a value of a drafted sidecar that a person has still to fill in
RUN_ID = table("runs").column("run_id").pattern or ""  # names the folder of a finished run
RUN_ATTACHMENTS = frozenset({"blocks.jsonl", "stamps.parquet"})
RUN_FILES = RUN_ATTACHMENTS | {"record.json", "record.json.toml", "points.csv", "points.csv.toml"}
PART = ".part"  # ends the folder name of a bundle that is being written
CACHE = ".cache"  # the folder of read documents; in raw/ if one of its folders is built alone
# lists the public documents that are known to exist; it is not a sidecar
REGISTER = "register.toml"
BUNDLE = "submission.toml"  # describes a bundle that a user handed in; it is not a sidecar
PDF = b"%PDF-"  # begins the file
NOT_DOCUMENTS = frozenset({".toml", ".md", ".py", ".pyc", ".part"})  # suffixes of other files

# no path that leads out of the folder; a saved page and its files may have blanks in their names
FILE_NAME = re.compile(r"^(?:\w[\w .,()&+@-]*/)?\w[\w .,()&+@-]*$")
UNDECODED = re.compile("[\ud800-\udfff]")
FileName = Annotated[str, msgspec.Meta(pattern=FILE_NAME.pattern)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


class ExpectedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sidecar says of a table: its number of source rows, and the platform its section is
    about.

    `place` is what the source calls the table, where our transcription has its rows in the order of
    the source.
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


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a sidecar.

    `claims_of` names, for claims, the document that makes them if it has another id here.
    `attachments` are files next to the document, or one folder below, with their sha256. `commit`
    is the version of a repository that was read, `missing` are files whose content was absent in
    the copy of it. `sources` are the files that a transcription was made from; `measured_by`,
    `measured_on` and `verified` say who measured, on what, and how the transcription was verified.
    `context` is the digest of the words that may change what figures mean, and `means` is what they
    say for the figures as they are read: a person's signature. `decimal_mark` is what a person
    read. `figures_are` says what the figures are if they are no measurements to rank. Only a local
    run and a submission have no `url`.
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
    claims_of: str | None = None
    attachments: Mapping[FileName, Digest] = {}
    sources: tuple[SourceFile, ...] = ()
    measured_by: str | None = None
    measured_on: str | None = None
    verified: str | None = None
    context: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$")] | None = None
    means: str | None = None
    decimal_mark: Literal["point", "comma"] | None = None
    figures_are: str | None = None

    def __post_init__(self) -> None:
        """Replace a former name of the reader with its present one."""
        msgspec.structs.force_setattr(self, "reader", ALIASES.get(self.reader, self.reader))


def read_entry(path: Path, place: str) -> dict[str, Any]:
    """Return the content of a sidecar. Raises CatalogueError that names its place."""
    # a byte that the file system cannot decode
    if UNDECODED.search(place):
        raise CatalogueError(NOT_UTF8, place=escape_unprintable(place))
    try:
        return parse_toml(read_up_to(path, 4 * MAX_TOML_CHARACTERS + 1).decode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CatalogueError(f"is not a readable sidecar: {reason}", place=place) from error


def list_placeholders(entry: Mapping[str, Any]) -> list[str]:
    """Return the keys of a sidecar that a person has still to fill in."""
    return [key for key, value in entry.items() if str(value).startswith(PLACEHOLDER)]


def parse_sidecar(entry: Mapping[str, Any], place: str) -> Sidecar:
    """Check the content of a sidecar. Raises CatalogueError for what is invalid in it."""
    if unfilled := list_placeholders(entry):
        message = (
            f"the sidecar is a draft: fill in {', '.join(unfilled)}, which begin with"
            f" {PLACEHOLDER}, or delete it"
        )
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
    """Return all missing keys, with the words that they accept, and all unknown ones with the
    nearest known one.
    """
    fields = {field.name: field for field in msgspec.structs.fields(Sidecar)}
    choices = {"kind": table("documents").choices("kind"), "reader": INGESTED}
    parts = []
    for name, field in fields.items():
        if field.required and name not in entry:
            words = f" (one of {', '.join(choices[name])})" if name in choices else ""
            parts.append(f"missing required field `{name}`{words}")
    for name in entry.keys() - fields.keys():
        part = f"unknown field `{name}`"
        for nearest in find_nearest_words(name, list(fields), 1):
            part += f", nearest: `{nearest}`"
        parts.append(part)
    return "; ".join(sorted(parts)) or None


def _find_refused_word(name: str, value: str | None) -> str | None:
    """Return why the column of this name in `documents` does not accept a value."""
    column = table("documents").column(name)
    if value is None:
        return None
    if column.choices and value not in column.choices:
        return f"{name} {value!r} is not one of {', '.join(column.choices)}"
    if column.pattern and not re.fullmatch(column.pattern, value):
        return f"{name} {value!r} does not match {column.pattern}"
    return None


def _find_invalid(sidecar: Sidecar) -> str | None:
    """Return what the schema of `documents` or the registry of kinds refuses, with the accepted
    values.
    """
    if sidecar.reader not in INGESTED:
        return f"reader {sidecar.reader!r} is not one of {', '.join(INGESTED)}"
    for name in ("document_id", "kind", "url", "figures_are"):
        if refused := _find_refused_word(name, getattr(sidecar, name)):
            return refused
    for name in ("title", "publisher", "licence"):
        if not getattr(sidecar, name).strip():
            return f"{name} is blank"
    is_signed = sidecar.context is not None
    has_meaning = bool(sidecar.means and sidecar.means.strip())
    if is_signed != has_meaning:
        return "context and means are given together: `ipu-results add --force` drafts both"
    letter = find_lookalike(sidecar.publisher)
    if letter:
        what = f"publisher {sidecar.publisher!r} has {letter!r}"
        return f"{what}, which only looks like a Latin letter"
    is_run = sidecar.kind == RUN
    reads_runs = KINDS[sidecar.reader].local
    if is_run != reads_runs:
        return f"reader {sidecar.reader!r} does not go with kind {sidecar.kind!r}"
    is_local = sidecar.publisher == LOCAL_PUBLISHER
    if is_run != is_local:
        return f"publisher {sidecar.publisher!r} does not go with kind {sidecar.kind!r}"
    if sidecar.url is None and sidecar.kind not in (RUN, SUBMISSION):
        return "url is missing; only a local run and a submission have none"
    return None


class Document(Sidecar, frozen=True, kw_only=True):
    """One catalogue entry: its sidecar, the path of its file, and that path within `raw/`."""

    path: Path
    file: str

    def read_bytes(self) -> bytes:
        """Return the file's bytes after checks of size, digest and type, and of the attachments'
        digests.
        """
        data = read_limited(self.path, self.document_id, MAX_BYTES)
        self._check_digest(self.file, hashlib.sha256(data).hexdigest(), self.sha256)
        check_file_type(self.path.name, data, self.document_id)
        for path, expected in self.attached.items():
            try:
                actual = hash_file(path)
            except OSError as error:
                message = f"cannot be read: {error.strerror}"
                raise CatalogueError(message, document=self.document_id, place=path.name) from error
            self._check_digest(path.name, actual, expected)
        return data

    def read_shown(self) -> bytes | None:
        """Return the attached evidence of what a browser shows of the file, None if it has none."""
        path = self.path.with_name(f"{self.path.name}{EVIDENCE}")
        return self._read_attached(path, MAX_EVIDENCE_BYTES) if path in self.attached else None

    def read_attached_texts(self, suffix: str) -> dict[str, str]:
        """Return the UTF-8 text of each attachment with this suffix, by file stem, after a check of
        its digest.
        """
        texts = {}
        for path in self.attached:
            if path.suffix != suffix:
                continue
            data = self._read_attached(path, MAX_BYTES)
            try:
                texts[path.stem] = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DamagedDocumentError(
                    "is not UTF-8 text", document=self.document_id, place=path.name
                ) from error
        return texts

    def _read_attached(self, path: Path, max_bytes: int) -> bytes:
        data = read_limited(path, self.document_id, max_bytes)
        self._check_digest(path.name, hashlib.sha256(data).hexdigest(), self.attached[path])
        return data

    @property
    def attached(self) -> dict[Path, str]:
        """The paths of the attachments with their sha256."""
        folder = self.path.parent
        return {folder / name: digest for name, digest in sorted(self.attachments.items())}

    def _check_digest(self, place: str, actual: str, expected: str) -> None:
        if actual != expected:
            message = (
                f"sha256 is {actual[:12]}…, the sidecar says {expected[:12]}…: the file or the"
                " sidecar changed"
            )
            raise CatalogueError(message, document=self.document_id, place=place)

    def record(self) -> DocumentsRow:
        """Return the document's row of the table `documents`."""
        return DocumentsRow(
            document_id=self.document_id,
            title=self.title,
            publisher=self.publisher,
            url=self.url,
            commit=self.commit,
            published_on=self.published_on,
            kind=self.kind,
            sha256=self.sha256,
            licence=self.licence,
            retrieved_on=self.retrieved_on,
            file=self.file,
            note=self.note,
            figures_are=self.figures_are,
            measured_by=self.measured_by,
            measured_on=self.measured_on,
            verified=self.verified,
            sources="; ".join(map(str, self.sources)) or None,
        )


def check_file_type(name: str, data: bytes, document: str) -> None:
    """Refuse a file whose first bytes contradict its suffix, such as an HTML error page saved as
    PDF.
    """
    start = data.lstrip()[: len(PDF)]
    if not start:
        raise DamagedDocumentError("is empty", document=document)
    is_pdf = start == PDF
    is_named_pdf = name.lower().endswith(".pdf")
    if is_pdf == is_named_pdf:
        return
    if is_pdf:
        message = "is a PDF under another suffix"
    elif start.startswith(b"<"):
        message = "is not a PDF but an HTML page"
    else:
        message = "is not a PDF but something else"
    raise DamagedDocumentError(message, document=document, place="first bytes")


def read_limited(path: Path, document: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file that is not larger than the limit.

    Without a sidecar `document` is the name of the file, which errors do not say twice.
    """
    try:
        data = read_up_to(path, max_bytes + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        place = None if document == path.name else path.name
        raise CatalogueError(message, document=document, place=place) from error
    if len(data) > max_bytes:
        raise DocumentTooLargeError(
            f"is too large: the limit is {max_bytes:,} bytes; divide the file", document=document
        )
    return data


def load_catalogue(raw: Path, *, drafts: bool = True) -> list[Document]:
    """Return all documents of `raw`, sorted by id; without `drafts`, sidecars with placeholders are
    skipped.

    Raises CatalogueError for a folder without sidecars, for a sidecar with a missing, unknown or
    invalid key, and for two documents with the same id or the same bytes. Two runs may have the
    same bytes: an emulated one repeats. Raises DamagedRunError for a run that is not whole.
    """
    if not raw.is_dir():
        raise CatalogueError("no such folder", place=str(raw))
    check_links(raw)
    documents = []
    for path in _list_files(raw, "*.toml"):
        entry = read_entry(path, _format_place(path, raw))
        if drafts or not list_placeholders(entry):
            documents.append(build_document(entry, path, raw))
    documents.sort(key=lambda document: document.document_id)
    if not documents and drafts:
        raise CatalogueError("contains no sidecar (<file>.toml)", place=str(raw))
    check_distinct(documents)
    check_runs(raw, documents)
    return documents


def check_links(raw: Path) -> None:
    """Refuse a link to a folder: its documents would be passed over without a word."""
    for path in raw.rglob("*"):
        if path.is_symlink() and path.is_dir():
            message = "is a link: copy the folder itself"
            raise CatalogueError(message, place=_format_place(path, raw))


def check_distinct(documents: Sequence[Document]) -> None:
    """Refuse documents, sorted by id, with the same id or the same bytes. Raises CatalogueError."""
    for first, second in pairwise(documents):
        if first.document_id == second.document_id:
            message = f"is the id of both {first.file} and {second.file}"
            raise CatalogueError(message, document=first.document_id)
    sources = [document for document in documents if document.kind != RUN]
    for first, second in pairwise(sorted(sources, key=lambda document: document.sha256)):
        if first.sha256 == second.sha256:
            raise CatalogueError(
                f"has the same bytes as {second.document_id}", document=first.document_id
            )


def check_claims_of(documents: Sequence[Document]) -> None:
    """Refuse claims of a document that the catalogue does not have. Raises CatalogueError."""
    known = {document.document_id for document in documents}
    for document in documents:
        if document.claims_of is not None and document.claims_of not in known:
            message = f"the claims are of {document.claims_of}, which raw/ does not have"
            raise CatalogueError(message, document=document.document_id)


def check_runs(raw: Path, documents: Sequence[Document]) -> None:
    """Refuse the folder of a finished run that is not whole, as after a copy that was cut off.

    Digests are compared when a document is read, and the record with the points when they are
    joined. Raises DamagedRunError that names the run and the file.
    """
    for folder in sorted(raw.rglob("*")):
        if not re.fullmatch(RUN_ID, folder.name) or not folder.is_dir():
            continue
        try:
            missing = RUN_FILES - {path.name for path in folder.iterdir()}
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
            raise DamagedRunError(message, document=folder.name) from error
        if missing:
            message = "is missing: the run is incomplete, copy its whole folder again"
            raise DamagedRunError(message, document=folder.name, place=min(missing))
    for document in documents:
        if document.kind != RUN:
            continue
        folder = document.path.parent
        sidecar = f"{document.path.name}.toml"
        if document.document_id.removesuffix("-points") != f"sweep-{folder.name}":
            message = f"has the document_id {document.document_id!r}, which is not one of this run"
            raise DamagedRunError(message, document=folder.name, place=sidecar)
        absent = RUN_ATTACHMENTS - document.attachments.keys()
        if document.path.name == "points.csv" and absent:
            message = f"states no sha256 of {min(absent)}"
            raise DamagedRunError(message, document=folder.name, place=sidecar)


def read_register(raw: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables `register` and `register_searches`, none if `raw` has no
    register.
    """
    path = raw / REGISTER
    entries = read_entry(path, REGISTER) if path.is_file() else {}
    return {"register": entries.get("document", []), "register_searches": entries.get("search", [])}


def find_orphans(raw: Path, documents: Sequence[Document]) -> list[str]:
    """Return the files under `raw` that no sidecar describes, except those of unfinished runs."""
    known: set[Path] = set()
    for document in documents:
        known.update((document.path, *document.attached))
    orphans = []
    for path in _list_files(raw, "*"):
        if path not in known and path.suffix not in NOT_DOCUMENTS:
            orphans.append(path.relative_to(raw).as_posix())
    return sorted(orphans)


def find_unfinished_runs(raw: Path) -> list[str]:
    """Return the ids of the runs under `raw` that are not finished."""
    folders = (path for path in raw.rglob(f"*{UNFINISHED}") if path.is_dir())
    return sorted(path.name.removesuffix(UNFINISHED) for path in folders)


def find_unfinished_copies(raw: Path) -> list[str]:
    """Return the folders under `raw` that something still writes, or never finished."""
    folders = (path for path in raw.rglob(f"*{PART}") if path.is_dir())
    return sorted(_format_place(path, raw) for path in folders)


def _list_files(raw: Path, pattern: str) -> Iterator[Path]:
    """Yield every entry but folders and bundles: what is not a regular file is refused when it is
    opened.
    """
    for path in raw.rglob(pattern):
        folders = path.relative_to(raw).parent.parts
        if path.is_dir() or path.name == BUNDLE or path == raw / REGISTER:
            continue
        if not any(folder.endswith((UNFINISHED, PART, CACHE)) for folder in folders):
            yield path


def build_document(entry: Mapping[str, Any], path: Path, raw: Path) -> Document:
    """Build the document that the sidecar at `path` describes.

    Raises CatalogueError for what is invalid in it.
    """
    sidecar = parse_sidecar(entry, _format_place(path, raw))
    file = path.with_suffix("")
    return Document(**msgspec.structs.asdict(sidecar), path=file, file=_format_place(file, raw))


def _format_place(path: Path, raw: Path) -> str:
    return path.relative_to(raw).as_posix() if path.is_relative_to(raw) else path.name
