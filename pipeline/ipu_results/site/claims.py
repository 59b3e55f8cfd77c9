"""The claims with their arithmetic, the contradictions, and the results that a claim uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.site.encode import encode_query

CLAIMS = """
    SELECT claim_id, document_id, claim, figure, unit, subject, baseline, model, task, metric, sdk_version, precision,
        batch, framework, dataset, place, interpretation, basis, verdict, not_recomputable, recomputation_sql, locator
    FROM claims ORDER BY document_id, claim_id
"""
VALUES = "SELECT * EXCLUDE (position) FROM recomputations ORDER BY claim_id, position"
CONTRADICTIONS = """
    SELECT contradiction_id, kind, claim_ids, what, resolution, recomputed FROM contradictions ORDER BY contradiction_id
"""
USES = """
    SELECT claim_id, model, coalesce(baseline, '') AS baselines,
        (SELECT string_agg(arithmetic || ' ' || baseline, ' | ') FROM recomputations r WHERE r.claim_id = c.claim_id)
            AS arithmetic
    FROM claims c ORDER BY claim_id
"""
RESULTS = """
    SELECT result_id, model, mlperf_id, e.path, throughput, latency_ms, efficiency, time_to_train_s / 60 AS minutes,
        time_to_result_s
    FROM results LEFT JOIN (SELECT result_id, path FROM mlperf_entries) e USING (result_id)
    WHERE origin IN ('published', 'official') ORDER BY result_id
"""
FIGURES = ("throughput", "latency_ms", "efficiency", "minutes", "time_to_result_s")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")
MIN_DIGITS = 3  # shorter figures are equal by chance

Row = Mapping[str, Any]


def build_claims(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect claims, recomputations, contradictions and the uses of results."""
    return {
        "claims": encode_query(connection, CLAIMS),
        "recomputations": encode_query(connection, VALUES),
        "contradictions": encode_query(connection, CONTRADICTIONS),
        "uses": _find_uses(connection),
    }


def _find_uses(connection: duckdb.DuckDBPyConnection) -> list[dict[str, str]]:
    """Find which claim uses which result: it names its `id`, or a `figure` of its model is in the arithmetic."""
    claims = [claim for claim in run_query(connection, USES).to_pylist() if claim["arithmetic"]]
    results = run_query(connection, RESULTS).to_pylist()
    return [use for claim in claims for use in _match_results(claim, results)]


def _match_results(claim: Row, results: list[Row]) -> Iterator[dict[str, str]]:
    numbers = NUMBER.findall(claim["arithmetic"])
    figures = {float(text) for text in numbers if len(text.replace(".", "")) >= MIN_DIGITS}
    for result in results:
        if how := _match_result(claim, figures, result):
            yield {"claim_id": claim["claim_id"], "result_id": result["result_id"], "how": how}


def _match_result(claim: Row, figures: set[float], result: Row) -> str | None:
    if any(result[name] and _names(claim, result[name]) for name in ("mlperf_id", "path")):
        return "id"
    if not any(result[name] in figures for name in FIGURES):
        return None
    return "figure" if _is_about(claim, result["model"]) else None


def _is_about(claim: Row, model: str) -> bool:
    """Check whether a claim is about a model, its family or a member of it, or names it in its arithmetic."""
    if model in claim["arithmetic"]:
        return True
    claimed = claim["model"]
    return claimed is not None and (claimed.startswith(model) or model.startswith(claimed))


def _names(claim: Row, name: str) -> bool:
    text = f"{claim['baselines']} {claim['arithmetic']}"
    return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", text))
