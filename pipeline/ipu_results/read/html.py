"""Read the tables of an HTML page."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bs4 import BeautifulSoup
from bs4.element import Tag

from ipu_results._util.limits import MAX_PARENTS_OF_A_ROW, MAX_TABLE_DEPTH
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.read.assemble import Assembler
from ipu_results.read.document import ParsedDocument
from ipu_results.read.html_grid import HtmlRow, expand_rows
from ipu_results.read.html_unread import find_unread_blocks
from ipu_results.read.html_visibility import REMOVED, States, find_states
from ipu_results.read.text import decode
from ipu_results.schema.table_headers import TableHeader

CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
CHARSET_BYTES = 4096
TABLE_TAG = re.compile(r"<table\b", re.I)
PAGE_TAG = re.compile(r"<(/?)(html|body|table)\b", re.I)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script\s*>|\Z)", re.S | re.I)
CELLS = ("td", "th")
TABLE_PARTS = frozenset({"table", "tr", *CELLS})
SECTIONS = ("thead", "tbody", "tfoot", "table")


def read_html(data: bytes, headers: Sequence[TableHeader], charset: str | None = None) -> ParsedDocument:
    """Read every table whose header is one of `headers`, wherever the table and its header row are.

    Spans are expanded, footnote marks lifted off, and text that a reader cannot see is left out. `charset` is the
    encoding that a mail states, in place of the page's own. Raises DamagedDocumentError for an empty, binary or
    truncated page, DocumentTooLargeError for one nested too deeply, and UnrecognisedDocumentError if no table has a
    header that resembles a known one.
    """
    text = decode(data, charset or find_charset(data))
    opened = _count_opened_tables(text)
    if not TABLE_TAG.search(text):
        raise UnrecognisedDocumentError("has no table")
    with warnings.catch_warnings(action="ignore"):  # about XHTML that is read as HTML
        soup = BeautifulSoup(text, "lxml")
    assembler = Assembler(headers)
    try:
        tables = _collect_tables(soup)
        if len(tables) < opened:  # an element left open, such as a style or a text area, swallows what follows
            hidden = opened - len(tables)
            raise DamagedDocumentError(f"hides {hidden} of its {opened} tables in an element that is left open")
        states = find_states(soup, text.lower())
        read = set()
        for number, (table, rows) in enumerate(tables, start=1):
            before = assembler.count
            shown = _drop_hidden_cells(rows, states) if states else rows
            assembler.add_grid(f"table {number}", (("", row) for row in expand_rows(shown, states)))
            if assembler.count > before:
                read.add(id(table))
        for place, names in find_unread_blocks(soup, read, headers, states):
            assembler.add_unread_block(place, names)
    finally:
        soup.clear(decompose=True)  # its nodes refer to each other: else only the cycle collector would free them
    return assembler.finish()


def find_charset(data: bytes) -> str | None:
    """Return the encoding that a page declares in its first bytes."""
    match = CHARSET.search(data[:CHARSET_BYTES])
    return match[1].decode("ascii") if match else None


def _count_opened_tables(text: str) -> int:
    """Count the tables that the page opens.

    Raises DamagedDocumentError for a truncated page: one that lacks the end tag of its body and its own, or that of a
    table. Rows and cells without an end tag are ordinary. Raises DocumentTooLargeError for tables nested too deeply.
    """
    opened = 0
    depth = dict.fromkeys(("html", "body", "table"), 0)
    ended = False
    for match in PAGE_TAG.finditer(COMMENT.sub("", text)):
        closing, name = bool(match[1]), match[2].lower()
        depth[name] += -1 if closing else 1
        ended |= closing and name != "table"
        opened += not closing and name == "table"
        if depth["table"] > MAX_TABLE_DEPTH:
            raise DocumentTooLargeError(f"has tables in tables, more than {MAX_TABLE_DEPTH} deep")
    whole = depth["html"] <= 0 or ended
    if not whole or (depth["table"] > 0 and not ended):
        raise DamagedDocumentError("has no end: truncated", place="end of page")
    return opened


def _collect_tables(soup: BeautifulSoup) -> list[tuple[Tag, list[HtmlRow]]]:
    """Return each table with its rows in page order, whatever is between a table, its rows and their cells."""
    tables: dict[int, tuple[Tag, list[HtmlRow]]] = {}
    rows: list[HtmlRow] = []
    for node in soup.descendants:
        if not isinstance(node, Tag) or node.name not in TABLE_PARTS:
            continue
        if rows and node.parent is rows[-1].owner and node.name in CELLS:
            rows[-1].cells.append(node)
            continue
        if node.name == "table":
            tables[id(node)] = (node, [])
            continue
        table = _find_parent(node, ("table",))
        if table is None:  # a row or a cell in no table is ordinary text
            continue
        rows = tables[id(table)][1]
        if node.name == "tr":
            rows.append(HtmlRow(node, _find_parent(node, SECTIONS) or table))
            continue
        owner = _find_parent(node, ("tr", "table")) or table
        if not rows or rows[-1].owner is not owner:  # cells outside of any row
            rows.append(HtmlRow(owner, owner))
        rows[-1].cells.append(node)
    return list(tables.values())


def _find_parent(node: Tag, names: Sequence[str]) -> Tag | None:
    parent = node.parent
    steps = 0
    while parent is not None and parent.name not in names:
        parent = parent.parent
        steps += 1
        if steps > MAX_PARENTS_OF_A_ROW:
            raise DocumentTooLargeError(f"has rows more than {MAX_PARENTS_OF_A_ROW} elements deep in their table")
    return parent


def _drop_hidden_cells(rows: Iterable[HtmlRow], states: States) -> Iterator[HtmlRow]:
    """Leave out the cells that are not displayed, whose places others take; rows that are not displayed stay whole."""
    for row in rows:
        if states.get(id(row.owner), 0) & REMOVED:
            yield row
        else:
            cells = [cell for cell in row.cells if not states.get(id(cell), 0) & REMOVED]
            yield replace(row, cells=cells)
