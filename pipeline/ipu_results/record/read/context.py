"""Collect the words of a document that may change what its figures mean.

No list can name all wordings, such as "in thousands", "relative to an A100" or "retracted". So every
text that is no cell of a row that was read is context, and a person signs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

from lxml.etree import _Element as Element

from ipu_results.kit.files import load_schema_file
from ipu_results.record.read.document import ParsedDocument, SourceTable, Words
from ipu_results.record.read.html_cells import list_nodes, read_text
from ipu_results.record.read.text import clean, clean_cell
from ipu_results.schema.vocabulary import KINDS, TableHeader, find_headers, strip_unit

VOCABULARY = load_schema_file("vocabulary/context.toml")
SIGNED_FIELDS = frozenset(VOCABULARY["fields"])
HARMLESS = frozenset(VOCABULARY["harmless"])
SEPARATOR = ";"  # between the statements of one cell
DIGEST_LENGTH = 16
PRINTED_AS = {"br": " ", "sup": "^"}  # what a tag is in a line of text: 10^3 is not 103
TITLES = frozenset({"alt", "title", "summary"})  # attributes that are shown, or may be
IN_TABLE = frozenset({"caption", "td", "th"})
NO_TEXT = frozenset({"script", "style", "template"})  # what they hold is no text of the page
# elements whose text is part of a line
INLINE = frozenset(
    "a abbr b bdi bdo br cite code data dfn em font i kbd mark q s samp small span strong sub sup"
    " time tt u var wbr".split()
)


def digest_context(context: Iterable[Words]) -> str | None:
    """Return the digest of all words in their order, None if there are none.

    How a reader divides the words into texts makes no difference.
    """
    words = " ".join(text for _, text in context).split()
    if not words:
        return None
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:DIGEST_LENGTH]


def list_context(
    document: ParsedDocument, kind: str, headers: Sequence[TableHeader]
) -> tuple[Words, ...]:
    """Return what a person signs: the texts that the reader found around the tables, names of
    columns with a unit, and statements in columns of free text.
    """
    words = list(document.context)
    rows = [(problem.locator, problem.raw) for problem in document.problems]
    for table in document.tables:
        # most tables have a column without blanks besides that of the text
        if sum("" not in column.distinct for column in table.texts) <= 1:
            rows += [(row.locator, row.cells) for row in table.rows]
    for place, cells in rows:
        texts = set(cells) - {""}
        if len(texts) == 1:  # a row of one text is about the others
            words.append(Words(place, texts.pop()))
    for table in document.tables:
        words += [
            Words(f"{table.name}, header", name)
            for name in table.columns
            if name != strip_unit(name)
        ]
        words += _list_statements(table, kind, headers)
    return tuple(each for each in words if each.text.casefold().strip(" .:") not in HARMLESS)


def _list_statements(
    table: SourceTable, kind: str, headers: Sequence[TableHeader]
) -> Iterator[Words]:
    """Yield each statement of the columns of free text once.

    Our own lists and runs, and tables that we computed, have texts of a fixed form.
    """
    header = next(iter(find_headers(table.columns, headers)), None)
    if header is None or header.derived or KINDS[kind].results is None:
        return
    for name, texts in zip(table.columns, table.texts, strict=True):
        if header.field_of(name) in SIGNED_FIELDS:
            parts = (part.strip() for text in texts.distinct for part in text.split(SEPARATOR))
            yield from (
                Words(f"{table.name}, {name}", part) for part in dict.fromkeys(parts) if part
            )


def _list_read(document: ParsedDocument) -> set[str]:
    """Return the texts of all cells and names of columns that were read, and a blank."""
    read = {name for table in document.tables for name in table.columns}
    read.update(*(column.distinct for table in document.tables for column in table.texts))
    return read | {""}


def list_unread(texts: Iterable[Words], document: ParsedDocument) -> tuple[Words, ...]:
    """Return each text once that is no cell, no column name and no set-up of what was read."""
    read = _list_read(document)
    unread: dict[str, Words] = {}
    for words in texts:
        if words.text not in read and clean_cell(words.text) not in read:
            unread.setdefault(words.text, words)
    return tuple(unread.values())


def list_page_words(root: Element, document: ParsedDocument) -> tuple[Words, ...]:
    """Return the words of a page outside of the rows that were read, also those that are hidden."""
    read = _list_read(document)
    return list_unread(_list_lines(root, read), document)


def _list_lines(root: Element, read: Collection[str]) -> Iterator[Words]:
    """Yield the text of each block or cell of a page, with the table that it is in or after, without
    cells of which the text was read.
    """
    tables = 0
    place = mark = ""
    parts: list[str] = []
    last: Element | None = None
    nodes: list[tuple[str | Element, Element]] = [(root, root)]
    while nodes:
        node, parent = nodes.pop()
        if not isinstance(node, str):
            tables += node.tag == "table"
            mark = PRINTED_AS.get(node.tag, mark)
            for name in sorted(TITLES & set(node.keys())):
                yield Words(f"{name} of {node.tag}", clean(node.get(name, "")))
            inner = _list_unread(node, read) if node.tag == "tr" else list_nodes(node)
            if node.tag not in NO_TEXT:
                nodes += [(each, node) for each in reversed(inner)]
            continue
        line = _find_line(parent)
        if line is not last:
            yield Words(place, clean("".join(parts)))
            where = f"after table {tables}" if tables else "before table 1"
            where = f"table {tables}" if line.tag in IN_TABLE else where
            place = f"{where}, {line.tag}"
            parts = []
            last = line
        parts.append(f"{mark}{node}")
        mark = ""
    yield Words(place, clean("".join(parts)))


def _list_unread(row: Element, read: Collection[str]) -> list[str | Element]:
    """Return the nodes of a row but its cells without elements and attributes whose text was read:
    most of a long table.
    """
    cells = {child for child in row if not len(child) and not child.keys()}
    known = {cell for cell in cells if _is_read(cell.text or "", read)}
    return [node for node in list_nodes(row) if node not in known]


def _is_read(text: str, read: Collection[str]) -> bool:
    return text in read or read_text(text).text in read


def _find_line(node: Element) -> Element:
    """Return the element whose text is the line of a text in `node`."""
    while node.tag in INLINE:
        node = node.getparent()
    return node
