"""How a rule states what it found."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

from ipu_results import schema

FLAGS = schema.table("flags")
DTYPES = schema.frame_dtypes(FLAGS)


def findings(
    rule: str,
    severity: str | Sequence[str] | Any,
    rows: pd.DataFrame,
    column_name: str | Sequence[str] | Any,
    message: Sequence[str],
    *,
    suggested: Sequence[str | None] | None = None,
) -> pd.DataFrame:
    """One flag per row of `rows`, which holds result_id; the other arguments are per row or the same for all."""
    values = (rule, severity, rows["result_id"].array, column_name, message, suggested)
    columns = zip(DTYPES.items(), values, strict=True)
    return pd.DataFrame({name: _column(value, len(rows), dtype) for (name, dtype), value in columns})


def _column(value: Any, length: int, dtype: Any) -> Any:
    repeated = [value] * length if value is None or isinstance(value, str) else value
    return pd.array(repeated if hasattr(repeated, "dtype") else list(repeated), dtype=dtype)


def no_findings() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in DTYPES.items()})


def told(template: str, rows: pd.DataFrame) -> list[str]:
    """`template` filled in with the columns of each row; doubles come out plain."""
    names = sorted({name for _, name, _, _ in Formatter().parse(template) if name})
    fields = zip(*(_texts(rows[name]) for name in names), strict=True)
    return [template.format(**dict(zip(names, values, strict=True))) for values in fields]


def _texts(column: pd.Series) -> list[Any]:
    return [plain(value) if isinstance(value, float) else value for value in column.to_list()]


def plain(value: float) -> str:
    """`4354`, `0.92`, `1489341`: as few digits as tell the figure apart, no exponent, no thousands mark."""
    text = f"{value:.12g}"
    return np.format_float_positional(value, trim="-") if "e" in text else text


def rounded(values: pd.Series) -> pd.Series:
    """Doubles to three significant digits, for ratios and estimates."""
    return pd.Series([float(f"{value:.3g}") for value in values], index=values.index, dtype="float64")
