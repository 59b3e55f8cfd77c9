"""The whole way of the documents: catalogue, read, normalise, check, write."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from ipu_results._util.garbage import pause_garbage_collection
from ipu_results.check import Checked, Source, check
from ipu_results.claims.verdict import NO_ROW
from ipu_results.errors import DamagedDocumentError, DocumentError
from ipu_results.normalise import normalise
from ipu_results.read import ParsedDocument, read_document
from ipu_results.schema import TABLES, VIEWS, sql_table, sql_view
from ipu_results.schema.vocabulary import Vocabulary, load_vocabulary, read_vocabulary_files
from ipu_results.sources.capture.compare import CaptureDifference, compare_captures
from ipu_results.sources.catalogue import Document, find_orphans, find_unfinished_runs, load_catalogue
from ipu_results.sources.kinds import MAX_BYTES, MAX_PAGES
from ipu_results.store.tables import build_arrow_tables, write_warehouse
from ipu_results.store.transaction import lock_folder

Progress = Callable[[str, str], None]
SEVERITIES = ("error", "warn", "info")


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = MAX_BYTES
    max_pages: int = MAX_PAGES
    wait_s: float = 60.0


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """What one document gave; `seconds` is the time to read and normalise it."""

    document_id: str
    extracted: int
    accepted: int
    quarantined: int
    duplicates: int
    results: int
    flags: dict[str, int]
    seconds: float


@dataclass(slots=True)
class Summary:
    documents: list[DocumentSummary] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    build_id: str = ""

    @property
    def results(self) -> int:
        return sum(document.results for document in self.documents)


def ingest(raw: Path, warehouse: Path, limits: Limits = Limits(), progress: Progress = lambda *_: None) -> Summary:
    """Build the warehouse from `raw`; the old build stays on any failure.

    Raises an IpuResultsError naming the document and the place.
    """
    with lock_folder(warehouse, limits.wait_s):
        documents = load_catalogue(raw)
        words = load_vocabulary()
        transcriptions = [document for document in documents if document.transcription_of is None]
        seconds: dict[str, float] = {}
        sources = []
        for document in transcriptions:
            with _timed(seconds, document.document_id):
                sources.append(read_source(document, words, limits, progress))
        captures = [document for document in documents if document.transcription_of is not None]
        readings = {source.document.document_id: source.reading for source in sources}
        differences = compare_captures(captures, readings, words, limits.max_bytes, limits.max_pages)
        progress("check", f"{sum(len(source.normalised.results) for source in sources)} results")
        with pause_garbage_collection():
            checked = check(sources, documents, differences, words)
        progress("write", str(warehouse))
        tables = build_arrow_tables(checked.frames, inputs_digest(documents))
        write_warehouse(tables, warehouse)
    summary = _summary(sources, checked, seconds)
    summary.build_id = str(tables["build"]["build_id"][0])
    summary.findings = _findings(raw, documents, checked, differences)
    return summary


def read_source(document: Document, words: Vocabulary, limits: Limits, progress: Progress) -> Source:
    """Read and normalise one document. A table that cannot be read makes the whole document unreadable."""
    progress("read", document.document_id)
    reading = parse_document(document, words, limits.max_bytes, limits.max_pages)
    for problem in reading.problems:
        if problem.row_number is None:
            raise DamagedDocumentError(problem.message, document=document.document_id, place=problem.locator)
    progress("normalise", document.document_id)
    with pause_garbage_collection():
        normalised = normalise(document, reading, words)
    return Source(document, reading, normalised, document.attached_texts(".sql"))


def parse_document(document: Document, words: Vocabulary, max_bytes: int, max_pages: int) -> ParsedDocument:
    """The document's tables; errors name it."""
    data = document.bytes(max_bytes)
    try:
        return read_document(data, words.layouts, document.reader, max_bytes=max_bytes, max_pages=max_pages)
    except DocumentError as error:
        raise type(error)(error.message, document=document.document_id, place=error.place) from error


def inputs_digest(documents: Sequence[Document]) -> str:
    """sha256 of what a build is made from: documents, sidecars, vocabulary, schema and the version of this package."""
    told = [f"ipu-results {version('ipu-results')}"]
    for document in documents:
        sidecar = document.path.with_name(f"{document.path.name}.toml")
        told.append(f"{document.document_id} {document.sha256} {hashlib.sha256(sidecar.read_bytes()).hexdigest()}")
    told += [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in read_vocabulary_files()]
    told += [statement for table in TABLES for statement in sql_table(table)]
    told += [statement for view in VIEWS for statement in sql_view(view)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start


def _summary(sources: Sequence[Source], checked: Checked, seconds: dict[str, float]) -> Summary:
    results, flags = checked.frames["results"], checked.frames["flags"]
    flagged = flags.merge(results[["result_id", "document_id"]], on="result_id")
    counts = flagged.groupby(["document_id", "severity"]).size().to_dict()
    rows = []
    for source in sources:
        document_id = source.document.document_id
        tally = checked.tallies[document_id]
        by_severity = {severity: int(counts.get((document_id, severity), 0)) for severity in SEVERITIES}
        rows.append(
            DocumentSummary(
                document_id,
                tally.extracted,
                tally.accepted,
                tally.quarantined,
                tally.duplicates,
                len(source.normalised.results),
                by_severity,
                seconds[document_id],
            )
        )
    return Summary(rows)


def capture_findings(raw: Path, limits: Limits = Limits()) -> list[str]:
    """Where the captures in `raw` differ from their transcriptions, a line each."""
    documents, words = load_catalogue(raw), load_vocabulary()
    captures = [document for document in documents if document.transcription_of is not None]
    wanted = {document.transcription_of for document in captures}
    readings = {
        document.document_id: parse_document(document, words, limits.max_bytes, limits.max_pages)
        for document in documents
        if document.document_id in wanted
    }
    found = compare_captures(captures, readings, words, limits.max_bytes, limits.max_pages)
    return [_difference_line(difference) for difference in found]


def _findings(
    raw: Path, documents: Sequence[Document], checked: Checked, differences: Sequence[CaptureDifference]
) -> list[str]:
    """What did not stop the build and is worth a line on stderr."""
    told = [
        f"quarantined: {row.document_id}: {row.locator}: {row.message} ({row.reason})"
        for row in checked.frames["quarantine"].itertuples()
    ]
    told += [_difference_line(difference) for difference in differences]
    claims = checked.frames["claims"]
    told += [
        f"not recomputed: {row.ledger_id}: {row.claim_id}: {row.recomputation}.sql found no row"
        for row in claims[claims["not_recomputable"] == NO_ROW].itertuples()
    ]
    told += [
        f"sweep {run_id} is unfinished: resume it with `ipu-results sweep --resume {run_id}`, or delete its folder"
        for run_id in find_unfinished_runs(raw)
    ]
    return told + [f"no sidecar speaks of {name}: not ingested" for name in find_orphans(raw, documents)]


def _difference_line(difference: CaptureDifference) -> str:
    if difference["kind"] == "unreadable":
        return f"capture cannot be read: {difference['capture_id']}: {difference['locator']}: {difference['captured']}"
    ours, theirs = (repr(difference[key]) if key in difference else "nothing" for key in ("transcribed", "captured"))
    return f"capture differs: {difference['capture_id']}: {difference['locator']}: {ours} here, {theirs} there"
