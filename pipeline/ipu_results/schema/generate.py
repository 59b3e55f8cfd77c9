"""From a column's definition to its pandera field, Arrow field, SQL column and dictionary row."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa

from ipu_results.schema.checks import ROW_CHECKS
from ipu_results.schema.columns import Column, Kind, Table

# pandera loads what it can work with, for half a second, wherever that is installed; nothing here is one of these.
for unused, user in {
    "dask.dataframe": "pandera.typing.dask",
    "hypothesis": "pandera.strategies.base_strategies",
}.items():
    if unused not in sys.modules:
        sys.modules[unused] = None  # type: ignore[assignment]
        import_module(user)
        del sys.modules[unused]

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
FRAME: dict[Kind, Any] = {
    "text": pd.StringDtype("pyarrow", na_value=float("nan")),
    "integer": pd.Int64Dtype(),
    "double": "float64",
    "date": pd.ArrowDtype(pa.date32()),
    "timestamp": pd.ArrowDtype(pa.timestamp("us")),
    "boolean": pd.BooleanDtype(),
}
ANNOTATION: dict[Kind, Any] = {
    "text": Annotated[pd.StringDtype, "pyarrow", float("nan")],
    "integer": pd.Int64Dtype,
    "double": float,
    "date": Annotated[pd.ArrowDtype, pa.date32()],
    "timestamp": Annotated[pd.ArrowDtype, pa.timestamp("us")],
    "boolean": pd.BooleanDtype,
}


def frame_dtypes(table: Table) -> dict[str, Any]:
    """Column names to pandas dtypes; missing values are nulls of that dtype, never objects."""
    return {column.name: FRAME[column.kind] for column in table.columns}


@cache
def pandera_model(table: Table) -> type[pandera.DataFrameModel]:
    """The table's pandera model: no coercion, no unknown column, the index unique."""
    rules = {"strict": True, "ordered": True, "coerce": False, "name": table.name, "unique": list(table.key)}
    config = type("Config", (), rules)
    members: dict[str, Any] = {column.name: _field(column) for column in table.columns}
    members |= {name: pandera.dataframe_check(check, name=name) for name, check in _row_checks(table)}
    members |= {
        "__annotations__": {column.name: ANNOTATION[column.kind] for column in table.columns},
        "__doc__": table.description,
        "__module__": __name__,
        "Config": config,
    }
    name = "".join(part.title() for part in table.name.split("_"))
    return type(name, (pandera.DataFrameModel,), members)


def _field(column: Column) -> Any:
    return pandera.Field(
        nullable=not column.required,
        ge=column.low,
        gt=column.above,
        le=column.high,
        isin=list(column.choices) if column.choices else None,
        str_matches=rf"(?:{column.pattern})\Z" if column.pattern else None,
        description=column.description,
    )


def _row_checks(table: Table) -> list[tuple[str, Callable[..., Any]]]:
    return [(name, _as_method(check)) for name, check in ROW_CHECKS.get(table.name, {}).items()]


def _as_method(check: Callable[[pd.DataFrame], pd.Series[bool]]) -> Callable[..., Any]:
    return lambda _cls, frame: check(frame)


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """The table's Arrow schema; unit and description stand in each field's metadata."""
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
    """DuckDB statements that create the table with its keys and comments."""
    lines = [f"{column.name} {SQL[column.kind]}{' NOT NULL' if column.required else ''}" for column in table.columns]
    lines.append(f"PRIMARY KEY ({', '.join(table.key)})")
    lines += [
        f"FOREIGN KEY ({column.name}) REFERENCES {target} ({key})"
        for column in table.columns
        if column.references
        for target, key in [column.references.split(".")]
    ]
    comments = [f"COMMENT ON TABLE {table.name} IS {quoted(table.description)}"]
    comments += [
        f"COMMENT ON COLUMN {table.name}.{column.name} IS {quoted(_described(column))}" for column in table.columns
    ]
    return [f"CREATE TABLE {table.name} (\n  " + ",\n  ".join(lines) + "\n)", *comments]


def quoted(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + re.sub("'", "''", text) + "'"


def _described(column: Column) -> str:
    return f"{column.description} [{column.unit}]" if column.unit else column.description


def dictionary_rows(table: Table) -> list[dict[str, str | None]]:
    """The table's lines in `columns`, the first one for the table itself."""
    return described_rows(table.name, "table", table.description, table.columns)


def described_rows(name: str, kind: str, description: str, columns: Iterable[Column]) -> list[dict[str, str | None]]:
    """Lines in `columns` of a table or view: one for itself, one for each of its columns."""
    told: list[tuple[str, str, str | None, str]] = [("", kind, None, description)]
    told += [(column.name, SQL[column.kind], column.unit, column.description) for column in columns]
    keys = ("table_name", "column_name", "type", "unit", "description")
    return [dict(zip(keys, (name, *line), strict=True)) for line in told]
