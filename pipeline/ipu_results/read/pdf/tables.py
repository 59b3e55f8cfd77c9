"""Tables on the lines of pages: a header by its names, the rows under it by their places, and where they go on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ipu_results.read import paper
from ipu_results.read.pdf.words import Box, Cell, Line, Strip, union
from ipu_results.schema.layouts import TableHeader

ROW_GAP = 1.6
"""A row follows the one above with at most this gap, in heights of a line."""
BAND_PAD = 6.0
"""How far beyond its header a table reaches on either side, in points."""
ALIGN_SLACK = 2.0
"""A cell belongs to the column whose header it overlaps, or misses by so many points."""
SHIFT_TOLERANCE = 2.0
"""Cells of a table that goes on in another column of the page are shifted alike, within so many points."""
PAGES_APART = 1
"""A table goes on at most so many pages on."""

UNIT_ALONE = re.compile(r"[(\[][^()\[\]]+[)\]]")

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Header:
    """A table header: its layout, its cells, and the strip and the place of the line that it stands on."""

    layout: TableHeader
    cells: tuple[Cell, ...]
    strip: int
    place: int

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple((cell.box.x0, cell.box.x1) for cell in self.cells)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cell.text for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Found:
    """One printed row: a cell or None for each column, or, where they cannot be told, all `loose` cells."""

    strip: int
    place: int
    box: Box
    cells: tuple[Cell | None, ...]
    loose: tuple[Cell, ...] = ()


def headers_of(strips: Sequence[Strip], columns: int, layouts: Sequence[TableHeader]) -> list[Header]:
    """Every header in reading order: cells side by side whose names make up a layout.

    The first `columns` strips are columns of pages. The others are whole pages: there a header counts only where it
    stands alone on its line and has not been found in a column.
    """
    found: list[Header] = []
    for number, strip in enumerate(strips):
        for place, line in enumerate(strip):
            for layout, cells in headers_on(line, layouts):
                known = any(header.cells[0].box == cells[0].box for header in found)
                if number < columns or (cells == line.cells and not known):
                    found.append(with_units(Header(layout, cells, number, place), strip))
    return found


def with_units(header: Header, strip: Strip) -> Header:
    """The header with the units in brackets that stand on the next line, if there are any."""
    place = header.place + 1
    below = in_band(strip[place], header.spans) if place < len(strip) else ()
    if not below or not all(UNIT_ALONE.fullmatch(cell.text) for cell in below):
        return header
    units = {place: cell for cell in below for place, span in enumerate(header.spans) if overlaps(cell.box, span)}
    cells = tuple(with_unit(cell, units.get(column)) for column, cell in enumerate(header.cells))
    return replace(header, cells=cells, place=place)


def with_unit(cell: Cell, unit: Cell | None) -> Cell:
    return replace(cell, text=f"{cell.text} {unit.text}", box=union((cell.box, unit.box))) if unit else cell


def headers_on(line: Line, layouts: Sequence[TableHeader]) -> Iterator[tuple[TableHeader, tuple[Cell, ...]]]:
    widths = sorted({len(layout.names) for layout in layouts}, reverse=True)
    start = 0
    while start < len(line.cells):
        windows = [line.cells[start : start + width] for width in widths]
        known = ((paper.layout_of([cell.text for cell in window], layouts), window) for window in windows)
        layout, window = next(((layout, window) for layout, window in known if layout), (None, line.cells[:1]))
        if layout is not None:
            yield layout, window
        start += len(window)


def rows_under(header: Header, strips: Sequence[Strip], names: frozenset[str]) -> list[Found]:
    """The rows under a header, and those of the same table further down or in the next columns of the page."""
    found = list(run(strips, header.strip, header.place + 1, header.spans, union(cell.box for cell in header.cells)))
    while (start := next_run(strips, names, header, found)) is not None:
        found += run(strips, *start, None)
    return found


def run(strips: Sequence[Strip], strip: int, place: int, spans: Sequence[Span], above: Box | None) -> Iterator[Found]:
    """Rows that follow one another closely from a place on."""
    for number, line in enumerate(strips[strip][place:], place):
        cells = in_band(line, spans)
        if not cells:
            continue
        box = union(cell.box for cell in cells)
        if above is not None and box.top - above.bottom > ROW_GAP * above.height:
            return
        placed = align(cells, spans)
        if placed is not None:
            yield Found(strip, number, box, placed)
        elif all(paper.is_figure(word) for cell in cells for word in cell.text.split()):
            yield Found(strip, number, box, (), cells)
        else:
            return
        above = box


def in_band(line: Line, spans: Sequence[Span]) -> tuple[Cell, ...]:
    left, right = spans[0][0] - BAND_PAD, spans[-1][1] + BAND_PAD
    return tuple(cell for cell in line.cells if cell.box.x1 > left and cell.box.x0 < right)


def align(cells: Sequence[Cell], spans: Sequence[Span]) -> tuple[Cell | None, ...] | None:
    """The cell of each column; None for text, and for cells that overlap no column, two, or one another's."""
    placed: list[Cell | None] = [None] * len(spans)
    for cell in cells:
        columns = [place for place, span in enumerate(spans) if overlaps(cell.box, span)]
        if len(columns) != 1 or placed[columns[0]] is not None:
            return None
        placed[columns[0]] = cell
    whole = len(cells) > 1 and any(character.isdigit() for cell in cells for character in cell.text)
    return tuple(placed) if whole or all(paper.is_figure(cell.text) for cell in cells) else None


