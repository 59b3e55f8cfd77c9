"""Find the headers of tables that nobody knows yet, so that one can be drafted from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pypdfium2

from ipu_results.record.read.document import FirstRow
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.papers import is_caption
from ipu_results.record.read.pdf.limits import open_pdf, translate_errors
from ipu_results.record.read.pdf.lines import Line, Strip, enclose
from ipu_results.record.read.pdf.page import read_pages, read_texts, select_pages
from ipu_results.record.read.pdf.tables import (
    HEADER_LEADING,
    MAX_HEADER_LINES,
    is_close,
    join_columns,
)
from ipu_results.schema.vocabulary import normalise_header

MIN_COLUMNS = 2  # of a table; a single figure on a line may be a page number
MIN_SHARE_OF_FIGURES = 0.3  # of the cells of a row, at least this share are figures
MAX_NAME = 40  # longer text is prose
MAX_DRAFTED_PAGES = 40  # pages with a caption that are read for a draft


def find_pdf_headers(data: bytes) -> list[FirstRow]:
    """Return place and names of each header on pages with a caption, once for each set of names.

    Raises DamagedDocumentError and DocumentTooLargeError, as `read_pdf` does.
    """
    data = open_pdf(data)
    with translate_errors(), closing(pypdfium2.PdfDocument(data)) as pictures:
        numbers = sorted(select_pages(read_texts(pictures), ()))
        pages = read_pages(data, pictures, numbers[:MAX_DRAFTED_PAGES])
    headers: dict[frozenset[str], FirstRow] = {}
    for page in pages:
        # A table over both columns of the page comes first: its halves are not tables.
        for strip in (page.lines, *page.columns):
            for place, names in _draft_headers(strip):
                keys = frozenset(map(normalise_header, names))
                if not any(map(keys.issubset, headers)):
                    headers[keys] = (place, names)
    return list(headers.values())


def _draft_headers(strip: Strip) -> Iterator[FirstRow]:
    """Yield place and names of the lines close above each first row of figures."""
    for place, (above, line) in enumerate(pairwise(strip)):
        if not _looks_like_row(line) or _looks_like_row(above):
            continue
        block = [above]
        first = max(place - MAX_HEADER_LINES + 1, 0)
        for other in reversed(strip[first:place]):
            if not is_close(other, block[0], HEADER_LEADING) or is_caption(other.text):
                break
            block.insert(0, other)
        columns = join_columns(block)
        names = tuple(cell.text for cell in columns)
        if len(names) >= MIN_COLUMNS and max(map(len, names)) <= MAX_NAME:
            yield str(enclose(columns)), names


def _looks_like_row(line: Line) -> bool:
    count = len(line.cells)
    # a cell may begin with words
    last_words = [text.rpartition(" ")[2] for text in line.texts]
    figures = sum(map(is_figure, last_words))
    return count >= MIN_COLUMNS and figures >= MIN_SHARE_OF_FIGURES * count
