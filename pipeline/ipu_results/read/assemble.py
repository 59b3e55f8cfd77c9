"""From rows of raw cells to named tables: find the header, check every row's width, name the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read.align import contains_row
from ipu_results.read.document import ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.schema.figures import NUMERIC_FIELDS
from ipu_results.schema.table_headers import TableHeader, explain_mismatch, find_headers, normalise_header

HIDDEN_HEADER = "this table is hidden from a reader"
NO_HEADER = "these rows of a table have no header"

MatchedHeader = tuple[tuple[str, ...], list[TableHeader]]
"""Header cells as printed, and the known headers that they match."""


class Unread(NamedTuple):
    """A cell with something that is not read as text, and whether that has a text of its own."""

    column: int
    problem: str
    has_text: bool


@dataclass(frozen=True, slots=True)
class RawRow:
    """Cells of one row before its table is known, with the footnote mark of each (`""` for none).

    A reader that knows that the cells are not those of one row states the reason as `problem`. `wide` are the columns
    that one cell covers. A `hidden` row is in the document, but a reader does not see it.
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
        """Return how many tables and problems there are."""
        return len(self.tables) + len(self.problems)

    def finish(self) -> ParsedDocument:
        """Return what was collected. Raises UnrecognisedDocumentError if that is nothing."""
        if not self.tables and not self.problems:
            raise UnrecognisedDocumentError("has no table with a known header")
        return ParsedDocument(tuple(self.tables), tuple(self.problems))

    def add_header_problem(self, place: str, message: str, raw: tuple[str, ...] = ()) -> None:
        """Record rows that belong to no readable table."""
        self.problems.append(ReadProblem("", None, place, "unknown-header", message, raw))

    def add_unread_block(self, place: str, names: tuple[str, ...]) -> None:
        """Record a block that looks like a known table, in a layout that is not read."""
        message = "this looks like a known table, but it is not in rows under a header: not read"
        self.problems.append(ReadProblem("", None, place, "unread-table", message, names))

    def add_grid(self, place: str, rows: Iterable[tuple[str, RawRow]]) -> None:
        """Add the tables in one grid of (locator, row) pairs; rows without a locator are numbered within their table.

        A grid without a known header adds nothing, unless it has a nearly known one or rows in the shape of a table.
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
            candidates = find_headers(row.texts, self.headers)
            if row.hidden and candidates:
                broken, lost = broken or (locator or place, HIDDEN_HEADER, row.texts), True
                continue
            if candidates:
                matched = (row.texts, candidates)
                break
            if lost:
                continue
            message = explain_mismatch(row.texts, self.headers)
            if message is None:
                # Under a broken header a row of one text may be a title; one of several texts is a row that is lost.
                several = len({text for text in row.texts if text}) > 1
                lost = contains_row(row.texts, self.headers) or (broken is not None and several)
            if broken is None and (message or lost):
                broken = (locator or place, message or NO_HEADER, row.texts)
        if broken is not None and (lost or matched is None):
            self.add_header_problem(*broken)
        return matched

    def _add_table(self, place: str, header: MatchedHeader, rows: Iterator[tuple[str, RawRow]]) -> MatchedHeader | None:
        """Add the rows up to the end, or up to another header, which is returned."""
        columns, candidates = header
        following = None
        good: list[SourceRow] = []
        bad: list[ReadProblem] = []
        names = {normalise_header(name) for name in columns}
        fields = [candidates[0].field_of(name) for name in columns]
        for row_place, row in rows:
            if row.texts == columns or _is_blank(row, columns, fields):
                continue
            if normalise_header(row.texts[0]) in names and (others := find_headers(row.texts, self.headers)):
                following = (row.texts, others)
                break
            if row.hidden and (len(row.texts) != len(columns) or not _has_figure(row, fields)):
                continue
            number = len(good) + len(bad) + 1
            locator = row_place or f"{place}, row {number}"
            if problem := _find_problem(row, columns, fields):
                bad.append(ReadProblem("", number, locator, *problem, row.texts))
                continue
            footnotes = tuple((column, mark) for column, mark in enumerate(row.footnotes) if mark)
            good.append(SourceRow(number, row.texts, locator, row.cell_locators, footnotes))
        name = choose_table(columns, good, candidates)
        if any(table.name == name for table in self.tables):
            message = f"{name} is in the document twice; only the first is read"
            self.problems.append(ReadProblem(name, None, place, "duplicate-table", message))
            return following
        self.problems += [replace(problem, table_name=name) for problem in bad]
        if good:
            self.tables.append(SourceTable(name, columns, tuple(good), place))
        elif not bad:
            self.problems.append(ReadProblem(name, None, place, "no-rows", "the table has no row"))
        return following


def _has_figure(row: RawRow, fields: Sequence[str]) -> bool:
    return any(field in NUMERIC_FIELDS and _has_digit(text) for field, text in zip(fields, row.texts, strict=True))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _find_problem(row: RawRow, columns: Sequence[str], fields: Sequence[str]) -> tuple[str, str] | None:
    """Return reason and message for a row that cannot be read as printed."""
    if row.hidden:
        return "hidden-row", "the row is hidden from a reader"
    if row.problem or len(row.texts) != len(columns):
        return "row-width", row.problem or f"{len(row.texts)} cells under a header of {len(columns)}"
    for span in row.wide:
        if _has_digit(row.texts[span.start]) and not NUMERIC_FIELDS.isdisjoint(fields[span.start : span.stop]):
            return "unread-cell", f"one cell spans {' and '.join(map(repr, columns[span.start : span.stop]))}"
    for column, problem, has_text in row.unread:
        if fields[column] in NUMERIC_FIELDS or (has_text and not row.texts[column]):
            return "unread-cell", f"the cell under {columns[column]!r} {problem}"
    return None


def _is_blank(row: RawRow, columns: Sequence[str], fields: Sequence[str]) -> bool:
    """Check whether a row has nothing that may be a figure: no text, and no cell that is not read in its place."""
    if any(row.texts) or not row.unread:
        return not any(row.texts)
    problem = _find_problem(row, columns, fields)
    return problem is None or not (problem[0] == "unread-cell" or any(cell.has_text for cell in row.unread))


def choose_table(columns: Sequence[str], rows: Sequence[SourceRow], candidates: Sequence[TableHeader]) -> str:
    """Return the table, of several with the same header, whose machines are in most rows."""
    if len(candidates) == 1:
        return candidates[0].table
    column = next(i for i, name in enumerate(columns) if candidates[0].field_of(name) == "platform")
    return max(candidates, key=lambda header: sum(header.lists(row.cells[column]) for row in rows)).table
