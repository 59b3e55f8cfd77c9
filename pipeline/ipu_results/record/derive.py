"""Derive the columns of `results` that follow from other columns, and the rows of `figures`: one
SQL statement each over the staged tables of the build.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from ipu_results.errors import GateError
from ipu_results.kit.sql import STAGED, Connection, create_table, open_database, read_pieces
from ipu_results.kit.statements import define_macros, execute_text, read_statement
from ipu_results.record.check.gate import find_failures
from ipu_results.schema import DETAIL, TABLES, Column, Table, fill_placeholders, table
from ipu_results.schema.frames import arrow_schema, frame_dtypes, to_pandas

RESULTS = "results"
DEFINITIONS = f"schema/tables/{RESULTS}.toml"
STATEMENT = f"derived/{RESULTS}.sql"
STATEMENT_FILE = f"schema/{STATEMENT}"
FIGURES = "figures"
SCOPES = ("power_scope", "quality_metric", "conditions")  # they say what a figure covers
DERIVED = f"{STAGED}.derived"
ROWS = f"{STAGED}.{RESULTS}"


def derive_figures(connection: Connection) -> None:
    """Create the table `figures` from what the sources fill of the staged `results`.

    Raises GateError for a statement that fails.
    """
    kept = [column for column in table(RESULTS).list_kept(FIGURES) if column.kind == "double"]
    names = ["result_id", *SCOPES, *(column.name for column in kept)]
    units = {
        "metric": pa.array([column.name for column in kept]),
        "unit": pa.array([column.unit for column in kept]),
    }
    path = f"derived/{FIGURES}.sql"
    with open_database(connection, "narrow") as narrow:
        create_table(narrow, "known_unit", pa.table(units))
        narrow.execute(f"CREATE VIEW {RESULTS} AS SELECT {', '.join(names)} FROM {ROWS}")
        sql = f"CREATE TABLE {STAGED}.{FIGURES} AS {read_statement(path)}"
        execute_text(narrow, path, sql)


def derive_results(
    connection: Connection,
    definition: Table | None = None,
    sql: str | None = None,
) -> None:
    """Create the table `derived`, which has the derived columns of the staged `results` in the
    order of its rows, and the view `complete` of both; `definition` and `sql` replace those of the
    schema.

    Raises GateError for an input that does not exist, a statement that fails, a row that is lost or
    repeated, a value without its inputs, and a value that its column does not accept.
    """
    definition = definition or table(RESULTS)
    sql = fill_placeholders(sql or read_statement(STATEMENT))
    # the order makes both halves of a row stand at the same position
    ordered = (
        f"SELECT d.* FROM ({sql}\n) d LEFT JOIN (SELECT result_id, rowid AS position FROM {ROWS})"
        " USING (result_id) ORDER BY position"
    )
    inputs = collect_inputs(definition)
    # what is not declared as an input cannot be read
    with open_database(connection, "inputs", DETAIL) as declared:
        define_macros(declared)
        for name, columns in inputs.items():
            sql_name = table(name).sql_name
            declared.execute(
                f"CREATE VIEW {sql_name} AS SELECT {', '.join(columns)} FROM {STAGED}.{sql_name}"
            )
        execute_text(declared, STATEMENT, f"CREATE TABLE {DERIVED} AS {ordered}")
    _check_columns(connection, definition)
    _check_rows(connection)
    derived_names = {column.name for column in definition.derived}
    columns = []
    for name in definition.names:
        half = DERIVED if name in derived_names else ROWS
        columns.append(f"{half}.{name}")
    connection.execute(
        f"CREATE VIEW {STAGED}.complete AS"
        f" SELECT {', '.join(columns)} FROM {ROWS} POSITIONAL JOIN {DERIVED}"
    )
    for column in definition.derived:
        _check_inputs_of(connection, column)
    gated = _select_derived(definition)
    for rows in read_pieces(connection, f"(SELECT {', '.join(gated.names)} FROM {DERIVED})"):
        frame = to_pandas(rows).astype(frame_dtypes(gated))
        failures = find_failures(gated, frame)
        if failures:
            result_id = frame["result_id"].iloc[failures[0].row]
            message = f"{result_id}: {failures[0].message} ({len(failures)} failures)"
            raise GateError(message, place=STATEMENT_FILE)


def collect_inputs(definition: Table) -> dict[str, list[str]]:
    """Return the columns that derived ones are computed from, by table.

    Raises GateError for an unknown one.
    """
    names_of = {published.name: set(published.names) for published in TABLES}
    names_of[definition.name] = {*definition.names, *definition.as_filled().names}
    inputs: dict[str, list[str]] = {definition.name: list(definition.key)}
    derived = {column.name for column in definition.derived}
    for column in definition.derived:
        for name in (*column.derived_from, *column.derived_with):
            source, _, field = name.partition(".")
            if field not in names_of.get(source, ()):
                message = f"{column.name} is derived from {name}, which does not exist"
                raise GateError(message, place=DEFINITIONS)
            is_derived = source == definition.name and field in derived
            fields = inputs.setdefault(source, [])
            if field not in fields and not is_derived:
                fields.append(field)
    return inputs


def _select_derived(definition: Table) -> Table:
    return replace(
        definition, name="derived", columns=(definition.column("result_id"), *definition.derived)
    )


def _check_columns(connection: Connection, definition: Table) -> None:
    """Refuse other columns or types than the table defines. Raises GateError."""
    none = connection.sql(f"FROM {DERIVED} LIMIT 0").to_arrow_table()
    actual = {field.name: field.type for field in none.schema}
    for field in arrow_schema(_select_derived(definition)):
        if actual.pop(field.name, None) != field.type:
            raise GateError(f"returns no {field.name} of type {field.type}", place=STATEMENT_FILE)
    if actual:
        message = f"returns {', '.join(actual)}, which is not a derived column"
        raise GateError(message, place=STATEMENT_FILE)


def _check_rows(connection: Connection) -> None:
    """Refuse a result that was lost, repeated or made up. Raises GateError."""
    repeated = connection.execute(
        f"SELECT result_id FROM {DERIVED} GROUP BY result_id HAVING count(*) > 1 LIMIT 1"
    ).fetchone()
    if repeated:
        raise GateError(f"{repeated[0]} has several rows", place=STATEMENT_FILE)
    [(lost,)] = connection.execute(
        f"SELECT count(*) FROM {ROWS} ANTI JOIN {DERIVED} USING (result_id)"
    ).fetchall()
    [(added,)] = connection.execute(
        f"SELECT count(*) FROM {DERIVED} ANTI JOIN {ROWS} USING (result_id)"
    ).fetchall()
    if lost or added:
        raise GateError(f"{lost} rows are lost, and {added} added", place=STATEMENT_FILE)


def _check_inputs_of(connection: Connection, column: Column) -> None:
    """Refuse a value of a derived column in a row that lacks an input.

    Raises GateError that names the row.
    """
    for name in column.derived_from:
        source, _, field = name.partition(".")
        if source != RESULTS:
            continue
        lacking = connection.execute(
            f"SELECT result_id FROM {STAGED}.complete"
            f" WHERE {column.name} IS NOT NULL AND {field} IS NULL LIMIT 1"
        ).fetchone()
        if lacking:
            message = f"{lacking[0]}: {column.name} has a value without its input {field}"
            raise GateError(message, place=STATEMENT_FILE)
