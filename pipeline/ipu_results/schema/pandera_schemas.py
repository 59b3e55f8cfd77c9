"""Make the pandera schema of a table from its definition in schema/tables.

Only checks import this: loading and querying need no pandera.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import duckdb
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
from pandera.api.extensions import register_check_method
from pandera.engines.pandas_engine import STRING, Engine

from ipu_results.kit.sql import ENGINE, LOCKDOWN
from ipu_results.schema import WORD, Column, Kind, Table
from ipu_results.schema.frames import PANDAS


class ExactText(STRING):
    """Texts in the dtype of the build alone.

    That of pandera looks at each value of another dtype, and makes a table of all that passed.
    """

    def check(self, pandera_dtype: Any, data_container: Any = None) -> bool:  # noqa: ARG002
        return bool(Engine.dtype(pandera_dtype).type == self.type)


# a row of a build has the dtypes of its table, that of a reader those of any library
EXACT: dict[Kind, Any] = {**PANDAS, "text": ExactText("pyarrow")}
READER: dict[Kind, Any] = {**PANDAS, "date": "datetime64[ns]", "timestamp": "datetime64[ns]"}


@cache
def build_gate_schema(table: Table) -> pandera.DataFrameSchema:
    """Return the schema that rows of a build pass: each column in its place and dtype, nothing
    coerced.
    """
    return _build_schema(table, EXACT, ordered=True)


def build_reader_schema(table: Table) -> pandera.DataFrameSchema:
    """Return the same for the frame of a reader: dtypes are coerced, and a nullable column may be
    missing.
    """
    return _build_schema(table, READER, coerce=True, add_missing_columns=True)


def _build_schema(
    table: Table, dtypes: Mapping[Kind, Any], **options: Any
) -> pandera.DataFrameSchema:
    columns = {}
    for column in table.columns:
        columns[column.name] = pandera.Column(
            dtypes[column.kind],
            _list_checks(column),
            nullable=not column.required,
            unique=table.key == (column.name,),
            description=column.description,
        )
    row_checks = []
    for check in table.row_checks:
        passes = pandera.Check.satisfies(
            expression=check.sql, error=check.name, description=check.description, ignore_na=False
        )
        row_checks.append(passes)
    return pandera.DataFrameSchema(
        columns,
        checks=row_checks,
        unique=list(table.key) if len(table.key) > 1 else None,
        strict=True,
        name=table.name,
        description=table.description,
        **options,
    )


def _list_checks(column: Column) -> list[pandera.Check]:
    checks = []
    # a bounded number has both limits: LIMITS gives those that its table leaves out
    if column.high is not None:
        low = column.low if column.above is None else column.above
        checks.append(pandera.Check.in_range(low, column.high, include_min=column.above is None))
    if column.choices:
        checks.append(pandera.Check.isin(list(column.choices)))
    if column.pattern:
        # pandera looks at the start alone
        checks.append(pandera.Check.str_matches(rf"(?:{column.pattern})\Z"))
    return checks


@register_check_method(statistics=["expression"], supported_types=pd.DataFrame)  # type: ignore[untyped-decorator]
def satisfies(frame: pd.DataFrame, *, expression: str) -> pd.Series[bool]:
    """Return the rows of which an SQL expression is not false, as in a CHECK of SQL."""
    # DuckDB converts what it is given: the other columns are left out
    read = [name for name in frame.columns if name in WORD.findall(expression)]
    rows = pa.Table.from_pandas(frame[read], preserve_index=False)
    with _connect().cursor() as cursor:
        passes = cursor.from_arrow(rows).project(f"coalesce({expression}, true) AS passes")
        return pd.Series(passes.fetchnumpy()["passes"], index=frame.index)


@cache  # one for all checks
def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={**ENGINE, **LOCKDOWN})
