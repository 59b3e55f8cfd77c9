"""Build the warehouse.

sources → read → normalise → gate → link → flag → derive → claims → store
"""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from ipu_results.errors import (
    CatalogueError,
    DamagedDocumentError,
    DocumentError,
    DocumentTooLargeError,
    GateError,
    VocabularyError,
)
from ipu_results.kit.files import SCHEMA
from ipu_results.kit.limits import pause_garbage_collection
from ipu_results.kit.parallel import run_in_order
from ipu_results.kit.sql import (
    ATTACHED,
    STAGED,
    get_first_line,
    insert_rows,
    open_database,
    read_pieces,
)
from ipu_results.kit.statements import MACROS
from ipu_results.record.check.conservation import (
    RowCounts,
    build_document_frame,
    build_source_frames,
    build_vocabulary_frames,
    check_conservation,
    check_expected_tables,
    check_signature,
    join_cells,
    list_source_tables,
)
from ipu_results.record.check.contradicted import find_contradicted
from ipu_results.record.check.gate import (
    CHANGES,
    GOOD,
    check_gate,
    check_tables,
    find_failures,
    gate_results,
)
from ipu_results.record.check.rules import add_table, build_rule_frame, find_flags
from ipu_results.record.derive import derive_figures, derive_results
from ipu_results.record.link.functions import call_directly
from ipu_results.record.link.statements import link, stage
from ipu_results.record.normalise import NormalisedDocument, normalise
from ipu_results.record.normalise.values import UnknownWord, describe_unknown_words
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.dispatch import read_document
from ipu_results.record.read.html.shown import parse_shown
from ipu_results.record.recompute.evaluate import evaluate_claims
from ipu_results.record.recompute.verdict import NO_ROW
from ipu_results.record.sources.catalogue import (
    CACHE,
    Document,
    check_claims_of,
    find_orphans,
    find_unfinished_copies,
    find_unfinished_runs,
    load_catalogue,
    read_register,
)
from ipu_results.record.store.cache import Cache
from ipu_results.record.store.tables import TableStore, WarehouseWriter
from ipu_results.record.store.transaction import lock_folder
from ipu_results.schema import (
    DETAIL,
    RULES_SCHEMA,
    TABLES,
    VIEWS,
    Table,
    fill_placeholders,
    sql_table,
    sql_view,
    table,
)
from ipu_results.schema.frames import build_frame, build_frame_from_columns, to_arrow
from ipu_results.schema.vocabulary import Vocabulary, load_vocabulary, read_vocabulary_files

