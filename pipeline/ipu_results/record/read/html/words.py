"""List the words of a page outside of the rows that were read: its context."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lxml.etree import _Element as Element

from ipu_results.record.read.document import ParsedDocument, Words
from ipu_results.record.read.html.cells import list_nodes, read_text
from ipu_results.record.read.html.shown import ShownPage
from ipu_results.record.read.text import clean

PRINTED_AS = {"br": " ", "sup": "^"}  # what a tag is in a line of text: 10^3 is not 103
TITLES = frozenset({"alt", "title", "summary"})  # attributes that are shown, or may be
IN_TABLE = frozenset({"caption", "td", "th"})
NO_TEXT = ("script", "style", "template")  # what they hold is no text of the page
IN_NO_TEXT = " or ".join(f"ancestor::{name}" for name in NO_TEXT)
PRINTED = f"//text()[not({IN_NO_TEXT})]"
# elements whose text is part of a line
INLINE = frozenset(
    "a abbr b bdi bdo br cite code data dfn em font i kbd mark q s samp small span strong sub sup"
    " time tt u var wbr".split()
)


def list_words(
    root: Element, document: ParsedDocument, shown: ShownPage | None
) -> tuple[Words, ...]:
    """Return each text of a page once that is no cell and no name of what was read, also if it is
    hidden, and the texts that a browser alone shows.
    """
    read = {""}
    for table in document.tables:
        read.update(table.columns)
        for column in table.texts:
            read.update(column.distinct)
    unread: dict[str, Words] = {}
    for words in _list_lines(root, read):
        if not _is_read(words.text, read):
            unread.setdefault(words.text, words)
    listed = [*unread.values()]
    if shown is not None:
        written = {"", *unread, *map(clean, root.xpath(PRINTED))}
        # a script or a style sheet may print a text near a table
        for text in map(clean, shown.around):
            if text not in written:
                listed.append(Words("shown", text))
    return tuple(listed)


def _list_lines(root: Element, read: Collection[str]) -> Iterator[Words]:
    """Yield the text of each block or cell of a page, with the table that it is in or after.

    Cells of which the text was read are left out.
    """
    tables = 0
    place = ""
    line: Element | None = None
    parts: list[str] = []  # of the line so far
    mark = ""  # printed before the next text
    # the nodes to come, the next one last, each with its parent
    nodes: list[tuple[str | Element, Element]] = [(root, root)]
    while nodes:
        node, parent = nodes.pop()
        if isinstance(node, str):
            line_of_text = _find_line(parent)
            if line_of_text is not line:
                yield Words(place, clean("".join(parts)))
                line = line_of_text
                place = f"{_name_place(line, tables)}, {line.tag}"
                parts = []
            parts += [mark, node]
            mark = ""
            continue
        if node.tag == "table":
            tables += 1
        mark = PRINTED_AS.get(node.tag, mark)
        for name in sorted(TITLES & set(node.keys())):
            yield Words(f"{name} of {node.tag}", clean(node.get(name, "")))
        if node.tag not in NO_TEXT:
            for child in reversed(_list_unread_nodes(node, read)):
                nodes.append((child, node))
    yield Words(place, clean("".join(parts)))


def _find_line(node: Element) -> Element:
    """Return the element whose text is the line of a text in `node`."""
    while node.tag in INLINE:
        node = node.getparent()
    return node


def _name_place(line: Element, tables: int) -> str:
    if line.tag in IN_TABLE:
        return f"table {tables}"
    return f"after table {tables}" if tables else "before table 1"


def _list_unread_nodes(node: Element, read: Collection[str]) -> list[str | Element]:
    """Return the nodes of an element; of a row, without the plain cells whose text was read: they
    are most of a long table.
    """
    nodes = list_nodes(node)
    if node.tag != "tr":
        return nodes
    return [child for child in nodes if isinstance(child, str) or not _is_read_cell(child, read)]


def _is_read_cell(cell: Element, read: Collection[str]) -> bool:
    return not len(cell) and not cell.keys() and _is_read(cell.text or "", read)


def _is_read(text: str, read: Collection[str]) -> bool:
    return text in read or read_text(text).text in read
