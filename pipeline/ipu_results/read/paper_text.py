"""Read the tables of a paper from its plain text, in which the columns of a table may be far from
each other.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice, pairwise, takewhile
from typing import NamedTuple

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.ground.figures import is_figure
from ipu_results.read.document import (
    MetadataItem,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
)
from ipu_results.read.page_text import split_line
from ipu_results.read.text import (
    assign_captions,
    is_caption,
    join_lines,
    known_names,
    label_columns,
    label_names,
    match_header,
    mentions_measure,
    normalise_text,
    refuse_incomplete_tables,
    spell_out,
    split_metadata,
)
from ipu_results.schema.vocabulary import TableHeader

WIDE_BLANKS = re.compile(r"\t+|\s{2,}")
MIN_LABELS_OF_A_SERIES = 3  # two numbers may be in any ratio
# a caption that does not name the measure of a table is at most this many lines away from it
NEAR_LINES = 12
MIN_FIGURES_OF_A_COLUMN = 2  # under a name; with fewer it is a mere heading
MAX_CAPTION_LINES = 3  # what follows is prose


@dataclass(frozen=True, slots=True)
class TextLines:
    """The lines of a text, raw and cleaned, and what each of them is. Line numbers count from 1."""

    raw: tuple[str, ...]
    lines: tuple[str, ...]
    headers: Sequence[TableHeader]
    """The known headers."""
    names: frozenset[int]
    """Lines that are one name of a known header."""
    header_lines: dict[int, TableHeader]
    """Lines that are a whole header, such as `Batch size | Latency`."""
    caption_lines: frozenset[int]
    stacks: dict[int, tuple[int, ...]]
    """For a line with a name, the lines of names one under another from there on, unless no header
    has that many.
    """

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def cells(self, number: int) -> tuple[str, ...]:
        return _split_cells(self.raw[number - 1])

    def numbers_after(self, number: int) -> Iterator[int]:
        """Yield the lines up to the next name, header or caption."""
        for following in range(number + 1, len(self.lines) + 1):
            if (
                following in self.names
                or following in self.header_lines
                or following in self.caption_lines
            ):
                return
            yield following

    def parts_after(self, number: int) -> list[Part]:
        """Return the figures that are alone on their lines, in the parts into which other lines
        divide them.
        """
        parts: list[Part] = []
        previous = None
        for following in self.numbers_after(number):
            if is_figure(self.line(following)):
                if previous != following - 1:
                    parts.append([])
                parts[-1].append(Token(self.line(following), following))
                previous = following
        return parts

    def captions(self) -> dict[int, str]:
        """Return the captions by their first line, each up to a blank line, a header or a figure."""
        captions = {}
        for number in sorted(self.caption_lines):
            following = map(self.line, islice(self.numbers_after(number), MAX_CAPTION_LINES - 1))
            more = takewhile(
                lambda line: line and not is_figure(line) and not split_metadata(line), following
            )
            captions[number] = join_lines([self.line(number), *more])
        return captions


def index_lines(text: str, headers: Sequence[TableHeader]) -> TextLines:
    raw = tuple(text.replace("\r\n", "\n").split("\n"))
    lines = tuple(map(spell_out, raw))
    known = known_names(headers)
    names = frozenset(
        number for number, line in enumerate(lines, 1) if normalise_text(line) in known
    )
    captions = frozenset(number for number, line in enumerate(lines, 1) if is_caption(line))
    rows = ((number, _split_cells(line)) for number, line in enumerate(raw, 1))
    matches = ((number, match_header(cells, headers)) for number, cells in rows if len(cells) > 1)
    header_lines = {number: header for number, header in matches if header}
    stacks = _find_stacks(lines, names, max((len(header.keys) for header in headers), default=0))
    return TextLines(raw, lines, headers, names, header_lines, captions, stacks)


def _find_stacks(
    lines: Sequence[str], names: frozenset[int], max_names: int
) -> dict[int, tuple[int, ...]]:
    """Collect the names from each name on, from the last line up, so that each line is visited
    once.
    """
    stacks: dict[int, tuple[int, ...]] = {}
    below: tuple[int, ...] = ()
    for number in range(len(lines), 0, -1):
        if number in names:
            below = (number, *below)[: max_names + 1]
            if len(below) <= max_names:
                stacks[number] = below
        elif lines[number - 1]:
            below = ()
    return stacks


def _split_cells(line: str) -> tuple[str, ...]:
    """Split a row at `|` (an outer pair is a frame), or at tabs or wide blanks."""
    row = line.strip()
    return tuple(
        map(spell_out, split_line(row, fenced=True) if "|" in row else WIDE_BLANKS.split(row))
    )


class Token(NamedTuple):
    """A cell that is alone on its line, with the number of that line."""

    text: str
    line: int


class Ambiguity(NamedTuple):
    """Why the rows are ambiguous: a reason code and a message."""

    reason: str
    message: str


Part = list[Token]
"""Tokens on consecutive lines: other lines divide a column into parts."""
Rows = tuple[tuple[Token, ...], ...]


def pair_columns(labels: Sequence[Part], figures: Sequence[Part]) -> Rows | Ambiguity:
    """Return rows (label, figure) of two columns.

    Equal counts pair in order, the fewest parts first. A shorter label column is filled with blanks
    if it is a whole beginning of a regular series. Everything else is refused.
    """
    # The fewest parts with equal counts are paired; if these are not columns, more parts are not
    # either.
    count = min({*accumulate(map(len, labels))} & {*accumulate(map(len, figures))}, default=0)
    first = _first_tokens(labels, count)
    second = _first_tokens(figures, count)
    # All figures of one column have a decimal point, or none has. A page number has none.
    if count and _is_ascending(first) and len(_find_shapes(second)) <= 1:
        return tuple(zip(first, second, strict=True))
    shapes = _find_shapes(figures[0])
    whole = [part for part in figures if len(shapes | _find_shapes(part)) == 1]
    series = _find_series(labels, len(figures[0]))
    if series and len(whole) == 1:
        lost = [Token("", token.line) for token in whole[0][len(series) :]]
        return tuple(zip([*series, *lost], whole[0], strict=True))
    label_count = sum(map(len, labels))
    figure_count = sum(map(len, whole))
    reason = "cells-missing" if figure_count < label_count else "labels-missing"
    return Ambiguity(reason, f"{label_count} labels and {figure_count} figures cannot be paired")


def cut_rows(tokens: Sequence[Token], label: int, width: int) -> Rows | Ambiguity:
    """Cut cells that follow one another into rows of `width`, of which column `label` labels the
    row.

    Refused unless the cells fill the rows, the labels ascend, and labels and figures differ in kind
    (2 and 1.36) or the labels are regular: otherwise a cell may be lost and what follows it
    shifted.
    """
    rows = tuple(tuple(tokens[start : start + width]) for start in range(0, len(tokens), width))
    if not rows or len(rows[-1]) != width:
        return Ambiguity("cells-missing", f"{len(tokens)} cells do not fill rows of {width}")
    labels = [row[label] for row in rows]
    others = [token for row in rows for column, token in enumerate(row) if column != label]
    if not _is_ascending(labels) or not (
        all("." in token.text for token in others) or _is_regular(labels)
    ):
        return Ambiguity("cells-missing", "the labels are not a series, so a cell may be missing")
    return rows


def _find_series(labels: Sequence[Part], limit: int) -> list[Token]:
    """Return as many parts as possible that, with fewer than `limit` labels, are the first
    multiples of one number.

    A gap would show in 2, 4, 6. It would not in 4, 6, 8 (2 may be lost) nor in 1, 2, 4 (3 may be
    lost).
    """
    step = length = 0
    for label in _first_tokens(labels, limit - 1):
        number = int(label.text) if label.text.isdecimal() else 0
        step = step or number
        if not number or number != step * (length + 1):
            break
        length += 1
    count = max((end for end in accumulate(map(len, labels)) if end <= length), default=0)
    return _first_tokens(labels, count) if count >= MIN_LABELS_OF_A_SERIES else []


def _first_tokens(parts: Sequence[Part], count: int) -> list[Token]:
    return [*chain(*parts)][:count]


def _find_shapes(figures: Sequence[Token]) -> set[bool]:
    return {"." in figure.text for figure in figures}


def _is_ascending(labels: Sequence[Token]) -> bool:
    are_numbers = all(label.text.isdecimal() for label in labels)
    return are_numbers and all(int(low.text) < int(high.text) for low, high in pairwise(labels))


def _is_regular(labels: Sequence[Token]) -> bool:
    """Check whether ascending labels go up by one step or by one ratio."""
    numbers = [int(label.text) for label in labels]
    steps = {high - low for low, high in pairwise(numbers)}
    triples = zip(numbers, numbers[1:], numbers[2:], strict=False)
    return len(steps) <= 1 or all(low * high == middle * middle for low, middle, high in triples)


@dataclass(slots=True)
class TextTable:
    """A table of the text with its first and last line; `header` is None if no known header has
    these columns.
    """

    header: TableHeader | None
    columns: tuple[str, ...]
    first: int
    last: int
    rows: list[SourceRow] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)
    """Problems without the name of the table, which may not be known yet."""

    @property
    def locator(self) -> str:
        return f"lines {self.first}-{self.last}" if self.first < self.last else f"line {self.first}"

    def refuse(self, reason: str, message: str) -> TextTable:
        """Replace all rows by one problem of the whole table."""
        self.rows.clear()
        self.problems = [ReadProblem("", None, self.locator, reason, message, self.columns)]
        return self

    def fill(self, rows: Rows | Ambiguity) -> TextTable:
        if isinstance(rows, Ambiguity):
            return self.refuse(*rows)
        for number, tokens in enumerate(rows, 1):
            cells = tuple(token.text for token in tokens)
            places = tuple(f"line {token.line}" for token in tokens)
            self.rows.append(
                SourceRow(number, cells, f"line {max(token.line for token in tokens)}", places)
            )
        return self


def read_paper_text(text: str, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read the tables whose column names are those of one of `headers`, in one of three forms.

    One row a line, with cells divided by `|`, tabs or wide blanks. One cell a line, row by row
    under the stacked header. Or one column after the other, with other text in between: `Batch
    size` and its labels, later `Latency` and its figures.

    In the last form a column may have fewer labels than figures. The others are lost at the end,
    and become `""`, if those that are left are the first multiples of one number (2, 4, 6). A gap
    before them (4, 6, 8) or among them (1, 2, 4) could be anywhere, so the table is a problem. So
    is one with fewer figures than labels. Figures that other lines divide from their column count
    only if they complete it exactly.

    Raises DamagedDocumentError for an empty text, UnrecognisedDocumentError if it has no table.
    """
    if not text.strip():
        raise DamagedDocumentError("is empty")
    lines = index_lines(text, headers)
    tables = [*_read_row_by_row(lines), *_read_cell_by_cell(lines), *_read_column_by_column(lines)]
    if not tables:
        raise UnrecognisedDocumentError("has no table with a known header")
    tables.sort(key=lambda table: table.first)
    seen: dict[str, int] = {}  # only the first table of each header is kept
    for table in tables:
        if table.header is not None and table.header.table in seen:
            table.refuse(
                "duplicate-table",
                f"the table was already read from line {seen[table.header.table]}",
            )
        elif table.header is not None and table.rows:
            seen[table.header.table] = table.first
    captions = _find_captions(lines, tables)
    read = tuple(
        SourceTable.from_rows(
            table.header.table, table.columns, table.rows, table.locator, captions.get(number, "")
        )
        for number, table in enumerate(tables)
        if table.header is not None and table.rows
    )
    items = ((number, split_metadata(line)) for number, line in enumerate(lines.lines, 1))
    metadata = tuple(MetadataItem(*item, f"line {number}") for number, item in items if item)
    problems = tuple(_name_problems(tables, headers))
    return refuse_incomplete_tables(ParsedDocument(read, problems, metadata), headers)


