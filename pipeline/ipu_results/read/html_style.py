"""Parse the style rules of a page that decide whether a reader can see a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import soupsieve
from bs4.element import Tag

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import MAX_SELECTOR_CHARACTERS

VIEWPORT_PX = 1280.0
"""Width of the window for which media queries are evaluated: a desktop."""
EM_PX = 16.0
FAR_OFF_PX = -900.0
"""Text this far to the left or above is outside of every window."""

COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.S)
QUOTED = re.compile(r""""[^"\n]*"|'[^'\n]*'""")
BLOCK = re.compile(r"([^{};]*)([{};]|\Z)")
DECLARATION = re.compile(r"\s*([a-z-]+)\s*:\s*(.*?)\s*(!\s*important)?\s*", re.I | re.S)
GROUPED_RULES = re.compile(r"@(?:media|supports|layer|container|scope)\b", re.I)
WIDTH_LIMIT = re.compile(r"(min|max)-(?:device-)?width\s*:\s*([\d.]+)(px|r?em)")
WIDTH_RANGE = re.compile(r"width\s*([<>])=?\s*([\d.]+)(px|r?em)")
PSEUDO_ELEMENT = re.compile(r"::?(before|after)\s*$|::|:(?:before|after|first-line|first-letter)\b", re.I)
COMBINATORS = (" ", ">", "+", "~")
COMPOUND = re.compile(r"(?:[^\s>+~()\[\]]|\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])+$")
ARGUMENTS = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\]")
NAME = r"((?:[\w-]|\\.)+)"
ID, CLASS, TYPE = re.compile(rf"#{NAME}"), re.compile(rf"\.{NAME}"), re.compile(r"(?:^|[\s>+~(])([a-z][\w-]*)", re.I)
KEYS = (("#", ID), (".", CLASS), ("", re.compile(r"\A([a-zA-Z][\w-]*)")))
"""What the key of a rule is looked for as, the most specific first."""
SIBLINGS = re.compile(r":nth-|-of-type|~", re.I)
ZERO = re.compile(r"[-+]?0*\.?0+(?:px|r?em|pt|%|ex|ch)?", re.I)
LENGTH = re.compile(r"(-?[\d.]+)(px|r?em|pt|%)?", re.I)
NO_AREA = re.compile(
    r"rect\(\s*[01]?(?:px)?(?:[\s,]+[01]?(?:px)?){3}\s*\)|(?:inset|circle)\(\s*(?:50|100)?%?0?(?:px)?\s*\)"
)
BLOCK_DISPLAYS = re.compile(r"(?:block|flex|grid|flow-root|list-item|table.*)(?:\s.*)?")

Declarations = Mapping[str, tuple[bool, str]]
"""Values by property, each with whether it is marked as important."""


class StyleRule(NamedTuple):
    """One selector with its declarations; `key` is the id, class or type of the elements that it can match."""

    selector: soupsieve.SoupSieve
    key: str
    specificity: tuple[int, int, int]
    declarations: Declarations
    compares_siblings: bool
    is_simple: bool
    """Whether it matches all elements with its key."""
    required: frozenset[str]
    """Ids and classes that must be in the page."""


def parse_declarations(text: str) -> Declarations:
    """Return the declarations of a style attribute or of the body of a rule; the last of a property counts."""
    declarations: dict[str, tuple[bool, str]] = {}
    for part in COMMENT.sub("", text).split(";"):
        match = DECLARATION.fullmatch(part)
        if match is None:
            continue
        name, value, important = match[1].lower(), match[2].lower(), match[3] is not None
        if name == "font":
            name, value = "font-size", next((size for size in re.split(r"[\s/]+", value) if LENGTH.fullmatch(size)), "")
        elif name.startswith("text-decoration"):
            name = "text-decoration"
        if important or not declarations.get(name, (False, ""))[0]:
            declarations[name] = (important, value)
    return declarations


def parse_style_sheet(text: str) -> Iterator[tuple[str, Declarations]]:
    """Yield selectors and declarations of the rules that apply on a screen.

    Raises DocumentTooLargeError for selectors that are too long or nested too deeply.
    """
    text = QUOTED.sub(lambda match: re.sub("[{};]", " ", match[0]), COMMENT.sub("", text))
    stack: list[tuple[str, bool, list[str]]] = [("", True, [])]
    for match in BLOCK.finditer(text):
        prelude, mark = match[1].strip(), match[2]
        selector, applies, body = stack[-1]
        if mark == "{":
            if prelude.startswith("@"):
                applies = applies and GROUPED_RULES.match(prelude) is not None and media_applies(prelude)
                stack.append((selector, applies, []))
            else:
                stack.append((_nest(selector, prelude), applies, []))
            continue
        body.append(prelude)
        ended = stack[:0:-1] if not mark else [stack.pop()] if mark == "}" and len(stack) > 1 else []
        for selector, applies, body in ended:
            if selector and applies and any(body):
                yield selector, parse_declarations(";".join(body))
        if not mark:
            return


def media_applies(query: str) -> bool:
    """Check whether a media query holds for a desktop screen; one about anything but type and width does not."""
    query = query.lower().removeprefix("@media").strip()
    if query.startswith("@") or not query:
        return True
    return any(_alternative_applies(part.strip()) for part in query.split(","))


