"""Rows for a reader: a table for the eye, CSV or JSON for a program."""

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


def format_records(kind: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as a `table`, `csv` or `json`; nulls are `NULL`, empty and null respectively."""
    if kind == "json":
        return format_json([dict(zip(columns, map(to_json_value, row), strict=True)) for row in rows])
    if kind == "csv":
        return format_csv([columns, *([to_json_value(value) for value in row] for row in rows)])
    return format_table(columns, rows)


def format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)


def format_csv(rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().removesuffix("\n")


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as wide as its content, figures to the right."""
    shown = [[_shown(value) for value in row] for row in rows]
    figures = [any(right for _, right in column) for column in zip(*shown, strict=True)] or [False] * len(columns)
    return str(
        tabulate(
            [[text for text, _ in row] for row in shown],
            headers=list(columns),
            tablefmt="simple",
            colalign=["right" if right else "left" for right in figures] if shown else None,
            disable_numparse=True,
        )
    )


def escape_unprintable(text: str) -> str:
    """Text that a terminal shows and obeys in nothing: what does not print stands escaped."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def to_json_value(value: Any) -> Any:
    """A value that JSON can hold: dates as ISO text, bytes as hex, decimals as numbers, what is not finite as null."""
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


def _shown(value: Any) -> tuple[str, bool]:
    """Text of a value and whether it stands to the right."""
    if value is None:
        return "NULL", False
    if isinstance(value, Decimal):
        return str(value), True
    if isinstance(value, float):
        return (repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)), True
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value), True
    return str(to_json_value(value)), False
