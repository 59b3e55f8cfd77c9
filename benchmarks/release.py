"""Publish, verify and diff a release of many rows, each compared with the simplest code that reads
the same bytes.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from statistics import median

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.record.store.files import get_parquet_name
from ipu_results.record.store.tables import describe_build, write_table_file
from ipu_results.release import ReleaseRequest, diff_releases, publish, verify_release
from ipu_results.schema import (
    TABLES,
    VIEWS,
    Column,
    Table,
    View,
    describe_relation,
    list_dictionary_rows,
    table,
)
from ipu_results.schema.frames import arrow_schema, build_frame, to_arrow

from benchmarks.processes import Step, run_steps
from benchmarks.report import Options, Report, ReportTable
from benchmarks.tables import FILLED, fill_results

MAX_ROWS = 1_000_000
RUNS, QUICK_RUNS, MERGES = 3, 1, 1
SHARE = 1000  # of every this many rows one is changed and one is removed
PARENTS = {"documents": "document_id", "platforms": "platform", "models": "model"}
WORDS = {"kind": "curated", "sha256": "0" * 64, "url": None}
SUFFIXES = {"Parquet": ".parquet", "CSV": ".csv", "DuckDB": ".duckdb"}
HASH, READ, DIFF = "sha256 of every file", "read both sides", "diff"


def run(options: Options) -> Report:
    """Measure all operations in one child process."""
    rows = options.rows if options.quick else min(options.rows, MAX_ROWS)
    runs = QUICK_RUNS if options.quick else RUNS
    with tempfile.TemporaryDirectory() as folder:
        sizes, *steps = run_steps(measure, rows=rows, runs=runs, folder=folder)
    seconds = {step["operation"]: median(step["seconds"]) for step in steps}
    times = [
        (name, seconds[name], other, seconds[name] / seconds[other] if other else None)
        for name, other in ((step["operation"], step["reference"]) for step in steps)
    ]
    return Report(
        "release",
        f"publish, verify and compare {rows:,} rows of {len(FILLED)} filled columns",
        [
            ReportTable("Bytes of the release", ("part", "MB"), list(sizes.items())),
            ReportTable("Median time", ("operation", "s", "reference", "ratio"), times),
        ],
        [],
        [
            (
                "Every release holds the rows as Parquet, CSV and DuckDB. Verify reads all three"
                " and compares the rows. sha256 reads the same bytes once and compares nothing."
            ),
            (
                f"In the changed release one row in {SHARE:,} has another throughput and one in"
                f" {SHARE:,} is missing. The plain read counts the cells of all columns of both"
                " sides in DuckDB."
            ),
            f"Median of {runs} runs in one process. The files are in the page cache.",
        ],
    )


def measure(rows: int, runs: int, folder: str) -> Iterator[Step]:
    """Yield the MB of the release, then a step with seconds for each operation."""
    where = Path(folder)
    release, changed = where / "release", where / "changed"
    request = ReleaseRequest(
        _write_warehouse(where / "warehouse", rows), release, date(2026, 1, 1), version="1.0.0"
    )
    publishing = []
    for _ in range(runs):
        # with a previous release, `publish` would also compare
        shutil.rmtree(release, ignore_errors=True)
        publishing.append(_measure_seconds(lambda: publish(request)))
    _write_changed(release, changed)
    yield _measure_sizes(release)
    yield _repeat(HASH, None, lambda: _hash_files(release), runs)
    yield {"operation": "publish", "reference": HASH, "seconds": publishing}
    yield _repeat("verify", HASH, lambda: _check(verify_release(release) == []), runs)
    yield _repeat(READ, None, lambda: _read_releases(release, changed), runs)
    yield _repeat(
        DIFF, READ, lambda: _check(len(diff_releases(release, changed).tables) == 1), runs
    )
    yield _repeat(
        "pandas: read, merge and compare", DIFF, lambda: _merge(release, changed), min(runs, MERGES)
    )
    yield _repeat(
        "diff of the same bytes",
        READ,
        lambda: _check(diff_releases(release, release).is_empty),
        runs,
    )


def _repeat(
    operation: str, reference: str | None, function: Callable[[], object], runs: int
) -> Step:
    seconds = [_measure_seconds(function) for _ in range(runs)]
    return {"operation": operation, "reference": reference, "seconds": seconds}


def _measure_seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _check(holds: bool) -> None:
    if not holds:
        raise RuntimeError("the operation did not return the expected result")


def _write_warehouse(target: Path, rows: int) -> Path:
    """Write Parquet files of one build: generated results, the rows they refer to, and other tables
    empty.
    """
    with duckdb.connect() as connection:
        fill_results(connection, rows)
        results = (
            connection.sql("FROM results").to_arrow_table().cast(arrow_schema(table("results")))
        )
    tables = {
        empty.name: arrow_schema(empty).empty_table() for empty in TABLES if empty.name != "build"
    }
    tables["results"] = results
    for name, key in PARENTS.items():
        tables[name] = _build_parents(name, key, results.column(key).unique().to_pylist())
    relations: list[Table | View] = [*TABLES, *VIEWS]
    described = [row for relation in relations for row in list_dictionary_rows(relation)]
    tables["columns"] = pa.Table.from_pylist(described, schema=arrow_schema(table("columns")))
    tables["relations"] = pa.Table.from_pylist(
        [describe_relation(relation) for relation in relations],
        schema=arrow_schema(table("relations")),
    )
    tables = {
        name: rows.cast(to_arrow(table(name), build_frame(table(name), [])).schema)
        for name, rows in tables.items()
    }
    rows_of = {table(name).sql_name: rows for name, rows in tables.items()}
    build_id = hashlib.sha256(b"generated").hexdigest()
    counts = {name: len(own) for name, own in rows_of.items()}
    rows_of["build"] = describe_build(counts, build_id)
    (target / "detail").mkdir(parents=True)
    for name, own in rows_of.items():
        write_table_file(target / get_parquet_name(name), own, build_id)
    return target


def _build_parents(name: str, key: str, values: list[str]) -> pa.Table:
    described = table(name)
    rows = [
        {column.name: _choose_text(column, key, value) for column in described.columns}
        for value in values
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(described))


def _choose_text(column: Column, key: str, value: str) -> str | None:
    if column.name == key:
        return value
    return WORDS.get(column.name, "generated") if column.required else None


def _write_changed(release: Path, target: Path) -> None:
    """Copy the tables with a few figures and rows of the results changed."""
    (target / "detail").mkdir(parents=True)
    for path in release.rglob("*.parquet"):
        shutil.copyfile(path, target / path.relative_to(release))
    source = release / "results.parquet"
    with duckdb.connect() as connection:
        throughput = f"if(row_number % {SHARE} = 1, throughput + 1, throughput) AS throughput"
        query = (
            f"SELECT * REPLACE ({throughput}) FROM read_parquet('{source}')"
            f" WHERE row_number % {SHARE} <> 2"
        )
        changed = connection.sql(query).to_arrow_table().cast(pq.read_schema(source))
    pq.write_table(changed, target / source.name, compression="zstd", write_page_checksum=True)


def _measure_sizes(release: Path) -> Step:
    files = [path for path in release.rglob("*") if path.is_file()]
    sizes = [(path.suffix, path.stat().st_size / 1e6) for path in files]
    parts = {
        name: sum(size for end, size in sizes if end == suffix) for name, suffix in SUFFIXES.items()
    }
    return parts | {"all": sum(size for _, size in sizes)}


def _hash_files(release: Path) -> None:
    for path in filter(Path.is_file, release.rglob("*")):
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")


def _merge(*sides: Path) -> None:
    """Count new, removed and changed rows of the results in pandas, as one would without `diff`."""
    old, new = (pd.read_parquet(side / "results.parquet") for side in sides)
    both = old.merge(new, on="result_id", how="outer", suffixes=("_old", "_new"), indicator=True)
    paired = both[both["_merge"] == "both"]
    for name in old.columns.drop("result_id"):
        before, after = paired[f"{name}_old"], paired[f"{name}_new"]
        ((before != after).fillna(True) & ~(before.isna() & after.isna())).sum()


def _read_releases(*sides: Path) -> None:
    with duckdb.connect() as connection:
        for side in sides:
            for path in side.rglob("*.parquet"):
                connection.execute(
                    f"SELECT count(COLUMNS(*)) FROM read_parquet('{path}')"
                ).fetchall()
