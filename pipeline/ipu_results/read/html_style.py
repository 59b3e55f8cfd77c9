"""Parse the style rules of a page, and judge what a declaration may do to a text.

Little is understood, and that exactly: `schema/vocabulary/styles.toml` lists it. Any other value is
in doubt, and so is a rule that a browser may or may not apply: what they touch is reported with the
name of the property or construct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import soupsieve
import tinycss2
from bs4.element import Tag

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.files import load_schema_file
from ipu_results.ground.limits import MAX_SELECTOR_CHARACTERS

# What a declaration does to a text, as bits. `removed` takes no place. `invisible` keeps its place,
# and elements in it can be visible again. `block` divides words although its element does not.
# `raised` and `lowered` are as by `sup` and `sub`. The line of a struck text around what is `boxed`
# does not go through it.
EFFECT_BITS = {
    name: 1 << place
    for place, name in enumerate("removed invisible struck block raised lowered boxed".split())
}
REMOVED, INVISIBLE, STRUCK, BLOCK, RAISED, LOWERED, BOXED = EFFECT_BITS.values()


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.X)


STYLES = load_schema_file("vocabulary/styles.toml")
HARMLESS = _compile(STYLES["harmless"])
PLAIN = {
    name: _compile(f"initial|inherit|unset|revert|{values}")
    for name, values in STYLES["plain"].items()
}
PLAIN_OUTSIDE = {name: _compile(values) for name, values in STYLES["outside"].items()}
EFFECTS = {
    name: [(_compile(values), EFFECT_BITS.get(effect, 0)) for effect, values in entry.items()]
    for name, entry in STYLES["effects"].items()
}
STRUCTURAL, NEVER, INERT = (
    STYLES["selectors"][name].replace("\n", "") for name in ("structural", "never", "inert")
)
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
FONT_SIZE = re.compile(
    r"(?<![\w.#-])(?:[\d.]+(?:px|r?em|pt|%|ex|vw)|0(?![\w.])|(?:xx?-)?(?:small|large)|medium)"
)
IMAGE = re.compile(r"url\(|gradient\(|image")
VENDOR = re.compile(r"-(?:webkit|moz|ms|o)-")


@lru_cache(maxsize=20_000)
def judge(name: str, value: str, inside: bool) -> int | str:
    """Return what a declaration does to a text, as bits, or the declaration itself if that is not
    known.

    `inside` is whether the element is in a table, or one.
    """
    bits = [bits for pattern, bits in EFFECTS.get(name, ()) if pattern.fullmatch(value)]
    if bits or name in COLOURS or SIZES.fullmatch(name):
        return bits[0] if bits else 0
    first = name.partition("-")[0]
    key = next((key for key in (name, name.rsplit("-", 1)[0], first) if key in PLAIN), "")
    is_plain = key and PLAIN[key].fullmatch(value)
    if is_plain or (
        not inside and first in PLAIN_OUTSIDE and PLAIN_OUTSIDE[first].fullmatch(value)
    ):
        return 0
    return f"`{name}: {value[:40]}`"


class Declaration(NamedTuple):
    name: str
    value: str
    important: bool


def parse_declarations(nodes: Sequence[Any] | str) -> list[Declaration]:
    """Return the declarations of a style attribute or of a rule that may do something, shorthands
    as what they set.
    """
    declarations = []
    for node in _parse_blocks(nodes):
        if node.type != "declaration" or HARMLESS.fullmatch(node.lower_name):
            continue
        tokens = (token for token in node.value if token.type != "comment")
        value = " ".join(tinycss2.serialize(tokens).lower().split())
        name = VENDOR.sub("", node.lower_name)
        if name == "font" and "(" not in value:
            value = next(iter(FONT_SIZE.findall(value)), "inherit")
        name = (
            "background-image"
            if name == "background" and IMAGE.search(value)
            else SHORTHANDS.get(name, name)
        )
        declarations.append(Declaration(name, value, node.important))
    return declarations


class StyleRule(NamedTuple):
    """A selector with its declarations; `doubt` is why a browser may not apply it, or to fewer
    elements.

    What is not understood of the selector is left out of `match`, so that it matches more. `key` is
    the id, class or type of the elements that it can match, `required` are ids and classes of the
    page.
    """

    match: soupsieve.SoupSieve
    key: str
    required: frozenset[str]
    specificity: tuple[int, int, int]
    part: str
    """The part of the elements that it is about, such as `before`."""
    declarations: Sequence[Declaration]
    doubt: str


NAME = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\.)+"
ARGUMENTS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
ATTRIBUTE = r"""\[(?:"[^"]*"|'[^']*'|[^\]"'])*\]"""
ENCLOSED = re.compile(f"{ATTRIBUTE}|{ARGUMENTS}")
IGNORED = re.compile(rf"(?<!\\):(?:{NEVER})(?![\w(-])|(?<!\\)::(?:{INERT})$", re.I)
PART = re.compile(r"(?<!\\)::?(before|after|marker)$", re.I)
# Pseudo-classes and attributes that are not understood: any but those of the structure, and
# attributes without a value.
UNKNOWN = re.compile(
    rf"""(?<!\\)(?!:(?:{STRUCTURAL})(?![\w(-])|:nth-(?:last-)?(?:child|of-type)\((?:[\s\dn+-]+|odd|even)\)|\[\s*{NAME}\s*\])
    (?:::?{NAME}(?:{ARGUMENTS})?|{ATTRIBUTE}|&)""",
    re.X | re.I,
)


def _read_selector(text: str, declarations: Sequence[Declaration], doubt: str) -> StyleRule | None:
    """Read a selector; None for one that matches no text of a cell while nothing is pointed at."""
    if IGNORED.search(ENCLOSED.sub("", text)):
        return None
    part = PART.search(text)
    whole = text[: part.start()] if part else text
    known = UNKNOWN.sub(
        lambda match: "" if whole[: match.start()][-1:].strip("\n >+~") else "*", whole
    )
    match = soupsieve.compile("*")
    is_known = bool(text) and known == whole and "|" not in known
    try:
        match = soupsieve.compile(known or "*") if "|" not in known else match
    except (soupsieve.SelectorSyntaxError, ValueError):
        is_known = False
    compounds: list[Any] = [match.selectors[0]]  # from the last to the first
    while compounds[-1].relation:
        compounds.append(compounds[-1].relation[0])
    ids = [f"#{name}" for own in compounds for name in own.ids]
    classes = [f".{name}" for own in compounds for name in own.classes]
    types = [own.tag.name.lower() if own.tag and own.tag.name != "*" else "" for own in compounds]
    last = compounds[0]
    key = f"#{last.ids[0]}" if last.ids else f".{last.classes[0]}" if last.classes else types[0]
    others = len(re.findall(r"(?<!\\)[:\[]", known))
    specificity = (len(ids), len(classes) + others, sum(map(bool, types)) + bool(part))
    doubt = doubt or ("" if is_known else f"the selector {text[:60]!r}")
    return StyleRule(
        match,
        key,
        frozenset(ids + classes),
        specificity,
        part[1].lower() if part else "",
        declarations,
        doubt,
    )


def parse_style_sheet(text: str, doubt: str = "") -> Iterator[StyleRule]:
    """Yield the rules that may do something to a text on a screen; `doubt` is why the sheet may not
    apply.

    Raises DocumentTooLargeError for selectors that are too long or blocks that are nested too
    deeply.
    """
    try:
        yield from _parse_rules(
            tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True), doubt
        )
    except RecursionError as error:
        raise DocumentTooLargeError("has style rules that are nested too deeply") from error


