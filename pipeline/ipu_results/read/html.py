"""Read the tables of an HTML page."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag
from bs4.filter import SoupStrainer

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.assemble import Assembler, RawRow
from ipu_results.read.document import ParsedDocument
from ipu_results.read.text import clean, decode, is_power, lift_footnote
from ipu_results.schema.table_headers import TableHeader

CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
CHARSET_BYTES = 4096
TABLE_TAG = re.compile(r"<table\b", re.I)
PAGE_TAG = re.compile(r"<(/?)(html|table)\b", re.I)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script\s*>|\Z)", re.S | re.I)
FOOTNOTE = re.compile(r"[\s\[(]*(?:\d{1,2}|[a-z]|[*†‡§¶]+)(?:\s*,\s*(?:\d{1,2}|[a-z]|[*†‡§¶]+))*[\s\])]*")
MAX_SPAN = 1000  # the limit of the HTML standard for a colspan
CELLS = ("td", "th")
TABLE_PARTS = frozenset({"table", "tr", *CELLS})
SPANS = ("colspan", "rowspan")
SECTIONS = ("thead", "tbody", "tfoot", "table")
BLOCKS = frozenset({"blockquote", "br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "p", "pre"})
INVISIBLE = frozenset({"noscript", "script", "select", "style", "svg", "table", "template", "textarea"})

# Marks the border of an element inside of a cell, until it is known whether two digits meet there (private use area).
EDGE = "\ue000"
GLUED_DIGITS = re.compile(rf"(?<=\d){EDGE}+(?=\d)")
MAX_BASE_PARTS = 8  # parts of a cell that are searched for the base of a power

Spanned = dict[int, tuple[int, str, str]]
"""Cells that reach into the next row, by column: rows left, text and footnote mark."""


@dataclass(frozen=True, slots=True)
class HtmlRow:
    """Cells of one row; `owner` is its `tr`, or the table if the cells are in none."""

    owner: Tag
    section: Tag
    cells: list[Tag] = field(default_factory=list)


def read_html(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read every table whose header is one of `headers`, wherever the table and its header row are.

    Spans are expanded and footnote marks lifted off. Raises DamagedDocumentError for an empty, binary or truncated page
    and UnrecognisedDocumentError if no table has a header that resembles a known one.
    """
    text = decode(data, find_charset(data))
    opened = _count_opened_tables(text)
    if not TABLE_TAG.search(text):
        raise UnrecognisedDocumentError("has no table")
    with warnings.catch_warnings(action="ignore"):  # about XHTML that is read as HTML
        soup = BeautifulSoup(text, "lxml", parse_only=SoupStrainer("table"))
    assembler = Assembler(headers)
    try:
        tables = _collect_tables(soup)
        if len(tables) < opened:  # an element left open, such as a style or a text area, swallows what follows
            hidden = opened - len(tables)
            raise DamagedDocumentError(f"hides {hidden} of its {opened} tables in an element that is left open")
        for number, rows in enumerate(tables, start=1):
            assembler.add_grid(f"table {number}", (("", row) for row in _expand_rows(rows)))
    finally:
        soup.clear(decompose=True)  # its nodes refer to each other: else only the cycle collector would free them
    return assembler.finish()


def find_charset(data: bytes) -> str | None:
    """Return the encoding that a page declares in its first bytes."""
    match = CHARSET.search(data[:CHARSET_BYTES])
    return match[1].decode("ascii") if match else None


def _count_opened_tables(text: str) -> int:
    """Count the tables that the page opens.

    Raises DamagedDocumentError for a truncated page: one that lacks its own end tag or that of a table. Rows and cells
    without an end tag are ordinary.
    """
    opened = 0
    depth = dict.fromkeys(("html", "table"), 0)
    ended = False
    for match in PAGE_TAG.finditer(COMMENT.sub("", text)):
        closing, name = bool(match[1]), match[2].lower()
        depth[name] += -1 if closing else 1
        ended |= closing and name == "html"
        opened += not closing and name == "table"
    if depth["html"] > 0 or (depth["table"] > 0 and not ended):
        raise DamagedDocumentError("has no end: truncated", place="end of page")
    return opened


