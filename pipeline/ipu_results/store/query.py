"""Read-only SQL over the warehouse: the DuckDB file where it is built, else the committed Parquet files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results._util.sql import LOCKDOWN, get_first_line
from ipu_results.errors import WarehouseError
from ipu_results.schema import TABLES
from ipu_results.store.duckdb_file import fill_database
from ipu_results.store.tables import BUILD_ID, DATABASE, get_parquet_name
from ipu_results.store.transaction import is_pending, lock_folder, recover

TRIES_WHILE_PUBLISHING = 5
PUBLISHING_S = 0.1


class _TwoBuilds(WarehouseError):
    """Files of two builds: for a moment while another process publishes, or for good."""


@contextmanager
def open_warehouse(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can read the warehouse and nothing else.

    Raises WarehouseError where nothing is built, where a file is damaged, or where the files are of two builds.
    """
    with _connect(warehouse) as connection:
        yield connection


def _connect(warehouse: Path) -> duckdb.DuckDBPyConnection:
    for _ in range(TRIES_WHILE_PUBLISHING - 1):
        try:
            return _connect_once(warehouse)
        except _TwoBuilds:
            time.sleep(PUBLISHING_S)
    return _connect_once(warehouse)


def _connect_once(warehouse: Path) -> duckdb.DuckDBPyConnection:
    finish_interrupted_build(warehouse)
    database = warehouse / DATABASE
    build_id = read_build_id(warehouse)
    try:
        connection = _open(database) if database.exists() else _from_parquet(warehouse)
        found = connection.execute("SELECT min(build_id), max(build_id) FROM build").fetchall()
    except duckdb.Error as error:
        raise WarehouseError(f"cannot be opened: {get_first_line(error)}", place=str(database)) from error
    if found != [(build_id, build_id)]:
        connection.close()
        message = f"{DATABASE} and the Parquet files are of two builds; build it again with: ipu-results ingest"
        raise _TwoBuilds(message, place=str(warehouse))
    return connection


def finish_interrupted_build(warehouse: Path) -> None:
    """Bring the files of a build into place whose process died between its commit and its last rename."""
    if not is_pending(warehouse):
        return
    try:
        with lock_folder(warehouse, wait_s=10.0):
            recover(warehouse)
    except OSError as error:
        message = f"a build was interrupted and cannot be finished here: {error.strerror}"
        raise WarehouseError(message, place=str(warehouse)) from error


def read_build_id(warehouse: Path) -> str:
    """The build id that all Parquet files carry. Raises WarehouseError where one is missing or they disagree."""
    paths = [warehouse / get_parquet_name(table.name) for table in TABLES]
    if not any(path.exists() for path in paths):
        raise WarehouseError("holds no dataset; build it with: ipu-results ingest", place=str(warehouse))
    if missing := [path.name for path in paths if not path.exists()]:
        raise WarehouseError(f"lacks {missing[0]}; build it with: ipu-results ingest", place=str(warehouse))
    found: dict[str, str] = {}
    for path in paths:
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowException) as error:
            raise WarehouseError(f"cannot be read: {get_first_line(error)}", place=path.name) from error
        found.setdefault(metadata.get(BUILD_ID.encode(), b"").decode(), path.name)
    if len(found) > 1:
        names = " and ".join(found.values())
        raise WarehouseError(
            f"{names} are of two builds; build it again with: ipu-results ingest", place=str(warehouse)
        )
    return next(iter(found))


def _open(database: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(database), read_only=True, config=LOCKDOWN)


def _from_parquet(warehouse: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=LOCKDOWN)
    fill_database(connection, {table.name: pq.read_table(warehouse / get_parquet_name(table.name)) for table in TABLES})
    return connection
