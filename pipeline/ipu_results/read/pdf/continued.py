"""Find what looks like the header of a table in a PDF, known or not: its names are drafted, never its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ipu_results.read.first_rows import FirstRow
from ipu_results.read.paper import terms
from ipu_results.read.pdf.captions import Caption
from ipu_results.read.pdf.columns import HEADER_LEADING, MAX_HEADER_LINES, SHIFT_TOLERANCE, join_cells, make_columns
from ipu_results.read.pdf.pages import open_pdf, read_page_texts, read_words
from ipu_results.read.pdf.rows import WRAPPED, PrintedRow, mark_merged
from ipu_results.read.pdf.tables import PrintedHeader, PrintedTable
from ipu_results.read.pdf.words import PrintedCell, PrintedLine, Strip, build_lines, enclose, split_columns
from ipu_results.schema.table_headers import TableHeader, normalise_header, strip_unit

MIN_COLUMNS = 2
MIN_SHARE_OF_FIGURES = 0.3
"""Of the cells of a row, at least this share are figures."""
FIRST_ROW_GAP = 2.5
"""The first row follows the header with at most this gap, in heights of a line."""
MAX_NAME = 40
"""Longer text is prose."""
MAX_DRAFTED_PAGES = 40
"""Pages with a caption that are read for a draft."""


def find_pdf_headers(data: bytes, max_pages: int) -> list[FirstRow]:
    """Return place and names of each header on pages with a caption, once for each set of names.

    Raises DamagedDocumentError and DocumentTooLargeError, as `read_pdf` does.
    """
    data = open_pdf(data, max_pages)
    texts = read_page_texts(data, max_pages)
    numbers = [
        number for number, text in enumerate(texts, 1) if any(map(terms.is_caption, map(str.strip, text.splitlines())))
    ]
    headers: dict[frozenset[str], FirstRow] = {}
    for page in read_words(data, numbers[:MAX_DRAFTED_PAGES]):
        lines = build_lines(page.words)
        columns = split_columns(lines, page.width)
        on_page: list[FirstRow] = []
        for strip in (lines, *columns) if len(columns) > 1 else (lines,):
            # A table over both columns of the page comes first: its halves are not tables.
            known = {normalise_header(name) for _, names in on_page for name in names}
            on_page += [row for row in _find_headers(strip) if not {*map(normalise_header, row[1])} & known]
        for place, names in on_page:
            headers.setdefault(frozenset(map(normalise_header, names)), (place, names))
    return list(headers.values())


def _find_headers(strip: Strip) -> Iterator[FirstRow]:
    for number, line in enumerate(strip):
        if _is_row(line) and number and not _is_row(strip[number - 1]):
            block = _take_header(strip, number)
            for start in range(len(block)):
                cells = join_cells([above.cells for above in block[start:]])
                names = tuple(cell.text for cell in cells)
                if len(cells) >= MIN_COLUMNS and all(map(_is_name, names)) and not _repeat(names):
                    yield str(enclose(cell.box for cell in cells)), names
                    break


def _is_name(text: str) -> bool:
    return len(text) <= MAX_NAME and any(map(str.isalpha, strip_unit(text)))


def _repeat(names: tuple[str, ...]) -> bool:
    return len(set(map(normalise_header, names))) < len(names)


def _take_header(strip: Strip, row: int) -> list[PrintedLine]:
    """Return the lines close above a row without a figure or a caption, from the top."""
    block: list[PrintedLine] = []
    for line in reversed(strip[max(row - MAX_HEADER_LINES, 0) : row]):
        below = block[0] if block else strip[row]
        leading = HEADER_LEADING if block else FIRST_ROW_GAP
        is_close = line.box.page == below.box.page and below.box.top - line.box.bottom <= leading * line.box.height
        if not is_close or terms.is_caption(line.text) or any(terms.is_figure(cell.text) for cell in line.cells):
            break
        block.insert(0, line)
    return block


def _is_row(line: PrintedLine) -> bool:
    figures = sum(terms.is_figure(cell.text.split()[0]) for cell in line.cells if cell.text.split())
    return len(line.cells) >= MIN_COLUMNS and figures >= MIN_SHARE_OF_FIGURES * len(line.cells)


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
