"""Find the rows of a table under its header, and doubt those that share their lines with other
text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from ipu_results.read.pdf_lines import (
    ALIGN_SLACK,
    HAS_DIGIT,
    AlignedCells,
    Box,
    Columns,
    PrintedCell,
    Strip,
    align_cells,
    cells_in_band,
    enclose,
    match_full_row,
    overlaps,
)
from ipu_results.read.text import is_caption, is_continuation_note, is_figure, normalise_text

ROW_GAP = 1.6  # a row follows the one above with at most this gap, in heights of a line
ROW_OVERLAP = 0.3  # rows overlap by at most this share of the height of the lower one
# a row that lacks cells has at least this share of the size of the next one, or it is a mark of it
MARK_SIZE = 0.92
MAX_PAGES_APART = 1  # a table continues at most this many pages later
# other text at most this many pitches of the rows away from a row is a line of one of its cells
WRAPPED_PITCH = 1.15
# a line with figures that is closer than this to a row, in pitches of the rows, is a part of it
CLOSE_PITCH = 0.85
# text belongs to either of two rows if one is at most this many times as far away as the other
EQUAL_PITCH = 1.2
MAX_COLUMNS_OF_A_CELL = (
    2  # a single text under more columns than this is prose, not the line of a cell
)
MIN_CELLS = 2  # a single cell may be a page number
MAX_DIVISION = (
    2  # rows with lines between them are taken to be at least this part of their distance apart
)
MIN_SHARE_OF_CELLS = 0.5  # a line with at least this share of the columns filled is a row
MAX_WORDS_OF_A_FIGURE = 3  # a sign, the figure and its unit; more words are prose
MIN_TITLES = 2  # a single line in a font of its own may be a part of a label
MIN_ROWS_OF_A_GROUP = 2  # on average: a line over every row is a part of its label
TITLE_GAP = 1.2  # the row above a title is at least this many times as far away as the row below

WRAPPED = "other text is next to the row: a cell may have several lines"
MERGED = "a label is blank that a row with the same model has: it may be one cell for several rows"


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One row: a cell or None for each column, or all `loose` cells if their columns are ambiguous.

    `is_text` marks a line that is not a row. `doubt` is why the cells may not be whole, if they may
    not.
    """

    strip: int
    place: int
    box: Box
    cells: AlignedCells
    loose: tuple[PrintedCell, ...] = ()
    doubt: str = ""
    is_text: bool = False

    @property
    def printed(self) -> tuple[PrintedCell, ...]:
        """Its cells from left to right, without blank ones."""
        return self.loose or tuple(cell for cell in self.cells if cell)


Start = tuple[int, int]
"""Numbers of a strip and of a line in it."""


def find_rows(
    columns: Columns, strips: Sequence[Strip], header: Box, header_at: Start, names: frozenset[str]
) -> tuple[list[PrintedRow], list[PrintedRow]]:
    """Find the rows under a header, and those of the same table further down or in the next columns
    of the page.

    Return also the lines below the table that have the shape of its rows, and may belong to it.
    """
    rows = list(_read_run(strips, header_at, columns, header, names))
    home = header_at[0]
    while True:
        last = next((row for row in reversed(rows) if not row.is_text), None)
        end, page = ((last.strip, last.place), last.box.page) if last else (header_at, header.page)
        start = _find_next_run(strips, names, columns, (end, page), home)
        if start is None:
            break
        (strip, place), shifted = start
        rows += _read_run(strips, (strip, place - 1), shifted, None, names)
    read = {(row.strip, row.place) for row in rows}
    around = _find_rows_below(strips, names, columns, (header_at, page), home)
    below = [row for row in around if (row.strip, row.place) not in read]
    # Of two rows that may be one row and its marks, it is unclear which cells belong together.
    doubtful = {
        number + i
        for number, pair in enumerate(pairwise(rows))
        if _share_lines(*pair)
        for i in (0, 1)
    }
    rows = [
        replace(row, cells=(), loose=row.printed) if i in doubtful else row
        for i, row in enumerate(rows)
    ]
    rows = _mark_wrapped(rows, columns, header)
    return mark_merged(rows, columns), below


