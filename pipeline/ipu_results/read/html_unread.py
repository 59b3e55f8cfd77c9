"""Find what looks like a known table but was not read: a grid of blocks, a list, or a table on its side."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag

from ipu_results.read.align import contains_row
from ipu_results.read.html_cells import NOT_DISPLAYED
from ipu_results.read.html_visibility import UNSEEN, States
from ipu_results.read.text import clean
from ipu_results.schema.table_headers import TableHeader, normalise_header

FIGURE = re.compile(r"\d[\d.,]*")
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
        if names := _find_table(texts, headers):
            yield place, names


def _collect_blocks(soup: BeautifulSoup, read: Collection[int], states: States) -> dict[str, list[str]]:
    """Return the visible texts of the page outside of the tables that were read, by place."""
    blocks: dict[str, list[str]] = {}
    nodes: list[tuple[PageElement, str]] = [(node, "") for node in reversed(soup.contents)]
    tables = 0
    while nodes:
        node, table = nodes.pop()
        if type(node) is NavigableString:
            if (text := clean(node)) and not states.get(id(node.parent), 0) & UNSEEN:
                blocks.setdefault(table or (f"after table {tables}" if tables else "before table 1"), []).append(text)
        elif isinstance(node, Tag) and node.name not in NOT_DISPLAYED and node.name != "head":
            if node.name == "table":
                tables += 1
                if id(node) in read:
                    tables += len(node.find_all("table"))
                    continue
                table = f"table {tables}"
            nodes += [(child, table) for child in reversed(node.contents)]
    return blocks


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
