"""Warehouses small enough to publish often, and warehouses in which one thing is changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.release import Asked, Published, publish
from ipu_results.schema import TABLES, arrow_schema, table
from ipu_results.store.digest import digest_rows
from ipu_results.store.files import BUILD_ID, get_parquet_name

DAY = date(2026, 11, 21)
FEW = 12
SOME = f"(SELECT result_id FROM results ORDER BY result_id LIMIT {FEW})"
SMALLER = {
    "results": f"SELECT * FROM results WHERE result_id IN {SOME}",
    "cells": f"SELECT * FROM cells WHERE result_id IN {SOME}",
    "flags": f"SELECT * FROM flags WHERE result_id IN {SOME}",
    "source_rows": f"SELECT * FROM source_rows WHERE result_id IN {SOME}",
    "configurations": "SELECT * FROM configurations LIMIT 0",
    "mlperf_runs": "SELECT * FROM mlperf_runs LIMIT 0",
    "mlperf_entries": "SELECT * FROM mlperf_entries LIMIT 0",
    "run_points": "SELECT * FROM run_points LIMIT 0",
    "runs": "SELECT * FROM runs",
}

Tables = dict[str, pa.Table]
Rows = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def read(warehouse: Path) -> Tables:
    return {one.name: pq.read_table(warehouse / get_parquet_name(one.name)) for one in TABLES}


def smaller(warehouse: Path, target: Path) -> Path:
    """A few results with all that belongs to them."""
    tables = read(warehouse)
    with duckdb.connect() as connection:
        for name, arrow in tables.items():
            connection.register(name, arrow)
        found = {
            name: connection.sql(query).to_arrow_table().cast(arrow_schema(table(name)))
            for name, query in SMALLER.items()
        }
    return store({**tables, **found}, target)


def altered(warehouse: Path, target: Path, **changes: Rows) -> Path:
    """A warehouse with some tables' rows replaced by what a function makes of them."""
    tables = read(warehouse)
    for name, change in changes.items():
        rows = change(tables[name].to_pylist())
        tables[name] = pa.Table.from_pylist(rows, schema=tables[name].schema)
    return store(tables, target)


def store(tables: Mapping[str, pa.Table], target: Path) -> Path:
    """Write the tables as a build of their own: `build` and the build id are made anew."""
    bare = {name: arrow for name, arrow in tables.items() if name != "build"}
    digests = {name: digest_rows(arrow) for name, arrow in bare.items()}
    build_id = hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()
    build = [
        {"table_name": name, "row_count": bare[name].num_rows, "rows_sha256": digests[name], "build_id": build_id}
        for name in sorted(bare)
    ]
    bare["build"] = pa.Table.from_pylist(build, schema=arrow_schema(table("build")))
    target.mkdir(parents=True)
    for name, arrow in bare.items():
        marked = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), BUILD_ID.encode(): build_id})
        pq.write_table(marked, target / get_parquet_name(name), compression="zstd", write_page_checksum=True)
    return target


def released(warehouse: Path, out: Path, **options: Any) -> Published:
    """A release of the warehouse, made in this process."""
    return publish(Asked(warehouse, out, DAY, **options))
