"""The pages of a PDF that may have a table, each divided into lines and columns."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser

from ipu_results.record.read.document import Headers
from ipu_results.record.read.papers import METADATA_LABELS, normalise_text
from ipu_results.record.read.pdf.glyphs import FontManager, PageGlyphs, measure_page, read_glyphs
from ipu_results.record.read.pdf.ink import Ink
from ipu_results.record.read.pdf.lines import Strip, build_lines, find_gutter, split_columns

LABELS = "|".join(METADATA_LABELS).casefold()
CAPTION_OR_METADATA = re.compile(rf"\btable\s*(?:\d|[ivxl]+\b)|(?:{LABELS}):")


@dataclass(frozen=True)
class PrintedPage:
    """The lines of a page, its columns, and its pictures, which are drawn when they are needed."""

    number: int
    glyphs: PageGlyphs
    lines: Strip
    gutter: float | None
    pictures: Any
    """The document as pypdfium2 opens it."""

    @cached_property
    def columns(self) -> tuple[Strip, ...]:
        return (self.lines,) if self.gutter is None else split_columns(self.lines, self.gutter)

    @cached_property
    def ink(self) -> Ink:
        with closing(self.pictures[self.number - 1]) as picture:
            return Ink(picture, self.glyphs)


def read_texts(pictures: Any) -> list[str]:
    """Return the plain text of every page, quickly and without places."""
    texts = []
    for number in range(len(pictures)):
        with closing(pictures[number]) as page, closing(page.get_textpage()) as text_page:
            texts.append(str(text_page.get_text_range()))
    return texts


def select_pages(texts: Sequence[str], headers: Headers) -> set[int]:
    """Return the pages with a header, and those after them, a caption or metadata."""
    pages: set[int] = set()
    for number, text in enumerate(texts, 1):
        # a table may go on on the next page, where its names are not
        if find_names(text, headers):
            pages |= {number, number + 1}
        elif CAPTION_OR_METADATA.search(normalise_text(text)):
            pages.add(number)
    return pages


def find_names(text: str, headers: Headers) -> list[str]:
    """Return the tables all of whose names have their words in a text: names on several lines may
    be mixed, and blanks may be anywhere in text that is turned or set too close.
    """
    letters = "".join(normalise_text(text).split())  # as if nothing divided the words
    tables = []
    for header in headers:
        if all(word in letters for word in " ".join(header.keys).split()):
            tables.append(header.table)
    return tables


def read_pages(data: bytes, pictures: Any, numbers: Collection[int]) -> list[PrintedPage]:
    """Return the pages with these numbers, counted from 1."""
    fonts = FontManager()  # pages share their fonts, which take longer to read than a page
    pages = []
    document = PDFDocument(PDFParser(io.BytesIO(data)))
    for number, page in enumerate(PDFPage.create_pages(document), 1):
        if number in numbers:
            glyphs = read_glyphs(fonts, number, page)
            lines = build_lines(glyphs.upright)
            gutter = find_gutter(lines, measure_page(page)[0])
            pages.append(PrintedPage(number, glyphs, lines, gutter, pictures))
    return pages
