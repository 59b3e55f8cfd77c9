"""Name the files of a release, write and read their checksums, and inspect its DuckDB file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ipu_results.errors import UnreadableReleaseError
from ipu_results.ground.files import hash_file
from ipu_results.ground.sql import LOCKDOWN, get_first_line

FORMAT = 1
RELEASE = "release.json"
PACKAGE = "datapackage.json"
CROISSANT = "croissant.json"
CITATION = "CITATION.cff"
ENVIRONMENT = "environment.json"
CHECKSUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"  # the only file that SHA256SUMS does not list
SUFFIXES = (".parquet", ".csv")
BUILD_TABLE = "build"  # derived from the other tables
DICTIONARY_TABLE = "columns"
CHECKSUM_LINE = re.compile(r"(?m)^([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_.-]*)$")

Columns = list[tuple[str, str, str | None]]  # name, SQL type, unit


def list_table_files(tables: Iterable[str]) -> set[str]:
    """Return the names of the files that hold these tables."""
    return {f"{name}{suffix}" for name in tables for suffix in SUFFIXES}


class Inventory(NamedTuple):
    """The tables of a release, to check its descriptors against.

    `keys` are primary keys by table; `links` are foreign keys: by table and column the referenced table and column.
    `files` is size in bytes and sha256 by file name.
    """

    tables: Set[str]
    columns: Mapping[str, Columns]
    keys: Mapping[str, list[str]]
    links: Mapping[str, Mapping[str, tuple[str, str]]]
    files: Mapping[str, tuple[int, str]]

    def compare_files(self, described: Set[str]) -> Iterator[str]:
        """Yield a message for each table file that a descriptor lacks or that it should not describe."""
        expected = list_table_files(self.tables)
        yield from (f"does not describe {name}" for name in sorted(expected - described))
        yield from (f"describes {name}, which is not a file of a table" for name in sorted(described - expected))


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS with every other file of the folder but its signature, sorted, as `sha256sum -c` reads it."""
    digests = {path.name: hash_file(path) for path in folder.iterdir() if path.name not in (CHECKSUMS, SIGNATURE)}
    (folder / CHECKSUMS).write_bytes(_format_checksums(digests))


def read_checksums(path: Path) -> tuple[dict[str, str], bool]:
    """Return the digests by file name, and whether every byte is as `write_checksums` writes it."""
    data = path.read_bytes()
    digests = {name: digest for digest, name in CHECKSUM_LINE.findall(data.decode("utf-8", errors="replace"))}
    return digests, data == _format_checksums(digests)


def _format_checksums(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


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
EXTRAS = """
    SELECT 'schema' AS kind, schema_name AS name FROM duckdb_schemas()
    WHERE database_name = current_database() AND (schema_name != 'main' OR comment IS NOT NULL)
    UNION ALL SELECT 'sequence', sequence_name FROM duckdb_sequences()
    UNION ALL SELECT 'index', index_name FROM duckdb_indexes()
    UNION ALL SELECT 'type', type_name FROM duckdb_types() WHERE NOT internal
    UNION ALL SELECT 'default or generated column', table_name || '.' || column_name FROM duckdb_columns()
    WHERE NOT internal AND column_default IS NOT NULL
    UNION ALL SELECT 'comment of the database', comment FROM duckdb_databases()
    WHERE database_name = current_database() AND comment IS NOT NULL
    ORDER BY ALL
"""
COMMENTS = """
    SELECT table_name, comment FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT table_name || '.' || column_name, comment FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT DISTINCT function_name, comment FROM duckdb_functions() WHERE NOT internal
"""
CONSTRAINTS = """
    SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
    FROM duckdb_constraints() ORDER BY ALL
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
QUOTED_OR_BLANK = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|\s+""")


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file read-only, without access to anything else. Raises UnreadableReleaseError if it is damaged.

    It has one thread, so that views add up figures in one order.
    """
    try:
        return duckdb.connect(str(path), read_only=True, config={**LOCKDOWN, "threads": 1})
    except duckdb.Error as error:
        raise UnreadableReleaseError(f"cannot be opened: {get_first_line(error)}", place=str(path)) from error


def read_definitions(path: Path) -> dict[str, str]:
    """Return the digests of the definitions in a file, none without the file."""
    if not path.exists():
        return {}
    with open_database(path) as connection:
        return hash_definitions(connection)


def query_release_stats(connection: duckdb.DuckDBPyConnection) -> ReleaseStats:
    """Return the rows of each of RELEASE_STATS."""
    return {name: connection.execute(sql).fetchall() for name, sql in RELEASE_STATS.items()}


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


def list_extras(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return kind and name of everything in the file that `publish` never writes."""
    return connection.execute(EXTRAS).fetchall()


def list_comments(connection: duckdb.DuckDBPyConnection) -> dict[str, str | None]:
    """Return the comment of each table, view, macro and column, a column as `table.column`."""
    return dict(connection.execute(COMMENTS).fetchall())


def list_constraints(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    """Return, by table, type, columns, referenced table and referenced columns of each constraint, sorted."""
    constraints: dict[str, list[tuple[Any, ...]]] = {}
    for table, kind, columns, target, keys in connection.execute(CONSTRAINTS).fetchall():
        entry = (kind, tuple(columns or ()), target or "", tuple(keys or ()))
        constraints.setdefault(table, []).append(entry)
    return {table: sorted(entries) for table, entries in constraints.items()}


def read_storage_version(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the oldest DuckDB that reads the file, such as `v1.2.0+`, null if this DuckDB does not say."""
    query = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()"
    ((version,),) = connection.execute(query).fetchall()
    return None if version is None else str(version)


def quote_identifier(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def hash_sql(sql: str) -> str:
    """Return the sha256 of SQL without its blanks outside of quotes: versions of DuckDB print other blanks."""
    bare = QUOTED_OR_BLANK.sub(lambda match: match[1] or "", sql)
    return hashlib.sha256(bare.encode()).hexdigest()