def _read_run(
    strips: Sequence[Strip],
    after: Start,
    columns: Columns,
    above: Box | None,
    names: frozenset[str],
) -> Iterator[PrintedRow]:
    """Yield the rows after a line that follow one another closely, and the lines of text between
    them.
    """
    strip = after[0]
    place = after[1] + 1
    for number, line in enumerate(strips[strip][place:], place):
        cells = cells_in_band(line, columns.spans)
        if not cells:
            continue
        box = enclose(cell.box for cell in cells)
        is_far = above is not None and box.top - above.bottom > ROW_GAP * above.height
        row = _classify_line(cells, columns, names)
        if row is None or (
            is_far and not (columns.has_text and columns.is_complete(row.cells or (None,)))
        ):
            return
        yield replace(row, strip=strip, place=number, box=box)
        if row.is_text and not columns.has_text:
            return
        above = box


def _classify_line(
    cells: tuple[PrintedCell, ...], columns: Columns, names: frozenset[str]
) -> PrintedRow | None:
    """Return the cells of a line as a row or as text that may be part of one; None where the table
    ends.
    """
    if is_continuation_note(" ".join(cell.text for cell in cells)):
        return None
    aligned = align_cells(cells, columns)
    row = PrintedRow(0, 0, cells[0].box, aligned or (), () if aligned else cells)
    if not columns.has_text:
        if aligned is not None or all(
            is_figure(word) for cell in cells for word in cell.text.split()
        ):
            return row
        return replace(row, is_text=True)
    if _ends_table(cells, names):
        return None
    if aligned is not None and (
        columns.is_complete(aligned) or (columns.has_figure(aligned) and len(cells) > 1)
    ):
        return row
    if _is_wide(cells, columns):
        return row if any(HAS_DIGIT(cell.text) for cell in cells) else None
    is_prose = len(cells) == 1 and _count_columns(cells[0], columns) > MAX_COLUMNS_OF_A_CELL
    return None if is_prose else replace(row, is_text=True)


def _is_wide(cells: Sequence[PrintedCell], columns: Columns) -> bool:
    return len(cells) >= max(MIN_CELLS, MIN_SHARE_OF_CELLS * len(columns.spans))


def _count_columns(cell: PrintedCell, columns: Columns) -> int:
    return sum(overlaps(cell.box, span) for span in columns.spans)


def _find_next_run(
    strips: Sequence[Strip],
    names: frozenset[str],
    columns: Columns,
    end: tuple[Start, int],
    home: int,
) -> tuple[Start, Columns] | None:
    """Find where the table continues, with its columns there; None if a caption or another header
    comes first.
    """
    for number, place, start, cells in _iter_lines(strips, end, columns, home, names):
        if matched := match_full_row(cells, columns, may_shift=number != home):
            if columns.has_text:
                return (
                    number,
                    _find_first_line(strips[number], place, start, matched, names),
                ), matched
            first = _find_start_of_run(strips[number], place, start, matched)
            return None if first is None else ((number, first), matched)
        if columns.has_text and _is_wide(cells, columns):
            return None
    return None


def _find_first_line(
    strip: Strip, place: int, earliest: int, columns: Columns, names: frozenset[str]
) -> int:
    """Return the first of the lines of text close above a row: they may be lines of its cells."""
    for number in range(place - 1, earliest - 1, -1):
        cells = cells_in_band(strip[number], columns.spans)
        if cells:
            box = enclose(cell.box for cell in cells)
            row = _classify_line(cells, columns, names)
            if row is None or strip[place].box.top - box.bottom > ROW_GAP * box.height:
                return place
            place = number
    return place


