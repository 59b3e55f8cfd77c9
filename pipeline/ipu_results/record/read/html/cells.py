"""Read the text of the cells of a page, and put those that span rows or columns in their places."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from lxml.etree import _Element as Element

from ipu_results.record.read.assemble import RawRow, Unread
from ipu_results.record.read.figures import is_power
from ipu_results.record.read.html.shown import ShownCell, find_fault
from ipu_results.record.read.text import clean, lift_footnote

FOOTNOTE = re.compile(
    r"[\s\[(]*(?:\d{1,2}|[a-z]|[*†‡§¶]+)(?:\s*,\s*(?:\d{1,2}|[a-z]|[*†‡§¶]+))*[\s\])]*"
)
NOT_DISPLAYED = frozenset({"noscript", "script", "style", "template", "title", "rp"})
BLOCKS = frozenset(
    """
    address article aside blockquote br caption center dd details div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table td th
    tr ul
    """.split()
)
"""Elements that divide words: a browser begins a line with each, or a cell."""
RAISED = {"sup": "^{%s}", "sub": "_{%s}"}  # as the evidence has raised and lowered text
RAISED_ALONE = re.compile(r"[_^]\{([^{}]*)\}")  # above or below no other text
# Marks the border of an element inside of a cell, until it is known whether two digits meet there
# (private use area).
EDGE = "\ue000"
GLUED_DIGITS = re.compile(rf"(?<=\d){EDGE}+(?=\d)")
# A number after a word, in an element of its own, of which no name goes on and that has no unit of
# time: `1h` and `13m` are a duration.
NAME_GOES_ON = rf"{EDGE}*[\w:/]"
UNIT_OF_TIME = rf"[\s{EDGE}]*[hms](?!\w)"
GLUED_NUMBER = re.compile(rf"[^\W\d_]{EDGE}+\d[\d.,]*+(?!{NAME_GOES_ON}|{UNIT_OF_TIME})")
# metrics that are often printed with a lowered number: F1, AP50 and AP75
NUMBERED_METRIC = re.compile(rf"(?:(?<![^\W_])F{EDGE}+1|AP{EDGE}+(?:50|75))$")
GLUED = "holds a word and a number that are glued together"
SPAN = re.compile(r"[ \t\n\f\r]*\+?([0-9]{1,9})")  # as the HTML standard reads it
MAX_SPAN = 1000  # the limit of the HTML standard for a colspan


class CellText(NamedTuple):
    """What is in a cell: text, footnote marks, and why it is not what a reader sees."""

    text: str
    mark: str = ""
    fault: str = ""


@dataclass(slots=True)
class HtmlRow:
    """Cells of one row, with what a browser shows of each if that is known.

    `owner` is its `tr`, or the table if the cells are in none.
    """

    owner: Element
    section: Element
    cells: list[Element] = field(default_factory=list)
    shown: Sequence[str | ShownCell | None] | None = None


class Span(NamedTuple):
    """A cell that reaches into the next rows: rows left, its text, and the columns it covers."""

    left: int
    cell: CellText
    columns: range


def read_cell(cell: Element, shown: str | ShownCell | None = None) -> CellText:
    """Read one cell, without the texts that a browser does not show.

    Digits of two elements are never glued into one figure.
    """
    if shown is None and not len(cell):
        return read_text(cell.text or "")
    if isinstance(shown, str):
        shown = ShownCell(shown)
    hidden = {clean(text) for text, _ in shown.hidden} if shown else set()
    parts = CellParts()
    nodes = deque(list_nodes(cell))
    while nodes:
        node = nodes.popleft()
        if isinstance(node, str):
            if clean(node) not in hidden:
                parts.add(node)
        elif node.tag in RAISED:
            seen = [text for text in node.xpath(".//text()") if clean(text) not in hidden]
            parts.add_raised(node.tag, "".join(seen))
        elif node.tag not in NOT_DISPLAYED:
            edge = " " if node.tag in BLOCKS else EDGE
            inner = [edge, *list_nodes(node), edge]
            nodes.extendleft(reversed(inner))  # before the nodes after this one
    joined = "".join(parts.texts)
    text, mark = lift_footnote(clean(_drop_edges(joined)))
    if mark:
        parts.marks.append(mark)
    fault = GLUED if _is_glued(joined) else ""
    if shown:
        fault = find_fault(parts.write(), text, shown) or fault
    return CellText(text, " ".join(parts.marks), fault)


@dataclass(slots=True)
class CellParts:
    """The texts of a cell, its footnote marks, and all of it as the evidence has it."""

    texts: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.texts.append(text)
        self.written.append(text)

    def add_raised(self, tag: str, raised: str) -> None:
        """Add raised or lowered text: a footnote mark, a power of ten, or other text."""
        if raised.strip():
            self.written.append(RAISED[tag] % raised)
        text = clean(raised)
        base = clean(_drop_edges("".join(self.texts)))
        if tag == "sup" and is_power(base, text):
            self.texts.append(f"^{text}")
        elif tag == "sup" and FOOTNOTE.fullmatch(text):
            self.marks.append(text)
        else:
            self.texts += [EDGE, raised, EDGE]

    def write(self) -> str:
        """Return all text, with raised and lowered text in ^{} and _{} if there is other text."""
        whole = "".join(self.written).replace(EDGE, "").strip()
        alone = RAISED_ALONE.fullmatch(whole)
        return alone[1] if alone else whole


@lru_cache(maxsize=100_000)
def read_text(text: str) -> CellText:
    """Read a cell that has no elements. Most texts are in many cells."""
    return CellText(*lift_footnote(clean(text)))


def list_nodes(node: Element) -> list[str | Element]:
    """Return the texts and elements in an element, in their order, without its comments."""
    nodes = [node.text]
    for child in node:
        if isinstance(child.tag, str):
            nodes.append(child)
        nodes.append(child.tail)
    return [each for each in nodes if each is not None]


def _drop_edges(text: str) -> str:
    return GLUED_DIGITS.sub(" ", text).replace(EDGE, "")


def _is_glued(text: str) -> bool:
    if EDGE not in text:
        return False
    glued = GLUED_NUMBER.finditer(text)
    return any(NUMBERED_METRIC.search(text[: match.end()]) is None for match in glued)


def expand_rows(rows: Iterable[HtmlRow]) -> Iterator[RawRow]:
    """Repeat the cells that span rows or columns; a row span ends with its section."""
    above: dict[int, Span] = {}
    section: Element | None = None
    for row in rows:
        if row.shown and all(cell is None for cell in row.shown):
            texts = tuple(read_cell(cell).text for cell in row.cells)
            yield RawRow(texts, hidden=True)
            continue
        if row.section is not section:
            above = {}
        section = row.section
        below = {}
        for column, span in above.items():
            if span.left > 1:
                below[column] = span._replace(left=span.left - 1)
        yield _expand_row(row, above, below)
        above = below


def _expand_row(row: HtmlRow, above: dict[int, Span], below: dict[int, Span]) -> RawRow:
    """Return one row with the cells that reach into it from `above`; add those that it extends to
    `below`.
    """
    read = []
    for number, element in enumerate(row.cells):
        shown = row.shown[number] if row.shown else None
        is_displayed = not row.shown or shown is not None
        if is_displayed:  # what is not takes no place
            read.append((element, read_cell(element, shown)))
    if not above and not any(element.keys() for element, _ in read):
        return _make_row([cell for _, cell in read], (), None)
    cells: list[CellText] = []
    wide: list[range] = []
    problem = None
    for element, cell in read:
        _take_from_above(cells, wide, above)
        start = len(cells)
        room = max(MAX_SPAN - start, 1)
        width = min(_read_span(element, "colspan"), room)
        columns = range(start, start + width)
        if not above.keys().isdisjoint(columns):
            problem = "two cells span one place"
        rows_left = _read_span(element, "rowspan") - 1
        if rows_left > 0:
            below.update(dict.fromkeys(columns, Span(rows_left, cell, columns)))
        if width > 1:
            wide.append(columns)
        cells += [cell] * width
    _take_from_above(cells, wide, above)
    if len(read) == 1 and len(cells) > 1 and not above:
        problem = "one cell spans the row"
    return _make_row(cells, tuple(wide), problem)


def _take_from_above(cells: list[CellText], wide: list[range], above: dict[int, Span]) -> None:
    """Add to the cells of a row those from above that take the next places."""
    while len(cells) in above:
        span = above[len(cells)]
        if len(span.columns) > 1 and span.columns not in wide:
            wide.append(span.columns)
        cells.append(span.cell)


def _make_row(cells: Sequence[CellText], wide: tuple[range, ...], problem: str | None) -> RawRow:
    unread = []
    for column, cell in enumerate(cells):
        if cell.fault:
            # what is glued to a name still shows the name
            unread.append(Unread(column, cell.fault, in_any_column=cell.fault != GLUED))
    return RawRow(
        texts=tuple(cell.text for cell in cells),
        footnotes=tuple(cell.mark for cell in cells),
        problem=problem,
        wide=wide,
        unread=tuple(unread),
    )


def _read_span(cell: Element, name: str) -> int:
    """Return how many columns or rows a cell spans; a row span of 0 reaches to the end of the
    section.
    """
    match = SPAN.match(cell.get(name, "1"))
    value = int(match[1]) if match else 1
    if name == "rowspan" and value == 0:
        return MAX_SPAN
    return min(max(value, 1), MAX_SPAN)
