"""The parts of citations: `site/src/citation.ts` joins them to the texts that `ipu-results cite` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results._util.text import escape_line
from ipu_results.citation.cite import KEY, LATEX_COLUMNS, is_dataset, list_latex_cells
from ipu_results.citation.escape import LATEX, escape_url, make_key
from ipu_results.citation.facts import (
    AUTHOR,
    LEGEND,
    MAX_IDS,
    CitedResult,
    describe_row,
    find_figures,
    format_figure,
    load_results,
)
from ipu_results.citation.version import NAME, DatasetVersion, read_dataset_version
from ipu_results.store.query import read_build_id

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
