"""Tables of an HTML page, as printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, Tag
from bs4.filter import SoupStrainer

from pipeline.errors import DocumentDamaged, DocumentUnrecognised
from pipeline.read.assemble import Assembler, RawRow
from pipeline.read.layouts import Layout
from pipeline.read.reading import Reading
from pipeline.read.text import clean, decode, lift_mark

CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
PAGE_TAG = re.compile(r"<(/?)(html|table)\b", re.I)
COMMENT = re.compile(r"<!--.*?-->|<script\b.*?</script\s*>", re.S | re.I)
FOOTNOTE = re.compile(r"[\s\[(]*(?:\d{1,2}|[a-z]|[*†‡§¶]+)(?:\s*,\s*(?:\d{1,2}|[a-z]|[*†‡§¶]+))*[\s\])]*")
POWER_BASE = re.compile(r"(?:^|[^\d.,])10$")
MAX_SPAN = 1000
BLOCKS = frozenset({"br", "p", "div", "li"})
INVISIBLE = frozenset({"script", "style", "template", "table"})


def read_html(data: bytes, layouts: Sequence[Layout]) -> Reading:
    """Every table whose header is one of `layouts`, wherever the table and its header row stand.

    Spans are expanded, footnote marks lifted off. Raises DocumentDamaged for an empty, binary or truncated page and
    DocumentUnrecognised where no table has a header that resembles a layout.
    """
    text = decode(data, _charset(data))
    _assert_complete(text)
    soup = BeautifulSoup(text, "lxml", parse_only=SoupStrainer("table"))
    assembler = Assembler(layouts)
    for number, table in enumerate(soup.find_all("table"), start=1):
        assembler.add(f"table {number}", (("", cells) for cells in _grid(table)))
    if not assembler.found:
        raise DocumentUnrecognised("holds no table with a known header")
    return assembler.reading()


def _charset(data: bytes) -> str | None:
    found = CHARSET.search(data[:4096])
    return found.group(1).decode("ascii") if found else None


def _assert_complete(text: str) -> None:
    """A page cut off in the middle lacks the end of the page or of a table; unclosed rows and cells are ordinary."""
    tags = [found.group(1, 2) for found in PAGE_TAG.finditer(COMMENT.sub("", text))]
    depth = dict.fromkeys(("html", "table"), 0)
    for closing, name in tags:
        depth[name.lower()] += -1 if closing else 1
    if depth["html"] > 0 or (depth["table"] > 0 and ("/", "html") not in tags):
        raise DocumentDamaged("has no end: truncated", place="end of page")


def _grid(table: Tag) -> Iterator[RawRow]:
    """Rows of one table with row and column spans expanded into repeated cells."""
    pending: dict[int, tuple[int, str, str]] = {}
    for tr in _rows(table):
        texts: list[str] = []
        marks: list[str] = []
        for cell in [*tr.find_all(["td", "th"], recursive=False), None]:
            while len(texts) in pending:
                left, text, mark = pending.pop(len(texts))
                if left > 1:
                    pending[len(texts)] = (left - 1, text, mark)
                texts.append(text)
                marks.append(mark)
            if cell is None:
                break
            text, mark = _cell(cell)
            for _ in range(_span(cell, "colspan")):
                if (rows := _span(cell, "rowspan")) > 1:
                    pending[len(texts)] = (rows - 1, text, mark)
                texts.append(text)
                marks.append(mark)
        yield RawRow(tuple(texts), tuple(marks))


def _rows(table: Tag) -> Iterator[Tag]:
    for child in table.find_all(["tr", "thead", "tbody", "tfoot"], recursive=False):
        if child.name == "tr":
            yield child
        else:
            yield from child.find_all("tr", recursive=False)


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name, "1")).strip()
    return min(max(int(value), 1), MAX_SPAN) if value.isdecimal() and len(value) < 10 else 1


def _cell(cell: Tag) -> tuple[str, str]:
    """Text and footnote marks of one cell."""
    only = cell.contents[0] if len(cell.contents) == 1 else None
    if only is None and not cell.contents:
        return "", ""
    if type(only) is NavigableString:
        return lift_mark(clean(only))
    parts: list[str] = []
    marks: list[str] = []
    _collect(cell, parts, marks)
    text, mark = lift_mark(clean("".join(parts)))
    return text, " ".join([*marks, mark] if mark else marks)


def _collect(node: Tag, parts: list[str], marks: list[str]) -> None:
    for child in node.children:
        if isinstance(child, Tag):
            if child.name == "sup":
                _superscript(child.get_text(), parts, marks)
            elif child.name not in INVISIBLE:
                parts.append(" " if child.name in BLOCKS else "")
                _collect(child, parts, marks)
                parts.append(" " if child.name in BLOCKS else "")
        elif isinstance(child, NavigableString) and not isinstance(child, Comment):
            parts.append(str(child))


def _superscript(raw: str, parts: list[str], marks: list[str]) -> None:
    """A raised footnote sign is a mark; a raised power of ten or word is text."""
    text = clean(raw)
    if POWER_BASE.search("".join(parts).rstrip()):
        parts.append(f"^{text}")
    elif FOOTNOTE.fullmatch(text):
        marks.append(text)
    else:
        parts.append(raw)
