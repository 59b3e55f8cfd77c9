"""Join the lines of a header that is printed over several, by the columns that their cells are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ipu_results.read.paper import terms
from ipu_results.read.pdf.words import HAS_DIGIT, Box, PrintedCell, PrintedLine, Strip, enclose, make_line
from ipu_results.schema.table_headers import TableHeader, normalise_header
from ipu_results.schema.vocabulary import NUMERIC_FIELDS

MAX_HEADER_LINES = 4
"""A header has at most this many lines."""
HEADER_LEADING = 0.8
"""The next line of a header follows with at most this gap, in heights of a line."""
EDGE_SLACK = 3.0
"""The lines of one name have a left edge, a right edge or a middle in common, to within this, in points."""

Column = list[PrintedCell]
"""The cells of one name, from the top."""


@dataclass(frozen=True, slots=True)
class StackedHeader:
    """Joined names as one line, the boxes of their cells as printed, and place and box of the last line."""

    line: PrintedLine
    parts: tuple[Box, ...]
    place: int
    foot: Box


def stack_lines(strip: Strip, place: int) -> Iterator[StackedHeader]:
    """Yield the names of 2 to MAX_HEADER_LINES lines from a line on, as far as their columns are clear."""
    lines = [strip[place]]
    for number, line in enumerate(strip[place + 1 : place + MAX_HEADER_LINES], place + 1):
        above = lines[-1].box
        if line.box.page != above.page or line.box.top - above.bottom > HEADER_LEADING * above.height:
            return
        lines.append(line)
        if joined := join_cells([line.cells for line in lines]):
            parts = tuple(cell.box for line in lines for cell in line.cells)
            yield StackedHeader(make_line(joined), parts, number, line.box)


def join_cells(lines: Sequence[Sequence[PrintedCell]]) -> list[PrintedCell]:
    """Return a cell for each column, with the texts of its lines from the top; none if a column is not clear.

    A cell over several columns is not a part of their names, unless names repeat without it.
    """
    groups = _find_groups(lines)
    cells = [cell for line in lines for cell in line if cell not in groups]
    columns = _group_columns(cells)
    if columns is None or any(_is_under(group, column) for group in groups for column in columns):
        return []
    names = [_join_texts(column) for column in columns]
    if _repeat(names):
        owners = [[group for group in groups if _overlap(group.box, _hull(column))] for column in columns]
        names = [_join_texts([*above, *column]) for above, column in zip(owners, columns, strict=True)]
    if _repeat(names):
        return []
    joined = [
        replace(column[0], text=name, footnotes="".join(cell.footnotes for cell in column), box=_hull(column))
        for name, column in zip(names, columns, strict=True)
    ]
    return sorted(joined, key=lambda cell: cell.box.x0)


def _find_groups(lines: Sequence[Sequence[PrintedCell]]) -> list[PrintedCell]:
    """Return the cells over several others of one line, or over another that they are not aligned with."""
    groups = []
    for number, line in enumerate(lines):
        below = lines[number + 1 :]
        for cell in line:
            under = [[other for other in later if _overlap(cell.box, other.box)] for later in below]
            nearest = next((others for others in under if others), [])
            if any(len(others) > 1 for others in under) or (nearest and not _is_aligned(cell.box, nearest[0].box)):
                groups.append(cell)
    return groups


def _group_columns(cells: Sequence[PrintedCell]) -> list[Column] | None:
    """Return the cells by column, from the top; None if a cell overlaps two columns."""
    columns: list[Column] = []
    for cell in cells:
        own = [column for column in columns if _overlap(cell.box, _hull(column))]
        if len(own) > 1:
            return None
        if own:
            own[0].append(cell)
        else:
            columns.append([cell])
    return columns


def _is_under(group: PrintedCell, column: Column) -> bool:
    """Check whether a cell over several columns is below a part of a name: it then heads nothing clear."""
    return _overlap(group.box, _hull(column)) and group.box.middle > column[0].box.middle


def _overlap(first: Box, other: Box) -> bool:
    return min(first.x1, other.x1) > max(first.x0, other.x0)


def _is_aligned(first: Box, other: Box) -> bool:
    left, right = abs(first.x0 - other.x0), abs(first.x1 - other.x1)
    return min(left, right, abs(first.x0 + first.x1 - other.x0 - other.x1) / 2) <= EDGE_SLACK


def _hull(column: Column) -> Box:
    return enclose(cell.box for cell in column)


def _join_texts(cells: Sequence[PrintedCell]) -> str:
    return " ".join(cell.text for cell in cells)


def _repeat(names: Sequence[str]) -> bool:
    return len(set(map(terms.normalise_text, names))) < len(names)


BAND_PAD = 6.0
"""How far beyond its header a table reaches on either side, in points."""
ALIGN_SLACK = 2.0
"""A cell belongs to the column whose header it overlaps, or misses by at most this, in points."""
SHIFT_TOLERANCE = 2.0
"""Columns of a table that continues in another page column shift alike, to within this, in points."""
MIN_UNDER_NAME = 0.5
"""As many cells as columns are a row, in their order, if at least this share is under the names of the columns."""

MIN_UNDER_ONE = 0.5
"""A cell is under one column alone if at least this share of it is, and no part of it is under another."""

MARK = re.compile(r"[(\[][^()\[\]]{1,3}[)\]]")
"""A reference in brackets, such as (a): no figure, and a part of the label before it."""
UNIT_WORD = re.compile(r"(?=\S*[^\W\d_]|[%×°])[^\s\d()\[\]]{1,12}")
"""A unit that is printed apart from its figure."""
UNIT_GAP = 2.0
"""It is at most this far away from it, in ems."""

ColumnSpan = tuple[float, float]
"""Left and right edge of a column, in points."""
AlignedCells = tuple[PrintedCell | None, ...]
"""The cell of each column, or None."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a table are, which of them have figures, which may be blank, and which has the model."""

    spans: tuple[ColumnSpan, ...]
    figures: frozenset[int]
    optional: frozenset[int]
    model: int | None = None

    @property
    def has_text(self) -> bool:
        """Whether some columns have words: then no other text looks like a row."""
        return len(self.figures) < len(self.spans)

    def is_complete(self, cells: AlignedCells) -> bool:
        """Check whether only cells are missing that may be blank, and every figure has a digit."""
        return all(
            column in self.optional if cell is None else column not in self.figures or bool(HAS_DIGIT(cell.text))
            for column, cell in enumerate(cells)
        )

    def has_figure(self, cells: AlignedCells) -> bool:
        return any(cell and column in self.figures and HAS_DIGIT(cell.text) for column, cell in enumerate(cells))


