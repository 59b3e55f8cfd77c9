"""Evaluate the views whose rows are written to files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb
import pyarrow as pa

from ipu_results._util.sql import LOCKDOWN, create_table, get_first_line
from ipu_results.errors import WarehouseError
from ipu_results.schema import VIEWS, View, sql_view
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
