"""Read the tables of a paper from its plain text, in which the columns of a table may be far from each other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.document import ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.read.paper import terms
from ipu_results.read.paper.lines import Refusal, Rows, TextLines, cut_rows, index_lines, pair_columns
from ipu_results.schema.table_headers import TableHeader

NEAR_LINES = 12
"""A caption that does not name the measure of a table is at most this many lines away from it."""
MIN_FIGURES_OF_A_COLUMN = 2


@dataclass(slots=True)
class TextTable:
    """A table of the text with its first and last line; `header` is None if no known header has these columns."""

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

    def fill(self, rows: Rows | Refusal) -> TextTable:
        if isinstance(rows, Refusal):
            return self.refuse(rows.reason, rows.message)
        for number, tokens in enumerate(rows, 1):
            cells = tuple(token.text for token in tokens)
            places = tuple(f"line {token.line}" for token in tokens)
            self.rows.append(SourceRow(number, cells, f"line {max(token.line for token in tokens)}", places))
        return self


def read_paper_text(text: str, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read the tables whose column names are those of one of `headers`, in one of three forms.

    One row a line, with cells divided by `|`, tabs or wide blanks. One cell a line, row by row under the stacked
    header. Or one column after the other, with other text in between: `Batch size` and its labels, later `Latency` and
    its figures.

    In the last form a column may have fewer labels than figures. The others are lost at the end, and become `""`,
    if those that are left are the first multiples of one number (2, 4, 6). A gap before them (4, 6, 8) or among
    them (1, 2, 4) could be anywhere, so the table is a problem. So is one with fewer figures than labels.
    Figures that other lines divide from their column count only if they complete it exactly.

    Raises DamagedDocumentError for an empty text, UnrecognisedDocumentError if it has no table.
    """
    if not text.strip():
        raise DamagedDocumentError("is empty")
    lines = index_lines(text, headers)
    tables = [*_read_row_by_row(lines), *_read_cell_by_cell(lines), *_read_column_by_column(lines)]
    if not tables:
        raise UnrecognisedDocumentError("has no table with a known header")
    tables.sort(key=lambda table: table.first)
    _refuse_duplicates(tables)
    captions = _find_captions(lines, tables)
    read = tuple(
        SourceTable(table.header.table, table.columns, tuple(table.rows), table.locator, captions.get(number, ""))
        for number, table in enumerate(tables)
        if table.header is not None and table.rows
    )
    problems = tuple(_name_problems(tables, headers))
    return terms.refuse_incomplete_tables(ParsedDocument(read, problems, lines.metadata()), headers)


def _read_row_by_row(lines: TextLines) -> Iterator[TextTable]:
    """Yield the tables with one row a line."""
    for number, header in lines.header_lines.items():
        table = TextTable(header, lines.cells(number), number, number)
        for following in lines.numbers_after(number):
            _add_row(table, header, lines.cells(following), following)
        yield table if table.rows or table.problems else table.refuse("cells-missing", "no rows under the header")


def _add_row(table: TextTable, header: TableHeader, cells: tuple[str, ...], line: int) -> None:
    """Add a line if all its cells are figures; a lost label is an empty cell."""
    filled = [cell for cell in cells if cell]
    is_page_number = len(cells) == 1 and line > table.last + 1
    if not filled or is_page_number or not all(map(terms.is_figure, filled)):
        return
    table.last = line
    number = len(table.rows) + len(table.problems) + 1
    lost = {column for column, cell in enumerate(cells) if not cell}
    if len(cells) == len(table.columns) and lost <= terms.label_columns(table.columns, header):
        table.rows.append(SourceRow(number, cells, f"line {line}"))
    else:
        message = f"has {len(filled)} of {len(table.columns)} cells"
        table.problems.append(ReadProblem("", number, f"line {line}", "row-width", message, cells))


def _read_cell_by_cell(lines: TextLines) -> Iterator[TextTable]:
    """Yield the tables with the names of the header one under another, then the cells one under another."""
    for number in sorted(lines.stacks):
        columns, header = _match_stack(lines, number)
        if header is None:
            continue
        last = lines.stacks[number][-1]
        tokens = lines.tokens_after(last)
        table = TextTable(header, columns, number, tokens[-1].line if tokens else last)
        label = min(terms.label_columns(columns, header), default=0)
        yield table.fill(cut_rows(tokens, label, len(columns)))


