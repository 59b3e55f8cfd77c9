"""Build the warehouse: sources → read → normalise → gate → link → flag → derive → claims → store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from ipu_results.check.conservation import (
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
from ipu_results.check.contradicted import find_contradicted
from ipu_results.check.gate import (
    CHANGES,
    GOOD,
    check_gate,
    check_tables,
    find_failures,
    gate_results,
)
from ipu_results.check.rules import add_table, build_rule_frame, find_flags
from ipu_results.derive import build_figure_frame, derive_results
from ipu_results.errors import (
    CatalogueError,
    DamagedDocumentError,
    DocumentError,
    DocumentTooLargeError,
    GateError,
    VocabularyError,
)
from ipu_results.ground.files import SCHEMA
from ipu_results.ground.limits import pause_garbage_collection
from ipu_results.ground.sql import create_table, get_first_line, open_engine
from ipu_results.ground.statements import MACROS
from ipu_results.link.statements import link, stage
from ipu_results.normalise import NormalisedDocument, normalise
from ipu_results.normalise.values import UnknownWord, describe_unknown_words
from ipu_results.read import ParsedDocument
from ipu_results.read.dispatch import read_document
from ipu_results.read.html_shown import parse_shown
from ipu_results.recompute.evaluate import evaluate_claims
from ipu_results.recompute.verdict import NO_ROW
from ipu_results.schema import DETAIL, TABLES, VIEWS, fill_placeholders, sql_table, sql_view, table
from ipu_results.schema.frames import (
    build_frame,
    build_frame_from_columns,
    concat_frames,
    to_arrow,
)
from ipu_results.schema.vocabulary import Vocabulary, load_vocabulary, read_vocabulary_files
from ipu_results.sources.catalogue import (
    Document,
    check_claims_of,
    find_orphans,
    find_unfinished_copies,
    find_unfinished_runs,
    load_catalogue,
    read_register,
)
from ipu_results.store.tables import WarehouseWriter
from ipu_results.store.transaction import lock_folder

Progress = Callable[[str, str], None]
Tables = Mapping[str, pd.DataFrame | pa.Table]
SEVERITIES = ("error", "warn", "info")
CELLS = "cells"
RUN_FOLDERS = ("claims", "derived", "links", "rules")  # of schema/, whose statements a build runs
# bounds the Python objects in memory at once: `python -m benchmarks stages` shows the peak
BATCH_RESULTS = 50_000


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """Where documents are read and the warehouse is written.

    `wait_s` is how long to wait while another process builds the same warehouse, in seconds.
    """

    raw: Path = Path("raw")
    warehouse: Path = Path("warehouse")
    wait_s: float = 60.0


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
class CheckedTables:
    """The tables of a build, and what became of the rows of each document."""

    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    """By name, but for `cells`."""
    cells: pa.Table = None
    """The largest table, in Arrow."""
    documents: list[NormalisedDocument] = field(default_factory=list)
    """Without their results, since a million of them would fill the memory."""
    counts: dict[str, RowCounts] = field(default_factory=dict)

    @property
    def words(self) -> list[UnknownWord]:
        """The words of rejected rows that the vocabulary does not have."""
        return [
            word for document in self.documents for row in document.rejected for word in row.words
        ]


def ingest(
    config: IngestConfig = IngestConfig(), progress: Progress = lambda *_: None
) -> IngestSummary:
    """Build the whole warehouse from `raw`; the old build stays on any failure.

    A document that its reader refuses is left out and named in the summary. `progress` is called
    with a step and what it works on. Raises an IpuResultsError that names document and place, also
    if all documents are refused.
    """
    with lock_folder(config.warehouse, config.wait_s), WarehouseWriter(config.warehouse) as writer:
        writer.start()
        documents = load_catalogue(config.raw)
        check_claims_of(documents)
        vocabulary = load_vocabulary()
        seconds: dict[str, float] = {}
        refused: list[DocumentError] = []

        def load(document: Document) -> NormalisedDocument | None:
            start = time.perf_counter()
            try:
                normalised = load_document(document, vocabulary, progress)
                check_signature(document, normalised.parsed)
            except DocumentError as error:
                refused.append(error)
                if len(refused) == len(documents):
                    raise
                return None
            seconds[document.document_id] = time.perf_counter() - start
            return normalised

        try:
            checked = check_documents(documents, load, vocabulary, writer.add)
        except (CatalogueError, DocumentError, VocabularyError) as error:
            # what refers to a refused document cannot be built: the refusal is the cause
            if refused and error is not refused[-1]:
                raise refused[0] from error
            raise
        progress("check", "claims")
        summaries = _summarise(checked, seconds)
        words = describe_unknown_words(checked.words, vocabulary)
        names = {*checked.frames, CELLS}
        quarantine = checked.frames["quarantine"]
        # what comes next reads the engine
        checked = CheckedTables(documents=checked.documents, counts=checked.counts)
        register = read_register(config.raw)
        computed = {name: build_frame(table(name), rows) for name, rows in register.items()}
        computed |= evaluate_claims(writer.engine, checked.documents, names)
        check_tables(computed)
        progress("write", str(config.warehouse))
        read = [document for document in documents if document.document_id in checked.counts]
        build_id = writer.finish(computed, digest_inputs(read, register))
    findings = _list_findings(config.raw, documents, quarantine, computed["claims"])
    return IngestSummary(summaries, findings, build_id, words, refused)


def check_documents(
    documents: Sequence[Document],
    load: Callable[[Document], NormalisedDocument | None],
    vocabulary: Vocabulary,
    write: Callable[[Tables], None] = lambda _: None,
) -> CheckedTables:
    """Run the stages from reading to derived columns: read, normalise, gate, link, flag, derive.

    A document that `load` returns None for is left out. `write` is called with tables as soon as
    they are complete, most of them before the flags are searched. Raises GateError if a gate cannot
    be trusted, ConservationError if a source row was lost.
    """
    check_gate(table("results").as_filled(), GOOD, CHANGES)
    checked = gate_documents(filter(None, map(load, documents)), vocabulary)
    if len(checked.counts) < len(documents):
        documents = [other for other in documents if other.document_id in checked.counts]
        check_claims_of(documents)
    with pause_garbage_collection(), name_stage("check"), open_engine() as connection:
        frames = checked.frames
        frames["documents"] = build_document_frame(documents)
        frames |= build_vocabulary_frames(vocabulary)
        frames |= link_documents(connection, checked, vocabulary)
        frames["rules"] = build_rule_frame()
        complete = {name: it for name, it in frames.items() if not _waits_for_results(name)}
        _publish({CELLS: checked.cells, **complete}, write)
        frames["figures"] = build_figure_frame(frames["results"])
        add_table(connection, "figures", frames["figures"])
        frames |= flag_figures(connection, checked.documents)
        frames["results"] = derive_results(frames)
        _publish({name: it for name, it in frames.items() if name not in complete}, write)
    return checked


def _publish(tables: Tables, write: Callable[[Tables], None]) -> None:
    check_tables(tables)
    write(tables)


def flag_figures(
    connection: duckdb.DuckDBPyConnection, documents: Sequence[NormalisedDocument]
) -> dict[str, pd.DataFrame]:
    """Return the flags of the quality rules, and the figures that a contradiction is about."""
    contradicted = find_contradicted(connection, documents)
    for name, frame in contradicted.items():
        add_table(connection, name, frame)
    return {"contradicted": contradicted["contradicted"], "flags": find_flags(connection)}


def _waits_for_results(name: str) -> bool:
    """Return whether a table is `results`, whose derived columns need the flags, or refers to it."""
    return name == "results" or any(
        (column.references or "").startswith("results.") for column in table(name).columns
    )


def gate_documents(
    documents: Iterable[NormalisedDocument], vocabulary: Vocabulary
) -> CheckedTables:
    """Pass the rows of each document through the gates, and count that none was lost; batch by
    batch.
    """
    gated = CheckedTables()
    batches: list[dict[str, pd.DataFrame]] = []
    cells: list[pa.Table] = []
    source_tables: list[dict[str, Any]] = []
    for batch in _batch(documents):
        with (
            pause_garbage_collection(),
            name_stage("check", *(document.document_id for document in batch)),
        ):
            for document in batch:
                check_expected_tables(document.document, document.parsed)
            results, accepted = gate_results(batch)
            microbenchmarks, accepted = gate_results(accepted, "microbenchmarks")
            for document in accepted:
                gated.counts[document.document_id] = check_conservation(document)
                source_tables += list_source_tables(document, vocabulary)
            cells += [document.cells for document in accepted]
            batches.append(
                {
                    "results": results,
                    "microbenchmarks": microbenchmarks,
                    **build_source_frames(accepted),
                }
            )
            gated.documents += [document.drop_rows() for document in accepted]
    gated.frames = concat_frames(batches)
    gated.frames["source_tables"] = build_frame(table("source_tables"), source_tables)
    gated.cells = join_cells(cells)
    return gated


def link_documents(
    connection: duckdb.DuckDBPyConnection, gated: CheckedTables, vocabulary: Vocabulary
) -> dict[str, pd.DataFrame]:
    """Put the tables into a connection and link them there.

    Returns the tables that join documents, and `results` and `microbenchmarks` with what others add
    to them; its cells are added to those of `gated`. Raises GateError for a row that a link makes
    invalid.
    """
    connection.execute(f"CREATE SCHEMA {DETAIL}")
    for name, frame in gated.frames.items():
        definition = table(name).as_filled()
        create_table(connection, definition.sql_name, to_arrow(definition, frame))
    connection.register(CELLS, gated.cells)
    stage(connection, gated.documents, vocabulary)
    linked = link(connection)
    changed = connection.table("added").to_arrow_table()["id"].to_pylist()
    for name in ("results", "microbenchmarks"):
        linked[name] = fetch_frame(connection, name)
        definition = table(name).as_filled()
        is_changed = linked[name][definition.key[0]].isin(changed)
        rows = linked[name][is_changed].reset_index(drop=True)
        if failures := find_failures(definition, rows):
            row = rows[definition.key[0]][failures[0].row]
            raise GateError(f"{row}: what other documents add: {failures[0].message}")
    cells = connection.table("linked_cells").to_arrow_table()
    gated.cells = join_cells([gated.cells, cells.cast(gated.cells.schema)])
    connection.register(CELLS, gated.cells)
    return linked


def fetch_frame(connection: duckdb.DuckDBPyConnection, name: str) -> pd.DataFrame:
    """Return the rows of a staged table, as far as sources fill it."""
    rows = connection.table(name).to_arrow_table()
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    return build_frame_from_columns(table(name).as_filled(), columns)


def _batch(documents: Iterable[NormalisedDocument]) -> Iterator[list[NormalisedDocument]]:
    """Collect documents until they have BATCH_RESULTS results."""
    batch: list[NormalisedDocument] = []
    for document in documents:
        batch.append(document)
        if sum(len(other.results) for other in batch) >= BATCH_RESULTS:
            yield batch
            batch = []
    if batch:
        yield batch


def load_document(
    document: Document,
    vocabulary: Vocabulary,
    progress: Progress = lambda *_: None,
    evidence: bytes | None = None,
) -> NormalisedDocument:
    """Read and normalise one document, with other evidence of a browser than that attached to it.

    Raises DamagedDocumentError for a table that cannot be read: it makes the whole document
    unreadable.
    """
    progress("read", document.document_id)
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
    except (MemoryError, pa.lib.ArrowCapacityError) as error:
        named = " and ".join(
            [*documents[:1], *([f"{len(documents) - 1} others"] if documents[1:] else [])]
        )
        message = f"{get_first_line(error)}: free memory, or divide the document"
        raise DocumentTooLargeError(message, document=named or None, place=stage) from error


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
        sidecar = document.path.with_name(f"{document.path.name}.toml")
        lines.append(
            f"{document.document_id} {document.sha256}"
            f" {hashlib.sha256(sidecar.read_bytes()).hexdigest()}"
        )
    lines += [
        f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in read_vocabulary_files()
    ]
    lines += [statement for published in TABLES for statement in sql_table(published)]
    lines += [statement for view in VIEWS for statement in sql_view(view)]
    paths = [path for folder in RUN_FOLDERS for path in (SCHEMA / folder).rglob("*.sql")]
    for path in sorted([SCHEMA / MACROS, *paths]):
        lines.append(fill_placeholders(path.read_text(encoding="utf-8")))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _summarise(checked: CheckedTables, seconds: Mapping[str, float]) -> list[DocumentSummary]:
    flags = checked.frames["flags"]
    results = checked.frames["results"]
    flagged = flags.merge(results[["result_id", "document_id"]], on="result_id")
    rows = results["document_id"].value_counts()
    flag_counts = flagged.groupby(["document_id", "severity"]).size().to_dict()
    return [
        DocumentSummary(
            name,
            counts,
            int(rows.get(name, 0)),
            {severity: int(flag_counts.get((name, severity), 0)) for severity in SEVERITIES},
            seconds[name],
        )
        for name, counts in checked.counts.items()
    ]


def _list_findings(
    raw: Path,
    documents: Sequence[Document],
    quarantine: pd.DataFrame,
    claims: pd.DataFrame,
) -> list[str]:
    """Describe what did not stop the build and is worth a line on stderr."""
    findings = [
        f"quarantined: {row.document_id}: {row.locator}: {row.message} ({row.reason})"
        for row in quarantine.itertuples()
    ]
    findings += [
        f"not recomputed: {row.ledger_id}: {row.claim_id}: {row.recomputation}.sql returned no row"
        for row in claims[claims["not_recomputable"] == NO_ROW].itertuples()
    ]
    findings += [
        f"sweep {run_id} is unfinished: resume it with `ipu-results sweep --resume {run_id}`, or"
        " delete its folder"
        for run_id in find_unfinished_runs(raw)
    ]
    findings += [
        f"not ingested: {name} is unfinished: delete it, and copy its folder again"
        for name in find_unfinished_copies(raw)
    ]
    return findings + [
        f"not ingested: {name} has no sidecar" for name in find_orphans(raw, documents)
    ]
