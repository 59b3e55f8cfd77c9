"""The analyses: question, paragraph and Vega-Lite chart."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.analyses import ANALYSES, Analysis, rows, specification


def data(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    return [_one(connection, asked) for asked in ANALYSES]


def _one(connection: duckdb.DuckDBPyConnection, asked: Analysis) -> dict[str, Any]:
    frames = rows(connection, asked)
    return {
        "name": asked.name,
        "question": asked.question,
        "views": list(asked.views),
        "told": asked.told(frames),
        "specification": specification(asked, frames),
    }
