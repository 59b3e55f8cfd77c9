"""Look into the DuckDB file of a release: its definitions, and how SQL names what is in it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import duckdb

from ipu_results.errors import UnreadableReleaseError
from ipu_results.kit.sql import ENGINE, LOCKDOWN, get_first_line

# A relation of another schema than main has its schema in front of its name.
SQL_NAME = "if(schema_name = 'main', {0}, schema_name || '.' || {0})"
DEFINITIONS = f"""
    SELECT name, string_agg(definition, chr(10) ORDER BY definition)
    FROM (
        SELECT {SQL_NAME.format("view_name")} AS name, sql AS definition FROM duckdb_views()
        WHERE NOT internal
        UNION ALL
        SELECT {SQL_NAME.format("function_name")},
            concat_ws(' ', array_to_string(list_sort(parameters), ', '), macro_definition)
        FROM duckdb_functions() WHERE NOT internal
    )
    GROUP BY ALL ORDER BY ALL
"""
CATALOG = f"""
    SELECT 'schema' AS kind, schema_name AS name, comment AS text FROM duckdb_schemas()
    WHERE database_name = current_database()
    UNION ALL
    SELECT 'table', {SQL_NAME.format("table_name")}, concat_ws(' ', sql, comment)
    FROM duckdb_tables() WHERE NOT internal
    UNION ALL
    SELECT 'view', {SQL_NAME.format("view_name")}, concat_ws(' ', sql, comment)
    FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT 'macro', {SQL_NAME.format("function_name")},
        concat_ws(' ', parameters::VARCHAR, macro_definition, comment)
    FROM duckdb_functions() WHERE NOT internal
    UNION ALL
    SELECT 'column', {SQL_NAME.format("table_name")} || '.' || column_name,
        concat_ws(' ', column_index, data_type, column_default, comment)
    FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT 'sequence', sequence_name, sql FROM duckdb_sequences()
    UNION ALL SELECT 'index', index_name, sql FROM duckdb_indexes()
    UNION ALL SELECT 'type', type_name, logical_type FROM duckdb_types() WHERE NOT internal
    UNION ALL
    SELECT 'comment of the database', comment, '' FROM duckdb_databases()
    WHERE database_name = current_database() AND comment IS NOT NULL
    ORDER BY ALL
"""
QUOTED_OR_BLANK = re.compile(r""""([a-z_]+)"|('(?:[^']|'')*'|"(?:[^"]|"")*")|\s+""")


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file read-only, without access to anything else.

    It has one thread, so that views add up figures in one order. Raises UnreadableReleaseError if
    it is damaged.
    """
    try:
        return duckdb.connect(str(path), read_only=True, config={**ENGINE, **LOCKDOWN})
    except duckdb.Error as error:
        message = f"cannot be opened: {get_first_line(error)}"
        raise UnreadableReleaseError(message, place=str(path)) from error


def read_definitions(path: Path) -> dict[str, str]:
    """Return the digests of the definitions in a file, none without the file."""
    if not path.exists():
        return {}
    with open_database(path) as connection:
        return hash_definitions(connection)


def hash_definitions(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a digest of the SQL of each view and macro, the same for every version of DuckDB."""
    return {name: hash_sql(sql) for name, sql in connection.execute(DEFINITIONS).fetchall()}


def list_catalog(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str | None]:
    """Return all that a DuckDB file holds beside rows, by kind and name: definitions, keys, types
    and comments.
    """
    rows = connection.execute(CATALOG).fetchall()
    return {(kind, name): text for kind, name, text in rows}


def read_storage_version(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the oldest DuckDB that reads the file, such as `v1.2.0+`, null if this DuckDB does not
    say.
    """
    query = (
        "SELECT tags['storage_version'] FROM duckdb_databases()"
        " WHERE database_name = current_database()"
    )
    ((version,),) = connection.execute(query).fetchall()
    return None if version is None else str(version)


def quote_identifier(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def quote_sql_name(name: str) -> str:
    """Return a relation's name, which may have a schema in front, as a statement writes it."""
    return ".".join(map(quote_identifier, name.split(".", 1)))


def hash_sql(sql: str) -> str:
    """Return the sha256 of SQL without blanks outside of quotes and quotes of plain names.

    Versions of DuckDB print other blanks, and each quotes its own keywords, such as "source".
    """
    bare = QUOTED_OR_BLANK.sub(lambda match: match[1] or match[2] or "", sql)
    return hashlib.sha256(bare.encode()).hexdigest()
