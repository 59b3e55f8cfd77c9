"""Build the flags of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

from ipu_results.schema import table
from ipu_results.schema.frames import frame_dtypes

FLAGS = table("flags")
DTYPES = frame_dtypes(FLAGS)


def build_flags(
    rule: str,
    severity: str | Sequence[str] | Any,
    rows: pd.DataFrame,
    column_name: str | Sequence[str] | Any,
    message: Sequence[str],
    *,
    suggested: Sequence[str | None] | None = None,
) -> pd.DataFrame:
    """Build one flag per row of `rows`, which holds result_id; the other arguments are per row or the same for all."""
    values = (rule, severity, rows["result_id"].array, column_name, message, suggested)
    columns = zip(DTYPES.items(), values, strict=True)
    return pd.DataFrame({name: _column(value, len(rows), dtype) for (name, dtype), value in columns})


def _column(value: Any, length: int, dtype: Any) -> Any:
    repeated = [value] * length if value is None or isinstance(value, str) else value
    return pd.array(repeated if hasattr(repeated, "dtype") else list(repeated), dtype=dtype)


def build_no_flags() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in DTYPES.items()})


def fill_template(template: str, rows: pd.DataFrame) -> list[str]:
    """Fill `template` with the columns of each row; doubles are written without an exponent."""
    names = sorted({name for _, name, _, _ in Formatter().parse(template) if name})
    fields = zip(*(_texts(rows[name]) for name in names), strict=True)
    return [template.format(**dict(zip(names, values, strict=True))) for values in fields]


def _texts(column: pd.Series) -> list[Any]:
    return [format_figure(value) if isinstance(value, float) else value for value in column.to_list()]


def format_figure(value: float) -> str:
    """Format a double with as few digits as identify it, no exponent and no thousands mark, such as `1489341`."""
    text = f"{value:.12g}"
    return np.format_float_positional(value, trim="-") if "e" in text else text


def round_figures(values: pd.Series) -> pd.Series:
    """Round doubles to three significant digits, for ratios and estimates."""
    return pd.Series([float(f"{value:.3g}") for value in values], index=values.index, dtype="float64")
