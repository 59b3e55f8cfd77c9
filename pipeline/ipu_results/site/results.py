"""What the first view needs: all results, which rows each flag and each analysis speaks of, and what build this is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.analyses import ANALYSES, rows
from ipu_results.check.rules import RULES
from ipu_results.errors import WarehouseError
from ipu_results.release.files import RELEASE
from ipu_results.release.snapshot import read_json
from ipu_results.site.frame import frame

# As printed; the vendor's own newest page first.
ORDER = """
    ORDER BY publisher <> 'Graphcore', published_on DESC NULLS LAST, document_id, table_name, row_number, result_id
"""


def version(release: Path) -> str | None:
    """The version that the release gives itself; a warehouse that was never published has none."""
    path = release / RELEASE
    if not path.exists():
        return None
    told = read_json(path).get("version")
    if not isinstance(told, str):
        raise WarehouseError("tells no version", place=str(path))
    return told


def data(connection: duckdb.DuckDBPyConnection, release: str | None) -> dict[str, Any]:
    results = frame(connection, f"FROM results {ORDER}")
    (ids,) = (column["words"] for column in results["columns"] if column["name"] == "result_id")
    (codes,) = (column["codes"] for column in results["columns"] if column["name"] == "result_id")
    place = {ids[code]: row for row, code in enumerate(codes)}
    return {
        "build": {"version": release, **_counts(connection)},
        "results": results,
        "flags": _flags(connection, place),
        "sets": {one.name: _set(connection, one.name, place) for one in ANALYSES},
        "rules": {rule.id: rule.title for rule in RULES},
        "questions": {one.name: one.question for one in ANALYSES},
    }


def _counts(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    sql = "SELECT min(build_id) AS build_id FROM build"
    (build,) = run_query(connection, sql).to_pylist()
    sql = "SELECT count(*) AS documents FROM documents"
    (documents,) = run_query(connection, sql).to_pylist()
    return {**build, **documents}


def _flags(connection: duckdb.DuckDBPyConnection, place: dict[str, int]) -> dict[str, Any]:
    found = run_query(connection, "SELECT result_id, rule, severity, column_name FROM flags ORDER BY ALL").to_pylist()
    return {
        "rows": [place[flag["result_id"]] for flag in found],
        "rules": [flag["rule"] for flag in found],
        "severities": [flag["severity"] for flag in found],
        "columns": [flag["column_name"] for flag in found],
    }


def _set(connection: duckdb.DuckDBPyConnection, name: str, place: dict[str, int]) -> list[int]:
    """Rows of `results` that stand behind an analysis."""
    (asked,) = (one for one in ANALYSES if one.name == name)
    found: set[str] = set()
    for table in rows(connection, asked).values():
        for column in table.columns:
            if str(column).endswith("result_id"):
                found.update(table[column].dropna().map(str))
    return sorted(place[one] for one in found if one in place)
