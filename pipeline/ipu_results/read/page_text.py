"""Read a performance page that was saved as text: one cell a line, or lines that pipes or tabs
divide into cells.

The first five source documents came with one cell a line; cells may be missing or too many. Each
column allows cells of a certain shape. The best cut into rows leaves the fewest cells outside of
rows whose cells all have the shape of their column. A row is trusted only if it is part of every
best cut, so a lost line costs its own row and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ipu_results.read.document import (
    NO_HEADER,
    Assembler,
    ParsedDocument,
    RawRow,
    contains_row,
    find_well_shaped,
    has_shape,
)
from ipu_results.read.text import clean, clean_cell, lift_footnote
from ipu_results.schema.vocabulary import (
    TableHeader,
    explain_mismatch,
    find_headers,
    normalise_header,
)

MIN_MISFITS_OF_A_SHIFTED_ROW = (
    3  # fewer cells of the wrong shape are misprints in a row of its own lines
)
# numbers of cuts are compared modulo this prime: they grow exponentially with the cells
MODULUS = 2**61 - 1
RULE = re.compile(r"[|\s:+-]+")
DELIMITERS = ("|", "\t")


class RowSpan(NamedTuple):
    """Half-open range of the cells of one row, or, if not `readable`, of cells that do not make
    whole rows.
    """

    start: int
    stop: int
    readable: bool


def align(cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Cut `cells` into rows of one cell per field.

    The spans cover all cells in order. Time is linear in the cells.
    """
    width = len(fields)
    good = find_well_shaped(cells, fields)
    if len(cells) % width == 0 and all(good[start] for start in range(0, len(cells), width)):
        return [RowSpan(start, start + width, True) for start in range(0, len(cells), width)]
    spans: list[RowSpan] = []
    position = 0
    for start in [*_find_trusted(good, width), len(cells)]:
        if start > position:
            # Cells between trusted rows are rows too, if each has at most one cell of the wrong
            # shape.
            rows = [RowSpan(place, place + width, True) for place in range(position, start, width)]
            is_whole = (start - position) % width == 0 and all(
                _count_misfits(row, cells, fields) <= 1 for row in rows
            )
            spans += rows if is_whole else [RowSpan(position, start, False)]
        if start < len(cells):
            spans.append(RowSpan(start, start + width, True))
        position = start + width
    return _drop_doubtful_neighbours(spans, cells, fields)


def _find_trusted(good: Sequence[bool], width: int) -> list[int]:
    """Return the starts of the rows that are part of every cut with the fewest cells left over.

    A row is part of all best cuts if the best cuts before it, times those after it, are as many as
    all best cuts.
    """
    size = len(good)
    before = _count_best_cuts(good, width)
    mirrored = [start + width <= size and good[size - width - start] for start in range(size)]
    after = _count_best_cuts(mirrored, width)[::-1]
    min_left_over, cuts = before[size]
    return [
        start
        for start in range(size)
        if good[start]
        and before[start][0] + after[start + width][0] == min_left_over
        and before[start][1] * after[start + width][1] % MODULUS == cuts
    ]


def _count_best_cuts(good: Sequence[bool], width: int) -> list[tuple[int, int]]:
    """Return for each number of cells from the start the fewest left over, and in how many cuts,
    modulo a prime.
    """
    best = [(0, 1)]
    for end in range(1, len(good) + 1):
        left_over, cuts = best[end - 1]
        options = [(left_over + 1, cuts)]
        if end >= width and good[end - width]:
            options.append(best[end - width])
        fewest = min(left_over for left_over, _ in options)
        best.append(
            (fewest, sum(cuts for left_over, cuts in options if left_over == fewest) % MODULUS)
        )
    return best


def _count_misfits(row: RowSpan, cells: Sequence[str], fields: Sequence[str]) -> int:
    return sum(
        not has_shape(cells[row.start + column], field) for column, field in enumerate(fields)
    )


def _drop_doubtful_neighbours(
    spans: Sequence[RowSpan], cells: Sequence[str], fields: Sequence[str]
) -> list[RowSpan]:
    """Join rows to an unreadable span next to them that may share lines with them."""
    merged: list[RowSpan] = []
    doubtful = [_may_share_lines(span, cells, fields) for span in spans]
    for place, span in enumerate(spans):
        spoiled = any(doubtful[max(place - 1, 0) : place + 2])
        if spoiled and merged and not merged[-1].readable:
            merged[-1] = RowSpan(merged[-1].start, span.stop, False)
        else:
            merged.append(RowSpan(span.start, span.stop, span.readable and not spoiled))
    return merged


def _may_share_lines(span: RowSpan, cells: Sequence[str], fields: Sequence[str]) -> bool:
    """Check whether rows next to an unreadable span may hold lines of it.

    They do not if the span lacks one line, nor if it has the length of whole rows and nearly their
    shape.
    """
    width = len(fields)
    over = (span.stop - span.start) % width
    if span.readable or over:
        return not span.readable and over != width - 1
    rows = (RowSpan(start, start + width, False) for start in range(span.start, span.stop, width))
    return any(_count_misfits(row, cells, fields) >= MIN_MISFITS_OF_A_SHIFTED_ROW for row in rows)


Block = list[tuple[str, str]]
"""Consecutive lines, each with its place, up to an empty line."""


