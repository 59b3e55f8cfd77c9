"""Assemble tables from grids of cells: find the header, and judge each row under it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.record.read.document import (
    Headers,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
)
from ipu_results.record.read.shapes import contains_row
from ipu_results.schema.vocabulary import (
    NUMERIC_FIELDS,
    TableHeader,
    explain_mismatch,
    find_headers,
    has_units,
    normalise_header,
)

NO_HEADER = "these rows of a table have no header"


class Unread(NamedTuple):
    """A cell with something that is not read as text."""

    column: int
    problem: str
    in_any_column: bool
    """Whether it may alter a name, too, and not only a figure."""


class RawRow(NamedTuple):
    """Cells of one row before its table is known."""

    texts: tuple[str, ...]
    footnotes: tuple[str, ...] = ()
    """Footnote mark of each cell, `""` for none."""
    cell_locators: tuple[str, ...] | None = None
    problem: str | None = None
    """Why the cells are not those of one row, if a reader knows that."""
    wide: tuple[range, ...] = ()
    """The columns that one cell covers, for each such cell."""
    unread: tuple[Unread, ...] = ()
    hidden: bool = False
    """Whether the row is in the document, but a reader does not see it."""


PlacedRow = tuple[str, RawRow]
"""A row with its locator; without one it is numbered within its table."""


class MatchedHeader(NamedTuple):
    """The place of a header, its cells as printed, and the known headers that they match."""

    place: str
    columns: tuple[str, ...]
    candidates: list[TableHeader]


@dataclass(slots=True)
class Assembler:
    """Collects the tables and problems of one document, in the order in which they are added."""

    headers: Headers
    tables: list[SourceTable] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)

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
        """Record a table of which no row is read."""
        self.problems.append(ReadProblem(name, None, place, reason, message, raw))

    def add_grid(self, place: str, rows: Iterable[PlacedRow]) -> bool:
        """Add the tables in one grid, and tell whether there is a table or a problem.

        A grid without a known header adds nothing, unless it has a nearly known one or rows in the
        shape of a table.
        """
        before = len(self.tables) + len(self.problems)
        remaining = iter(rows)
        header = self._find_header(place, remaining)
        while header is not None:
            header = self._add_table(place, header, remaining)
        return len(self.tables) + len(self.problems) > before

    def _find_header(self, place: str, rows: Iterator[PlacedRow]) -> MatchedHeader | None:
        """Advance to the first known header; rows that are lost before it become one problem."""
        broken: ReadProblem | None = None  # the first row of a table that is not read
        has_lost_rows = False
        for locator, row in rows:
            where = locator or place
            headers = find_headers(row.texts, self.headers)
            if headers:
                fault = _find_header_fault(row)
                if not fault:
                    # where no row is lost, what resembles a header above a known one is its title
                    if broken and has_lost_rows:
                        self.problems.append(broken)
                    return MatchedHeader(where, row.texts, headers)
                has_lost_rows = True
            else:
                fault = explain_mismatch(row.texts, self.headers)
                if not fault and not has_lost_rows:
                    has_lost_rows = self._is_lost_row(row.texts, is_under_header=broken is not None)
            if broken is None and (fault or has_lost_rows):
                message = fault or NO_HEADER
                broken = ReadProblem("", None, where, "unknown-header", message, row.texts)
        if broken:
            self.problems.append(broken)
        return None

    def _is_lost_row(self, texts: Sequence[str], *, is_under_header: bool) -> bool:
        """Check whether a row is one of a table whose header is not known or broken.

        Under a broken header a row of one text may be a title; one of several is a row.
        """
        has_several_texts = len(set(texts) - {""}) > 1
        return (is_under_header and has_several_texts) or contains_row(texts, self.headers)

    def _add_table(
        self, place: str, header: MatchedHeader, rows: Iterator[PlacedRow]
    ) -> MatchedHeader | None:
        """Add the rows up to the end, or up to another header, which is returned."""
        columns = header.columns
        fields = [header.candidates[0].field_of(name) for name in columns]
        keys = set(map(normalise_header, columns))
        following = None
        good: list[SourceRow] = []
        bad: list[ReadProblem] = []
        for locator, row in rows:
            is_blank = not any(row.texts) and not row.unread
            if is_blank or row.texts == columns:  # long tables repeat their header
                continue
            # few rows begin with the name of a column: the others are no header
            if normalise_header(row.texts[0]) in keys:
                others = find_headers(row.texts, self.headers)
                if others:
                    following = MatchedHeader(locator or place, row.texts, others)
                    break
            # pages hide rows for screen readers; without a figure nothing is lost
            if row.hidden and not _has_figure(row.texts, fields):
                continue
            if len(row.texts) == len(columns) and has_units(row.texts, fields):
                where = "among the rows" if good else "under the header"
                message = f"a row of units or a scale is {where}"
                # nobody knows which rows it is about, so none is read
                self.add_header_problem(header.place, message, row.texts)
                return self._find_header(place, rows)
            number = len(good) + len(bad) + 1
            row_place = locator or f"{place}, row {number}"
            problem = _find_problem(row, columns, fields)
            if problem:
                reason, message = problem
                bad.append(ReadProblem("", number, row_place, reason, message, row.texts))
                continue
            footnotes = tuple((column, mark) for column, mark in enumerate(row.footnotes) if mark)
            good.append(SourceRow(number, row.texts, row_place, row.cell_locators, footnotes))
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
    if len(texts) != len(fields):
        return False
    return any(
        _has_digit(text) for text, name in zip(texts, fields, strict=True) if name in NUMERIC_FIELDS
    )


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _find_problem(
    row: RawRow, columns: Sequence[str], fields: Sequence[str]
) -> tuple[str, str] | None:
    """Return reason and message for a row that cannot be read as printed."""
    if row.hidden:
        return "hidden-row", "the row is hidden from a reader"
    if row.problem:
        return "row-width", row.problem
    if len(row.texts) != len(columns):
        return "row-width", f"{len(row.texts)} cells under a header of {len(columns)}"
    for span in row.wide:
        covers_figures = not NUMERIC_FIELDS.isdisjoint(fields[span.start : span.stop])
        if covers_figures and _has_digit(row.texts[span.start]):
            names = map(repr, columns[span.start : span.stop])
            return "unread-cell", f"one cell spans {' and '.join(names)}"
    for column, mark in enumerate(row.footnotes):
        if mark and not row.texts[column]:
            message = f"holds nothing but the footnote mark {mark!r}"
            return "unread-cell", f"the cell under {columns[column]!r} {message}"
    for cell in row.unread:
        is_lost = not row.texts[cell.column]
        if cell.in_any_column or is_lost or fields[cell.column] in NUMERIC_FIELDS:
            return "unread-cell", f"the cell under {columns[cell.column]!r} {cell.problem}"
    return None


def choose_header(
    columns: Sequence[str], rows: Sequence[Sequence[str]], candidates: Headers
) -> TableHeader:
    """Return the header, of several with the same names, whose machines are in most rows."""
    if len(candidates) == 1:
        return candidates[0]
    fields = [candidates[0].field_of(name) for name in columns]
    platforms = [row[fields.index("platform")] for row in rows]

    def count_machines(header: TableHeader) -> int:
        return sum(header.lists(platform) for platform in platforms)

    return max(candidates, key=count_machines)
