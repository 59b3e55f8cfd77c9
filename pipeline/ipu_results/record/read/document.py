"""What every reader returns: tables of raw text, in which each row and cell has a locator."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.record.read.figures import SHAPE
from ipu_results.schema import table
from ipu_results.schema.vocabulary import (
    NUMERIC_FIELDS,
    TableHeader,
    explain_mismatch,
    find_headers,
    has_units,
    normalise_header,
)

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
    """The cells of one column: row i has the text `distinct[codes[i]]`, and each text is held once."""

    codes: array[int]
    distinct: tuple[str, ...]

    @classmethod
    def encode(cls, texts: Sequence[str]) -> Self:
        known = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        return cls(array("i", map(known.__getitem__, texts)), tuple(known))


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
        """Build a table from readable rows, each as wide as `columns`."""
        texts = zip(*(row.cells for row in rows), strict=True) if rows else ((),) * len(columns)
        places = tuple(row.cell_locators for row in rows)
        return cls(
            name,
            tuple(columns),
            tuple(map(TextColumn.encode, texts)),
            tuple(row.number for row in rows),
            tuple(row.locator for row in rows),
            locator,
            caption,
            tuple(
                (position, *footnote)
                for position, row in enumerate(rows)
                for footnote in row.footnotes
            ),
            places if any(places) else None,
        )

    @cached_property
    def rows(self) -> tuple[SourceRow, ...]:
        """Readable rows, each as wide as `columns`."""
        return tuple(map(self.row, range(len(self.numbers))))

    def row(self, position: int) -> SourceRow:
        """Return the row at a position, counted from 0."""
        cells = tuple(texts.distinct[texts.codes[position]] for texts in self.texts)
        places = self.cell_locators[position] if self.cell_locators else None
        notes = self.footnotes[
            bisect_left(self.footnotes, (position,)) : bisect_left(self.footnotes, (position + 1,))
        ]
        footnotes = tuple((column, mark) for _, column, mark in notes)
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
    context: tuple[Words, ...] = ()  # what may change the meaning of figures, see `read/context.py`


PRECISIONS = "|".join(map(re.escape, table("results").choices("precision")))
SHAPES: dict[str, re.Pattern[str]] = {
    "sdk_version": re.compile(r"(?:Pre-?)?SDK\s*\d[\w.]*", re.I),
    "precision": re.compile(rf"(?:\d+\.\d+|{PRECISIONS})?"),
    "batch_size": re.compile(r"(?:\d[\d,]*)?"),
    "latency_ms": re.compile(rf"(?:{SHAPE})?"),
    "mlperf_id": re.compile(r"(?:\d+\.\d+-\d+)?"),
    "division": re.compile(r"open|closed", re.I),
    **dict.fromkeys(("throughput", "time_to_result_s"), re.compile(SHAPE)),
    "time_to_train_s": re.compile(rf"{SHAPE}|(?:\d+\s*[dhms]\s*)+"),
}
# Free text: anything but a figure or an SDK version. Some columns are never blank.
WORDS = re.compile(rf"(?!{SHAPE}$)(?!(?:Pre-?)?SDK\s*\d).*", re.I)
REQUIRED_WORDS = re.compile(WORDS.pattern.replace(".*", ".+"), re.I)
SHAPES |= dict.fromkeys(("model", "platform", "framework"), REQUIRED_WORDS)

# Without a header, only rows with this field are recognised: other text hardly has its shape.
DISTINCTIVE_FIELD = "sdk_version"


def contains_row(cells: Sequence[str], headers: Iterable[TableHeader]) -> bool:
    """Check whether consecutive cells have the shapes of a row of one of `headers`."""
    rows = {tuple(field for _, field in header.fields) for header in headers}
    return any(
        any(find_well_shaped(cells, fields)) for fields in rows if DISTINCTIVE_FIELD in fields
    )


def find_well_shaped(cells: Sequence[str], fields: Sequence[str]) -> list[bool]:
    """Check for each cell whether a row starts there whose cells all have the shape of their field:
    without a pattern of its own that is any text but a figure.
    """
    shapes = [SHAPES.get(name, WORDS) for name in fields]
    fits = [[shape.fullmatch(cell) is not None for cell in cells] for shape in shapes]
    last = len(cells) - len(fields)
    return [
        start <= last and all(fit[start + place] for place, fit in enumerate(fits))
        for start in range(len(cells))
    ]


NO_HEADER = "these rows of a table have no header"

FirstRow = tuple[str, tuple[str, ...]]
"""Where a table without a known header is, and its first row of words."""


class MatchedHeader(NamedTuple):
    """The place of a header, its cells as printed, and the known headers that they match."""

    place: str
    columns: tuple[str, ...]
    candidates: list[TableHeader]


class Unread(NamedTuple):
    """A cell with something that is not read as text, whether that has a text of its own, and may
    alter a name.
    """

    column: int
    problem: str
    has_text: bool
    in_any_column: bool = False


class RawRow(NamedTuple):
    """Cells of one row before its table is known, with the footnote mark of each (`""` for none).

    A reader that knows that the cells are not those of one row states the reason as `problem`.
    `wide` are the columns that one cell covers. A `hidden` row is in the document, but a reader
    does not see it.
    """

    texts: tuple[str, ...]
    footnotes: tuple[str, ...] = ()
    cell_locators: tuple[str, ...] | None = None
    problem: str | None = None
    wide: tuple[range, ...] = ()
    unread: tuple[Unread, ...] = ()
    hidden: bool = False


@dataclass(slots=True)
class Assembler:
    """Collects the tables and problems of one document, in the order in which they are added."""

    headers: Sequence[TableHeader]
    tables: list[SourceTable] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.tables) + len(self.problems)

    def finish(self) -> ParsedDocument:
        """Return what was collected. Raises UnrecognisedDocumentError if that is nothing."""
        if not self.tables and not self.problems:
            raise UnrecognisedDocumentError("has no table with a known header")
        return ParsedDocument(tuple(self.tables), tuple(self.problems))

    def add_header_problem(self, place: str, message: str, raw: tuple[str, ...] = ()) -> None:
        """Record rows that belong to no readable table."""
        self.refuse_table("", place, "unknown-header", message, raw)

    def refuse_table(
        self, name: str, place: str, reason: str, message: str, raw: tuple[str, ...] = ()
    ) -> None:
        """Record a known table of which no row is read."""
        self.problems.append(ReadProblem(name, None, place, reason, message, raw))

    def add_unread_block(self, place: str, names: tuple[str, ...]) -> None:
        """Record a block that looks like a known table, in a layout that is not read."""
        message = "this looks like a known table, but it is not in rows under a header: not read"
        self.refuse_table("", place, "unread-table", message, names)

    def add_grid(self, place: str, rows: Iterable[tuple[str, RawRow]]) -> None:
        """Add the tables in one grid of (locator, row) pairs; rows without a locator are numbered
        within their table.

        A grid without a known header adds nothing, unless it has a nearly known one or rows in the
        shape of a table.
        """
        remaining = iter(rows)
        header = self._find_header(place, remaining)
        while header is not None:
            header = self._add_table(place, header, remaining)

    def _find_header(self, place: str, rows: Iterable[tuple[str, RawRow]]) -> MatchedHeader | None:
        """Advance to the first known header; rows that are lost before it become one problem."""
        broken: tuple[str, str, tuple[str, ...]] | None = None
        lost = False
        matched = None
        for locator, row in rows:
            headers = find_headers(row.texts, self.headers)
            fault = (
                _find_header_fault(row) if headers else explain_mismatch(row.texts, self.headers)
            )
            if headers and not fault:
                matched = MatchedHeader(locator or place, row.texts, headers)
                break
            # Under a broken header a row of one text may be a title; one of several is a row.
            is_row = broken is not None and not fault and len({*row.texts} - {""}) > 1
            lost = lost or bool(headers) or is_row
            if not fault and not lost:
                lost = contains_row(row.texts, self.headers)
            if broken is None and (fault or lost):
                broken = (locator or place, fault or NO_HEADER, row.texts)
        if broken is not None and (lost or matched is None):
            self.add_header_problem(*broken)
        return matched

    def _add_table(
        self, place: str, header: MatchedHeader, rows: Iterator[tuple[str, RawRow]]
    ) -> MatchedHeader | None:
        """Add the rows up to the end, or up to another header, which is returned."""
        columns = header.columns
        following = None
        good: list[SourceRow] = []
        bad: list[ReadProblem] = []
        names = {normalise_header(name) for name in columns}
        fields = [header.candidates[0].field_of(name) for name in columns]
        for row_place, row in rows:
            if row.texts == columns or _is_blank(row, columns, fields):
                continue
            if normalise_header(row.texts[0]) in names and (
                others := find_headers(row.texts, self.headers)
            ):
                following = MatchedHeader(row_place or place, row.texts, others)
                break
            if row.hidden and not _has_figure(row.texts, fields):
                continue
            if len(row.texts) == len(columns) and has_units(row.texts, fields):
                where = "among the rows" if good else "under the header"
                message = f"a row of units or a scale is {where}"
                self.add_header_problem(header.place, message, row.texts)
                return self._find_header(place, rows)
            number = len(good) + len(bad) + 1
            locator = row_place or f"{place}, row {number}"
            if problem := _find_problem(row, columns, fields):
                bad.append(ReadProblem("", number, locator, *problem, row.texts))
                continue
            footnotes = tuple((column, mark) for column, mark in enumerate(row.footnotes) if mark)
            good.append(SourceRow(number, row.texts, locator, row.cell_locators, footnotes))
        name = choose_header(columns, [row.cells for row in good], header.candidates).table
        if any(table.name == name for table in self.tables):
            message = f"{name} is in the document twice; only the first is read"
            self.refuse_table(name, header.place, "duplicate-table", message)
            return following
        self.problems += [replace(problem, table_name=name) for problem in bad]
        if good:
            self.tables.append(SourceTable.from_rows(name, columns, good, header.place))
        elif not bad:
            self.refuse_table(name, header.place, "no-rows", "the table has no row")
        return following


def _find_header_fault(row: RawRow) -> str | None:
    """Return why the names of a header cannot be trusted."""
    for cell in row.unread:
        if cell.in_any_column:
            return f"the header cell {row.texts[cell.column]!r} {cell.problem}"
    return "this table is hidden from a reader" if row.hidden else None


def _has_figure(texts: Sequence[str], fields: Sequence[str]) -> bool:
    """Check whether a row as wide as its table may have a figure."""
    figures = [text for text, name in zip(texts, fields, strict=False) if name in NUMERIC_FIELDS]
    return len(texts) == len(fields) and _has_digit("".join(figures))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _find_problem(
    row: RawRow, columns: Sequence[str], fields: Sequence[str]
) -> tuple[str, str] | None:
    """Return reason and message for a row that cannot be read as printed."""
    if row.hidden:
        return "hidden-row", "the row is hidden from a reader"
    if len(row.texts) != len(columns):
        message = f"{len(row.texts)} cells under a header of {len(columns)}"
        return "row-width", row.problem or message
    if row.problem:
        return "row-width", row.problem
    for span in row.wide:
        covered = slice(span.start, span.stop)
        if _has_digit(row.texts[span.start]) and not NUMERIC_FIELDS.isdisjoint(fields[covered]):
            return "unread-cell", f"one cell spans {' and '.join(map(repr, columns[covered]))}"
    for column, mark in enumerate(row.footnotes):
        if mark and not row.texts[column]:
            message = f"holds nothing but the footnote mark {mark!r}"
            return "unread-cell", f"the cell under {columns[column]!r} {message}"
    for column, problem, has_text, in_any_column in row.unread:
        is_lost = has_text and not row.texts[column]
        if in_any_column or is_lost or fields[column] in NUMERIC_FIELDS:
            return "unread-cell", f"the cell under {columns[column]!r} {problem}"
    return None


def _is_blank(row: RawRow, columns: Sequence[str], fields: Sequence[str]) -> bool:
    """Check whether a row has nothing that may be a figure: no text, and no cell that is not read
    in its place.
    """
    if any(row.texts):
        return False
    problem = _find_problem(row, columns, fields) if row.unread else None
    is_unread = problem is not None and problem[0] == "unread-cell"
    return not is_unread and (problem is None or not any(cell.has_text for cell in row.unread))


def choose_header(
    columns: Sequence[str], rows: Sequence[Sequence[str]], candidates: Sequence[TableHeader]
) -> TableHeader:
    """Return the header, of several with the same names, whose machines are in most rows."""
    if len(candidates) == 1:
        return candidates[0]
    column = next(i for i, name in enumerate(columns) if candidates[0].field_of(name) == "platform")
    return max(candidates, key=lambda header: sum(header.lists(row[column]) for row in rows))
