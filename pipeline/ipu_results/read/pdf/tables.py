"""Find tables on the lines of pages: a header by its names, the rows under it by their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ipu_results.read.paper import terms
from ipu_results.read.pdf.words import Box, PrintedCell, PrintedLine, Strip, enclose
from ipu_results.schema.table_headers import TableHeader, normalise_header

ROW_GAP = 1.6
"""A row follows the one above with at most this gap, in heights of a line."""
ROW_OVERLAP = 0.3
"""Rows overlap by at most this share of the height of the lower one."""
MARK_SIZE = 0.92
"""A row that lacks cells has at least this share of the size of the next one, or it is a mark of it."""
BAND_PAD = 6.0
"""How far beyond its header a table reaches on either side, in points."""
ALIGN_SLACK = 2.0
"""A cell belongs to the column whose header it overlaps, or misses by at most this, in points."""
SHIFT_TOLERANCE = 2.0
"""Columns of a table that continues in another page column shift alike, to within this, in points."""
MAX_PAGES_APART = 1
"""A table continues at most this many pages later."""

UNIT_ALONE = re.compile(r"[(\[][^()\[\]]+[)\]]")

ColumnSpan = tuple[float, float]
"""Left and right edge of a column, in points."""


@dataclass(frozen=True, slots=True)
class PrintedHeader:
    """The header cells of a table, the known headers that they match, and the place of their line in its strip.

    They match several headers if the tables of these are printed as one, with the labels of the rows printed once.
    """

    headers: tuple[TableHeader, ...]
    cells: tuple[PrintedCell, ...]
    strip: int
    place: int

    @property
    def header(self) -> TableHeader:
        return self.headers[0]

    @property
    def spans(self) -> tuple[ColumnSpan, ...]:
        return tuple((cell.box.x0, cell.box.x1) for cell in self.cells)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cell.text for cell in self.cells)


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One row: a cell or None for each column, or all `loose` cells if their columns are ambiguous."""

    strip: int
    place: int
    box: Box
    cells: tuple[PrintedCell | None, ...]
    loose: tuple[PrintedCell, ...] = ()


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A header with the rows under it."""

    header: PrintedHeader
    rows: Sequence[PrintedRow]

    @property
    def cell_boxes(self) -> Iterator[Box]:
        yield from (cell.box for cell in self.header.cells)
        for row in self.rows:
            yield from (cell.box for cell in (*row.cells, *row.loose) if cell is not None)

    @property
    def parts(self) -> list[Box]:
        """A box for each stretch of the table that is in one piece."""
        parts = [enclose(cell.box for cell in self.header.cells)]
        strip, place = self.header.strip, self.header.place
        for row in self.rows:
            if (row.strip, row.place) == (strip, place + 1):
                parts[-1] = enclose((parts[-1], row.box))
            else:
                parts.append(row.box)
            strip, place = row.strip, row.place
        return parts

    @property
    def locator(self) -> str:
        return "; ".join(map(str, self.parts))


def find_tables(strips: Sequence[Strip], columns: int, headers: Sequence[TableHeader]) -> list[PrintedTable]:
    """Find every table in reading order. The first `columns` strips are columns of pages, the others whole pages."""
    names = terms.known_names(headers)
    tables = (
        PrintedTable(header, _find_rows(header, strips, names)) for header in _find_headers(strips, columns, headers)
    )
    return [part for table in tables for part in _divide(table)]


def _divide(table: PrintedTable) -> Iterator[PrintedTable]:
    """Yield the tables that are printed as one, each with its columns alone."""
    for header in table.header.headers:
        kept = [place for place, name in enumerate(table.header.names) if normalise_header(name) in header.keys]
        cells = tuple(table.header.cells[place] for place in kept)
        rows = [
            row if row.loose else replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows
        ]
        yield PrintedTable(replace(table.header, headers=(header,), cells=cells), rows)


def _find_headers(strips: Sequence[Strip], columns: int, headers: Sequence[TableHeader]) -> list[PrintedHeader]:
    """Find every header: neighbouring cells whose names are those of a known one.

    On a whole page a header counts only if it is alone on its line, and has cells that no header in a column has.
    """
    printed: list[PrintedHeader] = []
    for number, strip in enumerate(strips):
        for place, line in enumerate(strip):
            for matches, cells in _match_headers(line, headers):
                boxes = {cell.box for cell in cells}
                parts = [other for other in printed if any(cell.box in boxes for cell in other.cells)]
                is_wider = cells == line.cells and sum(len(part.cells) for part in parts) < len(cells)
                if number < columns or is_wider:
                    printed = [other for other in printed if other not in parts]
                    printed.append(_add_units(PrintedHeader(matches, cells, number, place), strip))
    return printed


def _match_headers(
    line: PrintedLine, headers: Sequence[TableHeader]
) -> Iterator[tuple[tuple[TableHeader, ...], tuple[PrintedCell, ...]]]:
    keys = terms.known_names(headers)
    names = [terms.normalise_text(cell.text) for cell in line.cells]
    start = 0
    while start < len(names):
        stop = start
        while stop < len(names) and names[stop] in keys and names[stop] not in names[start:stop]:
            stop += 1
        ends = range(stop, start, -1)
        matched, end = next(
            ((match, end) for end in ends if (match := _match(names[start:end], headers))), ((), start + 1)
        )
        if matched:
            yield matched, line.cells[start:end]
        start = end


def _match(names: Sequence[str], headers: Sequence[TableHeader]) -> tuple[TableHeader, ...]:
    """Return the header with these names, or else several that have them together."""
    if header := terms.match_header(names, headers):
        return (header,)
    parts = tuple({header.keys: header for header in reversed(headers) if header.keys <= set(names)}.values())[::-1]
    return parts if frozenset().union(*(header.keys for header in parts)) == frozenset(names) else ()


def _add_units(header: PrintedHeader, strip: Strip) -> PrintedHeader:
    """Add the units in brackets that are on the next line, if there are any."""
    place = header.place + 1
    below = _cells_in_band(strip[place], header.spans) if place < len(strip) else ()
    if not below or not all(UNIT_ALONE.fullmatch(cell.text) for cell in below):
        return header
    cells = list(header.cells)
    for column, (cell, span) in enumerate(zip(header.cells, header.spans, strict=True)):
        units = [unit for unit in below if _overlaps(unit.box, span)]
        if units:
            text, box = f"{cell.text} {units[-1].text}", enclose((cell.box, units[-1].box))
            cells[column] = replace(cell, text=text, box=box)
    return replace(header, cells=tuple(cells), place=place)


def _find_rows(header: PrintedHeader, strips: Sequence[Strip], names: frozenset[str]) -> list[PrintedRow]:
    """Find the rows under a header, and those of the same table further down or in the next columns of the page."""
    above = enclose(cell.box for cell in header.cells)
    rows = list(_read_run(strips, header.strip, header.place + 1, header.spans, above))
    while (start := _find_next_run(strips, names, header, rows)) is not None:
        rows += _read_run(strips, *start, None)
    return _loosen_overlaps(rows)


def _loosen_overlaps(rows: Sequence[PrintedRow]) -> list[PrintedRow]:
    """Return the rows; of two that may be one row and its marks, it is unclear which cells belong together."""
    doubtful = {number + i for number, pair in enumerate(pairwise(rows)) if _share_lines(*pair) for i in (0, 1)}
    return [
        replace(row, cells=(), loose=row.loose or tuple(cell for cell in row.cells if cell))
        if number in doubtful
        else row
        for number, row in enumerate(rows)
    ]


def _share_lines(first: PrintedRow, other: PrintedRow) -> bool:
    above, below = first.box, other.box
    if above.page != below.page or max(above.x0, below.x0) - min(above.x1, below.x1) > ALIGN_SLACK:
        return False
    sizes = [max(cell.size for cell in (*row.cells, *row.loose) if cell) for row in (first, other)]
    if (None in first.cells or None in other.cells) and min(sizes) < MARK_SIZE * max(sizes):
        return True
    shared = min(above.bottom, below.bottom) - max(above.top, below.top)
    return shared > ROW_OVERLAP * min(above.height, below.height)


def _read_run(
    strips: Sequence[Strip], strip: int, place: int, spans: Sequence[ColumnSpan], above: Box | None
) -> Iterator[PrintedRow]:
    """Yield the rows from a place on that follow one another closely."""
    for number, line in enumerate(strips[strip][place:], place):
        cells = _cells_in_band(line, spans)
        if not cells:
            continue
        box = enclose(cell.box for cell in cells)
        if above is not None and box.top - above.bottom > ROW_GAP * above.height:
            return
        aligned = _align_cells(cells, spans)
        if aligned is not None:
            yield PrintedRow(strip, number, box, aligned)
        elif all(terms.is_figure(word) for cell in cells for word in cell.text.split()):
            yield PrintedRow(strip, number, box, (), cells)
        else:
            return
        above = box


def _cells_in_band(line: PrintedLine, spans: Sequence[ColumnSpan]) -> tuple[PrintedCell, ...]:
    left, right = spans[0][0] - BAND_PAD, spans[-1][1] + BAND_PAD
    return tuple(cell for cell in line.cells if cell.box.x1 > left and cell.box.x0 < right)


def _align_cells(cells: Sequence[PrintedCell], spans: Sequence[ColumnSpan]) -> tuple[PrintedCell | None, ...] | None:
    """Return the cell of each column; None for text, and for cells that overlap no column, two, or one another's."""
    aligned: list[PrintedCell | None] = [None] * len(spans)
    for cell in cells:
        columns = [column for column, span in enumerate(spans) if _overlaps(cell.box, span)]
        if len(columns) != 1 or aligned[columns[0]] is not None:
            return None
        aligned[columns[0]] = cell
    is_row = len(cells) > 1 and any(character.isdigit() for cell in cells for character in cell.text)
    return tuple(aligned) if is_row or all(terms.is_figure(cell.text) for cell in cells) else None


