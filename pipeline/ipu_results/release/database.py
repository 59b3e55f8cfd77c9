"""Inspect the DuckDB file of a release: statistics, columns, keys, and definitions of views and macros."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import duckdb

from ipu_results._util.sql import LOCKDOWN, get_first_line
from ipu_results.errors import UnreadableReleaseError
from ipu_results.schema import TABLES

ReleaseStats = dict[str, list[tuple[Any, ...]]]

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
PRIMARY_KEYS = """
    SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'
"""
FOREIGN_KEYS = """
    SELECT table_name, constraint_column_names[1], referenced_table, referenced_column_names[1]
    FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'
"""
RELEASE_STATS = {
    "origins": "SELECT origin, task, count(*) FROM results GROUP BY ALL ORDER BY ALL",
    "documents": "SELECT count(*) FROM documents",
    "source_rows": "SELECT status, count(*) FROM source_rows GROUP BY ALL ORDER BY ALL",
    "flags": "SELECT rule, severity, count(*), count(DISTINCT result_id) FROM flags GROUP BY ALL ORDER BY ALL",
    "quarantine": "SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY ALL",
    "verdicts": "SELECT verdict, count(*) FROM claims GROUP BY ALL ORDER BY 2 DESC, 1",
    "licences": "SELECT document_id, title, publisher, licence, url FROM documents ORDER BY document_id",
    "columns": "SELECT table_name, column_name, type, unit, description FROM columns",
}
FORMULA = "'^[=+@\\t\\r-]'"  # how a text begins that a spreadsheet takes for a formula
QUOTED_OR_BLANK = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|\s+""")


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file read-only, without access to anything else. Raises UnreadableReleaseError if it is damaged."""
    try:
        return duckdb.connect(str(path), read_only=True, config=LOCKDOWN)
    except duckdb.Error as error:
        raise UnreadableReleaseError(f"cannot be opened: {get_first_line(error)}", place=str(path)) from error


def read_definitions(path: Path) -> dict[str, str]:
    """Return the digests of the definitions in a file, none without the file."""
    if not path.exists():
        return {}
    with open_database(path) as connection:
        return hash_definitions(connection)


def query_release_stats(path: Path) -> ReleaseStats:
    """Return the rows of each of RELEASE_STATS, and as `formulas` how many texts begin as a formula does."""
    with open_database(path) as connection:
        stats = {name: connection.execute(sql).fetchall() for name, sql in RELEASE_STATS.items()}
        texts = [(table.name, column.name) for table in TABLES for column in table.columns if column.kind == "text"]
        counts = (f"(SELECT count(*) FROM {table} WHERE regexp_matches({name}, {FORMULA}))" for table, name in texts)
        return stats | {"formulas": connection.execute(f"SELECT {' + '.join(counts)}").fetchall()}


def hash_definitions(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a digest of the SQL of each view and macro, the same for every version of DuckDB."""
    return {name: hash_sql(sql) for name, sql in connection.execute(DEFINITIONS).fetchall()}


def list_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[str, str]]]:
    """Return name and type of every column, by table, view and table macro."""
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, name, kind in connection.execute(COLUMNS).fetchall():
        columns.setdefault(table, []).append((name, kind))
    for (macro,) in connection.execute(MACROS).fetchall():
        rows = connection.execute(f"DESCRIBE FROM {quote_identifier(macro)}()").fetchall()
        columns[macro] = [(name, kind) for name, kind, *_ in rows]
    return columns


def list_primary_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return the key columns by table."""
    return dict(connection.execute(PRIMARY_KEYS).fetchall())


def list_foreign_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, tuple[str, str]]]:
    """Return, by table and column, the table and column that it references."""
    links: dict[str, dict[str, tuple[str, str]]] = {}
    for table, column, *target in connection.execute(FOREIGN_KEYS).fetchall():
        links.setdefault(table, {})[column] = (target[0], target[1])
    return links


def quote_identifier(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def hash_sql(sql: str) -> str:
    """Return the sha256 of SQL without its blanks outside of quotes: versions of DuckDB print other blanks."""
    bare = QUOTED_OR_BLANK.sub(lambda match: match[1] or "", sql)
    return hashlib.sha256(bare.encode()).hexdigest()
