"""The three forms that a table takes in the paper's plain text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ipu_results.read import paper
from ipu_results.read.paper.lines import Source
from ipu_results.read.paper.runs import Refusal, Rows, Token, pair_columns, rows_cell_by_cell
from ipu_results.read.reading import ReadProblem, SourceRow
from ipu_results.schema.layouts import TableHeader

LEAST_OF_A_COLUMN = 2


@dataclass(slots=True)
class Found:
    """A table of the text, or what is wrong with it; `layout` is None where the header does not tell."""

    layout: TableHeader | None
    columns: tuple[str, ...]
    first: int
    last: int
    rows: list[SourceRow] = field(default_factory=list)
    faults: list[tuple[int | None, str, Refusal, tuple[str, ...]]] = field(default_factory=list)

    @property
    def locator(self) -> str:
        return f"lines {self.first}-{self.last}" if self.first < self.last else f"line {self.first}"

    def refuse(self, reason: str, message: str) -> Found:
        self.rows.clear()
        self.faults = [(None, self.locator, Refusal(reason, message), self.columns)]
        return self

    def fill(self, rows: Rows | Refusal) -> Found:
        if isinstance(rows, Refusal):
            return self.refuse(rows.reason, rows.message)
        for number, tokens in enumerate(rows, 1):
            cells = tuple(token.text for token in tokens)
            places = tuple(f"line {token.line}" for token in tokens)
            self.rows.append(SourceRow(number, cells, f"line {max(token.line for token in tokens)}", places))
        return self

    def problems(self, name: str) -> Iterator[ReadProblem]:
        for number, locator, refusal, raw in self.faults:
            yield ReadProblem(name, number, locator, refusal.reason, refusal.message, raw)


def row_by_row(source: Source) -> Iterator[Found]:
    """Tables with one row a line."""
    for number, layout in source.headers.items():
        table = Found(layout, source.cells(number), number, number)
        for following in source.numbers_after(number):
            add_row(table, layout, source.cells(following), following)
        yield table if table.rows or table.faults else table.refuse("cells-missing", "no rows under the header")


def add_row(table: Found, layout: TableHeader, cells: tuple[str, ...], line: int) -> None:
    """Take a line for a row where all on it is figures; a lost label is an empty cell."""
    filled = [cell for cell in cells if cell]
    page_number = len(cells) == 1 and line > table.last + 1
    if not filled or page_number or not all(map(paper.is_figure, filled)):
        return
    table.last = line
    number = len(table.rows) + len(table.faults) + 1
    lost = {place for place, cell in enumerate(cells) if not cell}
    if len(cells) == len(table.columns) and lost <= paper.label_columns(table.columns, layout):
        table.rows.append(SourceRow(number, cells, f"line {line}"))
    else:
        message = f"{len(filled)} of {len(table.columns)} cells are there"
        table.faults.append((number, f"line {line}", Refusal("row-width", message), cells))


def cell_by_cell(source: Source) -> Iterator[Found]:
    """Tables with the names of the header one under another, then the cells one under another."""
    for number in sorted(source.stacks):
        if table := stacked(source, number):
            tokens = tokens_after(source, table.last)
            table.last = tokens[-1].line if tokens else table.last
            assert table.layout is not None
            label = min(paper.label_columns(table.columns, table.layout), default=0)
            yield table.fill(rows_cell_by_cell(tokens, label, len(table.columns)))


def stacked(source: Source, number: int) -> Found | None:
    """The table whose header names stand one under another from `number` on."""
    lines = source.stacks[number]
    columns = tuple(map(source.line, lines))
    layout = paper.layout_of(columns, source.layouts)
    return Found(layout, columns, number, lines[-1]) if layout else None


def column_by_column(source: Source) -> Iterator[Found]:
    """Tables with the labels under their name and, anywhere later, the figures under theirs."""
    labels: int | None = None
    for number in unstacked_names(source):
        if is_label(source, number):
            if labels is not None:
                yield from unpaired(source, labels)
            labels = number
        elif labels is not None and source.parts_after(number):
            yield paired(source, labels, number)
            labels = None
        elif labels is None:
            yield from unpaired(source, number)
    if labels is not None:
        yield from unpaired(source, labels)


def unstacked_names(source: Source) -> list[int]:
    taken = {line for number, lines in source.stacks.items() if stacked(source, number) for line in lines}
    return sorted(source.names - taken)


def is_label(source: Source, number: int) -> bool:
    return paper.folded(source.line(number)) in source.label_names


def tokens_after(source: Source, number: int) -> list[Token]:
    return [token for part in source.parts_after(number) for token in part]


def paired(source: Source, labels: int, figures: int) -> Found:
    columns = (source.line(labels), source.line(figures))
    last = tokens_after(source, figures)[-1].line
    table = Found(paper.layout_of(columns, source.layouts), columns, labels, last)
    rows = pair_columns(source.parts_after(labels), source.parts_after(figures))
    if isinstance(rows, tuple) and rows:
        table.last = rows[-1][-1].line
    return table.fill(rows)


def unpaired(source: Source, number: int) -> Iterator[Found]:
    """A column with a known name whose other column is not there; a name without figures is a mere heading."""
    tokens = tokens_after(source, number)
    if len(tokens) < LEAST_OF_A_COLUMN:
        return
    name = source.line(number)
    telling = [layout for layout in source.layouts if paper.folded(name) in layout.keys]
    table = Found(telling[0] if len(telling) == 1 else None, (name,), number, tokens[-1].line)
    yield table.refuse("unknown-header", f"no known column goes with {name!r}")
