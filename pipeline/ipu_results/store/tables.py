"""Write the checked frames as Parquet and DuckDB files, published together or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import WarehouseError
from ipu_results.schema import TABLES, table
from ipu_results.schema.frames import build_frame, to_arrow
from ipu_results.store.digest import digest_rows
from ipu_results.store.duckdb_file import write_duckdb
from ipu_results.store.files import BUILD_ID, DATABASE, get_parquet_name
from ipu_results.store.transaction import stage_files


def build_arrow_tables(frames: Mapping[str, pd.DataFrame], inputs_digest: str) -> dict[str, pa.Table]:
    """Return the published tables as Arrow, `build` included, each with the build id in its metadata."""
    tables = {name: to_arrow(table(name), frame) for name, frame in frames.items()}
    digests = {name: digest_rows(arrow) for name, arrow in tables.items()}
    contents = "\n".join([inputs_digest, *(f"{name} {digest}" for name, digest in sorted(digests.items()))])
    build_id = hashlib.sha256(contents.encode()).hexdigest()
    rows = [
        {"table_name": name, "row_count": tables[name].num_rows, "rows_sha256": digests[name], "build_id": build_id}
        for name in sorted(tables)
    ]
    tables["build"] = to_arrow(table("build"), build_frame(table("build"), rows))
    return {
        published.name: tables[published.name].replace_schema_metadata(
            {**tables[published.name].schema.metadata, BUILD_ID: build_id}
        )
        for published in TABLES
    }


def write_warehouse(tables: Mapping[str, pa.Table], warehouse: Path) -> None:
    """Replace the files of the warehouse by those of this build. The caller holds the warehouse's lock.

    Raises WarehouseError if the disk is full or the folder is not writable; the old build stays.
    """
    try:
        with stage_files(warehouse) as staging:
            for name, arrow in tables.items():
                pq.write_table(arrow, staging / get_parquet_name(name), compression="zstd", write_page_checksum=True)
            write_duckdb(staging / DATABASE, tables)
    except (OSError, pa.ArrowException, duckdb.Error) as error:
        raise WarehouseError(f"could not be written, the old build stays: {error}", place=str(warehouse)) from error
