"""Read the tables and setup metadata of a PDF: plain constructs only, and the rest is told."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import pypdfium2
from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.record.read.document import (
    FirstRow,
    MetadataItem,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
    Words,
)
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.pdf_glyphs import (
    Box,
    FontManager,
    PageGlyphs,
    measure_page,
    read_glyphs,
)
from ipu_results.record.read.pdf_ink import Ink
from ipu_results.record.read.pdf_limits import open_pdf, translate_errors
from ipu_results.record.read.pdf_lines import (
    Line,
    Strip,
    build_lines,
    enclose,
    find_gutter,
    select_cells,
    split_columns,
)
from ipu_results.record.read.pdf_tables import (
    HEADER_LEADING,
    MAX_HEADER_LINES,
    PrintedRow,
    PrintedTable,
    find_tables,
    has_shape_of_row,
    is_close,
    join_columns,
)
from ipu_results.record.read.text import (
    METADATA_LABELS,
    assign_captions,
    is_caption,
    join_lines,
    known_names,
    lift_footnote,
    mentions_measure,
    normalise_text,
    refuse_incomplete_tables,
    split_metadata,
)
from ipu_results.schema.vocabulary import (
    NUMERIC_FIELDS,
    TableHeader,
    explain_mismatch,
    normalise_header,
)

LABELS = "|".join(METADATA_LABELS).casefold()
CAPTION_OR_METADATA = re.compile(rf"\btable\s*(?:\d|[ivxl]+\b)|(?:{LABELS}):")
PROSE_WIDTH = 0.8  # a line of prose is at least this share as wide as its column
CAPTION_SIZE = 0.5  # the lines of a caption differ in size by at most this, in points
MAX_CAPTION_LINES = 8  # what follows is prose
# A caption that does not name what its table measures is at most this far away, in points.
NEAR_CAPTION = 40.0
BLOCK_LINES = 4  # figures of an unknown table are on one of so many lines below its names

# Headers that are drafted
MIN_COLUMNS = 2  # of a table; a single figure on a line may be a page number
MIN_SHARE_OF_FIGURES = 0.3  # of the cells of a row, at least this share are figures
MAX_NAME = 40  # longer text is prose
MAX_DRAFTED_PAGES = 40  # pages with a caption that are read for a draft


@dataclass(frozen=True)
class PrintedPage:
    """The lines of a page, its columns, and its pictures, which are drawn when they are needed."""

    number: int
    glyphs: PageGlyphs
    lines: Strip
    gutter: float | None
    pictures: Any

    @property
    def columns(self) -> tuple[Strip, ...]:
        return (self.lines,) if self.gutter is None else split_columns(self.lines, self.gutter)

    @cached_property
    def ink(self) -> Ink:
        with closing(self.pictures[self.number - 1]) as picture:
            return Ink(picture, self.glyphs)


def read_pdf(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read the tables whose column names are those of one of `headers`, with captions, boxes and
    setup metadata.

    A header is whole: every text of its lines belongs to the name of a column. A cell belongs to
    the column that it is under: a lost label is `""`. What is not plain is a problem: rows in other
    places, figures that are hidden, struck, covered or of a font that does not prove its digits, and tables
    that continue elsewhere.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password,
    DocumentTooLargeError above a limit, and UnrecognisedDocumentError if there is no table.
    """
    data = open_pdf(data)
    with translate_errors(), closing(pypdfium2.PdfDocument(data)) as pictures:
        texts = _read_texts(pictures)
        pages = _read_pages(data, pictures, _select_pages(texts, headers))
        document = _make_document(pages, headers)
    if document.tables or document.problems:
        return refuse_incomplete_tables(document, headers)
    if not any(text.strip() for text in texts):
        raise UnrecognisedDocumentError(
            "cannot be read: it is images without text (a scan); add a transcription instead"
        )
    raise UnrecognisedDocumentError("has no table with a known header")


def _read_texts(document: Any) -> list[str]:
    """Return the plain text of every page, quickly and without places."""
    texts = []
    for number in range(len(document)):
        with closing(document[number]) as page, closing(page.get_textpage()) as text_page:
            texts.append(str(text_page.get_text_range()))
    return texts


