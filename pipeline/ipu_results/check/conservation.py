"""No source row is lost: each is accepted, quarantined or a duplicate, and the accepted ones have all their cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ipu_results.errors import CatalogueError, ConservationError
from ipu_results.read.document import ParsedDocument

SourceKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one document's source rows."""

    extracted: int
    accepted: int
    quarantined: int
    duplicates: int


def source_keys(reading: ParsedDocument) -> list[SourceKey]:
    """Every source row that the reader saw: (table, row number)."""
    keys = [(table.name, row.number) for table in reading.tables for row in table.rows]
    return keys + [(p.table_name, p.row_number) for p in reading.problems if p.row_number is not None]


def assert_promised(document: str, tables: Mapping[str, Mapping[str, object]], reading: ParsedDocument) -> None:
    """Raise CatalogueError where a table that the sidecar promises is lost or has another number of rows."""
    found = Counter(table for table, _ in source_keys(reading))
    for table, promise in tables.items():
        if found[table] != promise["rows"]:
            what = f"has {found[table]} rows" if found[table] else "is not there"
            raise CatalogueError(f"{what}, the sidecar promises {promise['rows']}", document=document, place=table)
    if tables and (unknown := sorted(set(found) - set(tables))):
        raise CatalogueError(f"the sidecar promises no table {', '.join(unknown)}", document=document)


def assert_conserved(document: str, reading: ParsedDocument, fates: Iterable[tuple[SourceKey, str]]) -> Tally:
    """Compare what was read with what became of it, row by row. Raises ConservationError."""
    read, told = Counter(source_keys(reading)), list(fates)
    fated = Counter(key for key, _ in told)
    if read != fated:
        lost, made = sorted((read - fated).elements()), sorted((fated - read).elements())
        raise ConservationError(f"source rows lost {lost[:3]}, without source {made[:3]}", document=document)
    status = Counter(fate for _, fate in told)
    return Tally(read.total(), status["accepted"], status["quarantined"], status["duplicate"])


def assert_cells_kept(document: str, reading: ParsedDocument, cited: int, uncited_rows: Iterable[SourceKey]) -> None:
    """Every cell of an accepted row is cited: `cited` cells, facts not counted. Raises ConservationError."""
    left_out = set(uncited_rows)
    expected = sum(
        len(table.columns) for table in reading.tables for row in table.rows if (table.name, row.number) not in left_out
    )
    if expected != cited:
        raise ConservationError(f"{expected} cells in accepted rows, {cited} of them cited", document=document)
