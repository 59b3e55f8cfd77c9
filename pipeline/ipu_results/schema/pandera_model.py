"""Generate the pandera model of a table. Only the checks import this: pandera is not needed to load or query."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa

from ipu_results.schema.definitions import Column, Kind, Table
from ipu_results.schema.row_checks import ROW_CHECKS

ANNOTATION: dict[Kind, Any] = {
    "text": Annotated[pd.StringDtype, "pyarrow", float("nan")],
    "integer": pd.Int64Dtype,
    "double": float,
    "date": Annotated[pd.ArrowDtype, pa.date32()],
    "timestamp": Annotated[pd.ArrowDtype, pa.timestamp("us")],
    "boolean": pd.BooleanDtype,
}


@cache
def pandera_model(table: Table) -> type[pandera.DataFrameModel]:
    """Return the table's model: no coercion, no unknown column, the key unique."""
    rules = {"strict": True, "ordered": True, "coerce": False, "name": table.name, "unique": list(table.key)}
    members: dict[str, Any] = {column.name: _field(column) for column in table.columns}
    for name, check in ROW_CHECKS.get(table.name, {}).items():
        members[name] = pandera.dataframe_check(_as_method(check), name=name)
    members |= {
        "__annotations__": {column.name: ANNOTATION[column.kind] for column in table.columns},
        "__doc__": table.description,
        "__module__": __name__,
        "Config": type("Config", (), rules),
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


def _as_method(check: Callable[[pd.DataFrame], pd.Series[bool]]) -> Callable[..., Any]:
    return lambda _cls, frame: check(frame)