def _read_row_by_row(lines: TextLines) -> Iterator[TextTable]:
    """Yield the tables with one row a line."""
    for number, header in lines.header_lines.items():
        table = TextTable(header, lines.cells(number), number, number)
        for following in lines.numbers_after(number):
            _add_row(table, header, lines.cells(following), following)
        yield (
            table
            if table.rows or table.problems
            else table.refuse("cells-missing", "no rows under the header")
        )


def _add_row(table: TextTable, header: TableHeader, cells: tuple[str, ...], line: int) -> None:
    """Add a line if all its cells are figures; a lost label is an empty cell."""
    filled = list(filter(None, cells))
    is_page_number = len(cells) == 1 and line > table.last + 1
    if not filled or is_page_number or not all(map(is_figure, filled)):
        return
    table.last = line
    number = len(table.rows) + len(table.problems) + 1
    lost = {column for column, cell in enumerate(cells) if not cell}
    if len(cells) == len(table.columns) and lost <= label_columns(table.columns, header):
        table.rows.append(SourceRow(number, cells, f"line {line}"))
    else:
        message = f"has {len(filled)} of {len(table.columns)} cells"
        table.problems.append(ReadProblem("", number, f"line {line}", "row-width", message, cells))


def _read_cell_by_cell(lines: TextLines) -> Iterator[TextTable]:
    """Yield the tables with the names of the header one under another, then the cells one under
    another.
    """
    for number in sorted(lines.stacks):
        columns, header = _match_stack(lines, number)
        if header is None:
            continue
        last = lines.stacks[number][-1]
        tokens = [*chain(*lines.parts_after(last))]
        table = TextTable(header, columns, number, tokens[-1].line if tokens else last)
        label = min(label_columns(columns, header), default=0)
        yield table.fill(cut_rows(tokens, label, len(columns)))