def _collect_tables(soup: BeautifulSoup) -> list[list[HtmlRow]]:
    """Return the rows of each table in page order, whatever elements are between a table, its rows and their cells."""
    tables: dict[int, list[HtmlRow]] = {}
    rows: list[HtmlRow] = []
    for node in soup.descendants:
        if not isinstance(node, Tag) or node.name not in TABLE_PARTS:
            continue
        if rows and node.parent is rows[-1].owner and node.name in CELLS:
            rows[-1].cells.append(node)
            continue
        if node.name == "table":
            tables[id(node)] = []
            continue
        rows = tables[id(_find_parent(node, ("table",)))]
        if node.name == "tr":
            rows.append(HtmlRow(node, _find_parent(node, SECTIONS)))
            continue
        owner = _find_parent(node, ("tr", "table"))
        if not rows or rows[-1].owner is not owner:  # cells outside of any row
            rows.append(HtmlRow(owner, owner))
        rows[-1].cells.append(node)
    return list(tables.values())


def _find_parent(node: Tag, names: Sequence[str]) -> Tag:
    parent = node.parent
    while parent is not None and parent.name not in names:
        parent = parent.parent
    assert parent is not None, "only tables are parsed"
    return parent


def _expand_rows(rows: Iterable[HtmlRow]) -> Iterator[RawRow]:
    """Repeat the cells that span rows or columns; a row span ends with its section."""
    below: Spanned = {}
    section: Tag | None = None
    for row in rows:
        above = below if row.section is section else {}
        section = row.section
        below = {column: (left - 1, text, mark) for column, (left, text, mark) in above.items() if left > 1}
        yield _expand_row(row, above, below)


def _expand_row(row: HtmlRow, above: Spanned, below: Spanned) -> RawRow:
    """Return one row with the cells that reach into it from `above`; add those that it extends to `below`."""
    if not above and not any(name in cell.attrs for cell in row.cells for name in SPANS):
        plain = [_read_cell(cell) for cell in row.cells]
        return RawRow(tuple(text for text, _ in plain), tuple(mark for _, mark in plain))
    texts: list[str] = []
    marks: list[str] = []
    problem = None
    for cell in [*row.cells, None]:
        while len(texts) in above:
            _, text, mark = above[len(texts)]
            texts.append(text)
            marks.append(mark)
        if cell is None:
            break
        text, mark = _read_cell(cell)
        width = min(_read_span(cell, "colspan"), max(MAX_SPAN - len(texts), 1))
        if not above.keys().isdisjoint(range(len(texts), len(texts) + width)):
            problem = "two cells span one place"
        if (height := _read_span(cell, "rowspan")) > 1:
            below |= dict.fromkeys(range(len(texts), len(texts) + width), (height - 1, text, mark))
        texts += [text] * width
        marks += [mark] * width
    if len(row.cells) == 1 and len(texts) > 1 and not above:
        problem = "one cell spans the row"
    return RawRow(tuple(texts), tuple(marks), problem=problem)


def _read_span(cell: Tag, name: str) -> int:
    """Return how many columns or rows a cell spans; a row span of 0 reaches to the end of the section."""
    value = str(cell.get(name, "1")).strip()
    if not value.isdecimal() or len(value) > 9:
        return 1
    if name == "rowspan" and int(value) == 0:
        return MAX_SPAN
    return min(max(int(value), 1), MAX_SPAN)


def _read_cell(cell: Tag) -> tuple[str, str]:
    """Return text and footnote marks of one cell. Digits of two elements are never glued into one figure."""
    if len(cell.contents) == 1 and type(cell.contents[0]) is NavigableString:
        return lift_footnote(clean(cell.contents[0]))
    parts: list[str] = []
    marks: list[str] = []
    nodes: list[PageElement | str] = [*reversed(cell.contents)]
    while nodes:
        node = nodes.pop()
        if type(node) in (str, NavigableString):
            parts.append(str(node))
        elif isinstance(node, Tag) and not _is_hidden(node):
            if node.name == "sup":
                _add_superscript(node.get_text(), parts, marks)
            else:
                edge = " " if node.name in BLOCKS else EDGE
                nodes += [edge, *reversed(node.contents), edge]
    text, mark = lift_footnote(clean(_join_parts(parts)))
    return text, " ".join([*marks, mark] if mark else marks)


def _join_parts(parts: Sequence[str]) -> str:
    return GLUED_DIGITS.sub(" ", "".join(parts)).replace(EDGE, "")


def _is_hidden(node: Tag) -> bool:
    if node.name in INVISIBLE or "hidden" in node.attrs:
        return True
    return "display:none" in str(node.attrs.get("style", "")).replace(" ", "").lower()


def _add_superscript(raw: str, parts: list[str], marks: list[str]) -> None:
    """Add raised text to the footnote marks, or to the text if it is a power of ten or a word."""
    text = clean(raw)
    if is_power(clean(_join_parts(parts[-MAX_BASE_PARTS:])), text):
        parts.append(f"^{text}")
    elif FOOTNOTE.fullmatch(text):
        marks.append(text)
    else:
        parts += [EDGE, raw, EDGE]
