"""The start page: a chart of throughput against latency, and what the dataset found, with a figure,
a few bars and a link for each finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from ipu_results.doors.analyses.findings import (
    FINDINGS,
    Card,
    RecordFinding,
    fill_finding,
    fill_text,
)
from ipu_results.doors.analyses.question import select_rows
from ipu_results.doors.charts import PALETTE
from ipu_results.doors.cite.citation import REPOSITORY
from ipu_results.doors.site.charts import skip_without_rows
from ipu_results.errors import WarehouseError
from ipu_results.kit.sql import Connection, run_query
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


FRONT_MODEL = "ResNet-50 v1.5"  # the network with the most machines
# What no other published row of the machine beats in both throughput and latency.
FRONT = f"""
    SELECT
        platform AS name, chip_count,
        list(
            struct_pack(
                result_id := result_id, batch_size := batch_size, latency_ms := latency_ms,
                throughput_per_chip := throughput / chip_count
            )
            ORDER BY latency_ms
        ) AS points
    FROM detail.latency_front
    WHERE
        model = '{FRONT_MODEL}' AND on_front AND usable AND origin = 'published'
        AND chip IS NOT NULL AND chip_count IS NOT NULL
    GROUP BY platform, chip_count
    ORDER BY name
"""


class Build(TypedDict):
    """What the page was built from; `version` is None for a warehouse."""

    version: str | None
    as_of: str
    build_id: str
    documents: int


class Front(TypedDict):
    """The chart of the start page: the rows that no other of their machine beats."""

    title: str
    note: str
    link: str
    x_title: str
    y_title: str
    machines: list[dict[str, object]]


class StartData(TypedDict):
    """What the start page shows, as `site/src/load.ts` reads it."""

    front: Front

    build: Build
    counts: dict[str, int]
    repository: str
    findings: list[dict[str, object]]


def build_start(connection: Connection, release: Path) -> StartData:
    """Collect what the start page needs: the build, counts, findings and the address of the
    project.
    """
    [counts] = run_query(connection, COUNTS).to_pylist()
    record = read_release(release)
    newest = counts.pop("newest_document")
    build_id = counts.pop("build_id")
    return {
        "front": _build_front(connection),
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


def _build_front(connection: Connection) -> Front:
    machines = run_query(connection, FRONT).to_pylist()
    colors = PALETTE.assign([machine["name"] for machine in machines])
    for machine, color in zip(machines, colors, strict=True):
        count = machine.pop("chip_count")
        machine["chips"] = "1 chip" if count == 1 else f"{count} chips"
        machine["color"] = color
    return {
        "title": f"{FRONT_MODEL} inference: throughput against latency",
        "note": (
            "As the vendors published it; up and left is better. Precision, and what a latency of"
            " the whole machine times, differ: click a point for its source."
        ),
        "link": "#/results?model=ResNet-50+v1.5&task=inference&per=chip&sort=latency_ms",
        "x_title": "latency, ms",
        "y_title": "images/s a chip",
        "machines": machines,
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


def _build_findings(connection: Connection) -> Iterator[dict[str, object]]:
    """Build the findings that have a card; one that the record has no rows for is left out, with an
    IncompleteRecordWarning.
    """
    for finding in FINDINGS:
        if finding.card:
            with skip_without_rows(f"finding {finding.name}"):
                yield _build_card(connection, finding, finding.card)


def _build_card(connection: Connection, finding: RecordFinding, card: Card) -> dict[str, object]:
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
