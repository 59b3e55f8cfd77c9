"""Find captions on the lines of pages, and assign them to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ipu_results.read.paper import terms
from ipu_results.read.pdf.tables import PrintedTable
from ipu_results.read.pdf.words import Box, PrintedCell, PrintedLine, Strip, enclose, make_line
from ipu_results.schema.table_headers import TableHeader

CAPTION_WORD_GAP = 2.0
"""A caption continues across a gap of at most this, in ems: justified lines have wide gaps."""
CAPTION_LEADING = 0.6
"""The next line of a caption follows with at most this gap, in heights of a line."""
CAPTION_SIZE = 0.5
"""The lines of a caption differ in size by at most this, in points."""
MAX_CAPTION_LINES = 8
PROSE_WIDTH = 0.8
"""A line of prose is at least this share as wide as its column."""
NEAR_CAPTION = 40.0
"""A caption that does not name what the table measures is at most this far away from it, in points."""
NEAR_HEADER = 200.0
"""The header that a caption promises is at most this far away, in points."""


@dataclass(frozen=True, slots=True)
class Caption:
    """Text and place of one caption."""

    text: str
    box: Box


def find_captions(strips: Sequence[Strip], taken: frozenset[Box], names: frozenset[str]) -> list[Caption]:
    """Find captions in reading order; `taken` are the boxes of cells that belong to tables."""
    captions = []
    for strip in strips:
        for place, line in enumerate(strip):
            for start, cell in enumerate(line.cells):
                if terms.is_caption(cell.text) and not _is_in_prose(strip, place, cell):
                    lines = list(_read_caption(strip, place, start, taken, names))
                    text = terms.join_lines(line.text for line in lines)
                    captions.append(Caption(text, enclose(line.box for line in lines)))
    return captions


def assign_to_tables(
    tables: Sequence[PrintedTable], captions: Sequence[Caption], headers: Sequence[TableHeader]
) -> dict[int, int]:
    """Return the caption of each table, by their numbers: the nearest that names its measure, or else one close by."""
    offers = []
    for place, table in enumerate(tables):
        parts = table.parts
        pages = {part.page for part in parts}
        for number, caption in enumerate(captions):
            named = terms.mentions_measure(caption.text, table.header.header, headers)
            distances = [gap for part in parts if (gap := _vertical_gap(part, caption.box)) is not None]
            nearest = min(distances, default=NEAR_HEADER)
            if (named and caption.box.page in pages) or nearest <= NEAR_CAPTION:
                offers.append((not named, nearest, place, number))
    return terms.assign_captions(offers)


def find_promised_header(
    caption: Caption, strips: Sequence[Strip], taken: frozenset[Box], names: frozenset[str]
) -> PrintedLine | None:
    """Return the line nearest to a caption that has a known name but is not a known header."""
    candidates: list[tuple[float, int, PrintedLine]] = []
    for strip in strips:
        for place, line in enumerate(strip):
            if any(terms.normalise_text(cell.text) in names and cell.box not in taken for cell in line.cells):
                gap = _vertical_gap(line.box, caption.box)
                if gap is not None and gap <= NEAR_HEADER:
                    candidates.append((gap, place, line))
    return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None


def _is_in_prose(strip: Strip, place: int, cell: PrintedCell) -> bool:
    """Check whether a line of prose is close above: its sentence merely names a table."""
    if place == 0:
        return False
    above = strip[place - 1]
    width = max(line.box.x1 for line in strip) - min(line.box.x0 for line in strip)
    return (
        cell.box.top - above.box.bottom <= CAPTION_LEADING * cell.box.height
        and above.box.x1 - above.box.x0 >= PROSE_WIDTH * width
        and not any(terms.is_figure(part.text) for part in above.cells)
    )


def _read_caption(
    strip: Strip, place: int, start: int, taken: frozenset[Box], names: frozenset[str]
) -> Iterator[PrintedLine]:
    """Yield the lines of a caption from its first cell on."""
    last = _take_together(strip[place].cells[start:])
    yield last
    count = 1
    for line in strip[place + 1 :]:
        cells = [cell for cell in line.cells if cell.box.x1 > last.box.x0 and cell.box.x0 < last.box.x1]
        if not cells:
            continue
        if count == MAX_CAPTION_LINES or not _continues(last, cells, taken, names):
            return
        last = _take_together(line.cells[line.cells.index(cells[0]) :])
        count += 1
        yield last


def _take_together(cells: Sequence[PrintedCell]) -> PrintedLine:
    """Return the first of `cells` and those that follow without a very wide gap."""
    together = [cells[0]]
    for cell in cells[1:]:
        if cell.box.x0 - together[-1].box.x1 > CAPTION_WORD_GAP * cell.size:
            break
        together.append(cell)
    return make_line(together)


def _continues(last: PrintedLine, cells: Sequence[PrintedCell], taken: frozenset[Box], names: frozenset[str]) -> bool:
    """Check whether `cells` are the next line of the caption, and neither a table nor metadata."""
    first = cells[0]
    close = first.box.top - last.box.bottom <= CAPTION_LEADING * first.box.height
    alike = abs(first.size - last.cells[0].size) <= CAPTION_SIZE or terms.CAPTION_NUMBER.fullmatch(last.text)
    if not close or not alike or terms.split_metadata(first.text):
        return False
    return not any(
        cell.box in taken or terms.is_figure(cell.text) or terms.normalise_text(cell.text) in names for cell in cells
    )


def _vertical_gap(first: Box, other: Box) -> float | None:
    """Return the height between two boxes; None unless one is above the other on the same page."""
    if first.page != other.page or first.x1 < other.x0 or other.x1 < first.x0:
        return None
    return max(first.top - other.bottom, other.top - first.bottom, 0.0)
