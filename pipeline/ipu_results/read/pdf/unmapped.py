"""Name glyphs whose font says no character: one library knows some that the other does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any
from unicodedata import category

from ipu_results.read.pdf.glyphs import SAME_PLACE, Glyph, list_characters

UNMAPPED = re.compile(r"\(cid:\d+\)")
"""What pdfminer writes for a glyph without a character."""
NAMED_KINDS = ("L", "S")
"""Categories of characters that are taken over, letters and symbols: never a digit, a point or a sign of one."""
UNKNOWN = "a glyph of it has no known character"


def name_unmapped(picture: Any, page: Any, glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Return the glyphs of a page, those without a character as the letter or symbol that PDFium reads there."""
    if not any(UNMAPPED.fullmatch(glyph.text) for glyph in glyphs):
        return list(glyphs)
    named: dict[tuple[int, int], list[tuple[float, float, str]]] = {}
    for character, (x, y), _, _ in list_characters(picture, page.page_obj.mediabox):
        named.setdefault((round(x), round(y)), []).append((x, y, character))
    return [
        replace(glyph, text=_find_name(glyph, named, float(page.height))) if UNMAPPED.fullmatch(glyph.text) else glyph
        for glyph in glyphs
    ]


def _find_name(glyph: Glyph, named: dict[tuple[int, int], list[tuple[float, float, str]]], page_height: float) -> str:
    """Return the one letter or symbol at the place of a glyph; its own text if there is none or another."""
    y = page_height - glyph.baseline
    characters = {
        character
        for across, up in product((0, -1, 1), repeat=2)
        for x, height, character in named.get((round(glyph.x0) + across, round(y) + up), ())
        if abs(glyph.x0 - x) <= SAME_PLACE and abs(y - height) <= SAME_PLACE
    }
    (name,) = characters if len(characters) == 1 else ("",)
    # A character that is the code itself is a guess: the glyph may be a digit.
    is_named = bool(name) and category(name)[0] in NAMED_KINDS and f"(cid:{ord(name)})" != glyph.text
    return name if is_named else glyph.text