def make_columns(cells: Sequence[PrintedCell], headers: Sequence[TableHeader]) -> Columns:
    """Return the columns under the cells of a header that has the names of all `headers`."""
    fields = []
    for cell in cells:
        header = next(header for header in headers if normalise_header(cell.text) in header.keys)
        fields.append(header.field_of(cell.text))
    figures = frozenset(column for column, name in enumerate(fields) if name in NUMERIC_FIELDS)
    may_be_blank = terms.BLANK_FIELDS if len(figures) < len(fields) else terms.LABEL_FIELDS
    optional = frozenset(column for column, name in enumerate(fields) if name in may_be_blank)
    model = fields.index("model") if "model" in fields else None
    return Columns(tuple((cell.box.x0, cell.box.x1) for cell in cells), figures, optional, model)


def cells_in_band(line: PrintedLine, spans: Sequence[ColumnSpan]) -> tuple[PrintedCell, ...]:
    """Return the cells of a line that are below a header."""
    left, right = spans[0][0] - BAND_PAD, spans[-1][1] + BAND_PAD
    return tuple(cell for cell in line.cells if cell.box.x1 > left and cell.box.x0 < right)


def align_cells(cells: Sequence[PrintedCell], columns: Columns) -> AlignedCells | None:
    """Return the cell of each column; None for text, and for cells that overlap no column, two, or one another's."""
    cells, under = _join_parts(cells, columns)
    if columns.has_text and len(cells) == len(columns.spans) and _are_in_order(cells, under, columns):
        return tuple(cells)
    aligned: list[PrintedCell | None] = [None] * len(columns.spans)
    for cell, places in zip(cells, under, strict=True):
        if len(places) != 1 or aligned[places[0]] is not None:
            return None
        aligned[places[0]] = cell
    is_row = len(cells) > 1 and any(character.isdigit() for cell in cells for character in cell.text)
    return tuple(aligned) if is_row or all(terms.is_figure(cell.text) for cell in cells) else None


def _join_parts(
    cells: Sequence[PrintedCell], columns: Columns
) -> tuple[Sequence[PrintedCell], Sequence[Sequence[int]]]:
    """Join a reference in brackets to its label, and a unit to its figure. Return the columns of each cell."""
    joined: list[PrintedCell] = []
    under: list[list[int]] = []
    for number, cell in enumerate(cells):
        following = cells[number + 1] if number + 1 < len(cells) else None
        if (
            joined
            and not HAS_DIGIT(cell.text)
            and (_is_mark(joined[-1], cell, following, columns) or _is_unit(joined[-1], cell, columns))
        ):
            joined[-1] = _join(joined[-1], cell)
        else:
            joined.append(cell)
            under.append(_find_columns(cell, columns))
    return joined, under


