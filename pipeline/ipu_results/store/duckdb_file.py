"""Write the DuckDB file: tables with keys and comments, and the views; evaluate views that get files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from ipu_results.errors import WarehouseError
from ipu_results.ground.sql import LOCKDOWN, create_table, get_first_line
from ipu_results.schema import TABLES, VIEWS, View, quote, sql_table, sql_view
from ipu_results.schema.frames import file_schema


def evaluate_views(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Yield name and rows of each view that is written to files, in the order of the schema.

    `tables` are the published tables without `build`, which no view reads. Raises WarehouseError, naming the view, if
    one cannot be evaluated.
    """
    with duckdb.connect(config={**LOCKDOWN, "threads": 1}) as connection:  # a thread gives sums one order
        for name, rows in tables.items():
            create_table(connection, name, rows)
        for view in VIEWS:
            try:
                _define(connection, view)
                if view.no_files is None:
                    yield view.name, read_view(connection, view)
            except (duckdb.Error, pa.ArrowException) as error:
                raise WarehouseError(f"cannot be evaluated: {get_first_line(error)}", place=view.name) from error


def read_view(connection: duckdb.DuckDBPyConnection, view: View) -> pa.Table:
    """Return the rows of a view as its files hold them, in their order."""
    return connection.sql(view.rows_sql).to_arrow_table().cast(file_schema(view.file_table))


def _define(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    """Store the rows of a view, so that later views need not evaluate it again; define a macro."""
    if view.parameters:
        connection.execute(sql_view(view)[0])
    else:
        connection.execute(f"CREATE TABLE {view.name} AS {view.sql}")


STORAGE_VERSION = "v1.2.0"
BLOCK_SIZE = 16_384  # bytes, the minimum: the tables are small, and each column takes at least one block


def write_duckdb(path: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write one database file with all published tables and views."""
    with create_database(path) as connection:
        define_database(connection)
        fill_database(connection, tables)


@contextmanager
def create_database(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection to a new database file that DuckDB 1.2.2 and later can read.

    At the end it is complete, without a write-ahead log next to it.
    """
    str(path).encode()  # raises UnicodeEncodeError, where DuckDB fails without saying why
    with duckdb.connect(config={"threads": 1}) as connection:  # more threads make small tables slower
        options = f"STORAGE_VERSION '{STORAGE_VERSION}', BLOCK_SIZE {BLOCK_SIZE}"
        connection.execute(f"ATTACH {quote(str(path))} AS warehouse ({options})")
        connection.execute("USE warehouse")
        yield connection
        connection.execute("CHECKPOINT warehouse")
        connection.execute("USE memory")
        connection.execute("DETACH warehouse")


def define_database(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the published tables and views in the current database, and leave the transaction open."""
    connection.begin()
    for statements in (*map(sql_table, TABLES), *map(sql_view, VIEWS)):
        connection.execute(";\n".join(statements))


def fill_database(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Insert the rows of the last tables and commit."""
    insert_tables(connection, tables)
    connection.commit()


def insert_tables(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Insert rows table by table, what others refer to first."""
    for table in TABLES:
        if table.name in tables:
            insert_rows(connection, table.name, tables[table.name])


def insert_rows(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Insert rows into a table of the current database."""
    connection.register("incoming", rows)
    connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")
    connection.unregister("incoming")
