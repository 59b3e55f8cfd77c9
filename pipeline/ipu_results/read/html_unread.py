"""Find what looks like a known table but was not read: a grid of blocks, a list, or a table on its side."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, PageElement, Tag

from ipu_results.read.align import contains_row
from ipu_results.read.html_cells import CDATA, EMBEDDED, NOT_DISPLAYED, describe_element
from ipu_results.read.html_drawing import ADDED
from ipu_results.read.html_visibility import UNSEEN, States
from ipu_results.read.text import clean
from ipu_results.schema.table_headers import TableHeader, normalise_header

FIGURE = re.compile(r"\d[\d.,]*")
UNKNOWN_FIGURE = "0"
MAX_MISSING_NAMES = 1
MIN_NAMES = 2
FIGURE_WITHIN_HEADERS = 3
"""A figure follows the last name of the header within the texts of this many headers."""


def find_unread_blocks(
    soup: BeautifulSoup, read: Collection[int], headers: Sequence[TableHeader], states: States
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield place and header of each block with the names and figures of a known table; `read` are the tables read.

    A block is a table that was not read, or all other text between two tables.
    """
    for place, texts in _collect_blocks(soup, read, states).items():
        for number, part in enumerate(_split_block(texts, headers), start=1):
            if names := _find_table(part, headers):
                yield place if number == 1 else f"{place}, part {number}", names


def _split_block(texts: Sequence[str], headers: Sequence[TableHeader]) -> Iterator[Sequence[str]]:
    """Cut the texts of a block before each further header whose names are next to each other."""
    keys = [*map(normalise_header, texts)]
    names = [frozenset(header.keys) for header in headers]
    known = frozenset().union(*names)
    starts = [
        place
        for place, key in enumerate(keys)
        if key in known and any(set(keys[place : place + len(group)]) == group for group in names if key in group)
    ]
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(texts)], strict=True):
        yield texts[start:end]


def _collect_blocks(soup: BeautifulSoup, read: Collection[int], states: States) -> dict[str, list[str]]:
    """Return the visible texts of the page outside of the tables that were read, by place."""
    blocks: dict[str, list[str]] = {}
    nodes: list[tuple[PageElement, str]] = [(node, "") for node in reversed(soup.contents)]
    tables = last = 0  # tables so far, and the last that is not a mere cell of a block
    while nodes:
        node, table = nodes.pop()
        if type(node) is NavigableString:
            if (text := clean(node)) and not states.get(id(node.parent), 0) & UNSEEN:
                blocks.setdefault(table or (f"after table {last}" if last else "before table 1"), []).append(text)
        elif isinstance(node, Comment) and table and FIGURE.fullmatch(node.removeprefix(CDATA).removesuffix("]]")):
            blocks.setdefault(table, []).append(UNKNOWN_FIGURE)
        elif (
            isinstance(node, Tag)
            and table
            and not states.get(id(node), 0) & UNSEEN
            and (added := _find_figures(node, states))
        ):
            blocks.setdefault(table, []).extend(added)
        elif isinstance(node, Tag) and node.name not in NOT_DISPLAYED and node.name != "head":
            if node.name == "table":
                tables += 1
                if id(node) in read:
                    last = tables = tables + len(node.find_all("table"))
                    continue
                if len([*islice(node.stripped_strings, 2)]) > 1:
                    last, table = tables, f"table {tables}"
            nodes += [(child, table) for child in reversed(node.contents)]
    return blocks


def _find_figures(node: Tag, states: States) -> list[str]:
    """Return what stands for figures that are not text: those in an image or a field, or of a style sheet."""
    if states.get(id(node), 0) & ADDED and not node.get_text(strip=True):
        return [UNKNOWN_FIGURE]
    if node.name not in EMBEDDED or node.name == "table":
        return []
    return [UNKNOWN_FIGURE for embedded in describe_element(node) if FIGURE.fullmatch(embedded.text)]


def _find_table(texts: Sequence[str], headers: Sequence[TableHeader]) -> tuple[str, ...]:
    """Return the names of a known header among `texts`, if figures follow them, or a row without its header."""
    if len(texts) < min((len(header.keys) for header in headers), default=0):
        return ()
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(normalise_header(text), place)
    for header in headers:
        names = [places[key] for key in header.keys if key in places]
        if len(names) < max(MIN_NAMES, len(header.keys) - MAX_MISSING_NAMES):
            continue
        first, last = min(names), max(names)
        if any(map(FIGURE.fullmatch, texts[first : last + FIGURE_WITHIN_HEADERS * len(header.keys)])):
            return tuple(texts[place] for place in sorted(names))
    return tuple(texts[:1]) if contains_row(texts, headers) else ()
