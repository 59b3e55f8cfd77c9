"""Read the glyphs of a page: where each is printed, and whether its font proves what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unicodedata import category

from pdfminer.encodingdb import EncodingDB, name2unicode
from pdfminer.layout import LTChar
from pdfminer.pdfdevice import PDFTextDevice
from pdfminer.pdffont import (
    LITERAL_STANDARD_ENCODING,
    PDFCIDFont,
    PDFType3Font,
    PDFUnicodeNotDefined,
)
from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import PDFStream, list_value, resolve1
from pdfminer.psparser import literal_name

from ipu_results.errors import DocumentTooLargeError
from ipu_results.kit.limits import MAX_PAGE_OBJECTS

MAX_SLOPE = 0.02  # text that rises by at most this share of its length is upright
MIN_SIZE = 3.0  # smaller text cannot be read, in points
MIN_WIDTH = 0.15  # neither can a digit narrower than this, in ems
# fonts of pictures: without an encoding their codes are no letters
PICTURE_FONTS = ("symbol", "dingbats", "wingdings", "webdings")
FONT_FILES = ("FontFile", "FontFile2", "FontFile3")
IN_FIGURE = re.compile(r"[\d.,+\-\u2212]")
# categories of characters that are not printed, or are printed over another one
UNPRINTED = ("C", "M", "Zl", "Zp")


class Box(NamedTuple):
    """A place on a page (from 1), in points from its top left corner."""

    page: int
    x0: float
    top: float
    x1: float
    bottom: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    def overlaps(self, other: Box) -> bool:
        """Check whether another box shares a place across the page, above, below or here."""
        return min(self.x1, other.x1) > max(self.x0, other.x0)

    def meets(self, other: Box) -> bool:
        """Check whether another box shares a place of the page."""
        is_level = min(self.bottom, other.bottom) > max(self.top, other.top)
        return self.page == other.page and is_level and self.overlaps(other)

    def join(self, other: Box) -> Box:
        """Return the smallest box around this one and another on its page."""
        return Box(
            page=self.page,
            x0=min(self.x0, other.x0),
            top=min(self.top, other.top),
            x1=max(self.x1, other.x1),
            bottom=max(self.bottom, other.bottom),
        )

    def __str__(self) -> str:
        return f"page {self.page}, box {self.x0:.1f},{self.top:.1f},{self.x1:.1f},{self.bottom:.1f}"


class Glyph(NamedTuple):
    """One glyph, its size and baseline in points, and why it may not be what it seems, if so."""

    text: str
    size: float
    box: Box
    baseline: float
    doubt: str


@dataclass(slots=True)
class PageGlyphs:
    """The glyphs of a page: those that are upright, those turned or mirrored, and blanks."""

    upright: list[Glyph] = field(default_factory=list)
    turned: list[Glyph] = field(default_factory=list)
    blanks: list[Glyph] = field(default_factory=list)


class FontManager(PDFResourceManager):
    """Keeps the dictionary of each font, which pdfminer does not."""

    def get_font(self, objid: object, spec: Mapping[str, object]) -> Any:
        font: Any = super().get_font(objid, spec)
        if not hasattr(font, "spec"):  # else it is the one that a composite font is made of
            font.spec = spec
        return font


class GlyphDevice(PDFTextDevice):
    """Collects the glyphs of one page."""

    def __init__(self, fonts: FontManager, number: int, page: PDFPage) -> None:
        super().__init__(fonts)
        self.number = number
        self.height = measure_page(page)[1]
        self.glyphs = PageGlyphs()
        self.count = 0
        self.proofs: dict[tuple[int, int], bool] = {}

    def render_char(
        self,
        matrix: Any,
        font: Any,
        fontsize: float,
        scaling: float,
        rise: float,
        cid: int,
        *rest: Any,
    ) -> float:
        """Keep a glyph and return how far it moves the pen, as pdfminer asks for."""
        try:
            text = str(font.to_unichr(cid))
        except PDFUnicodeNotDefined:
            text = f"(cid:{cid})"
        width = font.char_width(cid)
        shift = font.char_disp(cid)
        item = LTChar(matrix, font, fontsize, scaling, rise, text, width, shift, *rest)
        self.count += 1
        if self.count > MAX_PAGE_OBJECTS:
            raise DocumentTooLargeError(
                f"has more than {MAX_PAGE_OBJECTS:,} characters on page {self.number}"
            )
        key = (id(font), cid)
        if key not in self.proofs:
            self.proofs[key] = proves(font, cid, text)
        # pdfminer measures from the bottom of the page
        box = Box(
            page=self.number,
            x0=item.x0,
            top=self.height - item.y1,
            x1=item.x1,
            bottom=self.height - item.y0,
        )
        baseline = self.height - matrix[3] * rise - matrix[5]
        doubt = _find_doubt(text, item.size, box, self.proofs[key])
        glyph = Glyph(text, item.size, box, baseline, doubt)
        if text.isspace():
            self.glyphs.blanks.append(glyph)
        elif _is_upright(matrix, item.adv):
            self.glyphs.upright.append(glyph)
        else:
            self.glyphs.turned.append(glyph)
        return item.adv


def _is_upright(matrix: Sequence[float], advance: float) -> bool:
    """Check whether text runs to the right, level and with its top above; a font may be mirrored
    twice.
    """
    across, slope, _, up, *_ = matrix
    if advance < 0:
        across = -across
        up = -up
    is_level = abs(slope) <= MAX_SLOPE * abs(across)
    return across > 0 and up > 0 and is_level


def _find_doubt(text: str, size: float, box: Box, is_proven: bool) -> str:
    """Return why a glyph may not be what it seems; `""` if it is."""
    if not text or any(category(letter).startswith(UNPRINTED) for letter in text):
        return "a character of it is not printed"
    if len(text) > 1 and not text.isalpha():
        return "a glyph of it has no known character"
    if size < MIN_SIZE or (text.isdigit() and box.width < MIN_WIDTH * size):
        return "a part of it is too small to be seen"
    if IN_FIGURE.fullmatch(text) and not is_proven:
        return "its font does not prove its digits"
    return ""


def read_glyphs(fonts: FontManager, number: int, page: PDFPage) -> PageGlyphs:
    """Return the glyphs of a page. Raises DocumentTooLargeError for too many of them."""
    device = GlyphDevice(fonts, number, page)
    PDFPageInterpreter(fonts, device).process_page(page)
    return device.glyphs


def measure_page(page: PDFPage) -> tuple[float, float]:
    """Return width and height of a page as it is turned, in points."""
    x0, y0, x1, y1 = page.mediabox
    width = abs(x1 - x0)
    height = abs(y1 - y0)
    return (height, width) if page.rotate % 180 else (width, height)


def proves(font: Any, code: int, text: str) -> bool:
    """Check whether a font proves that the glyph of a code is the character `text`.

    Proof is an embedded font with a map to Unicode, or a known encoding of letters. Where a font
    has both, they must agree. The drawings of a Type 3 font may be anything.
    """
    if isinstance(font, PDFType3Font):
        return False
    descriptor = resolve1(font.spec.get("FontDescriptor")) or {}
    is_embedded = any(name in descriptor for name in FONT_FILES)
    has_map = isinstance(resolve1(font.spec.get("ToUnicode")), PDFStream)
    if isinstance(font, PDFCIDFont):
        return is_embedded and has_map
    named = _find_encoded(font, code, is_embedded)
    if named is None:
        return is_embedded and has_map
    return named == text


def _find_encoded(font: Any, code: int, is_embedded: bool) -> str | None:
    """Return the character that the encoding of a font gives a code; None if it has none."""
    is_picture = any(name in font.basefont.casefold() for name in PICTURE_FONTS)
    # a font that is not embedded has the letters of its name
    has_letters = not is_embedded and not is_picture
    encoding = resolve1(font.spec.get("Encoding"))
    if encoding is None:
        # of an embedded Type 1 font pdfminer reads the names of the glyphs
        has_names = "FontFile" in font.descriptor
        return font.cid2unicode.get(code) if has_letters or has_names else None
    if isinstance(encoding, dict):
        differences = _read_differences(encoding)
        if code in differences:
            return differences[code]
        # what is not among the differences is that of another encoding, by default the standard one
        standard = LITERAL_STANDARD_ENCODING if has_letters else None
        encoding = encoding.get("BaseEncoding", standard)
    return EncodingDB.encodings.get(literal_name(encoding), {}).get(code)


def _read_differences(encoding: Mapping[str, Any]) -> dict[int, str | None]:
    """Return the characters that an encoding sets by their names, None for an unknown name."""
    characters: dict[int, str | None] = {}
    code = 0
    for entry in list_value(encoding.get("Differences", [])):
        if isinstance(entry, int):
            code = entry
            continue
        try:
            characters[code] = name2unicode(str(literal_name(entry)))
        except (KeyError, ValueError):
            characters[code] = None
        code += 1
    return characters
