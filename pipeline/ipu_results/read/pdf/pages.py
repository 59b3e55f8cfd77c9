"""From the bytes of a PDF to the words on the pages that matter."""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pdfplumber
import pypdfium2
from pdfminer.ascii85 import ascii85decode, asciihexdecode
from pdfminer.pdftypes import (
    LITERALS_ASCII85_DECODE,
    LITERALS_ASCIIHEX_DECODE,
    LITERALS_FLATE_DECODE,
    PDFStream,
    resolve1,
)

from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.read.pdf.words import Box, Word

HEAD_BYTES = 1024
TAIL_BYTES = 1024
LETTER_GAP = 0.15
"""Letters of one word are at most this far apart, in ems."""
LETTER_RISE = 1.0
"""Letters of one word have their tops within so many points."""
HTML = re.compile(rb"<\s*(?:!doctype|html|head|body)\b", re.IGNORECASE)


def page_texts(data: bytes, max_pages: int) -> list[str]:
    """The plain text of every page, quickly and without places.

    Raises DamagedDocumentError for anything but a whole, unlocked PDF and DocumentTooLargeError above `max_pages` pages.
    """
    refuse_other_files(data)
    with faults_as("cannot be read as a PDF"):
        document = pypdfium2.PdfDocument(data)
        try:
            refuse_large(len(document), max_pages)
            return [page_text(document, number) for number in range(len(document))]
        finally:
            document.close()


def page_text(document: Any, number: int) -> str:
    page = document[number]
    text_page = page.get_textpage()
    try:
        return str(text_page.get_text_range())
    finally:
        text_page.close()
        page.close()


def refuse_other_files(data: bytes) -> None:
    if not data.strip():
        raise DamagedDocumentError("is empty")
    if b"%PDF-" not in data[:HEAD_BYTES]:
        what = "an HTML page" if HTML.search(data[:HEAD_BYTES]) else "some other file"
        raise DamagedDocumentError(f"is not a PDF but {what}")
    if b"%%EOF" not in data[-TAIL_BYTES:]:
        raise DamagedDocumentError("is a truncated PDF: its end is missing")


def refuse_large(pages: int, max_pages: int) -> None:
    if pages > max_pages:
        raise DocumentTooLargeError(f"has {pages:,} pages, the limit is {max_pages:,}")
    if not pages:
        raise DamagedDocumentError("is a PDF without pages")


@contextmanager
def faults_as(message: str) -> Iterator[None]:
    """Turn whatever the PDF libraries raise on a damaged file into DamagedDocumentError, and keep their warnings quiet."""
    logger = logging.getLogger("pdfminer")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    except (DamagedDocumentError, DocumentTooLargeError):
        raise
    except Exception as fault:
        locked = "password" in str(fault).lower() or "Password" in type(fault).__name__
        raise DamagedDocumentError("is encrypted: a password is needed" if locked else message) from fault
    finally:
        logger.setLevel(before)


def words_of_pages(data: bytes, numbers: Sequence[int]) -> list[tuple[list[Word], float]]:
    """Words and width of each page of `numbers` (from 1, ascending)."""
    with faults_as("cannot be read as a PDF"), pdfplumber.open(io.BytesIO(data), pages=list(numbers)) as document:
        if [page.page_number for page in document.pages] != list(numbers):
            raise DamagedDocumentError("is a damaged PDF: pages are missing")
        return [(list(words_of(page)), float(page.width)) for page in document.pages]


def words_of(page: Any) -> Iterator[Word]:
    """The upright words; a stamp along the margin is left out."""
    refuse_corrupted(page)
    x, y = page.bbox[:2]
    found = page.extract_words(
        x_tolerance_ratio=LETTER_GAP, y_tolerance=LETTER_RISE, extra_attrs=["size", "upright"], expand_ligatures=False
    )
    for word in found:
        if word["upright"] and word["text"].strip():
            place = (word["x0"] - x, word["top"] - y, word["x1"] - x, word["bottom"] - y)
            yield Word(word["text"], float(word["size"]), Box(page.page_number, *map(float, place)))


def refuse_corrupted(page: Any) -> None:
    """Refuse a page whose content fails its checksum: the libraries would read as much of it as they can."""
    for content in map(resolve1, page.page_obj.contents):
        if isinstance(content, PDFStream) and content.rawdata is not None and content.decipher is None:
            unpack(content)


def unpack(content: PDFStream) -> None:
    data = content.rawdata or b""
    for name, _ in content.get_filters():
        if name in LITERALS_ASCII85_DECODE:
            data = ascii85decode(data)
        elif name in LITERALS_ASCIIHEX_DECODE:
            data = asciihexdecode(data)
        elif name in LITERALS_FLATE_DECODE:
            data = zlib.decompress(data)
        else:
            return