def _select_pages(texts: Sequence[str], headers: Sequence[TableHeader]) -> set[int]:
    """Return the pages with a header, and those after them, a caption or metadata."""
    pages: set[int] = set()
    for number, text in enumerate(texts, 1):
        if _find_names(text, headers):
            pages |= {number, number + 1}
        elif CAPTION_OR_METADATA.search(normalise_text(text)):
            pages.add(number)
    return pages


def _read_pages(data: bytes, pictures: Any, numbers: Collection[int]) -> list[PrintedPage]:
    fonts = FontManager()
    pages = []
    found = PDFPage.create_pages(PDFDocument(PDFParser(io.BytesIO(data))))
    for number, page in enumerate(found, 1):
        if number in numbers:
            glyphs = read_glyphs(fonts, number, page)
            lines = build_lines(glyphs.upright)
            gutter = find_gutter(lines, measure_page(page)[0])
            pages.append(PrintedPage(number, glyphs, lines, gutter, pictures))
    return pages


def _make_document(pages: Sequence[PrintedPage], headers: Sequence[TableHeader]) -> ParsedDocument:
    tables: dict[str, SourceTable] = {}
    problems: list[ReadProblem] = []
    metadata: list[MetadataItem] = []
    printed: list[PrintedTable] = []
    for page in pages:
        captions = [caption for strip in page.columns for caption in _find_captions(strip, headers)]
        on_page = _find_page_tables(page, captions, headers)
        assigned = _assign_captions(on_page, captions, headers)
        for number, table in enumerate(on_page):
            caption = captions[assigned[number]] if number in assigned else ()
            read = _read_table(page, table, caption, problems)
            if read and read.name in tables:
                message = "a table with this header was already read"
                problems.append(_refuse(table, "duplicate-table", message))
            elif read:
                tables[read.name] = read
        printed += on_page
        metadata += _find_metadata(page, headers, problems)
    taken = _list_boxes(printed)
    for page in pages:
        problems += _find_unread(page, printed, taken, headers)
    return ParsedDocument(
        tuple(tables.values()),
        tuple(problems),
        tuple(metadata),
        context=tuple(_list_words(pages, printed, taken)),
    )


def _list_words(
    pages: Sequence[PrintedPage], printed: Sequence[PrintedTable], taken: Collection[Box]
) -> Iterator[Words]:
    """Yield what is outside of tables and set-up on the pages of tables and those after them."""
    with_tables = {table.box.page + after for table in printed for after in (0, 1)}
    for page in pages:
        if page.number not in with_tables:
            continue
        for line in chain.from_iterable(page.columns):
            for cell in line.cells:
                if cell.box not in taken and split_metadata(cell.text) is None:
                    yield Words(f"page {page.number}", cell.text)


def _find_page_tables(
    page: PrintedPage, captions: Sequence[Strip], headers: Sequence[TableHeader]
) -> list[PrintedTable]:
    """Return the tables of a page: first those over the gutter, then those of its columns."""
    lines_of_captions = {line.box for line in chain(*captions)}
    wide: list[PrintedTable] = []
    if page.gutter is not None:
        for table in find_tables(page.lines, headers, lines_of_captions):
            if table.columns[0].box.x0 < page.gutter < table.columns[-1].box.x1:
                wide.append(table)
    taken = _list_boxes(wide)
    narrow: list[PrintedTable] = []
    for strip in page.columns:
        free = select_cells(strip, lambda cell: cell.box not in taken)
        narrow += find_tables(free, headers, lines_of_captions)
    taken |= _list_boxes(narrow)
    figures = select_cells(page.lines, lambda cell: cell.box not in taken and is_figure(cell.text))
    for table in narrow:
        level = table.box._replace(x0=float("-inf"), x1=float("inf"))
        beside = [line.text for line in figures if line.box.meets(level)]
        if beside and not table.doubt:
            table.doubt = f"the figure {beside[0]!r} is beside the table"
    return [*wide, *narrow]


def _list_boxes(tables: Iterable[PrintedTable]) -> set[Box]:
    return {cell.box for table in tables for line in table.lines for cell in line.cells}


