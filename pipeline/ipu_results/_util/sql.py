"""One reading SQL statement over a connection that can do nothing else."""

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
    """The result of one reading statement. Raises QueryError for wrong SQL and for anything that would write."""
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1:
            raise QueryError(f"one statement is wanted, {len(statements)} are given")
        if statements[0].type not in READ_ONLY:
            raise QueryError(f"the warehouse is read-only, {statements[0].type.name.lower()} is refused")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            found = connection.sql(statements[0]).to_arrow_table()
        finally:
            connection.execute("ROLLBACK")
    except duckdb.Error as error:
        raise QueryError(get_first_line(error)) from error
    if repeated := [name for name, count in Counter(found.column_names).items() if count > 1]:
        raise QueryError(f"two columns are called {repeated[0]}; name one of them with AS")
    return found


def get_first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