def _overlaps(box: Box, span: ColumnSpan) -> bool:
    return box.x1 > span[0] - ALIGN_SLACK and box.x0 < span[1] + ALIGN_SLACK


def _find_next_run(
    strips: Sequence[Strip], names: frozenset[str], header: PrintedHeader, rows: Sequence[PrintedRow]
) -> tuple[int, int, tuple[ColumnSpan, ...]] | None:
    """Find where the table continues, with its columns there; None if a caption or another header comes first."""
    strip, place = (rows[-1].strip, rows[-1].place) if rows else (header.strip, header.place)
    page = (rows[-1].box if rows else header.cells[0].box).page
    for number in range(strip, len(strips)):
        start = place + 1 if number == strip else 0
        same_strip = number == header.strip
        for line_number, line in enumerate(strips[number][start:], start):
            cells = _cells_in_band(line, header.spans) if same_strip else line.cells
            if cells and (line.box.page > page + MAX_PAGES_APART or _ends_table(cells, names)):
                return None
            if spans := _match_full_row(cells, header.spans, may_shift=not same_strip):
                first = _find_start_of_run(strips[number], line_number, start, spans)
                return None if first is None else (number, first, spans)
    return None


def _ends_table(cells: Sequence[PrintedCell], names: frozenset[str]) -> bool:
    is_caption = terms.is_caption(" ".join(cell.text for cell in cells))
    return is_caption or any(terms.normalise_text(cell.text) in names for cell in cells)


