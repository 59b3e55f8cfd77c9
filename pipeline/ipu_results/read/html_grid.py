"""Turn the rows of an HTML table into rows of texts: spans are expanded, hidden rows and cells recognised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from bs4.element import NavigableString, Tag

from ipu_results.read.assemble import RawRow, Unread
from ipu_results.read.html_cells import CellText, find_unread, read_cell
from ipu_results.read.html_visibility import UNSEEN, States
from ipu_results.read.text import clean, lift_footnote

MAX_SPAN = 1000  # the limit of the HTML standard for a colspan
SPANS = ("colspan", "rowspan")


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
        if states and states.get(id(row.owner), 0) & UNSEEN and (hidden := _read_hidden_row(row, states)):
            yield hidden
            continue
        above = below if row.section is section else {}
        section = row.section
        below = {column: span._replace(left=span.left - 1) for column, span in above.items() if span.left > 1}
        yield _expand_row(row, above, below, states)


def _read_hidden_row(row: HtmlRow, states: States) -> RawRow | None:
    """Return a row that no reader sees, None if parts of it are visible."""
    if any(read_cell(cell, states).text for cell in row.cells):
        return None
    cells = [read_cell(cell, {}) for cell in row.cells]
    return RawRow(tuple(cell.text for cell in cells), tuple(cell.mark for cell in cells), hidden=True)


def _expand_row(row: HtmlRow, above: dict[int, Span], below: dict[int, Span], states: States) -> RawRow:
    """Return one row with the cells that reach into it from `above`; add those that it extends to `below`."""
    if not above and not any(cell.attrs and not cell.attrs.keys().isdisjoint(SPANS) for cell in row.cells):
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
        if len(contents) != 1 or type(contents[0]) is not NavigableString or (states and id(cell) in states):
            return None
        cells.append(lift_footnote(clean(contents[0])))
    return RawRow(tuple(text for text, _ in cells), tuple(mark for _, mark in cells))


def _make_row(cells: list[CellText], wide: tuple[range, ...] = (), problem: str | None = None) -> RawRow:
    texts, marks = tuple(cell.text for cell in cells), tuple(cell.mark for cell in cells)
    unread: list[Unread] = []
    for column, cell in enumerate(cells):
        if cell.embedded and (embedded := find_unread(cell)):
            unread.append(Unread(column, f"holds {embedded.what} that is not read", bool(embedded.text)))
        elif cell.struck and not cell.text:
            unread.append(Unread(column, "is struck through", True))
    return RawRow(texts, marks, problem=problem, wide=wide, unread=tuple(unread))


def _read_span(cell: Tag, name: str) -> int:
    """Return how many columns or rows a cell spans; a row span of 0 reaches to the end of the section."""
    value = str(cell.get(name, "1")).strip()
    if not value.isdecimal() or len(value) > 9:
        return 1
    if name == "rowspan" and int(value) == 0:
        return MAX_SPAN
    return min(max(int(value), 1), MAX_SPAN)
