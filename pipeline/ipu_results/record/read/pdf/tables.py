"""Find tables on the lines of pages: a whole header of known names, and the rows right below it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ipu_results.record.read.assemble import choose_header
from ipu_results.record.read.document import Headers
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.papers import LABEL_FIELDS, join_lines, known_names, normalise_text
from ipu_results.record.read.pdf.glyphs import Box
from ipu_results.record.read.pdf.lines import HAS_DIGIT, Cell, Line, Strip, enclose
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
# fields that performance pages leave blank where a model has none
BLANK_FIELDS = frozenset({"variant", "dataset"})


@dataclass(slots=True)
class PrintedRow:
    """The cell of each column of a row, None for a blank; `doubt` is why it is not read, if so."""

    line: Line
    cells: list[Cell | None]
    doubt: str = ""

    @property
    def texts(self) -> list[str]:
        return [cell.text if cell else "" for cell in self.cells]


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
        return enclose(self.lines)

    @property
    def fields(self) -> list[str]:
        return [self.header.field_of(name) for name in self.names]


def find_tables(
    strip: Strip, headers: Headers, captions: Collection[Box]
) -> Iterator[PrintedTable]:
    """Yield the tables of one column of a page, or of a whole page, from the top."""
    names = known_names(headers)
    place = 0
    while place < len(strip):
        begins = tuple(normalise_text(cell.text) for cell in strip[place].cells)
        table = None
        if any(name.startswith(begins) for name in names):
            table = _read_header(strip[place : place + MAX_HEADER_LINES], headers)
        if table is None:
            place += 1
            continue
        above = strip[place - 1] if place > 0 else None
        place += len(table.head)
        _read_rows(table, strip[place:], headers)
        place += len(table.rows)
        below = strip[place] if place < len(strip) else None
        if above and above.box not in captions and is_close(above, table.head[0]):
            table.doubt = f"{above.text!r} is close above the header, and may be a part of it"
        if below and below.box not in captions and table.rows:
            last = table.rows[-1]
            if is_close(last.line, below):
                _doubt(last, f"{below.text!r} is close below, and may be a part of it")
        yield table


def _doubt(row: PrintedRow, doubt: str) -> None:
    """Note why a row is not read, unless that is known."""
    row.doubt = row.doubt or doubt


def _read_header(strip: Strip, headers: Headers) -> PrintedTable | None:
    """Return the table whose header begins on the first of a few lines, without rows, if any.

    Every text of the lines of a header is a part of the name of a column. Of several numbers of
    lines the most count: the last may have the units.
    """
    found = None
    for size in range(1, len(strip) + 1):
        block = strip[:size]
        if size > 1 and not is_close(block[-2], block[-1], HEADER_LEADING):
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
    cells = [cell for line in lines for cell in line.cells]
    for cell in sorted(cells, key=lambda cell: cell.box.x0):
        if cell.box.x0 >= right:
            columns.append([])
        columns[-1].append(cell)
        right = max(right, cell.box.x1)
    return tuple(map(_join_cells, columns))


def _join_cells(cells: Sequence[Cell]) -> Cell:
    ordered = sorted(cells, key=lambda cell: cell.baseline)
    return replace(
        ordered[0],
        text=join_lines(cell.text for cell in ordered),
        marks="".join(cell.marks for cell in ordered),
        box=enclose(ordered),
    )


def is_close(above: Line, below: Line, leading: float = LEADING) -> bool:
    """Check whether two lines are so close that one may continue the other."""
    return _measure_leading(above, below) < leading


def _measure_leading(above: Line, below: Line) -> float:
    """Return how far a line is below another one, in ems."""
    first = above.largest
    second = below.largest
    return (second.baseline - first.baseline) / max(first.size, second.size)


def _read_rows(table: PrintedTable, lines: Strip, headers: Headers) -> None:
    """Add the rows directly below a header.

    A row of as many cells as columns has them in their order, if the columns of all such rows are
    apart. In a row with fewer cells each is under a column.
    """
    figures = [place for place, name in enumerate(table.fields) if name in NUMERIC_FIELDS]
    zones = [cell.box for cell in table.columns]
    taken: list[Line] = []
    above = table.head[-1]
    max_leading = MAX_LEADING
    for line in lines:
        leading = _measure_leading(above, line)
        is_far = leading > max_leading  # it may be the number of the page
        if is_far or not _is_row(line, zones, figures) or _read_header((line,), headers):
            break
        taken.append(line)
        above = line
        max_leading = MORE_LEADING * leading
        if len(line.cells) == len(zones):
            for place, cell in enumerate(line.cells):
                zones[place] = zones[place].join(cell.box)
    if any(left.x1 >= right.x0 for left, right in pairwise(zones)):
        table.doubt = "its columns are not apart"
    # only now are the zones as wide as all cells of full rows, so that other rows can be aligned
    table.rows = [_align(line, zones, table) for line in taken]
    texts = [row.texts for row in table.rows]
    table.header = choose_header(table.names, texts, find_headers(table.names, headers))
    for row in table.rows:
        if _has_doubtful_blank(row.texts, texts, table.fields):
            _doubt(row, "a blank may stand for the label of another row")
    _doubt_uneven_rows(table, is_wordless=len(figures) == len(zones))


def _is_row(line: Line, zones: Sequence[Box], figures: Sequence[int]) -> bool:
    """Check whether a line has a figure in or below a column of them, and is no sentence."""
    is_full = len(line.cells) == len(zones)
    if is_full and any(is_figure(line.cells[column].text) for column in figures):
        return True
    # a sentence is one cell, which may have digits
    is_whole = len(line.cells) == 1
    for cell in line.cells:
        may_be_figure = is_figure(cell.text) if is_whole else HAS_DIGIT(cell.text)
        if may_be_figure and any(cell.box.overlaps(zones[column]) for column in figures):
            return True
    return False


def _align(line: Line, zones: Sequence[Box], table: PrintedTable) -> PrintedRow:
    """Return the row that a line is, with a doubt if it is not clear which column a cell is in."""
    row = PrintedRow(line, [None] * len(zones))
    is_full = len(line.cells) == len(zones)
    for number, cell in enumerate(line.cells):
        column = number if is_full else _find_column(cell.box, zones)
        is_free = column is not None and row.cells[column] is None
        if column is None or not is_free or not _is_nearest(cell.box, column, table.columns):
            row.doubt = "the cells are not under the names of the columns"
            return row
        row.cells[column] = cell
    has_words = not NUMERIC_FIELDS.issuperset(table.fields)
    may_be_blank = BLANK_FIELDS if has_words else LABEL_FIELDS
    for name, filled in zip(table.fields, row.cells, strict=True):
        if filled is None and name not in may_be_blank:
            row.doubt = "a figure or a label is missing in the row"
    return row


def _find_column(box: Box, zones: Sequence[Box]) -> int | None:
    """Return the only column that a cell is under, None if that is none or several."""
    columns = [column for column, zone in enumerate(zones) if zone.overlaps(box)]
    return columns[0] if len(columns) == 1 else None


def _is_nearest(box: Box, column: int, columns: Sequence[Cell]) -> bool:
    """Check whether the name of its column is the nearest to a cell, across the page, and not
    farther than another name is from that: numbers in the margin are no batch sizes.
    """
    name = columns[column].box
    gap = _measure_gap(name, box)
    for place, other in enumerate(columns):
        if gap > _measure_gap(other.box, box):
            return False
        if place != column and gap > _measure_gap(other.box, name):
            return False
    return True


def _measure_gap(first: Box, second: Box) -> float:
    return max(first.x0 - second.x1, second.x0 - first.x1, 0.0)


def _has_doubtful_blank(
    row: Sequence[str], rows: Sequence[Sequence[str]], fields: Sequence[str]
) -> bool:
    """Check whether another row of its model has a label where a row has a blank, which may stand
    for that label.
    """
    if "model" not in fields:
        return False
    model = fields.index("model")
    for other in rows:
        if other[model] == row[model]:
            pairs = zip(row, other, strict=True)
            if any(label and not text for text, label in pairs):
                return True
    return False


def _doubt_uneven_rows(table: PrintedTable, is_wordless: bool) -> None:
    """Doubt rows that are nearer to one another than rows are: a mark, or the rest of a figure, or
    the number of the page, may seem to be a row without its label.
    """
    pairs = list(pairwise(table.rows))
    gaps = [_measure_leading(above.line, row.line) for above, row in pairs]
    is_uneven = is_wordless and bool(gaps) and min(gaps) < EVEN * max(gaps)
    for gap, (above, row) in zip(gaps, pairs, strict=True):
        if gap < ROW_LEADING or (is_uneven and "" in row.texts):
            doubt = "the line next to it may be a part of it: a mark, or the rest of a figure"
            above.doubt = doubt
            row.doubt = doubt


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
    figures = sum(HAS_DIGIT(text) is not None for text in line.texts)
    return count - blanks <= len(line.cells) <= count and figures >= measures
