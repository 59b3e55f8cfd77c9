"""The tables of the paper from its plain text, where the columns of a table may stand far from each other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read import paper
from ipu_results.read.paper.forms import Found, cell_by_cell, column_by_column, row_by_row
from ipu_results.read.paper.lines import Source, captions_of, facts_of, source_of
from ipu_results.read.reading import ParsedDocument, ReadProblem, SourceTable
from ipu_results.schema.layouts import TableHeader

NEAR_LINES = 12


def read_paper_text(text: str, layouts: Sequence[TableHeader]) -> ParsedDocument:
    """Tables whose header names are those of `layouts`, in one of three forms:

    one row a line, cells parted by `|`, tabs or wide blanks; one cell a line, row by row under the stacked header;
    or a column after the other, other text in between: `Batch size` and its labels, later `Latency` and its figures.

    In the last form a column may have fewer labels than figures. They are taken to be lost at the end, and are `""`,
    where those that are left are the first multiples of one number (2, 4, 6). A gap before them (4, 6, 8) or among
    them (1, 2, 4) could be anywhere, so the table is a problem, as it is with fewer figures than labels.
    Figures that other lines part from their column count only where they complete it exactly.

    Raises DamagedDocumentError for an empty text, UnrecognisedDocumentError where no table is found.
    """
    if not text.strip():
        raise DamagedDocumentError("is empty")
    source = source_of(text, layouts)
    found = [*row_by_row(source), *cell_by_cell(source), *column_by_column(source)]
    if not found:
        raise UnrecognisedDocumentError("no table with a known header")
    found.sort(key=lambda table: table.first)
    refuse_repeated(found)
    reading = ParsedDocument(tuple(tables_of(source, found)), tuple(problems_of(source, found)), facts_of(source))
    return paper.of_one_sweep(reading)


def refuse_repeated(found: Sequence[Found]) -> None:
    """Only the first table of a layout is read."""
    seen: dict[str, int] = {}
    for table in found:
        if table.layout is not None and table.layout.table in seen:
            table.refuse("duplicate-table", f"the table has been read from line {seen[table.layout.table]} already")
        elif table.layout is not None and table.rows:
            seen[table.layout.table] = table.first


def tables_of(source: Source, found: Sequence[Found]) -> Iterator[SourceTable]:
    captions = nearest_captions(source, found)
    for place, table in enumerate(found):
        if table.layout is not None and table.rows:
            caption = captions.get(place, "")
            yield SourceTable(table.layout.table, table.columns, tuple(table.rows), table.locator, caption)


def problems_of(source: Source, found: Sequence[Found]) -> Iterator[ReadProblem]:
    """The faults, each with the name of its table; where the header does not tell, the first that is not found."""
    told = {table.layout.table for table in found if table.layout is not None}
    untold = [layout.table for layout in source.layouts if layout.table not in told]
    for table in found:
        if table.layout is not None:
            yield from table.problems(table.layout.table)
        else:
            yield from table.problems(untold.pop(0) if untold else source.layouts[0].table)


def nearest_captions(source: Source, found: Sequence[Found]) -> dict[int, str]:
    """The caption of each table: those that name its measure first, the nearest of them, each given away once."""
    captions = {caption.line: caption.text for caption in captions_of(source)}
    pools = {
        layout: [line for line, text in captions.items() if paper.mentions(text, layout, source.layouts)]
        for layout in {table.layout for table in found if table.layout is not None}
    }
    named = {place: pools[table.layout] for place, table in enumerate(found) if table.layout is not None}
    given = give_away(found, named, inf)
    left = sorted(captions.keys() - given.values())
    given |= give_away(found, {place: left for place in range(len(found)) if place not in given}, NEAR_LINES)
    return {place: captions[line] for place, line in given.items()}


def give_away(found: Sequence[Found], offered: Mapping[int, list[int]], limit: float) -> dict[int, int]:
    """The caption line of each table, the nearest pair first; `offered` has the lines that each may have, ascending.

    Lines that are given away are taken out of `offered`.
    """
    given: dict[int, int] = {}
    pools = {id(pool): pool for pool in offered.values()}.values()
    queue = [pair for place, pool in offered.items() for pair in nearest_pair(found[place], place, pool, limit)]
    heapify(queue)
    while queue:
        _, place, line = heappop(queue)
        if is_in(offered[place], line):
            given[place] = line
            take_out(pools, line)
        else:
            for pair in nearest_pair(found[place], place, offered[place], limit):
                heappush(queue, pair)
    return given


def nearest_pair(table: Found, place: int, pool: Sequence[int], limit: float) -> list[tuple[int, int, int]]:
    """(distance, table, line) of the line that is nearest to the first or the last line of a table, if within limit."""
    starts = [(edge, max(bisect_left(pool, edge) - 1, 0)) for edge in (table.first, table.last)]
    pairs = [(abs(line - edge), place, line) for edge, start in starts for line in pool[start : start + 2]]
    return [pair for pair in [min(pairs, default=None)] if pair is not None and pair[0] <= limit]


def is_in(pool: Sequence[int], line: int) -> bool:
    at = bisect_left(pool, line)
    return at < len(pool) and pool[at] == line


def take_out(pools: Iterable[list[int]], line: int) -> None:
    for pool in pools:
        if is_in(pool, line):
            del pool[bisect_left(pool, line)]
