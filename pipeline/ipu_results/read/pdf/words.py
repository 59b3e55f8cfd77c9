"""Words of a page with their places, put together to cells, lines and columns of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ipu_results.read.paper import plain

SAME_LINE = 0.35
"""Words are on one line where their middles differ by less than this share of their height."""
WORD_GAP = 0.12
"""Words of one cell are set solid below this gap, in ems."""
CELL_GAP = 0.75
"""A gap from which on words are two cells, in ems."""
MARK_SIZE = 0.8
"""A raised word of at most this share of the size is a footnote mark."""
MARK_RISE = 0.1
"""By how much, in ems, the foot of a mark is above that of the word it follows."""
GUTTER_ZONE = (0.4, 0.6)
"""Where the gutter of a page in two columns may be, as shares of the page width."""
LONG_LINE = 0.25
"""A line of prose is at least this share of the page wide."""
GUTTER_CROSSINGS = 0.25
"""Share of the long lines (titles, wide captions) that may cross a gutter."""
LEAST_LONG_LINES = 3
"""So many long lines must keep to their side of a gutter."""


@dataclass(frozen=True, slots=True)
class Box:
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

    def __str__(self) -> str:
        return f"page {self.page}, box {self.x0:.1f},{self.top:.1f},{self.x1:.1f},{self.bottom:.1f}"


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    size: float
    box: Box


@dataclass(frozen=True, slots=True)
class Cell:
    """Words without a wide gap between them; `marks` are the raised signs after them."""

    text: str
    marks: str
    size: float
    box: Box


@dataclass(frozen=True, slots=True)
class Line:
    cells: tuple[Cell, ...]
    box: Box

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


Strip = tuple[Line, ...]
"""The lines of one column of a page, from the top."""


def union(boxes: Iterable[Box]) -> Box:
    """The smallest box around boxes of one page."""
    found = list(boxes)
    return Box(
        found[0].page,
        min(box.x0 for box in found),
        min(box.top for box in found),
        max(box.x1 for box in found),
        max(box.bottom for box in found),
    )


def lines_of(words: Sequence[Word]) -> Strip:
    """The lines of a page across all its columns."""
    return tuple(line_of(cells_of(row)) for row in rows_of(words))


def columns_of(lines: Strip, width: float) -> tuple[Strip, ...]:
    """The columns of a page in reading order; what crosses the gutter goes with the first."""
    gutter = gutter_of(lines, width)
    if gutter is None:
        return (lines,)
    return tuple(part_of(lines, gutter, right=False)), tuple(part_of(lines, gutter, right=True))


def rows_of(words: Sequence[Word]) -> list[list[Word]]:
    """Words on one baseline, left to right; the largest words found a line, smaller ones join it."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (-round(word.size, 1), word.box.top)):
        row = next((row for row in reversed(rows) if on_one_line(row[0].box, word.box)), None)
        if row is None:
            rows.append([word])
        else:
            row.append(word)
    rows.sort(key=lambda row: row[0].box.middle)
    return [sorted(row, key=lambda word: word.box.x0) for row in rows]


def on_one_line(first: Box, other: Box) -> bool:
    return abs(first.middle - other.middle) < SAME_LINE * max(first.height, other.height)


def cells_of(row: Sequence[Word]) -> Iterator[Cell]:
    start = 0
    for place, (word, following) in enumerate(pairwise(row), 1):
        if following.box.x0 - word.box.x1 > CELL_GAP * max(word.size, following.size):
            yield cell_of(row[start:place])
            start = place
    yield cell_of(row[start:])


def cell_of(words: Sequence[Word]) -> Cell:
    largest = max(words, key=lambda word: word.size)
    marks = [word for word in words if is_mark(word, largest)]
    body = [word for word in words if word not in marks]
    text = body[0].text
    for word, following in pairwise(body):
        gap = following.box.x0 - word.box.x1
        text += following.text if gap < WORD_GAP * largest.size else f" {following.text}"
    return Cell(plain(text), "".join(mark.text for mark in marks), largest.size, union(word.box for word in words))


def is_mark(word: Word, largest: Word) -> bool:
    raised = largest.box.bottom - word.box.bottom > MARK_RISE * largest.size
    return raised and word.size <= MARK_SIZE * largest.size


def line_of(cells: Iterable[Cell]) -> Line:
    found = tuple(cells)
    return Line(found, union(cell.box for cell in found))


def gutter_of(lines: Sequence[Line], width: float) -> float | None:
    """The middle of the gap between two columns; None on a page in one column."""
    long = [cell.box for line in lines for cell in line.cells if cell.box.x1 - cell.box.x0 >= LONG_LINE * width]
    boxes = [cell.box for line in lines for cell in line.cells]
    places = [width * share / 200 for share in range(int(200 * GUTTER_ZONE[0]), int(200 * GUTTER_ZONE[1]) + 1)]
    crossings = {x: sum(box.x0 < x < box.x1 for box in boxes) for x in places}
    least = min(crossings.values())
    best = min((x for x in places if crossings[x] == least), key=lambda x: abs(x - width / 2))
    crossing = sum(box.x0 < best < box.x1 for box in long)
    if len(long) - crossing < LEAST_LONG_LINES or crossing > GUTTER_CROSSINGS * len(long):
        return None
    return best


def part_of(lines: Iterable[Line], gutter: float, *, right: bool) -> Iterator[Line]:
    for line in lines:
        cells = [cell for cell in line.cells if (cell.box.x0 >= gutter) == right]
        if cells:
            yield line_of(cells)
