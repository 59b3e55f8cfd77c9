"""Find captions on the lines of pages, assign them to tables, and join tables that continue on the
next page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

from ipu_results.read.pdf_lines import (
    SHIFT_TOLERANCE,
    Box,
    PrintedCell,
    PrintedLine,
    Strip,
    enclose,
    make_columns,
    make_line,
)
from ipu_results.read.pdf_rows import WRAPPED, mark_merged
from ipu_results.read.pdf_tables import PrintedHeader, PrintedTable
from ipu_results.read.text import (
    CAPTION_NUMBER,
    CONTINUED,
    assign_captions,
    is_caption,
    is_continuation_note,
    is_figure,
    join_lines,
    mentions_measure,
    normalise_text,
    read_caption_number,
    split_metadata,
)
from ipu_results.schema.vocabulary import TableHeader

CAPTION_WORD_GAP = (
    2.0  # a caption continues across a gap of at most this, in ems: justified lines have wide gaps
)
CAPTION_LEADING = (
    0.6  # the next line of a caption follows with at most this gap, in heights of a line
)
CAPTION_SIZE = 0.5  # the lines of a caption differ in size by at most this, in points
MAX_CAPTION_LINES = 8  # what follows is prose
PROSE_WIDTH = 0.8  # a line of prose is at least this share as wide as its column
# a caption that does not name what the table measures is at most this far away from it, in points
NEAR_CAPTION = 40.0
NEAR_HEADER = 200.0  # the header that a caption promises is at most this far away, in points


SAME_HEIGHT = (
    1.0  # the running heads of two pages are at the same height, to within this, in points
)
PAGE_NUMBER = re.compile(r"(?:page\s+)?(\d{1,4})(?:\s*(?:/|of)\s*\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Caption:
    """Text and place of one caption."""

    text: str
    box: Box


def find_captions(
    strips: Sequence[Strip], taken: frozenset[Box], names: frozenset[str]
) -> list[Caption]:
    """Find captions in reading order; `taken` are the boxes of cells that belong to tables."""
    captions = []
    for strip in strips:
        for place, line in enumerate(strip):
            for start, cell in enumerate(line.cells):
                if is_caption(cell.text) and not _is_in_prose(strip, place, cell):
                    lines = list(_read_caption(strip, place, start, taken, names))
                    text = join_lines(line.text for line in lines)
                    captions.append(Caption(text, enclose(line.box for line in lines)))
    return captions


def assign_to_tables(
    tables: Sequence[PrintedTable], captions: Sequence[Caption], headers: Sequence[TableHeader]
) -> dict[int, int]:
    """Return the caption of each table, by their numbers: the nearest that names its measure, or
    else one close by.
    """
    offers = []
    for place, table in enumerate(tables):
        parts = table.parts
        pages = {part.page for part in parts}
        for number, caption in enumerate(captions):
            named = mentions_measure(caption.text, table.header.header, headers)
            distances = [
                gap for part in parts if (gap := _vertical_gap(part, caption.box)) is not None
            ]
            nearest = min(distances, default=NEAR_HEADER)
            if (named and caption.box.page in pages) or nearest <= NEAR_CAPTION:
                offers.append((not named, nearest, place, number))
    return assign_captions(offers)


def find_promised_header(
    caption: Caption, strips: Sequence[Strip], taken: frozenset[Box], names: frozenset[str]
) -> PrintedLine | None:
    """Return the line nearest to a caption that has a known name but is not a known header."""
    candidates = [
        (gap, place, line)
        for strip in strips
        for place, line in enumerate(strip)
        if any(normalise_text(cell.text) in names and cell.box not in taken for cell in line.cells)
        if (gap := _vertical_gap(line.box, caption.box)) is not None and gap <= NEAR_HEADER
    ]
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
        and not any(is_figure(part.text) for part in above.cells)
    )


def _read_caption(
    strip: Strip, place: int, start: int, taken: frozenset[Box], names: frozenset[str]
) -> Iterator[PrintedLine]:
    """Yield the lines of a caption from its first cell on."""
    last = _take_together(strip[place].cells[start:])
    yield last
    count = 1
    for line in strip[place + 1 :]:
        cells = [cell for cell in line.cells if cell.box.overlaps(last.box)]
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


def _continues(
    last: PrintedLine, cells: Sequence[PrintedCell], taken: frozenset[Box], names: frozenset[str]
) -> bool:
    """Check whether `cells` are the next line of the caption, and neither a table nor metadata."""
    first = cells[0]
    close = first.box.top - last.box.bottom <= CAPTION_LEADING * first.box.height
    alike = abs(first.size - last.cells[0].size) <= CAPTION_SIZE or CAPTION_NUMBER.fullmatch(
        last.text
    )
    if not close or not alike or split_metadata(first.text):
        return False
    return not any(
        cell.box in taken or is_figure(cell.text) or normalise_text(cell.text) in names
        for cell in cells
    )


def _vertical_gap(first: Box, other: Box) -> float | None:
    """Return the height between two boxes; None unless one is above the other on the same page."""
    if first.page != other.page or first.x1 < other.x0 or other.x1 < first.x0:
        return None
    return max(first.top - other.bottom, other.top - first.bottom, 0.0)


Lines = Sequence[PrintedLine]


def join_continued(
    tables: Sequence[PrintedTable],
    assigned: Mapping[int, int],
    captions: Sequence[Caption],
    strips: Sequence[Strip],
    columns: int,
) -> tuple[list[PrintedTable], dict[int, int]]:
    """Return the tables, each with what continues it, and the caption of each by their new numbers.

    A table continues another one if it is on the next page under the same header, line by line and
    place by place, and nothing is printed between the two but running heads, page numbers, and
    notes that the table continues. It has no caption, the same one again, or one that says so. The
    first `columns` strips are columns of pages.
    """
    groups: list[list[int]] = []
    # the last table of each header, by its last page
    ends: dict[tuple[tuple[TableHeader, ...], int], list[int]] = {}
    for number in sorted(
        range(len(tables)), key=lambda number: (tables[number].header.page, number)
    ):
        table = tables[number]
        group = ends.pop((table.header.headers, table.header.page - 1), [])
        first = [*group, number][0]
        caption, own = (
            captions[assigned[part]].text if part in assigned else "" for part in (first, number)
        )
        # A part has no caption of its own, or one with the number of the table.
        may_share = (
            not caption or not own or read_caption_number(caption) == read_caption_number(own)
        )
        if not (
            group
            and may_share
            and _is_continued(tables[group[-1]], table, caption, strips, columns)
        ):
            group = []
            groups.append(group)
        group.append(number)
        if table.rows:
            ends[table.header.headers, table.rows[-1].box.page] = group
    groups.sort()
    chosen = {
        place: assigned[part]
        for place, group in enumerate(groups)
        for part in group[::-1]
        if part in assigned
    }
    return [_join([tables[number] for number in group]) for group in groups], chosen


def _is_continued(
    first: PrintedTable, other: PrintedTable, caption: str, strips: Sequence[Strip], columns: int
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
        over = over[:-1]
        before = before[:-1]
    last = first.rows[-1]
    between = [*strips[last.strip][last.place + 1 :], *before]
    if last.strip < columns:
        between += _list_lines(strips[last.strip + 1 : columns], last.box.page)
    if other.header.strip < columns:
        between += _list_lines(strips[: other.header.strip], last.box.page + 1)
    here, there = (
        list(_list_lines(strips[:columns], page)) for page in (last.box.page, last.box.page + 1)
    )
    return all(
        _is_note(line, caption) or _is_running_head(line, here, there, bool(caption))
        for line in between
    )


def _split_head(header: PrintedHeader, strips: Sequence[Strip]) -> tuple[Lines, Lines]:
    """Return the lines of the strip above a header, and those of the header."""
    strip = strips[header.strip]
    top = enclose(header.boxes).top
    start = header.place
    while (
        start
        and strip[start - 1].box.page == strip[start].box.page
        and strip[start - 1].box.middle > top
    ):
        start -= 1
    return strip[:start], strip[start : header.place + 1]


def _are_alike(first: Lines, other: Lines, shift: float) -> bool:
    """Check whether lines have the same cells at the same places across the page, all shifted
    alike.
    """
    if [len(line.cells) for line in first] != [len(line.cells) for line in other]:
        return False
    pairs = zip(
        chain(*(line.cells for line in first)), chain(*(line.cells for line in other)), strict=True
    )
    return all(
        (cell.text, cell.footnotes) == (again.text, again.footnotes)
        and abs(again.box.x0 - cell.box.x0 - shift) <= SHIFT_TOLERANCE
        for cell, again in pairs
    )


def _list_lines(strips: Sequence[Strip], page: int) -> Iterator[PrintedLine]:
    return (line for strip in strips for line in strip if line.box.page == page)


def _is_note(line: PrintedLine, caption: str) -> bool:
    """Check whether a line says that the table continues, and names no other one."""
    number = read_caption_number(line.text)
    if number is None:
        return is_continuation_note(line.text)
    return CONTINUED.search(line.text) is not None and number == read_caption_number(caption)


def _is_running_head(line: PrintedLine, first: Lines, other: Lines, has_caption: bool) -> bool:
    """Check whether a line is at the head or foot of both pages: with the same text, or with the
    page number.

    Next to a page number other text may differ, as titles of chapters do, only if the table has a
    caption: otherwise it may be the title of another table.
    """
    level = (
        [cell for place in lines if _is_level(place, line) for cell in place.cells]
        for lines in (first, other)
    )
    here, there = (sorted(cells, key=lambda cell: cell.box.x0) for cells in level)
    numbers = [
        [(cell, int(match[1])) for cell in cells if (match := PAGE_NUMBER.fullmatch(cell.text))]
        for cells in (here, there)
    ]
    pages = product(*numbers)
    counted = {
        part
        for (cell, page), (again, number) in pages
        if number == page + 1
        for part in (cell, again)
    }
    if has_caption and _is_at_edge(line, first) and _is_at_edge(line, other):
        ends = [{cells[0], cells[-1]} & counted for cells in (here, there) if cells]
        if len(ends) > 1 and all(ends):
            return True
    texts = [sorted(cell.text for cell in cells if cell not in counted) for cells in (here, there)]
    return bool(here and there) and texts[0] == texts[1] and not any(map(is_caption, texts[0]))


def _is_at_edge(place: PrintedLine, lines: Lines) -> bool:
    """Check whether no line of a page is higher, or none is lower."""
    middles = [line.box.middle for line in lines if not _is_level(line, place)]
    return all(place.box.middle < middle for middle in middles) or all(
        place.box.middle > middle for middle in middles
    )


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
            rows[-1] = replace(rows[-1], doubt=rows[-1].doubt or WRAPPED)
            following[0] = replace(following[0], doubt=following[0].doubt or WRAPPED)
        rows += following
    below = [row for part in parts for row in part.below]
    merged = mark_merged(rows, make_columns(first.header.cells, first.header.headers))
    return PrintedTable(first.header, merged, below)
