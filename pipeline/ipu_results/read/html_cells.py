"""Read the text of a cell as a reader of the page sees it, and report what is in it besides text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bs4.element import CData, Comment, NavigableString, PageElement, Tag

from ipu_results.read.document import RawRow, Unread
from ipu_results.read.html_style import BLOCK, LOWERED, RAISED, REMOVED, STRUCK
from ipu_results.read.html_visible import BLOCK_ELEMENTS, DOUBT, PALE, UNSEEN, States
from ipu_results.read.text import clean, is_power, lift_footnote

FOOTNOTE = re.compile(
    r"[\s\[(]*(?:\d{1,2}|[a-z]|[*†‡§¶]+)(?:\s*,\s*(?:\d{1,2}|[a-z]|[*†‡§¶]+))*[\s\])]*"
)
NOT_DISPLAYED = frozenset({"noscript", "script", "style", "template", "title", "rp"})
EMBEDDED = {
    "table": "a table",
    "svg": "a drawing",
    "canvas": "a drawing",
    "img": "an image",
    "input": "an input field",
    "select": "a list of choices",
    "textarea": "an input field",
    "object": "an object",
    "embed": "an object",
    "iframe": "a frame",
    "script": "a script",
    "noscript": "text for browsers without scripts",
    "rt": "an annotation in ruby text",
    "rtc": "an annotation in ruby text",
}
INVISIBLE_NEXT_TO_TEXT = (EMBEDDED["script"], EMBEDDED["noscript"])
SHIFTED_MARK = "a raised or lowered mark"
GLUED_MARK = "a word and a number that are glued together"
COLOURED = "text that may have the colour of its background"
MAY_ALTER = " may hide, move or alter"
# Reported next to any text: the text of the cell is not the figure that a reader sees.
DOUBTS = (EMBEDDED["rt"], SHIFTED_MARK, GLUED_MARK)
IN_ANY_COLUMN = (COLOURED, MAY_ALTER)
"""What makes another text of a name, too."""
SILENT_INPUTS = ("hidden", "checkbox", "radio")
# a script in a cell that may change its text
WRITES = re.compile(r"document\.|innerHTML|textContent")
CDATA = "[CDATA["

# Marks the border of an element inside of a cell, until it is known whether two digits meet there
# (private use area).
EDGE = "\ue000"
GLUED_DIGITS = re.compile(rf"(?<=\d){EDGE}+(?=\d)")
# A number after a word, in an element of its own; `1h` and `13m` are a duration.
GLUED_NUMBER = re.compile(rf"[^\W\d_]{EDGE}+\d[\d.,]*+(?!{EDGE}*[\w:/]|[\s{EDGE}]*[hms](?!\w))")
# Metrics that are often printed with a lowered number: F1, AP50 and AP75.
NUMBERED_METRIC = re.compile(rf"(?:(?<![^\W_])F{EDGE}+1|AP{EDGE}+(?:50|75))$")
MAX_BASE_PARTS = 8  # parts of a cell that are searched for the base of a power
MAX_SPAN = 1000  # the limit of the HTML standard for a colspan
SPANS = ("colspan", "rowspan")


class Embedded(NamedTuple):
    """Something in a cell that is not read: what it is, and the text in it."""

    what: str
    text: str


class CellText(NamedTuple):
    """What a reader sees in a cell: text, footnote marks, whether text is struck through, and what
    is not text.
    """

    text: str
    mark: str = ""
    struck: bool = False
    embedded: tuple[Embedded, ...] = ()


def read_cell(cell: Tag, states: States) -> CellText:
    """Read one cell without the parts that are hidden.

    Digits of two elements are never glued into one figure.
    """
    parts: list[str] = []
    marks: list[str] = []
    embedded: list[Embedded] = []
    struck = False
    nodes: list[PageElement | str] = [*reversed(cell.contents)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Tag):
            state = states.get(id(node), 0)
            if state & REMOVED and not state & DOUBT:
                continue
            if node.name in EMBEDDED or node.name in NOT_DISPLAYED:
                embedded += [] if state & UNSEEN else describe_element(node)
            elif state & DOUBT and node.find(string=True) is None:
                embedded.append(
                    Embedded(f"an element that {states.doubts[id(node)]}{MAY_ALTER}", "")
                )
            elif (
                not state & (UNSEEN | STRUCK)
                and (node.name == "sup" or (state & RAISED and "".join(parts).strip()))
                and not _is_doubtful(node, states)
            ):
                _add_superscript(_get_visible_text(node, states), parts, marks)
            else:
                embedded += [] if state & UNSEEN else _find_doubts(node, state, states, parts)
                edge = " " if node.name in BLOCK_ELEMENTS or state & BLOCK else EDGE
                nodes += [edge, *reversed(node.contents), edge]
        elif type(node) in (str, NavigableString):
            state = (
                states.get(id(node.parent), 0)
                if states and isinstance(node, NavigableString)
                else 0
            )
            text = str(node)
            if not state & (UNSEEN | STRUCK):
                parts.append(text)
            if state & (DOUBT | PALE) and text.strip():
                doubt = states.doubts.get(id(getattr(node, "parent", None)))
                embedded.append(
                    Embedded(f"text that {doubt}{MAY_ALTER}" if doubt else COLOURED, text)
                )
            struck |= state & (UNSEEN | STRUCK) == STRUCK and bool(str(node).strip())
        elif isinstance(node, CData) or (isinstance(node, Comment) and node.startswith(CDATA)):
            embedded.append(
                Embedded("a CDATA section", node.removeprefix(CDATA).removesuffix("]]"))
            )
    joined = "".join(parts)
    glued = GLUED_NUMBER.finditer(joined) if EDGE in joined else ()
    is_glued = any(NUMBERED_METRIC.search(joined[: match.end()]) is None for match in glued)
    embedded += [Embedded(GLUED_MARK, GLUED_MARK)] if is_glued else []
    text, mark = lift_footnote(clean(_join_parts(parts)))
    return CellText(text, " ".join([*marks, mark] if mark else marks), struck, tuple(embedded))


def find_unread(cell: CellText) -> Embedded | None:
    """Return what is in a cell that may be its figure: something with digits, or anything in a cell
    without text.
    """
    for embedded in cell.embedded:
        if embedded.what.endswith((*DOUBTS, *IN_ANY_COLUMN)):
            return embedded
        may_be_figure = embedded.what not in INVISIBLE_NEXT_TO_TEXT and any(
            map(str.isdigit, embedded.text)
        )
        may_be_figure |= (
            embedded.what == EMBEDDED["script"] and WRITES.search(embedded.text) is not None
        )
        if may_be_figure or not cell.text:
            return embedded
    return None


def describe_element(node: Tag) -> list[Embedded]:
    """Describe an element whose text is not read; nothing if a reader sees nothing of it."""
    what = EMBEDDED.get(node.name)
    if what is None:
        return []
    if node.name == "input":
        silent = str(node.attrs.get("type", "text")).lower() in SILENT_INPUTS
        return [] if silent else [Embedded(what, str(node.attrs.get("value", "")))]
    if node.name == "iframe":
        return [Embedded(what, str(node.attrs.get("srcdoc", "")))]
    if node.name == "img":
        spacer = node.attrs.get("alt") == "" or "1" in (
            node.attrs.get("width"),
            node.attrs.get("height"),
        )
        return [] if spacer else [Embedded(what, clean(str(node.attrs.get("alt", ""))))]
    parts = node.find_all("text") if node.name == "svg" else [node]
    return [Embedded(what, clean(" ".join(part.get_text(" ") for part in parts)))]


def _find_doubts(node: Tag, state: int, states: States, parts: Sequence[str]) -> list[Embedded]:
    """Describe what makes the text of an element another one than a reader sees."""
    doubts = []
    if (node.name == "sub" or state & LOWERED) and (base := "".join(parts).strip(f"{EDGE} \n")):
        mark = clean(_get_visible_text(node, states))
        divided = base[-1].isdigit() and mark.isdigit()
        named = NUMBERED_METRIC.search(f"{base}{EDGE}{mark}")
        doubts += [SHIFTED_MARK] if FOOTNOTE.fullmatch(mark) and not divided and not named else []
    return [Embedded(what, what) for what in doubts]


def _is_doubtful(node: Tag, states: States) -> bool:
    return bool(states) and any(
        states.get(id(part), 0) & (DOUBT | PALE) for part in (node, *node.find_all(True))
    )


def _get_visible_text(node: Tag, states: States) -> str:
    if not states:
        return node.get_text()
    return "".join(
        text
        for text in node.find_all(string=True)
        if not states.get(id(text.parent), 0) & (UNSEEN | STRUCK)
    )


def _join_parts(parts: Sequence[str]) -> str:
    return GLUED_DIGITS.sub(" ", "".join(parts)).replace(EDGE, "")


def _add_superscript(raw: str, parts: list[str], marks: list[str]) -> None:
    """Add raised text to the footnote marks, or to the text if it is a power of ten or a word."""
    text = clean(raw)
    if is_power(clean(_join_parts(parts[-MAX_BASE_PARTS:])), text):
        parts.append(f"^{text}")
    elif FOOTNOTE.fullmatch(text):
        marks.append(text)
    else:
        parts += [EDGE, raw, EDGE]


@dataclass(frozen=True, slots=True)
class HtmlRow:
    """Cells of one row; `owner` is its `tr`, or the table if the cells are in none."""

    owner: Tag
    section: Tag
    cells: list[Tag] = field(default_factory=list)


class Span(NamedTuple):
    """A cell that reaches into the next rows: rows left, its text, and the columns it covers."""

    left: int
    cell: CellText
    columns: range


def expand_rows(rows: Iterable[HtmlRow], states: States) -> Iterator[RawRow]:
    """Repeat the cells that span rows or columns; a row span ends with its section."""
    below: dict[int, Span] = {}
    section: Tag | None = None
    for row in rows:
        is_hidden = bool(states) and states.get(id(row.owner), 0) & UNSEEN
        # no part of it is visible
        if is_hidden and not any(read_cell(cell, states).text for cell in row.cells):
            cells = [read_cell(cell, States()) for cell in row.cells]
            yield RawRow(
                tuple(cell.text for cell in cells), tuple(cell.mark for cell in cells), hidden=True
            )
            continue
        above = below if row.section is section else {}
        section = row.section
        below = {
            column: span._replace(left=span.left - 1)
            for column, span in above.items()
            if span.left > 1
        }
        yield _expand_row(row, above, below, states)


def _expand_row(
    row: HtmlRow, above: dict[int, Span], below: dict[int, Span], states: States
) -> RawRow:
    """Return one row with the cells that reach into it from `above`; add those that it extends to
    `below`.
    """
    if not above and not any(
        cell.attrs and not cell.attrs.keys().isdisjoint(SPANS) for cell in row.cells
    ):
        if plain := _read_plain_row(row, states):
            return plain
        return _make_row([read_cell(cell, states) for cell in row.cells])
    cells: list[CellText] = []
    wide: list[range] = []
    problem = None
    for element in [*row.cells, None]:
        while len(cells) in above:
            span = above[len(cells)]
            if len(span.columns) > 1 and span.columns not in wide:
                wide.append(span.columns)
            cells.append(span.cell)
        if element is None:
            break
        cell = read_cell(element, states)
        width = min(_read_span(element, "colspan"), max(MAX_SPAN - len(cells), 1))
        columns = range(len(cells), len(cells) + width)
        if not above.keys().isdisjoint(columns):
            problem = "two cells span one place"
        if (height := _read_span(element, "rowspan")) > 1:
            below |= dict.fromkeys(columns, Span(height - 1, cell, columns))
        if width > 1:
            wide.append(columns)
        cells += [cell] * width
    if len(row.cells) == 1 and len(cells) > 1 and not above:
        problem = "one cell spans the row"
    return _make_row(cells, tuple(wide), problem)


def _read_plain_row(row: HtmlRow, states: States) -> RawRow | None:
    """Return a row whose cells are nothing but text: nearly all rows are such."""
    cells: list[tuple[str, str]] = []
    for cell in row.cells:
        contents = cell.contents
        if (
            len(contents) != 1
            or type(contents[0]) is not NavigableString
            or (states and id(cell) in states)
        ):
            return None
        cells.append(lift_footnote(clean(contents[0])))
    return RawRow(tuple(text for text, _ in cells), tuple(mark for _, mark in cells))


def _make_row(
    cells: list[CellText], wide: tuple[range, ...] = (), problem: str | None = None
) -> RawRow:
    texts = tuple(cell.text for cell in cells)
    marks = tuple(cell.mark for cell in cells)
    unread: list[Unread] = []
    for column, cell in enumerate(cells):
        if cell.embedded and (embedded := find_unread(cell)):
            unread.append(
                Unread(
                    column,
                    "holds"
                    f" {embedded.what}{'' if embedded.what.endswith(MAY_ALTER) else ' that is not read'}",
                    bool(embedded.text),
                    embedded.what.endswith(IN_ANY_COLUMN),
                )
            )
        elif cell.struck and not cell.text:
            unread.append(Unread(column, "is struck through", True))
    return RawRow(texts, marks, problem=problem, wide=wide, unread=tuple(unread))


def _read_span(cell: Tag, name: str) -> int:
    """Return how many columns or rows a cell spans; a row span of 0 reaches to the end of the
    section.
    """
    value = str(cell.get(name, "1")).strip()
    if not value.isdecimal() or len(value) > 9:
        return 1
    if name == "rowspan" and int(value) == 0:
        return MAX_SPAN
    return min(max(int(value), 1), MAX_SPAN)