def _match_stack(lines: TextLines, number: int) -> tuple[tuple[str, ...], TableHeader | None]:
    """Return the names one under another from a line on, and the known header that they are."""
    columns = tuple(map(lines.line, lines.stacks[number]))
    return columns, terms.match_header(columns, lines.headers)


def _read_column_by_column(lines: TextLines) -> Iterator[TextTable]:
    """Yield the tables with the labels under their name and, anywhere later, the figures under theirs."""
    stacked = {line for number, stack in lines.stacks.items() if _match_stack(lines, number)[1] for line in stack}
    label_names = terms.label_names(lines.headers)
    labels: int | None = None
    for number in sorted(lines.names - stacked):
        if terms.normalise_text(lines.line(number)) in label_names:
            if labels is not None:
                yield from _refuse_column(lines, labels)
            labels = number
        elif labels is not None and lines.parts_after(number):
            yield _pair(lines, labels, number)
            labels = None
        elif labels is None:
            yield from _refuse_column(lines, number)
    if labels is not None:
        yield from _refuse_column(lines, labels)


def _pair(lines: TextLines, labels: int, figures: int) -> TextTable:
    """Make the table of two columns, whose names are on the lines `labels` and `figures`."""
    columns = (lines.line(labels), lines.line(figures))
    rows = pair_columns(lines.parts_after(labels), lines.parts_after(figures))
    last = rows[-1][-1].line if isinstance(rows, tuple) and rows else lines.tokens_after(figures)[-1].line
    return TextTable(terms.match_header(columns, lines.headers), columns, labels, last).fill(rows)


def _refuse_column(lines: TextLines, number: int) -> Iterator[TextTable]:
    """Yield a refused table for a column that lacks its other column; a name without figures is a mere heading."""
    tokens = lines.tokens_after(number)
    if len(tokens) < MIN_FIGURES_OF_A_COLUMN:
        return
    name = lines.line(number)
    candidates = [header for header in lines.headers if terms.normalise_text(name) in header.keys]
    table = TextTable(candidates[0] if len(candidates) == 1 else None, (name,), number, tokens[-1].line)
    yield table.refuse("unknown-header", f"no known column goes with {name!r}")


def _refuse_duplicates(tables: Sequence[TextTable]) -> None:
    """Keep only the first table of each header."""
    seen: dict[str, int] = {}
    for table in tables:
        if table.header is not None and table.header.table in seen:
            table.refuse("duplicate-table", f"the table was already read from line {seen[table.header.table]}")
        elif table.header is not None and table.rows:
            seen[table.header.table] = table.first


def _find_captions(lines: TextLines, tables: Sequence[TextTable]) -> dict[int, str]:
    """Return the caption of each table, by its number: the nearest that names its measure, or else one close by.

    Only the first table of each header may have a caption far away, so that the time is linear in the tables.
    """
    captions = lines.captions()
    numbers = list(captions)
    naming = {
        header: {line for line, text in captions.items() if terms.mentions_measure(text, header, lines.headers)}
        for header in lines.headers
    }
    offers: list[terms.CaptionOffer] = []
    seen: set[TableHeader] = set()
    for place, table in enumerate(tables):
        named = naming[table.header] if table.header else set()
        candidates = set(named) if table.rows or table.header not in seen else set()
        for edge in (table.first, table.last):
            near = slice(bisect_left(numbers, edge - NEAR_LINES), bisect_right(numbers, edge + NEAR_LINES))
            candidates |= set(numbers[near])
        for line in candidates:
            offers.append((line not in named, min(abs(line - table.first), abs(line - table.last)), place, line))
        seen |= {table.header} if table.header else set()
    return {place: captions[line] for place, line in terms.assign_captions(offers).items()}


def _name_problems(tables: Sequence[TextTable], headers: Sequence[TableHeader]) -> Iterator[ReadProblem]:
    """Yield all problems, each with the name of its table; without a known header, that of the first missing table."""
    present = {table.header.table for table in tables if table.header is not None}
    missing = [header.table for header in headers if header.table not in present]
    for table in tables:
        name = table.header.table if table.header is not None else (missing or [headers[0].table])[0]
        if table.header is None:
            missing = missing[1:]
        for problem in table.problems:
            yield replace(problem, table_name=name)