def _read_table(
    page: PrintedPage, table: PrintedTable, caption: Strip, problems: list[ReadProblem]
) -> SourceTable | None:
    """Return the rows of a table that are plain, and add the others to the problems."""
    doubts = (page.ink.find_doubt(line, table.head, table.box) for line in table.head)
    if doubt := table.doubt or next(filter(None, doubts), ""):
        problems.append(_refuse(table, "unknown-header", doubt))
        return None
    if not table.rows:
        problems.append(_refuse(table, "cells-missing", "no rows under the header"))
        return None
    rows: list[SourceRow] = []
    for number, row in enumerate(table.rows, 1):
        locator = str(row.line.box)
        if doubt := row.doubt or page.ink.find_doubt(row.line, (row.line,), table.box):
            raw = row.line.texts
            problem = ReadProblem(table.header.table, number, locator, "row-width", doubt, raw)
            problems.append(problem)
        else:
            rows.append(_make_row(number, row))
    text = _join_caption(caption)
    for line in caption:
        if doubt := page.ink.find_doubt(line, (line,)):
            text = ""
            problems.append(_report_text(table.header.table, line, doubt))
    if not rows:
        return None
    name, locator = table.header.table, str(table.box)
    return SourceTable.from_rows(name, table.names, rows, locator, text)


def _make_row(number: int, row: PrintedRow) -> SourceRow:
    texts, footnotes = [], []
    for column, cell in enumerate(row.cells):
        text, mark = lift_footnote(cell.text) if cell else ("", "")
        mark += cell.marks if cell else ""
        texts.append(text)
        if mark:
            footnotes.append((column, mark))
    places = tuple(str(cell.box if cell else row.line.box) for cell in row.cells)
    return SourceRow(number, tuple(texts), str(row.line.box), places, tuple(footnotes))


def _refuse(table: PrintedTable, reason: str, message: str) -> ReadProblem:
    return ReadProblem(table.header.table, None, str(table.box), reason, message, table.names)


def _report_text(name: str, line: Line, doubt: str) -> ReadProblem:
    return ReadProblem(name, None, str(line.box), "unread-cell", doubt, (line.text,))


# Captions and metadata


def _find_captions(strip: Strip, headers: Sequence[TableHeader]) -> Iterator[Strip]:
    """Yield the lines of each caption."""
    names = known_names(headers)
    for place, line in enumerate(strip):
        # a sentence of prose may name a table
        above = strip[place - 1] if place else line
        in_prose = above is not line and is_close(above, line) and _is_prose(above, strip)
        if not is_caption(line.text) or in_prose:
            continue
        lines = [line]
        for following in strip[place + 1 : place + MAX_CAPTION_LINES]:
            if not _continues(lines[-1], following, names):
                break
            lines.append(following)
        yield tuple(lines)


def _is_prose(line: Line, strip: Strip) -> bool:
    """Check whether a line is as long as those of a paragraph, and no row of a table."""
    whole = enclose(other.box for other in strip)
    return len(line.cells) == 1 and line.box.width >= PROSE_WIDTH * whole.width


def _join_caption(caption: Strip) -> str:
    return join_lines(line.text for line in caption)


def _continues(last: Line, line: Line, names: Collection[str]) -> bool:
    """Check whether a line goes on with a caption, and is neither a table nor metadata."""
    is_alike = abs(last.largest.size - line.largest.size) <= CAPTION_SIZE
    text = normalise_text(line.cells[0].text)
    is_header = any(name.startswith(text) for name in names)
    is_other = is_header or is_figure(text) or split_metadata(line.text)
    return is_alike and is_close(last, line) and not is_other


def _assign_captions(
    tables: Sequence[PrintedTable], captions: Sequence[Strip], headers: Sequence[TableHeader]
) -> dict[int, int]:
    """Return the caption of each table by their numbers: one close by, best if it names its measure."""
    offers = []
    for place, table in enumerate(tables):
        for number, caption in enumerate(captions):
            box = enclose(line.box for line in caption)
            gap = max(table.box.top - box.bottom, box.top - table.box.bottom, 0.0)
            named = mentions_measure(_join_caption(caption), table.header, headers)
            if named or (gap <= NEAR_CAPTION and table.box.overlaps(box)):
                offers.append((not named, gap, place, number))
    return assign_captions(offers)


