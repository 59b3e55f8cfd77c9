"""Build lines of cells from the words of a page, and find the column of a table that each cell is
under.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product, zip_longest
from typing import NamedTuple

from ipu_results.read.text import BLANK_FIELDS, LABEL_FIELDS, is_figure, spell_out
from ipu_results.schema.vocabulary import NUMERIC_FIELDS, TableHeader, normalise_header

SAME_LINE = (
    0.35  # words are on one line if their middles differ by less than this share of their height
)
WORD_GAP = 0.12  # words of one cell are set solid below this gap, in ems
CELL_GAP = 0.75  # a wider gap divides words into two cells, in ems
FOOTNOTE_SIZE = 0.8  # a raised word of at most this share of the size is a footnote mark
FOOTNOTE_RISE = 0.1  # how far, in ems, the foot of a mark is above that of the word it follows
# a smaller word of any size is a footnote mark if its baseline is at least this much higher, in ems
RAISED_MARK = 0.2
# a word shares more than this part of its height with the figure that it is raised or lowered at
SHIFTED_OVERLAP = 0.3
BASELINE_SLACK = 0.05  # baselines of one word differ by at most this, in ems
SIZE_SLACK = 0.03  # sizes of one figure differ by at most this share
# where the gutter of a page in two columns may be, as shares of the page width
GUTTER_ZONE = (0.4, 0.6)
GUTTER_STEPS = 200  # places across the page width at which a gutter is searched
LONG_LINE = 0.25  # a line of prose is at least this share of the page wide
GUTTER_CROSSINGS = 0.25  # share of the long lines (titles, wide captions) that may cross a gutter
MIN_LONG_LINES = 3  # this many long lines must keep to their side of a gutter
BAND_PAD = 6.0  # how far beyond its header a table reaches on either side, in points
# a cell belongs to the column whose header it overlaps, or misses by at most this, in points
ALIGN_SLACK = 2.0
# columns of a table that continues in another page column shift alike, to within this, in points
SHIFT_TOLERANCE = 2.0
# As many cells as columns are a row, in their order, if at least this share is under the names of
# the columns.
MIN_UNDER_NAME = 0.5
# A cell is under one column alone if at least this share of it is, and no part of it is under
# another.
MIN_UNDER_ONE = 0.5
# A reference in brackets, such as (a): no figure, and a part of the label before it.
MARK = re.compile(r"[(\[][^()\[\]]{1,3}[)\]]")
# a unit that is printed apart from its figure
UNIT_WORD = re.compile(r"(?=\S*[^\W\d_]|[%×°])[^\s\d()\[\]]{1,12}")
UNIT_GAP = 2.0  # it is at most this far away from it, in ems
SHIFTED = "raised or lowered text is next to it: a mark or a part of the figure"


class Box(NamedTuple):
    """A place on a page (from 1), in points from its top left corner."""

    page: int
    x0: float
    top: float
    x1: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def overlaps(self, other: Box) -> bool:
        """Check whether another box is above, below or on this one: whether they share a place
        across the page.
        """
        return min(self.x1, other.x1) > max(self.x0, other.x0)

    def __str__(self) -> str:
        return f"page {self.page}, box {self.x0:.1f},{self.top:.1f},{self.x1:.1f},{self.bottom:.1f}"


@dataclass(frozen=True, slots=True)
class Word:
    """One word, its font size and baseline in points, why its text is in doubt, and its font, if it
    has only one.
    """

    text: str
    size: float
    box: Box
    baseline: float
    doubt: str = ""
    font: str = ""


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """Words without a wide gap between them; `footnotes` are the raised marks after them."""

    text: str
    footnotes: str
    size: float
    box: Box
    doubt: str = ""
    """Why it is unclear what is printed, if it is."""
    fonts: frozenset[str] = frozenset()
    """The fonts of its words; `""` is among them if one is not known."""


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """Cells on one baseline, from left to right."""

    cells: tuple[PrintedCell, ...]
    box: Box

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


HAS_DIGIT = re.compile(r"\d").search

Strip = tuple[PrintedLine, ...]
"""The lines of one column of a page, or of a whole page, from the top."""


def enclose(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes of one page."""
    pages, lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(pages[0], min(lefts), min(tops), max(rights), max(bottoms))


def make_line(cells: Sequence[PrintedCell]) -> PrintedLine:
    return PrintedLine(tuple(cells), enclose(cell.box for cell in cells))


