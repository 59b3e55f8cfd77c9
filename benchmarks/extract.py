"""Read a long HTML table with `ipu-results extract` and `pandas.read_html`, and count the wrong
cells of each.
"""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from statistics import median
from typing import Any

from benchmarks.generate import COLUMNS, generate_page, generate_rows
from benchmarks.processes import Step, read_peak_mb, run_steps, take_turns
from benchmarks.report import Options, Report, ReportTable, ReportTarget

SIZES, QUICK_SIZES = (10_000, 30_000, 100_000), (200, 1_000)
ROUNDS, QUICK_ROUNDS = 3, 1
MAX_RATIO, MAX_GROWTH = 4.0, 1.25
OURS, THEIRS = "extract", "read_html"
NUMERIC = frozenset({"Batch Size", "Precision", "Throughput (items/sec)", "Latency (ms)"})
FAULTS = ("another figure", "decimals lost", "not a figure", "another text")


def extract_table(count: int) -> Iterator[Step]:
    """Measure the reader of `ipu-results extract`."""
    from ipu_results.read.dispatch import (  # noqa: PLC0415  (the other reader's process is without it)
        read_document,
    )
    from ipu_results.schema.vocabulary import load_vocabulary  # noqa: PLC0415

    data, table_headers = generate_page(count), load_vocabulary().table_headers
    before, start = read_peak_mb(), time.perf_counter()
    reading = read_document(data, table_headers)
    seconds, peak = time.perf_counter() - start, read_peak_mb()
    yield _build_step(
        data, seconds, before, peak, count, (row.cells for row in reading.tables[0].rows)
    )


def read_with_pandas(count: int) -> Iterator[Step]:
    """Measure `pandas.read_html`."""
    import lxml.html  # noqa: F401, PLC0415  (read_html imports it; that time does not count)
    import pandas as pd  # noqa: PLC0415
    import pandas.io.html  # noqa: PLC0415

    data = generate_page(count)
    before, start = read_peak_mb(), time.perf_counter()
    frame = pd.read_html(io.BytesIO(data), flavor="lxml")[0]
    seconds, peak = time.perf_counter() - start, read_peak_mb()
    cells = (
        [None if pd.isna(value) else value for value in row]
        for row in frame.itertuples(index=False)
    )
    yield _build_step(data, seconds, before, peak, count, cells)


def _build_step(
    data: bytes,
    seconds: float,
    before: float,
    peak: float,
    count: int,
    read: Iterable[Sequence[Any]],
) -> Step:
    faults: Counter[str] = Counter()
    for expected, cells in zip(generate_rows(count), read, strict=True):
        checks = (_find_fault(*cell) for cell in zip(COLUMNS, expected, cells, strict=True))
        faults.update(fault for fault in checks if fault)
    return {
        "megabytes": len(data) / 1e6,
        "seconds": seconds,
        "before": before,
        "peak": peak,
        "faults": faults,
    }


def _find_fault(column: str, expected: str, value: Any) -> str | None:
    """Return what is wrong with a cell. A lost thousands separator is not."""
    text = "" if value is None else str(value)
    if text == expected:
        return None
    if column not in NUMERIC:
        return "another text"
    try:
        printed, read = Decimal(expected.replace(",", "")), Decimal(text.replace(",", ""))
    except InvalidOperation:
        return "not a figure"
    if read != printed:
        return "another figure"
    return None if read.as_tuple().exponent == printed.as_tuple().exponent else "decimals lost"


def run(options: Options) -> Report:
    """Measure both readers in turns, each run in a fresh process."""
    sizes, rounds = (QUICK_SIZES, QUICK_ROUNDS) if options.quick else (SIZES, ROUNDS)
    pairs = {size: _measure(size, rounds) for size in sizes}
    last = sizes[-1]
    ours, theirs = pairs[last]
    per_row = {size: pair[0]["seconds"] / size for size, pair in pairs.items()}
    faults = [
        (fault, ours["faults"].get(fault, 0), theirs["faults"].get(fault, 0)) for fault in FAULTS
    ]
    cells = f"{last * len(COLUMNS):,}"
    return Report(
        "extract",
        "read one long HTML table, compared with pandas.read_html(flavor='lxml')",
        [
            _tabulate_times(pairs),
            _tabulate_memory(pairs),
            ReportTable(
                f"Wrong cells among the {cells} of {last:,} rows",
                ("what is wrong", OURS, THEIRS),
                faults,
            ),
        ],
        [
            ReportTarget(
                f"time at {last:,} rows, {OURS} / {THEIRS}",
                ours["seconds"] / theirs["seconds"],
                MAX_RATIO,
            ),
            ReportTarget(
                "time per row, largest / smallest table",
                per_row[last] / per_row[sizes[0]],
                MAX_GROWTH,
            ),
        ],
        [
            (
                f"Median of {rounds} interleaved runs in fresh processes. Imports and making the"
                " page are not counted."
            ),
            (
                "One row in ten of the page carries a footnote mark, alternately on the throughput"
                " and on the model."
            ),
        ],
    )


def _measure(size: int, rounds: int) -> list[Step]:
    """Return one step for each reader, with medians over the rounds."""
    ways = {
        way.__name__: partial(run_steps, way, count=size)
        for way in (extract_table, read_with_pandas)
    }
    runs = [[step for (step,) in some] for some in take_turns(ways, rounds).values()]
    names = ("seconds", "before", "peak")
    return [
        {**steps[0], **{name: median(step[name] for step in steps) for name in names}}
        for steps in runs
    ]


def _tabulate_times(pairs: dict[int, list[Step]]) -> ReportTable:
    rows = [
        (
            *(
                f"{size:,}",
                ours["megabytes"],
                ours["seconds"],
                theirs["seconds"],
                ours["seconds"] / theirs["seconds"],
            ),
            *(1e6 * step["seconds"] / size for step in (ours, theirs)),
        )
        for size, (ours, theirs) in pairs.items()
    ]
    columns = (
        "rows",
        "MB",
        "extract s",
        "read_html s",
        "ratio",
        "extract µs/row",
        "read_html µs/row",
    )
    return ReportTable("Time", columns, rows)


def _tabulate_memory(pairs: dict[int, list[Step]]) -> ReportTable:
    rows = [
        (
            *(f"{size:,}", ours["peak"], theirs["peak"], ours["peak"] / theirs["peak"]),
            *(1000 * (step["peak"] - step["before"]) / size for step in (ours, theirs)),
        )
        for size, (ours, theirs) in pairs.items()
    ]
    columns = (
        "rows",
        "extract peak MB",
        "read_html peak MB",
        "ratio",
        "extract kB/row",
        "read_html kB/row",
    )
    return ReportTable(
        "Peak resident memory of the process, and what the call added to it per row", columns, rows
    )
