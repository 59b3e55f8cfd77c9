"""All results, with the rows of each flag and analysis, other names to search by, and prices."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.analyses import ANALYSES, Analysis, load_frames
from ipu_results.check.rules import RULES
from ipu_results.site.aliases import build_aliases
from ipu_results.site.encode import encode_query

PAGE = "graphcore-performance-2023-07-04"  # the vendor's page of results, its last capture
# As printed; that page first, then the vendor's newest documents.
ORDER = f"""
    ORDER BY document_id <> '{PAGE}', publisher <> 'Graphcore',
        published_on DESC NULLS LAST, document_id, table_name, row_number, result_id
"""
PRICES = "SELECT platform, list_price_usd FROM platforms WHERE list_price_usd IS NOT NULL ORDER BY platform"
# With the kind of processor, so that a search for "GPU" finds it.
RESULTS = f"""
    SELECT r.*, p.family, CASE
        WHEN p.family IN ('Mk1', 'Classic', 'Bow') THEN 'IPU'
        WHEN regexp_matches(p.family, '^(NVIDIA|AMD)') THEN 'GPU'
        WHEN p.family = 'Google' THEN 'TPU'
    END AS processor
    FROM results r LEFT JOIN platforms p USING (platform) {ORDER}
"""
# A flag may be on a row of `microbenchmarks`, which has a page of its own.
FLAGS = "SELECT result_id, rule, severity, column_name FROM flags SEMI JOIN results USING (result_id) ORDER BY ALL"


def build_results(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect what the views of results and of comparisons need."""
    results = encode_query(connection, RESULTS, compact=True)
    ids = run_query(connection, f"SELECT result_id FROM results {ORDER}")["result_id"].to_pylist()
    position = {result_id: row for row, result_id in enumerate(ids)}
    return {
        "results": results,
        "aliases": build_aliases(),
        "prices": {row["platform"]: row["list_price_usd"] for row in run_query(connection, PRICES).to_pylist()},
        "flags": _build_flags(connection, position),
        "sets": {analysis.name: _list_rows(connection, analysis, position) for analysis in ANALYSES},
        "rules": {rule.id: rule.title for rule in RULES},
        "questions": {analysis.name: analysis.question for analysis in ANALYSES},
    }


def _build_flags(connection: duckdb.DuckDBPyConnection, position: dict[str, int]) -> dict[str, Any]:
    flags = run_query(connection, FLAGS).to_pylist()
    columns = {"rules": "rule", "severities": "severity", "columns": "column_name"}
    by_column = {key: [flag[name] for flag in flags] for key, name in columns.items()}
    return {"rows": [position[flag["result_id"]] for flag in flags], **by_column}


def _list_rows(connection: duckdb.DuckDBPyConnection, analysis: Analysis, position: dict[str, int]) -> list[int]:
    """List the rows of `results` that an analysis uses."""
    ids: set[str] = set()
    for frame in load_frames(connection, analysis).values():
        for column in frame.columns:
            if str(column).endswith("result_id"):
                ids.update(frame[column].dropna().map(str))
    return sorted(position[result_id] for result_id in ids if result_id in position)
