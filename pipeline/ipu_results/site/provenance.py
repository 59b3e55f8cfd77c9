"""What the panel behind a figure needs: its cells and documents, its flags, its configuration and its official logs."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.site.frame import frame

# What a reader asks of a figure; what else a source row holds stands in the Parquet files.
CELLS = """
    SELECT result_id, column_name, header, raw_text, value, unit, factor, marks, document_id, locator
    FROM cells WHERE raw_text <> '' ORDER BY result_id, cell_number
"""
ENTRIES = """
    SELECT result_id, mlperf_id, mlperf_id_confidence, round, submitter, division, system, benchmark, n_runs, n_success,
        minutes, scaling_factor, path, attribution
    FROM mlperf_entries ORDER BY round, path
"""
RUNS = "SELECT round, path, file, minutes, status, counted, reason FROM mlperf_runs ORDER BY round, path, file"


def data(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return {
        "cells": frame(connection, CELLS),
        "documents": frame(connection, "FROM documents ORDER BY document_id"),
        "flags": frame(connection, "FROM flags ORDER BY result_id, rule, column_name"),
        "configurations": frame(
            connection,
            "FROM configurations WHERE repository IS NOT NULL ORDER BY result_document, result_table, result_row",
        ),
        "runs": frame(connection, "SELECT run_id, backend, device, started_at FROM runs ORDER BY run_id"),
    }


def logs(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return {"entries": frame(connection, ENTRIES), "logs": frame(connection, RUNS)}
