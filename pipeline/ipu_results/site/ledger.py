"""The claims with their arithmetic, the contradictions, and which results a claim is known to speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.site.frame import frame

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
    SELECT claim_id, model, coalesce(baseline, '') AS said,
        (SELECT string_agg(arithmetic || ' ' || baseline, ' | ') FROM recomputations r WHERE r.claim_id = c.claim_id)
            AS worked
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
LEAST_DIGITS = 3  # shorter figures meet by chance

Row = Mapping[str, Any]


def data(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return {
        "claims": frame(connection, CLAIMS),
        "recomputations": frame(connection, VALUES),
        "contradictions": frame(connection, CONTRADICTIONS),
        "uses": _uses(connection),
    }


def _uses(connection: duckdb.DuckDBPyConnection) -> list[dict[str, str]]:
    """Which claim uses which result, and how that is known: its `id`, or a `figure` of its model in the arithmetic."""
    claims = [one for one in run_query(connection, USES).to_pylist() if one["worked"]]
    found = run_query(connection, RESULTS).to_pylist()
    return [use for claim in claims for use in _of(claim, found)]


def _of(claim: Row, results: list[Row]) -> Iterator[dict[str, str]]:
    figures = {float(text) for text in NUMBER.findall(claim["worked"]) if len(text.replace(".", "")) >= LEAST_DIGITS}
    for result in results:
        if how := _how(claim, figures, result):
            yield {"claim_id": claim["claim_id"], "result_id": result["result_id"], "how": how}


def _how(claim: Row, figures: set[float], result: Row) -> str | None:
    if any(result[name] and _holds(claim, result[name]) for name in ("mlperf_id", "path")):
        return "id"
    if not any(result[name] in figures for name in FIGURES):
        return None
    return "figure" if _of_model(claim, result["model"]) else None


def _of_model(claim: Row, model: str) -> bool:
    """Whether a claim is about a model, a member of its family or the family, or names it in its arithmetic."""
    if model in claim["worked"]:
        return True
    claimed = claim["model"]
    return claimed is not None and (claimed.startswith(model) or model.startswith(claimed))


def _holds(claim: Row, name: str) -> bool:
    return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", f"{claim['said']} {claim['worked']}"))
