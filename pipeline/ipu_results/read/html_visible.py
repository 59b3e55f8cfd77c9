"""Find the text of a page that is not displayed, struck, raised, or in doubt."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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

DOUBT = 1024  # hidden, moved or altered perhaps: `States.doubts` names what may do it
PALE = 2048  # in nearly the colour of what is behind it
UNSEEN = REMOVED | INVISIBLE
INHERITED = UNSEEN | STRUCK | DOUBT
STRUCK_TAGS = frozenset({"del", "s", "strike"})
BLOCK_ELEMENTS, NOT_AS_WRITTEN, NOT_PARSED = (
    frozenset(STYLES["elements"][name].split())
    for name in ("block", "not_as_written", "not_parsed")
)
SIGNS = [
    f"<{name}"
    for name in ("del", "s>", "s ", "strike", "dialog", "details", "ol", "font", *NOT_AS_WRITTEN)
]
SIGNS += [
    "style",
    "shadowroot",
    "rtl",
    "dir=",
    "bgcolor",
    "text=",
    *(f"{before}hidden" for before in " \n\t\"'/"),
]
"""A page without any of these has no text that is seen otherwise than it is written."""
HINTS = ("style", "dir", "hidden", "open", "color", "bgcolor", "text")
"""Attributes that decide what an element does to its text."""
LIFTED = (("position", "absolute"), ("position", "fixed"))
MOVES = re.compile(
    r"(?:position|inset|top|left|right|bottom|margin|trans(?:form|late)|rotate|scale|zoom|animation)\b.*"
)
UNPAINTED = ("none", "transparent", "initial", "inherit", "unset", "revert")
NEGATIVE = re.compile(r"-(?!1px)[\d.]")  # one pixel hides no text
PICTURES = ("img", "svg", "canvas", "video", "iframe", "object", "embed")
MIN_CONTRAST = 0.18  # of 1: the difference of black and white
STEPS_PER_MATCH = (
    10  # a comparison takes as long as this number of steps from an element to the one around it
)

Colour = tuple[float, ...]
Colours = tuple[Colour, Colour | None]
"""Colour of the text, and of what is behind it: None for an image."""
BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
SYSTEM_COLOURS = dict.fromkeys(("windowtext", "canvastext", "initial"), "black")
SYSTEM_COLOURS |= dict.fromkeys(("window", "canvas"), "white")
BLACK_ON_WHITE: Colours = (BLACK, WHITE)


class Effect(NamedTuple):
    """The states that an element adds and removes, its doubt, its colours as written, and what
    moves it.

    `paints` is whether it covers what is behind it.
    """

    add: int
    remove: int
    doubt: str
    colours: tuple[str, str]
    moved: str
    paints: bool


class States(dict[int, int]):
    """The state of each element that has one, by `id`; `doubts` names what may hide, move or alter
    it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.doubts: dict[int, str] = {}


def find_states(soup: BeautifulSoup, lowered: str, sheets: Sequence[str] = ()) -> States:
    """Return the state of every element that is not simply visible; `lowered` is the page's text in
    lower case.

    Style rules of the page are applied as for a desktop screen; `sheets` are other style sheets of
    a saved page, which may apply. Those of other files are not known. Raises DocumentTooLargeError
    if they would have to be compared with too many elements.
    """
    if not sheets and not any(sign in lowered for sign in SIGNS):
        return States()
    cascade = _Cascade(soup, sheets)
    for node in soup.descendants:
        if isinstance(node, Tag):
            cascade.visit(node)
    for table in soup.find_all("table") if cascade.cover else ():
        for part in (table, *table.find_all(True)):
            cascade.set_doubt(id(part), f"a box with {cascade.cover}")
    return cascade.states


def _collect_rules(soup: BeautifulSoup, sheets: Sequence[str]) -> Iterator[StyleRule]:
    """Yield the style rules of a page.

    Without a document type, browsers compare classes and ids in any case.
    """
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
            yield from parse_style_sheet(
                text, doubt or ("a named style sheet" if attrs.get("title") else "")
            )
        elif attrs.get("href", "").startswith("data:") and "stylesheet" in attrs.get("rel", ""):
            yield from parse_style_sheet("@import 'data:'", doubt)
    for text in sheets:
        yield from parse_style_sheet(
            text.lower() if quirks else text, "a style sheet of the saved page"
        )
    for node in soup.find_all(True) if quirks else ():
        for name in ("id", "class"):
            if name in node.attrs:
                node[name] = " ".join(node.get_attribute_list(name)).lower()


