"""Parse the style rules of a page, and judge what a declaration may do to a text.

Little is understood, and that exactly: `schema/vocabulary/styles.toml` lists it. Any other value is in doubt, and so is
a rule that a browser may or may not apply: what they touch is reported with the name of the property or construct.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import soupsieve
import tinycss2
from bs4.element import Tag

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.files import load_schema_file
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
EFFECT_NAMES = {
    "removed": REMOVED,
    "invisible": INVISIBLE,
    "struck": STRUCK,
    "block": BLOCK,
    "raised": RAISED,
    "lowered": LOWERED,
    "boxed": BOXED,
    "nothing": 0,
}


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.X)


STYLES = load_schema_file("vocabulary/styles.toml")
HARMLESS = _compile(STYLES["harmless"])
PLAIN = {name: _compile(f"initial|inherit|unset|revert|{values}") for name, values in STYLES["plain"].items()}
PLAIN_OUTSIDE = {name: _compile(values) for name, values in STYLES["outside"].items()}
EFFECTS = {
    name: [(_compile(values), EFFECT_NAMES[effect]) for effect, values in entry.items()]
    for name, entry in STYLES["effects"].items()
}
STRUCTURAL, NEVER, INERT = (STYLES["selectors"][name].replace("\n", "") for name in ("structural", "never", "inert"))
NO_STYLES = _compile(STYLES["selectors"]["no_styles"])
SIZES = re.compile(r"(?:min-|max-)?(?:width|height|inline-size|block-size)")
"""Properties that are harmless unless what overflows is cut off."""
COLOURS = ("color", "background-color", "background-image")
SHORTHANDS = {
    "text-decoration": "text-decoration-line",
    "list-style-type": "list-style",
    "font": "font-size",
    "background": "background-color",
}
FONT_SIZE = re.compile(r"(?<![\w.#-])(?:[\d.]+(?:px|r?em|pt|%|ex|vw)|0(?![\w.])|(?:xx?-)?(?:small|large)|medium)")
IMAGE = re.compile(r"url\(|gradient\(|image")
VENDOR = re.compile(r"-(?:webkit|moz|ms|o)-")


@lru_cache(maxsize=20_000)
def judge(name: str, value: str, inside: bool) -> int | str:
    """Return what a declaration does to a text, as bits, or the declaration itself if that is not known.

    `inside` is whether the element is in a table, or one.
    """
    bits = [bits for pattern, bits in EFFECTS.get(name, ()) if pattern.fullmatch(value)]
    if bits or name in COLOURS or SIZES.fullmatch(name):
        return bits[0] if bits else 0
    first = name.partition("-")[0]
    key = next((key for key in (name, name.rsplit("-", 1)[0], first) if key in PLAIN), "")
    is_plain = key and PLAIN[key].fullmatch(value)
    if is_plain or (not inside and first in PLAIN_OUTSIDE and PLAIN_OUTSIDE[first].fullmatch(value)):
        return 0
    return f"`{name}: {value[:40]}`"


class Declaration(NamedTuple):
    name: str
    value: str
    important: bool


def parse_declarations(nodes: Sequence[Any] | str) -> list[Declaration]:
    """Return the declarations of a style attribute or of a rule that may do something, shorthands as what they set."""
    declarations = []
    for node in _parse_blocks(nodes):
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


class Selector(NamedTuple):
    """A selector for soupsieve; what is not understood of it is left out, so that it matches more.

    `key` is the id, class or type of the elements that it can match, `required` are ids and classes of the page.
    """

    text: str
    key: str
    required: frozenset[str]
    specificity: tuple[int, int, int]
    part: str
    """The part of the elements that it is about, such as `before`."""
    is_known: bool
    compares_siblings: bool


class StyleRule(NamedTuple):
    """A selector with its declarations; `doubt` is why a browser may not apply it, or to fewer elements."""

    selector: Selector
    match: soupsieve.SoupSieve
    declarations: Sequence[Declaration]
    doubt: str


NAME = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\.)+"
ARGUMENTS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
TOKEN = re.compile(
    rf"""(?P<combine>\s*[>+~]\s*|\s+)|(?P<id>\#{NAME})|(?P<class>\.{NAME})|(?P<type>{NAME}|\*)|(?P<has>\[\s*{NAME}\s*\])
    |(?P<attribute>\[(?:"[^"]*"|'[^']*'|[^\]"'])*\])|(?P<not>:not\(\s*(?:[\#.:]?{NAME}|\[{NAME}\])\s*\))
    |(?P<nth>:nth-(?:last-)?(?:child|of-type)\(\s*(?:odd|even|[+-]?\d+|[+-]?\d*n\s*(?:[+-]\s*\d+)?)\s*\))
    |(?P<structural>:(?:{STRUCTURAL})(?![\w(-]))|(?P<never>:(?:{NEVER})(?![\w(-]))|(?P<part>::?(?:before|after|marker)(?![\w(-]))
    |(?P<inert>::(?:{INERT})(?:{ARGUMENTS})?$)|(?P<pseudo>::?{NAME}(?:{ARGUMENTS})?|&)|(?P<other>.)""",
    re.X | re.S | re.I,
)
NEGATED = re.compile(rf":(?!(?:{STRUCTURAL})\b)")


def _read_selector(text: str) -> Selector | None:
    """Read a selector; None for one that matches no text of a cell while nothing is pointed at."""
    known = key = part = ""
    counts: Counter[str] = Counter()
    required: set[str] = set()
    for match in TOKEN.finditer(text.strip()):
        kind, token = match.lastgroup or "", match[0]
        if kind in ("never", "inert"):
            return None
        counts[kind] += 1
        if kind in ("id", "class", "type"):
            name = _unescape(token) if kind != "type" else token.lower()
            required |= {name} if kind != "type" else set()
            if kind == "id" or (kind == "class" and key[:1] != "#") or not key:
                key = "" if name == "*" else name
        elif kind == "combine":
            key = ""
        elif kind == "not":
            inner = token[5:-1].strip()
            counts["pseudo"] += NEGATED.match(inner) is not None
            counts["id" if inner[0] == "#" else "class" if inner[0] in ".[:" else "type"] += 1
        elif kind == "part":
            part = token.strip(":").lower()
        if kind == "attribute":
            token = f"[{names[0]}]" if (names := re.findall(NAME, token)) else ""
        known += "" if kind in ("part", "pseudo", "other") else token
    known = re.sub(r"^[\s>+~]+|[\s>+~]+$|[>+~]\s*(?=[>+~])", "", known) or "*"
    is_known = bool(text.strip()) and not (counts["pseudo"] or counts["other"] or counts["attribute"])
    if counts["other"]:
        known, key, required = "*", "", set()
    classes = sum(counts[kind] for kind in ("class", "has", "attribute", "nth", "structural"))
    specificity = (counts["id"], classes, counts["type"] - text.count("*") + counts["part"])
    compares = re.search(r":nth-|of-type|~", known) is not None
    return Selector(known, key, frozenset(required), specificity, part, is_known, compares)


def _unescape(token: str) -> str:
    if "\\" not in token:
        return token
    [*_, name] = tinycss2.parse_component_value_list(token)
    return f"{token[0]}{name.value}"


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
            yield from _compile_rules(node.prelude, parse_declarations(node.content), doubt)
            inner = _parse_blocks(node.content)
            yield from _parse_rules(inner, doubt or "a style rule in another one", node.prelude)
        elif node.type == "at-rule" and not NO_STYLES.fullmatch(node.lower_at_keyword):
            prelude = tinycss2.serialize(node.prelude)
            is_media, is_import = (node.lower_at_keyword == name for name in ("media", "import"))
            applies = media_applies(prelude) if is_media else None
            if applies is False or (is_import and "data:" not in prelude):  # what other files hold is not known
                continue
            why = doubt or ("" if applies else f"`@{node.lower_at_keyword} {' '.join(prelude.split())[:60]}`")
            if is_import:
                yield from _compile_rules((), [Declaration("@import", prelude, False)], why)
            elif node.content is not None:
                yield from _parse_rules(_parse_blocks(node.content), why, outer)
                yield from _compile_rules(outer, parse_declarations(node.content) if outer else [], why)


def _parse_blocks(content: Sequence[Any] | str) -> list[Any]:
    nodes: list[Any] = tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True)
    return nodes


def _compile_rules(prelude: Sequence[Any], declarations: Sequence[Declaration], doubt: str) -> Iterator[StyleRule]:
    """Yield a rule for each selector of a list. If one is not understood, none of them may apply."""
    if not declarations:
        return
    texts: list[list[Any]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            texts.append([])
        elif token.type != "comment":
            texts[-1].append(token)
    listed = [tinycss2.serialize(tokens).strip() for tokens in texts]
    if any(len(text) > MAX_SELECTOR_CHARACTERS for text in listed):
        raise DocumentTooLargeError(f"has a style rule of more than {MAX_SELECTOR_CHARACTERS:,} characters")
    selectors = [*map(_read_selector, listed)]
    unknown = next((text for text, own in zip(listed, selectors, strict=True) if own and not own.is_known), None)
    for selector in filter(None, selectors):
        why = doubt or ("" if unknown is None else f"the selector {unknown[:60]!r}")
        try:
            yield StyleRule(selector, soupsieve.compile(selector.text), declarations, why)
        except (soupsieve.SelectorSyntaxError, ValueError):
            for_all = selector._replace(text="*", key="", required=frozenset())
            yield StyleRule(
                for_all, soupsieve.compile("*"), declarations, why or f"the selector {selector.text[:60]!r}"
            )


WIDTHS = r"\((min|max)-width ?: ?(\d+(?:\.\d+)?)(px|r?em)\)"
MEDIA = re.compile(rf"(?:(?:only )?(all|screen|print|speech|tty|tv|handheld|projection))?((?:(?: and |^){WIDTHS})*)")


def media_applies(query: str) -> bool | None:
    """Check whether a media query holds for a desktop screen; None for one about more than type and width."""
    parts = [_part_applies(" ".join(part.lower().split())) for part in query.split(",")]
    return True if True in parts else None if None in parts else False


def _part_applies(part: str) -> bool | None:
    match = MEDIA.fullmatch(part)
    if match is None:
        return None
    if match[1] not in (None, "all", "screen"):
        return False
    limits = [(kind, float(width) * (1.0 if unit == "px" else EM_PX)) for kind, width, unit in re.findall(WIDTHS, part)]
    return all(width <= VIEWPORT_PX if kind == "min" else width >= VIEWPORT_PX for kind, width in limits)


def find_keys(node: Tag) -> Iterator[str]:
    """Yield id, classes and type of an element, in the form of the keys of rules, and "" for all elements."""
    names = node.attrs.get("class") or ()
    if "id" in node.attrs:
        yield f"#{node.attrs['id']}"
    for name in names if not isinstance(names, str) else names.split():
        yield f".{name}"
    yield node.name
    yield ""
