"""Cut a run of cells into rows of a known width when a line may be missing or too many.

Each cell of a row has a shape that its column allows. The best cut leaves the fewest cells outside of well-shaped
rows; a row is trusted only if it is part of every best cut, so a lost line spoils its own row and no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
    return _spoiled_by_extra_lines(spans, width)


def _gap(first: int, last: int, cells: Sequence[str], fields: Sequence[str]) -> list[Span]:
    """A gap is cut into whole rows only where each has at most one cell of the wrong shape."""
    width = len(fields)
    whole = [Span(start, start + width, True) for start in range(first, last, width)]
    if (last - first) % width == 0 and all(_misfits(cells[row.start : row.stop], fields) <= 1 for row in whole):
        return whole
    return [Span(first, last, False)]


def _misfits(row: Sequence[str], fields: Sequence[str]) -> int:
    return sum(not _shape(field)(cell) for field, cell in zip(fields, row, strict=True))


def _spoiled_by_extra_lines(spans: Sequence[Span], width: int) -> list[Span]:
    """A few lines too many may have shifted the rows on either side of them, so those become bad as well."""
    merged: list[Span] = []
    extra = [not span.readable and 0 < (span.stop - span.start) % width <= width // 2 for span in spans]
    for i, span in enumerate(spans):
        beside = extra[i] or (i > 0 and extra[i - 1]) or (i + 1 < len(spans) and extra[i + 1])
        if beside and merged and not merged[-1].readable:
            merged[-1] = Span(merged[-1].start, span.stop, False)
        else:
            merged.append(Span(span.start, span.stop, span.readable and not beside))
    return merged
