"""A warehouse in memory with some rows changed, to see what a view makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from ipu_results.schema import TABLES, VIEWS, sql_view
from ipu_results.store.files import get_parquet_name

Rows = list[tuple[Any, ...]]


class Altered:
    """Rows and frames of a changed warehouse."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, sql: str) -> Rows:
        return self._connection.sql(sql).fetchall()

    def frame(self, source: str) -> pd.DataFrame:
        return self._connection.sql(f"FROM {source}").to_arrow_table().to_pandas()


@contextmanager
def altered(warehouse: Path, *statements: str) -> Iterator[Altered]:
    """`statements` change the tables before anything is asked; `copy_of` gives the SQL of a new row."""
    with duckdb.connect() as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table.name} AS FROM '{warehouse / get_parquet_name(table.name)}'")
        for statement in statements:
            connection.execute(statement)
        for view in VIEWS:
            for statement in sql_view(view):
                connection.execute(statement)
        yield Altered(connection)


def copy_of(where: str, **changed: str) -> str:
    """A result like another one but for some columns, in SQL; it needs an id of its own."""
    replaced = ", ".join(f"{value} AS {name}" for name, value in changed.items())
    return f"INSERT INTO results SELECT * REPLACE ({replaced}) FROM results WHERE {where}"