def build_lines(words: Sequence[Word]) -> Strip:
    """Build the lines of a page across all its columns."""
    rows = _group_rows(words)
    for number, row in enumerate(rows):
        for other in rows[number + 1 :]:
            if other[0].box.top >= row[0].box.bottom:
                break
            _doubt_shifted(row, other)
    return tuple(make_line(list(_split_cells(row))) for row in rows)


def split_columns(lines: Strip, width: float) -> tuple[Strip, ...]:
    """Return the columns of a page in reading order; what crosses the gutter goes with the first."""
    gutter = _find_gutter(lines, width)
    if gutter is None:
        return (lines,)
    sides = (
        [[cell for cell in line.cells if (cell.box.x0 >= gutter) == right] for line in lines]
        for right in (0, 1)
    )
    return tuple(tuple(make_line(cells) for cells in side if cells) for side in sides)


def _group_rows(words: Sequence[Word]) -> list[list[Word]]:
    """Group words on one baseline, left to right.

    The largest words open a row, smaller ones join it.
    """
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (-round(word.size, 1), word.box.top)):
        for row in reversed(rows):
            first = row[0].box
            other = word.box
            if abs(first.middle - other.middle) < SAME_LINE * max(first.height, other.height):
                row.append(word)
                break
        else:
            rows.append([word])
    rows.sort(key=lambda row: row[0].box.middle)
    return [sorted(row, key=lambda word: word.box.x0) for row in rows]


def _doubt_shifted(row: list[Word], other: list[Word]) -> None:
    """Doubt the figures in two rows that have a word of the other one next to them: it may be a
    part of the figure.
    """
    for (place, word), (at, following) in product(enumerate(row), enumerate(other)):
        first = word.box
        second = following.box
        gap = max(first.x0, second.x0) - min(first.x1, second.x1)
        shared = min(first.bottom, second.bottom) - max(first.top, second.top)
        if gap > CELL_GAP * max(word.size, following.size) or not HAS_DIGIT(
            word.text + following.text
        ):
            continue
        if shared > SHIFTED_OVERLAP * min(first.height, second.height):
            row[place] = replace(word, doubt=word.doubt or SHIFTED)
            other[at] = replace(following, doubt=following.doubt or SHIFTED)


def _split_cells(row: Sequence[Word]) -> Iterator[PrintedCell]:
    start = 0
    for place, (word, following) in enumerate(pairwise(row), 1):
        if following.box.x0 - word.box.x1 > CELL_GAP * max(word.size, following.size):
            yield _make_cell(row[start:place])
            start = place
    yield _make_cell(row[start:])


def _make_cell(words: Sequence[Word]) -> PrintedCell:
    largest = max(words, key=lambda word: word.size)
    footnotes = [word for word in words if _is_footnote(word, largest)]
    body = [word for word in words if word not in footnotes]
    text = body[0].text
    for word, following in pairwise(body):
        gap = following.box.x0 - word.box.x1
        text += following.text if gap < WORD_GAP * largest.size else f" {following.text}"
    marks = "".join(word.text for word in footnotes)
    doubt = next((word.doubt for word in words if word.doubt), "")
    if not doubt and any(
        _are_at_odds(word, following, largest.size) for word, following in pairwise(body)
    ):
        doubt = "digits differ in size or height: a footnote mark or a part of the figure"
    fonts = frozenset(word.font for word in body)
    return PrintedCell(
        spell_out(text), marks, largest.size, enclose(word.box for word in words), doubt, fonts
    )


def _is_footnote(word: Word, largest: Word) -> bool:
    if word.size <= FOOTNOTE_SIZE * largest.size:
        return largest.box.bottom - word.box.bottom > FOOTNOTE_RISE * largest.size
    smaller = word.size < (1 - SIZE_SLACK) * largest.size
    return smaller and largest.baseline - word.baseline >= RAISED_MARK * largest.size


def _are_at_odds(word: Word, following: Word, size: float) -> bool:
    """Check whether digits follow other text without a blank, but differ in size or height."""
    if following.box.x0 - word.box.x1 >= WORD_GAP * size or not HAS_DIGIT(following.text):
        return False
    resized = abs(word.size - following.size) > SIZE_SLACK * size
    return resized or abs(word.baseline - following.baseline) > BASELINE_SLACK * size


