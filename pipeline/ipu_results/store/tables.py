"""Write the checked frames and the views as Parquet, CSV and DuckDB files, published together or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import WarehouseError
from ipu_results.schema import TABLES, table
from ipu_results.schema.frames import build_frame, to_arrow
from ipu_results.store.csv_file import write_csv
from ipu_results.store.digest import digest_rows
from ipu_results.store.duckdb_file import create_database, fill_database, insert_rows
from ipu_results.store.files import BUILD_ID, DATABASE, get_csv_name, get_parquet_name
from ipu_results.store.transaction import stage_files
from ipu_results.store.views import evaluate_views

BUILD_TABLE = "build"


def write_warehouse(frames: Mapping[str, pd.DataFrame], inputs_digest: str, warehouse: Path) -> str:
    """Replace the files of the warehouse by those of this build and return its id. The caller holds the lock.

    DuckDB works in a thread of its own, since it needs no Python. Raises WarehouseError if the disk is full, the folder
    is not writable or a view cannot be evaluated; the old build stays.
    """
    tables = build_arrow_tables(frames)
    try:
        with (
            stage_files(warehouse) as staging,
            create_database(staging / DATABASE) as connection,
            ThreadPoolExecutor(max_workers=1) as pool,
        ):
            filling = pool.submit(fill_database, connection, tables)
            views = dict(evaluate_views(tables))
            build = describe_build(tables, views, inputs_digest)
            build_id = str(build["build_id"][0])
            for name, rows in {**tables, BUILD_TABLE: build, **views}.items():
                write_parquet(rows, build_id, staging / get_parquet_name(name))
            for name, rows in views.items():
                write_csv(rows, staging / get_csv_name(name))
            filling.result()
            insert_rows(connection, BUILD_TABLE, build)
    except (OSError, pa.ArrowException, duckdb.Error) as error:
        raise WarehouseError(f"could not be written, the old build stays: {error}", place=str(warehouse)) from error
    return build_id


def build_arrow_tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, pa.Table]:
    """Return the published tables without `build` as Arrow. Raises GateError if a value would have to change."""
    return {entry.name: to_arrow(entry, frames[entry.name]) for entry in TABLES if entry.name != BUILD_TABLE}


def describe_build(tables: Mapping[str, pa.Table], views: Mapping[str, pa.Table], inputs_digest: str) -> pa.Table:
    """Return the table `build`. The build id follows from the inputs and the tables, so it covers the views too."""
    digests = {name: digest_rows(rows) for name, rows in {**tables, **views}.items()}
    contents = "\n".join([inputs_digest, *(f"{name} {digests[name]}" for name in sorted(tables))])
    build_id = hashlib.sha256(contents.encode()).hexdigest()
    records: list[dict[str, Any]] = [
        {"table_name": name, "row_count": rows.num_rows, "rows_sha256": digests[name], "build_id": build_id}
        for name, rows in sorted({**tables, **views}.items())
    ]
    return to_arrow(table(BUILD_TABLE), build_frame(table(BUILD_TABLE), records))


def write_parquet(rows: pa.Table, build_id: str, path: Path) -> None:
    """Write a table or view with the id of its build; the same bytes for the same rows within one environment."""
    marked = rows.replace_schema_metadata({**rows.schema.metadata, BUILD_ID: build_id})
    pq.write_table(marked, path, compression="zstd", write_page_checksum=True)
