"""Read the glyphs of a page: which are printed twice, hidden, struck through, raised or without a
character.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from ctypes import byref, c_double
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np
import numpy.typing as npt
import pypdfium2.raw as pdfium
from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import LTChar, LTContainer, LTCurve, LTImage, LTItem, LTRect
from pdfminer.pdfinterp import PDFPageInterpreter

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import MAX_PAGE_OBJECTS

# the foot of a superior glyph is at least this far above its baseline, in heights of its ink
MIN_RISE = 0.3
HEIGHT = 0.7  # height of a digit, in ems
SAME_PLACE = 1.0  # two libraries place a glyph alike to within this, in points
MIN_SIZE = 1.0  # smaller text cannot be seen, in points
MIN_DIGIT_WIDTH = 0.1  # a digit narrower than this, in ems, cannot be read
MIN_CONTRAST = (
    8  # ink differs from its background by at least this, of 255, in one of red, green and blue
)
MAX_PIXELS = 4_000_000  # a page is drawn in at most this many pixels
# Where the ink of a glyph is looked for, as shares of its width: not where it may be that of its
# neighbours.
INK_WIDTH = (0.25, 0.75)
# Where the ink of a glyph is looked for above its baseline, in ems: not where it may be that of
# other lines.
INK_RISE = (-0.08, 0.7)
MAX_SLOPE = 0.02  # text that rises by at most this share of its length is upright
# Glyphs are printed on one another if they share more than this part of the smaller one's width and
# height.
OVERLAP = 0.5
# A glyph printed twice, as fake bold is, is shifted by at most one of these: shares of its width
# and of its size.
TWICE_WIDTH, TWICE_EMS = 0.3, 0.12
TWICE_SIZE = 0.1  # both have the same size, to within this share
MAX_STACKED = 2000  # more glyphs at one place across the page are not compared: no page has them
# A line this far above the baseline, in ems, strikes text through: one higher or lower is a rule of
# the table.
STRIKE_RISE = (0.1, 0.58)
STRIKE_WIDTH = 0.25  # it does so over at least this length, in ems
# A shape of at most this size is a mark, between these heights and at most this far from a text,
# all in ems.
MARK_WIDTH, MARK_HEIGHT, MARK_RISE, MARK_GAP = 1.2, 1.1, (0.05, 0.75), 0.75
STRIKES = ("StrikeOut",)
# annotations over the page
DRAWINGS = "FreeText Stamp Ink Line Square Circle Polygon PolyLine Caret Redact".split()
THIN = 0.25  # a filled shape of at most this height, in ems, is a line
MAX_DEPTH = 20  # forms of a page are nested at most this deep
UNMAPPED = re.compile(r"\(cid:\d+\)")  # what pdfminer writes for a glyph without a character
# Categories of characters that are taken over, letters and symbols: never a digit, a point or a
# sign of one.
NAMED_KINDS = ("L", "S")
UNKNOWN = "a glyph of it has no known character"

Array = npt.NDArray[Any]
Character = tuple[str, tuple[float, float], float, float]
"""Text, origin, and foot and height of the ink of a glyph by PDFium, from the bottom left corner of
the page.
"""


class Glyph(NamedTuple):
    """One upright glyph: places in points from the top left corner of the page's media box."""

    text: str
    size: float
    x0: float
    top: float
    x1: float
    bottom: float
    baseline: float
    font: str = ""
    """Name of its font, without the tag of a subset."""


