"""Find what looks like the header of a table in a PDF, known or not: its names are drafted, never its figures."""

from __future__ import annotations

from collections.abc import Iterator

from ipu_results.read.first_rows import FirstRow
from ipu_results.read.paper import terms
from ipu_results.read.pdf.pages import open_pdf, read_page_texts, read_words
from ipu_results.read.pdf.stacked import HEADER_LEADING, MAX_HEADER_LINES, join_cells
from ipu_results.read.pdf.words import PrintedLine, Strip, build_lines, enclose, split_columns
from ipu_results.schema.table_headers import normalise_header, strip_unit

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
