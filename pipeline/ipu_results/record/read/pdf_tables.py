"""Find tables on the lines of pages: a whole header of known names, and the rows directly below it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ipu_results.record.read.document import choose_header
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.pdf_glyphs import Box
from ipu_results.record.read.pdf_lines import HAS_DIGIT, Cell, Line, Strip, enclose
from ipu_results.record.read.text import (
    BLANK_FIELDS,
    LABEL_FIELDS,
    join_lines,
    known_names,
    normalise_text,
)
from ipu_results.schema.vocabulary import NUMERIC_FIELDS, TableHeader, find_headers

MAX_HEADER_LINES = 5  # a header has at most this many lines: names of one are set between two
# The baseline of the next line of a header follows within this, in ems.
HEADER_LEADING = 1.8
# Lines whose baselines are nearer than this, in ems, may be parts of one cell.
LEADING = 1.4
# Rows whose baselines are nearer than this, in ems, may be one row, with raised or lowered text.
ROW_LEADING = 0.9
MAX_LEADING = 5.0  # the first row is at most this far below the header, in ems
MORE_LEADING = 2.0  # another one is at most so many times as far below the row above it
EVEN = 0.9  # the distances of even rows are at least this share of the largest


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """The cell of each column of a row, None for a blank; `doubt` is why it is not read, if so."""

    line: Line
    cells: tuple[Cell | None, ...]
    doubt: str = ""


@dataclass(slots=True)
class PrintedTable:
    """A header of known names with the rows below it; `doubt` is why none of it is read, if so."""

    header: TableHeader
    columns: tuple[Cell, ...]
    head: Strip
    rows: list[PrintedRow] = field(default_factory=list)
    doubt: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cell.text for cell in self.columns)

    @property
    def lines(self) -> Strip:
        return (*self.head, *(row.line for row in self.rows))

    @property
    def box(self) -> Box:
        return enclose(line.box for line in self.lines)

    @property
    def fields(self) -> list[str]:
        return [self.header.field_of(name) for name in self.names]


def find_tables(
    strip: Strip, headers: Sequence[TableHeader], captions: Collection[Box]
) -> Iterator[PrintedTable]:
    """Yield the tables of one column of a page, or of a whole page, from the top."""
    names = known_names(headers)
    place = 0
    while place < len(strip):
        begins = [normalise_text(cell.text) for cell in strip[place].cells]
        is_candidate = any(name.startswith(begin) for begin in begins for name in names)
        table = _read_header(strip, place, headers) if is_candidate else None
        if table is None:
            place += 1
            continue
        above = strip[place - 1] if place else None
        if above and above.box not in captions and is_close(above, table.head[0]):
            table.doubt = f"{above.text!r} is close above the header, and may be a part of it"
        place += len(table.head)
        _read_rows(table, strip[place:], headers)
        place += len(table.rows)
        below = strip[place] if place < len(strip) else None
        if (
            table.rows
            and below
            and below.box not in captions
            and is_close(table.rows[-1].line, below)
        ):
            doubt = f"{below.text!r} is close below, and may be a part of it"
            last = table.rows[-1]
            table.rows[-1] = replace(last, doubt=last.doubt or doubt)
        yield table


def _read_header(strip: Strip, place: int, headers: Sequence[TableHeader]) -> PrintedTable | None:
    """Return the table whose header begins on a line, without rows; None if none does.

    Every text of the lines of a header is a part of the name of a column. Of several numbers of
    lines the most count: the last may have the units.
    """
    found = None
    for stop in range(place + 1, min(place + MAX_HEADER_LINES, len(strip)) + 1):
        block = strip[place:stop]
        if len(block) > 1 and not is_close(block[-2], block[-1], HEADER_LEADING):
            break
        columns = join_columns(block)
        matched = find_headers([cell.text for cell in columns], headers)
        if matched and not any(cell.marks for cell in columns):
            found = PrintedTable(matched[0], columns, block)
    return found


def join_columns(lines: Sequence[Line]) -> tuple[Cell, ...]:
    """Return a cell for each column of a header, with the texts of its lines from the top.

    Texts that share a place across the page belong to one column.
    """
    columns: list[list[Cell]] = []
    right = float("-inf")
    cells = (cell for line in lines for cell in line.cells)
    for cell in sorted(cells, key=lambda cell: cell.box.x0):
        if cell.box.x0 < right:
            columns[-1].append(cell)
        else:
            columns.append([cell])
        right = max(right, cell.box.x1)
    return tuple(map(_join_cells, columns))


def _join_cells(cells: Sequence[Cell]) -> Cell:
    ordered = sorted(cells, key=lambda cell: cell.baseline)
    return replace(
        ordered[0],
        text=join_lines(cell.text for cell in ordered),
        marks="".join(cell.marks for cell in ordered),
        box=enclose(cell.box for cell in ordered),
    )


def is_close(above: Line, below: Line, leading: float = LEADING) -> bool:
    """Check whether two lines are so close that one may continue the other."""
    return _measure_leading(above, below) < leading


def _measure_leading(above: Line, below: Line) -> float:
    """Return how far a line is below another one, in ems."""
    first, second = above.largest, below.largest
    return (second.baseline - first.baseline) / max(first.size, second.size)


def _read_rows(table: PrintedTable, lines: Strip, headers: Sequence[TableHeader]) -> None:
    """Add the rows directly below a header.

    A row of as many cells as columns has them in their order, if the columns of all such rows are
    apart. In a row with fewer cells each is under a column.
    """
    figures = [place for place, name in enumerate(table.fields) if name in NUMERIC_FIELDS]
    zones = [cell.box for cell in table.columns]
    taken: list[Line] = []
    above, leading = table.head[-1], MAX_LEADING
    for line in lines:
        is_far = _measure_leading(above, line) > leading  # it may be the number of the page
        if is_far or not _is_row(line, zones, figures) or _read_header((line,), 0, headers):
            break
        leading = MORE_LEADING * _measure_leading(above, line)
        above = line
        taken.append(line)
        if len(line.cells) == len(zones):
            pairs = zip(zones, line.cells, strict=True)
            zones = [_widen(zone, cell.box) for zone, cell in pairs]
    if any(left.x1 >= right.x0 for left, right in pairwise(zones)):
        table.doubt = table.doubt or "its columns are not apart"
    table.rows = [_align(line, zones, table) for line in taken]
    texts = [[cell.text if cell else "" for cell in row.cells] for row in table.rows]
    table.header = choose_header(table.names, texts, find_headers(table.names, headers))
    for number, row in enumerate(table.rows):
        if doubt := _doubt_blank(texts, number, table.fields):
            table.rows[number] = replace(row, doubt=row.doubt or doubt)
    gaps = [_measure_leading(above.line, row.line) for above, row in pairwise(table.rows)]
    for number, gap in enumerate(gaps, 1):
        # the rest of a figure, or the number of the page, may seem to be a row without its label
        is_uneven = len(figures) == len(zones) and min(gaps) < EVEN * max(gaps)
        if gap < ROW_LEADING or (is_uneven and "" in texts[number]):
            doubt = "the line next to it may be a part of it: a mark, or the rest of a figure"
            for place in (number - 1, number):
                table.rows[place] = replace(table.rows[place], doubt=doubt)


def _widen(zone: Box, box: Box) -> Box:
    return zone._replace(x0=min(zone.x0, box.x0), x1=max(zone.x1, box.x1))


def _is_row(line: Line, zones: Sequence[Box], figures: Sequence[int]) -> bool:
    """Check whether a line has a figure in or below a column of them, and is no sentence."""
    if len(line.cells) == len(zones) and any(is_figure(line.cells[at].text) for at in figures):
        return True
    return any(
        HAS_DIGIT(cell.text) and cell.box.overlaps(zones[at])
        for at in figures
        for cell in line.cells
        if len(line.cells) > 1 or is_figure(cell.text)
    )


def _align(line: Line, zones: Sequence[Box], table: PrintedTable) -> PrintedRow:
    """Return the row that a line is, with a doubt if it is not clear which column a cell is in."""
    cells: list[Cell | None] = [None] * len(zones)
    is_full = len(line.cells) == len(zones)
    for number, cell in enumerate(line.cells):
        places = [place for place, zone in enumerate(zones) if zone.overlaps(cell.box)]
        if is_full:
            places = [number]
        own = places[0] if len(places) == 1 else None
        if own is None or cells[own] or not _is_nearest(cell.box, own, table.columns):
            doubt = "the cells are not under the names of the columns"
            return PrintedRow(line, tuple(cells), doubt)
        cells[own] = cell
    has_words = any(name not in NUMERIC_FIELDS for name in table.fields)
    may_be_blank = BLANK_FIELDS if has_words else LABEL_FIELDS
    for name, filled in zip(table.fields, cells, strict=True):
        if filled is None and name not in may_be_blank:
            return PrintedRow(line, tuple(cells), "a figure or a label is missing in the row")
    return PrintedRow(line, tuple(cells))


def _is_nearest(box: Box, own: int, columns: Sequence[Cell]) -> bool:
    """Check whether the name of its column is the nearest to a cell, across the page, and not farther
    than another name is from that: numbers in the margin are no batch sizes.
    """
    gaps = [_measure_gap(column.box, box) for column in columns]
    between = [_measure_gap(column.box, columns[own].box) for column in columns]
    between[own] = float("inf")
    return gaps[own] <= min(*gaps, *between)


def _measure_gap(first: Box, second: Box) -> float:
    return max(first.x0 - second.x1, second.x0 - first.x1, 0.0)


def _doubt_blank(texts: Sequence[Sequence[str]], number: int, fields: Sequence[str]) -> str:
    """Return why a row is not read: another row of its model has a label where it has a blank,
    which may stand for that label.
    """
    row = texts[number]
    for other in texts if "model" in fields else ():
        model = fields.index("model")
        pairs = zip(row, other, strict=True)
        if other[model] == row[model] and any(label and not text for text, label in pairs):
            return "a blank may stand for the label of another row"
    return ""


def has_shape_of_row(line: Line, table: PrintedTable) -> bool:
    """Check whether a line elsewhere may be a row of a table: about as many cells, and its figures.

    A narrow table has no words: only two figures look like a row of it, also such as are not read.
    """
    count = len(table.columns)
    measures = sum(name in NUMERIC_FIELDS for name in table.fields)
    if measures == count:
        is_wordless = not any(map(str.isalpha, line.text))
        return len(line.cells) == count and is_wordless and all(map(HAS_DIGIT, line.texts))
    blanks = sum(name in BLANK_FIELDS for name in table.fields)
    figures = sum(HAS_DIGIT(cell.text) is not None for cell in line.cells)
    return count - blanks <= len(line.cells) <= count and figures >= measures
