"""Tell what is on the pages of tables, but in none of them: rows in other places, and words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from ipu_results.record.read.document import Headers, ReadProblem, Words
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.papers import normalise_text, split_metadata
from ipu_results.record.read.pdf.glyphs import Box
from ipu_results.record.read.pdf.lines import select_cells
from ipu_results.record.read.pdf.page import PrintedPage, find_names
from ipu_results.record.read.pdf.tables import PrintedTable, has_shape_of_row
from ipu_results.schema.vocabulary import (
    NUMERIC_FIELDS,
    explain_mismatch,
    normalise_header,
)

BLOCK_LINES = 4  # figures of an unknown table are on one of so many lines below its names


def find_unread(
    page: PrintedPage,
    printed: Sequence[PrintedTable],
    taken: Collection[Box],
    headers: Headers,
) -> Iterator[ReadProblem]:
    """Yield a problem for each line outside of tables that has the shape of a row of one, or the
    names of a known one and figures in it or below, and for such names in text that is turned.
    """
    # the letters of turned text are in no order that can be relied on
    turned = "".join(glyph.text for glyph in page.glyphs.turned)
    for name in find_names(turned, headers):
        message = "the table is turned or mirrored: only upright text is read"
        yield ReadProblem(name, None, f"page {page.number}", "unknown-header", message)
    measures = set()
    for header in headers:
        for name, field in header.fields:
            if field in NUMERIC_FIELDS:
                measures.add(normalise_header(name))
    # a page whose text is in one column has the same lines there, which are told once
    strips = dict.fromkeys((page.lines, *page.columns))
    for strip in strips:
        lines = select_cells(strip, lambda cell: cell.box not in taken)
        for place, line in enumerate(lines):
            where = str(line.box)
            resembled = [table.header.table for table in printed if has_shape_of_row(line, table)]
            if resembled:
                message = "a line outside of the tables has the shape of a row: not read"
                yield ReadProblem(resembled[0], None, where, "rows-below", message, line.texts)
                continue
            block = lines[place : place + BLOCK_LINES + 1]
            has_figures = any(is_figure(text) for other in block for text in other.texts)
            has_names = not measures.isdisjoint(map(normalise_text, line.texts))
            if has_figures and (has_names or find_names(line.text, headers)):
                mismatch = explain_mismatch(line.texts, headers)
                message = mismatch or "the header is not known, or not whole"
                yield ReadProblem("", None, where, "unknown-header", message, line.texts)


def list_words(
    pages: Sequence[PrintedPage], printed: Sequence[PrintedTable], taken: Collection[Box]
) -> Iterator[Words]:
    """Yield what is outside of tables and set-up on the pages of tables and those after them."""
    with_tables = {table.box.page for table in printed}
    for page in pages:
        # a note on a table may be at the top of the next page
        if with_tables.isdisjoint((page.number, page.number - 1)):
            continue
        for line in chain(*page.columns):
            for cell in line.cells:
                if cell.box not in taken and split_metadata(cell.text) is None:
                    yield Words(f"page {page.number}", cell.text)
