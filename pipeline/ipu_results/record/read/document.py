"""What every reader returns: tables of raw text, in which each row and cell has a locator."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from ipu_results.schema.vocabulary import TableHeader

if TYPE_CHECKING:
    import pyarrow as pa


class SourceRow(NamedTuple):
    """One row of a table as printed."""

    number: int
    """Position in the printed table, from 1. Unreadable rows count, so numbers may have gaps."""
    cells: tuple[str, ...]
    """Text of each column, without footnote marks. `""` is a blank cell."""
    locator: str
    """Where the row is: "table 2, row 36", "line 29", or "page 1, box 410.8,124.2,470.8,134.2" in
    points.
    """
    cell_locators: tuple[str, ...] | None = None
    """Where each cell is, if the format has a finer place than row and column."""
    footnotes: tuple[tuple[int, str], ...] = ()
    """(column from 0, mark) for each cell that carries a footnote mark."""


class TextColumn(NamedTuple):
    """The cells of one column: row i has the text `distinct[codes[i]]`. Each text is held once."""

    codes: array[int]
    distinct: tuple[str, ...]

    @classmethod
    def encode(cls, texts: Sequence[str]) -> Self:
        distinct = tuple(dict.fromkeys(texts))
        code_of = {text: code for code, text in enumerate(distinct)}
        # an array takes half the memory of a list, and most texts are in many rows
        return cls(array("i", map(code_of.__getitem__, texts)), distinct)


@dataclass(frozen=True)
class SourceTable:
    """One table as printed, its columns in the order of the document.

    `rows` are built on first use.
    """

    name: str
    """Name of the table header in `schema/vocabulary/table_headers.toml` that it matches."""
    columns: tuple[str, ...]
    """Header cells as printed, with units."""
    texts: tuple[TextColumn, ...]
    """Cells of each of `columns`, without footnote marks."""
    numbers: tuple[int, ...]
    """Number of each row, see SourceRow."""
    locators: tuple[str, ...]
    """Where each row is."""
    locator: str
    """Where the table is, in the same form as the locators of its rows."""
    caption: str = ""
    """Caption of the table, which may state the unit of its figures."""
    footnotes: tuple[tuple[int, int, str], ...] = ()
    """(position of the row, column, mark), both from 0, for each cell that carries a footnote mark.
    """
    cell_locators: tuple[tuple[str, ...] | None, ...] | None = None
    """Where each cell of each row is, if the format has a finer place than row and column."""

    @classmethod
    def from_rows(
        cls,
        name: str,
        columns: Sequence[str],
        rows: Sequence[SourceRow],
        locator: str,
        caption: str = "",
    ) -> Self:
        """Build a table from readable rows. Raises ValueError for one that is not as wide as
        `columns`: the width is the reader's to judge.
        """
        for row in rows:
            if len(row.cells) != len(columns):
                raise ValueError(f"{name}, row {row.number}: not {len(columns)} cells")
        texts = []
        for column in range(len(columns)):
            texts.append(TextColumn.encode([row.cells[column] for row in rows]))
        footnotes = []
        for position, row in enumerate(rows):
            for column, mark in row.footnotes:
                footnotes.append((position, column, mark))
        places = tuple(row.cell_locators for row in rows)
        return cls(
            name=name,
            columns=tuple(columns),
            texts=tuple(texts),
            numbers=tuple(row.number for row in rows),
            locators=tuple(row.locator for row in rows),
            locator=locator,
            caption=caption,
            footnotes=tuple(footnotes),
            cell_locators=places if any(places) else None,
        )

    @cached_property
    def rows(self) -> tuple[SourceRow, ...]:
        """Readable rows, each as wide as `columns`."""
        return tuple(map(self.row, range(len(self.numbers))))

    def row(self, position: int) -> SourceRow:
        """Return the row at a position, counted from 0."""
        cells = tuple(texts.distinct[texts.codes[position]] for texts in self.texts)
        places = self.cell_locators[position] if self.cell_locators else None
        # they are sorted by the position of their row
        start = bisect_left(self.footnotes, (position,))
        stop = bisect_left(self.footnotes, (position + 1,))
        footnotes = tuple((column, mark) for _, column, mark in self.footnotes[start:stop])
        return SourceRow(self.numbers[position], cells, self.locators[position], places, footnotes)

    def select(self, positions: Sequence[int]) -> SourceTable:
        """Return the table with the rows at some positions only."""
        rows = [self.rows[position] for position in positions]
        return self.from_rows(self.name, self.columns, rows, self.locator, self.caption)

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


class Words(NamedTuple):
    """A text that is no figure and no name of what was measured, and where it is."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Rows that are published as they are, column by column; row n is on line n + 1, under the
    header.
    """

    name: str
    rows: pa.Table

    def locator(self, number: int) -> str:
        """Return the place of a row, counted from 1."""
        return f"line {number + 1}"


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Everything that a reader took from one document; `columnar` are tables without rows in
    `tables`.
    """

    tables: tuple[SourceTable, ...]
    problems: tuple[ReadProblem, ...] = ()
    metadata: tuple[MetadataItem, ...] = ()
    columnar: tuple[ColumnTable, ...] = ()
    language: str = ""  # that the document declares, such as "de-DE"
    context: tuple[Words, ...] = ()  # what may change the meaning of figures, see `context.py`


Headers = Sequence[TableHeader]
"""The known headers of a kind of documents."""

FirstRow = tuple[str, tuple[str, ...]]
"""Where a table without a known header is, and its first row of words."""
