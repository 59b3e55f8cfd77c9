"""Rows as columns: texts as words and numbers into them, so that a browser filters a hundred thousand rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results._util.sql import run_query

Frame = dict[str, Any]


def frame(connection: duckdb.DuckDBPyConnection, sql: str) -> Frame:
    """The rows of a query: a text is the place of its word, -1 where there is none; figures stay as they are."""
    found = run_query(connection, sql)
    columns = [_column(name, column) for name, column in zip(found.column_names, found.columns, strict=True)]
    return {"rows": found.num_rows, "columns": columns}


def _column(name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    values = column.to_pylist()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return {"name": name, "kind": "number", "values": [_short(value) for value in values]}
    return {"name": name, "kind": "text", **_coded([_text(value) for value in values])}


def _coded(texts: Sequence[str | None]) -> dict[str, Any]:
    words = sorted({text for text in texts if text is not None})
    places = {word: place for place, word in enumerate(words)}
    return {"words": words, "codes": [-1 if text is None else places[text] for text in texts]}


def _short(value: float | None) -> float | None:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
