"""Build lines of cells from the glyphs of a page, and divide a page into its columns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ipu_results.read.pdf_glyphs import Box, Glyph
from ipu_results.read.text import spell_out

# Glyphs are on one line if their middles differ by less than this share of their height.
SAME_LINE = 0.35
WORD_GAP = 0.15  # a wider gap is a blank between two words, in ems
CELL_GAP = 0.75  # a wider gap divides text into two cells, in ems
SIZE_SLACK = 0.03  # sizes of the digits of a figure differ by at most this share
BASELINE_SLACK = 0.05  # and their baselines by at most this, in ems
MIN_RISE = 0.15  # a footnote mark is raised by at least this, in ems
# Glyphs are printed on one another if they share more than this part of the narrower one.
OVERLAP = 0.5
# where the gutter of a page in two columns may be, as shares of the page width
GUTTER_ZONE = (0.4, 0.6)
GUTTER_STEPS = 200  # places across the page width at which a gutter is searched
GUTTER_CROSSINGS = 0.25  # share of the lines (titles, wide captions) that may cross a gutter

HAS_DIGIT = re.compile(r"\d").search
IN_FIGURE = re.compile(r"[\d.,+\-\u2212]")


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
    box: Box

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)

    @property
    def largest(self) -> Cell:
        return max(self.cells, key=lambda cell: cell.size)


Strip = tuple[Line, ...]
"""The lines of one column of a page, or of a whole page, from the top."""


def enclose(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes of one page."""
    pages, lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(pages[0], min(lefts), min(tops), max(rights), max(bottoms))


def make_line(cells: Sequence[Cell]) -> Line:
    return Line(tuple(cells), enclose(cell.box for cell in cells))


def build_lines(glyphs: Sequence[Glyph]) -> Strip:
    """Build the lines of a page across all its columns."""
    return tuple(make_line([*_split_cells(row)]) for row in _group_rows(glyphs))


def _group_rows(glyphs: Sequence[Glyph]) -> list[list[Glyph]]:
    """Group glyphs on one line, left to right; the largest open a row, smaller ones join it."""
    runs: dict[tuple[float, float], list[Glyph]] = defaultdict(list)
    for glyph in glyphs:
        runs[-round(glyph.size, 1), round(glyph.baseline, 1)].append(glyph)
    rows: list[list[Glyph]] = []
    for _, run in sorted(runs.items()):
        box = run[0].box
        nearest = min(rows, key=lambda row: abs(row[0].box.middle - box.middle), default=[])
        height = nearest[0].box.height if nearest else 0.0
        if nearest and abs(nearest[0].box.middle - box.middle) < SAME_LINE * height:
            nearest += run
        else:
            rows.append(run)
    rows.sort(key=lambda row: row[0].box.middle)
    return [sorted(row, key=lambda glyph: glyph.box.x0) for row in rows]


def _split_cells(row: Sequence[Glyph]) -> Iterator[Cell]:
    start = 0
    right = row[0].box.x1
    for place, (glyph, following) in enumerate(pairwise(row), 1):
        right = max(right, glyph.box.x1)
        if following.box.x0 - right > CELL_GAP * max(glyph.size, following.size):
            yield make_cell(row[start:place])
            start = place
    yield make_cell(row[start:])


def make_cell(glyphs: Sequence[Glyph]) -> Cell:
    """Return the text of glyphs that stand together, from left to right, and what is in doubt."""
    main = max(glyphs, key=lambda glyph: glyph.size)
    text = marks = ""
    doubts = [glyph.doubt for glyph in glyphs if glyph.doubt]
    last: Glyph | None = None
    for glyph in glyphs:
        if last and _is_over(last, glyph):
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
            is_apart = last and glyph.box.x0 - last.box.x1 >= WORD_GAP * main.size
            text += f" {glyph.text}" if is_apart else glyph.text
        last = glyph
    if HAS_DIGIT(text) and not all(glyph.is_proven for glyph in glyphs):
        doubts.append("its font does not prove its digits")
    box = enclose(glyph.box for glyph in glyphs)
    doubt = doubts[0] if doubts else ""
    return Cell(spell_out(text), marks, main.size, box, main.baseline, tuple(glyphs), doubt)


def _is_over(last: Glyph, glyph: Glyph) -> bool:
    narrow = min(last.box.x1 - last.box.x0, glyph.box.x1 - glyph.box.x0)
    return last.box.x1 - glyph.box.x0 > OVERLAP * narrow


def split_columns(lines: Strip, gutter: float) -> tuple[Strip, ...]:
    """Return the columns of a page in reading order; what crosses the gutter goes with the first."""
    sides = (
        [[cell for cell in line.cells if (cell.box.x0 >= gutter) == right] for line in lines]
        for right in (False, True)
    )
    return tuple(tuple(make_line(cells) for cells in side if cells) for side in sides)


def find_gutter(lines: Strip, width: float) -> float | None:
    """Return the middle of the gap between two columns; None for a page in one column.

    The gutter is where the fewest cells cross, and of several such places the one nearest to the
    middle of the page.
    """
    boxes = [cell.box for line in lines for cell in line.cells]
    first, last = (int(GUTTER_STEPS * share) for share in GUTTER_ZONE)
    places = [width * step / GUTTER_STEPS for step in range(first, last + 1)]
    crossings = {x: sum(box.x0 < x < box.x1 for box in boxes) for x in places}
    gutter = min(places, key=lambda x: (crossings[x], abs(x - width / 2)))
    return gutter if crossings[gutter] <= GUTTER_CROSSINGS * len(lines) else None
