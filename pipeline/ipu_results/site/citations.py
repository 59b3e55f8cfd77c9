"""The panel of a figure: its cells and documents, flags, configuration, run, official logs, and parts of citations.

`site/src/citation.ts` joins the parts to the texts that `ipu-results cite` prints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.ground.text import escape_line
from ipu_results.serve.cite import (
    KEY,
    LATEX,
    LATEX_COLUMNS,
    NAME,
    REPOSITORY,
    DatasetVersion,
    escape_url,
    is_dataset,
    list_latex_cells,
    make_key,
    read_dataset_version,
)
from ipu_results.serve.facts import (
    AUTHOR,
    LEGEND,
    MAX_IDS,
    CitedResult,
    describe_row,
    find_figures,
    format_figure,
    load_results,
)
from ipu_results.site.encode import encode_query
from ipu_results.store.query import read_build_id

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


IDS = "SELECT result_id FROM results ORDER BY result_id"


def build_citations(connection: duckdb.DuckDBPyConnection, release: Path) -> dict[str, Any]:
    """Collect the parts of the citation of every result, and of the dataset. Raises WarehouseError for a damaged one.

    Sources, notes and attributions are listed once, and results name them by position.
    """
    ids = run_query(connection, IDS)["result_id"].to_pylist()
    batches = (ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS))
    results = [result for batch in batches for result in load_results(connection, batch)]
    sources: dict[str, dict[str, Any]] = {}
    texts: dict[str, int] = {}
    rows = {result.result_id: _encode_result(result, sources, texts) for result in results}
    return {
        "dataset": _describe_dataset(read_dataset_version(release, read_build_id(release))),
        "legend": LEGEND,
        "max": MAX_IDS,
        "latex": LATEX,
        "latex_columns": LATEX_COLUMNS,
        "sources": list(sources.values()),
        "texts": list(texts),
        "results": rows,
    }


def _describe_dataset(version: DatasetVersion) -> dict[str, Any]:
    return {
        "key": KEY,
        "author": AUTHOR,
        "title": NAME,
        "version": version.version or "unreleased",
        "published_on": version.published_on,
        "year": version.year,
        "url": REPOSITORY,
        "text": str(version),
    }


def _encode_result(result: CitedResult, sources: dict[str, dict[str, Any]], texts: dict[str, int]) -> list[Any]:
    source = result.source
    if source.document_id not in sources:
        sources[source.document_id] = {
            "key": f"{KEY}:{make_key(source.document_id)}",
            "title": escape_line(source.title),
            "publisher": source.publisher,
            "url": escape_url(source.document_url or ""),
            "published_on": source.published_on and source.published_on.isoformat(),
            "retrieved_on": source.retrieved_on and source.retrieved_on.isoformat(),
        }
    notes = [texts.setdefault(escape_line(note), len(texts)) for note in result.notes]
    attribution = None if result.attribution is None else texts.setdefault(result.attribution, len(texts))
    url = escape_url(source.url or "")
    figures = [
        [figure.label, escape_line(format_figure(figure, result.status)), escape_line(figure.place)]
        for figure in find_figures(result)
    ]
    place = sources[source.document_id]
    return [
        list(sources).index(source.document_id),
        None if url == place["url"] else url,
        escape_line(describe_row(result.row)),
        figures,
        list_latex_cells(result)[:-1],
        notes,
        attribution,
        int(is_dataset(result.row)),
    ]
