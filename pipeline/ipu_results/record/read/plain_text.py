"""Read the tables of a plain text: of a page that a browser saved as text, or of a paper.

A table is in one of three forms. Lines that pipes or tabs divide into cells. One cell a line, under
a header of one name a line. Or, in a paper, column by column with other text between: a name and
its batch sizes, later another name and its figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import NamedTuple

from ipu_results.record.read.assemble import NO_HEADER, Assembler, PlacedRow, RawRow
from ipu_results.record.read.document import (
    Headers,
    MetadataItem,
    ParsedDocument,
    SourceTable,
    Words,
)
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.papers import (
    LABEL_FIELDS,
    is_caption,
    known_names,
    mentions_measure,
    refuse_incomplete_tables,
    split_metadata,
)
from ipu_results.record.read.shapes import DISTINCTIVE_FIELD, contains_row, find_well_shaped
from ipu_results.record.read.text import clean_cell, decode, lift_footnote, spell_out
from ipu_results.schema.vocabulary import (
    explain_mismatch,
    find_headers,
    normalise_header,
)

RULE = re.compile(r"[|\s:+-]+")  # a line between the rows, as in Markdown
MIN_LABELS_OF_A_SERIES = 3  # two numbers may be in any ratio


class TextLine(NamedTuple):
    """A line of a text, whole and divided into cells. An empty line, which ends a table, has no
    cells; a line of another blank, such as U+00A0, is a blank cell.
    """

    place: str
    text: str
    cells: tuple[str, ...]


def split_lines(text: str) -> list[TextLine]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [
        TextLine(f"line {number}", spell_out(line), tuple(map(spell_out, _split_cells(line))))
        for number, line in enumerate(lines, start=1)
    ]


def _split_cells(line: str) -> list[str]:
    """Divide a line at its pipes, or else at its tabs. A pipe at both ends is a frame."""
    # a line of another blank, such as U+00A0, is a blank cell
    if not line.strip(" \t\f\v"):
        return []
    if "|" not in line:
        return line.split("\t")
    bare = line.strip(" ")
    is_framed = len(bare) > 1 and bare.startswith("|") and bare.endswith("|")
    if is_framed:
        return bare[1:-1].split("|")
    return line.split("|")


def read_plain_text(data: bytes, headers: Headers) -> ParsedDocument:
    """Read every table whose header is one of `headers`; those whose rows are joined may be column
    by column.

    Raises DamagedDocumentError for bytes that are no text, and UnrecognisedDocumentError if no
    header resembles a known one.
    """
    lines = split_lines(decode(data))
    joined = [header for header in headers if header.joins]
    others = [header for header in headers if not header.joins]
    assembler = Assembler(headers)
    for block in _split_blocks(lines, others):
        place = block.lines[0].place
        if block.width:
            assembler.add_grid(place, _cut_block(block, others))
        else:
            assembler.add_grid(place, _list_rows(block))
            _tell_lost_rows(block, others, assembler)
    _pair_columns(lines, known_names(joined), assembler)
    document = assembler.finish()
    document = replace(
        document,
        tables=tuple(_add_caption(table, lines, joined) for table in document.tables),
        metadata=tuple(_list_metadata(lines)) if joined else (),
    )
    document = refuse_incomplete_tables(document, headers)
    # last, for the rows of a refused table are words again
    return replace(document, context=tuple(_list_context(lines, document)))


def _list_metadata(lines: Sequence[TextLine]) -> Iterator[MetadataItem]:
    for line in lines:
        item = split_metadata(line.text)
        if item:
            yield MetadataItem(*item, line.place)


def _list_context(lines: Sequence[TextLine], document: ParsedDocument) -> Iterator[Words]:
    """Yield the cells of all lines that are of no row that was read, but no names of columns."""
    read = {item.locator for item in document.metadata}
    names = {""}
    for table in document.tables:
        names.update(table.columns)
        for row in table.rows:
            read.update(row.cell_locators or [row.locator])
    for line in lines:
        if line.place not in read:
            for cell in line.cells:
                if clean_cell(cell) not in names:
                    yield Words(line.place, cell)


class TextBlock(NamedTuple):
    """Lines that follow one another, and the number of names of a header of one name a line that
    they begin with, 0 for none.
    """

    lines: Sequence[TextLine]
    width: int


def _split_blocks(lines: Sequence[TextLine], headers: Headers) -> Iterator[TextBlock]:
    """Yield the blocks of a text: each goes up to an empty line or the next header of one name a
    line.
    """
    known = known_names(headers)
    keys = [normalise_header(clean_cell(line.text)) for line in lines]
    start = 0
    width = 0  # of the header at the start
    for number, line in enumerate(lines):
        following = _find_width(keys, number, headers, known)
        # the names of one header may begin with those of another
        is_header = following > 0 and number - start >= width
        if line.cells and not is_header and number > start:
            continue
        if number > start:
            yield TextBlock(lines[start:number], width)
        start = number if line.cells else number + 1
        width = following
    if start < len(lines):
        yield TextBlock(lines[start:], width)


def _find_width(keys: Sequence[str], start: int, headers: Headers, known: frozenset[str]) -> int:
    """Return the size of the largest header that begins at a place; `known` are all its names."""
    width = 0
    if keys[start] not in known:
        return width
    for header in headers:
        size = len(header.keys)
        if size > width and header.keys == set(keys[start : start + size]):
            width = size
    return width


def _list_rows(block: TextBlock) -> Iterator[PlacedRow]:
    """Yield the rows of lines that are divided into cells."""
    for line in block.lines:
        if not RULE.fullmatch(line.text):
            yield line.place, _make_row(line.cells)


def _make_row(texts: Sequence[str], places: tuple[str, ...] | None = None) -> RawRow:
    cells = []
    marks = []
    for text in texts:
        cell, mark = lift_footnote(text)
        cells.append(cell)
        marks.append(mark)
    return RawRow(tuple(cells), tuple(marks), places)


def _cut_block(block: TextBlock, headers: Headers) -> Iterator[PlacedRow]:
    """Yield the rows of lines that are one cell each, of which the first are the header."""
    names = [line.text for line in block.lines[: block.width]]
    body = block.lines[block.width :]
    columns = [clean_cell(name) for name in names]
    header = find_headers(columns, headers)[0]
    yield block.lines[0].place, _make_row(names)
    cells = [clean_cell(line.text) for line in body]
    for span in cut_rows(cells, [header.field_of(name) for name in columns]):
        part = body[span.start : span.stop]
        row = _make_row([line.text for line in part], tuple(line.place for line in part))
        if not span.is_row:
            problem = f"{len(part)} lines that are not the {block.width} cells of one row"
            row = row._replace(problem=problem)
        yield part[0].place, row


class RowSpan(NamedTuple):
    """The cells of one row, or cells that do not make a row: from `start` up to, but not with,
    `stop`.
    """

    start: int
    stop: int
    is_row: bool


def cut_rows(cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Cut cells into rows of one cell a field, as spans that cover all cells in order.

    A row has the shapes of its fields, and so have the rows before and after it: a line that is
    lost or too many costs its row and those next to it. Without a field of a shape of its own
    nobody knows where a row begins; with one, no other row begins within such a row.
    """
    width = len(fields)
    starts = find_well_shaped(cells, fields) if DISTINCTIVE_FIELD in fields else []
    # of a row before and after each: the ends of the cells have such neighbours, too
    neighbours = {-width, len(cells), *starts}
    spans: list[RowSpan] = []
    position = 0
    for start in starts:
        if start - width not in neighbours or start + width not in neighbours:
            continue
        if position < start:
            spans.append(RowSpan(position, start, is_row=False))
        position = start + width
        spans.append(RowSpan(start, position, is_row=True))
    if position < len(cells):
        spans.append(RowSpan(position, len(cells), is_row=False))
    return spans


