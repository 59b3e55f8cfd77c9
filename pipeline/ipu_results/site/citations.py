"""Where a figure is from: the data of its panel, the parts of its citation, and its JSON file.

`site/src/citation.ts` joins the parts to the texts that `ipu-results cite` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.ground.text import escape_line, format_json, to_json_value
from ipu_results.serve import facts
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
from ipu_results.site.data import USES, encode_query
from ipu_results.store.query import read_build_id

# Columns that the panel shows; the Parquet files hold the others. Microbenchmarks have a page of
# their own.
CELLS = """
    SELECT
        c.result_id, c.column_name, c.header, c.raw_text, c.value, c.unit, c.factor, c.marks,
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
    FROM detail.configurations WHERE repository IS NOT NULL ORDER BY result_document, result_table,
    result_row
"""
ENTRIES = """
    SELECT result_id, mlperf_id, mlperf_id_confidence, round, submitter, division, system,
    benchmark, n_runs, n_success,
        minutes, path, attribution
    FROM mlperf_entries ORDER BY round, path
"""
LOGS = (
    "SELECT round, path, file, minutes, status, counted, reason FROM mlperf_runs ORDER BY round,"
    " path, file"
)


def build_provenance(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect cells, documents, flags, configurations and runs."""
    queries = {
        "cells": CELLS,
        "documents": "FROM documents ORDER BY document_id",
        "flags": FLAGS,
        "configurations": CONFIGURATIONS,
        "runs": "SELECT run_id, backend, device, started_at FROM runs ORDER BY run_id",
    }
    return {name: encode_query(connection, sql, compact=True) for name, sql in queries.items()}


