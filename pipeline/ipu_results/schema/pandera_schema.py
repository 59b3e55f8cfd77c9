"""Generate the pandera schema of a table. Only the checks import this: loading and querying need no pandera."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandera.pandas as pandera

from ipu_results.schema.definitions import Column, Table
from ipu_results.schema.generate import PANDAS
from ipu_results.schema.row_checks import ROW_CHECKS


@cache
def pandera_schema(table: Table) -> pandera.DataFrameSchema:
    """Return the table's schema: no coercion, no unknown column, the key unique."""
    return pandera.DataFrameSchema(
        {column.name: _column(column) for column in table.columns},
        checks=[pandera.Check(check, name=name) for name, check in ROW_CHECKS.get(table.name, {}).items()],
        strict=True,
        ordered=True,
        coerce=False,
        unique=list(table.key),
        name=table.name,
    )


def _column(column: Column) -> pandera.Column:
    bounds: list[tuple[Any, Any]] = [
        (pandera.Check.ge, column.low),
        (pandera.Check.gt, column.above),
        (pandera.Check.le, column.high),
        (pandera.Check.isin, list(column.choices) if column.choices else None),
        (pandera.Check.str_matches, rf"(?:{column.pattern})\Z" if column.pattern else None),
    ]
    checks = [check(bound) for check, bound in bounds if bound is not None]
    return pandera.Column(PANDAS[column.kind], checks, nullable=not column.required)
