"""Look into the DuckDB file of a release: its definitions, and how SQL names what is in it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import duckdb

from ipu_results.errors import UnreadableReleaseError
from ipu_results.kit.sql import ENGINE, LOCKDOWN, get_first_line
from ipu_results.schema import qualify

# Of views and macros, each named as a statement names it. A macro may have several definitions, one
# for each list of parameters.
DEFINITIONS = """
    WITH defined AS (
        SELECT schema_name, view_name AS name, sql AS definition
        FROM duckdb_views()
        WHERE NOT internal
        UNION ALL
        SELECT
            schema_name, function_name,
            concat_ws(' ', array_to_string(list_sort(parameters), ', '), macro_definition)
        FROM duckdb_functions()
        WHERE NOT internal
    )
    SELECT
        if(schema_name = 'main', name, schema_name || '.' || name) AS sql_name,
        string_agg(definition, chr(10) ORDER BY definition)
    FROM defined
    GROUP BY ALL
    ORDER BY ALL
"""
MACROS = "SELECT schema_name, function_name FROM duckdb_functions() WHERE NOT internal"
QUOTED_OR_BLANK = re.compile(
    r"""
    "(?P<name>[a-z_]+)"                             # a plain name in quotes
    | (?P<text>'(?:[^']|'')*' | "(?:[^"]|"")*")     # any other text in quotes
    | \s+
    """,
    re.VERBOSE,
)


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
    digests = {}
    for name, sql in connection.execute(DEFINITIONS).fetchall():
        digests[name] = hash_sql(sql)
    return digests


def list_macros(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the names of the macros, as a statement writes them."""
    return {qualify(schema, name) for schema, name in connection.execute(MACROS).fetchall()}


def quote_identifier(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def quote_sql_name(name: str) -> str:
    """Return a relation's name, which may have a schema in front, as a statement writes it."""
    return ".".join(map(quote_identifier, name.split(".", 1)))


def hash_sql(sql: str) -> str:
    """Return the sha256 of SQL, for which blanks and the quotes around plain names do not count.

    Versions of DuckDB print other blanks, and each quotes its own keywords, such as "source".
    """
    bare = QUOTED_OR_BLANK.sub(lambda match: match["name"] or match["text"] or "", sql)
    return hashlib.sha256(bare.encode()).hexdigest()
