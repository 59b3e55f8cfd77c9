"""A long HTML table: the reader of `ipu-results extract` beside `pandas.read_html`, and which cells each gets right."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from statistics import median
from typing import Any

from benchmarks.child import Step, told
from benchmarks.environment import peak_mb
from benchmarks.generate import COLUMNS, page, rows
from benchmarks.options import Options
from benchmarks.report import Report, Table, Target

SIZES, QUICK_SIZES = (10_000, 30_000, 100_000), (200, 1_000)
REPEATS, QUICK_REPEATS = 3, 1
LIMIT = 4.0
FIGURES = frozenset({"Batch Size", "Precision", "Throughput (items/sec)", "Latency (ms)"})
FAULTS = ("another figure", "decimals lost", "not a figure", "another text")


def with_us(count: int) -> Iterator[Step]:
    from ipu_results.read.dispatch import read_document  # noqa: PLC0415
    from ipu_results.schema.vocabulary import load_vocabulary  # noqa: PLC0415

    data, layouts = page(count), load_vocabulary().table_headers
    before, start = peak_mb(), time.perf_counter()
    reading = read_document(data, layouts)
    taken, peak = time.perf_counter() - start, peak_mb()
    yield _step(data, taken, before, peak, count, (row.cells for row in reading.tables[0].rows))


def with_pandas(count: int) -> Iterator[Step]:
    import lxml.html  # noqa: F401, PLC0415  (imported by read_html, which is not charged for it)
    import pandas as pd  # noqa: PLC0415
    import pandas.io.html  # noqa: PLC0415

    data = page(count)
    before, start = peak_mb(), time.perf_counter()
    frame = pd.read_html(io.BytesIO(data), flavor="lxml")[0]
    taken, peak = time.perf_counter() - start, peak_mb()
    cells = ([None if pd.isna(value) else value for value in row] for row in frame.itertuples(index=False))
    yield _step(data, taken, before, peak, count, cells)


def _step(data: bytes, taken: float, before: float, peak: float, count: int, found: Iterable[Sequence[Any]]) -> Step:
    faults: Counter[str] = Counter()
    for truth, cells in zip(rows(count), found, strict=True):
        faults.update(
            fault for name, *pair in zip(COLUMNS, truth, cells, strict=True) if (fault := _fault(name, *pair))
        )
    return {"megabytes": len(data) / 1e6, "seconds": taken, "before": before, "peak": peak, "faults": faults}


def _fault(column: str, truth: str, found: Any) -> str | None:
    """What is wrong with a cell; a thousands mark that is gone is not."""
    text = "" if found is None else str(found)
    if text == truth:
        return None
    if column not in FIGURES:
        return "another text"
    try:
        expected, value = Decimal(truth.replace(",", "")), Decimal(text.replace(",", ""))
    except InvalidOperation:
        return "not a figure"
    if value != expected:
        return "another figure"
    return None if value.as_tuple().exponent == expected.as_tuple().exponent else "decimals lost"


def run(options: Options) -> Report:
    sizes = QUICK_SIZES if options.quick else SIZES
    repeats = QUICK_REPEATS if options.quick else REPEATS
    measured = {size: _measure(size, repeats) for size in sizes}
    ours, theirs = ({size: pair[at] for size, pair in measured.items()} for at in (0, 1))
    last = sizes[-1]
    return Report(
        "extract",
        "read one long HTML table, beside pandas.read_html(flavor='lxml')",
        [_times(ours, theirs), _memory(ours, theirs), _faults(last, ours[last], theirs[last])],
        [
            Target(
                f"time at {last:,} rows, extract / read_html", ours[last]["seconds"] / theirs[last]["seconds"], LIMIT
            ),
            Target("time per row, largest / smallest table", _per_row(ours, last) / _per_row(ours, sizes[0]), 1.25),
        ],
        [
            f"Median of {repeats} interleaved runs, each in a fresh process; imports and making the page not counted.",
            "One row in ten of the page carries a footnote mark, alternately on the throughput and on the model.",
        ],
    )


def _measure(size: int, repeats: int) -> tuple[Step, Step]:
    pairs = [(told(with_us, count=size), told(with_pandas, count=size)) for _ in range(repeats)]
    return _middle([ours for ours, _ in pairs]), _middle([theirs for _, theirs in pairs])


def _middle(steps: Sequence[Step]) -> Step:
    return {**steps[0], **{name: median(step[name] for step in steps) for name in ("seconds", "before", "peak")}}


def _per_row(steps: dict[int, Step], size: int) -> float:
    return float(1e6 * steps[size]["seconds"] / size)


def _times(ours: dict[int, Step], theirs: dict[int, Step]) -> Table:
    body = [
        (
            *(f"{size:,}", one["megabytes"], one["seconds"], theirs[size]["seconds"]),
            *(one["seconds"] / theirs[size]["seconds"], _per_row(ours, size), _per_row(theirs, size)),
        )
        for size, one in ours.items()
    ]
    columns = ("rows", "MB", "extract s", "read_html s", "ratio", "extract µs/row", "read_html µs/row")
    return Table("Time", columns, body)


def _memory(ours: dict[int, Step], theirs: dict[int, Step]) -> Table:
    """Peak resident memory, and what the call added to it."""
    body = [
        (
            *(f"{size:,}", one["peak"], theirs[size]["peak"], one["peak"] / theirs[size]["peak"]),
            *(1000 * (step["peak"] - step["before"]) / size for step in (one, theirs[size])),
        )
        for size, one in ours.items()
    ]
    columns = ("rows", "extract peak MB", "read_html peak MB", "ratio", "extract kB/row", "read_html kB/row")
    return Table("Peak resident memory of the process, and what the call added to it per row", columns, body)


def _faults(size: int, ours: Step, theirs: Step) -> Table:
    body = [(fault, ours["faults"].get(fault, 0), theirs["faults"].get(fault, 0)) for fault in FAULTS]
    cells = f"{size * len(COLUMNS):,}"
    return Table(f"Wrong cells among the {cells} of {size:,} rows", ("what is wrong", "extract", "read_html"), body)
