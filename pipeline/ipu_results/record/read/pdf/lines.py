"""Build lines of cells from the glyphs of a page, and divide a page into its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from ipu_results.record.read.pdf.glyphs import IN_FIGURE, Box, Glyph
from ipu_results.record.read.text import spell_out

# Glyphs are on one line if their middles follow within this share of their height.
SAME_LINE = 0.35
WORD_GAP = 0.15  # a wider gap is a blank between two words, in ems
CELL_GAP = 0.75  # a wider gap divides text into two cells, in ems
SIZE_SLACK = 0.03  # sizes of the digits of a figure differ by at most this share
BASELINE_SLACK = 0.05  # and their baselines by at most this, in ems
MIN_RISE = 0.15  # a footnote mark is raised by at least this, in ems
# Glyphs are printed on one another if they share more than this part of the narrower one.
OVERLAP = 0.5
# where the gutter of a page in two columns may be, as shares of the page width: best in the middle,
# and up to a tenth of the width from it
GUTTER_PLACES = [step / 200 for step in range(80, 121)]
GUTTER_PLACES.sort(key=lambda place: abs(place - 0.5))
GUTTER_CROSSINGS = 0.25  # share of the lines (titles, wide captions) that may cross a gutter

HAS_DIGIT = re.compile(r"\d").search


@dataclass(frozen=True, slots=True)
class Cell:
    """Text without a wide gap in it; `marks` are the raised letters and signs after it."""

    text: str
    marks: str
    size: float
    box: Box
    baseline: float
    glyphs: tuple[Glyph, ...]
    doubt: str = ""
    """Why it is unclear what is printed, if it is."""


@dataclass(frozen=True, slots=True)
class Line:
    """Cells on one baseline, from left to right."""

    cells: tuple[Cell, ...]

    @property
    def box(self) -> Box:
        return enclose(self.cells)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(cell.text for cell in self.cells)

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    @property
    def largest(self) -> Cell:
        return max(self.cells, key=lambda cell: cell.size)


Strip = tuple[Line, ...]
"""The lines of one column of a page, or of a whole page, from the top."""


def enclose(parts: Iterable[Glyph | Cell | Line]) -> Box:
    """Return the smallest box around parts of one page."""
    return reduce(Box.join, (part.box for part in parts))


def build_lines(glyphs: Sequence[Glyph]) -> Strip:
    """Build the lines of a page across all its columns."""
    rows: list[list[Glyph]] = []
    for glyph in sorted(glyphs, key=lambda glyph: glyph.box.middle):
        if not rows or _is_below(rows[-1][-1].box, glyph.box):
            rows.append([])
        rows[-1].append(glyph)
    return tuple(Line(tuple(_split_cells(row))) for row in rows)


def _is_below(above: Box, box: Box) -> bool:
    return box.middle - above.middle > SAME_LINE * max(box.height, above.height)


def _split_cells(row: Sequence[Glyph]) -> Iterator[Cell]:
    """Yield the cells of the glyphs of one line, from left to right."""
    row = sorted(row, key=lambda glyph: glyph.box.x0)
    start = 0
    right = row[0].box.x1
    for place, (glyph, following) in enumerate(pairwise(row), 1):
        right = max(right, glyph.box.x1)
        if following.box.x0 - right > CELL_GAP * max(glyph.size, following.size):
            yield _make_cell(row[start:place])
            start = place
    yield _make_cell(row[start:])


def _make_cell(glyphs: Sequence[Glyph]) -> Cell:
    """Return the text of glyphs that stand together, from left to right, and what is in doubt."""
    main = max(glyphs, key=lambda glyph: glyph.size)
    text = ""
    marks = ""
    doubts = [glyph.doubt for glyph in glyphs if glyph.doubt]
    last: Glyph | None = None
    for glyph in glyphs:
        if last and _is_over(last.box, glyph.box):
            doubts.append("other text is printed over it")
        rise = (main.baseline - glyph.baseline) / main.size
        is_small = glyph.size < (1 - SIZE_SLACK) * main.size
        if (is_small or abs(rise) > BASELINE_SLACK) and IN_FIGURE.fullmatch(glyph.text):
            doubts.append(
                "digits differ in size or height: a footnote mark or a part of the figure"
            )
        if is_small and rise >= MIN_RISE:
            marks += glyph.text
        else:
            if last and glyph.box.x0 - last.box.x1 >= WORD_GAP * main.size:
                text += " "
            text += glyph.text
        last = glyph
    box = enclose(glyphs)
    doubt = doubts[0] if doubts else ""
    return Cell(spell_out(text), marks, main.size, box, main.baseline, tuple(glyphs), doubt)


def _is_over(last: Box, box: Box) -> bool:
    return last.x1 - box.x0 > OVERLAP * min(last.width, box.width)


def split_columns(lines: Strip, gutter: float) -> tuple[Strip, Strip]:
    """Return the columns of a page in reading order; what crosses the gutter is in the first."""
    left = select_cells(lines, lambda cell: cell.box.x0 < gutter)
    right = select_cells(lines, lambda cell: cell.box.x0 >= gutter)
    return left, right


def select_cells(lines: Strip, is_chosen: Callable[[Cell], bool]) -> Strip:
    """Return the lines with some of their cells."""
    chosen = []
    for line in lines:
        cells = tuple(filter(is_chosen, line.cells))
        if cells:
            chosen.append(Line(cells))
    return tuple(chosen)


def find_gutter(lines: Strip, width: float) -> float | None:
    """Return the middle of the gap between two columns; None for a page in one column.

    The gutter is where the fewest cells cross, and of several such places the one nearest to the
    middle of the page.
    """
    boxes = [cell.box for line in lines for cell in line.cells]

    def count_crossings(place: float) -> int:
        return sum(box.x0 < place * width < box.x1 for box in boxes)

    gutter = min(GUTTER_PLACES, key=count_crossings)
    if count_crossings(gutter) > GUTTER_CROSSINGS * len(lines):
        return None
    return gutter * width