def read_page_text(text: str, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read every table of the text whose header is one of `headers`.

    An empty line ends a table; a line of U+00A0 or of zero-width characters is a blank cell. A row
    that lost or gained a line becomes a problem; the rows around it are kept if only one alignment
    of the lines explains them. Raises UnrecognisedDocumentError if no header resembles a known one.
    """
    assembler = Assembler(headers)
    for block in _split_blocks(text):
        before = assembler.count
        if any(delimiter in line for _, line in block for delimiter in DELIMITERS):
            _read_delimited(block, assembler)
        _read_one_cell_a_line(block, assembler)
        # rows that an empty line or a lost header has cut off from their table
        if before == assembler.count:
            lines = [clean_cell(line) for _, line in block]
            split = [
                clean_cell(cell) for _, line in block for cell in split_line(line, is_fenced(line))
            ]
            if contains_row(lines, headers) or contains_row(split, headers):
                assembler.add_header_problem(block[0][0], NO_HEADER)
    return assembler.finish()


def _split_blocks(text: str) -> Iterator[Block]:
    block: Block = []
    for number, line in enumerate(
        text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1
    ):
        if line.strip(" \t\f\v"):
            block.append((f"line {number}", line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _read_delimited(block: Block, assembler: Assembler) -> None:
    """Add the tables of lines that pipes or tabs divide into cells."""
    lines = [(place, line) for place, line in block if not RULE.fullmatch(line)]
    names = [[clean_cell(cell) for cell in split_line(line, is_fenced(line))] for _, line in lines]
    # a known header anywhere comes before one that is nearly known
    for recognise in (find_headers, explain_mismatch):
        start = next(
            (i for i, columns in enumerate(names) if recognise(columns, assembler.headers)), None
        )
        if start is not None:
            fenced = is_fenced(lines[start][1])
            rows = [(place, split_line(line, fenced)) for place, line in lines]
            grid = [(place, _make_row(cells, [place] * len(cells))) for place, cells in rows]
            assembler.add_grid(lines[start][0], grid)
            return


def is_fenced(line: str) -> bool:
    """Check whether a line begins and ends with a pipe, as in Markdown, or next to a blank cell."""
    bare = line.strip(" ")
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def split_line(line: str, fenced: bool) -> list[str]:
    """Return the cells of a line.

    Outer pipes divide no cells if the header has them too (`fenced`).
    """
    delimiter = next((delimiter for delimiter in DELIMITERS if delimiter in line), None)
    cells = line.split(delimiter) if delimiter else [line]
    return cells[1:-1] if delimiter == "|" and fenced and is_fenced(line) else cells


def _read_one_cell_a_line(block: Block, assembler: Assembler) -> None:
    """Add the table whose header is the first run of lines that is a known one."""
    headers = assembler.headers
    keys = {key for header in headers for key in header.keys}
    lines = [clean_cell(line) for _, line in block]
    known = [normalise_header(line) in keys for line in lines]
    widths = sorted({len(header.fields) for header in headers}, reverse=True)
    for start in (i for i, is_name in enumerate(known) if is_name):
        for width in widths:
            columns = lines[start : start + width]
            if len(columns) == width and find_headers(columns, headers):
                # Rows above the header, and rows under a broken header there, would be lost without
                # a word.
                broken = _find_broken_header(lines[:start], known[:start], headers)
                if broken is not None and start - broken[1] > 1:
                    assembler.add_header_problem(block[broken[0]][0], broken[2])
                elif contains_row(lines[:start], headers):
                    assembler.add_header_problem(block[0][0], NO_HEADER)
                _align_rows(block[start:], columns, assembler)
                return
    if broken := _find_broken_header(lines, known, headers):
        assembler.add_header_problem(block[broken[0]][0], broken[2])


def _align_rows(block: Block, columns: Sequence[str], assembler: Assembler) -> None:
    """Add the table of a block that starts with its header, one cell a line."""
    width = len(columns)
    header = block[:width]
    body = block[width:]
    fields = [find_headers(columns, assembler.headers)[0].field_of(name) for name in columns]
    grid = [(header[0][0], _make_row(columns, [place for place, _ in header]))]
    for span in align([clean_cell(line) for _, line in body], fields):
        places, lines = zip(*body[span.start : span.stop], strict=True)
        problem = (
            None
            if span.readable
            else f"{len(lines)} lines that are not the {width} cells of one row"
        )
        grid.append((places[0], _make_row(lines, places, problem)))
    assembler.add_grid(header[0][0], grid)


def _find_broken_header(
    lines: Sequence[str], known: Sequence[bool], headers: Sequence[TableHeader]
) -> tuple[int, int, str] | None:
    """Find the first run of names, one foreign line allowed between two of them, that is nearly a
    header.

    Return the first line, the line after the last, and what is wrong with them.
    """
    stop = 0
    for start in (i for i, is_name in enumerate(known) if is_name):
        if start < stop:
            continue
        stop = start
        while stop < len(known) and (known[stop] or (stop + 1 < len(known) and known[stop + 1])):
            stop += 1
        if message := explain_mismatch(lines[start:stop], headers):
            return start, stop, message
    return None


def _make_row(lines: Sequence[str], places: Sequence[str], problem: str | None = None) -> RawRow:
    lifted = [lift_footnote(clean(line)) for line in lines]
    return RawRow(
        tuple(text for text, _ in lifted), tuple(mark for _, mark in lifted), tuple(places), problem
    )