def _find_gutter(lines: Sequence[PrintedLine], width: float) -> float | None:
    """Return the middle of the gap between two columns; None for a page in one column.

    The gutter is where the fewest cells cross, and of several such places the one nearest to the
    middle of the page.
    """
    boxes = [cell.box for line in lines for cell in line.cells]
    long = [box for box in boxes if box.x1 - box.x0 >= LONG_LINE * width]
    first, last = (int(GUTTER_STEPS * share) for share in GUTTER_ZONE)
    places = [width * step / GUTTER_STEPS for step in range(first, last + 1)]
    crossings = {x: sum(box.x0 < x < box.x1 for box in boxes) for x in places}
    gutter = min(places, key=lambda x: (crossings[x], abs(x - width / 2)))
    crossing = sum(box.x0 < gutter < box.x1 for box in long)
    if len(long) - crossing < MIN_LONG_LINES or crossing > GUTTER_CROSSINGS * len(long):
        return None
    return gutter


ColumnSpan = tuple[float, float]
"""Left and right edge of a column, in points."""
AlignedCells = tuple[PrintedCell | None, ...]
"""The cell of each column, or None."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a table are, which of them have figures, which may be blank, and which
    has the model.
    """

    spans: tuple[ColumnSpan, ...]
    figures: frozenset[int]
    optional: frozenset[int]
    model: int | None = None

    @property
    def has_text(self) -> bool:
        """Whether some columns have words: then no other text looks like a row."""
        return len(self.figures) < len(self.spans)

    def is_complete(self, cells: AlignedCells) -> bool:
        """Check whether only cells are missing that may be blank, and every figure has a digit."""
        return all(
            (
                column in self.optional
                if cell is None
                else column not in self.figures or bool(HAS_DIGIT(cell.text))
            )
            for column, cell in enumerate(cells)
        )

    def has_figure(self, cells: AlignedCells) -> bool:
        return any(
            cell and column in self.figures and HAS_DIGIT(cell.text)
            for column, cell in enumerate(cells)
        )


def make_columns(cells: Sequence[PrintedCell], headers: Sequence[TableHeader]) -> Columns:
    """Return the columns under the cells of a header that has the names of all `headers`."""
    fields = []
    for cell in cells:
        header = next(header for header in headers if normalise_header(cell.text) in header.keys)
        fields.append(header.field_of(cell.text))
    figures = frozenset(column for column, name in enumerate(fields) if name in NUMERIC_FIELDS)
    may_be_blank = BLANK_FIELDS if len(figures) < len(fields) else LABEL_FIELDS
    optional = frozenset(column for column, name in enumerate(fields) if name in may_be_blank)
    model = fields.index("model") if "model" in fields else None
    return Columns(tuple((cell.box.x0, cell.box.x1) for cell in cells), figures, optional, model)


def cells_in_band(line: PrintedLine, spans: Sequence[ColumnSpan]) -> tuple[PrintedCell, ...]:
    """Return the cells of a line that are below a header."""
    left = spans[0][0] - BAND_PAD
    right = spans[-1][1] + BAND_PAD
    return tuple(cell for cell in line.cells if cell.box.x1 > left and cell.box.x0 < right)


def align_cells(cells: Sequence[PrintedCell], columns: Columns) -> AlignedCells | None:
    """Return the cell of each column; None for text, and for cells that overlap no column, two, or
    one another's.
    """
    cells, under = _join_parts(cells, columns)
    if (
        columns.has_text
        and len(cells) == len(columns.spans)
        and _are_in_order(cells, under, columns)
    ):
        return tuple(cells)
    aligned: list[PrintedCell | None] = [None] * len(columns.spans)
    for cell, places in zip(cells, under, strict=True):
        if len(places) != 1 or aligned[places[0]] is not None:
            return None
        aligned[places[0]] = cell
    is_row = len(cells) > 1 and any(
        character.isdigit() for cell in cells for character in cell.text
    )
    return tuple(aligned) if is_row or all(is_figure(cell.text) for cell in cells) else None


def _join_parts(
    cells: Sequence[PrintedCell], columns: Columns
) -> tuple[Sequence[PrintedCell], Sequence[Sequence[int]]]:
    """Join a reference in brackets to its label, and a unit to its figure.

    Return the columns of each cell.
    """
    joined: list[PrintedCell] = []
    under: list[list[int]] = []
    for cell, following in zip_longest(cells, cells[1:]):
        last = joined[-1] if joined and not HAS_DIGIT(cell.text) else None
        if last is None or not (
            _is_mark(last, cell, following, columns) or _is_unit(last, cell, columns)
        ):
            joined.append(cell)
            under.append(_find_columns(cell, columns))
        elif last.footnotes:
            joined[-1] = replace(
                last, doubt=last.doubt or "a footnote mark is between two parts of it"
            )
        else:
            text = f"{last.text} {cell.text}"
            box = enclose((last.box, cell.box))
            joined[-1] = replace(
                last, text=text, footnotes=cell.footnotes, box=box, doubt=last.doubt or cell.doubt
            )
    return joined, under


