"""Where a figure is from: the data of its panel, and its citation."""

from __future__ import annotations

from pathlib import Path

from ipu_results.doors.cite import facts
from ipu_results.doors.cite.citation import format_citation, format_footnote, read_dataset_version
from ipu_results.doors.site.data import Frame, encode_query
from ipu_results.kit.sql import Connection, run_query
from ipu_results.record.store.query import read_build_id

# Columns that the panel shows; the Parquet files hold the others. Microbenchmarks have a page of
# their own.
CELLS = """
    SELECT
        c.result_id, c.cell_number, c.column_name, c.header, c.raw_text, c.value, c.unit, c.factor,
        c.document_id, c.locator,
        p.locator_in, p.source_url, p.source_locator
    FROM cells c
    SEMI JOIN results r ON r.result_id = c.result_id
    LEFT JOIN provenance p ON p.result_id = c.result_id AND p.cell_number = c.cell_number
    WHERE c.raw_text <> '' ORDER BY c.result_id, c.cell_number
"""
FLAGS = (
    "SELECT * FROM flags SEMI JOIN results USING (result_id) ORDER BY result_id, rule, column_name"
)
CONFIGURATIONS = """
    FROM detail.configurations
    WHERE repository IS NOT NULL
    ORDER BY result_document, result_table, result_row
"""
RUNS = """
    SELECT
        run_id, r.backend, r.device, r.started_at, any_value(p.calibration_id) AS calibration_id
    FROM runs r LEFT JOIN detail.run_points p USING (run_id)
    GROUP BY ALL
    ORDER BY run_id
"""
ENTRIES = """
    SELECT
        result_id, mlperf_id, mlperf_id_confidence, round, submitter, division, platform,
        platform_printed, benchmark,
        n_runs, n_success, minutes, path, attribution
    FROM mlperf_entries
    ORDER BY round, path
"""
LOGS = (
    "SELECT round, path, file, minutes, status, counted, reason FROM mlperf_runs"
    " ORDER BY round, path, file"
)


def build_provenance(connection: Connection) -> dict[str, Frame]:
    """Collect cells, documents, flags with their rules, configurations and runs."""
    queries = {
        "cells": CELLS,
        "documents": "FROM documents ORDER BY document_id",
        "flags": FLAGS,
        "rules": "SELECT rule, statement FROM detail.rules ORDER BY rule",
        "configurations": CONFIGURATIONS,
        "runs": RUNS,
    }
    return {name: encode_query(connection, sql) for name, sql in queries.items()}


def build_mlperf(connection: Connection) -> dict[str, Frame]:
    """Collect the official MLPerf entries and their log files."""
    return {"entries": encode_query(connection, ENTRIES), "logs": encode_query(connection, LOGS)}


def build_citations(connection: Connection, release: Path) -> dict[str, object]:
    """Collect how `ipu-results cite` cites each result, as a footnote and as an entry of BibTeX.

    Raises WarehouseError for a damaged release.
    """
    version = read_dataset_version(release, read_build_id(release))
    table = run_query(connection, "SELECT result_id FROM results ORDER BY result_id")
    ids = table["result_id"].to_pylist()
    dataset = ""
    citations = {}
    for start in range(0, len(ids), facts.MAX_IDS):
        for result in facts.load_results(connection, ids[start : start + facts.MAX_IDS]):
            entries = format_citation([result], version, "bibtex")
            dataset, _, source = entries.partition("\n\n")
            citations[result.result_id] = [format_footnote([result], version), source]
    return {"dataset": dataset, "results": citations}
