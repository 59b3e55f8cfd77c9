"""Measure how much slower a later SDK has been: the margin within which its figures bound those of an earlier one."""

from __future__ import annotations

import duckdb

SDK_MARGIN = """
    SELECT coalesce(max(1 - later.throughput / earlier.throughput), 0)
    FROM sdk_effect AS earlier
    JOIN sdk_effect AS later USING (oldest_result_id)
    WHERE earlier.position < later.position
"""


def measure_sdk_margin(connection: duckdb.DuckDBPyConnection) -> float:
    """Return the largest slow-down in the view `sdk_effect`, a share of the earlier throughput, never below 0."""
    [(margin,)] = connection.execute(SDK_MARGIN).fetchall()
    return max(0.0, float(margin))
