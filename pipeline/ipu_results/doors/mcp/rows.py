"""Columns and values of rows, which rows state what, and digits of a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ipu_results.doors.comparison.statements import Row


def pick(row: Row, names: Iterable[str]) -> dict[str, Any]:
    """Return some columns of a row."""
    return {name: row[name] for name in names}


def get_column(rows: Iterable[Row], column: str) -> list[Any]:
    """Return the values of a column, null for a blank."""
    return [row[column] for row in rows]


def list_values(rows: Iterable[Row], column: str) -> list[Any]:
    """List the different values that rows state of a column, in the order of the rows."""
    values = dict.fromkeys(get_column(rows, column))
    values.pop(None, None)
    return list(values)


def list_stated(row: Row, names: Iterable[str]) -> list[str]:
    """List the columns that a row states."""
    return [name for name in names if row[name] is not None]


def keep_stating(rows: Iterable[Row], column: str) -> list[Row]:
    """Keep the rows that state a column, such as those that print a figure."""
    return [row for row in rows if row[column] is not None]


def list_unusable(rows: Iterable[Row]) -> list[str]:
    """List the ids of the rows that may not be ranked."""
    return [row["result_id"] for row in rows if not row["usable"]]


def round_digits(value: float, digits: int) -> float:
    """Round a number to as many significant digits."""
    return float(f"{value:.{digits}g}")
