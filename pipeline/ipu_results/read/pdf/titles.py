"""Tell the titles of groups of rows from the first lines of wrapped labels: by font, distance and number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ipu_results.read.pdf.columns import ALIGN_SLACK
from ipu_results.read.pdf.words import Box, PrintedCell

MIN_TITLES = 2
"""A single line in a font of its own may be a part of a label."""
MIN_ROWS_OF_A_GROUP = 2
"""Groups have at least this many rows on average: a line over every row is a part of its label."""
TITLE_GAP = 1.2
"""The row above a title is at least this many times as far away as the row below."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of a table: its cells from left to right, whether it is text that is not a row, or a complete row."""

    box: Box
    cells: Sequence[PrintedCell]
    is_text: bool
    is_whole: bool


def find_titles(lines: Sequence[TableLine]) -> frozenset[int]:
    """Return which lines of a table are titles of the rows below them, by their numbers.

    A title is alone on its line, over the left edge of a label, and nearer to that row than to the one above. A table
    has several titles, all in one font that no label has, and at least twice as many complete rows.
    """
    titles: dict[str, list[int]] = defaultdict(list)
    for number in range(len(lines) - 1):
        if (font := _find_title_font(lines, number)) and not any(
            _has_font(line, lines[number], font) for line in lines
        ):
            titles[font].append(number)
    count = sum(line.is_whole for line in lines)
    kept = [part for part in titles.values() if MIN_TITLES <= len(part) <= count / MIN_ROWS_OF_A_GROUP]
    return frozenset(kept[0]) if len(titles) == len(kept) == 1 else frozenset()


def _find_title_font(lines: Sequence[TableLine], number: int) -> str:
    """Return the font of a line over the label of the row below it, and apart from the row above; `""` if it is not."""
    line, below = lines[number], lines[number + 1]
    above = lines[number - 1] if number and lines[number - 1].box.page == line.box.page else None
    if not line.is_text or below.is_text or len(line.cells) != 1 or len(line.cells[0].fonts) != 1:
        return ""
    is_over = below.box.page == line.box.page and abs(below.box.x0 - line.box.x0) <= ALIGN_SLACK
    pitch = below.box.middle - line.box.middle
    is_apart = above is None or line.box.middle - above.box.middle >= TITLE_GAP * pitch
    return min(line.cells[0].fonts) if is_over and is_apart else ""


def _has_font(line: TableLine, title: TableLine, font: str) -> bool:
    """Check whether a row may have a label in the font of a title."""
    labels = [cell for cell in line.cells if cell.box.x0 < title.box.x1 and cell.box.x1 > title.box.x0]
    return not line.is_text and any(cell.fonts & {font, ""} for cell in labels)
