"""Open a PDF within the limits: refuse what unpacks or draws too much before a library reads it."""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
from pdfminer.ascii85 import ascii85decode
from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import PDFStream, resolve1
from pdfminer.psparser import literal_name

from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.kit.limits import (
    MAX_DRAWN_BYTES,
    MAX_IMAGE_PIXELS,
    MAX_PAGES,
    MAX_UNPACKED_PDF_BYTES,
    MAX_UNPACKED_STREAM_BYTES,
)

TAIL_BYTES = 1024  # in which PDF readers look for the mark of the end; a file cut off has none
START_OF_INDEX = re.compile(rb"startxref\s+(\d{1,15})")
INDEX = re.compile(rb"\s*(?:xref\b|\d+\s+\d+\s+obj\b)")

STREAM = re.compile(rb">>\s*stream(?:\r?\n|\r)")
DICTIONARY_BYTES = 16_384  # before the keyword of a stream, in which its dictionary is
ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
FILTERS = re.compile(rb"/(?:Filter|F)\s*(\[[^\]]*\]|/[^\s/<>\[\]()]+|\d+\s+\d+\s+R)")
IMAGE = re.compile(rb"/Subtype\s*/Image\b")
SIDES = re.compile(rb"/(Width|Height)\s+(\d{1,9})\b")
# The filters of ordinary producers. A stream that is packed twice, or as phrases or runs, may
# unpack to any size: no producer of tables writes one.
FLATE = b"FlateDecode"
TEXT = b"ASCII85Decode"
PLAIN_FILTERS: Sequence[Sequence[bytes]] = ([], [FLATE], [TEXT], [TEXT, FLATE])
PIECE = 1 << 16  # bytes that are unpacked at a time: a stream is measured without being kept
DRAW = re.compile(rb"/([^\s/<>\[\](){}%]+)(?:\s|%[^\r\n]*[\r\n])+Do\b")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn whatever the PDF libraries raise for a damaged file into DamagedDocumentError; keep
    their warnings quiet.
    """
    logger = logging.getLogger("pdfminer")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    except (DamagedDocumentError, DocumentTooLargeError):
        raise
    except Exception as error:
        text = f"{type(error).__name__} {error}".lower()
        message = "cannot be read as a PDF"
        if "password" in text:
            message = "is encrypted: a password is needed"
        elif "security" in text:
            message = "is encrypted in a way that is not supported"
        raise DamagedDocumentError(message) from error
    finally:
        logger.setLevel(before)


def open_pdf(data: bytes) -> bytes:
    """Return a whole PDF within the limits, without its encryption.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password, and
    DocumentTooLargeError above a limit.
    """
    _check_index(data)
    is_encrypted = b"/Encrypt" in data
    _check_streams(data, is_encrypted)
    with translate_errors():
        if is_encrypted:
            with closing(pypdfium2.PdfDocument(data)) as document:
                unlocked = io.BytesIO()
                document.save(unlocked, flags=pdfium.FPDF_REMOVE_SECURITY)
            data = unlocked.getvalue()
            _check_streams(data, is_encrypted=False)
        _check_pages(data)
    return data


def _check_index(data: bytes) -> None:
    """Raise for a file that was cut off, or whose updates a library may not find."""
    if b"%%EOF" not in data[-TAIL_BYTES:]:
        raise DamagedDocumentError("is a truncated PDF: its end is missing")
    stated = START_OF_INDEX.findall(data)
    if not stated:
        return
    place = int(stated[-1])  # of the last update
    start = max(data.find(b"%PDF-"), 0)  # from which some writers count
    if not INDEX.match(data, place) and not INDEX.match(data, place + start):
        raise DamagedDocumentError(
            "is a damaged PDF: its index is not where its end states, so updates may be lost"
        )


def _check_streams(data: bytes, is_encrypted: bool) -> None:
    """Unpack every stream once, without keeping it.

    Streams are found by their keyword and not by the index of the file, so none is missed that a
    library would repair. Those of an encrypted file are not expected to be whole.
    """
    total = 0
    for match in STREAM.finditer(data):
        head = data.rfind(b"obj", max(0, match.start() - DICTIONARY_BYTES), match.start())
        dictionary = _unescape(data[max(head, 0) : match.start()])
        is_image = IMAGE.search(dictionary) is not None
        if is_image and _count_pixels(dictionary) > MAX_IMAGE_PIXELS:
            raise DocumentTooLargeError(f"has an image of more than {MAX_IMAGE_PIXELS:,} pixels")
        filters: list[bytes] = []
        listed = FILTERS.search(dictionary)
        if listed:
            # a reference to another object is no name: it is in no list of plain filters
            filters = listed[1].strip(b"[] ").replace(b"/", b" ").split()
        if filters not in PLAIN_FILTERS:
            if is_image:
                continue  # a codec of pictures, which unpacks to their pixels
            raise DocumentTooLargeError("has a stream that may unpack to any size: not read")
        end = data.find(b"endstream", match.end())
        if end < 0:
            end = len(data)
        packed = data[match.end() : end]
        total += _measure(packed, filters, is_encrypted or is_image)
        if total > MAX_UNPACKED_PDF_BYTES:
            raise DocumentTooLargeError(f"unpacks to more than {MAX_UNPACKED_PDF_BYTES:,} bytes")


def _unescape(name: bytes) -> bytes:
    """Return names of PDF with their `#41` spelled out."""
    return ESCAPE.sub(lambda code: bytes.fromhex(code[1].decode()), name)


def _count_pixels(dictionary: bytes) -> int:
    sides = dict(SIDES.findall(dictionary))
    return int(sides.get(b"Width", 0)) * int(sides.get(b"Height", 0))


def _measure(packed: bytes, filters: Sequence[bytes], may_be_damaged: bool) -> int:
    """Return the size that a stream unpacks to."""
    size = 0
    decoder = zlib.decompressobj()
    try:
        if TEXT in filters:
            packed = ascii85decode(packed)
        if FLATE not in filters:
            return len(packed)
        for start in range(0, len(packed), PIECE):
            rest = packed[start : start + PIECE]
            while rest and not decoder.eof:
                size += len(decoder.decompress(rest, PIECE))
                rest = decoder.unconsumed_tail
                if size > MAX_UNPACKED_STREAM_BYTES:
                    limit = f"{MAX_UNPACKED_STREAM_BYTES:,} bytes"
                    raise DocumentTooLargeError(f"has a stream that unpacks to more than {limit}")
        is_whole = decoder.eof
    except (zlib.error, ValueError):
        is_whole = False
    # The libraries would read as much of a damaged stream as they can.
    if not is_whole and not may_be_damaged:
        raise DamagedDocumentError("is a damaged PDF: a stream of it is not whole")
    return size


def _check_pages(data: bytes) -> None:
    """Measure what each page draws: a stream may be drawn many times, and so may those in it."""
    pages = PDFPage.create_pages(PDFDocument(PDFParser(io.BytesIO(data))))
    number = 0
    for number, page in enumerate(pages, 1):
        if number > MAX_PAGES:
            raise DocumentTooLargeError(f"has more than {MAX_PAGES:,} pages, the limit")
        if _measure_drawing(page.contents, page.resources, {}) > MAX_DRAWN_BYTES:
            raise DocumentTooLargeError(
                f"draws more than {MAX_DRAWN_BYTES:,} bytes on page {number}"
            )
    if not number:
        raise DamagedDocumentError("is a PDF without pages")


def _measure_drawing(contents: Sequence[Any], resources: Any, forms: dict[int, int]) -> int:
    """Return the bytes of instructions that streams follow; `forms` has those of each form."""
    size = 0
    known = resolve1(resources or {})
    objects = resolve1(known.get("XObject")) or {}
    for content in map(resolve1, contents):
        instructions = content.get_data() if isinstance(content, PDFStream) else b""
        size += len(instructions)
        for name in DRAW.findall(instructions):
            form = resolve1(objects.get(_unescape(name).decode("latin-1")))
            if isinstance(form, PDFStream) and literal_name(form.get("Subtype")) == "Form":
                if id(form) not in forms:
                    forms[id(form)] = MAX_DRAWN_BYTES  # if it draws itself
                    inner = form.get("Resources") or resources
                    forms[id(form)] = _measure_drawing([form], inner, forms)
                size += forms[id(form)]
            if size > MAX_DRAWN_BYTES:
                return size
    return size
