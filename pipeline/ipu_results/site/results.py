"""All results with flags, search names and prices; a JSON file for each; the rankings of MLPerf with their ties."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb

from ipu_results.analyses import ANALYSES, Analysis, load_frames
from ipu_results.check.rules import RULES
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_json, to_json_value
from ipu_results.site.aliases import build_aliases
from ipu_results.site.claims import USES
from ipu_results.site.encode import encode_query

RANKINGS = """
    SELECT round, benchmark, rank, submitter, system, accelerators, minutes, minutes_low, minutes_high, tied_ranks,
        outcome, result_id
    FROM mlperf_ranking WHERE division = 'closed' AND scope = 'all-sizes' ORDER BY round, benchmark, rank, path
"""


def build_rankings(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the closed rankings of systems of all sizes."""
    return encode_query(connection, RANKINGS)


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


FORMAT = "https://json-schema.org/draft/2020-12/schema"
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
CELLS = f"""
    SELECT result_id, column_name AS column, header, raw_text, value, unit, factor, document_id, locator, source_url,
        source_locator
    FROM provenance WHERE raw_text <> '' AND column_name IN {PRINTED} ORDER BY result_id, cell_number
"""
FLAG_COLUMNS = """
    SELECT result_id, rule, severity, column_name AS column, message, suggested FROM flags
    ORDER BY result_id, rule, column_name
"""
DOCUMENTS = "SELECT document_id, title, publisher, published_on, url, licence FROM documents ORDER BY document_id"
ATTRIBUTIONS = "SELECT result_id, attribution FROM mlperf_entries WHERE result_id IS NOT NULL"
DESCRIPTIONS = {
    "result_id": "Id of the result in every release; the file is r/<result_id>.json.",
    "figures": "Figures by column of the table results, each with value and unit. Blank ones are absent.",
    "conditions": "The other columns of the table results that have a value.",
    "relationship": "vendor, independent, official or own: who published the result, towards the machine's maker.",
    "flags": "Doubts: rule, severity, column, message, and a suggestion, which is never applied.",
    "provenance": "The printed cells of figures: header, text, value, unit, factor, and place in the document.",
    "documents": "The documents of these cells, with title, publisher, address and licence.",
    "claims": "Ids of the claims whose recomputation used the result.",
    "citation": "How to cite the figure: its source, and this dataset.",
    "release": "Version of the release, or null for a build that was not released, and the id of the build.",
}


def format_schema() -> str:
    """Format the JSON Schema that documents the files."""
    kinds = {"figures": "object", "conditions": "object", "release": "object"}
    lists = ("flags", "provenance", "documents", "claims")
    return format_json(
        {
            "$schema": FORMAT,
            "title": "A result of ipu-results",
            "type": "object",
            "required": [name for name in DESCRIPTIONS if name != "relationship"],
            "properties": {
                name: {
                    "type": kinds.get(name, "array" if name in lists else "string"),
                    "description": text,
                }
                for name, text in DESCRIPTIONS.items()
            },
        }
    )


def build_result_files(connection: duckdb.DuckDBPyConnection, version: str | None) -> Iterator[tuple[str, str]]:
    """Yield the id of each result with its JSON."""
    cells, flags = _group(connection, CELLS), _group(connection, FLAG_COLUMNS)
    uses, attributions = _group(connection, USES), _group(connection, ATTRIBUTIONS)
    documents = {row["document_id"]: row for row in run_query(connection, DOCUMENTS).to_pylist()}
    [build] = run_query(connection, "SELECT min(build_id) AS build_id FROM build").to_pylist()
    for row in run_query(connection, "FROM results ORDER BY result_id").to_pylist():
        key = row["result_id"]
        names = dict.fromkeys([row["document_id"], *(cell["document_id"] for cell in cells[key])])
        sources = [documents[name] for name in names if name in documents]
        conditions = {name: value for name, value in row.items() if value is not None and name not in UNITS}
        record = {
            "result_id": conditions.pop("result_id"),
            "figures": {name: _format_figure(row, name) for name in UNITS if row.get(name) is not None},
            "relationship": conditions.pop("relationship", None),
            "conditions": conditions,
            "flags": flags[key],
            "provenance": cells[key],
            "documents": sources,
            "claims": sorted({use["claim_id"] for use in uses[key]}),
            "citation": _cite(row, sources, version, [use["attribution"] for use in attributions[key]]),
            "release": {"version": version, **build},
        }
        yield key, format_compact(to_json_value({name: value for name, value in record.items() if value is not None}))


def format_compact(value: Any) -> str:
    """Format JSON without blanks. Raises ValueError for a number that is not finite."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _group(connection: duckdb.DuckDBPyConnection, sql: str) -> defaultdict[str, list[dict[str, Any]]]:
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in run_query(connection, sql).to_pylist():
        kept = {name: value for name, value in row.items() if value is not None}
        groups[kept["result_id"] if "claim_id" in kept else kept.pop("result_id")].append(kept)
    return groups


def _format_figure(row: dict[str, Any], name: str) -> dict[str, Any]:
    words = {"item": row["item"] or "item", "quality_metric": row["quality_metric"] or ""}
    return {"value": row[name], "unit": UNITS[name].format(**words)}


def _cite(row: dict[str, Any], sources: list[dict[str, Any]], version: str | None, attributions: list[str]) -> str:
    """Cite the first document, or the MLPerf attribution as MLCommons wants it, and this dataset."""
    named = [f"{each['publisher']}, {each['title']}, {each.get('published_on') or 'undated'}" for each in sources[:1]]
    release = f"ipu-results, release {version}" if version else "ipu-results, unreleased"
    source = "; ".join(attributions or named)
    return f"{source}; via {release}, {row['result_id']}"
