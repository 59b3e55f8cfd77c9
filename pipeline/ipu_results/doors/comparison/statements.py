"""Run the statements of `schema/comparison/` over rows of the record and the runs of a user.

They read `candidates`, rows of the record with what a comparison needs, and `mine`, which has the
same columns and a number, `run`. Both are temporary tables: no value of a user is part of a
statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from ipu_results.doors.comparison.lookups import LOOKUPS, build_lookups
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import define_macros, execute_text, read_statement, run_text
from ipu_results.schema import fill_placeholders

STATEMENTS: Sequence[str] = load_schema_file("order.toml")["comparison"]
OWN_MACROS = "comparison/macros.sql"
MACROS = ("macros.sql", OWN_MACROS)  # a warehouse has the first
ORDER = "document_id, table_name, row_number, result_id"  # of the sources
# What holds for a machine and for the work of an item, under the names that statements use.
PUBLISHED = """
    CREATE TEMP VIEW machines AS SELECT platform, family, rated_power_w, chip_count FROM platforms;
    CREATE TEMP VIEW operations AS
        SELECT model, variant, macs, training FROM detail.operation_counts;
    CREATE TEMP VIEW stated_peaks AS
        SELECT
            chip, lower(precision) AS type, highest_tflops AS tflops,
            standing IN ('maker', 'agreed') AS is_certain
        FROM detail.peak_standings
        WHERE sparsity = 'dense'
"""
READS = """
    SELECT 1
    FROM
        results, figures, flags, platforms, replications, mlperf_entries, detail.operation_counts,
        detail.peak_standings
"""
"""Names what a comparison reads of the record: the other files need not be opened."""
CHIPS = "SELECT chip FROM candidates UNION SELECT chip FROM mine"

Row = Mapping[str, Any]
"""A row by its columns, which users name: a type of each column would not be used."""


def read_comparison(name: str) -> str:
    """Return the text of a statement of a comparison, with the values that it shares with views."""
    return fill_placeholders(read_statement(f"comparison/{name}.sql"))


@contextmanager
def open_session(
    connection: Connection,
    where: str = "TRUE",
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Connection]:
    """Give a cursor with the rows of the record that are compared with: those of which `where`
    holds, whose `$name` are `values`.
    """
    with connection.cursor() as session:
        define_macros(session, OWN_MACROS, temporary=True)
        session.execute(PUBLISHED)
        sql = f"SELECT * FROM ({read_comparison('candidates')}) WHERE {where}"
        _create_table(session, "candidates", sql, values)
        # the columns of the record, without its rows
        session.execute(
            "CREATE TEMP TABLE mine AS SELECT NULL::BIGINT AS run, * FROM candidates LIMIT 0"
        )
        yield session


def load_runs(session: Connection, runs: Sequence[Mapping[str, Any]]) -> None:
    """Fill `mine` with runs by their columns; what a run does not state is null."""
    _insert(session, "mine", runs)


def _insert(session: Connection, name: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Insert records into a table by the names of its columns.

    pyarrow would import pandas to make arrays of their values: a third of the time of a command.
    """
    if records:
        listed = "SELECT unnest(record) FROM (SELECT unnest($records) AS record)"
        session.execute(f"INSERT INTO {name} BY NAME {listed}", {"records": list(records)})


def load_results(session: Connection, ids: Sequence[str]) -> None:
    """Fill `mine` with rows of `candidates` in the order of their ids."""
    sql = """
        INSERT INTO mine BY NAME
        SELECT list_position($ids, result_id) AS run, *
        FROM candidates
        WHERE list_contains($ids, result_id)
    """
    session.execute(sql, {"ids": list(ids)})


def run_statements(session: Connection, last: str = STATEMENTS[-1]) -> None:
    """Run the statements in their order up to `last`, each to a table of its name."""
    # small: what the vocabulary knows of the chips of this session, and not of all
    chips = session.execute(f"SELECT chip FROM ({CHIPS}) WHERE chip IS NOT NULL").fetchall()
    for name, records in build_lookups(chip for (chip,) in chips).items():
        session.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({LOOKUPS[name]})")
        _insert(session, name, records)
    for name in STATEMENTS[: STATEMENTS.index(last) + 1]:
        run_one(session, name)


def run_one(session: Connection, name: str) -> None:
    """Run one of the statements, which reads the tables of those before it."""
    _create_table(session, name, read_comparison(name))


def _create_table(
    session: Connection,
    name: str,
    sql: str,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    path = f"comparison/{name}.sql"
    execute_text(session, path, f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}", values)


def list_same_latencies(
    connection: Connection, basis: str, others: Iterable[str | None]
) -> set[str | None]:
    """Return those of what latencies time that may be compared with one."""
    sql = "SELECT other FROM (SELECT unnest($others) AS other) WHERE is_same_latency($basis, other)"
    with connection.cursor() as cursor:
        define_macros(cursor, OWN_MACROS, temporary=True)
        rows = cursor.execute(sql, {"basis": basis, "others": list(others)}).fetchall()
    return {other for (other,) in rows}


def load_rows(
    connection: Connection,
    where: str = "TRUE",
    values: Mapping[str, Any] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Load rows of the record with what a comparison needs, in the order of their sources."""
    sql = f"SELECT * FROM ({read_comparison('candidates')}) WHERE {where} ORDER BY {ORDER}"
    path = "comparison/candidates.sql"
    rows: list[dict[str, Any]] = run_text(connection, path, sql, values).to_pylist()
    return rows