def _find_metadata(
    page: PrintedPage, headers: Sequence[TableHeader], problems: list[ReadProblem]
) -> Iterator[MetadataItem]:
    """Yield the lines `Label: value`, also if a wide gap follows the colon."""
    for line in chain(*page.columns):
        for place, cell in enumerate(line.cells):
            printed = Line(line.cells[place : place + 2] if cell.text.endswith(":") else (cell,))
            item = split_metadata(printed.text)
            if item and (doubt := page.ink.find_doubt(printed, (printed,))):
                problems.append(_report_text(headers[0].table, printed, doubt))
            elif item:
                yield MetadataItem(*item, str(printed.box))


# What is told


def _find_unread(
    page: PrintedPage,
    printed: Sequence[PrintedTable],
    taken: Collection[Box],
    headers: Sequence[TableHeader],
) -> Iterator[ReadProblem]:
    """Yield a problem for each line outside of tables that has the shape of a row of one, or the
    names of a known one and figures in it or below, and for such names in text that is turned.
    """
    turned = "".join(glyph.text for glyph in page.glyphs.turned)
    for table in _find_names(turned, headers):
        message = "the table is turned or mirrored: only upright text is read"
        yield ReadProblem(table, None, f"page {page.number}", "unknown-header", message)
    measures = {
        normalise_header(name)
        for header in headers
        for name, field in header.fields
        if field in NUMERIC_FIELDS
    }
    for strip in dict.fromkeys((page.lines, *page.columns)):
        lines = select_cells(strip, lambda cell: cell.box not in taken)
        for place, line in enumerate(lines):
            where, raw = str(line.box), line.texts
            owners = [table.header.table for table in printed if has_shape_of_row(line, table)]
            if owners:
                message = "a line outside of the tables has the shape of a row: not read"
                yield ReadProblem(owners[0], None, where, "rows-below", message, raw)
                continue
            block = chain(*(other.texts for other in lines[place : place + BLOCK_LINES + 1]))
            names = measures & set(map(normalise_text, raw))
            if any(map(is_figure, block)) and (names or _find_names(line.text, headers)):
                message = explain_mismatch(raw, headers) or "the header is not known, or not whole"
                yield ReadProblem("", None, where, "unknown-header", message, raw)


def _find_names(text: str, headers: Sequence[TableHeader]) -> list[str]:
    """Return the tables all of whose names have their words in a text: names on several lines may
    be mixed, and blanks may be anywhere in text that is turned or set too close.
    """
    letters = "".join(normalise_text(text).split())
    return [
        header.table
        for header in headers
        if all(word in letters for key in header.keys for word in key.split())
    ]


# Drafts


def find_pdf_headers(data: bytes) -> list[FirstRow]:
    """Return place and names of each header on pages with a caption, once for each set of names.

    Raises DamagedDocumentError and DocumentTooLargeError, as `read_pdf` does.
    """
    data = open_pdf(data)
    with translate_errors(), closing(pypdfium2.PdfDocument(data)) as pictures:
        numbers = sorted(_select_pages(_read_texts(pictures), ()))
        pages = _read_pages(data, pictures, numbers[:MAX_DRAFTED_PAGES])
    headers: dict[frozenset[str], FirstRow] = {}
    for page in pages:
        # A table over both columns of the page comes first: its halves are not tables.
        for strip in (page.lines, *page.columns):
            for place, names in _draft_headers(strip):
                keys = frozenset(map(normalise_header, names))
                if not any(keys <= known for known in headers):
                    headers[keys] = (place, names)
    return list(headers.values())


def _draft_headers(strip: Strip) -> Iterator[FirstRow]:
    """Yield place and names of the lines close above each first row of figures."""
    for place, (above, line) in enumerate(pairwise(strip)):
        if not _looks_like_row(line) or _looks_like_row(above):
            continue
        block = [above]
        for other in reversed(strip[max(place - MAX_HEADER_LINES + 1, 0) : place]):
            if not is_close(other, block[0], HEADER_LEADING) or is_caption(other.text):
                break
            block.insert(0, other)
        columns = join_columns(block)
        names = tuple(cell.text for cell in columns)
        if len(names) >= MIN_COLUMNS and max(map(len, names)) <= MAX_NAME:
            yield str(enclose(cell.box for cell in columns)), names


def _looks_like_row(line: Line) -> bool:
    figures = sum(is_figure(text.rpartition(" ")[2]) for text in line.texts)
    return len(line.cells) >= MIN_COLUMNS and figures >= MIN_SHARE_OF_FIGURES * len(line.cells)
