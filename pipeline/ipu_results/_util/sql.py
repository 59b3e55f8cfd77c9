"""Run one reading SQL statement over a connection that can do nothing else."""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa

from ipu_results.errors import QueryError

READ_ONLY = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})
LOCKDOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
}


def run_query(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """Return the result of one reading statement.

    Raises QueryError for wrong SQL, for a statement that writes, and for two result columns of the same name.
    """
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1:
            raise QueryError(f"expected one statement, got {len(statements)}")
        if statements[0].type not in READ_ONLY:
            raise QueryError(f"the warehouse is read-only: {statements[0].type.name.lower()} is refused")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            result = connection.sql(statements[0]).to_arrow_table()
        finally:
            connection.execute("ROLLBACK")
    except duckdb.Error as error:
        raise QueryError(get_first_line(error)) from error
    if repeated := [name for name, count in Counter(result.column_names).items() if count > 1]:
        raise QueryError(f"two columns are called {repeated[0]}; rename one of them with AS")
    return result


def get_first_line(error: BaseException) -> str:
    """Return the first line of an error's message that is not blank, else the name of its type."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
