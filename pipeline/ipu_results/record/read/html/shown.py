"""What a browser shows of a page: the evidence that `add` stored, or that the page is plain.

Nothing here imitates a browser. With evidence, each cell must be shown as it is written. Without,
the page may have plain elements and attributes only.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import msgspec
from lxml.etree import _Element as Element

from ipu_results.errors import DamagedDocumentError, UnprovenDocumentError
from ipu_results.kit.files import load_schema_file
from ipu_results.record.read.text import clean

NEXT_STEP = "open it with `ipu-results add` where Chromium is installed"
BLANK_OF_NO_FIGURE = re.compile(r"(?<![\d.,])\s+|\s+(?![\d.,])")
DIGIT = re.compile(r"\d")
BEYOND_DOUBT = re.compile(r"(?:display|visibility|opacity): ")

PLAIN = load_schema_file("vocabulary/plain_pages.toml")
ELEMENTS = {place: frozenset(names.split()) for place, names in PLAIN["elements"].items()}
ANYWHERE_IN_TABLES = ELEMENTS["anywhere"] | ELEMENTS["in_tables"]
OUTSIDE_OF_TABLES = ELEMENTS["anywhere"] | ELEMENTS["page"] | {"table"}
CHILDREN = {name: frozenset(names.split()) for name, names in PLAIN["children"].items()}
CELLS = CHILDREN["tr"]
ATTRIBUTES = [(re.compile(name), re.compile(value)) for name, value in PLAIN["attributes"].items()]
BETWEEN_CELLS = " | ".join(f"//{name}/text()[normalize-space()]" for name in CHILDREN)
# A browser reads `<b/>` as `<b>`, and what begins with `<![` as a comment.
READ_OTHERWISE = re.compile(r"<(?!(?:br|hr|meta|col|wbr)\b)[a-z][^<>]*/>|<!\[", re.I)


class ShownCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a browser shows of a cell.

    `why` is what else it shows there, or what changes the text; `hidden` are the texts that it does
    not show, each with what hides it.
    """

    text: str
    why: str = ""
    hidden: tuple[tuple[str, str], ...] = ()


class ShownPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a browser shows of a page with this digest.

    `files` are the saved files that it used, `missing` those that it lacked, `moved` is the page to
    which it was led, `around` are the texts outside of cells. A cell is its text, or None if it is
    not displayed.
    """

    sha256: str
    browser: str
    files: dict[str, str]
    missing: tuple[str, ...]
    moved: str
    around: tuple[str, ...]
    tables: tuple[tuple[tuple[str | ShownCell | None, ...], ...], ...]


def parse_shown(evidence: bytes, page: bytes) -> ShownPage:
    """Return the evidence of a page.

    Raises DamagedDocumentError if it is none, or that of other bytes, and UnprovenDocumentError if
    the browser lacked a file that may change what it shows.
    """
    try:
        shown = msgspec.json.decode(evidence, type=ShownPage)
    except msgspec.DecodeError as error:
        raise DamagedDocumentError(f"has unreadable evidence: {error}") from error
    if shown.sha256 != hashlib.sha256(page).hexdigest():
        raise DamagedDocumentError(f"has evidence of other bytes: {NEXT_STEP}")
    # a style sheet or a script that is missing could hide or change a figure
    if shown.missing:
        raise UnprovenDocumentError(
            f"needs {shown.missing[0]}, which is not saved with it: save the page from a browser"
            " with its files, or as MHTML"
        )
    if shown.moved:
        raise UnprovenDocumentError(f"leads to {shown.moved}: save that page")
    return shown


def find_fault(written: str, text: str, shown: ShownCell) -> str:
    """Return how a browser shows a cell otherwise than it is written, "" if it does not.

    `text` is what was read of it. Next to a shown text, a hidden one is left out, such as that for
    screen readers; but if it has digits, only if it is hidden beyond doubt.
    """
    if shown.why:
        return f"is not shown as it is written: {shown.why}"
    if _squeeze(written) != _squeeze(shown.text):
        return f"is shown as {shown.text!r}"
    for hidden, why in shown.hidden:
        if not text or (DIGIT.search(hidden) and not BEYOND_DOUBT.match(why)):
            return f"has a hidden text: {why}"
    return ""


def _squeeze(text: str) -> str:
    """Leave out the blanks at which lines may end: all but those within figures."""
    return BLANK_OF_NO_FIGURE.sub("", clean(text))


def refuse_if_not_plain(root: Element, text: str) -> None:
    """Raise UnprovenDocumentError for a page of which a browser may show something else than its
    text.
    """
    odd = _find_odd(root, text)
    if odd:
        raise UnprovenDocumentError(f"has {odd}, which may change what is shown: {NEXT_STEP}")


def _find_odd(root: Element, text: str) -> str | None:
    """Return the first thing on a page that is not plain."""
    match = READ_OTHERWISE.search(text)
    if match:
        return f"{match[0][:40]!r}"
    if root.xpath(BETWEEN_CELLS):
        return "a text between the cells of a table"
    for node in root.iter("*"):
        parent = node.getparent()
        is_in_row = parent is not None and parent.tag == "tr"
        # most elements of a long table are such cells
        if is_in_row and node.tag in CELLS and not node.keys():
            continue
        if node.tag not in _list_allowed(node, parent):
            return f"an element <{node.tag}>"
        for name, value in node.items():
            if not _is_plain(name, value):
                return f"an attribute `{name}`"
    return None


def _list_allowed(node: Element, parent: Element | None) -> frozenset[str]:
    """Return the plain elements that may be where one is."""
    if parent is not None and parent.tag in CHILDREN:
        return CHILDREN[parent.tag]
    is_in_table = next(node.iterancestors("table"), None) is not None
    return ANYWHERE_IN_TABLES if is_in_table else OUTSIDE_OF_TABLES


@lru_cache(maxsize=10_000)
def _is_plain(name: str, value: str) -> bool:
    return any(
        names.fullmatch(name) and values.fullmatch(value.lower()) for names, values in ATTRIBUTES
    )
