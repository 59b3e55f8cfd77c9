"""Cut a run of cells into rows of a known width, although cells may be missing or too many.

Each column allows cells of a certain shape. The best cut leaves the fewest cells outside of rows whose cells all have
the shape of their column. A row is trusted only if it is part of every best cut, so a lost line costs its own row and
no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ipu_results.schema import table
from ipu_results.schema.table_headers import TableHeader

PRECISIONS = "|".join(map(re.escape, table("results").choices("precision")))
SHAPES: dict[str, re.Pattern[str]] = {
    "sdk_version": re.compile(r"(?:Pre-?)?SDK\s*\d[\w.]*", re.I),
    "precision": re.compile(rf"(?:\d+\.\d+|{PRECISIONS})?"),
    "batch_size": re.compile(r"(?:\d[\d,]*)?"),
    "throughput": re.compile(r"\d[\d,]*(?:\.\d+)?"),
    "latency_ms": re.compile(r"(?:\d[\d,]*(?:\.\d+)?)?"),
    "mlperf_id": re.compile(r"(?:\d+\.\d+-\d+)?"),
    "division": re.compile(r"open|closed", re.I),
    "time_to_result_s": re.compile(r"\d[\d,]*(?:\.\d+)?"),
    "time_to_train_s": re.compile(r"\d[\d,]*(?:\.\d+)?|(?:\d+\s*[dhms]\s*)+"),
}
# Free text: anything but a figure or an SDK version. Some columns are never blank.
WORDS = re.compile(r"(?!\d[\d,]*(?:\.\d+)?$)(?!(?:Pre-?)?SDK\s*\d).*", re.I)
REQUIRED_WORDS = re.compile(WORDS.pattern.replace(".*", ".+"), re.I)
SHAPES |= dict.fromkeys(("model", "platform", "framework"), REQUIRED_WORDS)

DISTINCTIVE_FIELD = "sdk_version"
"""Without a header, only rows with this field are recognised: other text hardly has its shape."""
MIN_MISFITS_OF_A_SHIFTED_ROW = 3
MODULUS = 2**61 - 1
"""Numbers of cuts are compared modulo this prime: they grow exponentially with the cells."""


class RowSpan(NamedTuple):
    """Half-open range of the cells of one row, or, if not `readable`, of cells that do not make whole rows."""

    start: int
    stop: int
    readable: bool


def align(cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Cut `cells` into rows of one cell per field. The spans cover all cells in order. Time is linear in the cells."""
    width = len(fields)
    good = _find_well_shaped(cells, fields)
    if len(cells) % width == 0 and all(good[start] for start in range(0, len(cells), width)):
        return [RowSpan(start, start + width, True) for start in range(0, len(cells), width)]
    spans: list[RowSpan] = []
    position = 0
    for start in [*_find_trusted(good, width), len(cells)]:
        if start > position:
            spans += _cut_gap(position, start, cells, fields)
        if start < len(cells):
            spans.append(RowSpan(start, start + width, True))
        position = start + width
    return _drop_doubtful_neighbours(spans, cells, fields)


def contains_row(cells: Sequence[str], headers: Iterable[TableHeader]) -> bool:
    """Check whether consecutive cells have the shapes of a row of one of `headers`."""
    rows = {tuple(field for _, field in header.fields) for header in headers}
    return any(any(_find_well_shaped(cells, fields)) for fields in rows if DISTINCTIVE_FIELD in fields)


def _find_well_shaped(cells: Sequence[str], fields: Sequence[str]) -> list[bool]:
    """Check for each cell whether a row starts there whose cells all have the shape of their field."""
    fits = [[has_shape(cell) for cell in cells] for has_shape in map(_shape_check, fields)]
    last = len(cells) - len(fields)
    return [start <= last and all(fit[start + i] for i, fit in enumerate(fits)) for start in range(len(cells))]


def _shape_check(field: str) -> Callable[[str], bool]:
    pattern = SHAPES.get(field, WORDS)
    return lambda cell: pattern.fullmatch(cell) is not None


def _find_trusted(good: Sequence[bool], width: int) -> list[int]:
    """Return the starts of the rows that are part of every cut with the fewest cells left over.

    A row is part of all best cuts if the best cuts before it, times those after it, are as many as all best cuts.
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
    """Return for each number of cells from the start the fewest left over, and in how many cuts, modulo a prime."""
    best = [(0, 1)]
    for end in range(1, len(good) + 1):
        left_over, cuts = best[end - 1]
        options = [(left_over + 1, cuts)]
        if end >= width and good[end - width]:
            options.append(best[end - width])
        fewest = min(left_over for left_over, _ in options)
        best.append((fewest, sum(cuts for left_over, cuts in options if left_over == fewest) % MODULUS))
    return best


def _cut_gap(start: int, stop: int, cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
    """Cut cells between trusted rows into rows, if each has at most one cell of the wrong shape; else make one span."""
    width = len(fields)
    rows = [RowSpan(place, place + width, True) for place in range(start, stop, width)]
    if (stop - start) % width == 0 and all(_count_misfits(cells[row.start : row.stop], fields) <= 1 for row in rows):
        return rows
    return [RowSpan(start, stop, False)]


def _count_misfits(row: Sequence[str], fields: Sequence[str]) -> int:
    return sum(not _shape_check(field)(cell) for field, cell in zip(fields, row, strict=True))


def _may_share_lines(span: RowSpan, cells: Sequence[str], fields: Sequence[str]) -> bool:
    """Check whether rows next to an unreadable span may hold lines of it.

    They do not if the span lacks one line, nor if it has the length of whole rows and nearly their shape.
    """
    width = len(fields)
    over = (span.stop - span.start) % width
    if span.readable or over:
        return not span.readable and over != width - 1
    rows = (cells[start : start + width] for start in range(span.start, span.stop, width))
    return any(_count_misfits(row, fields) >= MIN_MISFITS_OF_A_SHIFTED_ROW for row in rows)


def _drop_doubtful_neighbours(spans: Sequence[RowSpan], cells: Sequence[str], fields: Sequence[str]) -> list[RowSpan]:
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
