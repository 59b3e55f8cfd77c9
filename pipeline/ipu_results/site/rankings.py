"""The rankings of MLPerf Training, with the interval of each score and who is tied with whom."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.site.encode import encode_query

RANKINGS = """
    SELECT round, benchmark, rank, submitter, system, accelerators, minutes, minutes_low, minutes_high, tied_ranks,
        outcome, result_id
    FROM mlperf_ranking WHERE division = 'closed' AND scope = 'all-sizes' ORDER BY round, benchmark, rank, path
"""


def build_rankings(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the closed rankings of systems of all sizes."""
    return encode_query(connection, RANKINGS)
