"""Ten questions to a table shaped like `results`: the DuckDB file beside Parquet, pandas and SQLite."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from statistics import geometric_mean, median

from benchmarks.child import Measured, Step, in_child
from benchmarks.engines import duckdb_file, duckdb_parquet, pandas_frame, sqlite_file
from benchmarks.options import Options
from benchmarks.queries import QUERIES
from benchmarks.report import Report, Table, Value
from benchmarks.tables import build

REPEATS = 3
ENGINES: dict[str, Measured] = {
    "DuckDB file": duckdb_file,
    "DuckDB on Parquet": duckdb_parquet,
    "pandas": pandas_frame,
    "SQLite": sqlite_file,
}
BASE = "DuckDB file"
LOADED = "pandas with loading"

Times = dict[str, dict[str, float]]


def run(options: Options) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        *parts, keys = _steps(build, rows=options.rows, folder=folder)
        asked = {
            name: {step["query"]: step for step in _steps(engine, folder=folder, ids=keys["ids"], repeats=REPEATS)}
            for name, engine in ENGINES.items()
        }
    _assert_agreed(asked)
    times = _times(asked)
    return Report(
        "query",
        f"ten questions to {options.rows:,} rows of 45 columns, 23 of them filled",
        [_build_table(parts), _median_table(times), _ratio_table(times), _peak_table(asked)],
        [],
        [
            f"All engines gave the same answers. Median of {REPEATS} runs after one unmeasured, each engine in a fresh "
            "process; the files are in the page cache.",
            "pandas loads, through pyarrow from the Parquet file, only the columns that a question needs; its time is "
            "told without and with that.",
            "SQLite has indexes on result_id, (model, platform, framework, task), (platform, task) and published_on.",
        ],
    )


def _steps(function: Measured, **arguments: object) -> list[Step]:
    outcome = in_child(function, **arguments)
    if outcome.failure is not None:
        raise RuntimeError(f"{function.__name__}: {outcome.failure}, after {len(outcome.steps)} steps")
    return outcome.steps


def _assert_agreed(asked: dict[str, dict[str, Step]]) -> None:
    for query in QUERIES:
        expected = asked[BASE][query.name]["answer"]
        if not expected:
            raise RuntimeError(f"{query.name}: no row")
        for name, steps in asked.items():
            if (answer := steps[query.name]["answer"]) != expected:
                different = next(
                    pair for pair in zip([*answer, ""], [*expected, ""], strict=False) if pair[0] != pair[1]
                )
                raise RuntimeError(f"{query.name}: {name} says {different[0]!r}, {BASE} {different[1]!r}")


def _times(asked: dict[str, dict[str, Step]]) -> Times:
    """Median seconds by engine and query; pandas twice."""
    times = {name: {query: median(step["seconds"]) for query, step in steps.items()} for name, steps in asked.items()}
    loaded = {query: median(step["load"]) + times["pandas"][query] for query, step in asked["pandas"].items()}
    return {
        BASE: times[BASE],
        "DuckDB on Parquet": times["DuckDB on Parquet"],
        "pandas": times["pandas"],
        LOADED: loaded,
        "SQLite": times["SQLite"],
    }


def _build_table(parts: list[Step]) -> Table:
    body = [(part["part"], part["seconds"], part["megabytes"], part["peak"]) for part in parts]
    return Table("Making the files", ("part", "s", "MB of the file", "peak MB"), body)


def _median_table(times: Times) -> Table:
    body: list[Sequence[Value]] = [
        (query.name, *(1000 * column[query.name] for column in times.values())) for query in QUERIES
    ]
    return Table("Median time, ms", ("question", *times), body)


def _ratio_table(times: Times) -> Table:
    ratios = {
        name: {query: seconds / times[BASE][query] for query, seconds in column.items()}
        for name, column in times.items()
        if name != BASE
    }
    body: list[Sequence[Value]] = [
        (query.name, *(column[query.name] for column in ratios.values())) for query in QUERIES
    ]
    body.append(("geometric mean", *(geometric_mean(column.values()) for column in ratios.values())))
    return Table(f"Time as a multiple of that of the {BASE}", ("question", *ratios), body)


def _peak_table(asked: dict[str, dict[str, Step]]) -> Table:
    body: list[Sequence[Value]] = [
        (name, max(step["peak"] for step in steps.values())) for name, steps in asked.items()
    ]
    return Table("Peak resident memory of the process that asks", ("engine", "MB"), body)