def _alternative_applies(query: str) -> bool:
    if query.startswith("not "):
        return not _alternative_applies(query[4:])
    if re.search(r"\b(?:print|speech|tty|tv|handheld|projection)\b", query):
        return False
    for feature in re.findall(r"\(([^()]*)\)", query):
        limit = WIDTH_LIMIT.search(feature) or WIDTH_RANGE.search(feature)
        if limit is None:
            return False
        width = float(limit[2]) * (1.0 if limit[3] == "px" else EM_PX)
        if not (width <= VIEWPORT_PX if limit[1] in ("min", ">") else width >= VIEWPORT_PX):
            return False
    return True


def _nest(outer: str, inner: str) -> str:
    if not outer:
        return inner
    _check_length(f"{outer}{inner}")
    return ",".join(
        part.replace("&", f":is({outer})") if "&" in part else f":is({outer}) {part}" for part in _split_list(inner)
    )


def _check_length(selectors: str) -> None:
    if len(selectors) > MAX_SELECTOR_CHARACTERS:
        raise DocumentTooLargeError(f"has a style rule of more than {MAX_SELECTOR_CHARACTERS:,} characters")


def compile_rules(selectors: str, declarations: Declarations, pseudo_element: str = "") -> Iterator[StyleRule]:
    """Yield a rule for each selector of a list. One that cannot be parsed is skipped, as browsers do.

    With `pseudo_element`, `before` or `after`, the rules are those of that part of the elements, and no others.
    """
    _check_length(selectors)
    for part in _split_list(selectors):
        match = PSEUDO_ELEMENT.search(part)
        if (match is not None or pseudo_element) and (match is None or (match[1] or "?").lower() != pseudo_element):
            continue
        text = part[: match.start()] if match else part
        if match and (not text or text.endswith(COMBINATORS)):
            text += "*"
        try:
            selector = soupsieve.compile(text)
        except (soupsieve.SelectorSyntaxError, ValueError, NotImplementedError):
            continue
        bare = ARGUMENTS.sub("", text)
        match = COMPOUND.search(text)
        compound = ARGUMENTS.sub("", match[0]) if match else ""
        key = next((sign + _unescape(name[1]) for sign, pattern in KEYS if (name := pattern.search(compound))), "")
        classes = len(CLASS.findall(text)) + len(re.findall(r"\[|(?<!:):(?!:|is\b|not\b|where\b)", text))
        specificity = (len(ID.findall(text)), classes, len(TYPE.findall(bare)))
        required = {sign + _unescape(name) for sign, pattern in KEYS[:2] for name in pattern.findall(bare)}
        siblings = SIBLINGS.search(text) is not None
        yield StyleRule(selector, key, specificity, declarations, siblings, text == key, frozenset(required))


def _split_list(selectors: str) -> list[str]:
    """Split a list of selectors at the commas that are outside of brackets."""
    masked = ARGUMENTS.sub(lambda match: "x" * len(match[0]), selectors)
    ends = [match.start() for match in re.finditer(",", masked)]
    return [
        part
        for start, end in zip([-1, *ends], [*ends, None], strict=True)
        if (part := selectors[start + 1 : end].strip())
    ]


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def hides_area(styles: Mapping[str, str]) -> bool:
    """Check whether an element with these styles is drawn without an area, transparent or outside of the window."""
    if ZERO.fullmatch(styles.get("opacity", "1")) or styles.get("color") == "transparent":
        return True
    placed = styles.get("position") in ("absolute", "fixed")
    if placed and any(NO_AREA.search(styles.get(name, "")) for name in ("clip", "clip-path")):
        return True
    if NO_AREA.fullmatch(styles.get("clip-path", "")) and "inset" in styles["clip-path"]:
        return "50" in styles["clip-path"] or "100" in styles["clip-path"]
    shifts = ("text-indent", *(("left", "top") if placed else ()))
    if any(_parse_px(styles.get(name, "")) <= FAR_OFF_PX for name in shifts):
        return True
    clipped = any(styles.get(name) in ("hidden", "clip") for name in ("overflow", "overflow-x", "overflow-y"))
    return clipped and any(
        ZERO.fullmatch(styles.get(name, "")) for name in ("width", "height", "max-width", "max-height")
    )


def _parse_px(text: str) -> float:
    match = LENGTH.fullmatch(text)
    return _parse_float(match[1]) * (EM_PX if match[2] in ("em", "rem") else 1.0) if match else 0.0


def find_keys(node: Tag) -> Iterator[str]:
    """Yield the keys of the rules that can match an element."""
    yield from ("", node.name)
    if "id" in node.attrs:
        yield f"#{node.attrs['id']}"
    classes = node.attrs.get("class", ())
    yield from (f".{name}" for name in ([classes] if isinstance(classes, str) else classes))


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
            str(node.attrs.get(match[3], "")).lower()
            if match[3]
            else ESCAPE.sub(_unescape_text, match[1] or match[2] or "")
        )
    return CHANGES_FIGURE.search(text) is not None


def _unescape_text(match: re.Match[str]) -> str:
    if match[2]:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0x110000 else ""
