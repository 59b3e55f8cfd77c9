"""The panel of a figure: its cells and documents, flags, configuration, run and official logs."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.site.encode import encode_query

# Columns that the panel shows; the Parquet files hold the others. Microbenchmarks have a page of their own.
CELLS = """
    SELECT
        c.result_id, c.column_name, c.header, c.raw_text, c.value, c.unit, c.factor, c.marks, c.document_id, c.locator,
        p.locator_in, p.source_url, p.source_locator
    FROM cells c
    SEMI JOIN results r ON r.result_id = c.result_id
    LEFT JOIN provenance p ON p.result_id = c.result_id AND p.cell_number = c.cell_number
    WHERE c.raw_text <> '' ORDER BY c.result_id, c.cell_number
"""
FLAGS = "SELECT * FROM flags SEMI JOIN results USING (result_id) ORDER BY result_id, rule, column_name"
CONFIGURATIONS = """
    FROM configurations WHERE repository IS NOT NULL ORDER BY result_document, result_table, result_row
"""
ENTRIES = """
    SELECT result_id, mlperf_id, mlperf_id_confidence, round, submitter, division, system, benchmark, n_runs, n_success,
        minutes, path, attribution
    FROM mlperf_entries ORDER BY round, path
"""
LOGS = "SELECT round, path, file, minutes, status, counted, reason FROM mlperf_runs ORDER BY round, path, file"


def build_provenance(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect cells, documents, flags, configurations and runs."""
    return {
        "cells": encode_query(connection, CELLS, compact=True),
        "documents": encode_query(connection, "FROM documents ORDER BY document_id", compact=True),
        "flags": encode_query(connection, FLAGS, compact=True),
        "configurations": encode_query(connection, CONFIGURATIONS, compact=True),
        "runs": encode_query(
            connection, "SELECT run_id, backend, device, started_at FROM runs ORDER BY run_id", compact=True
        ),
    }


def build_mlperf(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the official MLPerf entries and their log files."""
    return {
        "entries": encode_query(connection, ENTRIES, compact=True),
        "logs": encode_query(connection, LOGS, compact=True),
    }