def _find_rows_below(
    strips: Sequence[Strip],
    names: frozenset[str],
    columns: Columns,
    end: tuple[Start, int],
    home: int,
) -> Iterator[PrintedRow]:
    """Yield the lines after a table, up to a caption or another header, with figures under its
    columns.
    """
    for number, place, _, cells in _iter_lines(strips, end, columns, home, names):
        aligned = align_cells(cells, columns)
        if aligned is None or not _is_wide(cells, columns) or not columns.has_figure(aligned):
            continue
        is_like_figures = all(
            HAS_DIGIT(cell.text) and len(cell.text.split()) <= MAX_WORDS_OF_A_FIGURE
            for cell in cells
        )
        if columns.has_text or (None not in aligned and is_like_figures):
            yield PrintedRow(number, place, enclose(cell.box for cell in cells), aligned)


def _iter_lines(
    strips: Sequence[Strip],
    end: tuple[Start, int],
    columns: Columns,
    home: int,
    names: frozenset[str],
) -> Iterator[tuple[int, int, int, tuple[PrintedCell, ...]]]:
    """Yield strip, line, first line and cells of each line after a table, up to what ends it."""
    (strip, last), page = end
    for number in range(strip, len(strips)):
        start = last + 1 if number == strip else 0
        for place, line in enumerate(strips[number][start:], start):
            cells = cells_in_band(line, columns.spans) if number == home else line.cells
            if not cells:
                continue
            if line.box.page > page + MAX_PAGES_APART or _ends_table(cells, names):
                return
            yield number, place, start, cells


def _ends_table(cells: Sequence[PrintedCell], names: frozenset[str]) -> bool:
    """Check whether a line is a caption or has a known name; a figure is one only among others."""
    if is_caption(" ".join(cell.text for cell in cells)):
        return True
    known = [normalise_text(cell.text) in names for cell in cells]
    return all(known) or any(
        is_known and not is_figure(cell.text) for cell, is_known in zip(cells, known, strict=True)
    )


def _find_start_of_run(strip: Strip, place: int, earliest: int, columns: Columns) -> int | None:
    """Return the first line of the rows around the row at `place`; None if another header is above
    them.
    """
    below = strip[place].box
    for number in range(place - 1, earliest - 1, -1):
        cells = cells_in_band(strip[number], columns.spans)
        if not cells:
            continue
        box = enclose(cell.box for cell in cells)
        if below.top - box.bottom > ROW_GAP * box.height:
            return place
        if not all(is_figure(cell.text) for cell in cells):
            # A lone cell within one column is a header; one across several columns is prose.
            return None if len(cells) > 1 or _count_columns(cells[0], columns) <= 1 else place
        place = number
        below = box
    return place


def _share_lines(first: PrintedRow, other: PrintedRow) -> bool:
    above = first.box
    below = other.box
    if first.is_text or other.is_text:
        return False
    if above.page != below.page or max(above.x0, below.x0) - min(above.x1, below.x1) > ALIGN_SLACK:
        return False
    sizes = [max(cell.size for cell in row.printed) for row in (first, other)]
    if (None in first.cells or None in other.cells) and min(sizes) < MARK_SIZE * max(sizes):
        return True
    shared = min(above.bottom, below.bottom) - max(above.top, below.top)
    return shared > ROW_OVERLAP * min(above.height, below.height)


def _mark_wrapped(rows: Sequence[PrintedRow], columns: Columns, header: Box) -> list[PrintedRow]:
    """Return the rows without the lines of text, and doubt those that such a line, or a part of a
    row, is close to.
    """
    whole = [bool(row.cells) and not row.is_text and columns.is_complete(row.cells) for row in rows]
    numbers = [number for number, is_whole in enumerate(whole) if is_whole]
    pitches = [
        pitch / min(other - number, MAX_DIVISION)
        for number, other in pairwise(numbers)
        if (pitch := _measure_pitch(rows[number].box, rows[other].box)) is not None
    ]
    if (
        not pitches
        and numbers
        and (pitch := _measure_pitch(header, rows[numbers[0]].box)) is not None
    ):
        pitches = [pitch]
    titles = _find_titles(rows, sum(whole))
    doubtful: set[int] = set()
    for number, row in enumerate(rows):
        if pitches and not whole[number] and number not in titles:
            is_label = row.is_text and columns.has_text
            reach = (WRAPPED_PITCH if is_label else CLOSE_PITCH) * min(pitches)
            doubtful |= set(_find_neighbours(rows, whole, number, reach))
    return [
        replace(row, doubt=WRAPPED) if i in doubtful else row
        for i, row in enumerate(rows)
        if not row.is_text
    ]


