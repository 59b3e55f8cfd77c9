"""Find the text of a page that is not displayed, struck, raised, or in doubt."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import tinycss2
from bs4 import BeautifulSoup
from bs4.element import Doctype, Tag
from tinycss2.color4 import parse_color

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import MAX_STYLE_MATCHES
from ipu_results.read.html_style import (
    BLOCK,
    BOXED,
    COLOURS,
    IMAGE,
    INVISIBLE,
    LOWERED,
    RAISED,
    REMOVED,
    SIZES,
    STRUCK,
    STYLES,
    Declaration,
    StyleRule,
    find_keys,
    judge,
    media_applies,
    parse_declarations,
    parse_style_sheet,
)

RIGHT_TO_LEFT = 128
OVERRIDDEN = 256  # the order of characters is that of the direction, whatever they are
ADDED = 512  # a style sheet prints a text before or after it
DOUBT = 1024  # hidden, moved or altered perhaps: `States.doubts` names what may do it
PALE = 2048  # in nearly the colour of what is behind it
COVERS = 4096  # a box, not in a table, that may lie over tables
UNSEEN = REMOVED | INVISIBLE
INHERITED = UNSEEN | STRUCK | RIGHT_TO_LEFT | OVERRIDDEN | DOUBT
STRUCK_TAGS = frozenset({"del", "s", "strike"})
BLOCK_ELEMENTS, NOT_AS_WRITTEN, NOT_PARSED = (
    frozenset(STYLES["elements"][name].split()) for name in ("block", "not_as_written", "not_parsed")
)
SIGNS = [
    f"<{name}" for name in ("del", "s>", "s ", "strike", "dialog", "details", "bdo", "ol", "font", *NOT_AS_WRITTEN)
]
SIGNS += ["style", "shadowroot", "rtl", "dir=", "bgcolor", "text=", *(f"{before}hidden" for before in " \n\t\"'/")]
"""A page without any of these has no text that is seen otherwise than it is written."""
HINTS = ("style", "dir", "hidden", "open", "color", "bgcolor", "text")
"""Attributes that decide what an element does to its text."""
ICONS = re.compile(
    r"none|normal|([\"'])(?:[\s\ue000-\uf8ff\u2190-\u21ff\u25a0-\u25ff\u2022]"
    r"|\\(?:[ef][0-9a-f]{3}|21[9a-f][0-9a-f]|25[a-f][0-9a-f])(?![0-9a-f])\s?)*\1"
)
"""A `content` that prints nothing but icons, arrows or blanks."""
LIFTED = ("absolute", "fixed")
NO_LENGTH, WHOLE = ("0", "0px", "0%"), ("100%", "100vh", "100vw")
FAR_UP = re.compile(r"-\d{3}")  # a negative margin that moves a box over what is before it
MIN_CONTRAST = 1.5  # of 1 to 21
REORDERED = re.compile(r"\d(?![.,:/+\-\u00a0\u202f]\d)[^\w]+\d")
"""Numbers that change places in text from right to left; a point or comma between digits does not divide a number."""
STEPS_PER_MATCH = 10  # a comparison takes as long as this number of steps from an element to the one around it

Colour = tuple[float, ...]
Colours = tuple[Colour, Colour | None]
"""Colour of the text, and of what is behind it: None for an image."""
BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
SYSTEM_COLOURS = {
    "windowtext": "black",
    "canvastext": "black",
    "initial": "black",
    "window": "white",
    "canvas": "white",
}
BLACK_ON_WHITE: Colours = (BLACK, WHITE)
Effect = tuple[int, int, str, tuple[str, str]]
"""The states that an element adds and removes, its doubt, and its colours as written."""


class States(dict[int, int]):
    """The state of each element that has one, by `id`; `doubts` names what may hide, move or alter it."""

    def __init__(self) -> None:
        super().__init__()
        self.doubts: dict[int, str] = {}


def find_states(soup: BeautifulSoup, lowered: str, sheets: Sequence[str] = ()) -> States:
    """Return the state of every element that is not simply visible; `lowered` is the page's text in lower case.

    Style rules of the page are applied as for a desktop screen; `sheets` are other style sheets of a saved page, which
    may apply. Those of other files are not known. Raises DocumentTooLargeError if they would have to be compared with
    too many elements.
    """
    if not sheets and not any(sign in lowered for sign in SIGNS):
        return States()
    cascade = _Cascade(soup, sheets, "shadowroot" in lowered)
    for node in soup.descendants:
        if isinstance(node, Tag):
            cascade.visit(node)
    for table in soup.find_all("table") if cascade.covers else ():
        for part in (table, *table.find_all(True)):
            cascade.set_doubt(id(part), "a box over the page")
    return cascade.states


def is_reversed(text: str, state: int) -> bool:
    """Check whether a reader sees the digits of a text in another order than they are written."""
    if not state & RIGHT_TO_LEFT:
        return False
    return any(map(str.isdigit, text)) if state & OVERRIDDEN else REORDERED.search(text) is not None


def _collect_rules(soup: BeautifulSoup, sheets: Sequence[str]) -> Iterator[StyleRule]:
    """Yield the style rules of a page. Without a document type, browsers compare classes and ids in any case."""
    doctype = next((str(node) for node in soup.contents if isinstance(node, Doctype)), "")
    quirks = not re.match(r"html(?:\s*$|\s+system|.*(?:http:|strict|xhtml))", doctype, re.I | re.S)
    for node in soup.find_all(["style", "link"]):
        attrs = {name: str(value).strip().lower() for name, value in node.attrs.items()}
        applies = media_applies(attrs.get("media", ""))
        if applies is False or any(parent.name in NOT_PARSED for parent in node.parents):
            continue
        doubt = "" if applies else f"the medium {attrs['media']!r}"
        if node.name == "style" and str(node.attrs.get("type", "")).lower() in ("", "text/css"):
            text = node.get_text().lower() if quirks else node.get_text()
            yield from parse_style_sheet(text, doubt or ("a named style sheet" if attrs.get("title") else ""))
        elif attrs.get("href", "").startswith("data:") and "stylesheet" in attrs.get("rel", ""):
            yield from parse_style_sheet("@import 'data:'", doubt)
    for text in sheets:
        yield from parse_style_sheet(text.lower() if quirks else text, "a style sheet of the saved page")
    for node in soup.find_all(True) if quirks else ():
        for name in ("id", "class"):
            if name in node.attrs:
                node[name] = " ".join(node.get_attribute_list(name)).lower()


class _Cascade:
    """Computes the states of elements, each from those of the one around it."""

    def __init__(self, soup: BeautifulSoup, sheets: Sequence[str], has_shadows: bool) -> None:
        self.has_shadows = has_shadows
        rules = [*_collect_rules(soup, sheets)]
        present = {key for node in soup.find_all(True) if node.attrs for key in find_keys(node)} if rules else set()
        self.rules = [rule for rule in rules if rule.selector.required <= present]
        self.by_key: dict[str, list[int]] = defaultdict(list)
        for order, rule in enumerate(self.rules):
            self.by_key[rule.selector.key].append(order)
        self.states = States()
        self.depths: dict[int, int] = {}
        self.tables: set[int] = set()  # elements that are in a table, or one
        self.colours: dict[int, Colours] = {}
        self.matches = 0
        self.covers = False
        self.effects: dict[object, Effect] = {}
        self.contrasts: dict[Colours, bool] = {}

    def visit(self, node: Tag) -> None:
        """Set the state of an element; that around it has one already."""
        own, parent = id(node), id(node.parent)
        self.depths[own] = depth = self.depths.get(parent, 0) + 1
        if inside := node.name == "table" or parent in self.tables:
            self.tables.add(own)
        add, remove, doubt, colours = self._find_effect(node, inside, depth)
        state = self.states.get(parent, 0) & INHERITED
        if state & STRUCK and add & BOXED:
            doubt = doubt or "a box in struck text"
        if node.name in ("col", "colgroup") and (doubt or add & UNSEEN):  # in the cells that follow
            table = next(around for around in node.parents if around.name in ("table", "[document]"))
            self.set_doubt(id(table), doubt or "a hidden column")
        if add & ADDED and node.name in ("table", "thead", "tbody", "tfoot", "tr"):
            doubt = doubt or "text of a style sheet"
        seen = self.colours.get(parent, BLACK_ON_WHITE)
        if colours != ("", ""):
            painted = _paint(seen, *colours)
            seen, doubt = painted or seen, doubt if painted else doubt or f"the colour {' '.join(colours).strip()!r}"
        if seen != BLACK_ON_WHITE:
            self.colours[own] = seen
            if seen not in self.contrasts:
                self.contrasts[seen] = _is_legible(*seen)
            add |= 0 if self.contrasts[seen] else PALE
        self.covers |= bool(add & COVERS) and not (state | add) & UNSEEN
        if state := state & ~remove | add:
            self.states[own] = state
        if doubt or state & DOUBT:
            self.set_doubt(own, doubt or self.states.doubts[parent])

    def set_doubt(self, own: int, doubt: str) -> None:
        self.states[own] = self.states.get(own, 0) | DOUBT
        self.states.doubts[own] = doubt

    def _find_effect(self, node: Tag, inside: bool, depth: int) -> Effect:
        orders = tuple(
            order for key in find_keys(node) for order in self.by_key.get(key, ()) if self._match(order, node, depth)
        )
        hints = tuple((name, str(node.attrs[name])) for name in HINTS if name in node.attrs) if node.attrs else ()
        key = (node.name, hints, orders, inside)
        if key not in self.effects:
            self.effects[key] = self._compute_effect(node.name, dict(hints), orders, inside)
        add, remove, doubt, colours = self.effects[key]
        if self.has_shadows and node.select(":scope > template[shadowrootmode], :scope > template[shadowroot]"):
            doubt = "a shadow tree"
        return add, remove, doubt, colours

    def _match(self, order: int, node: Tag, depth: int) -> bool:
        rule = self.rules[order]
        self.matches += 1 + depth // STEPS_PER_MATCH
        if rule.selector.compares_siblings and node.parent:
            self.matches += len(node.parent.contents)
        if self.matches > MAX_STYLE_MATCHES:
            raise DocumentTooLargeError(f"has style rules for more than {MAX_STYLE_MATCHES:,} elements")
        return rule.selector.text in (rule.selector.key, "*") or rule.match.match(node)

    def _compute_effect(self, name: str, hints: dict[str, str], orders: Sequence[int], inside: bool) -> Effect:
        rules = [(order, self.rules[order]) for order in orders]
        ranked: list[tuple[bool, int, tuple[int, ...], int, Declaration]] = [
            (False, -1, (), 0, hint) for hint in _list_hints(name, hints)
        ]
        ranked += [(own.important, 1, (), 0, own) for own in parse_declarations(hints.get("style", ""))]
        ranked += [
            (own.important, 0, rule.selector.specificity, order, own)
            for order, rule in rules
            if not rule.selector.part and not rule.doubt
            for own in rule.declarations
        ]
        styles = {own.name: own.value for *_, own in sorted(ranked)}
        judged = {property_: judge(property_, value, inside) for property_, value in styles.items()}
        if not inside and not any(map(SIZES.fullmatch, styles)):  # nothing is cut off
            judged = {key: 0 if key.startswith("overflow") else effect for key, effect in judged.items()}
        doubts = [effect for effect in judged.values() if isinstance(effect, str)]
        doubts += [
            rule.doubt
            for _, rule in rules
            if rule.doubt and not rule.selector.part
            for own in rule.declarations
            if own.name in COLOURS
            or judge(own.name, own.value, inside) != judge(own.name, styles.get(own.name, "initial"), inside)
        ]
        if name in NOT_AS_WRITTEN or (
            inside and (name in ("ol", "dir") or (name == "details" and "open" not in hints))
        ):
            doubts.append(f"an element {name!r}")
        add, remove = compute_direction(name, hints.get("dir", ""), styles)
        for effect in judged.values():
            add |= effect if isinstance(effect, int) else 0
        if name in BLOCK_ELEMENTS:
            add &= ~(BLOCK | RAISED | LOWERED)
        if styles.get("visibility") in ("visible", "initial"):
            remove |= INVISIBLE
        parts = [own for _, rule in rules if rule.selector.part for own in rule.declarations]
        if any(own.name == "content" and not ICONS.fullmatch(own.value) for own in parts) or (
            inside and name != "th" and any(own.name == "position" and own.value in LIFTED for own in parts)
        ):
            add |= ADDED
        if not inside and any(map(_covers, (styles, {own.name: own.value for own in parts}))):
            add |= COVERS
        behind = styles.get("background-image", "none")
        colours = styles.get("color", ""), behind if "none" not in behind else styles.get("background-color", "")
        return add, remove, next(iter(doubts), ""), colours


def _covers(styles: dict[str, str]) -> bool:
    """Check whether a box is painted over the whole window, or over what is far before it."""
    painted = styles.get("background-image", "none"), styles.get("background-color", "none")
    if not any(value not in ("none", "transparent", "initial", "inherit") for value in painted):
        return False
    if any(FAR_UP.search(value) for name, value in styles.items() if name.startswith("margin")):
        return True
    is_high, is_wide = (
        all(styles.get(edge, "") in NO_LENGTH for edge in edges) or styles.get(size, "") in WHOLE
        for *edges, size in (("top", "bottom", "height"), ("left", "right", "width"))
    )
    return styles.get("position") in LIFTED and (styles.get("inset") in NO_LENGTH or (is_high and is_wide))


def _list_hints(name: str, hints: dict[str, str]) -> Iterator[Declaration]:
    """Yield what attributes and names of elements stand for, below all style rules."""
    if "hidden" in hints or (name == "dialog" and "open" not in hints):
        yield Declaration("display", "none", False)
    if name in STRUCK_TAGS:
        yield Declaration("text-decoration-line", "line-through", False)
    if name in ("font", "body") and (colour := hints.get("color", hints.get("text"))):
        yield Declaration("color", colour.lower(), False)
    if "bgcolor" in hints:
        yield Declaration("background-color", hints["bgcolor"].lower(), False)


def compute_direction(name: str, attribute: str, styles: dict[str, str]) -> tuple[int, int]:
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


def _paint(around: Colours, text: str, behind: str) -> Colours | None:
    """Return the colours inside an element; None if one of its own is not known."""
    own, back = around
    if IMAGE.search(behind):
        back = None
    elif behind:
        words = [tinycss2.serialize([token]) for token in tinycss2.parse_component_value_list(behind)]
        painted = [colour for word in words if (colour := _parse_colour(word, back or WHITE))]
        if not painted and any("(" in word or word == "currentcolor" for word in words):
            return None
        back = painted[0] if painted else back
    if text and text not in ("inherit", "currentcolor", "unset", "revert"):
        parsed = _parse_colour(text, back or WHITE)
        if parsed is None:
            return None
        own = parsed
    return own, back


def _parse_colour(text: str, behind: Colour) -> Colour | None:
    """Return red, green and blue from 0 to 1 of a colour in front of another one."""
    parsed = parse_color(SYSTEM_COLOURS.get(text, text)) or parse_color(f"#{text}")
    if parsed is None or isinstance(parsed, str):
        return None
    channels = [value or 0.0 for value in parsed.to("srgb").coordinates]
    return tuple(parsed.alpha * own + (1 - parsed.alpha) * other for own, other in zip(channels, behind, strict=True))


def _is_legible(text: Colour, behind: Colour | None) -> bool:
    """Check the contrast by the formula of WCAG; black text on an image is taken to be seen."""
    if behind is None:
        return text == BLACK
    light, dark = sorted((_compute_luminance(text), _compute_luminance(behind)), reverse=True)
    return (light + 0.05) / (dark + 0.05) >= MIN_CONTRAST


def _compute_luminance(colour: Colour) -> float:
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
