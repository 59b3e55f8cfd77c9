"""Run ten queries on a table shaped like `results`: the DuckDB file, DuckDB on Parquet, pandas and
SQLite.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from math import isnan
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import duckdb

from benchmarks.processes import Step, StepFunction, read_peak_mb, run_steps
from benchmarks.queries import QUERIES
from benchmarks.report import Options, Report, ReportTable, Value
from benchmarks.tables import DUCKDB, PARQUET, SQLITE, build_files

RUNS = 3
DIGITS = 6  # of a double in a compared answer
BASE, PANDAS, LOADED = "DuckDB file", "pandas", "pandas with loading"

EngineSteps = Mapping[str, Mapping[str, Step]]  # by engine and query
Seconds = Mapping[str, Mapping[str, float]]


def query_duckdb_file(folder: str, ids: list[str]) -> Iterator[Step]:
    with duckdb.connect(str(Path(folder) / DUCKDB), read_only=True) as connection:
        yield from _time_queries(lambda sql: connection.execute(sql).fetchall(), ids)


def query_parquet(folder: str, ids: list[str]) -> Iterator[Step]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW results AS SELECT * FROM '{Path(folder) / PARQUET}'")
        yield from _time_queries(lambda sql: connection.execute(sql).fetchall(), ids)


def query_sqlite(folder: str, ids: list[str]) -> Iterator[Step]:
    with sqlite3.connect(Path(folder) / SQLITE) as connection:
        yield from _time_queries(lambda sql: connection.execute(sql).fetchall(), ids)


def query_pandas(folder: str, ids: list[str]) -> Iterator[Step]:
    """Load the columns that each query needs, timed separately, and run it."""
    import pyarrow.parquet as pq  # noqa: PLC0415  (not in the memory of the other engines)

    for query in QUERIES:
        loads, runs = [], []
        for _ in range(RUNS):
            start = time.perf_counter()
            table = pq.read_table(Path(folder) / PARQUET, columns=list(query.columns))
            frame = table.to_pandas(date_as_object=False, self_destruct=True)
            loads.append(time.perf_counter() - start)
            start = time.perf_counter()
            result = query.frame(frame, tuple(ids))
            runs.append(time.perf_counter() - start)
            del frame, table
        rows = list(result.itertuples(index=False, name=None))
        answer = _format_answer(rows)
        yield {
            "query": query.name,
            "answer": answer,
            "seconds": runs,
            "load": loads,
            "peak": read_peak_mb(),
        }


def _time_queries(
    execute: Callable[[str], list[tuple[Any, ...]]], ids: list[str]
) -> Iterator[Step]:
    """Run each query once for its answer, then again with the clock."""
    for query in QUERIES:
        sql = query.sql.format(**{f"id{number}": key for number, key in enumerate(ids)})
        answer, seconds = execute(sql), []
        for _ in range(RUNS):
            start = time.perf_counter()
            execute(sql)
            seconds.append(time.perf_counter() - start)
        yield {
            "query": query.name,
            "answer": _format_answer(answer),
            "seconds": seconds,
            "peak": read_peak_mb(),
        }


def _format_answer(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Format rows so that every engine's are alike: doubles with DIGITS digits, in alphabetical
    order.
    """
    return sorted("|".join(map(_format_cell, row)) for row in rows)


def _format_cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return str(value) if isinstance(value, (str, date)) else f"{float(value):.{DIGITS}g}"


ENGINES: dict[str, StepFunction] = {
    BASE: query_duckdb_file,
    "DuckDB on Parquet": query_parquet,
    PANDAS: query_pandas,
    "SQLite": query_sqlite,
}


def run(options: Options) -> Report:
    """Measure one engine after the other. Raises RuntimeError where their answers differ."""
    with tempfile.TemporaryDirectory() as folder:
        *parts, keys = run_steps(build_files, rows=options.rows, folder=folder)
        engines = {
            name: {
                step["query"]: step for step in run_steps(engine, folder=folder, ids=keys["ids"])
            }
            for name, engine in ENGINES.items()
        }
    _check_answers(engines)
    times = _compute_medians(engines)
    built = [(part["part"], part["seconds"], part["megabytes"], part["peak"]) for part in parts]
    medians: list[tuple[Value, ...]] = [
        (query.name, *(1000 * column[query.name] for column in times.values())) for query in QUERIES
    ]
    peaks = [
        (name, max(step["peak"] for step in steps.values())) for name, steps in engines.items()
    ]
    return Report(
        "query",
        f"ten queries on {options.rows:,} rows of 45 columns, 23 of them filled",
        [
            ReportTable("Making the files", ("part", "s", "MB of the file", "peak MB"), built),
            ReportTable("Median time, ms", ("query", *times), medians),
            _tabulate_ratios(times),
            ReportTable("Peak resident memory of the engine's process", ("engine", "MB"), peaks),
        ],
        [],
        [
            (
                f"All engines returned the same answers. Median of {RUNS} runs after an unmeasured"
                " one, each engine in a fresh process. The files are in the page cache."
            ),
            (
                "pandas loads only the columns that a query needs, through pyarrow from the Parquet"
                " file. Its time is shown without and with loading."
            ),
            (
                "SQLite has indexes on result_id, (model, platform, framework, task), (platform,"
                " task) and published_on."
            ),
        ],
    )


def _check_answers(engines: EngineSteps) -> None:
    for query in QUERIES:
        expected = engines[BASE][query.name]["answer"]
        if not expected:
            raise RuntimeError(f"{query.name}: no rows")
        for name, steps in engines.items():
            if (answer := steps[query.name]["answer"]) != expected:
                pairs = zip([*answer, ""], [*expected, ""], strict=False)
                theirs, ours = next(pair for pair in pairs if pair[0] != pair[1])
                raise RuntimeError(f"{query.name}: {name} returned {theirs!r}, {BASE} {ours!r}")


def _compute_medians(engines: EngineSteps) -> Seconds:
    """Return median seconds by engine and query, those of pandas without and with loading."""
    times: dict[str, dict[str, float]] = {}
    for name, steps in engines.items():
        times[name] = {query: median(step["seconds"]) for query, step in steps.items()}
        if name == PANDAS:
            times[LOADED] = {
                query: median(step["load"]) + times[name][query] for query, step in steps.items()
            }
    return times


def _tabulate_ratios(times: Seconds) -> ReportTable:
    others = [name for name in times if name != BASE]
    ratios = [
        [times[name][query.name] / times[BASE][query.name] for name in others] for query in QUERIES
    ]
    rows: list[tuple[Value, ...]] = [
        (query.name, *some) for query, some in zip(QUERIES, ratios, strict=True)
    ]
    rows.append(("geometric mean", *map(geometric_mean, zip(*ratios, strict=True))))
    return ReportTable(f"Time as a multiple of that of the {BASE}", ("query", *others), rows)
