"""Join the lines of a header that is printed over several, by the columns that their cells are in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ipu_results.read.paper import terms
from ipu_results.read.pdf.words import Box, PrintedCell, PrintedLine, Strip, enclose, make_line

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
