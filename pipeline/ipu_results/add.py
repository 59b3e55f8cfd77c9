"""Read one file without building anything: print its tables, or draft its sidecar and show what it
would add.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import tomli_w

from ipu_results.errors import (
    CatalogueError,
    DocumentError,
    IpuResultsError,
    UnprovenDocumentError,
    UnrecognisedDocumentError,
)
from ipu_results.kit.files import is_inside, write_atomically
from ipu_results.kit.limits import MAX_BYTES, MAX_EVIDENCE_BYTES
from ipu_results.kit.text import format_csv, format_json
from ipu_results.record.check.conservation import RowCounts, list_source_keys
from ipu_results.record.normalise import normalise
from ipu_results.record.normalise.fields import format_header_entries
from ipu_results.record.normalise.values import UnknownWord, describe_unknown_words
from ipu_results.record.read import ParsedDocument, ReadProblem
from ipu_results.record.read.context import digest_context
from ipu_results.record.read.dispatch import find_first_rows, is_page, read_document
from ipu_results.record.read.document import Words
from ipu_results.record.read.html.shown import parse_shown
from ipu_results.record.read.text import prints_decimal_points
from ipu_results.record.sources.browser import is_installed, show_page
from ipu_results.record.sources.catalogue import (
    EVIDENCE,
    FILE_NAME,
    INGESTED,
    PLACEHOLDER,
    Document,
    build_document,
    check_distinct,
    check_file_type,
    list_placeholders,
    load_catalogue,
    read_entry,
    read_limited,
)
from ipu_results.schema.vocabulary import ALIASES, KINDS, Vocabulary, load_vocabulary

if TYPE_CHECKING:
    import pandas as pd

MAX_RAW_CHARACTERS = 200  # of a row that a problem repeats


def extract(path: Path, kind: str | None = None) -> ParsedDocument:
    """Read one file, a page with the evidence that lies beside it. Without `kind`, guess it from
    headers and content.

    Raises a DocumentError that names the file.
    """
    return _read(path, _load(path), kind, _load_evidence(path))


def read_source(config: AddConfig) -> tuple[ParsedDocument, bytes | None]:
    """Read a file; a page that is not plain is opened in Chromium, if that is installed.

    Returns the evidence of what it shows, too. Raises a DocumentError or a BrowserError.
    """
    data = _load(config.file)
    try:
        return _read(config.file, data, config.kind, None), None
    except (UnprovenDocumentError, UnrecognisedDocumentError):
        if is_page(data) and is_installed():
            evidence = show_page(config.file, data)
            return _read(config.file, data, config.kind, evidence), evidence
        stored = _load_evidence(config.file)
        if stored is None:
            raise
    return _read(config.file, data, config.kind, stored), None


def _load_evidence(path: Path) -> bytes | None:
    """Return the evidence that lies beside a page, None if there is none."""
    beside = path.with_name(f"{path.name}{EVIDENCE}")
    return read_limited(beside, path.name, MAX_EVIDENCE_BYTES) if beside.is_file() else None


def _load(path: Path) -> bytes:
    data = read_limited(path, path.name, MAX_BYTES)
    check_file_type(path.name, data, path.name)
    return data


def _read(path: Path, data: bytes, kind: str | None, evidence: bytes | None) -> ParsedDocument:
    try:
        shown = parse_shown(evidence, data) if evidence else None
        return read_document(data, load_vocabulary().table_headers, kind, shown)
    except DocumentError as error:
        raise type(error)(error.message, document=path.name, place=error.place) from error


def format_tables(output: str, document: ParsedDocument) -> str:
    """Format the tables as one JSON list, or as one CSV block a table, with the table's name in its
    first column.
    """
    if output == "json":
        tables = []
        for table in document.tables:
            rows = [row.cells for row in table.rows]
            tables.append({"table_name": table.name, "columns": table.columns, "rows": rows})
        return format_json(tables)
    blocks = []
    for table in document.tables:
        lines = [("table_name", *table.columns)]
        for row in table.rows:
            lines.append((table.name, *row.cells))
        blocks.append(format_csv(lines))
    return "\n\n".join(blocks)


def format_problem(document: str, problem: ReadProblem) -> str:
    """Format one line that names the document, the place, and what could not be read there."""
    place = problem.table_name
    if problem.row_number:
        place += f", row {problem.row_number}"
    if problem.locator:
        place = f"{problem.locator}, {place}" if place else problem.locator
    line = f"{document}: {place}: {problem.message} ({problem.reason})"
    if problem.raw:
        line += f" [{' | '.join(problem.raw)[:MAX_RAW_CHARACTERS]}]"
    return line


FILLED_IN = {  # what a person fills in, with what belongs there
    "title": "the title as published",
    "publisher": "who published it",
    "url": "where it was published, such as https://example.org/page",
    "published_on": (
        "the day, such as 2023-07-04 without quotes; delete this line if the day is not known"
    ),
    "retrieved_on": "the day on which you took the facts, such as 2026-11-22 without quotes",
    "licence": "the licence of the source, or that it states none",
    "note": "what this file is and what it leaves out",
}
MEANS = (
    "what the words say for the figures as they are read; if they make one mean something else,"
    " such as thousands, do not sign: transcribe the table"
)
MARK = "point or comma, whichever divides decimals on the page"

LEFT_OUT = ("published_on", "retrieved_on", "decimal_mark")  # in a draft that is tried
ANY_URL = "https://example.org"
NOT_IN_ID = re.compile(r"[^a-z0-9.@-]+")
GUESSED_KINDS = {".csv": "performance-csv", ".pdf": "inference-paper"}
DOWNLOADS = "downloads"  # a folder in `raw` that git ignores: nothing downloaded is committed
LEDGERS = ("claims", "contradictions", "contradicted")  # tables that a new document does not change


@dataclass(frozen=True, slots=True)
class AddConfig:
    """The file to add, the folder `raw` that it belongs in, and how to read it; the kind is guessed
    if it is None.

    `force` drafts an existing sidecar again and keeps what a person filled in. `entry` is what is
    known of the sidecar before the file is read.
    """

    file: Path
    raw: Path = Path("raw")
    kind: str | None = None
    force: bool = False
    entry: Mapping[str, Any] = field(default_factory=dict)


class UnknownWords(NamedTuple):
    """Lines that describe unknown words: those that send their rows to quarantine, and those kept
    as printed.
    """

    refused: Sequence[str]
    kept: Sequence[str]


@dataclass(frozen=True, slots=True)
class SourceDraft:
    """The drafted sidecar, as an entry and as text, with the tables recognised (name: rows) and
    rows not readable.

    `evidence` is what a browser shows of a page that is not plain.
    """

    sidecar: Path
    entry: Mapping[str, Any]
    tables: Mapping[str, int]
    problems: Sequence[str]
    words: UnknownWords
    evidence: bytes | None = None
    context: Sequence[Words] = ()  # to be signed

    @property
    def text(self) -> str:
        return tomli_w.dumps(self.entry)


@dataclass(frozen=True, slots=True)
class SourcePreview:
    """What a document would add: the fate of its rows, and its rows of `results`, `quarantine`,
    `flags` and `figures`.
    """

    document_id: str
    rows: RowCounts
    results: pd.DataFrame
    quarantine: pd.DataFrame
    flags: pd.DataFrame
    figures: pd.DataFrame
    words: UnknownWords
    context: Sequence[Words]  # to be signed


def add_source(config: AddConfig) -> SourceDraft:
    """Draft the sidecar of a file and write it next to the file.

    Raises CatalogueError if it has one and `force` is not set, and a DocumentError if no table of
    it can be read.
    """
    sidecar = _get_sidecar(config)
    if sidecar.exists() and not config.force:
        raise CatalogueError(
            "exists: --dry-run reads the file with it, --force drafts it again", place=str(sidecar)
        )
    draft = draft_source(config)
    if draft.evidence:
        write_atomically(config.file.with_name(f"{config.file.name}{EVIDENCE}"), draft.evidence)
    write_atomically(draft.sidecar, draft.text.encode())
    return draft


@contextmanager
def save_download(url: str, config: AddConfig, *, keep: bool) -> Iterator[AddConfig]:
    """Download a document into `raw`, and give the configuration that adds it from there.

    It is taken away again if it is not to be kept, and after any failure. Raises FetchError, and
    CatalogueError if there is a file of its name.
    """
    # A build and a dry run of a file need no requests.
    from ipu_results.record.sources.download import download  # noqa: PLC0415

    document = download(url)
    file = config.raw / DOWNLOADS / document.folder / document.name
    if not is_inside(file.parent, str(config.raw)):
        raise CatalogueError(f"leads out of {config.raw} by a link", place=str(file.parent))
    if os.path.lexists(file):
        message = "exists: remove it first, or draft its sidecar again with --force and its path"
        raise CatalogueError(message, place=str(file))
    created = [folder for folder in (file.parent, *file.parent.parents) if not folder.exists()]
    entry = {"url": url, "retrieved_on": document.retrieved_on, "kind": "capture"}
    is_done = False
    try:
        _make_folder(file.parent)
        write_atomically(file, document.data)
        yield replace(config, file=file, entry=entry)
        is_done = keep
    finally:
        if not is_done:
            file.unlink(missing_ok=True)
            with suppress(OSError):  # another process has written there by now
                for folder in created:
                    folder.rmdir()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IpuResultsError(f"cannot be made: {error.strerror}", place=str(folder)) from error


def draft_source(config: AddConfig) -> SourceDraft:
    """Draft the sidecar of a file without writing it; what a person filled in or added in the
    present one is kept.
    """
    vocabulary = load_vocabulary()
    kind, parsed, evidence = recognise(config, vocabulary)
    sidecar = _get_sidecar(config)
    tables = _count_rows(parsed)
    data = read_limited(config.file, config.file.name, MAX_BYTES)
    entry: dict[str, Any] = {
        "document_id": _make_document_id(config),
        **{key: f"{PLACEHOLDER}: {text}" for key, text in FILLED_IN.items()},
        "kind": "transcription",
        "sha256": hashlib.sha256(data).hexdigest(),
        "reader": kind,
        "tables": {name: {"rows": rows} for name, rows in tables.items()},
        **config.entry,
        **_draft_signature(parsed),
    }
    if sidecar.exists():
        present = read_entry(sidecar, sidecar.name)
        renewed = {"sha256", "reader", "tables", *list_placeholders(present)}
        # A new download says where and when it was read, whatever an older sidecar says.
        renewed |= config.entry.keys()
        if present.get("context") != entry.get("context"):
            renewed |= {"context", "means"}
        if present.get("sha256") != entry["sha256"]:
            renewed.add("decimal_mark")  # it was read on other bytes
        entry |= {key: value for key, value in present.items() if key not in renewed}
    if evidence:
        entry["attachments"] = entry.get("attachments", {}) | _list_attachments(config, evidence)
    document = _build_unfinished(entry, config)
    words = _describe_words(document, parsed, vocabulary)
    problems = [format_problem(config.file.name, problem) for problem in parsed.problems]
    context = _list_unsigned(document, parsed)
    return SourceDraft(sidecar, entry, tables, problems, words, evidence, context)


def _draft_signature(parsed: ParsedDocument) -> dict[str, str]:
    """Draft the signature of the words near the tables, if there are any, and of the decimal mark
    of a page in a language with decimal commas.
    """
    digest = digest_context(parsed.context)
    signature = {} if digest is None else {"context": digest, "means": f"{PLACEHOLDER}: {MEANS}"}
    if parsed.language and not prints_decimal_points(parsed.language):
        signature["decimal_mark"] = f"{PLACEHOLDER}: {MARK}"
    return signature


def _list_unsigned(document: Document, parsed: ParsedDocument) -> Sequence[Words]:
    is_signed = document.means != "?" and document.context == digest_context(parsed.context)
    return () if is_signed else parsed.context


def _list_attachments(config: AddConfig, evidence: bytes) -> dict[str, str]:
    """Return the evidence with its digest, and the files beside the page that the browser used."""
    used = msgspec.json.decode(evidence)["files"]
    attached = {name: digest for name, digest in used.items() if FILE_NAME.fullmatch(name)}
    return attached | {f"{config.file.name}{EVIDENCE}": hashlib.sha256(evidence).hexdigest()}


def recognise(
    config: AddConfig, vocabulary: Vocabulary
) -> tuple[str, ParsedDocument, bytes | None]:
    """Return the kind of a file, its tables, and the evidence of what a browser shows of it.

    Raises UnrecognisedDocumentError if it has none with a known header, or one that is only nearly
    known.
    """
    name = config.file.name
    parsed, evidence = read_source(config)
    for problem in parsed.problems:
        if problem.row_number is None:
            raise UnrecognisedDocumentError(problem.message, document=name, place=problem.locator)
    tables = _count_rows(parsed)
    guessed = ""
    for header in vocabulary.table_headers:
        if header.table in tables:
            guessed = header.reader
            break
    kind = _get_kind(config, guessed)
    if kind not in INGESTED:
        message = f"is of a kind that ingest does not read; the kinds are {', '.join(INGESTED)}"
        raise UnrecognisedDocumentError(message, document=name)
    return kind, parsed, evidence


def _get_kind(config: AddConfig, guessed: str) -> str:
    return guessed if config.kind is None else ALIASES.get(config.kind, config.kind)


def draft_headers(config: AddConfig) -> str:
    """Draft the entries of `table_headers.toml` for the tables of a file, "" if it has none.

    Raises a DocumentError.
    """
    suffix = config.file.suffix.lower()
    data = read_limited(config.file, config.file.name, MAX_BYTES)
    kind = _get_kind(config, GUESSED_KINDS.get(suffix, "performance-page"))
    rows = find_first_rows(data, suffix)
    return format_header_entries(rows, kind, _make_document_id(config), load_vocabulary())


def preview_source(config: AddConfig) -> SourcePreview:
    """Return what a file would add to the warehouse of `raw`, with its sidecar or a drafted one.

    Nothing is written.

    Raises an IpuResultsError, as `ingest` would.
    """
    # `extract` and a draft need no pipeline, which is slow to import.
    from ipu_results.build import (  # noqa: PLC0415
        check_documents,
        load_cached,
        load_document,
        open_cache,
    )
    from ipu_results.record.store.tables import open_memory_store  # noqa: PLC0415
    from ipu_results.schema.frames import to_pandas  # noqa: PLC0415

    sidecar = _get_sidecar(config)
    evidence = None
    if sidecar.exists():
        entry = read_entry(sidecar, sidecar.name)
    else:
        draft = draft_source(config)
        evidence = draft.evidence
        entry = {key: value for key, value in draft.entry.items() if key != "attachments"}
    document = _build_unfinished(entry, config)
    vocabulary = load_vocabulary()
    others = _list_others(config)
    documents = sorted([*others, document], key=attrgetter("document_id"))
    check_distinct(documents)
    cache = open_cache(config.raw)
    loaded = {other.document_id: load_cached(other, cache) for other in others}
    mine = load_document(document, vocabulary, evidence)
    loaded[document.document_id] = mine
    with open_memory_store() as store:
        in_order = [loaded[other.document_id] for other in documents]
        checked = check_documents(documents, in_order, vocabulary, store, cache)
        results, quarantine, flags, figures = [
            to_pandas(store.fetch(name)) for name in ("results", "quarantine", "flags", "figures")
        ]
    results = results[results["document_id"] == document.document_id]
    quarantine = quarantine[quarantine["document_id"] == document.document_id]
    places = results[["result_id", "table_name", "row_number"]]
    return SourcePreview(
        document.document_id,
        checked.counts[document.document_id],
        results,
        quarantine,
        flags.merge(places, on="result_id"),
        figures.merge(places, on="result_id"),
        _describe_words(document, mine.parsed, vocabulary),
        _list_unsigned(document, mine.parsed),
    )


def _list_others(config: AddConfig) -> list[Document]:
    """Return the other documents of `raw`, except ledgers: what they say of the record is old."""
    others: list[Document] = []
    if config.raw.is_dir():
        file = config.file.resolve()
        for other in load_catalogue(config.raw, drafts=False):
            if other.path.resolve() != file and KINDS[other.reader].table not in LEDGERS:
                others.append(other)
    return others


def _build_unfinished(entry: Mapping[str, Any], config: AddConfig) -> Document:
    """Build the document of a sidecar whose placeholders are not filled in yet."""
    filled = dict(entry)
    for key in list_placeholders(entry):
        if key in LEFT_OUT:
            del filled[key]
        else:
            filled[key] = ANY_URL if key == "url" else "?"
    return build_document(filled, _get_sidecar(config), config.raw)


def _get_sidecar(config: AddConfig) -> Path:
    return config.file.with_name(f"{config.file.name}.toml")


def _describe_words(
    document: Document, parsed: ParsedDocument, vocabulary: Vocabulary
) -> UnknownWords:
    """Describe the unknown words of a document: those that are refused now, then those that a
    strict table would.
    """

    def list_refused(words: Vocabulary) -> list[UnknownWord]:
        refused: list[UnknownWord] = []
        for row in normalise(document, parsed, words).rejected:
            refused += row.words
        return refused

    headers = tuple(replace(header, strict=True) for header in vocabulary.table_headers)
    refused = list_refused(vocabulary)
    strict = list_refused(replace(vocabulary, table_headers=headers))
    kept = [word for word in strict if word not in refused]
    return UnknownWords(
        describe_unknown_words(refused, vocabulary), describe_unknown_words(kept, vocabulary)
    )


def _count_rows(parsed: ParsedDocument) -> dict[str, int]:
    return dict(Counter(name for name, _ in list_source_keys(parsed)))


def _make_document_id(config: AddConfig) -> str:
    """Return an id from the folder in `raw`, which is the publisher's, and the name of the file."""
    file = config.file.resolve()
    parts: tuple[str, ...] = (file.stem,)
    for folder in (config.raw / DOWNLOADS, config.raw):
        if file.is_relative_to(folder.resolve()):
            parts = (*file.relative_to(folder.resolve()).parent.parts, file.stem)
            break
    return NOT_IN_ID.sub("-", "-".join(parts).lower()).strip("-.@") or "document"