def lower_superiors(picture: Any, page: Any, glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Return the glyphs of a page, each superior one with the size and the baseline that it seems
    to have.

    A superior letter or digit is drawn raised by its font: its size and baseline are those of the
    others.
    """
    superiors = _index_places(
        (text, (x, baseline), foot, height)
        for text, (x, baseline), foot, height in list_characters(picture, page.page_obj.mediabox)
        if text.isalnum() and height and foot - baseline >= MIN_RISE * height
    )
    lowered = list(glyphs)
    for number, glyph in enumerate(glyphs) if superiors else ():
        for _, (_, baseline), foot, height in islice(
            _find_at(glyph, superiors, float(page.height)), 1
        ):
            bottom = glyph.baseline - (foot - baseline)
            lowered[number] = glyph._replace(size=height / HEIGHT, bottom=bottom, baseline=bottom)
    return lowered


def name_unmapped(picture: Any, page: Any, glyphs: Sequence[Glyph]) -> list[Glyph]:
    """Return the glyphs of a page, those without a character as the letter or symbol that PDFium
    reads there.

    A font may say no character for a glyph. PDFium knows some that pdfminer does not.
    """
    if not any(UNMAPPED.fullmatch(glyph.text) for glyph in glyphs):
        return list(glyphs)
    characters = _index_places(list_characters(picture, page.page_obj.mediabox))
    named = []
    for glyph in glyphs:
        places = (
            _find_at(glyph, characters, float(page.height))
            if UNMAPPED.fullmatch(glyph.text)
            else ()
        )
        names = {name for name, *_ in places}
        name = names.pop() if len(names) == 1 else ""
        # A character that is the code itself is a guess: the glyph may be a digit.
        is_named = (
            bool(name) and category(name)[0] in NAMED_KINDS and f"(cid:{ord(name)})" != glyph.text
        )
        named.append(glyph._replace(text=name) if is_named else glyph)
    return named


def _index_places(characters: Iterable[Character]) -> dict[tuple[int, int], list[Character]]:
    index: dict[tuple[int, int], list[Character]] = {}
    for character in characters:
        x, y = character[1]
        index.setdefault((round(x), round(y)), []).append(character)
    return index


def _find_at(
    glyph: Glyph, index: Mapping[tuple[int, int], Sequence[Character]], page_height: float
) -> Iterator[Character]:
    """Yield the characters at the place of a glyph; of several at one point, the last that is drawn
    comes first.
    """
    y = page_height - glyph.baseline
    for across, up in product((0, -1, 1), repeat=2):
        for character in reversed(index.get((round(glyph.x0) + across, round(y) + up), ())):
            if (
                abs(glyph.x0 - character[1][0]) <= SAME_PLACE
                and abs(y - character[1][1]) <= SAME_PLACE
            ):
                yield character


def list_characters(picture: Any, box: Sequence[float]) -> Iterator[Character]:
    """Yield the characters of a page by PDFium, each with its origin, and foot and height of its
    ink.
    """
    turns = picture.get_rotation() // 90
    left, right, bottom, top, x, y = (c_double() for _ in range(6))
    with closing(picture.get_textpage()) as text_page:
        for number in range(text_page.count_chars()):
            character = chr(pdfium.FPDFText_GetUnicode(text_page.raw, number))
            pdfium.FPDFText_GetCharBox(
                text_page.raw, number, byref(left), byref(right), byref(bottom), byref(top)
            )
            pdfium.FPDFText_GetCharOrigin(text_page.raw, number, byref(x), byref(y))
            _, start = _turn(turns, box, left.value, bottom.value)
            _, end = _turn(turns, box, right.value, top.value)
            yield character, _turn(turns, box, x.value, y.value), min(start, end), abs(end - start)


def _turn(turns: int, box: Sequence[float], x: float, y: float) -> tuple[float, float]:
    """Return a place of the media box on the page that is shown, after some quarter turns to the
    right.
    """
    x0, y0, x1, y1 = box
    return ((x - x0, y - y0), (y - y0, x1 - x), (x1 - x, y1 - y), (y1 - y, x - x0))[turns % 4]


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Upright glyphs in the order in which they are drawn, other text, and lines as (x0, y0, x1,
    y1, height).
    """

    glyphs: Sequence[Glyph]
    turned: str
    lines: Array


class GlyphDevice(PDFPageAggregator):
    """Collect a page, and the baseline of each of its glyphs, which pdfplumber's characters do not
    have.
    """

    count = 0

    def render_char(
        self, matrix: Any, font: Any, fontsize: float, scaling: float, rise: float, *rest: Any
    ) -> float:
        self.count += 1
        if self.count > MAX_PAGE_OBJECTS:
            raise DocumentTooLargeError(
                f"has more than {MAX_PAGE_OBJECTS:,} characters on page {self.pageno}"
            )
        advance = super().render_char(matrix, font, fontsize, scaling, rise, *rest)
        self.cur_item._objs[-1].baseline = matrix[3] * rise + matrix[5]  # type: ignore[attr-defined]
        return advance


def read_layout(page: Any) -> PageLayout:
    """Return glyphs and lines of a page of pdfplumber."""
    device = GlyphDevice(page.pdf.rsrcmgr, pageno=page.page_number, laparams=None)
    PDFPageInterpreter(page.pdf.rsrcmgr, device).process_page(page.page_obj)
    layout = device.get_result()
    glyphs: list[Glyph] = []
    turned: list[str] = []
    lines: list[tuple[float, float, float, float, float]] = []
    for item in _walk(layout):
        if isinstance(item, LTChar) and _is_upright(item):
            baseline = float(item.baseline)  # type: ignore[attr-defined]
            top, bottom, baseline = (layout.height - y for y in (item.y1, item.y0, baseline))
            font = str(item.fontname).rpartition("+")[2]
            glyphs.append(
                Glyph(item.get_text(), item.size, item.x0, top, item.x1, bottom, baseline, font)
            )
        elif isinstance(item, LTChar):
            turned.append(item.get_text())
        elif isinstance(item, LTImage):
            middle = layout.height - (item.y0 + item.y1) / 2
            lines.append((item.x0, middle, item.x1, middle, item.height))
        elif isinstance(item, LTCurve) and (item.stroke or item.fill):
            lines += _list_lines(item, layout.height)
    return PageLayout(glyphs, "".join(turned), np.array(lines, dtype=float).reshape(-1, 5))


def find_repeats(glyphs: Sequence[Glyph]) -> tuple[Array, Array]:
    """Return which glyphs repeat an earlier one at the same place, and which share their place with
    another glyph.

    pdfplumber's `dedupe_chars` drops repeats at a fixed distance in one font only, and does not
    find other text there.
    """
    repeats = np.zeros(len(glyphs), dtype=bool)
    clashes = np.zeros(len(glyphs), dtype=bool)
    if not glyphs:
        return repeats, clashes
    places = [(glyph.x0, glyph.x1, glyph.top, glyph.bottom, glyph.size) for glyph in glyphs]
    x0, x1, top, bottom, size = np.array(places, dtype=float).T
    order = np.argsort(x0, kind="stable")
    x0 = x0[order]
    x1 = x1[order]
    top = top[order]
    bottom = bottom[order]
    size = size[order]
    following = np.searchsorted(x0, x1) - np.arange(len(x0))
    reach = size.max()
    for step in range(1, min(int(following.max()), MAX_STACKED)):
        rights = np.flatnonzero(np.abs(top[step:] - top[:-step]) < reach) + step
        lefts = rights - step
        narrow = np.minimum(x1[lefts] - x0[lefts], x1[rights] - x0[rights])
        shared = np.minimum(x1[lefts], x1[rights]) - x0[rights]
        low = np.minimum(size[lefts], size[rights])
        high = np.minimum(bottom[lefts], bottom[rights]) - np.maximum(top[lefts], top[rights])
        for left in lefts[(shared > OVERLAP * narrow) & (high > OVERLAP * low)]:
            right = left + step
            first, second = sorted((int(order[left]), int(order[right])))
            width = max(x1[left] - x0[left], x1[right] - x0[right])
            is_repeat = (
                glyphs[first].text == glyphs[second].text
                and x0[right] - x0[left] <= max(TWICE_WIDTH * width, TWICE_EMS * size[left])
                and abs(top[right] - top[left]) <= TWICE_EMS * size[left]
                and abs(size[right] - size[left]) <= TWICE_SIZE * size[left]
            )
            if is_repeat:
                repeats[second] = True
            elif not (glyphs[first].text.isspace() or glyphs[second].text.isspace()):
                clashes[[first, second]] = True
    return repeats, clashes


def find_hidden(page: Any, glyphs: Sequence[Glyph]) -> Array:
    """Return which glyphs leave no ink on a page of pypdfium2.

    The page is drawn with and without its text. Whatever hides text (its colour, a shape over it,
    the crop box, its rendering mode, a layer that is off) makes both pictures alike there.
    """
    left, top, width, height = _find_crop(page)
    scale = min(1.0, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    with_text = page.render(scale=scale, prefer_bgrx=True).to_numpy()
    for text in _list_text_objects(
        page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject
    ):
        pdfium.FPDFPageObj_SetIsActive(text, False)
    without = page.render(scale=scale, prefer_bgrx=True).to_numpy()
    # the difference of unsigned bytes
    contrast = np.maximum(with_text, without) - np.minimum(with_text, without)
    ink = (contrast[:, :, :3] >= MIN_CONTRAST).any(axis=2)
    rows, columns = ink.shape
    x0, x1, size, baseline = np.array(
        [(glyph.x0, glyph.x1, glyph.size, glyph.baseline) for glyph in glyphs], dtype=float
    ).reshape(-1, 4).T  # fmt: skip
    across = columns / width
    down = rows / height
    first, last = (
        np.rint((x0 + share * (x1 - x0) - left) * across).astype(np.int64) for share in INK_WIDTH
    )
    lower, upper = (
        np.rint((baseline - share * size - top) * down).astype(np.int64) for share in INK_RISE
    )
    last = np.maximum(last, first + 1)
    lower = np.maximum(lower, upper + 1)
    first = np.clip(first, 0, columns)
    last = np.clip(last, 0, columns)
    upper = np.clip(upper, 0, rows)
    lower = np.clip(lower, 0, rows)
    # how many pixels above and to the left have ink
    before = np.zeros((rows + 1, columns + 1), dtype=np.int32)
    np.cumsum(np.cumsum(ink, axis=0, dtype=np.int32), axis=1, out=before[1:, 1:])
    inked = before[lower, last] - before[upper, last] - before[lower, first] + before[upper, first]
    is_digit = np.array([glyph.text.isdigit() for glyph in glyphs], dtype=bool)
    hidden: Array = (
        (inked == 0) | (size < MIN_SIZE) | (is_digit & (x1 - x0 < MIN_DIGIT_WIDTH * size))
    )
    return hidden


def is_struck(lines: Array, x0: float, x1: float, baseline: float, size: float) -> bool:
    """Check whether a line goes through the middle of text at this place."""
    start = np.maximum(lines[:, 0], x0)
    end = np.minimum(lines[:, 2], x1)
    near = (end - start >= min(STRIKE_WIDTH * size, x1 - x0)) & (lines[:, 4] <= THIN * size)
    if not near.any():
        return False
    left, y0, right, y1, _ = lines[near].T
    middle = (start[near] + end[near]) / 2
    y = y0 + (y1 - y0) * (middle - left) / (right - left)
    low, high = (baseline - share * size for share in STRIKE_RISE)
    return bool(((y <= low) & (y >= high)).any())


def has_mark(lines: Array, x0: float, x1: float, baseline: float, size: float) -> bool:
    """Check whether a small shape is drawn in the line of a text, in it or next to it: it may be a
    sign or a digit.
    """
    left, y0, right, y1, height = lines.T
    is_small = (right - left <= MARK_WIDTH * size) & (
        np.maximum(height, np.abs(y1 - y0)) <= MARK_HEIGHT * size
    )
    near = (right >= x0 - MARK_GAP * size) & (left <= x1 + MARK_GAP * size)
    near &= (left > x0) | (right < x1)  # else it is behind the whole text, or hides it
    low, high = (baseline - share * size for share in MARK_RISE)
    return bool((is_small & near & ((y0 + y1) / 2 <= low) & ((y0 + y1) / 2 >= high)).any())


def list_annotations(
    page: Any, kinds: Collection[str]
) -> Iterator[tuple[float, float, float, float, float]]:
    """Yield a line through the middle of each annotation of some kinds on a page of pdfplumber."""
    for annotation in page.annots if page.page_obj.annots else ():
        if str(getattr(annotation["data"].get("Subtype"), "name", "")) in kinds:
            x, y = page.bbox[:2]
            middle = (annotation["top"] + annotation["bottom"]) / 2 - y
            yield annotation["x0"] - x, middle, annotation["x1"] - x, middle, 0.0


def _walk(items: Iterable[LTItem]) -> Iterator[LTItem]:
    for item in items:
        if isinstance(item, LTContainer):
            yield from _walk(item)
        else:
            yield item


def _is_upright(item: LTChar) -> bool:
    """Check whether text runs from left to right: neither turned, nor upside down, nor mirrored."""
    a, b, _, d, *_ = item.matrix
    sign = -1 if item.adv < 0 else 1
    return sign * a > 0 and sign * d > 0 and abs(b) <= MAX_SLOPE * abs(a)


def _list_lines(item: LTCurve, height: float) -> Iterator[tuple[float, float, float, float, float]]:
    if isinstance(item, LTRect) or not item.stroke:
        middle = height - (item.y0 + item.y1) / 2
        yield item.x0, middle, item.x1, middle, item.height
        return
    for ends in pairwise(item.pts):
        (x0, y0), (x1, y1) = sorted(ends)
        yield x0, height - y0, x1, height - y1, 0.0


def _find_crop(page: Any) -> tuple[float, float, float, float]:
    """Return left, top, width and height of what is shown of a page, from the top left of its media
    box, turned.

    pdfplumber's `cropbox` merely swaps the axes of a turned page, which misplaces a crop that is
    not symmetric.
    """
    boxes = (page.get_mediabox(), page.get_cropbox())
    media, crop = ((*map(min, box[:2], box[2:]), *map(max, box[:2], box[2:])) for box in boxes)
    shown = (*map(max, crop[:2], media[:2]), *map(min, crop[2:], media[2:]))
    margins = [shown[0] - media[0], media[3] - shown[3], media[2] - shown[2], shown[1] - media[1]]
    turns = page.get_rotation() // 90
    left, top, _, _ = margins[-turns:] + margins[:-turns]
    width, height = page.get_size()
    return left, top, width, height


def _list_text_objects(parent: Any, count: Any, get: Any, depth: int = 0) -> Iterator[Any]:
    for number in range(count(parent)):
        item = get(parent, number)
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            yield item
        elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            yield from _list_text_objects(
                item, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, depth + 1
            )
