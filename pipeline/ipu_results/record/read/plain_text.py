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

from ipu_results.record.read.document import (
    DISTINCTIVE_FIELD,
    NO_HEADER,
    Assembler,
    MetadataItem,
    ParsedDocument,
    RawRow,
    SourceTable,
    Words,
    contains_row,
    find_well_shaped,
)
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.text import (
    LABEL_FIELDS,
    clean_cell,
    decode,
    is_caption,
    known_names,
    lift_footnote,
    mentions_measure,
    refuse_incomplete_tables,
    spell_out,
    split_metadata,
)
from ipu_results.schema.vocabulary import (
    TableHeader,
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
    if not line.strip(" \t\f\v"):
        return []
    if "|" not in line:
        return line.split("\t")
    bare = line.strip(" ")
    is_framed = len(bare) > 1 and bare.startswith("|") and bare.endswith("|")
    return (bare[1:-1] if is_framed else line).split("|")


def read_plain_text(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read every table whose header is one of `headers`; those whose rows are joined may be column
    by column.

    Raises DamagedDocumentError for bytes that are no text, and UnrecognisedDocumentError if no
    header resembles a known one.
    """
    lines = split_lines(decode(data))
    joined = [header for header in headers if header.joins]
    others = [header for header in headers if not header.joins]
    assembler = Assembler(headers)
    for block, width in _split_blocks(lines, others):
        rows = _cut_block(block, width, others) if width else _list_rows(block)
        assembler.add_grid(block[0].place, rows)
        if not width:
            _tell_lost_rows(block, others, assembler)
    _pair_columns(lines, known_names(joined), assembler)
    document = assembler.finish()
    items = [(split_metadata(line.text), line.place) for line in lines if joined]
    metadata = tuple(MetadataItem(*item, place) for item, place in items if item)
    tables = tuple(_add_caption(table, lines, joined) for table in document.tables)
    document = replace(document, tables=tables, metadata=metadata)
    document = refuse_incomplete_tables(document, headers)
    return replace(document, context=_list_context(lines, document))


def _list_context(lines: Sequence[TextLine], document: ParsedDocument) -> tuple[Words, ...]:
    """Return the cells of all lines that are of no row that was read, and no names of its columns."""
    read = {item.locator for item in document.metadata}
    names = {""}
    for table in document.tables:
        names.update(table.columns)
        for row in table.rows:
            read.update(row.cell_locators or [row.locator])
    return tuple(
        Words(line.place, cell)
        for line in lines
        if line.place not in read
        for cell in line.cells
        if clean_cell(cell) not in names
    )


def _split_blocks(
    lines: Sequence[TextLine], headers: Sequence[TableHeader]
) -> Iterator[tuple[list[TextLine], int]]:
    """Yield lines that follow one another, up to an empty line or the next header of one name a
    line; with the number of names of such a header that they begin with, 0 for none.
    """
    known = known_names(headers)
    keys = [normalise_header(clean_cell(line.text)) for line in lines]
    block: list[TextLine] = []
    width = 0
    for number, line in enumerate(lines):
        # the names of one header may begin with those of another
        names = [header.keys for header in headers] if keys[number] in known else []
        found = [len(each) for each in names if each == {*keys[number : number + len(each)]}]
        begins = bool(found) and len(block) >= width  # not within the names of a header
        if block and (begins or not line.cells):
            yield block, width
            block = []
        if not block:
            width = max(found, default=0)
        if line.cells:
            block.append(line)
    if block:
        yield block, width


def _list_rows(block: Sequence[TextLine]) -> Iterator[tuple[str, RawRow]]:
    """Yield the rows of lines that are divided into cells."""
    for line in block:
        if not RULE.fullmatch(line.text):
            yield line.place, _make_row(line.cells)


def _make_row(texts: Sequence[str], places: tuple[str, ...] | None = None) -> RawRow:
    lifted = [lift_footnote(text) for text in texts]
    cells, marks = zip(*lifted, strict=True)
    return RawRow(cells, marks, places)


def _cut_block(
    block: Sequence[TextLine], width: int, headers: Sequence[TableHeader]
) -> Iterator[tuple[str, RawRow]]:
    """Yield the rows of lines that are one cell each, of which the first are the header."""
    texts = [line.text for line in block]
    cells = [clean_cell(text) for text in texts]
    header = find_headers(cells[:width], headers)[0]
    fields = [header.field_of(name) for name in cells[:width]]
    yield block[0].place, _make_row(texts[:width])
    for span in cut_rows(cells[width:], fields):
        part = slice(span.start + width, span.stop + width)
        places = tuple(line.place for line in block[part])
        row = _make_row(texts[part], places)
        problem = f"{len(places)} lines that are not the {width} cells of one row"
        yield places[0], row if span.is_row else row._replace(problem=problem)


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
    nobody knows where a row begins.
    """
    width = len(fields)
    is_distinctive = DISTINCTIVE_FIELD in fields
    shaped = find_well_shaped(cells, fields) if is_distinctive else [False] * len(cells)
    starts = [start for start, fits in enumerate(shaped) if fits]
    edges = {-width, len(cells), *starts}
    spans: list[RowSpan] = []
    position = 0
    for start in starts:
        overlapping = sum(shaped[max(start - width + 1, 0) : start + width]) > 1
        if overlapping or not {start - width, start + width} <= edges:
            continue
        if position < start:
            spans.append(RowSpan(position, start, False))
        position = start + width
        spans.append(RowSpan(start, position, True))
    if position < len(cells):
        spans.append(RowSpan(position, len(cells), False))
    return spans


def _tell_lost_rows(
    block: Sequence[TextLine], headers: Sequence[TableHeader], assembler: Assembler
) -> None:
    """Record lines of one cell that are nearly a header, or rows without their header."""
    whole = [line for line in block if len(line.cells) == 1]
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
            _refuse_column(labels, assembler)
            labels = column
        elif labels is None:
            _refuse_column(column, assembler)
        elif column.figures or column.others:
            _add_pair(labels, column, assembler)
            labels = None
    _refuse_column(labels, assembler)


def _list_columns(lines: Sequence[TextLine], names: frozenset[str]) -> Iterator[PrintedColumn]:
    """Yield the columns in their order, each up to the next name or caption."""
    borders = [
        number
        for number, line in enumerate(lines)
        if normalise_header(line.text) in names or is_caption(line.text)
    ]
    for start, stop in pairwise([*borders, len(lines)]):
        below = lines[start + 1 : stop]
        figures = [*takewhile(lambda line: is_figure(line.text), below)]
        others = [line for line in below[len(figures) :] if is_figure(line.text)]
        if not is_caption(lines[start].text):
            yield PrintedColumn(lines[start], figures, others)


def _labels_rows(column: PrintedColumn, headers: Sequence[TableHeader]) -> bool:
    name = column.name.text
    key = normalise_header(name)
    return any(header.field_of(name) in LABEL_FIELDS for header in headers if key in header.keys)


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
    if rows is None:
        counts = (len(labels.figures), len(figures.figures))
        reason = "labels-missing" if counts[0] < counts[1] else "cells-missing"
        message = f"{counts[0]} labels and {counts[1]} figures cannot be paired"
        assembler.refuse_table(headers[0].table, place, reason, message, columns)
        return
    grid = [(place, RawRow(columns))]
    for label, figure in rows:
        places = (label.place, figure.place)
        grid.append((figure.place, RawRow((label.text, figure.text), cell_locators=places)))
    assembler.add_grid(place, grid)


def _pair_lines(
    labels: PrintedColumn, figures: PrintedColumn
) -> list[tuple[TextLine, TextLine]] | None:
    """Pair as many labels as figures in their order, None if it is not certain which belong
    together.

    Of figures all have a decimal point or none has: a page number has none. A text may have lost
    the last labels. They are blank, if those that are left are the first multiples of one number
    (2, 4, 6): a gap before them (4, 6, 8) or among them (1, 2, 4) could be anywhere.
    """
    whole = figures.figures + figures.others
    for cells, others in ((figures.figures, figures.others), (whole, [])):
        shapes = {"." in line.text for line in cells}
        if len(shapes) != 1 or any(("." in line.text) in shapes for line in others):
            continue
        for names in (labels.figures, labels.figures + labels.others):
            if len(names) == len(cells) and _is_ascending(names):
                return [*zip(names, cells, strict=True)]
        lost = len(cells) - len(labels.figures)
        if lost > 0 and not labels.others and not figures.others and _is_series(labels.figures):
            blanks = [line._replace(text="") for line in cells[-lost:]]
            return [*zip(labels.figures + blanks, cells, strict=True)]
    return None


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


def _add_caption(
    table: SourceTable, lines: Sequence[TextLine], headers: Sequence[TableHeader]
) -> SourceTable:
    """Return the table with the caption that names its measure, unless several different ones do."""
    captions = {
        line.text
        for line in lines
        if is_caption(line.text)
        and any(
            mentions_measure(line.text, header, headers)
            for header in headers
            if header.table == table.name
        )
    }
    return replace(table, caption=captions.pop()) if len(captions) == 1 else table
