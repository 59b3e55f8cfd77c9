"""Derive the columns of `results` that follow from other columns, and the rows of `figures`: one SQL
statement each over the tables of the build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import pyarrow as pa

from ipu_results.check.gate import find_failures
from ipu_results.errors import GateError
from ipu_results.ground.sql import open_engine
from ipu_results.ground.statements import define_macros, read_statement, run_statement, run_text
from ipu_results.schema import DETAIL, TABLES, Column, Table, fill_placeholders, table
from ipu_results.schema.frames import (
    arrow_schema,
    build_frame_from_columns,
    frame_dtypes,
    to_arrow,
)

RESULTS = "results"
DEFINITIONS = f"schema/tables/{RESULTS}.toml"
STATEMENT = f"derived/{RESULTS}.sql"
STATEMENT_FILE = f"schema/{STATEMENT}"
FIGURES = "figures"
SCOPES = ("power_scope", "quality_metric", "conditions")  # they say what a figure covers


def build_figure_frame(results: pd.DataFrame) -> pd.DataFrame:
    """Build `figures` from what the sources fill of `results`.

    Raises GateError for a statement that fails.
    """
    kept = [column for column in table(RESULTS).list_kept(FIGURES) if column.kind == "double"]
    names = ["result_id", *SCOPES, *(column.name for column in kept)]
    units = {
        "metric": pa.array([column.name for column in kept]),
        "unit": pa.array([column.unit for column in kept]),
    }
    with open_engine() as connection:
        connection.register("known_unit", pa.table(units))
        connection.register(RESULTS, to_arrow(_select(table(RESULTS), names), results[names]))
        rows = run_statement(connection, f"derived/{FIGURES}.sql")
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    return build_frame_from_columns(table(FIGURES), columns)


def derive_results(
    frames: Mapping[str, pd.DataFrame],
    definition: Table | None = None,
    sql: str | None = None,
) -> pd.DataFrame:
    """Return `results` with its derived columns; `definition` and `sql` replace those of the
    schema.

    Raises GateError for an input that does not exist, a statement that fails, a row that is lost or
    repeated, a value without its inputs, and a value that its column does not accept.
    """
    definition = definition or table(RESULTS)
    inputs = collect_inputs(definition)
    results = frames[RESULTS]
    sql = sql or read_statement(STATEMENT)
    rows = _run_over_inputs(fill_placeholders(sql), frames, inputs)
    derived = _to_frame(rows, definition)
    ids = derived["result_id"]
    if len(derived) != len(results) or ids.duplicated().any():
        repeated = ids[ids.duplicated()]
        what = (
            f"{repeated.iloc[0]} has several rows"
            if len(repeated)
            else f"{len(results) - len(derived)} rows are lost"
        )
        raise GateError(what, place=STATEMENT_FILE)
    complete = results.merge(derived, on="result_id", how="left", validate="1:1")[
        list(definition.names)
    ]
    for column in definition.derived:
        _check_inputs_of(column, complete)
    if failures := find_failures(_select_derived(definition), derived):
        row = ids.iloc[failures[0].row]
        raise GateError(
            f"{row}: {failures[0].message} ({len(failures)} failures)", place=STATEMENT_FILE
        )
    return complete


def collect_inputs(definition: Table) -> dict[str, list[str]]:
    """Return the columns that derived ones are computed from, by table.

    Raises GateError for an unknown one.
    """
    known = {published.name: set(published.names) for published in TABLES}
    known[definition.name] = {*definition.names, *definition.as_filled().names}
    inputs: dict[str, list[str]] = {definition.name: list(definition.key)}
    derived = {column.name for column in definition.derived}
    for column in definition.derived:
        for name in (*column.derived_from, *column.derived_with):
            source, _, field = name.partition(".")
            if field not in known.get(source, ()):
                raise GateError(
                    f"{column.name} is derived from {name}, which does not exist", place=DEFINITIONS
                )
            named = inputs.setdefault(source, [])
            if field not in named and not (source == definition.name and field in derived):
                named.append(field)
    return inputs


def _run_over_inputs(
    sql: str,
    frames: Mapping[str, pd.DataFrame],
    inputs: Mapping[str, Sequence[str]],
) -> pa.Table:
    """Run the statement over the inputs alone: what is not declared as one cannot be read."""
    with open_engine() as connection:
        connection.execute(f"CREATE SCHEMA {DETAIL}")
        define_macros(connection)
        for name, columns in inputs.items():
            selected = _select(table(name), columns)
            connection.register(name, to_arrow(selected, frames[name][list(columns)]))
            if (sql_name := table(name).sql_name) != name:
                connection.execute(f"CREATE VIEW {sql_name} AS FROM {name}")
        return run_text(connection, STATEMENT, sql)


def _select(definition: Table, names: Sequence[str]) -> Table:
    return replace(definition, columns=tuple(definition.column(name) for name in names))


def _select_derived(definition: Table) -> Table:
    return replace(
        definition, name="derived", columns=(definition.column("result_id"), *definition.derived)
    )


def _to_frame(rows: pa.Table, definition: Table) -> pd.DataFrame:
    """Return the rows with the dtypes of the table.

    Raises GateError for other columns or types than it defines.
    """
    selected = _select_derived(definition)
    expected = arrow_schema(selected)
    actual = {field.name: field.type for field in rows.schema}
    for field in expected:
        if actual.pop(field.name, None) != field.type:
            raise GateError(f"returns no {field.name} of type {field.type}", place=STATEMENT_FILE)
    if actual:
        raise GateError(
            f"returns {', '.join(actual)}, which is not a derived column", place=STATEMENT_FILE
        )
    frame = rows.select(expected.names).to_pandas(types_mapper=pd.ArrowDtype)
    return frame.astype(frame_dtypes(selected))


def _check_inputs_of(column: Column, results: pd.DataFrame) -> None:
    """Refuse a value of a derived column in a row that lacks an input.

    Raises GateError that names the row.
    """
    for name in column.derived_from:
        source, _, field = name.partition(".")
        if source != RESULTS:
            continue
        if (lacking := results[column.name].notna() & results[field].isna()).any():
            row = results.loc[lacking, "result_id"].iloc[0]
            raise GateError(
                f"{row}: {column.name} has a value without its input {field}", place=STATEMENT_FILE
            )
