"""Join the parts of a table that continues on the next page under its header, which is printed again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ipu_results.read.paper import terms
from ipu_results.read.pdf.captions import Caption
from ipu_results.read.pdf.columns import SHIFT_TOLERANCE, make_columns
from ipu_results.read.pdf.rows import WRAPPED, PrintedRow, mark_merged
from ipu_results.read.pdf.tables import PrintedHeader, PrintedTable
from ipu_results.read.pdf.words import PrintedCell, PrintedLine, Strip, enclose
from ipu_results.schema.table_headers import TableHeader

SAME_HEIGHT = 1.0
"""The running heads of two pages are at the same height, to within this, in points."""
PAGE_NUMBER = re.compile(r"(?:page\s+)?(\d{1,4})(?:\s*(?:/|of)\s*\d+)?", re.IGNORECASE)

Lines = Sequence[PrintedLine]


def join_continued(
    tables: Sequence[PrintedTable],
    assigned: Mapping[int, int],
    captions: Sequence[Caption],
    strips: Sequence[Strip],
    columns: int,
) -> tuple[list[PrintedTable], dict[int, int]]:
    """Return the tables, each with what continues it, and the caption of each by their new numbers.

    A table continues another one if it is on the next page under the same header, line by line and place by place, and
    nothing is printed between the two but running heads, page numbers, and notes that the table continues. It has no
    caption, the same one again, or one that says so. The first `columns` strips are columns of pages.
    """
    groups: list[list[int]] = []
    ends: dict[tuple[tuple[TableHeader, ...], int], list[int]] = {}
    """The last table of each header that ends on a page."""
    for number in sorted(range(len(tables)), key=lambda number: (_page_of(tables[number].header), number)):
        table = tables[number]
        group = ends.pop((table.header.headers, _page_of(table.header) - 1), [])
        caption, own = (
            captions[assigned[part]] if part in assigned else None for part in ([*group, number][0], number)
        )
        if not (group and _may_share(caption, own) and _continues(tables[group[-1]], table, caption, strips, columns)):
            group = []
            groups.append(group)
        group.append(number)
        if table.rows:
            ends[table.header.headers, table.rows[-1].box.page] = group
    groups.sort()
    chosen = {place: assigned[part] for place, group in enumerate(groups) for part in group[::-1] if part in assigned}
    return [_join([tables[number] for number in group]) for group in groups], chosen


def _page_of(header: PrintedHeader) -> int:
    return header.cells[0].box.page


def _may_share(caption: Caption | None, own: Caption | None) -> bool:
    """Check whether a part has no caption of its own, or one with the number of the table."""
    if caption is None or own is None:
        return True
    return terms.read_caption_number(caption.text) == terms.read_caption_number(own.text)


def _continues(
    first: PrintedTable, other: PrintedTable, caption: Caption | None, strips: Sequence[Strip], columns: int
) -> bool:
    """Check whether two tables have the same header, and whether nothing is between them."""
    if not other.rows:
        return False
    shift = other.header.spans[0][0] - first.header.spans[0][0]
    over, head = _split_head(first.header, strips)
    before, again = _split_head(other.header, strips)
    if not _are_alike(head, again, shift):
        return False
    # Lines above the names that are printed again belong to the header.
    while over and before and _are_alike(over[-1:], before[-1:], shift):
        over, before = over[:-1], before[:-1]
    last = first.rows[-1]
    between = [*strips[last.strip][last.place + 1 :], *before]
    if last.strip < columns:
        between += _list_lines(strips[last.strip + 1 : columns], last.box.page)
    if other.header.strip < columns:
        between += _list_lines(strips[: other.header.strip], last.box.page + 1)
    here, there = (list(_list_lines(strips[:columns], page)) for page in (last.box.page, last.box.page + 1))
    return all(_is_note(line, caption) or _is_running_head(line, here, there, caption is not None) for line in between)


def _split_head(header: PrintedHeader, strips: Sequence[Strip]) -> tuple[Lines, Lines]:
    """Return the lines of the strip above a header, and those of the header."""
    strip = strips[header.strip]
    top = enclose(header.boxes).top
    start = header.place
    while start and strip[start - 1].box.page == strip[start].box.page and strip[start - 1].box.middle > top:
        start -= 1
    return strip[:start], strip[start : header.place + 1]


def _are_alike(first: Lines, other: Lines, shift: float) -> bool:
    """Check whether lines have the same cells at the same places across the page, all shifted alike."""
    if [len(line.cells) for line in first] != [len(line.cells) for line in other]:
        return False
    pairs = zip(chain(*(line.cells for line in first)), chain(*(line.cells for line in other)), strict=True)
    return all(
        (cell.text, cell.footnotes) == (again.text, again.footnotes)
        and abs(again.box.x0 - cell.box.x0 - shift) <= SHIFT_TOLERANCE
        for cell, again in pairs
    )


def _list_lines(strips: Sequence[Strip], page: int) -> Iterator[PrintedLine]:
    return (line for strip in strips for line in strip if line.box.page == page)


def _is_note(line: PrintedLine, caption: Caption | None) -> bool:
    """Check whether a line says that the table continues, and names no other one."""
    number = terms.read_caption_number(line.text)
    if number is None:
        return terms.is_continuation_note(line.text)
    return (
        terms.mentions_continuation(line.text)
        and caption is not None
        and number == terms.read_caption_number(caption.text)
    )


def _is_running_head(line: PrintedLine, first: Lines, other: Lines, has_caption: bool) -> bool:
    """Check whether a line is at the head or foot of both pages: with the same text, or with the page number.

    Next to a page number other text may differ, as titles of chapters do, only if the table has a caption: otherwise it
    may be the title of another table.
    """
    here, there = (_cells_at(lines, line) for lines in (first, other))
    numbers = [
        [(cell, int(match[1])) for cell in cells if (match := PAGE_NUMBER.fullmatch(cell.text))]
        for cells in (here, there)
    ]
    counted = {
        part
        for cell, page in numbers[0]
        for again, number in numbers[1]
        if number == page + 1
        for part in (cell, again)
    }
    if has_caption and _is_at_edge(line, first) and _is_at_edge(line, other):
        ends = [{cells[0], cells[-1]} & counted for cells in (here, there) if cells]
        if len(ends) > 1 and all(ends):
            return True
    texts = [sorted(cell.text for cell in cells if cell not in counted) for cells in (here, there)]
    return bool(here and there) and texts[0] == texts[1] and not any(map(terms.is_caption, texts[0]))


def _cells_at(lines: Lines, place: PrintedLine) -> list[PrintedCell]:
    """Return the cells of a page at the height of a line, from left to right."""
    cells = [cell for line in lines if _is_level(line, place) for cell in line.cells]
    return sorted(cells, key=lambda cell: cell.box.x0)


def _is_at_edge(place: PrintedLine, lines: Lines) -> bool:
    """Check whether no line of a page is higher, or none is lower."""
    middles = [line.box.middle for line in lines if not _is_level(line, place)]
    return all(place.box.middle < middle for middle in middles) or all(place.box.middle > middle for middle in middles)


def _is_level(line: PrintedLine, place: PrintedLine) -> bool:
    return abs(line.box.middle - place.box.middle) <= SAME_HEIGHT


def _join(parts: Sequence[PrintedTable]) -> PrintedTable:
    """Join the parts of one table; text at the joint of two may belong to a row of either."""
    first, *others = parts
    if not others:
        return first
    rows = list(first.rows)
    for other in others:
        following = list(other.rows)
        if following[0].place != other.header.place + 1:
            rows[-1], following[0] = (_doubt(row) for row in (rows[-1], following[0]))
        rows += following
    below = [row for part in parts for row in part.below]
    merged = mark_merged(rows, make_columns(first.header.cells, first.header.headers))
    return PrintedTable(first.header, merged, below)


def _doubt(row: PrintedRow) -> PrintedRow:
    return replace(row, doubt=row.doubt or WRAPPED)
