"""Encode rows as columns and values as scripts, so that a page opened from disk can load and filter them quickly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results._util.sql import run_query

Columns = dict[str, Any]

# Characters that could end a script element, open a comment in it or, in old engines, end a line of it.
ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def format_script(name: str, value: Any) -> str:
    """Format a classic script that stores a value as `window.__data[name]`: a page from disk can load no JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)
    return f"(window.__data=window.__data||{{}})[{json.dumps(name)}]={text};\n"


def encode_query(connection: duckdb.DuckDBPyConnection, sql: str, *, compact: bool = False) -> Columns:
    """Encode the rows of a query by column: numbers unchanged, texts as indexes into their words, -1 for none.

    A browser filters a hundred thousand such rows at once. A `compact` column has `runs`, the length of each run of
    equal values, where that is shorter; a text column in which no two rows share a word has no codes.
    """
    table = run_query(connection, sql)
    columns = [_encode_column(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return {"rows": table.num_rows, "columns": [_compact(column) for column in columns] if compact else columns}


def _encode_column(name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    values = column.to_pylist()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return {"name": name, "kind": "number", "values": [_shorten_integer(value) for value in values]}
    return {"name": name, "kind": "text", **_encode_texts([_to_text(value) for value in values])}


def _compact(column: dict[str, Any]) -> dict[str, Any]:
    codes = "codes" if column["kind"] == "text" else "values"
    if codes == "codes" and sorted(column[codes]) == list(range(len(column[codes]))):
        words = [column["words"][code] for code in column[codes]]
        return {"name": column["name"], "kind": "text", "words": words}
    groups = [(value, len(list(group))) for value, group in groupby(column[codes])]
    if 2 * len(groups) >= len(column[codes]):
        return column
    return {**column, codes: [value for value, _ in groups], "runs": [length for _, length in groups]}


def _encode_texts(texts: Sequence[str | None]) -> dict[str, Any]:
    words = sorted({text for text in texts if text is not None})
    codes = {word: code for code, word in enumerate(words)}
    return {"words": words, "codes": [-1 if text is None else codes[text] for text in texts]}


def _shorten_integer(value: float | None) -> float | None:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _to_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
