"""Tables of a page that a browser saved as text: one cell a line, or rows of `a | b | c`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read.align import align, holds_row
from ipu_results.read.assemble import NO_HEADER, Assembler, RawRow
from ipu_results.read.reading import ParsedDocument, ReadProblem
from ipu_results.read.text import clean, lift_mark
from ipu_results.schema.layouts import TableHeader, explain_mismatch, find_headers, normalise_header

RULE = re.compile(r"[|\s:+-]+")
DELIMITERS = ("|", "\t")
ROW_PLACE = "line {}"
Block = list[tuple[int, str]]


class BrokenHeader(NamedTuple):
    """Lines of names, half open, that are nearly a header, and what is wrong with them."""

    start: int
    stop: int
    message: str


def read_page_text(text: str, layouts: Sequence[TableHeader]) -> ParsedDocument:
    """Every table of the text whose header is one of `layouts`.

    An empty line ends a table; a line of U+00A0 or of zero-width characters is a blank cell. A row that lost or
    gained a line becomes a Problem; the rows around it are kept where only one alignment of the lines explains them.
    Raises UnrecognisedDocumentError where no header resembles a layout.
    """
    assembler = Assembler(layouts)
    for block in _blocks(text):
        known = len(assembler.tables) + len(assembler.problems)
        if any(delimiter in line for _, line in block for delimiter in DELIMITERS):
            _delimited(block, layouts, assembler)
        _one_cell_a_line(block, layouts, assembler)
        if known == len(assembler.tables) + len(assembler.problems):
            _without_header(block, layouts, assembler)
    if not assembler.found:
        raise UnrecognisedDocumentError("holds no table with a known header")
    return assembler.reading()


def _blocks(text: str) -> Iterator[Block]:
    """Runs of lines between empty ones, each line with its number."""
    block: Block = []
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        if line.strip(" \t\f\v"):
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _delimited(block: Block, layouts: Sequence[TableHeader], assembler: Assembler) -> None:
    lines = [(number, line) for number, line in block if not RULE.fullmatch(line)]
    names = [[_text(cell) for cell in _split(line, _is_fenced(line))] for _, line in lines]
    start = next((i for i, header in enumerate(names) if find_headers(header, layouts)), None)
    if start is None:
        start = next((i for i, header in enumerate(names) if explain_mismatch(header, layouts)), None)
    if start is not None:
        fenced = _is_fenced(lines[start][1])
        rows = [(number, _split(line, fenced)) for number, line in lines]
        grid = [(ROW_PLACE.format(number), _raw_row(cells, [number] * len(cells))) for number, cells in rows]
        assembler.add(grid[start][0], grid)


def _without_header(block: Block, layouts: Sequence[TableHeader], assembler: Assembler) -> None:
    """Rows that an empty line or a lost header has cut off from their table must not be lost in silence."""
    for cells in ([line for _, line in block], [cell for _, line in block for cell in _split(line, _is_fenced(line))]):
        if holds_row([_text(cell) for cell in cells], layouts):
            place = ROW_PLACE.format(block[0][0])
            assembler.problems.append(ReadProblem("", None, place, "unknown-header", NO_HEADER))
            return


def _is_fenced(line: str) -> bool:
    """Whether a line begins and ends with a pipe: with one of a markdown table, or beside a blank cell."""
    bare = line.strip(" ")
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def _split(line: str, fenced: bool) -> list[str]:
    """Cells of a line; the header tells whether the table's lines are fenced."""
    delimiter = next((d for d in DELIMITERS if d in line), None)
    if delimiter is None:
        return [line]
    cells = line.split(delimiter)
    return cells[1:-1] if delimiter == "|" and fenced and _is_fenced(line) else cells


def _one_cell_a_line(block: Block, layouts: Sequence[TableHeader], assembler: Assembler) -> None:
    names = {key for layout in layouts for key in layout.keys}
    lines = [_text(line) for _, line in block]
    known = [normalise_header(line) in names for line in lines]
    widths = sorted({len(layout.fields) for layout in layouts}, reverse=True)
    for start in (i for i, is_name in enumerate(known) if is_name):
        for width in widths:
            header = lines[start : start + width]
            if len(header) == width and find_headers(header, layouts):
                _above(block[:start], known[:start], layouts, assembler)
                _aligned(block, start, width, layouts, assembler)
                return
    if broken := _broken_header(lines, known, layouts):
        place = ROW_PLACE.format(block[broken.start][0])
        assembler.problems.append(ReadProblem("", None, place, "unknown-header", broken.message))


def _above(block: Block, known: list[bool], layouts: Sequence[TableHeader], assembler: Assembler) -> None:
    """Rows above the header, and those under a broken one there, must not be lost in silence."""
    lines = [_text(line) for _, line in block]
    broken = _broken_header(lines, known, layouts)
    if broken is not None and len(lines) - broken.stop > 1:
        start, message = broken.start, broken.message
    elif holds_row(lines, layouts):
        start, message = 0, NO_HEADER
    else:
        return
    assembler.problems.append(ReadProblem("", None, ROW_PLACE.format(block[start][0]), "unknown-header", message))


def _broken_header(lines: list[str], known: list[bool], layouts: Sequence[TableHeader]) -> BrokenHeader | None:
    """The first run of header names, one foreign line allowed between two of them, that is nearly a header."""
    stop = 0
    for start in (i for i, is_name in enumerate(known) if is_name):
        if start < stop:
            continue
        stop = start
        while stop < len(known) and (known[stop] or (stop + 1 < len(known) and known[stop + 1])):
            stop += 1
        if message := explain_mismatch(lines[start:stop], layouts):
            return BrokenHeader(start, stop, message)
    return None


def _aligned(block: Block, start: int, width: int, layouts: Sequence[TableHeader], assembler: Assembler) -> None:
    header, body = block[start : start + width], block[start + width :]
    columns = [_text(line) for _, line in header]
    fields = [find_headers(columns, layouts)[0].field_of(name) for name in columns]
    grid = [(ROW_PLACE.format(header[0][0]), _raw_row(columns, [n for n, _ in header]))]
    for start_of_row, stop, readable in align([_text(line) for _, line in body], fields):
        numbers, lines = zip(*body[start_of_row:stop], strict=True)
        problem = None if readable else f"{len(lines)} lines that are not the {width} cells of one row"
        grid.append((ROW_PLACE.format(numbers[0]), replace(_raw_row(lines, numbers), problem=problem)))
    assembler.add(ROW_PLACE.format(header[0][0]), grid)


def _text(line: str) -> str:
    return lift_mark(clean(line))[0]


def _raw_row(lines: Sequence[str], numbers: Sequence[int]) -> RawRow:
    lifted = [lift_mark(clean(line)) for line in lines]
    return RawRow(
        tuple(text for text, _ in lifted),
        tuple(mark for _, mark in lifted),
        tuple(ROW_PLACE.format(number) for number in numbers),
    )
