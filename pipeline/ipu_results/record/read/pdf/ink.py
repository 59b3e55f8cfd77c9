"""Compare the text of a page with its ink: whether it is seen as it is read, and nothing else is.

A page is drawn three times: as it is, without its text, and its text alone, in black and without
what clips it. Where text is plain, the first two differ exactly by the third, and without the text
nothing but rules and fills is left in the row. Whatever hides or alters a figure breaks that: its
colour, a cover, a clip, a line, a picture, a note, a field, a layer that is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import byref, c_float
from typing import Any

import numpy as np
import numpy.typing as npt
import pypdfium2.raw as pdfium

from ipu_results.record.read.pdf.glyphs import Box, PageGlyphs
from ipu_results.record.read.pdf.lines import HAS_DIGIT, Cell, Line

Array = npt.NDArray[Any]

SCALE = 2.0  # pixels a point: the strokes of the smallest print are a pixel wide
MAX_PIXELS = 8_000_000  # a page is drawn in at most this many pixels
MIN_CHANGE = 8  # shades of 255 that differ by less are alike
MIN_CONTRAST = 32  # paler text cannot be seen
MIN_INK = 48  # a pixel of black text with less is the rim of a stroke
# Ink and text agree to within this share of the contrast; two pictures round alike.
MAX_DEVIATION = 0.4
# Digits and capital letters reach from the baseline to this height, in ems. No rule of a table is
# there, and a rule may be below and above.
TEXT_RISE = 0.76
TEXT_DROP = 0.04
# A line between the height of the text and this, in ems, is a rule, or it is a mark of the figure.
RULE_RISE = 1.0
RULE_DROP = 0.25  # a mark of a figure is nearer to its baseline than this, in ems
FOOT = 0.1  # every digit reaches to within this of the baseline, in ems, or its font raises it
MARGIN = 0.75  # nothing is drawn next to a table up to this distance, in ems
# A glyph has ink there, where that of its neighbours is not: as a share of its width.
INK_MARGIN = 0.2
PAD = 0.15  # strokes leave the box of their glyph by at most this, in ems
MAX_DEPTH = 20  # forms of a page are nested at most this deep
WIDEN = 10_000.0  # what clips a text becomes so much wider, which is more than a page


class Ink:
    """Three pictures of a page in shades of grey, and its text that is turned or blank."""

    def __init__(self, page: Any, glyphs: PageGlyphs) -> None:
        """Draw a page of pypdfium2, which is not to be used any more."""
        self.glyphs = glyphs
        is_cropped = page.get_cropbox() != page.get_mediabox()
        self.is_odd = is_cropped or _has_notes(page)
        width, height = page.get_size()
        area = max(width * height, 1.0)
        self.scale = min(SCALE, (MAX_PIXELS / area) ** 0.5)
        self.shown = self._draw(page)
        items = list(_walk(page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject))
        texts = [item for item in items if _get_type(item) == pdfium.FPDF_PAGEOBJ_TEXT]
        for item in texts:
            pdfium.FPDFPageObj_SetIsActive(item, False)
        self.bare = self._draw(page)
        for item in items:
            pdfium.FPDFPageObj_SetIsActive(item, False)
        for item in texts:
            pdfium.FPDFPageObj_SetIsActive(item, True)
            _set_black(item)
        self.text = 255 - self._draw(page, draw_annots=False)

    def _draw(self, page: Any, **options: Any) -> Array:
        picture = page.render(scale=self.scale, grayscale=True, **options).to_numpy()
        pixels: Array = picture[:, :, 0] if picture.ndim == 3 else picture
        return pixels.copy()

    def find_doubt(self, line: Line, block: Sequence[Line], table: Box | None = None) -> str:
        """Return why a line may not be seen as it is read; `""` if it is.

        `block` are the lines that share its height, all of a header or it alone, and `table` is
        what it is in, if it is in one.
        """
        size = line.largest.size
        baseline = line.largest.baseline
        around = table or line.box
        band = Box(
            page=line.box.page,
            x0=around.x0 - MARGIN * size,
            top=baseline - TEXT_RISE * size,
            x1=around.x1 + MARGIN * size,
            bottom=baseline + TEXT_DROP * size,
        )
        if self.is_odd:
            return "the page has a note or a field, or is cropped"
        if any(glyph.box.meets(band) for glyph in self.glyphs.turned):
            return "turned text is in the row"
        for cell in line.cells:
            doubt = cell.doubt or self._find_doubt_of(cell)
            if doubt:
                return f"{cell.text!r}: {doubt}"
        if _find_varied(self._cut(self.bare, band), axis=0).any():
            return "something is drawn in the row that is no text: a line, a sign or a picture"
        if self._has_unread_ink(band, block, PAD * size, has_blanks=table is not None):
            return "text is drawn in the row that has no characters"
        return ""

    def _has_unread_ink(
        self, band: Box, block: Sequence[Line], pad: float, has_blanks: bool
    ) -> bool:
        """Check whether there is ink of text in a band where no glyph of the lines is."""
        ink = self._rows(self.text, band)
        unread = ink.copy()
        for line in block:
            for cell in line.cells:
                for glyph in cell.glyphs:
                    unread[:, self._columns(glyph.box, pad)] = 0
        # the ink of a blank is unread, also where the pad of a glyph reaches into it
        for blank in self.glyphs.blanks:
            if has_blanks and blank.box.meets(band):
                middle = self._columns(blank.box, -blank.box.width / 3)
                unread[:, middle] = ink[:, middle]
        return bool((unread[:, self._columns(band)] >= MIN_INK).any())

    def _find_doubt_of(self, cell: Cell) -> str:
        shown = self._cut(self.shown, cell.box)
        bare = self._cut(self.bare, cell.box)
        text = self._cut(self.text, cell.box)
        if not text.size:
            return "it is off the page"
        change = np.maximum(shown, bare) - np.minimum(shown, bare)  # they are unsigned
        contrast = change.max()
        if contrast < MIN_CONTRAST or text.max() < MIN_INK:
            return "it cannot be seen"
        deviation = np.abs(change / contrast - text / text.max())
        if deviation.max() > MAX_DEVIATION:
            return "a part of it is hidden, or something is drawn over it"
        if HAS_DIGIT(cell.text) and self._is_marked(cell):
            return "a mark is drawn above it, or below a part of it"
        max_drop = FOOT * cell.size
        foot = cell.box._replace(top=cell.baseline - max_drop, bottom=cell.baseline + max_drop)
        rows = self._rows(self.text, cell.box)
        rows_of_foot = self._rows(self.text, foot)
        for glyph in cell.glyphs:
            middle = self._columns(glyph.box, -INK_MARGIN * glyph.box.width)
            if rows[:, middle].max(initial=0) < MIN_INK:
                return "a character of it is not drawn"
            is_level_digit = glyph.text.isdigit() and abs(glyph.baseline - cell.baseline) < max_drop
            if is_level_digit and rows_of_foot[:, middle].max(initial=0) < MIN_INK:
                return "its font draws a digit raised: a footnote mark or a part of the figure"
        return ""

    def _is_marked(self, cell: Cell) -> bool:
        """Check whether something that is no text is drawn above a figure or below it, and is no
        rule of a table.

        A rule above a figure goes on at one of its sides: a line that ends at both is a mark. A
        rule or an underline is below all of a figure: what is below a part of it is a mark.
        """
        size = cell.size
        baseline = cell.baseline
        pad = PAD * size
        above = cell.box._replace(
            top=baseline - RULE_RISE * size, bottom=baseline - TEXT_RISE * size
        )
        to_left = self._cut(self.bare, above._replace(x0=above.x0 - pad))
        to_right = self._cut(self.bare, above._replace(x1=above.x1 + pad))
        # a row of pixels that is of one shade up to the pad goes on there
        ends_at_left = _find_varied(to_left, axis=1)
        ends_at_right = _find_varied(to_right, axis=1)
        if (ends_at_left & ends_at_right).any():
            return True
        below = cell.box._replace(
            top=baseline + TEXT_DROP * size, bottom=baseline + RULE_DROP * size
        )
        inner = self._columns(cell.box, -pad)
        is_drawn = _find_varied(self._rows(self.bare, below)[:, inner], axis=0)
        return bool(is_drawn.any() and not is_drawn.all())

    def _cut(self, picture: Array, box: Box) -> Array:
        """Return the part of a picture in a box."""
        return self._rows(picture, box)[:, self._columns(box)]

    def _rows(self, picture: Array, box: Box) -> Array:
        """Return the part of a picture between top and bottom of a box."""
        rows: Array = picture[self._span(box.top, box.bottom)]
        return rows

    def _columns(self, box: Box, pad: float = 0.0) -> slice:
        """Return the columns of pixels that a box has, with a pad at both sides."""
        return self._span(box.x0 - pad, box.x1 + pad)

    def _span(self, start: float, stop: float) -> slice:
        """Return the pixels between two places in points: at least one."""
        first = max(0, int(start * self.scale))
        return slice(first, max(first + 1, round(stop * self.scale)))


def _find_varied(pixels: Array, axis: int) -> Array:
    """Return which rows (axis 1) or columns (axis 0) of pixels are not of one shade."""
    if not pixels.size:
        return np.zeros(1, dtype=bool)
    varied: Array = pixels.max(axis=axis) - pixels.min(axis=axis) >= MIN_CHANGE
    return varied


def _walk(parent: Any, count: Any, get: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the texts, shapes and pictures of a page, also those in its forms."""
    for number in range(count(parent)):
        item = get(parent, number)
        if _get_type(item) != pdfium.FPDF_PAGEOBJ_FORM:
            yield item
        elif depth < MAX_DEPTH:
            yield from _walk(
                item, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, depth + 1
            )


def _get_type(item: Any) -> int:
    return int(pdfium.FPDFPageObj_GetType(item))


def _set_black(item: Any) -> None:
    """Draw a text in black, and without what clips it, if that is around its middle."""
    pdfium.FPDFPageObj_SetFillColor(item, 0, 0, 0, 255)
    pdfium.FPDFPageObj_SetStrokeColor(item, 0, 0, 0, 255)
    edges = [c_float() for _ in range(4)]
    pdfium.FPDFPageObj_GetBounds(item, *map(byref, edges))
    left, bottom, right, top = (edge.value for edge in edges)
    x = (1 - WIDEN) * (left + right) / 2
    y = (1 - WIDEN) * (bottom + top) / 2
    pdfium.FPDFPageObj_TransformClipPath(item, WIDEN, 0, 0, WIDEN, x, y)


def _has_notes(page: Any) -> bool:
    """Check whether a page has a note or a field: anything on top of it but links."""
    for place in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
        note = pdfium.FPDFPage_GetAnnot(page.raw, place)
        kind = pdfium.FPDFAnnot_GetSubtype(note)
        pdfium.FPDFPage_CloseAnnot(note)
        if kind != pdfium.FPDF_ANNOT_LINK:
            return True
    return False
