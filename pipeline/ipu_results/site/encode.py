"""Encode rows as columns and values as scripts, so that a page opened from disk can load and filter them quickly.

The SQL box gets tables, views and example queries in the same form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.ground.sql import run_query
from ipu_results.schema import TABLES, VIEWS, sql_view
from ipu_results.store.files import get_parquet_name

EXAMPLES: tuple[tuple[str, str], ...] = (
    (
        "Fastest ResNet-50 inference within 5 ms, without rows with error flags",
        "SELECT platform, framework, batch_size, latency_ms, throughput\nFROM inference\n"
        "WHERE model = 'ResNet-50 v1.5' AND publisher = 'Graphcore' AND latency_ms <= 5 AND errors = 0\n"
        "ORDER BY throughput DESC",
    ),
    (
        "Batches in flight on the paper's card (Little's law)",
        "SELECT batch_size, latency_ms, throughput, round(batches_in_flight, 2) AS batches_in_flight\n"
        "FROM results WHERE table_name = 'qwant_c2' ORDER BY batch_size",
    ),
    (
        "Results by origin and publisher",
        "SELECT origin, publisher, count(*) AS results FROM results GROUP BY ALL ORDER BY results DESC",
    ),
    (
        "What is flagged as wrong, and why",
        "SELECT rule, model, platform, column_name, message, suggested\nFROM flags JOIN results USING (result_id)\n"
        "WHERE severity = 'error' ORDER BY ALL",
    ),
    (
        "Where a figure was printed",
        "SELECT column_name, header, raw_text, value, unit, factor, title, locator\nFROM provenance\n"
        "WHERE model = 'DINO' ORDER BY ALL",
    ),
    (
        "Printed MLPerf minutes and the official score",
        "SELECT p.mlperf_id, p.model, p.platform, round(p.time_to_train_s / 60, 2) AS printed,\n"
        "    round(e.minutes, 4) AS official\nFROM results p JOIN mlperf_entries e USING (mlperf_id)\n"
        "WHERE p.origin = 'published' ORDER BY 1",
    ),
    ("Claims by verdict", "SELECT verdict, count(*) AS claims FROM claims GROUP BY verdict ORDER BY claims DESC"),
    (
        "The arithmetic of claims that the data contradict",
        "SELECT claim_id, claim, figure, r.baseline AS against, arithmetic, outcome\n"
        "FROM claims JOIN recomputations r USING (claim_id)\nWHERE verdict = 'contradicted' ORDER BY ALL",
    ),
    (
        "The best throughput within 10 ms, by network and machine",
        "SELECT network, work, origin, platform, throughput, latency_ms, batch_size\nFROM latency_bounded\n"
        "WHERE bound_ms = 10 ORDER BY network, throughput DESC",
    ),
    (
        "What a dollar buys at a price that you were quoted",
        "SELECT network, ipu_platform, measure, round(performance_ratio, 3) AS performance,\n"
        "    round(per_dollar_ratio, 3) AS per_dollar, round(break_even_ipu_price_usd) AS tie_at_usd\n"
        "FROM per_dollar(ipu_price := 120000) WHERE benchmark IS NOT NULL ORDER BY ALL",
    ),
)


def build_sql(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect file names, view statements, the data dictionary and the examples."""
    return {
        "files": {table.name: get_parquet_name(table.name) for table in TABLES},
        "views": [sql_view(view)[0] for view in VIEWS],
        "columns": run_query(connection, "FROM columns ORDER BY ALL").to_pylist(),
        "examples": [{"title": title, "sql": text} for title, text in EXAMPLES],
    }


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
