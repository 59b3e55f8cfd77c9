"""Warehouses small enough to publish often, and warehouses in which one thing is changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.kit.files import hash_file
from ipu_results.kit.text import format_json
from ipu_results.record.store.files import digest_rows, get_parquet_name
from ipu_results.record.store.tables import describe_build, write_table_file
from ipu_results.release import PublishedRelease, ReleaseRequest, publish
from ipu_results.release.files import CHECKSUMS, write_checksums
from ipu_results.schema import TABLES, table

PUBLISHED_ON = date(2026, 11, 21)
FEW = (
    "(SELECT DISTINCT result_id FROM flags SEMI JOIN results USING (result_id) ORDER BY result_id"
    " LIMIT 12)"
)
OF_FEW = ("results", "figures", "cells", "flags", "source_rows")
EMPTY = (
    "configurations",
    "mlperf_runs",
    "mlperf_entries",
    "run_points",
    "recomputation_inputs",
)

Row = dict[str, Any]


def locate_table(folder: Path, name: str) -> Path:
    """Return the Parquet file of a table in a warehouse or release."""
    return folder / get_parquet_name(table(name).sql_name)


def read_tables(warehouse: Path) -> dict[str, pa.Table]:
    return {each.name: pq.read_table(locate_table(warehouse, each.name)) for each in TABLES}


def shrink_warehouse(warehouse: Path, target: Path) -> Path:
    """Store a few results with all that belongs to them."""
    tables = read_tables(warehouse)
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        for name in OF_FEW:
            fewer = connection.sql(f"SELECT * FROM {name} WHERE result_id IN {FEW}")
            tables[name] = fewer.to_arrow_table().cast(tables[name].schema)
    for name in EMPTY:
        tables[name] = tables[name].slice(0, 0)
    return store_warehouse(tables, target)


def read_rows(warehouse: Path, name: str) -> list[Row]:
    rows: list[Row] = pq.read_table(locate_table(warehouse, name)).to_pylist()
    return rows


def alter_warehouse(warehouse: Path, target: Path, **rows: list[Row]) -> Path:
    """Store a warehouse in which some tables have other rows."""
    tables = read_tables(warehouse)
    for name, changed in rows.items():
        tables[name] = pa.Table.from_pylist(changed, schema=tables[name].schema)
    return store_warehouse(tables, target)


def store_warehouse(tables: Mapping[str, pa.Table], target: Path) -> Path:
    """Write the tables as a build of its own, with a new table `build` and a new build id."""
    rows_of = {table(name).sql_name: rows for name, rows in tables.items() if name != "build"}
    digests = sorted(digest_rows(rows) for name, rows in tables.items() if name != "build")
    build_id = hashlib.sha256("".join(digests).encode()).hexdigest()
    counts = {name: len(rows) for name, rows in rows_of.items()}
    rows_of["build"] = describe_build(counts, build_id)
    (target / "detail").mkdir(parents=True)
    for name, rows in rows_of.items():
        write_table_file(target / get_parquet_name(name), rows, build_id)
    return target


def publish_release(warehouse: Path, out: Path, **options: Any) -> PublishedRelease:
    return publish(ReleaseRequest(warehouse, out, PUBLISHED_ON, **options))


def read_record(release: Path, name: str = "release.json") -> dict[str, Any]:
    record = json.loads((release / name).read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return record


def link_release(release: Path, target: Path) -> Path:
    """Copy a release as hard links. A file is changed with `replace_file` and never in place."""
    return Path(shutil.copytree(release, target, copy_function=os.link))


def replace_file(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def update_checksums(release: Path, *changed: str) -> None:
    """Write the digests of changed files to the descriptors and to SHA256SUMS, as a careful forger
    would.
    """
    tables = [name for name in changed if name.endswith((".csv", ".parquet"))]
    for name in ("datapackage.json", "croissant.json") if tables else ():
        record = read_record(release, name)
        for entry in [*record.get("resources", ()), *record.get("distribution", ())]:
            path = release / (entry.get("path") or entry["contentUrl"])
            if not path.exists() or path.relative_to(release).as_posix() not in tables:
                continue
            size = path.stat().st_size
            if "hash" in entry:
                entry |= {"hash": f"sha256:{hash_file(path)}", "bytes": size}
            else:
                entry |= {"sha256": hash_file(path), "contentSize": f"{size} B"}
        write_record(release, name, record)
    (release / CHECKSUMS).unlink()
    write_checksums(release)


def write_record(release: Path, name: str, record: Mapping[str, Any]) -> None:
    replace_file(release / name, f"{format_json(record)}\n".encode())