def overlaps(box: Box, span: Span) -> bool:
    return box.x1 > span[0] - ALIGN_SLACK and box.x0 < span[1] + ALIGN_SLACK


def next_run(
    strips: Sequence[Strip], names: frozenset[str], header: Header, found: Sequence[Found]
) -> tuple[int, int, tuple[Span, ...]] | None:
    """Where the table goes on, with the columns there; None once a caption or the header of another comes first."""
    strip, place = (found[-1].strip, found[-1].place) if found else (header.strip, header.place)
    page = (found[-1].box if found else header.cells[0].box).page
    for number, start in ((number, place + 1 if number == strip else 0) for number in range(strip, len(strips))):
        here = number == header.strip
        for line_number, line in enumerate(strips[number][start:], start):
            cells = in_band(line, header.spans) if here else line.cells
            if cells and (line.box.page > page + PAGES_APART or closes(cells, names)):
                return None
            if spans := full_row(cells, header.spans, here=here):
                first = first_of_run(strips[number], line_number, start, spans)
                return None if first is None else (number, first, spans)
    return None


def closes(cells: Sequence[Cell], names: frozenset[str]) -> bool:
    captioned = paper.is_caption(" ".join(cell.text for cell in cells))
    return captioned or any(paper.folded(cell.text) in names for cell in cells)


def full_row(cells: Sequence[Cell], spans: Sequence[Span], *, here: bool) -> tuple[Span, ...] | None:
    """The columns that a line has if it is a row with all its cells and nothing else: `spans`, shifted elsewhere."""
    if len(cells) != len(spans) or not all(paper.is_figure(cell.text) for cell in cells):
        return None
    shift = 0.0 if here else shift_of(cells, spans)
    if shift is None:
        return None
    there = tuple((left + shift, right + shift) for left, right in spans)
    placed = align(cells, there)
    return there if placed is not None and None not in placed else None


def shift_of(cells: Sequence[Cell], spans: Sequence[Span]) -> float | None:
    """How far cells stand from their headers where all columns agree on it: by left edge, middle or right edge."""
    choices = [shifts(cell.box, span) for cell, span in zip(cells, spans, strict=True)]
    for shift in choices[-1]:
        if all(any(abs(shift - other) <= SHIFT_TOLERANCE for other in column) for column in choices):
            return shift
    return None


def shifts(box: Box, span: Span) -> tuple[float, float, float]:
    left, right = box.x0 - span[0], box.x1 - span[1]
    return (left + right) / 2, left, right


def first_of_run(strip: Strip, place: int, earliest: int, spans: Sequence[Span]) -> int | None:
    """The first line of the rows that hold the row at `place`; None where another header stands above them."""
    below = strip[place].box
    for number in range(place - 1, earliest - 1, -1):
        cells = in_band(strip[number], spans)
        if not cells:
            continue
        box = union(cell.box for cell in cells)
        if below.top - box.bottom > ROW_GAP * box.height:
            return place
        if not all(paper.is_figure(cell.text) for cell in cells):
            return None if len(cells) > 1 or is_narrow(cells[0].box, spans) else place
        place, below = number, box
    return place


def is_narrow(box: Box, spans: Sequence[Span]) -> bool:
    """Whether a lone cell stays within one column, as a header does and prose does not."""
    return sum(overlaps(box, span) for span in spans) <= 1