def _is_mark(label: PrintedCell, cell: PrintedCell, following: PrintedCell | None, columns: Columns) -> bool:
    """Check whether a reference is between a label and a figure, and the figure alone is left for its column."""
    own = _find_columns(label, columns)
    if following is None or not MARK.fullmatch(cell.text) or len(own) != 1 or own[0] in columns.figures:
        return False
    places, after = _find_columns(cell, columns), _find_columns(following, columns)
    return bool(HAS_DIGIT(following.text)) and set(after) <= columns.figures and (not places or places == after)


def _is_unit(figure: PrintedCell, cell: PrintedCell, columns: Columns) -> bool:
    """Check whether a cell without a digit is a unit close behind a figure, both under one column of figures."""
    places = _find_columns(cell, columns)
    return (
        len(places) == 1
        and places[0] in columns.figures
        and places == _find_columns(figure, columns)
        and terms.is_figure(figure.text)
        and UNIT_WORD.fullmatch(cell.text) is not None
        and cell.box.x0 - figure.box.x1 <= UNIT_GAP * figure.size
    )


def _join(first: PrintedCell, other: PrintedCell) -> PrintedCell:
    if first.footnotes:
        return replace(first, doubt=first.doubt or "a footnote mark is between two parts of it")
    return replace(
        first,
        text=f"{first.text} {other.text}",
        footnotes=other.footnotes,
        box=enclose((first.box, other.box)),
        doubt=first.doubt or other.doubt,
    )


def _find_columns(cell: PrintedCell, columns: Columns) -> list[int]:
    """Return the columns that a cell is under: the one that has most of it, if it merely comes close to others.

    Where no column has text, it is under all that it is close to: nothing else tells a row from other text.
    """
    near = [column for column, span in enumerate(columns.spans) if overlaps(cell.box, span)]
    if not columns.has_text:
        return near
    shares = {column: _measure_overlap(cell.box, columns.spans[column]) for column in near}
    own = [column for column, share in shares.items() if share > 0]
    return own if len(own) == 1 and shares[own[0]] >= MIN_UNDER_ONE else near


def _measure_overlap(box: Box, span: ColumnSpan) -> float:
    """Return the share of a box that is under a column."""
    return (min(box.x1, span[1]) - max(box.x0, span[0])) / max(box.x1 - box.x0, ALIGN_SLACK)


def _are_in_order(cells: Sequence[PrintedCell], under: Sequence[Sequence[int]], columns: Columns) -> bool:
    """Check whether each cell is under its own column or, where a name is narrow, under none.

    A label may reach below the next name, if it cannot end with a figure of that column, which has a cell of its own.
    """
    own = rest = 0
    for column, (cell, places) in enumerate(zip(cells, under, strict=True)):
        is_label = column not in columns.figures and not HAS_DIGIT(cell.text.split()[-1])
        reaches = list(places) == [column, column + 1] and is_label and list(under[column + 1]) == [column + 1]
        own += list(places) == [column] or reaches
        rest += not places
    return own + rest == len(under) and own >= MIN_UNDER_NAME * len(under)


def overlaps(box: Box, span: ColumnSpan) -> bool:
    return box.x1 > span[0] - ALIGN_SLACK and box.x0 < span[1] + ALIGN_SLACK


def match_full_row(cells: Sequence[PrintedCell], columns: Columns, *, may_shift: bool) -> Columns | None:
    """Return the columns of a line, shifted elsewhere, if it is a row with all its cells and nothing else."""
    if columns.has_text:
        aligned = align_cells(cells, columns)
        if aligned is not None and columns.is_complete(aligned):
            return columns
    elif not all(terms.is_figure(cell.text) for cell in cells):
        return None
    if len(cells) != len(columns.spans):
        return None
    shift = _find_shift(cells, columns.spans) if may_shift else 0.0
    if shift is None:
        return None
    shifted = replace(columns, spans=tuple((left + shift, right + shift) for left, right in columns.spans))
    aligned = align_cells(cells, shifted)
    return shifted if aligned is not None and None not in aligned and shifted.is_complete(aligned) else None


def _find_shift(cells: Sequence[PrintedCell], spans: Sequence[ColumnSpan]) -> float | None:
    """Return how far cells are from their headers if all columns agree on it: by middle, left edge or right edge."""
    choices = []
    for cell, (left, right) in zip(cells, spans, strict=True):
        to_left, to_right = cell.box.x0 - left, cell.box.x1 - right
        choices.append(((to_left + to_right) / 2, to_left, to_right))
    for shift in choices[-1]:
        if all(any(abs(shift - other) <= SHIFT_TOLERANCE for other in column) for column in choices):
            return shift
    return None
