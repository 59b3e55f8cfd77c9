"""From rows of raw cells to named tables: find the header, check every row's width, name the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ipu_results.read.align import holds_row
from ipu_results.read.reading import ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.schema.layouts import TableHeader, explain_mismatch, find_headers, normalise_header

NO_HEADER = "rows of a table stand here without a header"


@dataclass(frozen=True, slots=True)
class RawRow:
    """Cells of one row as a reader found them, with the footnote mark of each (empty for none).

    `problem` says why the cells are not those of one row, where the reader knows.
    """

    texts: tuple[str, ...]
    marks: tuple[str, ...] = ()
    cell_locators: tuple[str, ...] | None = None
    problem: str | None = None


@dataclass(slots=True)
class Assembler:
    """Collects the tables of one document."""

    layouts: Sequence[TableHeader]
    tables: list[SourceTable] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)

    @property
    def found(self) -> bool:
        return bool(self.tables or self.problems)

    def reading(self) -> ParsedDocument:
        return ParsedDocument(tuple(self.tables), tuple(self.problems))

    def add(self, place: str, rows: Iterable[tuple[str, RawRow]]) -> None:
        """Take one grid of rows, each with its locator (empty: the row is told by its number in the table).

        A grid is left out if its header is no layout's and resembles none, unless rows stand there without a header.
        """
        remaining = iter(rows)
        header, candidates = self._header(place, remaining)
        while header is not None:
            header, candidates = self._body(place, header, candidates, remaining)

    def _header(
        self, place: str, rows: Iterable[tuple[str, RawRow]]
    ) -> tuple[tuple[str, ...] | None, list[TableHeader]]:
        """The first row that is a header; what would be lost above it, or for want of one, becomes a problem."""
        broken: ReadProblem | None = None
        lost = False
        candidates: list[TableHeader] = []
        for locator, row in rows:
            if candidates := find_headers(row.texts, self.layouts):
                break
            if lost:
                continue
            message = explain_mismatch(row.texts, self.layouts)
            lost = message is None and (
                holds_row(row.texts, self.layouts) or (broken is not None and _is_more_than_a_title(row))
            )
            if broken is None and (message or lost):
                broken = ReadProblem("", None, locator or place, "unknown-header", message or NO_HEADER, row.texts)
        if broken is not None and (lost or not candidates):
            self.problems.append(broken)
        return (row.texts, candidates) if candidates else (None, [])

    def _body(
        self, place: str, header: tuple[str, ...], candidates: list[TableHeader], rows: Iterator[tuple[str, RawRow]]
    ) -> tuple[tuple[str, ...] | None, list[TableHeader]]:
        """Rows up to the end or to another header, which is returned: what follows it is a table of its own."""
        good: list[SourceRow] = []
        bad: list[ReadProblem] = []
        names = {normalise_header(name) for name in header}
        for place_of_row, row in rows:
            if not any(row.texts) or row.texts == header:
                continue
            if row.texts[0] and normalise_header(row.texts[0]) in names and find_headers(row.texts, self.layouts):
                self._finish(place, header, candidates, good, bad)
                return row.texts, find_headers(row.texts, self.layouts)
            number = len(good) + len(bad) + 1
            locator = place_of_row or f"{place}, row {number}"
            if row.problem or len(row.texts) != len(header):
                message = row.problem or f"{len(row.texts)} cells under a header of {len(header)}"
                bad.append(ReadProblem("", number, locator, "row-width", message, row.texts))
                continue
            marks = tuple((column, mark) for column, mark in enumerate(row.marks) if mark)
            good.append(SourceRow(number, row.texts, locator, row.cell_locators, marks))
        self._finish(place, header, candidates, good, bad)
        return None, []

    def _finish(
        self,
        place: str,
        header: tuple[str, ...],
        candidates: list[TableHeader],
        good: list[SourceRow],
        bad: list[ReadProblem],
    ) -> None:
        layout = choose(header, good, candidates)
        if any(table.name == layout.table for table in self.tables):
            self.problems.append(
                ReadProblem(layout.table, None, place, "duplicate-table", "the table stands here again")
            )
            return
        self.problems += [replace(problem, table_name=layout.table) for problem in bad]
        if good:
            self.tables.append(SourceTable(layout.table, header, tuple(good), place))
        elif not bad:
            self.problems.append(ReadProblem(layout.table, None, place, "no-rows", "the table has no row"))


def _is_more_than_a_title(row: RawRow) -> bool:
    """Whether a row under a broken header holds more than one text."""
    return len({text for text in row.texts if text}) > 1


def choose(header: Sequence[str], rows: Sequence[SourceRow], candidates: Sequence[TableHeader]) -> TableHeader:
    """The one of several layouts with the same header whose machines most rows name."""
    if len(candidates) == 1:
        return candidates[0]
    column = next(i for i, name in enumerate(header) if candidates[0].field_of(name) == "platform")
    return max(candidates, key=lambda layout: sum(layout.lists(row.cells[column]) for row in rows))
