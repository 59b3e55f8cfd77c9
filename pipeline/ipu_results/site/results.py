"""The first view: all results, the rows of each flag and analysis, and the build they are from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.analyses import ANALYSES, Analysis, load_frames
from ipu_results.check.rules import RULES
from ipu_results.errors import WarehouseError
from ipu_results.release.files import RELEASE
from ipu_results.release.snapshot import read_json
from ipu_results.site.encode import encode_query

# As printed; the vendor's own newest page first.
ORDER = """
    ORDER BY publisher <> 'Graphcore', published_on DESC NULLS LAST, document_id, table_name, row_number, result_id
"""
BUILD = "SELECT min(build_id) AS build_id, (SELECT count(*) FROM documents) AS documents FROM build"
FLAGS = "SELECT result_id, rule, severity, column_name FROM flags ORDER BY ALL"


def read_version(release: Path) -> str | None:
    """Read the version of a release; a warehouse that was never published has none."""
    path = release / RELEASE
    if not path.exists():
        return None
    version = read_json(path).get("version")
    if not isinstance(version, str):
        raise WarehouseError("has no version", place=str(path))
    return version


def build_results(connection: duckdb.DuckDBPyConnection, version: str | None) -> dict[str, Any]:
    """Collect what the first view needs."""
    results = encode_query(connection, f"FROM results {ORDER}")
    ids = next(column for column in results["columns"] if column["name"] == "result_id")
    position = {ids["words"][code]: row for row, code in enumerate(ids["codes"])}
    return {
        "build": {"version": version, **run_query(connection, BUILD).to_pylist()[0]},
        "results": results,
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
