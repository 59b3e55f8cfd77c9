"""What every reader returns: tables of raw text, each row with the place it stands at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One source row. `number` counts from 1 within the table as printed, unreadable rows included."""

    number: int
    cells: tuple[str, ...]
    locator: str
    cell_locators: tuple[str, ...] | None = None
    marks: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One table as printed: header names and rows of equal width; `caption` may state the unit of the figures."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[SourceRow, ...]
    locator: str
    caption: str = ""

    def cell_locator(self, row: SourceRow, column: int) -> str:
        if row.cell_locators is not None:
            return row.cell_locators[column]
        return f"{row.locator}, column {column + 1} ({self.columns[column]})"


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """A source row, or a whole table where `row_number` is None, that could not be read."""

    table_name: str
    row_number: int | None
    locator: str
    reason: str
    message: str
    raw: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataItem:
    """A labelled setup fact that a document states outside its tables."""

    label: str
    text: str
    locator: str


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    tables: tuple[SourceTable, ...]
    problems: tuple[ReadProblem, ...] = ()
    facts: tuple[MetadataItem, ...] = ()
