"""Format rows and values: a table for the eye, CSV or JSON for a program."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from tabulate import tabulate


def format_records(output: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as `table`, `csv` or `json`; a null is `NULL`, empty and null respectively."""
    if output == "json":
        return format_json([dict(zip(columns, map(to_json_value, row), strict=True)) for row in rows])
    if output == "csv":
        return format_csv([columns, *([to_json_value(value) for value in row] for row in rows)])
    return format_table(columns, rows)


def format_json(value: Any) -> str:
    """Format a value as JSON. Raises ValueError for a number that is not finite."""
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)


def format_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV without the last line break."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().removesuffix("\n")


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as a plain table as wide as its content, with figures aligned to the right."""
    cells = [[_format_value(value) for value in row] for row in rows]
    is_figure = [any(right for _, right in column) for column in zip(*cells, strict=True)] or [False] * len(columns)
    return str(
        tabulate(
            [[text for text, _ in row] for row in cells],
            headers=list(columns),
            tablefmt="simple",
            colalign=["right" if right else "left" for right in is_figure] if cells else None,
            disable_numparse=True,
        )
    )


def escape_unprintable(text: str) -> str:
    """Escape every character that a terminal would act on instead of showing it."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def to_json_value(value: Any) -> Any:
    """Convert a value for JSON: dates to ISO text, bytes to hex, decimals to numbers, NaN and infinity to null."""
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float)) or value is None else str(value)


def _format_value(value: Any) -> tuple[str, bool]:
    """Return the text of a value and whether it is aligned to the right."""
    if value is None:
        return "NULL", False
    if isinstance(value, Decimal):
        return str(value), True
    if isinstance(value, float):
        return (repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)), True
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value), True
    return str(to_json_value(value)), False