def _find_neighbours(
    rows: Sequence[PrintedRow], whole: Sequence[bool], number: int, reach: float
) -> Iterator[int]:
    """Yield the nearest row above or below, or both if they are as near, within reach."""
    sides = (range(number - 1, -1, -1), range(number + 1, len(rows)))
    nearest = [place for side in sides for place in islice(filter(whole.__getitem__, side), 1)]
    pitches = {place: _measure_pitch(rows[number].box, rows[place].box) for place in nearest}
    limit = min(
        reach,
        EQUAL_PITCH * min((pitch for pitch in pitches.values() if pitch is not None), default=0.0),
    )
    yield from (place for place, pitch in pitches.items() if pitch is not None and pitch <= limit)


def _measure_pitch(first: Box, other: Box) -> float | None:
    return abs(other.middle - first.middle) if first.page == other.page else None


def mark_merged(rows: Sequence[PrintedRow], columns: Columns) -> list[PrintedRow]:
    """Doubt rows without a label that another row with the same model has."""
    if not columns.has_text or columns.model is None:
        return list(rows)
    labelled = {
        (column, model.text)
        for row in rows
        if row.cells and (model := row.cells[columns.model])
        for column in columns.optional
        if row.cells[column]
    }
    return [
        (
            replace(row, doubt=row.doubt or MERGED)
            if row.cells
            and (model := row.cells[columns.model])
            and any(
                row.cells[column] is None and (column, model.text) in labelled
                for column in columns.optional
            )
            else row
        )
        for row in rows
    ]


def _find_titles(rows: Sequence[PrintedRow], count: int) -> frozenset[int]:
    """Return which lines of a table are titles of the rows below them, by their numbers; `count`
    rows are complete.

    Others are first lines of wrapped labels. A title is alone on its line, over the left edge of a
    label, and nearer to that row than to the one above. A table has several titles, all in one font
    that no label has.
    """
    titles: dict[str, list[int]] = defaultdict(list)
    for number in range(len(rows) - 1):
        box = rows[number].box
        font = _find_title_font(rows, number)
        labels = (
            cell
            for row in rows
            if not row.is_text
            for cell in row.printed
            if cell.box.overlaps(box)
        )
        if font and not any(cell.fonts & {font, ""} for cell in labels):
            titles[font].append(number)
    kept = [
        part for part in titles.values() if MIN_TITLES <= len(part) <= count / MIN_ROWS_OF_A_GROUP
    ]
    return frozenset(kept[0]) if len(titles) == len(kept) == 1 else frozenset()


def _find_title_font(rows: Sequence[PrintedRow], number: int) -> str:
    """Return the font of a line over the label of the row below it, and apart from the row above;
    `""` if it is not.
    """
    line = rows[number]
    below = rows[number + 1]
    above = rows[number - 1] if number and rows[number - 1].box.page == line.box.page else None
    if (
        not line.is_text
        or below.is_text
        or len(line.printed) != 1
        or len(line.printed[0].fonts) != 1
    ):
        return ""
    is_over = below.box.page == line.box.page and abs(below.box.x0 - line.box.x0) <= ALIGN_SLACK
    pitch = below.box.middle - line.box.middle
    is_apart = above is None or line.box.middle - above.box.middle >= TITLE_GAP * pitch
    return min(line.printed[0].fonts) if is_over and is_apart else ""