def _is_mark(
    label: PrintedCell, cell: PrintedCell, following: PrintedCell | None, columns: Columns
) -> bool:
    """Check whether a reference is between a label and a figure, and the figure alone is left for
    its column.
    """
    own = _find_columns(label, columns)
    if (
        following is None
        or not MARK.fullmatch(cell.text)
        or len(own) != 1
        or own[0] in columns.figures
    ):
        return False
    places = _find_columns(cell, columns)
    after = _find_columns(following, columns)
    return (
        bool(HAS_DIGIT(following.text))
        and set(after) <= columns.figures
        and (not places or places == after)
    )


def _is_unit(figure: PrintedCell, cell: PrintedCell, columns: Columns) -> bool:
    """Check whether a cell without a digit is a unit close behind a figure, both under one column
    of figures.
    """
    places = _find_columns(cell, columns)
    return (
        len(places) == 1
        and places[0] in columns.figures
        and places == _find_columns(figure, columns)
        and is_figure(figure.text)
        and UNIT_WORD.fullmatch(cell.text) is not None
        and cell.box.x0 - figure.box.x1 <= UNIT_GAP * figure.size
    )


def _find_columns(cell: PrintedCell, columns: Columns) -> list[int]:
    """Return the columns that a cell is under: the one that has most of it, if it merely comes
    close to others.

    Where no column has text, it is under all that it is close to: nothing else tells a row from
    other text.
    """
    near = [column for column, span in enumerate(columns.spans) if overlaps(cell.box, span)]
    if not columns.has_text:
        return near
    box = cell.box
    width = max(cell.box.x1 - cell.box.x0, ALIGN_SLACK)
    shares = {
        i: (min(box.x1, columns.spans[i][1]) - max(box.x0, columns.spans[i][0])) / width
        for i in near
    }
    own = [column for column, share in shares.items() if share > 0]
    return own if len(own) == 1 and shares[own[0]] >= MIN_UNDER_ONE else near


def _are_in_order(
    cells: Sequence[PrintedCell], under: Sequence[Sequence[int]], columns: Columns
) -> bool:
    """Check whether each cell is under its own column or, where a name is narrow, under none.

    A label may reach below the next name, if it cannot end with a figure of that column, which has
    a cell of its own.
    """
    own = rest = 0
    for column, (cell, places) in enumerate(zip(cells, under, strict=True)):
        is_label = column not in columns.figures and not HAS_DIGIT(cell.text.split()[-1])
        reaches = (
            list(places) == [column, column + 1]
            and is_label
            and list(under[column + 1]) == [column + 1]
        )
        own += list(places) == [column] or reaches
        rest += not places
    return own + rest == len(under) and own >= MIN_UNDER_NAME * len(under)


def overlaps(box: Box, span: ColumnSpan) -> bool:
    return box.x1 > span[0] - ALIGN_SLACK and box.x0 < span[1] + ALIGN_SLACK


def match_full_row(
    cells: Sequence[PrintedCell], columns: Columns, *, may_shift: bool
) -> Columns | None:
    """Return the columns of a line, shifted elsewhere, if it is a row with all its cells and
    nothing else.
    """
    if columns.has_text:
        aligned = align_cells(cells, columns)
        if aligned is not None and columns.is_complete(aligned):
            return columns
    elif not all(is_figure(cell.text) for cell in cells):
        return None
    if len(cells) != len(columns.spans):
        return None
    shift = _find_shift(cells, columns.spans) if may_shift else 0.0
    if shift is None:
        return None
    shifted = replace(
        columns, spans=tuple((left + shift, right + shift) for left, right in columns.spans)
    )
    aligned = align_cells(cells, shifted)
    return (
        shifted
        if aligned is not None and None not in aligned and shifted.is_complete(aligned)
        else None
    )


def _find_shift(cells: Sequence[PrintedCell], spans: Sequence[ColumnSpan]) -> float | None:
    """Return how far cells are from their headers if all columns agree on it: by middle, left edge
    or right edge.
    """
    pairs = zip(cells, spans, strict=True)
    edges = [(cell.box.x0 - left, cell.box.x1 - right) for cell, (left, right) in pairs]
    choices = [((to_left + to_right) / 2, to_left, to_right) for to_left, to_right in edges]
    for shift in choices[-1]:
        if all(
            any(abs(shift - other) <= SHIFT_TOLERANCE for other in column) for column in choices
        ):
            return shift
    return None
