"""Read the tables and setup metadata of a PDF: plain constructs only, and the rest is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain

import pypdfium2

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.record.read.document import (
    Headers,
    MetadataItem,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
)
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.papers import refuse_incomplete_tables, split_metadata
from ipu_results.record.read.pdf.captions import assign_captions, find_captions, join_caption
from ipu_results.record.read.pdf.glyphs import Box
from ipu_results.record.read.pdf.limits import open_pdf, translate_errors
from ipu_results.record.read.pdf.lines import Line, Strip, select_cells
from ipu_results.record.read.pdf.page import PrintedPage, read_pages, read_texts, select_pages
from ipu_results.record.read.pdf.tables import PrintedRow, PrintedTable, find_tables
from ipu_results.record.read.pdf.unread import find_unread, list_words
from ipu_results.record.read.text import lift_footnote


def read_pdf(data: bytes, headers: Headers) -> ParsedDocument:
    """Read the tables whose column names are those of one of `headers`, with captions, boxes and
    setup metadata.

    A header is whole: every text of its lines belongs to the name of a column. A cell belongs to
    the column that it is under: a lost label is `""`. What is not plain is a problem: rows in other
    places, figures that are hidden, struck, covered or of a font that does not prove its digits,
    and tables that continue elsewhere.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password,
    DocumentTooLargeError above a limit, and UnrecognisedDocumentError if there is no table.
    """
    data = open_pdf(data)
    with translate_errors(), closing(pypdfium2.PdfDocument(data)) as pictures:
        texts = read_texts(pictures)
        pages = read_pages(data, pictures, select_pages(texts, headers))
        document = PageReader(headers).read(pages)
    if document.tables or document.problems:
        return refuse_incomplete_tables(document, headers)
    if not any(text.strip() for text in texts):
        raise UnrecognisedDocumentError(
            "cannot be read: it is images without text (a scan); add a transcription instead"
        )
    raise UnrecognisedDocumentError("has no table with a known header")


@dataclass(slots=True)
class PageReader:
    """Collects the tables and problems of the pages of one document."""

    headers: Headers
    tables: dict[str, SourceTable] = field(default_factory=dict)
    problems: list[ReadProblem] = field(default_factory=list)

    def read(self, pages: Sequence[PrintedPage]) -> ParsedDocument:
        """Return what is on the pages."""
        printed: list[PrintedTable] = []
        metadata: list[MetadataItem] = []
        for page in pages:
            printed += self._read_tables(page)
            metadata += self._find_metadata(page)
        # after all tables, for a row of one may be on another page
        taken = _list_boxes(printed)
        for page in pages:
            self.problems += find_unread(page, printed, taken, self.headers)
        return ParsedDocument(
            tables=tuple(self.tables.values()),
            problems=tuple(self.problems),
            metadata=tuple(metadata),
            context=tuple(list_words(pages, printed, taken)),
        )

    def _read_tables(self, page: PrintedPage) -> list[PrintedTable]:
        """Read the tables of a page, and return where they are."""
        captions: list[Strip] = []
        for strip in page.columns:
            captions += find_captions(strip, self.headers)
        printed = _find_page_tables(page, captions, self.headers)
        caption_of = assign_captions(printed, captions, self.headers)
        for number, table in enumerate(printed):
            read = self._read_table(page, table, caption_of.get(number, ()))
            if read and read.name in self.tables:
                self._refuse(table, "duplicate-table", "a table with this header was already read")
            elif read:
                self.tables[read.name] = read
        return printed

    def _read_table(
        self, page: PrintedPage, table: PrintedTable, caption: Strip
    ) -> SourceTable | None:
        """Return the plain rows of a table, None if no row is; the others become problems."""
        doubt = table.doubt or _find_doubt_of_header(page, table)
        if doubt:
            self._refuse(table, "unknown-header", doubt)
            return None
        if not table.rows:
            self._refuse(table, "cells-missing", "no rows under the header")
            return None
        name = table.header.table
        rows: list[SourceRow] = []
        for number, row in enumerate(table.rows, 1):
            line = row.line
            doubt = row.doubt or page.ink.find_doubt(line, (line,), table.box)
            if doubt:
                problem = ReadProblem(name, number, str(line.box), "row-width", doubt, line.texts)
                self.problems.append(problem)
            else:
                rows.append(_make_row(number, row))
        text = join_caption(caption)
        # a caption may state the unit, so one that may read otherwise is none
        for line in caption:
            if self._has_doubt(page, line, name):
                text = ""
        if not rows:
            return None
        return SourceTable.from_rows(name, table.names, rows, str(table.box), text)

    def _find_metadata(self, page: PrintedPage) -> Iterator[MetadataItem]:
        """Yield the lines `Label: value`, also if a wide gap follows the colon."""
        name = self.headers[0].table if self.headers else ""  # a kind without tables
        for line in chain(*page.columns):
            for place, cell in enumerate(line.cells):
                stop = place + 1
                if cell.text.endswith(":"):  # its value is the next cell
                    stop += 1
                printed = Line(line.cells[place:stop])
                item = split_metadata(printed.text)
                if item and not self._has_doubt(page, printed, name):
                    yield MetadataItem(*item, str(printed.box))

    def _has_doubt(self, page: PrintedPage, line: Line, name: str) -> bool:
        """Check whether a line may not be seen as it is read; then it becomes a problem."""
        doubt = page.ink.find_doubt(line, (line,))
        if doubt:
            place = str(line.box)
            self.problems.append(ReadProblem(name, None, place, "unread-cell", doubt, (line.text,)))
        return bool(doubt)

    def _refuse(self, table: PrintedTable, reason: str, message: str) -> None:
        name = table.header.table
        place = str(table.box)
        self.problems.append(ReadProblem(name, None, place, reason, message, table.names))


def _find_doubt_of_header(page: PrintedPage, table: PrintedTable) -> str:
    """Return why a line of a header may not be seen as it is read; `""` if all are."""
    for line in table.head:
        doubt = page.ink.find_doubt(line, table.head, table.box)
        if doubt:
            return doubt
    return ""


def _find_page_tables(
    page: PrintedPage, captions: Sequence[Strip], headers: Headers
) -> list[PrintedTable]:
    """Return the tables of a page: first those over the gutter, then those of its columns."""
    lines_of_captions = {line.box for line in chain(*captions)}
    wide: list[PrintedTable] = []
    if page.gutter is not None:
        for table in find_tables(page.lines, headers, lines_of_captions):
            left = table.columns[0].box.x0
            right = table.columns[-1].box.x1
            if left < page.gutter < right:
                wide.append(table)
    # what is left of a table over the gutter is no table of a column
    taken = _list_boxes(wide)
    narrow: list[PrintedTable] = []
    for strip in page.columns:
        free = select_cells(strip, lambda cell: cell.box not in taken)
        narrow += find_tables(free, headers, lines_of_captions)
    taken |= _list_boxes(narrow)
    figures = select_cells(page.lines, lambda cell: cell.box not in taken and is_figure(cell.text))
    for table in narrow:
        level = table.box._replace(x0=float("-inf"), x1=float("inf"))
        for line in figures:
            if line.box.meets(level) and not table.doubt:
                table.doubt = f"the figure {line.text!r} is beside the table"
    return [*wide, *narrow]


def _list_boxes(tables: Iterable[PrintedTable]) -> set[Box]:
    """Return the places of all cells of the tables."""
    boxes: set[Box] = set()
    for table in tables:
        for line in table.lines:
            boxes.update(cell.box for cell in line.cells)
    return boxes


def _make_row(number: int, row: PrintedRow) -> SourceRow:
    where = str(row.line.box)
    texts = []
    places = []
    footnotes = []
    for column, cell in enumerate(row.cells):
        if cell is None:
            texts.append("")
            places.append(where)
            continue
        text, mark = lift_footnote(cell.text)
        texts.append(text)
        places.append(str(cell.box))
        if mark or cell.marks:
            footnotes.append((column, mark + cell.marks))
    return SourceRow(number, tuple(texts), where, tuple(places), tuple(footnotes))
