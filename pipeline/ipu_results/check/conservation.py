"""Prove that no source row is lost: each is accepted, quarantined or a duplicate, and keeps all its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ipu_results.errors import CatalogueError, ConservationError
from ipu_results.normalise import NormalisedDocument
from ipu_results.normalise.rows import Place
from ipu_results.read.document import ParsedDocument
from ipu_results.sources.catalogue import Document

SourceKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many source rows of one document met which fate."""

    extracted: int
    accepted: int
    quarantined: int
    duplicates: int


def list_fates(document: NormalisedDocument) -> Iterator[tuple[Place, str, str | None]]:
    """Yield place, status and result id of every source row."""
    for result in document.results:
        yield from ((fragment.place, "accepted", result.result_id) for fragment in result.accepted)
        yield from ((fragment.place, "duplicate", result.result_id) for fragment in result.duplicates)
    for row in document.passthrough_only:
        yield (row.table_name, row.row_number, row.locator), "accepted", None
    for rejected in document.rejected:
        yield (rejected.table_name, rejected.row_number, rejected.locator), "quarantined", None


def list_source_keys(parsed: ParsedDocument) -> list[SourceKey]:
    """Return (table, row number) of every source row that the reader saw."""
    keys = [(table.name, row.number) for table in parsed.tables for row in table.rows]
    keys += [(row.table_name, row.row_number) for row in parsed.problems if row.row_number is not None]
    return keys


def count_rows(parsed: ParsedDocument) -> Counter[str]:
    """Return the number of source rows that the reader saw, by table."""
    counts = Counter(table for table, _ in list_source_keys(parsed))
    counts.update({table.name: table.rows.num_rows for table in parsed.columnar})
    return counts


def check_expected_tables(document: Document, parsed: ParsedDocument) -> None:
    """Compare the tables with the sidecar's. Raises CatalogueError for a lost table or another number of rows."""
    counts = count_rows(parsed)
    for name, expected in document.tables.items():
        if counts[name] != expected.rows:
            actual = f"has {counts[name]} rows" if counts[name] else "is missing"
            message = f"{actual}, the sidecar expects {expected.rows}"
            raise CatalogueError(message, document=document.document_id, place=name)
    if document.tables and (unknown := sorted(set(counts) - set(document.tables))):
        raise CatalogueError(f"the sidecar expects no table {', '.join(unknown)}", document=document.document_id)


def check_conservation(parsed: ParsedDocument, document: NormalisedDocument) -> RowCounts:
    """Compare what was read with its fates, row by row and cell by cell. Raises ConservationError."""
    document_id = document.document.document_id
    read = Counter(list_source_keys(parsed))
    fates = [((table, number), status) for (table, number, _), status, _ in list_fates(document)]
    actual = Counter(key for key, _ in fates)
    if read != actual:
        lost, added = sorted((read - actual).elements()), sorted((actual - read).elements())
        raise ConservationError(f"source rows lost {lost[:3]}, without source {added[:3]}", document=document_id)
    _check_cells(parsed, document, fates)
    columnar = sum(table.rows.num_rows for table in parsed.columnar)
    if columnar != sum(table.rows.num_rows for table in document.columnar):
        raise ConservationError(
            f"{columnar} rows read by column are not those that are published", document=document_id
        )
    status = Counter(status for _, status in fates)
    return RowCounts(read.total() + columnar, status["accepted"] + columnar, status["quarantined"], status["duplicate"])


def _check_cells(parsed: ParsedDocument, document: NormalisedDocument, fates: list[tuple[SourceKey, str]]) -> None:
    """Require every cell of an accepted row to be cited by its result."""
    uncited = {key for key, status in fates if status != "accepted"}
    uncited |= {(row.table_name, row.row_number) for row in document.passthrough_only}
    expected = sum(
        len(table.columns) for table in parsed.tables for row in table.rows if (table.name, row.number) not in uncited
    )
    cited = sum(len(fragment.converted) for result in document.results for fragment in result.accepted)
    if expected != cited:
        message = f"{expected} cells in accepted rows, {cited} of them cited"
        raise ConservationError(message, document=document.document.document_id)
