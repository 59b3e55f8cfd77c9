"""The SQL box: tables and views with their columns, the statements that create the views, and example queries."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results._util.sql import run_query
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
