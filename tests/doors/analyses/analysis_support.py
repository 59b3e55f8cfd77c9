"""Warehouses in memory for the views of the analyses: a few made-up rows, or the built rows with
some changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from ipu_results.doors.analyses import Answer, answer_question, build_specification, load_analysis
from ipu_results.kit.sql import ENGINE, create_table
from ipu_results.kit.statements import define_macros
from ipu_results.record.derive import collect_inputs
from ipu_results.record.store.files import get_parquet_name
from ipu_results.schema import DETAIL, TABLES, VIEWS, sql_view, table
from ipu_results.schema.frames import ARROW, to_arrow

from tests.cases import read_cases
from tests.conftest import derive_frame

Row = Mapping[str, Any]
PLATFORMS = (
    {"platform": "Bow Pod16", "family": "Bow", "chip_count": 16, "clock_ghz": 1.85},
    {"platform": "IPU-POD16", "family": "Classic", "chip_count": 16, "clock_ghz": 1.33},
)


def read_toml(name: str) -> dict[str, Any]:
    """Return the content of a file of this folder."""
    return read_cases(__file__, name)


BASES = read_toml("cases.toml")["bases"]
TRAINED = BASES["trained"]
CHANGES = read_toml("changes.toml")


class Database:
    """A warehouse in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def execute(self, sql: str) -> None:
        self._connection.execute(sql)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.sql(sql).fetchall()

    def answer(self, name: str, **settings: float) -> Answer:
        return answer_question(self._connection, load_analysis(name), settings)

    def draw(self, name: str) -> dict[str, Any]:
        analysis = load_analysis(name)
        return build_specification(self._connection, analysis, self.answer(name))


def make_warehouse(
    results: Sequence[Row], flags: Sequence[Row] = (), **tables: Sequence[Row]
) -> Database:
    """Make a database of these rows, with null in all other columns; a result's id is its position.

    A result has the columns that sources fill, and derived ones where it gives them a value of its
    own; what it says in `suspect` is also a flag. `tables` are the rows of other tables, by name.
    All databases are one, whose views take ten times as long as a few rows: each has its rows in a
    transaction of its own, which is never committed.
    """
    numbered = []
    doubts = []
    for at, result in enumerate(results):
        row = {"result_id": str(at), "document_id": "page-2", "row_number": at + 1, **result}
        numbered.append(row)
        if "suspect" in row:
            flag = {"rule": "R47", "severity": "warn", "message": row["suspect"]}
            doubts.append({"result_id": row["result_id"], **flag})
    others = {"flags": [*flags, *doubts], "platforms": PLATFORMS, **tables}
    connection = _open_empty().cursor()
    connection.begin()
    for name, rows in others.items():
        _insert(connection, table(name).sql_name, _make_rows(name, rows, table(name).names))
    _insert(connection, "results", _derive(numbered, others))
    return Database(connection)


def _derive(results: Sequence[Row], others: Mapping[str, Sequence[Row]]) -> pa.Table:
    """Derive the columns of results that they give no value of their own."""
    published = table("results")
    columns = tuple(replace(column, pattern=None) for column in published.columns)
    definition = replace(published, columns=columns)  # an id is a position
    frames = {}
    for name, names in collect_inputs(definition).items():
        frames[name] = _make_rows(name, others.get(name, []), names)
    frames["results"] = _make_rows("results", results, definition.as_filled().names)
    derived = derive_frame(frames, definition).set_index("result_id", drop=False)
    for row in results:
        for column in definition.derived:
            if column.name in row:
                derived.loc[row["result_id"], column.name] = row[column.name]
    return to_arrow(definition, derived.reset_index(drop=True))


@cache
def _open_empty() -> duckdb.DuckDBPyConnection:
    """Open a database with every table and view, and no rows."""
    connection = duckdb.connect(config=ENGINE)
    connection.begin()
    connection.execute(f"CREATE SCHEMA {DETAIL}")
    for published in TABLES:
        rows = _make_rows(published.name, [], published.names)
        create_table(connection, published.sql_name, rows)
    create_views(connection)
    connection.commit()
    return connection


def _insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    connection.register("incoming", rows)
    connection.execute(f"INSERT INTO {name} FROM incoming")


def _make_rows(name: str, rows: Sequence[Row], names: Sequence[str]) -> pa.Table:
    """Return the columns `names` of rows of a table; absent values are null."""
    definition = table(name)
    schema = pa.schema([(column, ARROW[definition.column(column).kind]) for column in names])
    return pa.Table.from_pylist(list(rows), schema=schema)


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    define_macros(connection)
    for view in VIEWS:
        connection.execute(sql_view(view)[0])


@contextmanager
def changed(warehouse: Path, *statements: str) -> Iterator[Database]:
    """Execute statements on the tables of a built warehouse, in a transaction that is never
    committed.
    """
    connection = _open_built(warehouse).cursor()
    connection.begin()
    for statement in statements:
        connection.execute(statement)
    yield Database(connection)
    connection.rollback()


@cache
def _open_built(warehouse: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=ENGINE)
    connection.begin()
    connection.execute(f"CREATE SCHEMA {DETAIL}")
    for published in TABLES:
        path = warehouse / get_parquet_name(published.sql_name)
        connection.execute(f"CREATE TABLE {published.sql_name} AS FROM '{path}'")
    create_views(connection)
    connection.commit()
    return connection


def copy_result(where: str, **values: str) -> str:
    """Return SQL that inserts a copy of a result with other values, each in SQL; it needs its own
    `result_id`.
    """
    replaced = ", ".join(f"{value} AS {name}" for name, value in values.items())
    return f"INSERT INTO results SELECT * REPLACE ({replaced}) FROM results WHERE {where}"


def read_change(case: Mapping[str, str]) -> str:
    """Return the SQL of a change: a statement, or one that flags results with an error, and counts
    it as the build does.
    """
    if "statement" in case:
        return case["statement"]
    where = case["flagged"]
    return (
        "INSERT INTO flags BY NAME SELECT 'R01' AS rule, 'error' AS severity, result_id FROM"
        f" results WHERE {where}; UPDATE results SET errors = errors + 1, usable = FALSE WHERE {where}"
    )
