"""Publish, verify and diff a release of many rows, each compared with the simplest code that reads
the same bytes.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from statistics import median

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.kit.files import DATASET
from ipu_results.record.store.files import get_parquet_name
from ipu_results.record.store.tables import CONTENT_TABLES, describe_build, write_table_file
from ipu_results.release import ReleaseRequest, diff_releases, publish, verify_release
from ipu_results.schema.frames import file_schema

from benchmarks.processes import Step, run_steps
from benchmarks.report import Options, Report, ReportTable

RUNS = 3
QUICK_RUNS = 1
SHARE = 1000  # of every this many rows one is changed and one is removed
KEPT = ("documents", "platforms", "models", "columns", "relations")  # as the record has them
REPEATED = """
    SELECT r.* REPLACE (
        format('r{:016x}', hash(result_id, copy)) AS result_id,
        row_number() OVER () AS row_number
    )
    FROM range($copies) AS copies(copy)
    CROSS JOIN read_parquet($results) AS r
    LIMIT $rows
"""


def run(options: Options) -> Report:
    """Measure all operations in one child process."""
    rows = options.rows
    runs = QUICK_RUNS if options.quick else RUNS
    with tempfile.TemporaryDirectory() as folder:
        steps = run_steps(measure, rows=rows, runs=runs, folder=folder)
    hashing = median(steps[0]["seconds"])
    times = []
    for step in steps:
        seconds = median(step["seconds"])
        times.append((step["operation"], seconds, seconds / hashing))
    return Report(
        "release",
        f"publish, verify and compare the results of the record, repeated to {rows:,} rows",
        [
            ReportTable("Median time", ("operation", "s", "to sha256"), times),
        ],
        [],
        [
            (
                "Every release holds the rows as Parquet, CSV and DuckDB. Verify reads all three"
                " and compares the rows. sha256 reads the same bytes once and compares nothing."
            ),
            (
                f"In the changed release one row in {SHARE:,} has another throughput and one in"
                f" {SHARE:,} is missing."
            ),
            f"Median of {runs} runs in one process. The files are in the page cache.",
        ],
    )


def measure(rows: int, runs: int, folder: str) -> Iterator[Step]:
    """Yield a step with seconds for each operation."""
    where = Path(folder)
    release = where / "release"
    changed = where / "changed"
    warehouse = _write_warehouse(where / "warehouse", rows)
    request = ReleaseRequest(warehouse, release, date(2026, 1, 1), version="1.0.0")
    publishing = []
    for _ in range(runs):
        # with a previous release, `publish` would also compare
        shutil.rmtree(release, ignore_errors=True)
        publishing.append(_measure_seconds(lambda: publish(request)))
    _write_changed(release, changed)
    yield _repeat("sha256 of every file", lambda: _hash_files(release), runs)
    yield {"operation": "publish", "seconds": publishing}
    yield _repeat("verify", lambda: _check(verify_release(release) == []), runs)
    yield _repeat("diff", lambda: _check(len(diff_releases(release, changed).tables) == 1), runs)


def _repeat(operation: str, function: Callable[[], object], runs: int) -> Step:
    seconds = [_measure_seconds(function) for _ in range(runs)]
    return {"operation": operation, "seconds": seconds}


def _measure_seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _check(holds: bool) -> None:
    if not holds:
        raise RuntimeError("the operation did not return the expected result")


def _write_warehouse(target: Path, rows: int) -> Path:
    """Write the warehouse of the record with its results repeated, each with an id of its own.

    Tables that refer to results stay empty.
    """
    tables: dict[str, pa.Table] = {}
    results = DATASET / "results.parquet"
    copies = math.ceil(rows / pq.read_metadata(results).num_rows)
    values = {"copies": copies, "results": str(results), "rows": rows}
    with duckdb.connect() as connection:
        repeated: pa.Table = connection.execute(REPEATED, values).to_arrow_table()
    for definition in CONTENT_TABLES:
        schema = file_schema(definition)
        name = definition.sql_name
        if definition.name == "results":
            tables[name] = repeated.select(schema.names).cast(schema)
        elif definition.name in KEPT:
            tables[name] = pq.read_table(DATASET / get_parquet_name(name)).cast(schema)
        else:
            tables[name] = schema.empty_table()
    build_id = hashlib.sha256(b"repeated").hexdigest()
    counts = {name: len(content) for name, content in tables.items()}
    tables["build"] = describe_build(counts, build_id)
    (target / "detail").mkdir(parents=True)
    for name, content in tables.items():
        write_table_file(target / get_parquet_name(name), content, build_id)
    return target


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


def _hash_files(release: Path) -> None:
    for path in filter(Path.is_file, release.rglob("*")):
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")