def _tell_lost_rows(block: TextBlock, headers: Headers, assembler: Assembler) -> None:
    """Record lines of one cell that are nearly a header, or rows without their header."""
    whole = [line for line in block.lines if len(line.cells) == 1]
    cells = [clean_cell(line.text) for line in whole]
    known = known_names(headers)
    names = [cell for cell in cells if normalise_header(cell) in known]
    message = explain_mismatch(names, headers)
    if message or find_headers(names, headers) or contains_row(cells, headers):
        assembler.add_header_problem(whole[0].place, message or NO_HEADER)


class PrintedColumn(NamedTuple):
    """A name that is alone on its line, and the figures that are alone on the lines below it."""

    name: TextLine
    figures: list[TextLine]
    others: list[TextLine]
    """Such lines that other text divides from the column: its end, perhaps, or a page number."""


def _pair_columns(lines: Sequence[TextLine], names: frozenset[str], assembler: Assembler) -> None:
    """Add the tables of each column of labels and the next column of figures."""
    labels: PrintedColumn | None = None
    for column in _list_columns(lines, names):
        if _labels_rows(column, assembler.headers):
            _refuse_column(labels, assembler)  # the labels before have no figures
            labels = column
        elif labels is None:
            _refuse_column(column, assembler)
        elif column.figures or column.others:
            _add_pair(labels, column, assembler)
            labels = None
    _refuse_column(labels, assembler)