class _Cascade:
    """Computes the states of elements, each from those of the one around it."""

    def __init__(self, soup: BeautifulSoup, sheets: Sequence[str]) -> None:
        shadows = soup.select("template[shadowrootmode], template[shadowroot]")
        self.hosts = {id(shadow.parent) for shadow in shadows}
        rules = [*_collect_rules(soup, sheets)]
        present = (
            {key for node in soup.find_all(True) if node.attrs for key in find_keys(node)}
            if rules
            else set()
        )
        self.rules = [rule for rule in rules if rule.required <= present]
        self.by_key: dict[str, list[int]] = defaultdict(list)
        for order, rule in enumerate(self.rules):
            self.by_key[rule.key].append(order)
        self.states = States()
        self.depths: dict[int, int] = {}
        self.tables: set[int] = set()  # elements that are in a table, or one
        self.colours: dict[int, Colours] = {}
        self.matches = 0
        self.moved: dict[int, str] = {}  # what moves an element, or one around it
        self.cover = ""  # what moves a box that may lie over tables
        self.effects: dict[object, Effect] = {}
        self.contrasts: dict[Colours, bool] = {}

    def visit(self, node: Tag) -> None:
        """Set the state of an element; that around it has one already."""
        own = id(node)
        parent = id(node.parent)
        self.depths[own] = depth = self.depths.get(parent, 0) + 1
        if inside := node.name == "table" or parent in self.tables:
            self.tables.add(own)
        add, remove, doubt, colours, moved, paints = self._find_effect(node, inside, depth)
        state = self.states.get(parent, 0) & INHERITED
        if own in self.hosts:
            doubt = "a shadow tree"
        elif state & STRUCK and add & BOXED:
            doubt = doubt or "a box in struck text"
        if node.name in ("col", "colgroup") and (doubt or add & UNSEEN):  # in the cells that follow
            table = next(
                around for around in node.parents if around.name in ("table", "[document]")
            )
            self.set_doubt(id(table), doubt or "a hidden column")
        seen = self.colours.get(parent, BLACK_ON_WHITE)
        if colours != ("", ""):
            painted = _paint(seen, *colours)
            seen = painted or seen
            doubt = doubt if painted else doubt or f"the colour {' '.join(colours).strip()!r}"
        if seen != BLACK_ON_WHITE:
            self.colours[own] = seen
            if seen not in self.contrasts:
                self.contrasts[seen] = _is_legible(*seen)
            add |= 0 if self.contrasts[seen] else PALE
        if moved := moved or self.moved.get(parent, ""):
            self.moved[own] = moved
            self.cover = moved if paints and not (state & ~remove | add) & UNSEEN else self.cover
        if state := state & ~remove | add:
            self.states[own] = state
        if doubt or state & DOUBT:
            self.set_doubt(own, doubt or self.states.doubts[parent])

    def set_doubt(self, own: int, doubt: str) -> None:
        self.states[own] = self.states.get(own, 0) | DOUBT
        self.states.doubts[own] = doubt

    def _find_effect(self, node: Tag, inside: bool, depth: int) -> Effect:
        orders = tuple(
            order
            for key in find_keys(node)
            for order in self.by_key.get(key, ())
            if self._match(order, node, depth)
        )
        hints = (
            tuple((name, str(node.attrs[name])) for name in HINTS if name in node.attrs)
            if node.attrs
            else ()
        )
        key = (node.name, hints, orders, inside)
        if key not in self.effects:
            self.effects[key] = self._compute_effect(node.name, dict(hints), orders, inside)
        return self.effects[key]

    def _match(self, order: int, node: Tag, depth: int) -> bool:
        rule = self.rules[order]
        self.matches += 1 + depth // STEPS_PER_MATCH
        if node.parent and (":" in rule.match.pattern or "~" in rule.match.pattern):
            self.matches += len(node.parent.contents)
        if self.matches > MAX_STYLE_MATCHES:
            raise DocumentTooLargeError(
                f"has style rules for more than {MAX_STYLE_MATCHES:,} elements"
            )
        return rule.match.pattern in (rule.key, "*") or rule.match.match(node)

    def _compute_effect(
        self, name: str, hints: dict[str, str], orders: Sequence[int], inside: bool
    ) -> Effect:
        rules = [self.rules[order] for order in orders]
        ranked: list[tuple[bool, int, tuple[int, ...], int, Declaration]] = [
            (False, -1, (), 0, hint) for hint in _list_hints(name, hints)
        ]
        ranked += [
            (own.important, 1, (), 0, own) for own in parse_declarations(hints.get("style", ""))
        ]
        ranked += [
            (own.important, 0, rule.specificity, order, own)
            for order, rule in zip(orders, rules, strict=True)
            if not rule.part and not rule.doubt
            for own in rule.declarations
        ]
        styles = {own.name: own.value for *_, own in sorted(ranked)}
        judged = {property_: judge(property_, value, inside) for property_, value in styles.items()}
        if not inside and not any(map(SIZES.fullmatch, styles)):  # nothing is cut off
            judged = {
                key: 0 if key.startswith("overflow") else effect for key, effect in judged.items()
            }
        doubts = [effect for effect in judged.values() if isinstance(effect, str)]
        doubts += [
            rule.doubt
            for rule in rules
            if rule.doubt and not rule.part
            for own in rule.declarations
            if own.name in COLOURS
            or judge(own.name, own.value, inside)
            != judge(own.name, styles.get(own.name, "initial"), inside)
        ]
        is_closed = name == "details" and "open" not in hints
        if name in NOT_AS_WRITTEN or is_closed or (inside and name in ("ol", "dir")):
            doubts.append(f"an element {name!r}")
        add = 0
        for effect in judged.values():
            add |= effect if isinstance(effect, int) else 0
        if name in BLOCK_ELEMENTS:
            add &= ~(BLOCK | RAISED | LOWERED)
        remove = INVISIBLE if styles.get("visibility") in ("visible", "initial") else 0
        parts = [own for rule in rules if rule.part for own in rule.declarations]
        lifted = inside and name != "th"  # where sorting arrows are
        added = (own for own in parts if own.name == "content" or (lifted and own[:2] in LIFTED))
        doubts += [
            effect for own in added if isinstance(effect := judge(own.name, own.value, inside), str)
        ]
        every = [own for *_, own in ranked] + [own for rule in rules for own in rule.declarations]
        moves = (own for own in every if MOVES.fullmatch(own.name))
        moved = (
            own
            for own in moves
            if NEGATIVE.search(own.value) or isinstance(judge(*own[:2], inside), str)
        )
        paints = any(own.name in COLOURS[1:] and own.value not in UNPAINTED for own in every)
        behind = styles.get("background-image", "none")
        colours = (
            styles.get("color", ""),
            (behind if "none" not in behind else styles.get("background-color", "")),
        )
        moves_it = next((f"`{own.name}: {own.value[:40]}`" for own in moved), "")
        return Effect(
            add, remove, next(iter(doubts), ""), colours, moves_it, paints or name in PICTURES
        )


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
    if direction := hints.get("dir", "").strip().lower():
        yield Declaration("direction", direction, False)


def _paint(around: Colours, text: str, behind: str) -> Colours | None:
    """Return the colours inside an element; None if one of its own is not known."""
    own, back = around
    if IMAGE.search(behind):
        back = None
    elif behind:
        words = [
            tinycss2.serialize([token]) for token in tinycss2.parse_component_value_list(behind)
        ]
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
    return tuple(
        parsed.alpha * own + (1 - parsed.alpha) * other
        for own, other in zip(channels, behind, strict=True)
    )


def _is_legible(text: Colour, behind: Colour | None) -> bool:
    """Check the difference of luminance; black text on an image is taken to be seen."""
    if behind is None:
        return text == BLACK
    red, green, blue = (front - back for front, back in zip(text, behind, strict=True))
    return abs(0.2126 * red + 0.7152 * green + 0.0722 * blue) >= MIN_CONTRAST
