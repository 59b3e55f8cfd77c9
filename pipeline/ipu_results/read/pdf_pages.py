"""Read the words of the pages of a PDF, and explain why a PDF cannot be read."""

from __future__ import annotations

import io
import logging
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import pdfplumber
import pypdfium2
import pypdfium2.raw
from pdfminer.pdftypes import PDFStream, resolve1
from pdfplumber.utils.text import extract_words

from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.ground.limits import MAX_PAGE_OBJECTS, MAX_PAGES
from ipu_results.read.pdf_glyphs import (
    DRAWINGS,
    STRIKES,
    UNKNOWN,
    UNMAPPED,
    find_hidden,
    find_repeats,
    has_mark,
    is_struck,
    list_annotations,
    lower_superiors,
    name_unmapped,
    read_layout,
)
from ipu_results.read.pdf_limits import (
    TEXT_DECODERS,
    check_drawn_size,
    check_unpacked_size,
    get_filters,
)
from ipu_results.read.pdf_lines import BASELINE_SLACK, Box, Word

HEAD_BYTES = 1024  # in which PDF readers look for the signature
TAIL_BYTES = 1024  # in which they look for the mark of the end; a file that was cut off has none
LETTER_GAP = 0.15  # letters of one word are at most this far apart, in ems
LETTER_RISE = 1.0  # tops of the letters of one word differ by at most this, in points
ENCRYPTION = b"/Encrypt"
MAX_DESCRIBED = 50  # pages that are looked at to explain why nothing was read
# What a word's place is made of, where its letters are divided at another baseline.
EDGES = (("x0", min), ("top", min), ("x1", max), ("bottom", max))
HAS_DIGIT = re.compile(r"\d")
HTML = re.compile(rb"<\s*(?:!doctype|html|head|body)\b", re.IGNORECASE)
DECODERS: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"FlateDecode": zlib.decompress,
    **TEXT_DECODERS,
}


@dataclass(frozen=True, slots=True)
class PageWords:
    """The upright words of a page that can be seen, its width, and the text that is turned or
    cannot be seen.
    """

    number: int
    words: list[Word]
    width: float
    turned: str
    hidden: str


def open_pdf(data: bytes) -> bytes:
    """Return a whole PDF of which no stream unpacks to more than the limits, without its
    encryption.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password,
    DocumentTooLargeError above a limit.
    """
    _check_signature(data)
    check_unpacked_size(data)
    if ENCRYPTION in data:
        with _translate_errors(), closing(pypdfium2.PdfDocument(data)) as document:
            unlocked = io.BytesIO()
            document.save(unlocked, flags=pypdfium2.raw.FPDF_REMOVE_SECURITY)
            data = unlocked.getvalue()
        check_unpacked_size(data)
    with _translate_errors():
        check_drawn_size(data)
    return data


def read_page_texts(data: bytes) -> list[str]:
    """Return the plain text of every page, quickly and without places.

    Raises DocumentTooLargeError above MAX_PAGES pages or for a page of too many characters.
    """
    texts = []
    with _translate_errors(), closing(pypdfium2.PdfDocument(data)) as document:
        if len(document) > MAX_PAGES:
            raise DocumentTooLargeError(f"has {len(document):,} pages, the limit is {MAX_PAGES:,}")
        if not len(document):
            raise DamagedDocumentError("is a PDF without pages")
        for number in range(1, len(document) + 1):
            with closing(document[number - 1]) as page, closing(page.get_textpage()) as text_page:
                count = max(text_page.count_chars(), pypdfium2.raw.FPDFPage_CountObjects(page.raw))
                if count > MAX_PAGE_OBJECTS:
                    message = (
                        f"has more than {MAX_PAGE_OBJECTS:,} characters or shapes on page {number}"
                    )
                    raise DocumentTooLargeError(message)
                texts.append(str(text_page.get_text_range()))
    return texts


def read_words(data: bytes, numbers: Sequence[int]) -> list[PageWords]:
    """Return the words of each page of `numbers` (from 1, ascending)."""
    with _translate_errors(), pdfplumber.open(io.BytesIO(data), pages=list(numbers)) as document:
        if [page.page_number for page in document.pages] != list(numbers):
            raise DamagedDocumentError("is a damaged PDF: pages are missing")
        with closing(pypdfium2.PdfDocument(data)) as pictures:
            return [_read_page(page, pictures) for page in document.pages]


def _check_signature(data: bytes) -> None:
    if not data.strip():
        raise DamagedDocumentError("is empty")
    if b"%PDF-" not in data[:HEAD_BYTES]:
        what = "an HTML page" if HTML.search(data[:HEAD_BYTES]) else "some other file"
        raise DamagedDocumentError(f"is not a PDF but {what}")
    if b"%%EOF" not in data[-TAIL_BYTES:]:
        raise DamagedDocumentError("is a truncated PDF: its end is missing")
    start = data.find(b"%PDF-")
    places = [int(place) for place in START_OF_INDEX.findall(data)[-1:]]  # of the last update
    if places and not any(
        INDEX.match(data[place : place + 40]) for place in (places[0], places[0] + start)
    ):
        raise DamagedDocumentError(
            "is a damaged PDF: its index is not where its end states, so updates may be lost"
        )


