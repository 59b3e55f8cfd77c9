"""What the DuckDB file of a release has beside rows: columns, keys, and definitions of views and macros."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import duckdb

from ipu_results.errors import UnreadableReleaseError
from ipu_results._util.sql import LOCKDOWN, get_first_line

DEFINITIONS = """
    SELECT name, string_agg(definition, chr(10) ORDER BY definition)
    FROM (
        SELECT view_name AS name, sql AS definition FROM duckdb_views() WHERE NOT internal
        UNION ALL
        SELECT function_name, concat_ws(' ', array_to_string(list_sort(parameters), ', '), macro_definition)
        FROM duckdb_functions() WHERE NOT internal
    )
    GROUP BY ALL ORDER BY ALL
"""
COLUMNS = """
    SELECT if(schema_name = 'main', table_name, schema_name || '.' || table_name), column_name, data_type
    FROM duckdb_columns() WHERE NOT internal ORDER BY schema_name, table_name, column_index
"""
MACROS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND function_type = 'table_macro'"
KEYS = "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
LINKS = """
    SELECT table_name, constraint_column_names[1], referenced_table, referenced_column_names[1]
    FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'
"""
QUOTED_OR_BLANK = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|\s+""")


def opened(path: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(path), read_only=True, config=LOCKDOWN)


def read_definitions(path: Path) -> dict[str, str]:
    """The definitions in a file; empty where there is no such file. Raises UnreadableReleaseError where it is damaged."""
    if not path.exists():
        return {}
    try:
        with opened(path) as connection:
            return definitions(connection)
    except duckdb.Error as error:
        raise UnreadableReleaseError(f"cannot be opened: {get_first_line(error)}", place=str(path)) from error


def definitions(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """A digest of the SQL of each view and macro, the same by each DuckDB: these print it with other blanks."""
    return {name: sql_digest(sql) for name, sql in connection.execute(DEFINITIONS).fetchall()}


def columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[str, str]]]:
    """Name and type of every column of the tables, views and macros that give rows."""
    found: dict[str, list[tuple[str, str]]] = {}
    for table, name, kind in connection.execute(COLUMNS).fetchall():
        found.setdefault(table, []).append((name, kind))
    for (macro,) in connection.execute(MACROS).fetchall():
        described = connection.execute(f"DESCRIBE FROM {name_of(macro)}()").fetchall()
        found[macro] = [(name, kind) for name, kind, *_ in described]
    return found


def keys(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    return dict(connection.execute(KEYS).fetchall())


def links(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, tuple[str, str]]]:
    """By table and column the table and column that it references."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for table, column, *target in connection.execute(LINKS).fetchall():
        found.setdefault(table, {})[column] = (target[0], target[1])
    return found


def name_of(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_digest(sql: str) -> str:
    """Blanks outside of quotes do not count."""
    bare = QUOTED_OR_BLANK.sub(lambda found: found[1] or "", sql)
    return hashlib.sha256(bare.encode()).hexdigest()
