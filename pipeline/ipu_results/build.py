"""Build the warehouse: sources → read → normalise → link → check → claims → store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ipu_results._util.garbage import pause_garbage_collection
from ipu_results._util.limits import MAX_BYTES, MAX_PAGES
from ipu_results.check.conservation import RowCounts, check_conservation, check_expected_tables
from ipu_results.check.gate import check_tables, gate_results
from ipu_results.check.rules import build_dataset, find_flags
from ipu_results.check.tables import (
    build_dictionary_frame,
    build_document_frame,
    build_source_frames,
    build_vocabulary_frames,
)
from ipu_results.errors import DamagedDocumentError, DocumentError
from ipu_results.link import link
from ipu_results.link.configurations import build_configuration_frame
from ipu_results.link.mlperf import build_mlperf_frames
from ipu_results.link.runs import build_run_frames
from ipu_results.normalise import NormalisedDocument, normalise
from ipu_results.read import ParsedDocument, read_document
from ipu_results.recompute.evaluate import evaluate_claims
from ipu_results.recompute.verdict import NO_ROW
from ipu_results.schema import TABLES, VIEWS, sql_table, sql_view, table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import Vocabulary, load_vocabulary, read_vocabulary_files
from ipu_results.sources.capture.compare import Difference, compare_captures
from ipu_results.sources.catalogue import Document, find_orphans, find_unfinished_runs, load_catalogue
from ipu_results.store.tables import build_arrow_tables, write_warehouse
from ipu_results.store.transaction import lock_folder

Progress = Callable[[str, str], None]
SEVERITIES = ("error", "warn", "info")


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """Where documents are read and the warehouse is written, and the limits: bytes and PDF pages of a document.

    `wait_s` is how long to wait while another process builds the same warehouse, in seconds.
    """

    raw: Path = Path("raw")
    warehouse: Path = Path("warehouse")
    max_bytes: int = MAX_BYTES
    max_pages: int = MAX_PAGES
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
    """What a build did: a summary per document, findings that did not stop it, and its id."""

    documents: Sequence[DocumentSummary]
    findings: Sequence[str]
    build_id: str

    @property
    def results(self) -> int:
        return sum(document.results for document in self.documents)


@dataclass(frozen=True, slots=True)
class _Source:
    """One document on its way to the tables; `sql_texts` are the recomputations attached to its claims."""

    parsed: ParsedDocument
    normalised: NormalisedDocument
    sql_texts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def ingest(config: IngestConfig = IngestConfig(), progress: Progress = lambda *_: None) -> IngestSummary:
    """Build the whole warehouse from `raw`; the old build stays on any failure.

    `progress` is called with a step and what it works on. Raises an IpuResultsError that names document and place.
    """
    with lock_folder(config.warehouse, config.wait_s):
        documents = load_catalogue(config.raw)
        vocabulary = load_vocabulary()
        sources = [
            _read_source(document, vocabulary, config, progress) for document in documents if not document.is_capture
        ]
        parsed = {source.normalised.document.document_id: source.parsed for source in sources}
        captures = [document for document in documents if document.is_capture]
        differences = compare_captures(captures, parsed, vocabulary, config.max_bytes, config.max_pages)
        progress("check", f"{sum(len(source.normalised.results) for source in sources)} results")
        with pause_garbage_collection():
            frames, counts, results = _build_frames(sources, documents, differences, vocabulary)
        progress("write", str(config.warehouse))
        tables = build_arrow_tables(frames, digest_inputs(documents))
        write_warehouse(tables, config.warehouse)
    summaries = _summarise(sources, frames, counts, results)
    build_id = str(tables["build"]["build_id"][0])
    return IngestSummary(summaries, _list_findings(config.raw, documents, frames, differences), build_id)


def _build_frames(
    sources: Sequence[_Source], documents: Sequence[Document], differences: Sequence[Difference], vocabulary: Vocabulary
) -> tuple[dict[str, pd.DataFrame], dict[str, RowCounts], dict[str, int]]:
    """Link and check the documents; return the published frames, and row and result counts by document.

    Raises GateError if a gate cannot be trusted or the pipeline's own tables fail it, ConservationError if a source row
    was lost.
    """
    for source in sources:
        check_expected_tables(source.normalised.document, source.parsed)
    linked = link([source.normalised for source in sources], vocabulary)
    results, accepted = gate_results(linked)
    frames = {
        "documents": build_document_frame(documents),
        "results": results,
        **build_mlperf_frames(accepted),
        **build_run_frames(accepted),
        "configurations": build_configuration_frame(accepted, vocabulary.latency_bases),
        **build_source_frames(accepted),
        **build_vocabulary_frames(results, vocabulary),
        "capture_differences": build_frame(table("capture_differences"), differences),
        "columns": build_dictionary_frame(),
    }
    frames["flags"] = find_flags(build_dataset(frames, [source.parsed for source in sources], accepted, vocabulary))
    sql_texts = {source.normalised.document.document_id: source.sql_texts for source in sources}
    frames |= evaluate_claims(accepted, sql_texts, frames)
    check_tables(frames)
    pairs = zip(sources, accepted, strict=True)
    counts = {doc.document.document_id: check_conservation(source.parsed, doc) for source, doc in pairs}
    return frames, counts, {doc.document.document_id: len(doc.results) for doc in accepted}


def _read_source(document: Document, vocabulary: Vocabulary, config: IngestConfig, progress: Progress) -> _Source:
    start = time.perf_counter()
    progress("read", document.document_id)
    parsed = parse_document(document, vocabulary, config.max_bytes, config.max_pages)
    for problem in parsed.problems:
        if problem.row_number is None:  # a table that cannot be read makes the whole document unreadable
            raise DamagedDocumentError(problem.message, document=document.document_id, place=problem.locator)
    progress("normalise", document.document_id)
    with pause_garbage_collection():
        normalised = normalise(document, parsed, vocabulary)
    return _Source(parsed, normalised, document.read_attached_texts(".sql"), time.perf_counter() - start)


def parse_document(document: Document, vocabulary: Vocabulary, max_bytes: int, max_pages: int) -> ParsedDocument:
    """Read the tables of a catalogued document; errors name it."""
    data = document.read_bytes(max_bytes)
    try:
        return read_document(data, vocabulary.layouts, document.reader, max_bytes=max_bytes, max_pages=max_pages)
    except DocumentError as error:
        raise type(error)(error.message, document=document.document_id, place=error.place) from error


def digest_inputs(documents: Sequence[Document]) -> str:
    """Return the sha256 of what a build is made from: documents, sidecars, vocabulary and schema."""
    lines = []
    for document in documents:
        sidecar = document.path.with_name(f"{document.path.name}.toml")
        lines.append(f"{document.document_id} {document.sha256} {hashlib.sha256(sidecar.read_bytes()).hexdigest()}")
    lines += [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in read_vocabulary_files()]
    lines += [statement for published in TABLES for statement in sql_table(published)]
    lines += [statement for view in VIEWS for statement in sql_view(view)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _summarise(
    sources: Sequence[_Source],
    frames: Mapping[str, pd.DataFrame],
    counts: Mapping[str, RowCounts],
    results: Mapping[str, int],
) -> list[DocumentSummary]:
    flagged = frames["flags"].merge(frames["results"][["result_id", "document_id"]], on="result_id")
    flag_counts = flagged.groupby(["document_id", "severity"]).size().to_dict()
    summaries = []
    for source in sources:
        name = source.normalised.document.document_id
        flags = {severity: int(flag_counts.get((name, severity), 0)) for severity in SEVERITIES}
        summaries.append(DocumentSummary(name, counts[name], results[name], flags, source.seconds))
    return summaries


def list_capture_findings(config: IngestConfig) -> list[str]:
    """Describe where the captures in `raw` differ from their transcriptions, one line each."""
    documents, vocabulary = load_catalogue(config.raw), load_vocabulary()
    captures = [document for document in documents if document.is_capture]
    originals = {document.transcription_of for document in captures}
    parsed = {
        document.document_id: parse_document(document, vocabulary, config.max_bytes, config.max_pages)
        for document in documents
        if document.document_id in originals
    }
    differences = compare_captures(captures, parsed, vocabulary, config.max_bytes, config.max_pages)
    return [_describe_difference(difference) for difference in differences]


def _list_findings(
    raw: Path, documents: Sequence[Document], frames: Mapping[str, pd.DataFrame], differences: Sequence[Difference]
) -> list[str]:
    """Describe what did not stop the build and is worth a line on stderr."""
    findings = [
        f"quarantined: {row.document_id}: {row.locator}: {row.message} ({row.reason})"
        for row in frames["quarantine"].itertuples()
    ]
    findings += [_describe_difference(difference) for difference in differences]
    claims = frames["claims"]
    findings += [
        f"not recomputed: {row.ledger_id}: {row.claim_id}: {row.recomputation}.sql returned no row"
        for row in claims[claims["not_recomputable"] == NO_ROW].itertuples()
    ]
    findings += [
        f"sweep {run_id} is unfinished: resume it with `ipu-results sweep --resume {run_id}`, or delete its folder"
        for run_id in find_unfinished_runs(raw)
    ]
    return findings + [f"not ingested: {name} has no sidecar" for name in find_orphans(raw, documents)]


def _describe_difference(difference: Difference) -> str:
    place = f"{difference['capture_id']}: {difference['locator']}"
    if difference["kind"] == "unreadable":
        return f"capture cannot be read: {place}: {difference['captured']}"
    ours, theirs = (repr(difference[key]) if key in difference else "nothing" for key in ("transcribed", "captured"))
    return f"capture differs: {place}: {ours} here, {theirs} there"
