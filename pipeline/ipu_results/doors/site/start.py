"""The start page: what the dataset found, with a figure, a few bars and a link for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import duckdb

from ipu_results.doors.analyses.findings import (
    FINDINGS,
    Card,
    RecordFinding,
    fill_finding,
    fill_text,
)
from ipu_results.doors.analyses.question import select_rows
from ipu_results.doors.cite.citation import REPOSITORY
from ipu_results.doors.site.charts import skip_without_rows
from ipu_results.errors import WarehouseError
from ipu_results.kit.sql import run_query
from ipu_results.release.files import RELEASE, read_json

COUNTS = """
    SELECT
        (
            SELECT count(*) FROM results WHERE relationship IS DISTINCT FROM 'submitted'
        ) AS results,
        (SELECT count(*) FROM results WHERE NOT usable) AS left_out,
        (SELECT count(*) FROM documents) AS documents, (SELECT count(*) FROM claims) AS claims,
        (SELECT count(*) FROM flags WHERE severity = 'error') AS errors,
        (
            SELECT CAST(max(greatest(published_on, retrieved_on)) AS VARCHAR) FROM documents
        ) AS newest_document,
        (SELECT min(build_id) FROM build) AS build_id
"""


class Build(TypedDict):
    """What the page was built from; `version` is None for a warehouse."""

    version: str | None
    as_of: str
    build_id: str
    documents: int


class StartData(TypedDict):
    """What the start page shows, as `site/src/load.ts` reads it."""

    build: Build
    counts: dict[str, int]
    repository: str
    findings: list[dict[str, object]]


def build_start(connection: duckdb.DuckDBPyConnection, release: Path) -> StartData:
    """Collect what the start page needs: the build, counts, findings and the address of the
    project.
    """
    [counts] = run_query(connection, COUNTS).to_pylist()
    record = read_release(release)
    newest = counts.pop("newest_document")
    build_id = counts.pop("build_id")
    return {
        "build": {
            "version": record.get("version"),
            "as_of": record.get("published_on") or newest,
            "build_id": build_id,
            "documents": counts["documents"],
        },
        "counts": counts,
        "repository": REPOSITORY,
        "findings": list(_build_findings(connection)),
    }


def read_release(release: Path) -> dict[str, Any]:
    """Read the record of a release; a warehouse that was never published has none."""
    path = release / RELEASE
    if not path.exists():
        return {}
    record = read_json(path)
    if not isinstance(record.get("version"), str):
        raise WarehouseError("has no version", place=str(path))
    return record


def _build_findings(connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, object]]:
    """Build the findings that have a card; one that the record has no rows for is left out, with an
    IncompleteRecordWarning.
    """
    for finding in FINDINGS:
        if finding.card:
            with skip_without_rows(f"finding {finding.name}"):
                yield _build_card(connection, finding, finding.card)


def _build_card(
    connection: duckdb.DuckDBPyConnection, finding: RecordFinding, card: Card
) -> dict[str, object]:
    filled = fill_finding(connection, finding)
    rule = None
    if card.rule:
        label, value = card.rule
        rule = {"label": label, "value": float(fill_text(finding, value, filled.values))}
    return {
        "name": finding.name,
        "title": finding.question,
        "figure": fill_text(finding, card.figure, filled.values),
        "text": f"{filled.statement}. {filled.figure}.",
        "objection": f"{filled.objection}.",
        "reading": card.reading,
        "bars": select_rows(connection, finding, "bars"),
        "unit": card.unit,
        "rule": rule,
        "link": card.link,
        "link_text": card.link_text,
    }