def _parse_rules(
    nodes: Sequence[Any], doubt: str, outer: Sequence[Any] = ()
) -> Iterator[StyleRule]:
    for node in nodes:
        if node.type == "qualified-rule":
            yield from _compile_rules(node.prelude, parse_declarations(node.content), doubt)
            inner = _parse_blocks(node.content)
            yield from _parse_rules(inner, doubt or "a style rule in another one", node.prelude)
        elif node.type == "at-rule" and not NO_STYLES.fullmatch(node.lower_at_keyword):
            prelude = tinycss2.serialize(node.prelude)
            is_media, is_import = (node.lower_at_keyword == name for name in ("media", "import"))
            applies = media_applies(prelude) if is_media else None
            # what other files hold is not known
            if applies is False or (is_import and "data:" not in prelude):
                continue
            why = doubt or (
                "" if applies else f"`@{node.lower_at_keyword} {' '.join(prelude.split())[:60]}`"
            )
            if is_import:
                yield from _compile_rules((), [Declaration("@import", prelude, False)], why)
            elif node.content is not None:
                yield from _parse_rules(_parse_blocks(node.content), why, outer)
                yield from _compile_rules(
                    outer, parse_declarations(node.content) if outer else [], why
                )


def _parse_blocks(content: Sequence[Any] | str) -> list[Any]:
    nodes: list[Any] = tinycss2.parse_blocks_contents(
        content, skip_comments=True, skip_whitespace=True
    )
    return nodes


def _compile_rules(
    prelude: Sequence[Any], declarations: Sequence[Declaration], doubt: str
) -> Iterator[StyleRule]:
    """Yield a rule for each selector of a list.

    If one is not understood, none of them may apply.
    """
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
        raise DocumentTooLargeError(
            f"has a style rule of more than {MAX_SELECTOR_CHARACTERS:,} characters"
        )
    rules = [rule for text in listed if (rule := _read_selector(text, declarations, doubt))]
    why = next((rule.doubt for rule in rules if rule.doubt), "")
    yield from (rule._replace(doubt=why) for rule in rules)


# Widths below 1,280 pixels: a desktop's window has at least as many.
WIDTH = r" ?: ?(?:(?:\d{1,3}|1[01]\d\d|12[0-7]\d)(?:\.\d+)?px|[1-7]?\d(?:\.\d+)?r?em)\)"
SCREEN = r"(?:only )?(?:all|screen)"
APPLIES = re.compile(rf"(?:{SCREEN})?|(?:{SCREEN} and )?\(min-width{WIDTH}")
APPLIES_NOT = re.compile(
    rf"(?:(?:only )?(?:print|speech|tty|tv|handheld|projection)|(?:{SCREEN} and"
    rf" )?(?:\(min-width{WIDTH} and )?"
    rf"\(max-width{WIDTH})(?: and .*)?"
)


def media_applies(query: str) -> bool | None:
    """Check whether a media query holds for a desktop screen; None for one about more than type and
    width.
    """
    parts = [" ".join(part.lower().split()) for part in query.split(",")]
    if any(map(APPLIES.fullmatch, parts)):
        return True
    return False if all(map(APPLIES_NOT.fullmatch, parts)) else None


def find_keys(node: Tag) -> Iterator[str]:
    """Yield id, classes and type of an element, in the form of the keys of rules, and "" for all
    elements.
    """
    names = node.attrs.get("class") or ()
    if "id" in node.attrs:
        yield f"#{node.attrs['id']}"
    for name in names if not isinstance(names, str) else names.split():
        yield f".{name}"
    yield node.name
    yield ""