Progress = Callable[[str, str], None]
SEVERITIES = ("error", "warn", "info")
CELLS = "cells"
COMPLETE = "complete"  # the results with their derived columns
STAGED_ROWS = ("results", "microbenchmarks", "source_tables")
"""The tables of which each batch of documents has rows, and which links or rules change or read."""
AT_ONCE = (CELLS, "source_rows", "quarantine")
"""The tables whose rows leave the memory with their batch of documents."""
FLAGGED = ("figures", "contradicted", "flags")
RESULTS_OF = f"SELECT document_id, count(*) FROM {ATTACHED}.results GROUP BY ALL"
FLAGS_OF = f"""
    SELECT document_id, severity, count(*)
    FROM {ATTACHED}.flags JOIN {ATTACHED}.results USING (result_id)
    GROUP BY ALL
"""
QUARANTINED = f"SELECT document_id, locator, message, reason FROM {ATTACHED}.quarantine"
WITHOUT_ROW = f"""
    SELECT ledger_id, claim_id, recomputation FROM {ATTACHED}.claims WHERE not_recomputable = $1
"""
RUN_FOLDERS = ("claims", "derived", "links", "rules")  # of schema/, whose statements a build runs
# bounds the Python objects in memory at once: `python -m benchmarks stages` shows the peak
BATCH_RESULTS = 50_000


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """Where documents are read and the warehouse is written.

    `wait_s` is how long to wait while another process builds the same warehouse, in seconds.
    `memory_limit` is what DuckDB may take; the rest of the rows waits on the disk.
    """

    raw: Path = Path("raw")
    warehouse: Path = Path("warehouse")
    wait_s: float = 60.0
    memory_limit: str = "2GB"


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """What became of one document; `seconds` is the time to read and normalise it."""

    document_id: str
    rows: RowCounts
    results: int
    flags: Mapping[str, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What a build did: a summary per document, the documents that were refused and are left out,
    findings that did not stop it, and its id.

    `unknown_words` describes every word of all rows that the vocabulary does not have, each with
    the nearest known one.
    """

    documents: Sequence[DocumentSummary]
    findings: Sequence[str]
    build_id: str
    unknown_words: Sequence[str] = ()
    refused: Sequence[DocumentError] = ()

    @property
    def results(self) -> int:
        return sum(document.results for document in self.documents)


@dataclass(slots=True)
class CheckedDocuments:
    """What became of the documents of a build, whose tables are in its store."""

    documents: list[NormalisedDocument] = field(default_factory=list)
    """Without their results, since a million of them would fill the memory."""
    counts: dict[str, RowCounts] = field(default_factory=dict)
    """What became of the rows of each."""
    tables: Sequence[str] = ()
    """The names of the tables that are complete."""

    def select(self, documents: Iterable[Document]) -> list[Document]:
        """Return those of the documents that were read."""
        return [document for document in documents if document.document_id in self.counts]

    @property
    def words(self) -> list[UnknownWord]:
        """The words of rejected rows that the vocabulary does not have."""
        words: list[UnknownWord] = []
        for document in self.documents:
            for row in document.rejected:
                words += row.words
        return words


def ingest(
    config: IngestConfig = IngestConfig(),
    progress: Progress = lambda *_: None,
    executor: Executor | None = None,
) -> IngestSummary:
    """Build the whole warehouse from `raw`; the old build stays on any failure.

    A document that its reader refuses is left out and named in the summary. `progress` is called
    with a step and what it works on. `executor` is a pool of processes, or of a cluster whose
    machines see `raw`, that reads the documents; the build is the same without. Raises an
    IpuResultsError that names document and place, also if all documents are refused.
    """
    limits = {"memory_limit": config.memory_limit}
    with (
        lock_folder(config.warehouse, config.wait_s),
        WarehouseWriter(config.warehouse, limits) as writer,
    ):
        writer.start()
        documents = load_catalogue(config.raw)
        check_claims_of(documents)
        vocabulary = load_vocabulary()
        cache = open_cache(config.raw)
        reading = Reading(documents, progress)
        with reading.blame_refused():
            loaded = reading.read(cache, executor)
            checked = check_documents(documents, loaded, vocabulary, writer, cache)
        progress("check", "claims")
        register = read_register(config.raw)
        computed = {name: build_frame(table(name), rows) for name, rows in register.items()}
        computed |= evaluate_claims(writer.engine, checked.documents, checked.tables)
        check_tables(computed)
        writer.add(computed)
        summaries = _summarise(writer.engine, checked.counts, reading.seconds)
        words = describe_unknown_words(checked.words, vocabulary)
        findings = _list_findings(writer.engine, config.raw, documents)
        progress("write", str(config.warehouse))
        build_id = writer.finish(digest_inputs(checked.select(documents), register))
    if executor is None:
        cache.drop_unused()  # elsewhere the workers know what they used
    return IngestSummary(summaries, findings, build_id, words, reading.refused)


@dataclass
class Reading:
    """The documents of a build while they are read: the seconds of each, and the refusals."""

    documents: Sequence[Document]
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    refused: list[DocumentError] = field(default_factory=list)

    def read(self, cache: Cache, executor: Executor | None) -> Iterator[NormalisedDocument]:
        """Yield the documents that are read. Raises a DocumentError if all are refused."""
        read = partial(read_safely, cache=cache)
        outcomes = run_in_order(read, self._announce(), executor, attrgetter("document_id"))
        for document, outcome in zip(self.documents, outcomes, strict=True):
            if isinstance(outcome.read, DocumentError):
                self.refused.append(outcome.read)
                if len(self.refused) == len(self.documents):
                    raise outcome.read
                continue
            self.seconds[document.document_id] = outcome.seconds
            yield outcome.read

    def _announce(self) -> Iterator[Document]:
        for document in self.documents:
            self.progress("read", document.document_id)
            yield document

    @contextmanager
    def blame_refused(self) -> Iterator[None]:
        """Raise the first refusal for what cannot be built without its document."""
        try:
            yield
        except (CatalogueError, DocumentError, VocabularyError) as error:
            if self.refused and error is not self.refused[-1]:
                raise self.refused[0] from error
            raise


def check_documents(
    documents: Sequence[Document],
    loaded: Iterable[NormalisedDocument],
    vocabulary: Vocabulary,
    store: TableStore,
    cache: Cache | None = None,
) -> CheckedDocuments:
    """Run the stages from documents to derived columns: gate, link, flag, derive.

    A document that is not among the `loaded` ones is left out. Tables are added to `store` as soon
    as they are complete. `cache` has what the dear tests of MLPerf pairs gave before. Raises
    GateError if a gate cannot be trusted, ConservationError if a source row was lost.
    """
    # a gate that accepts what it must refuse proves nothing
    check_gate(table("results").as_filled(), GOOD, CHANGES)
    with open_database(store.engine, STAGED, DETAIL, RULES_SCHEMA) as connection:
        checked = gate_documents(loaded, vocabulary, connection, store)
        read = checked.select(documents)
        if len(read) < len(documents):
            # claims of a refused document have nothing to be about
            check_claims_of(read)
        with pause_garbage_collection(), name_stage("check"):
            described = describe_documents(connection, read, vocabulary)
            linked = link_documents(connection, checked.documents, vocabulary, store, cache)
            complete = [*described, "source_tables", "microbenchmarks", *linked]
            # before the rest is derived: the store writes them meanwhile
            for name in complete:
                publish(connection, store, name)
            derive_figures(connection)
            for name, frame in find_contradicted(connection, checked.documents).items():
                add_table(connection, name, frame)
            find_flags(connection)
            derive_results(connection)
            for name in FLAGGED:
                publish(connection, store, name)
            publish(connection, store, "results", COMPLETE)
        checked.tables = [*AT_ONCE, *complete, *FLAGGED, "results"]
    return checked


def describe_documents(
    connection: Connection, documents: Sequence[Document], vocabulary: Vocabulary
) -> Iterable[str]:
    """Stage the tables that describe documents, rules and vocabulary, and return their names."""
    frames = {
        "documents": build_document_frame(documents),
        "rules": build_rule_frame(),
        **build_vocabulary_frames(vocabulary),
    }
    for name, frame in frames.items():
        add_table(connection, name, frame)
    return frames.keys()


def publish(
    connection: Connection, store: TableStore, name: str, relation: str | None = None
) -> None:
    """Pass the rows of a table through its gate, piece by piece, and add them to the store.

    They are those of `relation`, by default of the staged table. Raises GateError.
    """
    definition = table(name)
    start = 0
    for frame in read_frames(connection, definition, relation or definition.sql_name):
        check_tables({name: frame.set_index(frame.index + start)})
        store.add({name: frame})
        start += len(frame)


def read_frames(connection: Connection, definition: Table, relation: str) -> Iterator[pd.DataFrame]:
    """Yield the rows of a relation that has the columns of a table, piece by piece."""
    for rows in read_pieces(connection, relation):
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        yield build_frame_from_columns(definition, columns)


def gate_documents(
    documents: Iterable[NormalisedDocument],
    vocabulary: Vocabulary,
    connection: Connection,
    store: TableStore,
) -> CheckedDocuments:
    """Pass the rows of each document through the gates, and count that none was lost; batch by
    batch.

    What other documents may change is staged, the rest is added to the store and leaves the memory.
    """
    for name in STAGED_ROWS:
        add_table(connection, name, build_frame(table(name).as_filled(), []))
    checked = CheckedDocuments()
    for batch in _batch(documents):
        names = [document.document.document_id for document in batch]
        with pause_garbage_collection(), name_stage("check", *names):
            _gate_batch(batch, checked, vocabulary, connection, store)
    # the stages find what left the memory under the same names
    for name in AT_ONCE:
        connection.execute(f"CREATE VIEW {name} AS FROM {ATTACHED}.{name}")
    return checked


def _gate_batch(
    batch: Sequence[NormalisedDocument],
    checked: CheckedDocuments,
    vocabulary: Vocabulary,
    connection: Connection,
    store: TableStore,
) -> None:
    for document in batch:
        check_expected_tables(document.document, document.parsed)
    staged = {}
    for name in ("results", "microbenchmarks"):
        staged[name], batch = gate_results(batch, name)
    source_tables: list[Mapping[str, object]] = []
    for document in batch:
        checked.counts[document.document_id] = check_conservation(document)
        source_tables += list_source_tables(document, vocabulary)
    staged["source_tables"] = build_frame(table("source_tables"), source_tables)
    for name, frame in staged.items():
        definition = table(name).as_filled()
        insert_rows(connection, definition.sql_name, to_arrow(definition, frame))
    cells = join_cells([document.cells for document in batch])
    done = {CELLS: cells, **build_source_frames(batch)}
    check_tables(done)
    store.add(done)
    checked.documents += [document.drop_rows() for document in batch]


def link_documents(
    connection: Connection,
    documents: Sequence[NormalisedDocument],
    vocabulary: Vocabulary,
    store: TableStore,
    cache: Cache | None,
) -> Sequence[str]:
    """Link the staged tables: create those that join documents, and fill `results` and
    `microbenchmarks` with what others add to them.

    Returns the names of the tables that it creates. Raises GateError for a row that a link makes
    invalid.
    """
    stage(connection, documents, vocabulary)
    store.wait()  # links read cells and rows that the store writes
    linked = link(connection, call=cache.call if cache else call_directly)
    for name in ("results", "microbenchmarks"):
        definition = table(name).as_filled()
        key = definition.key[0]
        added = f"(FROM {definition.sql_name} WHERE {key} IN (SELECT id FROM added))"
        for frame in read_frames(connection, definition, added):
            for failure in find_failures(definition, frame):
                message = f"what other documents add: {failure.message}"
                raise GateError(f"{frame[key][failure.row]}: {message}")
    publish(connection, store, CELLS, "linked_cells")
    store.wait()  # and so do the stages after them
    return linked


def _batch(documents: Iterable[NormalisedDocument]) -> Iterator[list[NormalisedDocument]]:
    """Collect documents until they have BATCH_RESULTS results."""
    batch: list[NormalisedDocument] = []
    results = 0
    for document in documents:
        batch.append(document)
        results += len(document.results)
        if results >= BATCH_RESULTS:
            yield batch
            batch = []  # a new list: the caller may still hold the old one
            results = 0
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """What became of reading a document, and the seconds that it took."""

    read: NormalisedDocument | DocumentError
    seconds: float


def read_safely(document: Document, cache: Cache) -> ReadOutcome:
    """Read and normalise a signed document, as far as it is not in the cache: the task of a worker.

    A refusal is an outcome, too.
    """
    start = time.perf_counter()
    read: NormalisedDocument | DocumentError
    try:
        read = load_cached(document, cache)
        check_signature(document, read.parsed)
    except DocumentError as error:
        read = error
    return ReadOutcome(read, time.perf_counter() - start)


def open_cache(raw: Path) -> Cache:
    """Open the cache of documents of a project, which is beside `raw`."""
    return Cache(raw.resolve().parent / CACHE, digest_code())


def load_cached(document: Document, cache: Cache) -> NormalisedDocument:
    """Return what `load_document` returns, from the cache where it was read before."""
    digest = hashlib.sha256(_read_sidecar(document))
    for text in (document.file, document.sha256, digest_code()):
        digest.update(text.encode())
    key = digest.hexdigest()
    normalised: NormalisedDocument | None = cache.get(key)
    if normalised is None:
        normalised = load_document(document, load_vocabulary())
        cache.put(key, normalised)
    else:
        document.read_bytes()  # refuses a file that is no longer the one of the sidecar
    return replace(normalised, document=document)


def _read_sidecar(document: Document) -> bytes:
    return document.path.with_name(f"{document.path.name}.toml").read_bytes()


@functools.cache
def digest_code() -> str:
    """Return the sha256 of what else a read document follows from: the code of this package, the
    files of `schema/`, and the versions of Python and of the libraries.
    """
    digest = hashlib.sha256(sys.version.encode())
    # the libraries whose version may change what a document is read to
    for name in ("pyarrow", "numpy", "lxml", "msgspec", "pdfminer.six", "pypdfium2"):
        digest.update(f"{name} {version(name)}".encode())
    package = Path(__file__).parent
    for path in sorted([*package.rglob("*.py"), *SCHEMA.rglob("*.*")]):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()


def load_document(
    document: Document, vocabulary: Vocabulary, evidence: bytes | None = None
) -> NormalisedDocument:
    """Read and normalise one document, with other evidence of a browser than that attached to it.

    Raises DamagedDocumentError for a table that cannot be read: it makes the whole document
    unreadable.
    """
    with pause_garbage_collection():
        with name_stage("read", document.document_id):
            parsed = parse_document(document, vocabulary, evidence)
        for problem in parsed.problems:
            if problem.row_number is None:
                raise DamagedDocumentError(
                    problem.message, document=document.document_id, place=problem.locator
                )
        with name_stage("normalise", document.document_id):
            return normalise(document, parsed, vocabulary)


@contextmanager
def name_stage(stage: str, *documents: str) -> Iterator[None]:
    """Name stage and documents where memory, or an array of Arrow, is too small: that error names
    neither.

    Raises DocumentTooLargeError.
    """
    try:
        yield
    except (MemoryError, pa.lib.ArrowCapacityError, duckdb.OutOfMemoryException) as error:
        named = documents[0] if documents else None
        if len(documents) > 1:
            named = f"{named} and {len(documents) - 1} others"
        advice = "free memory, raise --memory-limit, or divide the document"
        message = f"{get_first_line(error)}: {advice}"
        raise DocumentTooLargeError(message, document=named, place=stage) from error


def parse_document(
    document: Document, vocabulary: Vocabulary, evidence: bytes | None = None
) -> ParsedDocument:
    """Read the tables of a catalogued document; errors name it.

    `evidence` of what a browser shows of it is that which is attached, if it is not given.
    """
    data = document.read_bytes()
    evidence = evidence or document.read_shown()
    try:
        shown = parse_shown(evidence, data) if evidence else None
        return read_document(data, vocabulary.table_headers, document.reader, shown)
    except DocumentError as error:
        raise type(error)(
            error.message, document=document.document_id, place=error.place
        ) from error


def digest_inputs(documents: Sequence[Document], register: Mapping[str, object]) -> str:
    """Return the sha256 of what a build is made from: documents, sidecars, register, vocabulary,
    schema, and the statements that it runs.
    """
    lines = [repr(register)]
    for document in documents:
        sidecar = hashlib.sha256(_read_sidecar(document)).hexdigest()
        lines.append(f"{document.document_id} {document.sha256} {sidecar}")
    for name, data in read_vocabulary_files():
        lines.append(f"{name} {hashlib.sha256(data).hexdigest()}")
    for definition in TABLES:
        lines += sql_table(definition)
    for view in VIEWS:
        lines += sql_view(view)
    paths = [SCHEMA / MACROS]
    for folder in RUN_FOLDERS:
        paths += (SCHEMA / folder).rglob("*.sql")
    for path in sorted(paths):
        lines.append(fill_placeholders(path.read_text(encoding="utf-8")))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _summarise(
    engine: Connection,
    counts: Mapping[str, RowCounts],
    seconds: Mapping[str, float],
) -> list[DocumentSummary]:
    results = dict(engine.execute(RESULTS_OF).fetchall())
    flags: dict[str, dict[str, int]] = {name: dict.fromkeys(SEVERITIES, 0) for name in counts}
    for document_id, severity, count in engine.execute(FLAGS_OF).fetchall():
        flags[document_id][severity] = count
    summaries = []
    for name, rows in counts.items():
        summary = DocumentSummary(name, rows, results.get(name, 0), flags[name], seconds[name])
        summaries.append(summary)
    return summaries


def _list_findings(engine: Connection, raw: Path, documents: Sequence[Document]) -> list[str]:
    """Describe what did not stop the build and is worth a line on stderr."""
    findings = []
    for document_id, locator, message, reason in engine.execute(QUARANTINED).fetchall():
        findings.append(f"quarantined: {document_id}: {locator}: {message} ({reason})")
    for ledger_id, claim_id, recomputation in engine.execute(WITHOUT_ROW, [NO_ROW]).fetchall():
        why = f"{recomputation}.sql returned no row"
        findings.append(f"not recomputed: {ledger_id}: {claim_id}: {why}")
    for run_id in find_unfinished_runs(raw):
        findings.append(
            f"sweep {run_id} is unfinished: resume it with `ipu-results sweep --resume {run_id}`,"
            " or delete its folder"
        )
    for name in find_unfinished_copies(raw):
        findings.append(f"not ingested: {name} is unfinished: delete it, and copy its folder again")
    for name in find_orphans(raw, documents):
        findings.append(f"not ingested: {name} has no sidecar")
    return findings
