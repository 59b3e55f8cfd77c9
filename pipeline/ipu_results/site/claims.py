"""The claims with their arithmetic, the contradictions, and the results that a claim uses."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.site.encode import encode_query

CLAIMS = """
    SELECT claim_id, document_id, claim, figure, value, unit, subject, baseline, model, task, metric, sdk_version,
        precision,
        batch, framework, dataset, place, interpretation, basis, verdict, gap_percent, gap_kind, not_recomputable,
        recomputation_sql, locator
    FROM claims ORDER BY document_id, claim_id
"""
VALUES = "SELECT * EXCLUDE (position) FROM recomputations ORDER BY claim_id, position"
CONTRADICTIONS = """
    SELECT contradiction_id, kind, claim_ids, what, resolution, recomputed FROM contradictions ORDER BY contradiction_id
"""
USES = """
    SELECT DISTINCT i.claim_id, coalesce(e.result_id, i.key) AS result_id
    FROM recomputation_inputs AS i
    LEFT JOIN mlperf_entries AS e ON i.table_name = 'mlperf_entries' AND i.key = e.round || '/' || e.path
    WHERE i.claim_id <> '' AND (i.table_name = 'results' OR e.result_id IS NOT NULL)
    ORDER BY ALL
"""


def build_claims(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect claims, recomputations, contradictions, and which claim uses which result, itself or as an entry."""
    return {
        "claims": encode_query(connection, CLAIMS),
        "recomputations": encode_query(connection, VALUES),
        "contradictions": encode_query(connection, CONTRADICTIONS),
        "uses": run_query(connection, USES).to_pylist(),
    }