def _match_stack(lines: TextLines, number: int) -> tuple[tuple[str, ...], TableHeader | None]:
    """Return the names one under another from a line on, and the known header that they are."""
    columns = tuple(map(lines.line, lines.stacks[number]))
    return columns, match_header(columns, lines.headers)


def _read_column_by_column(lines: TextLines) -> Iterator[TextTable]:
    """Yield the tables with the labels under their name and, anywhere later, the figures under
    theirs.
    """
    stacked = {
        line
        for number, stack in lines.stacks.items()
        if _match_stack(lines, number)[1]
        for line in stack
    }
    labelling = label_names(lines.headers)
    labels: int | None = None
    for number in sorted(lines.names - stacked):
        if normalise_text(lines.line(number)) in labelling:
            if labels is not None:
                yield from _refuse_column(lines, labels)
            labels = number
        elif labels is not None and (figures := lines.parts_after(number)):
            columns = (lines.line(labels), lines.line(number))
            rows = pair_columns(lines.parts_after(labels), figures)
            last = (
                rows[-1][-1].line
                if rows and not isinstance(rows, Ambiguity)
                else figures[-1][-1].line
            )
            yield TextTable(match_header(columns, lines.headers), columns, labels, last).fill(rows)
            labels = None
        elif labels is None:
            yield from _refuse_column(lines, number)
    if labels is not None:
        yield from _refuse_column(lines, labels)


