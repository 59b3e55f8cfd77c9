"""Parse the style rules of a page, and judge what a declaration may do to a text.

Little is understood, and that exactly. A value that is not known to be harmless is in doubt, and so is a rule that a browser
may or may not apply: what it touches is reported with the name of the property or construct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import soupsieve
import tinycss2
from bs4.element import Tag
from soupsieve.util import SelectorSyntaxError

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import MAX_SELECTOR_CHARACTERS

VIEWPORT_PX = 1280.0
"""Width of the window for which media queries are evaluated: a desktop."""
EM_PX = 16.0

# What a declaration does to a text, as bits
REMOVED = 1  # not displayed: takes no place
INVISIBLE = 2  # keeps its place; an element inside can be visible again
STRUCK = 4
BLOCK = 8  # divides words although its element does not
RAISED = 16  # as by `sup`
LOWERED = 32
BOXED = 64  # the line of a struck text around it does not go through it

WIDE = "inherit|unset|revert|revert-layer"
LENGTH = r"[\d.]+(?:px|r?em|pt|pc|%|cm|mm|in|ex|ch|vw|vh)?"
HARMLESS = re.compile(
    r"""--.*|mso-.*|(?:-[a-z]+-)?(?:border.*|padding.*|outline.*|box-(?:shadow|sizing|decoration-break)
    |background-(?:position|repeat|size|attachment|origin).*|font-(?:family|weight|style|stretch|kerning|smoothing)
    |osx-font-smoothing|text-(?:align.*|rendering|transform|shadow|wrap.*|size-adjust|underline-.*|justify|overflow)
    |text-decoration-(?:style|skip.*)|white-space.*|word-(?:break|wrap)|overflow-(?:wrap|anchor|scrolling|style)|hyphen.*
    |table-layout|caption-side|empty-cells|cursor|user-select|pointer-events|touch-action|will-change|scroll.*|resize
    |(?:row-|column-|grid-)?gap|justify-.*|align-.*|place-.*|flex(?:-grow|-shrink|-basis)?|z-index|transition.*|tab-size
    |object-(?:fit|position)|(?:page-)?break-.*|orphans|widows|appearance|tap-highlight-color|quotes|accent-color
    |caret-color|counter-.*|list-style-(?:image|position)|clear|isolation|line-break|print-color-adjust|page|behavior)""",
    re.X,
)
"""Properties that change neither what a text says nor whether and where it is seen, whatever their value."""
SIZES = re.compile(r"(?:min-|max-)?(?:width|height|inline-size|block-size)")
"""Properties that are harmless unless what overflows is cut off."""
COLOURS = ("color", "background-color", "background-image")
SIDES = dict.fromkeys("top left right bottom inset".split(), r"auto|0(?:px|em|%)?")
SWITCHES = dict.fromkeys(
    """
    transform filter clip-path mask mask-image float animation animation-name perspective rotate scale translate contain content
    offset-path shape-outside
    """.split(),
    "none",
)
PLAIN = {
    **SIDES,
    **SWITCHES,
    "clip": "auto",
    "zoom": "1|100%|normal",
    "order": "0",
    "content-visibility": "visible",
    "mix-blend-mode": "normal",
    "opacity": r"1(?:\.0+)?|0?\.[3-9]\d*|100%|[3-9]\d%",
    "position": "static|relative|sticky",
    "overflow": r"(?:(?:visible|auto|scroll)\s*)+",
    "margin": rf"(?:(?:auto|{LENGTH})\s*)+",
    "text-indent": r"0?\d?\d(?:\.\d+)?(?:px|r?em|pt)?",
    "font-size": r"(?:xx?-|xxx-)?(?:small|large)|medium|smaller|larger|(?:[6-9]|\d\d+)(?:\.\d+)?(?:px|pt)"
    r"|(?:0?\.[5-9]\d*|[1-9]\d?(?:\.\d*)?)r?em|(?:[5-9]\d|\d{3})(?:\.\d+)?%",
    "line-height": r"normal|(?:0?\.[89]\d*|[1-9]\d*(?:\.\d+)?)(?:r?em)?|(?:[89]|\d\d+)(?:\.\d+)?(?:px|pt)"
    r"|(?:[89]\d|\d{3})(?:\.\d+)?%",
    "letter-spacing": rf"normal|-?0?\.0\d+r?em|{LENGTH}",
    "word-spacing": rf"normal|{LENGTH}",
    "list-style": r"(?:(?:none|disc|circle|square|inside|outside)\s*)+",
    "flex-direction": "row|column",
    "flex-wrap": "wrap|nowrap",
    "flex-flow": r"(?:(?:row|column|wrap|nowrap)\s*)+",
    "background-clip": "(?:border|padding|content)-box",
    "font-variant": r"normal|(?:(?:small-caps|(?:tabular|lining|proportional|oldstyle)-nums)\s*)+",
    "font-feature-settings": r"normal|(?:[\"'](?:kern|liga|calt|[tlpo]num|[cr]lig|locl|ccmp)[\"']\s*(?:on|off|[01])?[\s,]*)+",
    "writing-mode": "horizontal-tb",
    "color-scheme": "normal|light|only light|light dark",
    "text-decoration-color": "currentcolor",
    "text-decoration-thickness": "auto|from-font",
    "unicode-bidi": "normal|isolate|embed|plaintext|(?:isolate|bidi)-override",  # see `compute_direction`
    "direction": "ltr|rtl",
}
"""Values of other properties that hide, move, scale and alter nothing; all have the words for the usual value besides."""
PLAIN_VALUES = {name: re.compile(rf"initial|{WIDE}|{values}") for name, values in PLAIN.items()}
PLAIN_OUTSIDE = {
    "margin": re.compile(rf"(?:(?:auto|{LENGTH}|-\d?\d(?:\.\d+)?px)\s*)+"),
    **dict.fromkeys(("float", "order", "flex", "grid", "column", "columns"), re.compile(".*")),
}
"""What only moves a table as a whole, by the first word of the property."""
LINE = r"(?:underline|overline|solid|double|auto|black|red|#[0-9a-f]{3}|#[0-9a-f]{6})"
EFFECTS: Mapping[str, Sequence[tuple[str, int]]] = {
    "display": (
        ("none", REMOVED),
        (r"block|flex|grid|flow-root|list-item|table(?:-row|-cell|-caption|-(?:row|header|footer)-group)?", BLOCK),
        ("inline-(?:block|flex|grid|table)", BOXED),
        ("inline|contents|initial|unset|revert", 0),
    ),
    "visibility": (("hidden|collapse", INVISIBLE), (f"visible|initial|{WIDE}", 0)),
    "vertical-align": (
        ("super", RAISED),
        ("sub", LOWERED),
        (f"baseline|top|middle|bottom|text-top|text-bottom|initial|0|{WIDE}", 0),
    ),
    "text-decoration-line": (
        (rf"(?:{LINE}\s+)*line-through(?:\s+{LINE})*", STRUCK),
        (rf"none(?:\s+{LINE})*|{LINE}(?:\s+(?:dotted|dashed|wavy|{LINE}))*|initial|{WIDE}", 0),
    ),
}


@lru_cache(maxsize=20_000)
def judge(name: str, value: str, inside: bool) -> int | str:
    """Return what a declaration does to a text, as bits, or the declaration itself if that is not known.

    `inside` is whether the element is in a table, or one.
    """
    bits = [bits for pattern, bits in EFFECTS.get(name, ()) if re.fullmatch(pattern, value)]
    if bits or name in COLOURS or SIZES.fullmatch(name) or HARMLESS.fullmatch(name):
        return bits[0] if bits else 0
    first = name.split("-")[0]
    key = next((key for key in (name, name.rsplit("-", 1)[0], first) if key in PLAIN_VALUES), "")
    if key and PLAIN_VALUES[key].fullmatch(value):
        return 0
    if not inside and first in PLAIN_OUTSIDE and PLAIN_OUTSIDE[first].fullmatch(value):
        return 0
    return f"`{name}: {value[:40]}`"


class Declaration(NamedTuple):
    name: str
    value: str
    important: bool


SHORTHANDS = {
    "text-decoration": "text-decoration-line",
    "list-style-type": "list-style",
    "font": "font-size",
    "background": "background-color",
}
FONT_SIZE = re.compile(r"(?<![\w.#-])(?:[\d.]+(?:px|r?em|pt|%|ex|vw)|0(?![\w.])|(?:xx?-)?(?:small|large)|medium)")
IMAGE = re.compile(r"url\(|gradient\(|image")
VENDOR = re.compile(r"-(?:webkit|moz|ms|o)-")


def parse_declarations(nodes: Sequence[Any] | str) -> list[Declaration]:
    """Return the declarations of a style attribute or of a rule that may do something, shorthands as what they set."""
    declarations = []
    for node in tinycss2.parse_blocks_contents(nodes, skip_comments=True, skip_whitespace=True):
        if node.type != "declaration" or HARMLESS.fullmatch(node.lower_name):
            continue
        tokens = (token for token in node.value if token.type != "comment")
        value = " ".join(tinycss2.serialize(tokens).lower().split())
        name = VENDOR.sub("", node.lower_name)
        if name == "font" and "(" not in value:
            value = next(iter(FONT_SIZE.findall(value)), "inherit")
        name = "background-image" if name == "background" and IMAGE.search(value) else SHORTHANDS.get(name, name)
        declarations.append(Declaration(name, value, node.important))
    return declarations


class StyleRule(NamedTuple):
    """One selector with its declarations; `key` is the id, class or type of the elements that it can match."""

    selector: soupsieve.SoupSieve
    key: str
    specificity: tuple[int, ...]
    declarations: Sequence[Declaration]
    part: str
    """The part of the elements that it is about, such as `before`."""
    doubt: str
    """Why a browser may not apply it, or to fewer elements."""
    is_simple: bool
    """Whether it matches all elements with its key."""
    required: frozenset[str]
    """Ids and classes that must be in the page."""
    compares_siblings: bool


# At-rules that hold no styles of elements.
NO_STYLES = re.compile(
    r"(?:-\w+-)?(?:font-.*|keyframes|page|counter-style|property|charset|namespace|viewport|view-transition)"
)
INERT_PARTS = re.compile(
    r"-.*|selection|placeholder|backdrop|cue.*|file-selector-button|target-text|(?:spelling|grammar)-error|highlight"
    r"|view-transition.*|details-content|slotted|part|scroll-.*"
)
AT_REST_NEVER = frozenset("hover active focus focus-within focus-visible visited".split())
STRUCTURAL = frozenset(
    "first-child last-child only-child first-of-type last-of-type only-of-type empty root link".split()
)
NTH = re.compile(r"nth-(?:last-)?(?:child|of-type)")
NTH_ARGUMENT = re.compile(r"\s*(?:odd|even|[+-]?\d+|[+-]?\d*n\s*(?:[+-]\s*\d+)?)\s*", re.I)


def parse_style_sheet(text: str, doubt: str = "") -> Iterator[StyleRule]:
    """Yield the rules that may do something to a text on a screen; `doubt` is why the sheet may not apply.

    Raises DocumentTooLargeError for selectors that are too long or blocks that are nested too deeply.
    """
    try:
        yield from _parse_rules(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True), doubt)
    except RecursionError as error:
        raise DocumentTooLargeError("has style rules that are nested too deeply") from error


def _parse_rules(nodes: Sequence[Any], doubt: str, outer: Sequence[Any] = ()) -> Iterator[StyleRule]:
    for node in nodes:
        if node.type == "qualified-rule":
            yield from _compile_rules(node.prelude, node.content, doubt)
            inner = _parse_blocks(node.content)
            yield from _parse_rules(inner, doubt or "a style rule in another one", node.prelude)
        elif node.type == "at-rule" and not NO_STYLES.fullmatch(node.lower_at_keyword):
            prelude = tinycss2.serialize(node.prelude)
            applies = media_applies(prelude) if node.lower_at_keyword == "media" else None
            if applies is False or (node.lower_at_keyword == "import" and "data:" not in prelude):
                continue
            why = doubt or ("" if applies else f"`@{node.lower_at_keyword} {' '.join(prelude.split())[:60]}`")
            if node.content is not None:
                inner = _parse_blocks(node.content)
                yield from _parse_rules(inner, why, outer)
                if outer and any(child.type == "declaration" for child in inner):
                    yield from _compile_rules(outer, node.content, why)
            elif node.lower_at_keyword == "import":
                yield _make_rule("*", "", (0,), [Declaration("import", prelude, False)], why)


def _parse_blocks(content: Sequence[Any]) -> list[Any]:
    nodes: list[Any] = tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True)
    return nodes


def media_applies(query: str) -> bool | None:
    """Check whether a media query holds for a desktop screen; None for one about more than type and width."""
    parts = [_part_applies(" ".join(part.lower().split())) for part in query.split(",")]
    return True if True in parts else None if None in parts else False


WIDTHS = re.compile(r"\((min|max)-width ?: ?(\d+(?:\.\d+)?)(px|r?em)\)")
MEDIA = re.compile(
    rf"(?:(?:only )?(all|screen|print|speech|tty|tv|handheld|projection)\b)?((?: ?(?:and )?{WIDTHS.pattern})*)"
)


def _part_applies(part: str) -> bool | None:
    match = MEDIA.fullmatch(part)
    if match is None or (match[2] and (" and " in f"{match[2]} ") != (bool(match[1]) or match[2].count("(") > 1)):
        return None
    if match[1] not in (None, "all", "screen"):
        return False
    limits = [(kind, float(width) * (1.0 if unit == "px" else EM_PX)) for kind, width, unit in WIDTHS.findall(match[2])]
    return all(width <= VIEWPORT_PX if kind == "min" else width >= VIEWPORT_PX for kind, width in limits)


def _compile_rules(prelude: Sequence[Any], content: Sequence[Any], doubt: str) -> Iterator[StyleRule]:
    """Yield a rule for each selector of a list. One that is not understood matches as much as it may, in doubt."""
    declarations = parse_declarations(content)
    if not declarations:
        return
    selectors: list[list[Any]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            selectors.append([])
        elif token.type != "comment":
            selectors[-1].append(token)
    read = [_Selector(tokens) for tokens in selectors]
    unknown = next((selector.unknown for selector in read if selector.unknown), "")  # may make the list invalid
    for selector in read:
        if len(selector.text) > MAX_SELECTOR_CHARACTERS:
            raise DocumentTooLargeError(f"has a style rule of more than {MAX_SELECTOR_CHARACTERS:,} characters")
        if not selector.is_inert:
            why = doubt or (unknown and f"the selector {unknown[:60]!r}")
            yield _make_rule(selector.text, selector.key, selector.specificity, declarations, why, selector)


class _Selector:
    """A selector as one that soupsieve knows; what it does not know is left out, so that it matches more."""

    def __init__(self, tokens: Sequence[Any]) -> None:
        self.text = self.key = self.part = self.unknown = ""
        self.ids = self.classes = self.types = 0
        self.is_inert = self.compares_siblings = False
        self.required: set[str] = set()
        self._compound = ""
        remaining = iter(tokens)
        for token in remaining:
            self._add(token, remaining)
        if self.unknown:
            self.unknown = tinycss2.serialize(tokens).strip() or "an empty selector"
        self.text = re.sub(r"[\s>+~]+$|^[\s>+~]+", "", self.text)
        self.text = re.sub(r"([>+~])\s*(?=[>+~])", "", self.text) or "*"
        self.specificity = (self.ids, self.classes, self.types)

    def _add(self, token: Any, remaining: Iterator[Any]) -> None:
        kind, value = token.type, getattr(token, "value", "")
        if kind == "whitespace" or (kind == "literal" and value in (">", "+", "~")):
            self.text += " " if kind == "whitespace" else value
            self.compares_siblings |= value == "~"
            self._compound = ""
        elif kind == "ident" and not self._compound:
            self.types += 1
            self._append(tinycss2.serialize([token]), value.lower())
        elif kind == "hash":
            self.ids += 1
            self._append(tinycss2.serialize([token]), f"#{value}")
        elif kind == "literal" and value == ".":
            name = next(remaining, None)
            if name is None or name.type != "ident":
                self.unknown = "."
                return
            self.classes += 1
            self._append(f".{tinycss2.serialize([name])}", f".{name.value}")
        elif kind == "[] block":
            self.classes += 1
            name = tinycss2.serialize(token.content).strip()
            match = re.match(r"[\w-]+", name)
            if match is None or match[0] != name:
                self.unknown = name
            self._append(f"[{match[0]}]" if match else "", "")
        elif kind == "literal" and value == ":":
            self._add_pseudo(next(remaining, None), remaining)
        elif kind == "literal" and value == "*":
            self._append("*", "")
        else:
            self.unknown = "?"
            if value == "|":
                self.text = self.key = self._compound = ""

    def _append(self, text: str, key: str) -> None:
        first = not self._compound
        self._compound += text or "*"
        self.text += text
        if key[:1] in ("#", "."):
            self.required.add(key)
        if first or key[:1] == "#" or (key[:1] == "." and self.key[:1] != "#"):
            self.key = key

    def _add_pseudo(self, token: Any, remaining: Iterator[Any]) -> None:
        double = token is not None and token.type == "literal" and token.value == ":"
        token = next(remaining, None) if double else token
        if token is None or token.type not in ("ident", "function"):
            self.unknown = ":"
            return
        name = token.lower_value if token.type == "ident" else token.lower_name
        if not self._compound:
            self.key = ""
        self._compound = self._compound or "*"
        if name in ("before", "after", "marker"):
            self.part = name
            self.types += 1
        elif double:
            self.is_inert |= INERT_PARTS.fullmatch(name) is not None
            self.unknown = "" if name.startswith("-webkit-") else f"::{name}"
        elif name in AT_REST_NEVER:
            self.is_inert = True
        elif name in STRUCTURAL:
            self.classes += 1
            self.compares_siblings |= name.endswith("-of-type")
            self._append(f":{name}", "")
        elif (
            token.type == "function"
            and NTH.fullmatch(name)
            and NTH_ARGUMENT.fullmatch(tinycss2.serialize(token.arguments))
        ):
            self.classes += 1
            self.compares_siblings = True
            self._append(tinycss2.serialize([token]).lower(), "")
        elif token.type == "function" and name == "not":
            inner = _Selector(token.arguments)
            if inner.unknown or inner.part or inner.is_inert or re.search(r"[\s>+~,]", inner.text.strip()):
                self.unknown = ":not"
            else:
                self.ids, self.classes, self.types = (
                    own + other
                    for own, other in zip((self.ids, self.classes, self.types), inner.specificity, strict=True)
                )
                self._append(f":not({inner.text})", "")
        else:
            self.unknown = name


def _make_rule(
    text: str,
    key: str,
    specificity: tuple[int, ...],
    declarations: Sequence[Declaration],
    doubt: str,
    own: _Selector | None = None,
) -> StyleRule:
    try:
        selector = soupsieve.compile(text)
    except (SelectorSyntaxError, ValueError):
        selector, key, doubt, text, own = soupsieve.compile("*"), "", doubt or f"the selector {text[:60]!r}", "*", own
    part = own.part if own else ""
    required = frozenset(own.required) if own and text != "*" else frozenset()
    return StyleRule(
        selector,
        key,
        specificity,
        declarations,
        part,
        doubt,
        text in (key, "*"),
        required,
        bool(own and own.compares_siblings),
    )


def find_keys(node: Tag) -> Iterator[str]:
    """Yield id, classes and type of an element, in the form of the keys of rules, and "" for all elements."""
    names = node.attrs.get("class") or ()
    if "id" in node.attrs:
        yield f"#{node.attrs['id']}"
    for name in names if not isinstance(names, str) else names.split():
        yield f".{name}"
    yield node.name
    yield ""
