"""Read the words of a PDF's pages, and refuse what is not a whole PDF."""

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
"""Tops of the letters of one word differ by at most this, in points."""
HTML = re.compile(rb"<\s*(?:!doctype|html|head|body)\b", re.IGNORECASE)
DECODERS = (
    (LITERALS_ASCII85_DECODE, ascii85decode),
    (LITERALS_ASCIIHEX_DECODE, asciihexdecode),
    (LITERALS_FLATE_DECODE, zlib.decompress),
)


def read_page_texts(data: bytes, max_pages: int) -> list[str]:
    """Return the plain text of every page, quickly and without places.

    Raises DamagedDocumentError for anything but a whole, unlocked PDF, DocumentTooLargeError above `max_pages` pages.
    """
    _check_signature(data)
    with _translate_errors():
        document = pypdfium2.PdfDocument(data)
        try:
            if len(document) > max_pages:
                raise DocumentTooLargeError(f"has {len(document):,} pages, the limit is {max_pages:,}")
            if not len(document):
                raise DamagedDocumentError("is a PDF without pages")
            return [_read_page_text(document, number) for number in range(len(document))]
        finally:
            document.close()


def read_words(data: bytes, numbers: Sequence[int]) -> list[tuple[list[Word], float]]:
    """Return words and width of each page of `numbers` (from 1, ascending)."""
    with _translate_errors(), pdfplumber.open(io.BytesIO(data), pages=list(numbers)) as document:
        if [page.page_number for page in document.pages] != list(numbers):
            raise DamagedDocumentError("is a damaged PDF: pages are missing")
        return [(list(_extract_words(page)), float(page.width)) for page in document.pages]


def _check_signature(data: bytes) -> None:
    if not data.strip():
        raise DamagedDocumentError("is empty")
    if b"%PDF-" not in data[:HEAD_BYTES]:
        what = "an HTML page" if HTML.search(data[:HEAD_BYTES]) else "some other file"
        raise DamagedDocumentError(f"is not a PDF but {what}")
    if b"%%EOF" not in data[-TAIL_BYTES:]:
        raise DamagedDocumentError("is a truncated PDF: its end is missing")


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn whatever the PDF libraries raise for a damaged file into DamagedDocumentError; keep their warnings quiet."""
    logger = logging.getLogger("pdfminer")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    except (DamagedDocumentError, DocumentTooLargeError):
        raise
    except Exception as error:
        locked = "password" in str(error).lower() or "Password" in type(error).__name__
        message = "is encrypted: a password is needed" if locked else "cannot be read as a PDF"
        raise DamagedDocumentError(message) from error
    finally:
        logger.setLevel(before)


def _read_page_text(document: Any, number: int) -> str:
    page = document[number]
    text_page = page.get_textpage()
    try:
        return str(text_page.get_text_range())
    finally:
        text_page.close()
        page.close()


def _extract_words(page: Any) -> Iterator[Word]:
    """Yield the upright words: a stamp along the margin is not part of the page."""
    _check_streams(page)
    x, y = page.bbox[:2]
    words = page.extract_words(
        x_tolerance_ratio=LETTER_GAP, y_tolerance=LETTER_RISE, extra_attrs=["size", "upright"], expand_ligatures=False
    )
    for word in words:
        if word["upright"] and word["text"].strip():
            place = (word["x0"] - x, word["top"] - y, word["x1"] - x, word["bottom"] - y)
            yield Word(word["text"], float(word["size"]), Box(page.page_number, *map(float, place)))


def _check_streams(page: Any) -> None:
    """Raise for a page whose content fails its checksum: the libraries would read as much of it as they can."""
    for content in map(resolve1, page.page_obj.contents):
        if isinstance(content, PDFStream) and content.rawdata is not None and content.decipher is None:
            data = content.rawdata
            for name, _ in content.get_filters():
                decoder = next((decoder for names, decoder in DECODERS if name in names), None)
                if decoder is None:
                    break
                data = decoder(data)
