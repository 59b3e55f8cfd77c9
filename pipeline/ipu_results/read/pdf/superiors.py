"""Find superior letters and digits: glyphs that a font draws raised, with the size and baseline of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_double
from dataclasses import replace
from itertools import product
from typing import Any

import pypdfium2.raw as pdfium

from ipu_results.read.pdf.glyphs import Glyph

MIN_RISE = 0.3
"""The foot of a superior glyph is at least this far above its baseline, in heights of its ink."""
HEIGHT = 0.7
"""Height of a digit, in ems."""
SAME_PLACE = 1.0
"""Two libraries place a glyph alike to within this, in points."""

Ink = tuple[float, float, float, float]
"""Origin, baseline, foot and height of a glyph's ink, from the bottom left corner of the page."""


def lower_superiors(picture: Any, page: Any, glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Return the glyphs of a page, each superior one with the size and the baseline that it seems to have."""
    superiors = {
        (round(x), round(baseline)): (x, baseline, foot, height)
        for x, baseline, foot, height in _find_superiors(picture, page.page_obj.mediabox)
    }
    return [_lower(glyph, superiors, float(page.height)) for glyph in glyphs] if superiors else list(glyphs)


def _lower(glyph: Glyph, superiors: Mapping[tuple[int, int], Ink], page_height: float) -> Glyph:
    """Return a glyph with the size and baseline of its ink, if one of the `superiors` is at its place."""
    y = page_height - glyph.baseline
    for across, up in product((0, -1, 1), repeat=2):
        ink = superiors.get((round(glyph.x0) + across, round(y) + up))
        if ink is not None and abs(glyph.x0 - ink[0]) <= SAME_PLACE and abs(y - ink[1]) <= SAME_PLACE:
            _, baseline, foot, height = ink
            bottom = glyph.baseline - (foot - baseline)
            return replace(glyph, size=height / HEIGHT, bottom=bottom, baseline=bottom)
    return glyph


def _find_superiors(picture: Any, box: Sequence[float]) -> Iterator[Ink]:
    for character, (x, baseline), foot, height in list_characters(picture, box):
        if character.isalnum() and height and foot - baseline >= MIN_RISE * height:
            yield x, baseline, foot, height


def list_characters(picture: Any, box: Sequence[float]) -> Iterator[tuple[str, tuple[float, float], float, float]]:
    """Yield the characters of a page by PDFium, each with its origin, and foot and height of its ink."""
    turns = picture.get_rotation() // 90
    text_page = picture.get_textpage()
    left, right, bottom, top, x, y = (c_double() for _ in range(6))
    try:
        for number in range(text_page.count_chars()):
            character = chr(pdfium.FPDFText_GetUnicode(text_page.raw, number))
            pdfium.FPDFText_GetCharBox(text_page.raw, number, byref(left), byref(right), byref(bottom), byref(top))
            pdfium.FPDFText_GetCharOrigin(text_page.raw, number, byref(x), byref(y))
            start, end, origin = (
                _turn(turns, box, *point)
                for point in ((left.value, bottom.value), (right.value, top.value), (x.value, y.value))
            )
            yield character, origin, min(start[1], end[1]), abs(end[1] - start[1])
    finally:
        text_page.close()


def _turn(turns: int, box: Sequence[float], x: float, y: float) -> tuple[float, float]:
    """Return a place of the media box on the page that is shown, after some quarter turns to the right."""
    x0, y0, x1, y1 = box
    return ((x - x0, y - y0), (y - y0, x1 - x), (x1 - x, y1 - y), (y1 - y, x - x0))[turns % 4]
