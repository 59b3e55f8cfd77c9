"""Run the SQL of the folder `schema`, where one judgement is one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.errors import GateError
from ipu_results.kit.files import SCHEMA
from ipu_results.kit.sql import Connection, get_first_line

MACROS = "macros.sql"


def read_statement(path: str) -> str:
    """Return the text of a file under `schema/`, such as `derived/results.sql`."""
    return (SCHEMA / path).read_text(encoding="utf-8")


def define_macros(connection: Connection, path: str = MACROS, *, temporary: bool = False) -> None:
    """Define the macros of a file, by default those that all statements share: how a figure is
    written and rounded. Temporary ones go into no database, which may be read-only.

    Raises GateError that names the file.
    """
    sql = read_statement(path)
    if temporary:
        sql = sql.replace("CREATE OR REPLACE MACRO", "CREATE OR REPLACE TEMP MACRO")
    execute_text(connection, path, sql)


def run_script(connection: Connection, path: str) -> None:
    """Run all statements of a file, which define something. Raises as `run_statement` does."""
    execute_text(connection, path, read_statement(path))


def execute_text(
    connection: Connection,
    path: str,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Run a statement around the text of a file, which writes; `parameters` fill its `$name`.

    Raises GateError that names the file.
    """
    with _name_file(path):
        connection.execute(sql, dict(parameters or {}))


def run_statement(
    connection: Connection,
    path: str,
    parameters: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Run the one statement of a file, which reads; `parameters` fill its `$name`.

    Raises GateError that names the file.
    """
    return run_text(connection, path, read_statement(path), parameters)


def run_text(
    connection: Connection,
    path: str,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Run the text of a file after its placeholders are filled. Raises as `run_statement` does."""
    with _name_file(path):
        return connection.sql(sql, params=dict(parameters or {})).to_arrow_table()


@contextmanager
def _name_file(path: str) -> Iterator[None]:
    """Make an error of DuckDB one that names the file, except that memory is too small."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise GateError(get_first_line(error), place=f"schema/{path}") from error
