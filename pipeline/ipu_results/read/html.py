"""Tables of an HTML page, as printed."""

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
from ipu_results.read.reading import ParsedDocument
from ipu_results.read.text import clean, decode, is_power, lift_mark
from ipu_results.schema.layouts import TableHeader

CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
TABLE_TAG = re.compile(r"<table\b", re.I)
PAGE_TAG = re.compile(r"<(/?)(html|table)\b", re.I)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script\s*>|\Z)", re.S | re.I)
FOOTNOTE = re.compile(r"[\s\[(]*(?:\d{1,2}|[a-z]|[*†‡§¶]+)(?:\s*,\s*(?:\d{1,2}|[a-z]|[*†‡§¶]+))*[\s\])]*")
MAX_SPAN = 1000
CELLS = ("td", "th")
PARTS = frozenset({"table", "tr", *CELLS})
SPANS = ("colspan", "rowspan")
SECTIONS = ("thead", "tbody", "tfoot", "table")
BLOCKS = frozenset({"blockquote", "br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "p", "pre"})
INVISIBLE = frozenset({"noscript", "script", "select", "style", "svg", "table", "template", "textarea"})
EDGE = "\ue000"
GLUED = re.compile(rf"(?<=\d){EDGE}+(?=\d)")
BASE_PARTS = 8


@dataclass(frozen=True, slots=True)
class HtmlRow:
    """Cells of one row; `owner` is its `tr`, or the table where cells stand outside of any."""

    owner: Tag
    section: Tag
    cells: list[Tag] = field(default_factory=list)


def read_html(data: bytes, layouts: Sequence[TableHeader]) -> ParsedDocument:
    """Every table whose header is one of `layouts`, wherever the table and its header row stand.

    Spans are expanded, footnote marks lifted off. Raises DamagedDocumentError for an empty, binary or truncated page and
    UnrecognisedDocumentError where no table has a header that resembles a layout.
    """
    text = decode(data, declared_charset(data))
    opened = _opened_tables(text)
    if not TABLE_TAG.search(text):
        raise UnrecognisedDocumentError("holds no table")
    with warnings.catch_warnings(action="ignore"):  # of XHTML that is read as HTML
        soup = BeautifulSoup(text, "lxml", parse_only=SoupStrainer("table"))
    assembler = Assembler(layouts)
    try:
        tables = _tables(soup)
        if len(tables) < opened:  # an element left open, such as a style or a text area, swallows what follows
            hidden = opened - len(tables)
            raise DamagedDocumentError(f"has {opened} tables, and {hidden} stand in an element that hides them")
        for number, rows in enumerate(tables, start=1):
            assembler.add(f"table {number}", (("", row) for row in _expand(rows)))
    finally:
        soup.clear(decompose=True)  # its nodes refer to each other: else only the cycle collector would free them
    if not assembler.found:
        raise UnrecognisedDocumentError("holds no table with a known header")
    return assembler.reading()


def declared_charset(data: bytes) -> str | None:
    """The encoding that a page names in its first bytes."""
    found = CHARSET.search(data[:4096])
    return found.group(1).decode("ascii") if found else None


def _opened_tables(text: str) -> int:
    """How many tables the page opens. Raises DamagedDocumentError for a page cut off in the middle.

    Such a page lacks its own end or that of a table; unclosed rows and cells are ordinary.
    """
    opened = 0
    depth = dict.fromkeys(("html", "table"), 0)
    ended = False
    for found in PAGE_TAG.finditer(COMMENT.sub("", text)):
        closing, name = bool(found[1]), found[2].lower()
        depth[name] += -1 if closing else 1
        ended |= closing and name == "html"
        opened += not closing and name == "table"
    if depth["html"] > 0 or (depth["table"] > 0 and not ended):
        raise DamagedDocumentError("has no end: truncated", place="end of page")
    return opened


def _tables(soup: BeautifulSoup) -> list[list[HtmlRow]]:
    """Rows of each table in the order of the page, whatever stands between a table and its rows and cells."""
    tables: dict[int, list[HtmlRow]] = {}
    rows: list[HtmlRow] = []
    for node in soup.descendants:
        if not isinstance(node, Tag) or node.name not in PARTS:
            continue
        if rows and node.parent is rows[-1].owner and node.name in CELLS:
            rows[-1].cells.append(node)
            continue
        if node.name == "table":
            tables[id(node)] = []
            continue
        rows = tables[id(_enclosing(node, ("table",)))]
        if node.name == "tr":
            rows.append(HtmlRow(node, _enclosing(node, SECTIONS)))
            continue
        owner = _enclosing(node, ("tr", "table"))
        if not rows or rows[-1].owner is not owner:  # cells outside of any row
            rows.append(HtmlRow(owner, owner))
        rows[-1].cells.append(node)
    return list(tables.values())


def _enclosing(node: Tag, names: Sequence[str]) -> Tag:
    parent = node.parent
    while parent is not None and parent.name not in names:
        parent = parent.parent
    assert parent is not None, "only tables are parsed"
    return parent


def _expand(rows: Iterable[HtmlRow]) -> Iterator[RawRow]:
    """Rows with row and column spans expanded into repeated cells; a row span ends with its section."""
    below: dict[int, tuple[int, str, str]] = {}
    section: Tag | None = None
    for row in rows:
        above = below if row.section is section else {}
        section = row.section
        below = {column: (left - 1, text, mark) for column, (left, text, mark) in above.items() if left > 1}
        yield _expand_row(row, above, below)


def _expand_row(row: HtmlRow, above: dict[int, tuple[int, str, str]], below: dict[int, tuple[int, str, str]]) -> RawRow:
    """One row between the cells that reach into it from `above` and those that it sends `below`."""
    if not above and not any(name in cell.attrs for cell in row.cells for name in SPANS):
        plain = [_cell(cell) for cell in row.cells]
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
        text, mark = _cell(cell)
        width = min(_span(cell, "colspan"), max(MAX_SPAN - len(texts), 1))
        if not above.keys().isdisjoint(range(len(texts), len(texts) + width)):
            problem = "two cells span one place"
        if (height := _span(cell, "rowspan")) > 1:
            below |= dict.fromkeys(range(len(texts), len(texts) + width), (height - 1, text, mark))
        texts += [text] * width
        marks += [mark] * width
    if len(row.cells) == 1 and len(texts) > 1 and not above:
        problem = "one cell spans the row"
    return RawRow(tuple(texts), tuple(marks), problem=problem)


def _span(cell: Tag, name: str) -> int:
    """How many columns or rows a cell takes; a row span of 0 is one to the end of the section."""
    value = str(cell.get(name, "1")).strip()
    if not value.isdecimal() or len(value) > 9:
        return 1
    if name == "rowspan" and int(value) == 0:
        return MAX_SPAN
    return min(max(int(value), 1), MAX_SPAN)


def _cell(cell: Tag) -> tuple[str, str]:
    """Text and footnote marks of one cell. Digits of two elements are never glued into one figure."""
    if len(cell.contents) == 1 and type(cell.contents[0]) is NavigableString:
        return lift_mark(clean(cell.contents[0]))
    parts: list[str] = []
    marks: list[str] = []
    nodes: list[PageElement | str] = [*reversed(cell.contents)]
    while nodes:
        node = nodes.pop()
        if type(node) in (str, NavigableString):
            parts.append(str(node))
        elif isinstance(node, Tag) and not _is_hidden(node):
            if node.name == "sup":
                _superscript(node.get_text(), parts, marks)
            else:
                edge = " " if node.name in BLOCKS else EDGE
                nodes += [edge, *reversed(node.contents), edge]
    text, mark = lift_mark(clean(_joined(parts)))
    return text, " ".join([*marks, mark] if mark else marks)


def _joined(parts: Sequence[str]) -> str:
    return GLUED.sub(" ", "".join(parts)).replace(EDGE, "")


def _is_hidden(node: Tag) -> bool:
    if node.name in INVISIBLE or "hidden" in node.attrs:
        return True
    return "display:none" in str(node.attrs.get("style", "")).replace(" ", "").lower()


def _superscript(raw: str, parts: list[str], marks: list[str]) -> None:
    """A raised footnote sign is a mark; a raised power of ten or word is text."""
    text = clean(raw)
    if is_power(clean(_joined(parts[-BASE_PARTS:])), text):
        parts.append(f"^{text}")
    elif FOOTNOTE.fullmatch(text):
        marks.append(text)
    else:
        parts += [EDGE, raw, EDGE]
