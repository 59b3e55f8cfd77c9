"""Publish, verify and diff a release of many rows, each next to the simplest code that reads the same bytes."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.release import ReleaseRequest, diff_releases, publish, verify_release
from ipu_results.schema import TABLES, VIEWS, Column, arrow_schema, dictionary_rows, table
from ipu_results.store.digest import digest_rows
from ipu_results.store.files import BUILD_ID, get_parquet_name

from benchmarks.child import Step, in_child
from benchmarks.environment import peak_mb
from benchmarks.options import Options
from benchmarks.report import Report, Table, Value
from benchmarks.tables import FILLED, fill_results

ROWS = 1_000_000
REPEATS, QUICK_REPEATS = 3, 1
MERGES = 1
DAY = date(2026, 1, 1)
SHARE = 1000
PARENTS = {"documents": "document_id", "platforms": "platform", "models": "model"}
WORDS = {"kind": "curated", "sha256": "0" * 64, "url": None}


def run(options: Options) -> Report:
    rows = options.rows if options.quick else min(options.rows, ROWS)
    repeats = QUICK_REPEATS if options.quick else REPEATS
    with tempfile.TemporaryDirectory() as folder:
        outcome = in_child(measure, rows=rows, repeats=repeats, folder=folder)
    if outcome.failure is not None:
        raise RuntimeError(f"release: {outcome.failure}, after {len(outcome.steps)} steps")
    made, *steps = outcome.steps
    return Report(
        "release",
        f"publish, verify and compare {rows:,} rows of {len(FILLED)} filled columns",
        [_sizes(made), _times(steps)],
        [],
        [
            "Every release holds the rows as Parquet, CSV and DuckDB. Verify reads all three and compares the rows; "
            "sha256 reads the same bytes once and compares nothing.",
            f"In the changed side one row in {SHARE:,} has another throughput and one in {SHARE:,} is gone. The plain "
            "read counts the cells of all columns of both sides in DuckDB.",
            f"Median of {repeats} runs in one process; the files are in the page cache.",
        ],
    )


def _sizes(made: Step) -> Table:
    rows: list[tuple[Value, ...]] = [(name, size / 1e6) for name, size in made["megabytes"].items()]
    return Table("Bytes of the release", ("part", "MB"), rows)


def _times(steps: list[Step]) -> Table:
    seconds = {step["what"]: median(step["seconds"]) for step in steps}
    reference = {step["what"]: step["reference"] for step in steps}
    rows: list[tuple[Value, ...]] = []
    for what, taken in seconds.items():
        other = reference[what]
        rows.append((what, taken, other, taken / seconds[other] if other else None))
    return Table("Median time", ("what", "s", "reference", "ratio"), rows)


def measure(rows: int, repeats: int, folder: str) -> Iterator[Step]:
    """Yield the bytes of the release, then a step with seconds for each operation."""
    where = Path(folder)
    warehouse = _warehouse(where / "warehouse", rows)
    release = where / "release"
    request = ReleaseRequest(warehouse, release, DAY, version="1.0.0")
    publishing = [_time_first_publish(request) for _ in range(repeats)]
    changed = _changed(release, where / "changed")
    yield {"megabytes": _parts(release), "peak": peak_mb()}
    yield {"what": "sha256 of every file", "seconds": _times_of(lambda: _hash(release), repeats), "reference": None}
    yield {"what": "publish", "seconds": publishing, "reference": "sha256 of every file"}
    verifying = _times_of(lambda: _assert(verify_release(release) == []), repeats)
    yield {"what": "verify", "seconds": verifying, "reference": "sha256 of every file"}
    yield {"what": "read both sides", "seconds": _times_of(lambda: _read(release, changed), repeats), "reference": None}
    diffing = _times_of(lambda: _assert(len(diff_releases(release, changed).tables) == 1), repeats)
    yield {"what": "diff", "seconds": diffing, "reference": "read both sides"}
    merging = _times_of(lambda: _merged(release, changed), min(repeats, MERGES))
    yield {"what": "pandas: read, merge and compare", "seconds": merging, "reference": "diff"}
    same = _times_of(lambda: _assert(diff_releases(release, release).is_empty), repeats)
    yield {"what": "diff of the same bytes", "seconds": same, "reference": "read both sides"}


def _assert(holds: bool) -> None:
    if not holds:
        raise RuntimeError("not the expected answer")


def _time_first_publish(request: ReleaseRequest) -> float:
    """Publish into a new folder, so that there is no previous release to compare with."""
    shutil.rmtree(request.out, ignore_errors=True)
    return _seconds(lambda: publish(request))


def _seconds(what) -> float:  # type: ignore[no-untyped-def]
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def _times_of(what, repeats: int) -> list[float]:  # type: ignore[no-untyped-def]
    return [_seconds(what) for _ in range(repeats)]


def _warehouse(target: Path, rows: int) -> Path:
    """Write Parquet files of one build: generated results, what they refer to, and nothing in the other tables."""
    with duckdb.connect() as connection:
        fill_results(connection, rows)
        results = connection.sql("FROM results").to_arrow_table().cast(arrow_schema(table("results")))
    tables = {empty.name: arrow_schema(empty).empty_table() for empty in TABLES if empty.name != "build"}
    tables["results"] = results
    for name, key in PARENTS.items():
        tables[name] = _parents(name, key, results.column(key).unique().to_pylist())
    described = [row for relation in TABLES for row in dictionary_rows(relation)]
    described += [row for view in VIEWS for row in dictionary_rows(view)]
    tables["columns"] = pa.Table.from_pylist(described, schema=arrow_schema(table("columns")))
    digests = {name: (arrow.num_rows, digest_rows(arrow)) for name, arrow in tables.items()}
    build_id = hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()
    build = [
        {"table_name": name, "row_count": count, "rows_sha256": digest, "build_id": build_id}
        for name, (count, digest) in sorted(digests.items())
    ]
    tables["build"] = pa.Table.from_pylist(build, schema=arrow_schema(table("build")))
    target.mkdir()
    for name, arrow in tables.items():
        marked = arrow.replace_schema_metadata({**arrow.schema.metadata, BUILD_ID.encode(): build_id})
        pq.write_table(marked, target / get_parquet_name(name), compression="zstd", write_page_checksum=True)
    return target


def _parents(name: str, key: str, values: list[str]) -> pa.Table:
    described = table(name)
    rows = [{column.name: _word(column, key, value) for column in described.columns} for value in values]
    return pa.Table.from_pylist(rows, schema=arrow_schema(described))


def _word(column: Column, key: str, value: str) -> str | None:
    if column.name == key:
        return value
    return WORDS.get(column.name, "generated") if column.required else None


def _changed(release: Path, target: Path) -> Path:
    """Copy the tables with a few figures and rows of the results changed."""
    target.mkdir()
    for path in release.glob("*.parquet"):
        shutil.copyfile(path, target / path.name)
    with duckdb.connect() as connection:
        source = f"read_parquet('{release / 'results.parquet'}')"
        figures = f"if(row_number % {SHARE} = 1, throughput + 1, throughput) AS throughput"
        query = f"SELECT * REPLACE ({figures}) FROM {source} WHERE row_number % {SHARE} <> 2"
        changed = connection.sql(query).to_arrow_table()
    schema = pq.read_schema(release / "results.parquet")
    pq.write_table(changed.cast(schema), target / "results.parquet", compression="zstd", write_page_checksum=True)
    return target


def _parts(release: Path) -> dict[str, int]:
    suffixes = {"Parquet": ".parquet", "CSV": ".csv", "DuckDB": ".duckdb"}
    files = list(release.iterdir())
    sizes = {name: sum(path.stat().st_size for path in files if path.suffix == end) for name, end in suffixes.items()}
    return sizes | {"all": sum(path.stat().st_size for path in files)}


def _hash(release: Path) -> None:
    for path in release.iterdir():
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")


def _merged(*sides: Path) -> None:
    """Count new, removed and changed rows of the results alone, as one would without `diff`."""
    old, new = (pd.read_parquet(side / "results.parquet") for side in sides)
    both = old.merge(new, on="result_id", how="outer", suffixes=("_old", "_new"), indicator=True)
    paired = both[both["_merge"] == "both"]
    for name in old.columns.drop("result_id"):
        before, after = paired[f"{name}_old"], paired[f"{name}_new"]
        ((before != after).fillna(True) & ~(before.isna() & after.isna())).sum()


def _read(*sides: Path) -> None:
    with duckdb.connect() as connection:
        for side in sides:
            for path in side.glob("*.parquet"):
                connection.execute(f"SELECT count(COLUMNS(*)) FROM read_parquet('{path}')").fetchall()
