"""Find text that is drawn otherwise than it is written: raised, from right to left, unseen by its colour, or added."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bs4.element import Tag

from ipu_results.read.html_style import LENGTH

# How a text is drawn, as bits next to those of html_visibility. RAISED, SHIFTED and ADDED are of one element only.
RAISED = 64
SHIFTED = 128  # lowered, or smaller and not on the line
RIGHT_TO_LEFT = 256
OVERRIDDEN = 512  # characters are drawn in one direction, digits included
SAME_COLOUR = 1024  # as its background
ADDED = 2048  # a style sheet adds text that may change a figure
WHITE = 4096  # white on a background that is not known: next to other text, one of the two may be unseen
INHERITED_DRAWING = RIGHT_TO_LEFT | OVERRIDDEN | SAME_COLOUR | WHITE

SHEET_PROPERTIES = ("direction", "unicode-bidi", "vertical-align")
"""Properties for which the rules of style sheets are applied."""
ALIGNMENTS = frozenset({"top", "text-top", "bottom", "text-bottom"})
SMALLER = frozenset({"smaller", "small", "x-small", "xx-small"})
CONTENT = re.compile(r""""((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|attr\(\s*([\w-]+)[^)]*\)|(counters?\()""", re.S)
ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?|\\(.)", re.S)
CHANGES_FIGURE = re.compile(r"[\d.\-−–~≈<>≤≥±×%‰½¼¾]|^\s*[kmgtbx]\s*$")
"""Text next to a figure that makes it another one."""
REORDERED = re.compile(r"\d(?![.,:/+\-\u00a0\u202f]\d)[^\w]+\d")
"""Numbers that change places in text from right to left; a point or comma between digits does not divide a number."""
COLOUR_NAMES = {"white": "ffffff", "black": "000000"}
HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})")
RGB = re.compile(r"rgb\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})\s*\)")


def compute_shift(styles: Mapping[str, str]) -> int:
    """Return whether styles raise the text of an element as `sup` does, or may mean that or the contrary."""
    align = styles.get("vertical-align", "")
    if align in ("super", "sub"):
        return RAISED if align == "super" else SHIFTED
    size = styles.get("font-size", "")
    length = LENGTH.fullmatch(size)
    scale = {"%": 0.01, "em": 1.0}.get(length[2] or "") if length else None
    if size not in SMALLER and (length is None or scale is None or _parse_float(length[1]) * scale >= 1):
        return 0
    lengths = [
        align,
        *((styles.get("top", ""), styles.get("bottom", "")) if styles.get("position") == "relative" else ()),
    ]
    moved = align in ALIGNMENTS or any((match := LENGTH.fullmatch(text)) and _parse_float(match[1]) for text in lengths)
    return SHIFTED if moved else 0


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def compute_direction(name: str, attribute: str, styles: Mapping[str, str]) -> tuple[int, int]:
    """Return the states for the direction of text that an element adds and removes; `attribute` is its `dir`."""
    add = remove = 0
    direction = styles.get("direction", attribute.strip().lower())
    if direction in ("rtl", "ltr"):
        add, remove = (RIGHT_TO_LEFT, 0) if direction == "rtl" else (0, RIGHT_TO_LEFT)
    default = "bidi-override" if name == "bdo" else "isolate" if attribute else ""
    if bidi := styles.get("unicode-bidi", default):
        if bidi.endswith("override"):
            add |= OVERRIDDEN
        else:
            remove |= OVERRIDDEN
    return add, remove


def is_reversed(text: str, state: int) -> bool:
    """Check whether a reader sees the digits of a text in another order than they are written."""
    if not state & RIGHT_TO_LEFT:
        return False
    return any(map(str.isdigit, text)) if state & OVERRIDDEN else REORDERED.search(text) is not None


def compute_colour(own: Mapping[str, str]) -> tuple[int, int]:
    """Return the states that the colours of a style attribute add and remove."""
    names = [name for name in ("color", "background-color", "background") if name in own]
    colours = {parse_colour(own[name]) for name in names}
    if len(names) > 1 and len(colours) == 1 and None not in colours and "color" in own:
        return SAME_COLOUR, WHITE
    if names == ["color"]:
        return (WHITE, SAME_COLOUR) if colours == {COLOUR_NAMES["white"]} else (0, SAME_COLOUR | WHITE)
    return 0, SAME_COLOUR | WHITE if names else 0


def parse_colour(text: str) -> str | None:
    """Return a colour as six hexadecimal digits, None if it is written in another way."""
    if match := HEX.fullmatch(text):
        return match[1] if len(match[1]) == len("ffffff") else "".join(digit * 2 for digit in match[1])
    if match := RGB.fullmatch(text):
        return "".join(f"{min(int(part), 255):02x}" for part in match.groups())
    return COLOUR_NAMES.get(text)


def adds_to_figure(node: Tag, content: str) -> bool:
    """Check whether the `content` of a style, printed before or after an element, may change a figure."""
    text = ""
    for match in CONTENT.finditer(content):
        if match[4]:  # a counter prints a number
            return True
        text += (
            str(node.attrs.get(match[3], "")).lower() if match[3] else ESCAPE.sub(_unescape, match[1] or match[2] or "")
        )
    return CHANGES_FIGURE.search(text) is not None


def _unescape(match: re.Match[str]) -> str:
    if match[2]:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0x110000 else ""
