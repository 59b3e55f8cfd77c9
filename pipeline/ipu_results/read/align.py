"""Cut a run of cells into rows of a known width when a line may be missing or too many.

Each cell of a row has a shape that its column allows. The best cut leaves the fewest cells outside of well-shaped
rows; a row is trusted only if it is part of every best cut, so a lost line spoils its own row and no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ipu_results.schema.layouts import TableHeader

SHAPES: dict[str, re.Pattern[str]] = {
    "sdk_version": re.compile(r"(?:Pre-?)?SDK\s*\d[\w.]*", re.I),
    "precision": re.compile(r"(?:\d+\.\d+)?"),
    "batch_size": re.compile(r"(?:\d[\d,]*)?"),
    "throughput": re.compile(r"\d[\d,]*(?:\.\d+)?"),
    "latency_ms": re.compile(r"(?:\d[\d,]*(?:\.\d+)?)?"),
    "mlperf_id": re.compile(r"(?:\d+\.\d+-\d+)?"),
    "division": re.compile(r"open|closed", re.I),
    "time_to_result_s": re.compile(r"\d[\d,]*(?:\.\d+)?"),
    "time_to_train_s": re.compile(r"\d[\d,]*(?:\.\d+)?|(?:\d+\s*[dhms]\s*)+"),
}
WORDS = re.compile(r"(?!\d[\d,]*(?:\.\d+)?$)(?!(?:Pre-?)?SDK\s*\d).*", re.I)
ROW_WORDS = re.compile(WORDS.pattern.replace(".*", ".+"), re.I)
SHAPES |= dict.fromkeys(("model", "platform", "framework"), ROW_WORDS)
TELLING = "sdk_version"
MISFITS_OF_A_SHIFTED_ROW = 3
MODULUS = 2**61 - 1


class Span(NamedTuple):
    """Cells of one row, half open; `readable` unless lines are missing or too many there."""

    start: int
    stop: int
    readable: bool


def align(cells: Sequence[str], fields: Sequence[str]) -> list[Span]:
    """Spans of `cells`, one a row, in order and without gaps, in time linear in the cells."""
    width = len(fields)
    good = _well_shaped(cells, fields)
    if len(cells) % width == 0 and all(good[start] for start in range(0, len(cells), width)):
        return [Span(start, start + width, True) for start in range(0, len(cells), width)]
    return _with_gaps(_trusted(good, len(cells), width), cells, fields)


def holds_row(cells: Sequence[str], layouts: Iterable[TableHeader]) -> bool:
    """Whether a row of one of `layouts` stands in `cells`, told by the shapes of them all and of a telling one."""
    every = {tuple(field for _, field in layout.fields) for layout in layouts}
    return any(any(_well_shaped(cells, fields)) for fields in every if TELLING in fields)


def _well_shaped(cells: Sequence[str], fields: Sequence[str]) -> list[bool]:
    fits = [[shape(cell) for cell in cells] for shape in map(_shape, fields)]
    last = len(cells) - len(fields)
    return [start <= last and all(fit[start + i] for i, fit in enumerate(fits)) for start in range(len(cells))]


def _shape(field: str) -> Callable[[str], bool]:
    pattern = SHAPES.get(field, WORDS)
    return lambda cell: pattern.fullmatch(cell) is not None


def _trusted(good: Sequence[bool], size: int, width: int) -> list[int]:
    """Starts of the rows that every cut with the fewest cells left over has in common."""
    before = _best(good, range(size), width, forward=True)
    after = _best(good, range(size - 1, -1, -1), width, forward=False)
    least, ways = before[size]
    return [
        start
        for start in range(size)
        if good[start]
        and before[start][0] + after[start + width][0] == least
        and before[start][1] * after[start + width][1] % MODULUS == ways
    ]


def _best(good: Sequence[bool], order: range, width: int, *, forward: bool) -> list[tuple[int, int]]:
    """Fewest cells left over and the number of ways (modulo a prime), from one end up to each position."""
    size = len(good)
    best: list[tuple[int, int]] = [(0, 1)] * (size + 1)
    for position in order:
        here, there = (position + 1, position) if forward else (position, position + 1)
        options = [(best[there][0] + 1, best[there][1])]
        row = here - width if forward else here
        if row >= 0 and row + width <= size and good[row]:
            options.append(best[row if forward else row + width])
        least = min(cost for cost, _ in options)
        best[here] = (least, sum(ways for cost, ways in options if cost == least) % MODULUS)
    return best


def _with_gaps(starts: Sequence[int], cells: Sequence[str], fields: Sequence[str]) -> list[Span]:
    """The trusted rows and what lies between them."""
    width = len(fields)
    spans: list[Span] = []
    position = 0
    for start in [*starts, len(cells)]:
        if start > position:
            spans += _gap(position, start, cells, fields)
        if start < len(cells):
            spans.append(Span(start, start + width, True))
        position = start + width
    return _without_doubtful_neighbours(spans, cells, fields)


def _gap(first: int, last: int, cells: Sequence[str], fields: Sequence[str]) -> list[Span]:
    """A gap is cut into whole rows only where each has at most one cell of the wrong shape."""
    width = len(fields)
    whole = [Span(start, start + width, True) for start in range(first, last, width)]
    if (last - first) % width == 0 and all(_misfits(cells[row.start : row.stop], fields) <= 1 for row in whole):
        return whole
    return [Span(first, last, False)]


def _misfits(row: Sequence[str], fields: Sequence[str]) -> int:
    return sum(not _shape(field)(cell) for field, cell in zip(fields, row, strict=True))


def _may_reach_further(span: Span, cells: Sequence[str], fields: Sequence[str]) -> bool:
    """Whether the rows beside an unreadable span may hold lines of it.

    They do not where it lacks one line, nor where it is as long as its rows are and nearly of their shape.
    """
    width = len(fields)
    over = (span.stop - span.start) % width
    if span.readable or over:
        return not span.readable and over != width - 1
    rows = (cells[start : start + width] for start in range(span.start, span.stop, width))
    return any(_misfits(row, fields) >= MISFITS_OF_A_SHIFTED_ROW for row in rows)


def _without_doubtful_neighbours(spans: Sequence[Span], cells: Sequence[str], fields: Sequence[str]) -> list[Span]:
    """Rows on either side of lines that may be theirs become bad as well."""
    merged: list[Span] = []
    doubtful = [_may_reach_further(span, cells, fields) for span in spans]
    for i, span in enumerate(spans):
        beside = doubtful[i] or (i > 0 and doubtful[i - 1]) or (i + 1 < len(spans) and doubtful[i + 1])
        if beside and merged and not merged[-1].readable:
            merged[-1] = Span(merged[-1].start, span.stop, False)
        else:
            merged.append(Span(span.start, span.stop, span.readable and not beside))
    return merged
