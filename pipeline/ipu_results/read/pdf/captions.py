"""Captions on the lines of pages, and which table each belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ipu_results.read import paper
from ipu_results.read.pdf.words import Box, Cell, Line, Strip, line_of, union
from ipu_results.schema.layouts import TableHeader

CAPTION_WORD_GAP = 2.0
"""A caption goes on across a gap of at most so many ems; lines that are set justified have wide gaps."""
CAPTION_LEADING = 0.6
"""The next line of a caption follows with at most this gap, in heights of a line."""
CAPTION_SIZE = 0.5
"""The lines of a caption differ in size by at most so many points."""
MAX_CAPTION_LINES = 4
PROSE_WIDTH = 0.8
"""A line of prose is at least this share as wide as its column."""
NEAR = 40.0
"""A caption that does not name what the table measures is at most so many points away from it."""
HEADER_NEAR = 200.0
"""The header that a caption promises is at most so many points away."""


@dataclass(frozen=True, slots=True)
class Caption:
    text: str
    box: Box


def captions_of(strips: Sequence[Strip], taken: frozenset[Box], names: frozenset[str]) -> list[Caption]:
    """Captions in reading order; `taken` are the boxes of cells that belong to tables."""
    found = []
    for strip in strips:
        for place, line in enumerate(strip):
            for start, cell in enumerate(line.cells):
                if paper.is_caption(cell.text) and not in_prose(strip, place, cell):
                    lines = list(caption_lines(strip, place, start, taken, names))
                    texts = (" ".join(cell.text for cell in line.cells) for line in lines)
                    found.append(Caption(paper.join_lines(texts), union(line.box for line in lines)))
    return found


def in_prose(strip: Strip, place: int, cell: Cell) -> bool:
    """Whether a line of prose stands close above: its sentence merely names a table."""
    width = max(line.box.x1 for line in strip) - min(line.box.x0 for line in strip)
    return any(
        cell.box.top - other.box.bottom <= CAPTION_LEADING * cell.box.height
        and other.box.x1 - other.box.x0 >= PROSE_WIDTH * width
        and not any(paper.is_figure(part.text) for part in other.cells)
        for other in strip[max(place - 1, 0) : place]
    )


def caption_lines(strip: Strip, place: int, start: int, taken: frozenset[Box], names: frozenset[str]) -> Iterator[Line]:
    """The lines of a caption from its first cell on."""
    last = line_of(together(strip[place].cells[start:]))
    yield last
    count = 1
    for line in strip[place + 1 :]:
        cells = [cell for cell in line.cells if cell.box.x1 > last.box.x0 and cell.box.x0 < last.box.x1]
        if not cells:
            continue
        if count == MAX_CAPTION_LINES or not goes_on(last, cells, taken, names):
            return
        last = line_of(together(line.cells[line.cells.index(cells[0]) :]))
        count += 1
        yield last


def together(cells: Sequence[Cell]) -> list[Cell]:
    """The first of `cells` and those that follow without a very wide gap."""
    found = [cells[0]]
    for cell in cells[1:]:
        if cell.box.x0 - found[-1].box.x1 > CAPTION_WORD_GAP * cell.size:
            break
        found.append(cell)
    return found


def goes_on(last: Line, cells: Sequence[Cell], taken: frozenset[Box], names: frozenset[str]) -> bool:
    """Whether `cells` are the next line of the caption, and neither a table nor a fact."""
    first = cells[0]
    close = first.box.top - last.box.bottom <= CAPTION_LEADING * first.box.height
    alike = abs(first.size - last.cells[0].size) <= CAPTION_SIZE or paper.CAPTION_LABEL.fullmatch(last.text)
    if not close or not alike or paper.split_fact(first.text):
        return False
    return not any(
        cell.box in taken or paper.is_figure(cell.text) or paper.folded(cell.text) in names for cell in cells
    )


def distance(first: Box, other: Box) -> float | None:
    """The height between two boxes that stand above each other on one page."""
    if first.page != other.page or first.x1 < other.x0 or other.x1 < first.x0:
        return None
    return max(first.top - other.bottom, other.top - first.bottom, 0.0)


def give_captions(
    tables: Sequence[tuple[TableHeader, Sequence[Box]]], captions: Sequence[Caption], layouts: Sequence[TableHeader]
) -> dict[int, int]:
    """The caption of each table: of those that name its measure the nearest, or else one close by."""
    offers = []
    for place, (layout, parts) in enumerate(tables):
        for number, caption in enumerate(captions):
            named = paper.mentions(caption.text, layout, layouts)
            apart = [away for part in parts if (away := distance(part, caption.box)) is not None]
            nearest = min(apart, default=HEADER_NEAR)
            pages = {part.page for part in parts}
            if (named and caption.box.page in pages) or nearest <= NEAR:
                offers.append((not named, nearest, place, number))
    return paper.closest_captions(offers)


def promised_header(
    caption: Caption, strips: Sequence[Strip], taken: frozenset[Box], names: frozenset[str]
) -> Line | None:
    """The line nearest to a caption that has a known name on it but makes up no known header."""
    found: list[tuple[float, int, Line]] = []
    for strip in strips:
        for place, line in enumerate(strip):
            if any(paper.folded(cell.text) in names and cell.box not in taken for cell in line.cells):
                away = distance(line.box, caption.box)
                if away is not None and away <= HEADER_NEAR:
                    found.append((away, place, line))
    return min(found, key=lambda entry: entry[:2])[2] if found else None
