"""Generate the pandera schema of a table. Only the checks import this: loading and querying need no pandera."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pandera.pandas as pandera

from ipu_results.schema.definitions import Column, Table
from ipu_results.schema.generate import frame_dtypes
from ipu_results.schema.row_checks import ROW_CHECKS


@cache
def pandera_schema(table: Table) -> pandera.DataFrameSchema:
    """Return the table's schema: no coercion, no unknown column, the key unique.

    Pandera takes a millisecond a column, so names and dtypes of all columns are one check, and only a column with a
    limit on its values is checked on its own.
    """
    dtypes = list(frame_dtypes(table).items())
    checks: dict[str, Callable[[pd.DataFrame], Any]] = {"columns": lambda frame: list(frame.dtypes.items()) == dtypes}
    checks |= ROW_CHECKS.get(table.name, {})
    columns = {column.name: _list_checks(column) for column in table.columns}
    return pandera.DataFrameSchema(
        {
            column.name: pandera.Column(None, columns[column.name], nullable=not column.required)
            for column in table.columns
            if columns[column.name] or column.required
        },
        checks=[pandera.Check(check, name=name) for name, check in checks.items()],
        unique=list(table.key),
        name=table.name,
    )


def _list_checks(column: Column) -> list[pandera.Check]:
    bounds: list[tuple[Any, Any]] = [
        (pandera.Check.ge, column.low),
        (pandera.Check.gt, column.above),
        (pandera.Check.le, column.high),
        (pandera.Check.isin, list(column.choices) if column.choices else None),
        (pandera.Check.str_matches, rf"(?:{column.pattern})\Z" if column.pattern else None),
    ]
    return [check(bound) for check, bound in bounds if bound is not None]