def build_mlperf(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the official MLPerf entries and their log files."""
    queries = {"entries": ENTRIES, "logs": LOGS}
    return {name: encode_query(connection, sql, compact=True) for name, sql in queries.items()}


def build_citations(connection: duckdb.DuckDBPyConnection, release: Path) -> dict[str, Any]:
    """Collect the parts of the citation of every result, and of the dataset.

    Raises WarehouseError for a damaged one.

    Sources, notes and attributions are listed once, and results name them by position.
    """
    ids = run_query(connection, "SELECT result_id FROM results ORDER BY result_id")[
        "result_id"
    ].to_pylist()
    batches = (ids[start : start + facts.MAX_IDS] for start in range(0, len(ids), facts.MAX_IDS))
    results = [result for batch in batches for result in facts.load_results(connection, batch)]
    sources: dict[str, dict[str, Any]] = {}
    texts: dict[str, int] = {}
    rows = {result.result_id: _encode_result(result, sources, texts) for result in results}
    return {
        "dataset": _describe_dataset(read_dataset_version(release, read_build_id(release))),
        "legend": facts.LEGEND,
        "max": facts.MAX_IDS,
        "latex": LATEX,
        "latex_columns": LATEX_COLUMNS,
        "sources": list(sources.values()),
        "texts": list(texts),
        "results": rows,
    }


def _describe_dataset(version: DatasetVersion) -> dict[str, Any]:
    return {
        "key": KEY,
        "author": facts.AUTHOR,
        "title": NAME,
        "version": version.version or "unreleased",
        "published_on": version.published_on,
        "year": version.year,
        "url": REPOSITORY,
        "text": str(version),
    }


def _encode_result(
    result: facts.CitedResult, sources: dict[str, dict[str, Any]], texts: dict[str, int]
) -> list[Any]:
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
    attribution = (
        None if result.attribution is None else texts.setdefault(result.attribution, len(texts))
    )
    url = escape_url(source.url or "")
    figures = [
        [
            figure.label,
            escape_line(facts.format_figure(figure, result.status)),
            escape_line(figure.place),
        ]
        for figure in facts.find_figures(result)
    ]
    place = sources[source.document_id]
    return [
        list(sources).index(source.document_id),
        None if url == place["url"] else url,
        escape_line(facts.describe_row(result.row)),
        figures,
        list_latex_cells(result)[:-1],
        notes,
        attribution,
        int(is_dataset(result.row)),
    ]


# The figures of a result with their units, {item} being what a throughput counts.
UNITS = {
    "throughput": "{item}s/s",
    "throughput_per_chip": "{item}s/s",
    "latency_ms": "ms",
    "efficiency": "{item}s/s/W",
    "power_w": "W",
    "energy_per_item_j": "J/{item}",
    "time_to_train_s": "s",
    "time_to_result_s": "s",
    "minutes": "min",
    "quality_value": "{quality_metric}",
}
PRINTED = (*UNITS, "batch_size", "micro_batch_size", "chip_count")
PRINTED_CELLS = f"""
    SELECT result_id, column_name AS column, header, raw_text, value, unit, factor, document_id,
    locator, source_url,
        source_locator
    FROM provenance WHERE raw_text <> '' AND column_name IN {PRINTED} ORDER BY result_id,
    cell_number
"""
RESULT_FLAGS = """
    SELECT result_id, rule, severity, column_name AS column, message, suggested FROM flags
    ORDER BY result_id, rule, column_name
"""
DOCUMENTS = (
    "SELECT document_id, title, publisher, published_on, url, licence FROM documents ORDER BY"
    " document_id"
)
ATTRIBUTIONS = "SELECT result_id, attribution FROM mlperf_entries WHERE result_id IS NOT NULL"
DESCRIPTIONS = {
    "result_id": "Id of the result in every release; the file is r/<result_id>.json.",
    "figures": (
        "Figures by column of the table results, each with value and unit. Blank ones are absent."
    ),
    "conditions": "The other columns of the table results that have a value.",
    "relationship": (
        "vendor, independent, official or own: who published the result, towards the machine's"
        " maker."
    ),
    "flags": "Doubts: rule, severity, column, message, and a suggestion, which is never applied.",
    "provenance": (
        "The printed cells of figures: header, text, value, unit, factor, and place in the"
        " document."
    ),
    "documents": "The documents of these cells, with title, publisher, address and licence.",
    "claims": "Ids of the claims whose recomputation used the result.",
    "citation": "How to cite the figure: its source, and this dataset.",
    "release": (
        "Version of the release, or null for a build that was not released, and the id of the"
        " build."
    ),
}
TEXTS, OBJECTS = (
    ("result_id", "relationship", "citation"),
    (
        "figures",
        "conditions",
        "release",
    ),
)  # others are lists


def format_schema() -> str:
    """Format the JSON Schema that documents the files."""
    kinds = {
        **dict.fromkeys(DESCRIPTIONS, "array"),
        **dict.fromkeys(TEXTS, "string"),
        **dict.fromkeys(OBJECTS, "object"),
    }
    properties = {
        name: {"type": kinds[name], "description": text} for name, text in DESCRIPTIONS.items()
    }
    return format_json(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "A result of ipu-results",
            "type": "object",
            "required": [name for name in DESCRIPTIONS if name != "relationship"],
            "properties": properties,
        }
    )


def build_result_files(
    connection: duckdb.DuckDBPyConnection, version: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the id of each result with its JSON.

    Raises ValueError for a number that is not finite.
    """
    cells, flags, uses, attributions = (
        facts.group_rows(run_query(connection, sql).to_pylist(), "result_id")
        for sql in (PRINTED_CELLS, RESULT_FLAGS, USES, ATTRIBUTIONS)
    )
    documents = {row["document_id"]: row for row in run_query(connection, DOCUMENTS).to_pylist()}
    [build] = run_query(connection, "SELECT min(build_id) AS build_id FROM build").to_pylist()
    release = f"release {version}" if version else "unreleased"
    for row in run_query(connection, "FROM results ORDER BY result_id").to_pylist():
        key = row["result_id"]
        names = dict.fromkeys([row["document_id"], *(cell["document_id"] for cell in cells[key])])
        sources = [documents[name] for name in names if name in documents]
        conditions = {
            name: value for name, value in row.items() if value is not None and name not in UNITS
        }
        words = {"item": row["item"] or "item", "quality_metric": row["quality_metric"] or ""}
        # the first document, or the MLPerf attribution as MLCommons wants it
        named = [
            f"{it['publisher']}, {it['title']}, {it['published_on'] or 'undated'}"
            for it in sources[:1]
        ]
        source = "; ".join([use["attribution"] for use in attributions[key]] or named)
        record = {
            "result_id": conditions.pop("result_id"),
            "figures": {
                name: {"value": row[name], "unit": unit.format(**words)}
                for name, unit in UNITS.items()
                if row.get(name) is not None
            },
            "relationship": conditions.pop("relationship", None),
            "conditions": conditions,
            "flags": [_drop_blank(flag) for flag in flags[key]],
            "provenance": [_drop_blank(cell) for cell in cells[key]],
            "documents": sources,
            "claims": sorted({use["claim_id"] for use in uses[key]}),
            "citation": f"{source}; via ipu-results, {release}, {key}",
            "release": {"version": version, **build},
        }
        values = to_json_value({name: value for name, value in record.items() if value is not None})
        yield key, json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _drop_blank(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row of a result states; the id is that of the file."""
    return {name: value for name, value in row.items() if value is not None and name != "result_id"}
