"""Build lines of cells from the glyphs of a page, and divide a page into its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ipu_results.record.read.pdf_glyphs import IN_FIGURE, Box, Glyph
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
# where the gutter of a page in two columns may be, as shares of the page width, best first
GUTTER_PLACES = sorted((step / 200 for step in range(80, 121)), key=lambda place: abs(place - 0.5))
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
        return enclose(cell.box for cell in self.cells)

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


def enclose(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes of one page."""
    pages, lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(pages[0], min(lefts), min(tops), max(rights), max(bottoms))


def build_lines(glyphs: Sequence[Glyph]) -> Strip:
    """Build the lines of a page across all its columns."""
    return tuple(Line(tuple(_split_cells(row))) for row in _group_rows(glyphs))


def _group_rows(glyphs: Sequence[Glyph]) -> list[list[Glyph]]:
    """Group glyphs on one line, left to right, from the top."""
    rows: list[list[Glyph]] = []
    last: Glyph | None = None
    for glyph in sorted(glyphs, key=lambda glyph: glyph.box.middle):
        height = max(glyph.box.height, last.box.height) if last else 0.0
        if last is None or glyph.box.middle - last.box.middle > SAME_LINE * height:
            rows.append([])
        rows[-1].append(glyph)
        last = glyph
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
    box = enclose(glyph.box for glyph in glyphs)
    doubt = doubts[0] if doubts else ""
    return Cell(spell_out(text), marks, main.size, box, main.baseline, tuple(glyphs), doubt)


def _is_over(last: Glyph, glyph: Glyph) -> bool:
    narrow = min(last.box.width, glyph.box.width)
    return last.box.x1 - glyph.box.x0 > OVERLAP * narrow


def split_columns(lines: Strip, gutter: float) -> tuple[Strip, Strip]:
    """Return the columns of a page in reading order; what crosses the gutter goes with the first."""
    return (
        select_cells(lines, lambda cell: cell.box.x0 < gutter),
        select_cells(lines, lambda cell: cell.box.x0 >= gutter),
    )


def select_cells(lines: Strip, is_chosen: Callable[[Cell], bool]) -> Strip:
    """Return the lines with some of their cells."""
    chosen = (tuple(filter(is_chosen, line.cells)) for line in lines)
    return tuple(Line(cells) for cells in chosen if cells)


def find_gutter(lines: Strip, width: float) -> float | None:
    """Return the middle of the gap between two columns; None for a page in one column.

    The gutter is where the fewest cells cross, and of several such places the one nearest to the
    middle of the page.
    """
    boxes = [cell.box for line in lines for cell in line.cells]
    crossings = {
        place: sum(box.x0 < place * width < box.x1 for box in boxes) for place in GUTTER_PLACES
    }
    gutter = min(crossings, key=crossings.__getitem__)
    return gutter * width if crossings[gutter] <= GUTTER_CROSSINGS * len(lines) else None