START_OF_INDEX = re.compile(rb"startxref\s+(\d{1,15})")
INDEX = re.compile(rb"\s*(?:xref\b|\d+\s+\d+\s+obj\b)")


@contextmanager
def _translate_errors() -> Iterator[None]:
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


def _read_page(page: Any, pictures: Any) -> PageWords:
    """Read the upright words of a page: a stamp along the margin is not part of it."""
    _check_streams(page)
    layout = read_layout(page)
    repeats, clashes = find_repeats(layout.glyphs)
    with closing(pictures[page.page_number - 1]) as picture:
        glyphs = lower_superiors(picture, page, name_unmapped(picture, page, layout.glyphs))
        hidden = find_hidden(picture, layout.glyphs)
    lines = np.array([*layout.lines, *list_annotations(page, STRIKES)]).reshape(-1, 5)
    drawings = np.array([*list_annotations(page, DRAWINGS)], dtype=float).reshape(-1, 5)
    chars = [
        {**glyph._asdict(), "doctop": glyph.top, "upright": True, "number": number}
        for number, glyph in enumerate(glyphs)
        if not repeats[number]
    ]
    words: list[Word] = []
    unseen: list[str] = []
    for letters, place in _split_words(chars):
        numbers = [letter["number"] for letter in letters if not letter["text"].isspace()]
        text = "".join(letter["text"] for letter in letters)
        if not numbers:
            continue
        if hidden[numbers].all():
            unseen.append(text)
            continue
        box = Box(page.page_number, *place)
        size = float(letters[0]["size"])
        baseline = float(letters[0]["baseline"])
        doubt = ""
        if hidden[numbers].any():
            doubt = "a part of it cannot be seen"
        elif clashes[numbers].any():
            doubt = "other text is printed over it"
        elif UNMAPPED.search(text):
            doubt = UNKNOWN
        elif (
            len(lines)
            and HAS_DIGIT.search(text)
            and is_struck(lines, box.x0, box.x1, baseline, size)
        ):
            doubt = "it is struck through"
        elif HAS_DIGIT.search(text) and has_mark(lines, box.x0, box.x1, baseline, size):
            doubt = "a small shape or picture is drawn next to it"
        elif len(drawings) and is_struck(drawings, box.x0, box.x1, baseline, size):
            doubt = "an annotation is drawn over it"
        fonts = {letter["font"] for letter in letters if not letter["text"].isspace()}
        words.append(Word(text, size, box, baseline, doubt, fonts.pop() if len(fonts) == 1 else ""))
    return PageWords(page.page_number, words, float(page.width), layout.turned, " ".join(unseen))


def _split_words(chars: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], list[float]]]:
    """Yield letters and place of each word; where the baseline changes, another word begins."""
    words = extract_words(
        chars,
        return_chars=True,
        x_tolerance_ratio=LETTER_GAP,
        y_tolerance=LETTER_RISE,
        extra_attrs=["size"],
        expand_ligatures=False,
    )
    for word in words:
        parts = [word["chars"][:1]]
        for last, letter in pairwise(word["chars"]):
            if abs(last["baseline"] - letter["baseline"]) > BASELINE_SLACK * letter["size"]:
                parts.append([])
            parts[-1].append(letter)
        for letters in parts:
            ends = (
                [func(letter[key] for letter in letters) for key, func in EDGES]
                if len(parts) > 1
                else ()
            )
            yield letters, [float(end) for end in ends or (word[key] for key, _ in EDGES)]


def _check_streams(page: Any) -> None:
    """Raise for a page whose content fails its checksum: the libraries would read as much of it as
    they can.
    """
    for content in map(resolve1, page.page_obj.contents):
        if (
            isinstance(content, PDFStream)
            and content.rawdata is not None
            and content.decipher is None
        ):
            data = content.rawdata
            for name in takewhile(DECODERS.__contains__, get_filters(content)):
                data = DECODERS[name](data)


def describe_failure(data: bytes, hidden: Sequence[int]) -> str:
    """Explain why a PDF has no table that could be read: it is a scan, its text is turned, or it
    cannot be seen.
    """
    with _translate_errors(), closing(pypdfium2.PdfDocument(data)) as document:
        for number in range(1, min(len(document), MAX_DESCRIBED) + 1):
            page = document[number - 1]
            if number in hidden:
                return f"cannot be read: the text of page {number} cannot be seen"
            if message := _describe_page(page):
                return f"cannot be read: page {number} {message}"
    return "has no table with a known header"


def _describe_page(page: Any) -> str | None:
    with closing(page.get_textpage()) as text_page:
        count = text_page.count_chars()
        if not count:
            images = next(page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]), None)
            return (
                "is an image without text (a scan); add a transcription instead" if images else None
            )
        angles = [
            pypdfium2.raw.FPDFText_GetCharAngle(text_page.raw, place)
            for place in range(0, count, 1 + count // 500)
        ]
        turned = page.get_rotation() + math.degrees(sorted(angles)[len(angles) // 2])
        return (
            f"is turned by {round(turned) % 360}°: only upright text is read"
            if round(turned) % 360
            else None
        )