def _refuse_column(lines: TextLines, number: int) -> Iterator[TextTable]:
    """Yield a refused table for a column that lacks its other column; a name without figures is a
    mere heading.
    """
    tokens = [*chain(*lines.parts_after(number))]
    if len(tokens) < MIN_FIGURES_OF_A_COLUMN:
        return
    name = lines.line(number)
    candidates = [header for header in lines.headers if normalise_text(name) in header.keys]
    table = TextTable(
        candidates[0] if len(candidates) == 1 else None, (name,), number, tokens[-1].line
    )
    yield table.refuse("unknown-header", f"no known column goes with {name!r}")


def _find_captions(lines: TextLines, tables: Sequence[TextTable]) -> dict[int, str]:
    """Return the caption of each table, by its number: the nearest that names its measure, or else
    one close by.

    Only the first table of each header may have a caption far away, so that the time is linear in
    the tables.
    """
    captions = lines.captions()
    numbers = list(captions)
    naming = {
        header: {
            line for line, text in captions.items() if mentions_measure(text, header, lines.headers)
        }
        for header in lines.headers
    }
    offers: list[tuple[bool, float, int, int]] = []
    seen: set[TableHeader] = set()
    for place, table in enumerate(tables):
        named = naming[table.header] if table.header else set()
        candidates = set(named) if table.rows or table.header not in seen else set()
        for edge in (table.first, table.last):
            near = slice(
                bisect_left(numbers, edge - NEAR_LINES), bisect_right(numbers, edge + NEAR_LINES)
            )
            candidates |= set(numbers[near])
        for line in candidates:
            offers.append(
                (
                    line not in named,
                    min(abs(line - table.first), abs(line - table.last)),
                    place,
                    line,
                )
            )
        seen |= {table.header} if table.header else set()
    return {place: captions[line] for place, line in assign_captions(offers).items()}


def _name_problems(
    tables: Sequence[TextTable], headers: Sequence[TableHeader]
) -> Iterator[ReadProblem]:
    """Yield all problems, each with the name of its table; without a known header, that of the
    first missing table.
    """
    present = {table.header.table for table in tables if table.header is not None}
    missing = [header.table for header in headers if header.table not in present]
    for table in tables:
        name = (
            table.header.table if table.header is not None else (missing or [headers[0].table])[0]
        )
        if table.header is None:
            missing = missing[1:]
        for problem in table.problems:
            yield replace(problem, table_name=name)
