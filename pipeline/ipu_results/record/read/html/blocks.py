"""Find what looks like a known table on a page, but is in no table that was read: a grid of blocks,
a list, or a table on its side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from lxml.etree import _Element as Element

from ipu_results.record.read.document import Headers
from ipu_results.record.read.html.cells import NOT_DISPLAYED, list_nodes
from ipu_results.record.read.shapes import contains_row
from ipu_results.record.read.text import clean
from ipu_results.schema.vocabulary import normalise_header

FIGURE = re.compile(r"\d[\d.,]*")
MAX_MISSING_NAMES = 1
MIN_NAMES = 2  # a single name is ordinary text
# A figure follows the last name of the header within the texts of this many headers.
FIGURE_WITHIN_HEADERS = 3


class UnreadTable(NamedTuple):
    """Where a known table may be, and its names or its first text."""

    place: str
    names: tuple[str, ...]


def find_unread_tables(
    root: Element, read: Collection[Element], headers: Headers
) -> Iterator[UnreadTable]:
    """Yield what looks like a known table outside of the tables that were read."""
    for block, texts in _collect_blocks(root, read).items():
        for number, part in enumerate(_split_block(texts, headers), start=1):
            names = _find_table(part, headers)
            if names:
                place = block if number == 1 else f"{block}, part {number}"
                yield UnreadTable(place, names)


def _collect_blocks(root: Element, read: Collection[Element]) -> dict[str, list[str]]:
    """Return the texts of the page outside of the tables that were read, by place.

    A block is a table that was not read, or all other text between two tables.
    """
    blocks: dict[str, list[str]] = {}
    # the nodes to come, the next one last, each with the unread table that it is in
    nodes: list[tuple[str | Element, str]] = [(root, "")]
    tables = 0
    last_table = 0  # that is not a mere cell of a block
    while nodes:
        node, around = nodes.pop()
        if isinstance(node, str):
            text = clean(node)
            between = f"after table {last_table}" if last_table else "before table 1"
            if text:
                blocks.setdefault(around or between, []).append(text)
            continue
        if node.tag in NOT_DISPLAYED or node.tag == "head":
            continue
        if node.tag == "table":
            tables += 1
            if node in read:
                tables += len(node.findall(".//table"))
                last_table = tables
                continue
            if _has_two_texts(node):
                last_table = tables
                around = f"table {tables}"
        for child in reversed(list_nodes(node)):
            nodes.append((child, around))
    return blocks


def _has_two_texts(table: Element) -> bool:
    texts = (text for text in table.itertext() if not text.isspace())
    return len(list(islice(texts, 2))) == 2


def _split_block(texts: Sequence[str], headers: Headers) -> Iterator[Sequence[str]]:
    """Cut the texts of a block before each further header whose names are next to each other."""
    keys = [normalise_header(text) for text in texts]
    names_of_headers = [header.keys for header in headers]
    begins = []
    for place, key in enumerate(keys):
        # few texts are a name, which is quicker to see than to compare as many as a header has
        known = [names for names in names_of_headers if key in names]
        if any(names == set(keys[place : place + len(names)]) for names in known):
            begins.append(place)
    # what is before the first header is in one part with it
    borders = [0, *begins[1:], len(texts)]
    for start, stop in pairwise(borders):
        yield texts[start:stop]


def _find_table(texts: Sequence[str], headers: Headers) -> tuple[str, ...]:
    """Return the names of a known header among `texts`, if figures follow them, or the first text
    of rows without their header.
    """
    if len(texts) < min((len(header.keys) for header in headers), default=0):
        return ()
    place_of: dict[str, int] = {}
    for place, text in enumerate(texts):
        place_of.setdefault(normalise_header(text), place)
    for header in headers:
        places = sorted(place_of[key] for key in header.keys if key in place_of)
        if len(places) < max(MIN_NAMES, len(header.keys) - MAX_MISSING_NAMES):
            continue
        stop = places[-1] + FIGURE_WITHIN_HEADERS * len(header.keys)
        if any(map(FIGURE.fullmatch, texts[places[0] : stop])):
            return tuple(texts[place] for place in places)
    return tuple(texts[:1]) if contains_row(texts, headers) else ()
