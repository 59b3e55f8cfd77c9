"""Find the parts of a page that a reader cannot see or sees otherwise: not displayed, invisible, struck, raised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from bs4 import BeautifulSoup
from bs4.element import Tag

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import MAX_STYLE_MATCHES
from ipu_results.read.html_style import (
    ADDED,
    BLOCK_DISPLAYS,
    INHERITED_DRAWING,
    LENGTH,
    SHEET_PROPERTIES,
    ZERO,
    Declarations,
    StyleRule,
    adds_to_figure,
    compile_rules,
    compute_colour,
    compute_direction,
    compute_shift,
    find_keys,
    hides_area,
    media_applies,
    parse_declarations,
    parse_style_sheet,
)

# Text without any of these, in a page without such style rules, is visible.
SIGNS = "<del|<s>|<s |<strike|<dialog| hidden|\nhidden|\thidden|\"hidden|'hidden|/hidden|<bdo|rtl".split("|")
PROPERTIES = (
    "display visibility font opacity line-through clip position text-indent transparent background color".split()
)
PROPERTIES += SHEET_PROPERTIES
STRUCK_TAGS = frozenset({"del", "s", "strike"})
BLOCK_ELEMENTS = frozenset(
    """
    address article aside blockquote body br center dd details dialog dir div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol option optgroup p
    plaintext pre search section summary ul xmp caption colgroup table tbody td tfoot th thead tr
    """.split()
)
"""Elements that the HTML standard renders as blocks, and line breaks. They divide words."""
FONT_SIZES = frozenset("xx-small x-small small medium large x-large xx-large xxx-large initial".split())


STEPS_PER_MATCH = 10  # a comparison takes as long as this number of steps from an element to the one around it

# Why a text is not seen, as bits. What holds for an element holds for all that is inside of it, except BLOCK.
REMOVED = 1  # not displayed: takes no place
INVISIBLE = 2  # keeps its place; an element inside can be visible again
TINY = 4  # in a font of size 0; an element inside can have a size of its own
COVERED = 8  # transparent, clipped or outside of the window
STRUCK = 16
BLOCK = 32  # divides words although its element does not
UNSEEN = REMOVED | INVISIBLE | TINY | COVERED
INHERITED = UNSEEN | STRUCK | INHERITED_DRAWING

States = Mapping[int, int]
"""The state of each element that has one, by `id`."""


def find_states(soup: BeautifulSoup, lowered: str) -> States:
    """Return the state of every element that is not simply visible; `lowered` is the page's text in lower case.

    Style rules of the page itself are applied as for a desktop screen. Those of other files are not known.
    Raises DocumentTooLargeError if they would have to be compared with too many elements.
    """
    styles = [node for node in soup.find_all("style") if media_applies(str(node.attrs.get("media", "")))]
    sheet = [rule for node in styles for rule in parse_style_sheet(node.get_text())]
    rules = _collect_rules(sheet)
    printed = _collect_printed(sheet, soup)
    styled = "style" in lowered and any(name in lowered for name in PROPERTIES)
    if not rules and not printed and not styled and not any(sign in lowered for sign in SIGNS):
        return {}
    cascade = _Cascade(_drop_unused(rules, soup))
    for_all = "" in cascade.names
    states: dict[int, int] = {}
    depths: dict[int, int] = {}
    for node in soup.descendants:
        if not isinstance(node, Tag):
            continue
        state = states.get(id(node.parent), 0) & INHERITED
        if cascade.rules or printed:
            depths[id(node)] = depths.get(id(node.parent), 0) + 1
        if node.attrs or node.name in cascade.names or for_all:
            add, remove = cascade.find_effect(node, depths.get(id(node.parent), 0))
            state = state & ~remove | add
        for part in printed:
            if part.prints(node, depths.get(id(node.parent), 0)):
                state |= ADDED
        if state:
            states[id(node)] = state
    return states


class _Cascade:
    """Finds for each element which states it adds to those of its parent, and which it removes."""

    def __init__(self, rules: Sequence[StyleRule]) -> None:
        self.rules = rules
        self.by_key: dict[str, list[int]] = defaultdict(list)
        for order, rule in enumerate(rules):
            self.by_key[rule.key].append(order)
        self.names = {*STRUCK_TAGS, "dialog", "bdo", *self.by_key}
        """Names of the elements that can have an effect without an attribute, if no rule is for all elements."""
        self.matches = 0
        self.effects: dict[tuple[str, bool, str, str, tuple[int, ...]], tuple[int, int]] = {}

    def find_effect(self, node: Tag, depth: int) -> tuple[int, int]:
        orders = self._find_rules(node, depth)
        shown = "open" in node.attrs if node.name == "dialog" else "hidden" not in node.attrs
        style, direction = str(node.attrs.get("style", "")), str(node.attrs.get("dir", ""))
        key = (node.name, shown, style, direction, orders)
        if key not in self.effects:
            own = parse_declarations(style)
            styles = self._resolve(orders, own)
            add, remove = _compute_effect(node.name, shown, styles)
            added, removed = compute_direction(node.name, direction, styles)
            coloured, seen = compute_colour({name: value for name, (_, value) in own.items()})
            self.effects[key] = (add | added | coloured, remove | removed | seen)
        return self.effects[key]

    def prints(self, node: Tag, depth: int) -> bool:
        """Check whether the part of an element that these rules are about has text that may change a figure."""
        orders = self._find_rules(node, depth)
        styles = self._resolve(orders, {}) if orders else {}
        if "content" not in styles or _compute_effect("span", True, styles)[0] & UNSEEN:
            return False
        return adds_to_figure(node, styles["content"])

    def _find_rules(self, node: Tag, depth: int) -> tuple[int, ...]:
        if not self.by_key:
            return ()
        candidates = (order for key in find_keys(node) for order in self.by_key.get(key, ()))
        return tuple(order for order in candidates if self._match(order, node, depth))

    def _match(self, order: int, node: Tag, depth: int) -> bool:
        rule = self.rules[order]
        self.matches += 1 + depth // STEPS_PER_MATCH
        if rule.compares_siblings and node.parent:
            self.matches += len(node.parent.contents)
        if self.matches > MAX_STYLE_MATCHES:
            raise DocumentTooLargeError(f"has style rules for more than {MAX_STYLE_MATCHES:,} elements")
        return rule.is_simple or rule.selector.match(node)

    def _resolve(self, orders: Iterable[int], own: Declarations) -> dict[str, str]:
        """Return the value of each property: of the important, most specific and last rule."""
        ranked = [
            (important, 0, self.rules[order].specificity, order, name, value)
            for order in orders
            for name, (important, value) in self.rules[order].declarations.items()
        ]
        ranked += [(important, 1, (0, 0, 0), 0, name, value) for name, (important, value) in own.items()]
        return {name: value for *_, name, value in sorted(ranked)}


def _collect_rules(sheet: Sequence[tuple[str, Declarations]]) -> list[StyleRule]:
    """Return the style rules, if any of them can hide a text, divide words or draw text otherwise."""
    hiding = {name for _, declarations in sheet for name in _find_hiding(declarations)}
    return [
        rule
        for selectors, declarations in sheet
        if not hiding.isdisjoint(declarations)
        for rule in compile_rules(selectors, declarations)
    ]


def _collect_printed(sheet: Sequence[tuple[str, Declarations]], soup: BeautifulSoup) -> list[_Cascade]:
    """Return the rules for the parts before and after elements, if any of them prints something."""
    if not any("content" in declarations for _, declarations in sheet):
        return []
    parts = [
        _drop_unused(
            [rule for selectors, declarations in sheet for rule in compile_rules(selectors, declarations, name)], soup
        )
        for name in ("before", "after")
    ]
    return [_Cascade(rules) for rules in parts if any("content" in rule.declarations for rule in rules)]


def _find_hiding(declarations: Declarations) -> Iterable[str]:
    styles = {name: value for name, (_, value) in declarations.items()}
    if styles.get("display") == "none" or BLOCK_DISPLAYS.fullmatch(styles.get("display", "")):
        yield "display"
    if styles.get("visibility") in ("hidden", "collapse"):
        yield "visibility"
    if ZERO.fullmatch(styles.get("font-size", "")):
        yield "font-size"
    if "line-through" in styles.get("text-decoration", ""):
        yield "text-decoration"
    if styles.get("vertical-align") in ("super", "sub"):
        yield "vertical-align"
    if styles.get("direction") == "rtl" or styles.get("unicode-bidi", "").endswith("override"):
        yield from ("direction", "unicode-bidi")
    yield from styles if hides_area(styles) else ()


def _drop_unused(rules: Sequence[StyleRule], soup: BeautifulSoup) -> list[StyleRule]:
    """Leave out the rules whose ids and classes no element has."""
    if not rules:
        return []
    present = {key for node in soup.descendants if isinstance(node, Tag) and node.attrs for key in find_keys(node)}
    return [rule for rule in rules if rule.required <= present]


def _compute_effect(name: str, shown: bool, styles: Mapping[str, str]) -> tuple[int, int]:
    """Return the states that an element with these styles adds and removes."""
    add = remove = 0
    display = styles.get("display", "" if shown else "none")
    if display == "none":
        add |= REMOVED
    elif name not in BLOCK_ELEMENTS and BLOCK_DISPLAYS.fullmatch(display):
        add |= BLOCK
    if styles.get("visibility") in ("hidden", "collapse"):
        add |= INVISIBLE
    elif styles.get("visibility") in ("visible", "initial"):
        remove |= INVISIBLE
    if size := styles.get("font-size"):
        if ZERO.fullmatch(size):
            add |= TINY
        elif size in FONT_SIZES or ((length := LENGTH.fullmatch(size)) and length[2] not in ("em", "%")):
            remove |= TINY
    if styles and hides_area(styles):
        add |= COVERED
    if styles and name not in BLOCK_ELEMENTS:
        add |= compute_shift(styles)
    decoration = styles.get("text-decoration", "line-through" if name in STRUCK_TAGS else "")
    return (add | STRUCK if "line-through" in decoration else add), remove