def _match_full_row(
    cells: Sequence[PrintedCell], spans: Sequence[ColumnSpan], *, may_shift: bool
) -> tuple[ColumnSpan, ...] | None:
    """Return the columns of a line, if it is a row with all its cells and nothing else: `spans`, shifted elsewhere."""
    if len(cells) != len(spans) or not all(terms.is_figure(cell.text) for cell in cells):
        return None
    shift = _find_shift(cells, spans) if may_shift else 0.0
    if shift is None:
        return None
    shifted = tuple((left + shift, right + shift) for left, right in spans)
    aligned = _align_cells(cells, shifted)
    return shifted if aligned is not None and None not in aligned else None


def _find_shift(cells: Sequence[PrintedCell], spans: Sequence[ColumnSpan]) -> float | None:
    """Return how far cells are from their headers if all columns agree on it: by middle, left edge or right edge."""
    choices = []
    for cell, (left, right) in zip(cells, spans, strict=True):
        to_left, to_right = cell.box.x0 - left, cell.box.x1 - right
        choices.append(((to_left + to_right) / 2, to_left, to_right))
    for shift in choices[-1]:
        if all(any(abs(shift - other) <= SHIFT_TOLERANCE for other in column) for column in choices):
            return shift
    return None


def _find_start_of_run(strip: Strip, place: int, earliest: int, spans: Sequence[ColumnSpan]) -> int | None:
    """Return the first line of the rows around the row at `place`; None if another header is above them."""
    below = strip[place].box
    for number in range(place - 1, earliest - 1, -1):
        cells = _cells_in_band(strip[number], spans)
        if not cells:
            continue
        box = enclose(cell.box for cell in cells)
        if below.top - box.bottom > ROW_GAP * box.height:
            return place
        if not all(terms.is_figure(cell.text) for cell in cells):
            # A lone cell within one column is a header; one across several columns is prose.
            is_header = len(cells) > 1 or sum(_overlaps(cells[0].box, span) for span in spans) <= 1
            return None if is_header else place
        place, below = number, box
    return place
