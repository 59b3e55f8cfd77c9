"""Find tables on the lines of pages: a header by its names, the rows under it by their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ipu_results.read.paper import terms
from ipu_results.read.pdf.columns import ColumnSpan, StackedHeader, cells_in_band, make_columns, overlaps, stack_lines
from ipu_results.read.pdf.rows import PrintedRow, find_rows
from ipu_results.read.pdf.words import Box, PrintedCell, PrintedLine, Strip, enclose
from ipu_results.schema.table_headers import TableHeader, find_headers, normalise_header

MIN_CANDIDATES = 2
UNIT_ALONE = re.compile(r"[(\[][^()\[\]]+[)\]]")


@dataclass(frozen=True, slots=True)
class PrintedHeader:
    """The header cells of a table, the known headers that they match, and the place of their line in its strip.

    They match several headers if the tables of these are printed as one, with the labels of the rows printed once.
    `place` is the last line of a header of several lines, `foot` its box, and `parts` are the cells as printed.
    """

    headers: tuple[TableHeader, ...]
    cells: tuple[PrintedCell, ...]
    strip: int
    place: int
    parts: tuple[Box, ...] = ()
    foot: Box | None = None

    @property
    def header(self) -> TableHeader:
        return self.headers[0]

    @property
    def spans(self) -> tuple[ColumnSpan, ...]:
        return tuple((cell.box.x0, cell.box.x1) for cell in self.cells)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cell.text for cell in self.cells)

    @property
    def boxes(self) -> frozenset[Box]:
        return frozenset((*self.parts, *(cell.box for cell in self.cells)))


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A header with the rows under it, and the lines `below` that look like more rows of it."""

    header: PrintedHeader
    rows: Sequence[PrintedRow]
    below: Sequence[PrintedRow] = ()

    @property
    def cell_boxes(self) -> Iterator[Box]:
        yield from self.header.boxes
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
    tables = []
    for header in _find_headers(strips, columns, headers):
        place = header.foot or enclose(cell.box for cell in header.cells)
        under = make_columns(header.cells, header.headers)
        rows, below = find_rows(under, strips, place, (header.strip, header.place), names)
        tables.append(PrintedTable(_choose_header(header, rows, headers), rows, below))
    return [part for table in tables for part in _divide(table)]


def _choose_header(header: PrintedHeader, rows: Sequence[PrintedRow], headers: Sequence[TableHeader]) -> PrintedHeader:
    """Choose the table, of several with the same header, whose machines are in most rows."""
    candidates = find_headers(header.names, headers)
    if len(candidates) < MIN_CANDIDATES:
        return header
    column = next(place for place, name in enumerate(header.names) if candidates[0].field_of(name) == "platform")
    machines = [cell.text for row in rows if row.cells and (cell := row.cells[column])]
    chosen = max(candidates, key=lambda candidate: sum(map(candidate.lists, machines)))
    return replace(header, headers=(chosen,))


def _divide(table: PrintedTable) -> Iterator[PrintedTable]:
    """Yield the tables that are printed as one, each with its columns alone."""
    for header in table.header.headers:
        kept = [place for place, name in enumerate(table.header.names) if normalise_header(name) in header.keys]
        cells = tuple(table.header.cells[place] for place in kept)
        rows = [
            row if row.loose else replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows
        ]
        yield PrintedTable(replace(table.header, headers=(header,), cells=cells), rows, table.below)


def _find_headers(strips: Sequence[Strip], columns: int, headers: Sequence[TableHeader]) -> list[PrintedHeader]:
    """Find every header: neighbouring cells whose names are those of a known one, on one line or on several.

    On a whole page a header counts only if it is alone on its lines, and has cells that no header in a column has.
    """
    printed: list[PrintedHeader] = []
    for number, strip in enumerate(strips):
        for place, line in enumerate(strip):
            for header, is_alone in _read_headers(strip, number, place, line, headers):
                parts = [other for other in printed if other.boxes & header.boxes]
                is_wider = is_alone and sum(len(part.cells) for part in parts) < len(header.cells)
                if number < columns or is_wider:
                    printed = [other for other in printed if other not in parts]
                    printed.append(header)
    return printed


def _read_headers(
    strip: Strip, number: int, place: int, line: PrintedLine, headers: Sequence[TableHeader]
) -> Iterator[tuple[PrintedHeader, bool]]:
    """Yield the headers that begin on a line, each with whether nothing else is on its lines.

    Names on one line come before those that lines give together.
    """
    on_line = list(_match_headers(line, headers))
    for matches, cells in on_line:
        yield _add_units(PrintedHeader(matches, cells, number, place), strip), cells == line.cells
    names = terms.known_names(headers)
    if on_line or not any(_begins_name(cell, names) for cell in line.cells):
        return
    best: tuple[StackedHeader, list[tuple[tuple[TableHeader, ...], tuple[PrintedCell, ...]]]] | None = None
    for stack in stack_lines(strip, place):
        if any(True for _ in _match_headers(strip[stack.place], headers)):
            break
        if matched := list(_match_headers(stack.line, headers)):
            best = stack, matched  # the last line may have units alone, which names do not include
    if best is not None:
        stack, matched = best
        for matches, cells in matched:
            header = PrintedHeader(matches, cells, number, stack.place, stack.parts, stack.foot)
            yield header, cells == stack.line.cells


def _begins_name(cell: PrintedCell, names: frozenset[str]) -> bool:
    text = terms.normalise_text(cell.text)
    return any(name.startswith(text) for name in names)


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
    below = cells_in_band(strip[place], header.spans) if place < len(strip) else ()
    if not below or not all(UNIT_ALONE.fullmatch(cell.text) for cell in below):
        return header
    cells = list(header.cells)
    for column, (cell, span) in enumerate(zip(header.cells, header.spans, strict=True)):
        units = [unit for unit in below if overlaps(unit.box, span)]
        if units:
            text, box = f"{cell.text} {units[-1].text}", enclose((cell.box, units[-1].box))
            cells[column] = replace(cell, text=text, box=box)
    return replace(header, cells=tuple(cells), place=place)
