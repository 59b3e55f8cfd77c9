"""Write the DuckDB file: tables with keys and comments, and the views."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from ipu_results.schema import TABLES, VIEWS, quote, sql_table, sql_view

STORAGE_VERSION = "v1.2.0"
BLOCK_SIZE = 16_384  # bytes, the minimum: the tables are small, and each column takes at least one block


def write_duckdb(path: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write one database file that DuckDB 1.2.2 and later can read, without a write-ahead log next to it."""
    with duckdb.connect(config={"threads": 1}) as connection:  # more threads make small tables slower
        options = f"STORAGE_VERSION '{STORAGE_VERSION}', BLOCK_SIZE {BLOCK_SIZE}"
        connection.execute(f"ATTACH {quote(str(path))} AS warehouse ({options})")
        connection.execute("USE warehouse")
        fill_database(connection, tables)
        connection.execute("CHECKPOINT warehouse")
        connection.execute("USE memory")
        connection.execute("DETACH warehouse")


def fill_database(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Create the published tables and views in the current database, in one transaction."""
    connection.begin()
    for table in TABLES:
        connection.execute(";\n".join(sql_table(table)))
        connection.register("incoming", tables[table.name])
        connection.execute(f"INSERT INTO {table.name} BY NAME SELECT * FROM incoming")
        connection.unregister("incoming")
    for view in VIEWS:
        connection.execute(";\n".join(sql_view(view)))
    connection.commit()
