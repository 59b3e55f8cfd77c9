"""Cut a run of cells into rows of a known width, although cells may be missing or too many.

Each column allows cells of a certain shape. The best cut leaves the fewest cells outside of rows whose cells all have
the shape of their column. A row is trusted only if it is part of every best cut, so a lost line costs its own row and
no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read.document import ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.schema import table
from ipu_results.schema.table_headers import TableHeader, explain_mismatch, find_headers, normalise_header
from ipu_results.schema.vocabulary import NUMERIC_FIELDS

PRECISIONS = "|".join(map(re.escape, table("results").choices("precision")))
SHAPES: dict[str, re.Pattern[str]] = {
    "sdk_version": re.compile(r"(?:Pre-?)?SDK\s*\d[\w.]*", re.I),
    "precision": re.compile(rf"(?:\d+\.\d+|{PRECISIONS})?"),
    "batch_size": re.compile(r"(?:\d[\d,]*)?"),
    "throughput": re.compile(r"\d[\d,]*(?:\.\d+)?"),
    "latency_ms": re.compile(r"(?:\d[\d,]*(?:\.\d+)?)?"),
    "mlperf_id": re.compile(r"(?:\d+\.\d+-\d+)?"),
    "division": re.compile(r"open|closed", re.I),
    "time_to_result_s": re.compile(r"\d[\d,]*(?:\.\d+)?"),
    "time_to_train_s": re.compile(r"\d[\d,]*(?:\.\d+)?|(?:\d+\s*[dhms]\s*)+"),
}
# Free text: anything but a figure or an SDK version. Some columns are never blank.
WORDS = re.compile(r"(?!\d[\d,]*(?:\.\d+)?$)(?!(?:Pre-?)?SDK\s*\d).*", re.I)
REQUIRED_WORDS = re.compile(WORDS.pattern.replace(".*", ".+"), re.I)
SHAPES |= dict.fromkeys(("model", "platform", "framework"), REQUIRED_WORDS)

DISTINCTIVE_FIELD = "sdk_version"
"""Without a header, only rows with this field are recognised: other text hardly has its shape."""
MIN_MISFITS_OF_A_SHIFTED_ROW = 3
MODULUS = 2**61 - 1
"""Numbers of cuts are compared modulo this prime: they grow exponentially with the cells."""


class RowSpan(NamedTuple):
    """Half-open range of the cells of one row, or, if not `readable`, of cells that do not make whole rows."""

    start: int
    stop: int
    readable: bool


def align(cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Cut `cells` into rows of one cell per field. The spans cover all cells in order. Time is linear in the cells."""
    width = len(fields)
    good = _find_well_shaped(cells, fields)
    if len(cells) % width == 0 and all(good[start] for start in range(0, len(cells), width)):
        return [RowSpan(start, start + width, True) for start in range(0, len(cells), width)]
    spans: list[RowSpan] = []
    position = 0
    for start in [*_find_trusted(good, width), len(cells)]:
        if start > position:
            spans += _cut_gap(position, start, cells, fields)
        if start < len(cells):
            spans.append(RowSpan(start, start + width, True))
        position = start + width
    return _drop_doubtful_neighbours(spans, cells, fields)


def contains_row(cells: Sequence[str], headers: Iterable[TableHeader]) -> bool:
    """Check whether consecutive cells have the shapes of a row of one of `headers`."""
    rows = {tuple(field for _, field in header.fields) for header in headers}
    return any(any(_find_well_shaped(cells, fields)) for fields in rows if DISTINCTIVE_FIELD in fields)


def _find_well_shaped(cells: Sequence[str], fields: Sequence[str]) -> list[bool]:
    """Check for each cell whether a row starts there whose cells all have the shape of their field."""
    fits = [[has_shape(cell) for cell in cells] for has_shape in map(_shape_check, fields)]
    last = len(cells) - len(fields)
    return [start <= last and all(fit[start + i] for i, fit in enumerate(fits)) for start in range(len(cells))]


def _shape_check(field: str) -> Callable[[str], bool]:
    pattern = SHAPES.get(field, WORDS)
    return lambda cell: pattern.fullmatch(cell) is not None


def _find_trusted(good: Sequence[bool], width: int) -> list[int]:
    """Return the starts of the rows that are part of every cut with the fewest cells left over.

    A row is part of all best cuts if the best cuts before it, times those after it, are as many as all best cuts.
    """
    size = len(good)
    before = _count_best_cuts(good, width)
    mirrored = [start + width <= size and good[size - width - start] for start in range(size)]
    after = _count_best_cuts(mirrored, width)[::-1]
    min_left_over, cuts = before[size]
    return [
        start
        for start in range(size)
        if good[start]
        and before[start][0] + after[start + width][0] == min_left_over
        and before[start][1] * after[start + width][1] % MODULUS == cuts
    ]


def _count_best_cuts(good: Sequence[bool], width: int) -> list[tuple[int, int]]:
    """Return for each number of cells from the start the fewest left over, and in how many cuts, modulo a prime."""
    best = [(0, 1)]
    for end in range(1, len(good) + 1):
        left_over, cuts = best[end - 1]
        options = [(left_over + 1, cuts)]
        if end >= width and good[end - width]:
            options.append(best[end - width])
        fewest = min(left_over for left_over, _ in options)
        best.append((fewest, sum(cuts for left_over, cuts in options if left_over == fewest) % MODULUS))
    return best


def _cut_gap(start: int, stop: int, cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Cut cells between trusted rows into rows, if each has at most one cell of the wrong shape; else make one span."""
    width = len(fields)
    rows = [RowSpan(place, place + width, True) for place in range(start, stop, width)]
    if (stop - start) % width == 0 and all(_count_misfits(cells[row.start : row.stop], fields) <= 1 for row in rows):
        return rows
    return [RowSpan(start, stop, False)]


def _count_misfits(row: Sequence[str], fields: Sequence[str]) -> int:
    return sum(not _shape_check(field)(cell) for field, cell in zip(fields, row, strict=True))


def _may_share_lines(span: RowSpan, cells: Sequence[str], fields: Sequence[str]) -> bool:
    """Check whether rows next to an unreadable span may hold lines of it.

    They do not if the span lacks one line, nor if it has the length of whole rows and nearly their shape.
    """
    width = len(fields)
    over = (span.stop - span.start) % width
    if span.readable or over:
        return not span.readable and over != width - 1
    rows = (cells[start : start + width] for start in range(span.start, span.stop, width))
    return any(_count_misfits(row, fields) >= MIN_MISFITS_OF_A_SHIFTED_ROW for row in rows)


def _drop_doubtful_neighbours(spans: Sequence[RowSpan], cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Join rows to an unreadable span next to them that may share lines with them."""
    merged: list[RowSpan] = []
    doubtful = [_may_share_lines(span, cells, fields) for span in spans]
    for place, span in enumerate(spans):
        spoiled = any(doubtful[max(place - 1, 0) : place + 2])
        if spoiled and merged and not merged[-1].readable:
            merged[-1] = RowSpan(merged[-1].start, span.stop, False)
        else:
            merged.append(RowSpan(span.start, span.stop, span.readable and not spoiled))
    return merged


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
