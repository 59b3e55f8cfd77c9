"""Fill a table shaped like `results` with generated rows."""

from __future__ import annotations

import duckdb
from ipu_results.schema import sql_table, table

from benchmarks.generate import (
    BOW,
    CHIPS,
    CLASSIC,
    DATASETS,
    FRAMEWORKS,
    LENGTHS,
    MODELS,
    PRECISIONS,
)

RESULTS = table("results")
PICKS = f"""
    SELECT
        i, hash(i) AS h, {{models}}[1 + pick(i, 1, {len(MODELS)})] AS model,
        {{speeds}}[1 + pick(i, 1, {len(MODELS)})] AS speed, pick(i, 2, 2) = 0 AS bow,
        1 + pick(i, 3, 3) AS size, CAST(2 ** pick(i, 4, 5) AS BIGINT) AS step,
        pick(i, 5, 4) < 3 AS inference, pick(i, 6, 1000) AS noise,
        {{lengths}}[1 + pick(i, 7, 3)] AS length, pick(i, 8, 1000000) AS h8,
        pick(i, 9, 1000000) AS h9, pick(i, 10, 1000000) AS h10
    FROM range({{rows}}) AS numbers(i)"""
FIGURES = """
    SELECT *, round(speed * {chips}[size] ** 0.9 * step ** 0.55 * (0.8 + 0.4 * noise / 1000)
        * CASE WHEN bow THEN 1.33 ELSE 1 END, 1) AS throughput FROM picks"""
FILLED = {
    "result_id": "format('r{{:016x}}', h)",
    "origin": "'published'",
    "publisher": "'Graphcore'",
    "document_id": "'generated-' || (i // 10000)",
    "table_name": (
        "CASE WHEN bow THEN 'bow_' ELSE 'pod_' END || if(inference, 'inference', 'training')"
    ),
    "row_number": "1 + i % 10000",
    "published_on": "DATE '2020-01-01' + h8 % 1400",
    "task": "CASE WHEN inference THEN 'inference' ELSE 'training' END",
    "model": "model",
    "model_printed": "model",
    "variant": "'SL' || length || ', configuration ' || (i // 5)",
    "dataset_printed": "{datasets}[1 + h9 % {dataset_count}]",
    "platform": "CASE WHEN bow THEN {bow}[size] ELSE {classic}[size] END",
    "chip": "CASE WHEN bow THEN 'Bow' ELSE 'GC200' END",
    "chip_count": "{chips}[size]",
    "sdk_version": "'2.' || (h10 % 7) || '.0'",
    "framework": "{frameworks}[1 + h9 // 16 % 3]",
    "precision_printed": "{precisions}[1 + h8 // 2048 % 3]",
    "activation_bits": "CAST(split_part(precision_printed, '.', 1) AS INTEGER)",
    "weight_bits": "CAST(split_part(precision_printed, '.', 2) AS INTEGER)",
    "batch_size": "step * {chips}[size]",
    "throughput": "throughput",
    "item": "'item'",
    "usable": "TRUE",
    "latency_ms": "CASE WHEN inference THEN round(1600 * step * {chips}[size] / throughput, 2) END",
}


def fill_results(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Create the table and fill it with generated rows."""
    create, *_ = sql_table(RESULTS)
    connection.execute(create)
    connection.execute(
        "CREATE TEMP MACRO pick(i, salt, n) AS CAST(hash(16 * i + salt) % n AS INTEGER)"
    )
    columns = ", ".join(f"{text} AS {name}" for name, text in FILLED.items())
    query = f"WITH picks AS ({PICKS}), figures AS ({FIGURES}) SELECT {columns} FROM figures"
    filled = query.format(
        models=list(MODELS),
        speeds=list(MODELS.values()),
        lengths=list(LENGTHS),
        chips=list(CHIPS),
        bow=list(BOW),
        classic=list(CLASSIC),
        datasets=list(DATASETS),
        dataset_count=len(DATASETS),
        frameworks=list(FRAMEWORKS),
        precisions=list(PRECISIONS),
        rows=rows,
    )
    connection.execute(f"INSERT INTO results BY NAME {filled}")
    connection.execute("CHECKPOINT")
