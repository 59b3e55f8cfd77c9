"""Generate the Arrow schema, the pandas dtypes, the SQL and the dictionary rows of a table from its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa

from ipu_results.schema.definitions import Column, Kind, Table, View

ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}
SQL: dict[Kind, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}
PANDAS: dict[Kind, Any] = {
    "text": pd.StringDtype("pyarrow", na_value=float("nan")),
    "integer": pd.Int64Dtype(),
    "double": "float64",
    "date": pd.ArrowDtype(pa.date32()),
    "timestamp": pd.ArrowDtype(pa.timestamp("us")),
    "boolean": pd.BooleanDtype(),
}


def frame_dtypes(table: Table) -> dict[str, Any]:
    """Map column names to pandas dtypes; a missing value is a null of that dtype, never an object."""
    return {column.name: PANDAS[column.kind] for column in table.columns}


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """Return the table's Arrow schema, with unit and description in the metadata of each field."""
    fields = [
        pa.field(
            column.name,
            ARROW[column.kind],
            nullable=not column.required,
            metadata={"description": column.description} | ({"unit": column.unit} if column.unit else {}),
        )
        for column in table.columns
    ]
    return pa.schema(fields, metadata={"description": table.description})


def sql_table(table: Table) -> list[str]:
    """Return the DuckDB statements that create the table with its keys and comments."""
    lines = [f"{column.name} {SQL[column.kind]}{' NOT NULL' if column.required else ''}" for column in table.columns]
    lines.append(f"PRIMARY KEY ({', '.join(table.key)})")
    lines += [
        f"FOREIGN KEY ({column.name}) REFERENCES {target} ({key})"
        for column in table.columns
        if column.references
        for target, key in [column.references.split(".")]
    ]
    comments = [f"COMMENT ON TABLE {table.name} IS {quote(table.description)}"]
    comments += [
        f"COMMENT ON COLUMN {table.name}.{column.name} IS {quote(describe_column(column))}" for column in table.columns
    ]
    return [f"CREATE TABLE {table.name} (\n  " + ",\n  ".join(lines) + "\n)", *comments]


def sql_view(view: View) -> list[str]:
    """Return the DuckDB statements that create the view or macro with its comments."""
    if view.parameters:
        parameters = ", ".join(f"{name} := {default}" for name, default in view.parameters)
        return [
            f"CREATE MACRO {view.name}({parameters}) AS TABLE {view.sql}",
            f"COMMENT ON MACRO TABLE {view.name} IS {quote(view.description)}",
        ]
    comments = [f"COMMENT ON VIEW {view.name} IS {quote(view.description)}"]
    comments += [
        f"COMMENT ON COLUMN {view.name}.{column.name} IS {quote(column.description)}" for column in view.columns
    ]
    return [f"CREATE VIEW {view.name} AS {view.sql}", *comments]


def quote(text: str) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def describe_column(column: Column) -> str:
    """Return the description, with the unit in brackets."""
    return format_description(column.description, column.unit)


def format_description(description: str, unit: str | None) -> str:
    """Return a description with the unit in brackets, if there is one."""
    return f"{description} [{unit}]" if unit else description


def dictionary_rows(relation: Table | View) -> list[dict[str, str | None]]:
    """Return the relation's rows of the table `columns`: one for itself, then one for each of its columns."""
    kind = "table" if isinstance(relation, Table) else "macro" if relation.parameters else "view"
    return [
        _dictionary_row(relation.name, "", kind, None, relation.description, ()),
        *_column_rows(relation.name, relation.columns),
    ]


def _column_rows(relation: str, columns: Iterable[Column]) -> Iterable[dict[str, str | None]]:
    for column in columns:
        inputs = (*column.derived_from, *column.derived_with)
        yield _dictionary_row(relation, column.name, SQL[column.kind], column.unit, column.description, inputs)


def _dictionary_row(
    relation: str, column: str, kind: str, unit: str | None, text: str, inputs: Sequence[str]
) -> dict[str, str | None]:
    return {
        "table_name": relation,
        "column_name": column,
        "type": kind,
        "unit": unit,
        "description": text,
        "derived_from": ", ".join(inputs) or None,
    }
