"""A made-up warehouse of a few rows under the views of the analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from ipu_results.schema import TABLES, VIEWS, sql_view
from ipu_results.schema.generate import ARROW

Row = Mapping[str, Any]
PLATFORMS = (
    {"platform": "Bow Pod16", "family": "Bow", "chip_count": 16, "clock_ghz": 1.85},
    {"platform": "IPU-POD16", "family": "Classic", "chip_count": 16, "clock_ghz": 1.33},
)


def made_up(results: Sequence[Row], flags: Sequence[Row] = ()) -> duckdb.DuckDBPyConnection:
    """A database of these rows, other columns null, with the tables and views that a build has."""
    connection = duckdb.connect()
    rows = {"results": [_numbered(row, at) for at, row in enumerate(results)], "flags": flags, "platforms": PLATFORMS}
    for table in TABLES:
        schema = pa.schema([(column.name, ARROW[column.kind]) for column in table.columns])
        filled = [{name: row.get(name) for name in table.names} for row in rows.get(table.name, ())]
        connection.register("rows", pa.Table.from_pylist(filled, schema=schema))
        connection.sql(f"CREATE TABLE {table.name} AS FROM rows")
    for view in VIEWS:
        connection.execute(sql_view(view)[0])
    return connection


def _numbered(row: Row, at: int) -> Row:
    """`result_id` is the row's place where it has none."""
    return {"result_id": str(at), "document_id": "page-2", "row_number": at + 1, **row}


def asked(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return connection.sql(sql).fetchall()
