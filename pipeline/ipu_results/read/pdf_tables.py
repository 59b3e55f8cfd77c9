"""Find tables on the lines of pages: a header by its names, on one line or several, and the rows
under it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ipu_results.read.document import choose_header
from ipu_results.read.pdf_lines import (
    Box,
    ColumnSpan,
    PrintedCell,
    PrintedLine,
    Strip,
    cells_in_band,
    enclose,
    make_columns,
    make_line,
    overlaps,
)
from ipu_results.read.pdf_rows import PrintedRow, find_rows
from ipu_results.read.text import known_names, match_header, normalise_text
from ipu_results.schema.vocabulary import TableHeader, find_headers, normalise_header

MAX_HEADER_LINES = 4  # a header has at most this many lines
HEADER_LEADING = (
    0.8  # the next line of a header follows with at most this gap, in heights of a line
)
# The lines of one name have a left edge, a right edge or a middle in common, to within this, in
# points.
EDGE_SLACK = 3.0
UNIT_ALONE = re.compile(r"[(\[][^()\[\]]+[)\]]")


def join_cells(lines: Sequence[Sequence[PrintedCell]]) -> list[PrintedCell]:
    """Return a cell for each column, with the texts of its lines from the top; none if a column is
    not clear.

    A cell over several columns is not a part of their names, unless names repeat without it.
    """
    groups = _find_groups(lines)
    cells = [cell for line in lines for cell in line if cell not in groups]
    columns: list[list[PrintedCell]] = []  # the cells of each name, from the top
    for cell in cells:
        own = [column for column in columns if cell.box.overlaps(_hull(column))]
        if len(own) > 1:
            return []
        if own:
            own[0].append(cell)
        else:
            columns.append([cell])
    over = [[group for group in groups if group.box.overlaps(_hull(column))] for column in columns]
    # A cell over several columns that is below a part of a name heads nothing clear.
    if any(
        group.box.middle > column[0].box.middle
        for above, column in zip(over, columns, strict=True)
        for group in above
    ):
        return []
    texts = [[cell.text for cell in column] for column in columns]
    if repeats(map(" ".join, texts)):
        texts = [
            [*(group.text for group in above), *parts]
            for above, parts in zip(over, texts, strict=True)
        ]
    if repeats(map(" ".join, texts)):
        return []
    joined = [
        replace(
            column[0],
            text=" ".join(parts),
            footnotes="".join(c.footnotes for c in column),
            box=_hull(column),
        )
        for parts, column in zip(texts, columns, strict=True)
    ]
    return sorted(joined, key=lambda cell: cell.box.x0)


def _find_groups(lines: Sequence[Sequence[PrintedCell]]) -> list[PrintedCell]:
    """Return the cells over several others of one line, or over another that they are not aligned
    with.
    """
    groups = []
    for number, line in enumerate(lines):
        below = lines[number + 1 :]
        for cell in line:
            under = [[other for other in later if cell.box.overlaps(other.box)] for later in below]
            nearest = next((others for others in under if others), [])
            if any(len(others) > 1 for others in under) or (
                nearest and not _is_aligned(cell.box, nearest[0].box)
            ):
                groups.append(cell)
    return groups


def _is_aligned(first: Box, other: Box) -> bool:
    left = abs(first.x0 - other.x0)
    right = abs(first.x1 - other.x1)
    return min(left, right, abs(first.x0 + first.x1 - other.x0 - other.x1) / 2) <= EDGE_SLACK


def _hull(column: Sequence[PrintedCell]) -> Box:
    return enclose(cell.box for cell in column)


def repeats(names: Iterable[str]) -> bool:
    keys = list(map(normalise_text, names))
    return len(set(keys)) < len(keys)


@dataclass(frozen=True, slots=True)
class PrintedHeader:
    """The header cells of a table, the known headers that they match, and the place of their line
    in its strip.

    They match several headers if the tables of these are printed as one, with the labels of the
    rows printed once. `place` is the last line of a header of several lines, `foot` its box, and
    `parts` are the cells as printed.
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
    def page(self) -> int:
        return self.cells[0].box.page

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
    def parts(self) -> list[Box]:
        """A box for each stretch of the table that is in one piece."""
        parts = [enclose(cell.box for cell in self.header.cells)]
        strip = self.header.strip
        place = self.header.place
        for row in self.rows:
            if (row.strip, row.place) == (strip, place + 1):
                parts[-1] = enclose((parts[-1], row.box))
            else:
                parts.append(row.box)
            strip = row.strip
            place = row.place
        return parts

    @property
    def locator(self) -> str:
        return "; ".join(map(str, self.parts))