def _list_columns(lines: Sequence[TextLine], names: frozenset[str]) -> Iterator[PrintedColumn]:
    """Yield the columns in their order, each up to the next name or caption."""
    borders = []
    for number, line in enumerate(lines):
        if normalise_header(line.text) in names or is_caption(line.text):
            borders.append(number)
    for start, stop in pairwise([*borders, len(lines)]):
        below = lines[start + 1 : stop]
        figures = list(takewhile(lambda line: is_figure(line.text), below))
        others = [line for line in below[len(figures) :] if is_figure(line.text)]
        if not is_caption(lines[start].text):
            yield PrintedColumn(lines[start], figures, others)


def _labels_rows(column: PrintedColumn, headers: Headers) -> bool:
    name = column.name.text
    known = [header for header in headers if normalise_header(name) in header.keys]
    return any(header.field_of(name) in LABEL_FIELDS for header in known)


def _refuse_column(column: PrintedColumn | None, assembler: Assembler) -> None:
    """Record a column that lacks its other column; a name without figures is a heading."""
    if column is not None and column.figures:
        name = column.name.text
        message = f"no known column goes with {name!r}"
        assembler.add_header_problem(column.name.place, message, (name,))


def _add_pair(labels: PrintedColumn, figures: PrintedColumn, assembler: Assembler) -> None:
    columns = (labels.name.text, figures.name.text)
    place = labels.name.place
    headers = find_headers(columns, assembler.headers)
    if not headers:
        _refuse_column(labels, assembler)
        _refuse_column(figures, assembler)
        return
    rows = _pair_lines(labels, figures)
    if not rows:
        label_count = len(labels.figures)
        figure_count = len(figures.figures)
        reason = "labels-missing" if label_count < figure_count else "cells-missing"
        message = f"{label_count} labels and {figure_count} figures cannot be paired"
        assembler.refuse_table(headers[0].table, place, reason, message, columns)
        return
    grid = [(place, RawRow(columns))]
    for label, figure in rows:
        places = (label.place, figure.place)
        grid.append((figure.place, RawRow((label.text, figure.text), cell_locators=places)))
    assembler.add_grid(place, grid)


def _pair_lines(labels: PrintedColumn, figures: PrintedColumn) -> list[tuple[TextLine, TextLine]]:
    """Pair as many labels as figures in their order; none if it is not certain which belong
    together.

    Of figures all have a decimal point or none has: a page number has none. A text may have lost
    the last labels. They are blank, if those that are left are the first multiples of one number
    (2, 4, 6): a gap before them (4, 6, 8) or among them (1, 2, 4) could be anywhere.
    """
    # what other text divides from a column is a part of it or not
    all_figures = figures.figures + figures.others
    all_labels = labels.figures + labels.others
    for cells, others in ((figures.figures, figures.others), (all_figures, [])):
        if not _are_told_apart(cells, others):
            continue
        for names in (labels.figures, all_labels):
            if len(names) == len(cells) and _is_ascending(names):
                return list(zip(names, cells, strict=True))
    lost = len(figures.figures) - len(labels.figures)
    may_have_lost = lost > 0 and not labels.others and not figures.others
    if may_have_lost and _is_series(labels.figures) and _are_told_apart(figures.figures, []):
        blanks = [line._replace(text="") for line in figures.figures[-lost:]]
        return list(zip(labels.figures + blanks, figures.figures, strict=True))
    return []


def _are_told_apart(cells: Sequence[TextLine], others: Sequence[TextLine]) -> bool:
    """Check whether all cells have a decimal point and no other line has, or the reverse."""
    have_point = {"." in line.text for line in cells}
    others_have_point = {"." in line.text for line in others}
    return len(have_point) == 1 and have_point.isdisjoint(others_have_point)


def _is_ascending(labels: Sequence[TextLine]) -> bool:
    numbers = _parse_labels(labels)
    return all(low < high for low, high in pairwise([0, *numbers]))


def _is_series(labels: Sequence[TextLine]) -> bool:
    """Check whether labels are the first multiples of a number."""
    numbers = _parse_labels(labels)
    multiples = [numbers[0] * place for place in range(1, len(numbers) + 1)]
    return len(numbers) >= MIN_LABELS_OF_A_SERIES and numbers[0] > 0 and numbers == multiples


def _parse_labels(labels: Sequence[TextLine]) -> list[int]:
    """Return whole numbers, 0 for a label that is none."""
    return [int(line.text) if line.text.isdecimal() else 0 for line in labels]


def _add_caption(table: SourceTable, lines: Sequence[TextLine], headers: Headers) -> SourceTable:
    """Return the table with the caption that names its measure, unless several others do."""
    captions = set()
    for header in headers:
        if header.table == table.name:
            for line in lines:
                if is_caption(line.text) and mentions_measure(line.text, header, headers):
                    captions.add(line.text)
    return replace(table, caption=captions.pop()) if len(captions) == 1 else table
