"""What every reader returns: tables of raw text, in which each row and cell has a locator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a table as printed."""

    number: int
    """Position in the printed table, from 1. Unreadable rows count, so numbers may have gaps."""
    cells: tuple[str, ...]
    """Text of each column, without footnote marks. `""` is a blank cell."""
    locator: str
    """Where the row is: "table 2, row 36", "line 29", or "page 1, box 410.8,124.2,470.8,134.2" in points."""
    cell_locators: tuple[str, ...] | None = None
    """Where each cell is, if the format has a finer place than row and column."""
    footnotes: tuple[tuple[int, str], ...] = ()
    """(column from 0, mark) for each cell that carries a footnote mark."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One table as printed, its columns in the order of the document."""

    name: str
    """Name of the table header in `schema/vocabulary/table_headers.toml` that it matches."""
    columns: tuple[str, ...]
    """Header cells as printed, with units."""
    rows: tuple[SourceRow, ...]
    """Readable rows, each as wide as `columns`."""
    locator: str
    """Where the table is, in the same form as the locators of its rows."""
    caption: str = ""
    """Caption of the table, which may state the unit of its figures."""

    def cell_locator(self, row: SourceRow, column: int) -> str:
        """Return the place of one cell, for a column counted from 0."""
        if row.cell_locators is not None:
            return row.cell_locators[column]
        return f"{row.locator}, column {column + 1} ({self.columns[column]})"


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """A source row that could not be read, or a whole table where `row_number` is None."""

    table_name: str
    row_number: int | None
    locator: str
    reason: str
    """Reason code of the quarantine, such as "row-width" or "unknown-header"."""
    message: str
    raw: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataItem:
    """One `Label: value` line that describes the setup, outside of all tables."""

    label: str
    text: str
    locator: str


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Rows that are published as they are, column by column; row n is on line n + 1, under the header."""

    name: str
    rows: pa.Table

    def locator(self, number: int) -> str:
        """Return the place of a row, counted from 1."""
        return f"line {number + 1}"


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Everything that a reader took from one document; `columnar` are tables without rows in `tables`."""

    tables: tuple[SourceTable, ...]
    problems: tuple[ReadProblem, ...] = ()
    metadata: tuple[MetadataItem, ...] = ()
    columnar: tuple[ColumnTable, ...] = ()