def find_tables(
    strips: Sequence[Strip], columns: int, headers: Sequence[TableHeader]
) -> list[PrintedTable]:
    """Find every table in reading order.

    The first `columns` strips are columns of pages, the others whole pages.
    """
    names = known_names(headers)
    tables = []
    for header in _find_headers(strips, columns, headers):
        place = header.foot or enclose(cell.box for cell in header.cells)
        under = make_columns(header.cells, header.headers)
        rows, below = find_rows(under, strips, place, (header.strip, header.place), names)
        candidates = find_headers(header.names, headers)
        texts = [[cell.text if cell else "" for cell in row.cells] for row in rows if row.cells]
        # No known header has all the names of several that are printed as one.
        chosen = (choose_header(header.names, texts, candidates),) if candidates else header.headers
        tables.append(PrintedTable(replace(header, headers=chosen), rows, below))
    return [part for table in tables for part in _divide(table)]


def _divide(table: PrintedTable) -> Iterator[PrintedTable]:
    """Yield the tables that are printed as one, each with its columns alone."""
    for header in table.header.headers:
        kept = [
            place
            for place, name in enumerate(table.header.names)
            if normalise_header(name) in header.keys
        ]
        cells = tuple(table.header.cells[place] for place in kept)
        rows = [
            row if row.loose else replace(row, cells=tuple(row.cells[place] for place in kept))
            for row in table.rows
        ]
        yield PrintedTable(replace(table.header, headers=(header,), cells=cells), rows, table.below)


def _find_headers(
    strips: Sequence[Strip], columns: int, headers: Sequence[TableHeader]
) -> list[PrintedHeader]:
    """Find every header: neighbouring cells whose names are those of a known one, on one line or on
    several.

    On a whole page a header counts only if it is alone on its lines, and has cells that no header
    in a column has.
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
    names = known_names(headers)
    begins = (name.startswith(normalise_text(cell.text)) for cell in line.cells for name in names)
    if on_line or not any(begins):
        return
    matched: list[tuple[PrintedHeader, bool]] = []
    for joined, lines in _stack_lines(strip, place):
        if any(True for _ in _match_headers(lines[-1], headers)):
            break
        parts = tuple(cell.box for line in lines for cell in line.cells)
        under = (number, place + len(lines) - 1, parts, lines[-1].box)
        # The last line may have units alone, which names do not include: the match of the most
        # lines counts.
        matched = [
            (PrintedHeader(matches, cells, *under), cells == joined.cells)
            for matches, cells in _match_headers(joined, headers)
        ] or matched
    yield from matched


def _stack_lines(strip: Strip, place: int) -> Iterator[tuple[PrintedLine, list[PrintedLine]]]:
    """Yield the names of 2 to MAX_HEADER_LINES lines from a line on, joined and as printed, where
    columns are clear.
    """
    lines = [strip[place]]
    for line in strip[place + 1 : place + MAX_HEADER_LINES]:
        above = lines[-1].box
        if (
            line.box.page != above.page
            or line.box.top - above.bottom > HEADER_LEADING * above.height
        ):
            return
        lines.append(line)
        if joined := join_cells([line.cells for line in lines]):
            yield make_line(joined), lines


def _match_headers(
    line: PrintedLine, headers: Sequence[TableHeader]
) -> Iterator[tuple[tuple[TableHeader, ...], tuple[PrintedCell, ...]]]:
    keys = known_names(headers)
    names = [normalise_text(cell.text) for cell in line.cells]
    start = 0
    while start < len(names):
        stop = start
        while stop < len(names) and names[stop] in keys and names[stop] not in names[start:stop]:
            stop += 1
        for end in range(stop, start, -1):
            matched = _match(names[start:end], headers)
            # Where a name comes again, a table next to it is not a part of this one.
            if matched and (len(matched) == 1 or set(names[start:end]).isdisjoint(names[end:])):
                yield matched, line.cells[start:end]
                start = end
                break
        else:
            start += 1


def _match(names: Sequence[str], headers: Sequence[TableHeader]) -> tuple[TableHeader, ...]:
    """Return the header with these names, or else several that have them together."""
    if header := match_header(names, headers):
        return (header,)
    parts = tuple(
        {header.keys: header for header in reversed(headers) if header.keys <= set(names)}.values()
    )[::-1]
    return (
        parts if frozenset().union(*(header.keys for header in parts)) == frozenset(names) else ()
    )


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
            text = f"{cell.text} {units[-1].text}"
            box = enclose((cell.box, units[-1].box))
            cells[column] = replace(cell, text=text, box=box)
    return replace(header, cells=tuple(cells), place=place)
