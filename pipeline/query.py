"""Read-only SQL over the warehouse: the DuckDB file where it is built, else the committed Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import QueryError, WarehouseError
from pipeline.write import BUILD_ID, DATABASE, parquet_name
from pipeline.write.duck import fill
from pipeline.write.transaction import locked, pending, recover
from schema import TABLES

READ_ONLY = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})
LOCKDOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
}


@contextmanager
def open_warehouse(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can read the warehouse and nothing else.

    Raises WarehouseError where nothing is built, where a file is damaged, or where the files are of two builds.
    """
    _finish_interrupted_build(warehouse)
    database = warehouse / DATABASE
    build_id = _one_build_id(warehouse)
    try:
        connection = _open(database) if database.exists() else _from_parquet(warehouse)
    except duckdb.Error as error:
        raise WarehouseError(f"cannot be opened: {_first_line(error)}", place=str(database)) from error
    with connection:
        _assert_same_build(connection, build_id, warehouse)
        yield connection


def run_query(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """The result of one reading statement. Raises QueryError for wrong SQL and for anything that would write."""
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1:
            raise QueryError(f"one statement is wanted, {len(statements)} are given")
        if statements[0].type not in READ_ONLY:
            raise QueryError(f"the warehouse is read-only, {statements[0].type.name.lower()} is refused")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            return connection.sql(statements[0].query).to_arrow_table()
        finally:
            connection.execute("ROLLBACK")
    except duckdb.Error as error:
        raise QueryError(_first_line(error)) from error


def _finish_interrupted_build(warehouse: Path) -> None:
    if not pending(warehouse):
        return
    try:
        with locked(warehouse, wait_s=10.0):
            recover(warehouse)
    except OSError as error:
        message = f"a build was interrupted and cannot be finished here: {error.strerror}"
        raise WarehouseError(message, place=str(warehouse)) from error


def _one_build_id(warehouse: Path) -> str:
    paths = [warehouse / parquet_name(table.name) for table in TABLES]
    if missing := [path.name for path in paths if not path.exists()]:
        raise WarehouseError(f"lacks {missing[0]}; build it with: ipu-results ingest", place=str(warehouse))
    found: dict[str, str] = {}
    for path in paths:
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowException) as error:
            raise WarehouseError(f"cannot be read: {_first_line(error)}", place=path.name) from error
        found.setdefault(metadata.get(BUILD_ID.encode(), b"").decode(), path.name)
    if len(found) > 1:
        names = " and ".join(found.values())
        raise WarehouseError(
            f"{names} are of two builds; build it again with: ipu-results ingest", place=str(warehouse)
        )
    return next(iter(found))


def _assert_same_build(connection: duckdb.DuckDBPyConnection, build_id: str, warehouse: Path) -> None:
    rows = connection.execute("SELECT min(build_id), max(build_id) FROM build").fetchall()
    if rows != [(build_id, build_id)]:
        message = f"{DATABASE} and the Parquet files are of two builds; build it again with: ipu-results ingest"
        raise WarehouseError(message, place=str(warehouse))


def _open(database: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(database), read_only=True, config=LOCKDOWN)


def _from_parquet(warehouse: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=LOCKDOWN)
    fill(connection, {table.name: pq.read_table(warehouse / parquet_name(table.name)) for table in TABLES})
    return connection


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
