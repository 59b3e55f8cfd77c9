"""The rows of tables as Python reads them, with the types of their columns.

Made from `schema/tables/` by `python .ci/records.py`; a test holds the two equal.
"""

from __future__ import annotations

from datetime import date
from typing import TypedDict


class DocumentsRow(TypedDict):
    document_id: str
    title: str
    publisher: str
    url: str | None
    commit: str | None
    published_on: date | None
    kind: str
    sha256: str
    licence: str
    retrieved_on: date | None
    file: str
    note: str
    figures_are: str | None
    measured_by: str | None
    measured_on: str | None
    verified: str | None
    sources: str | None


class ClaimsRow(TypedDict):
    claim_id: str
    document_id: str
    claim: str
    figure: str
    value: float
    unit: str
    digits_tolerance: float
    relation: str | None
    subject: str | None
    baseline: str | None
    model_printed: str | None
    task: str | None
    metric: str
    kind: str
    direction: str | None
    sdk_version: str | None
    precision_printed: str | None
    batch: str | None
    framework: str | None
    dataset_printed: str | None
    place: str
    interpretation: str | None
    basis: str | None
    recomputation: str | None
    recomputation_sql: str | None
    recomputed: str
    verdict: str
    rests_on: str | None
    reason: str
    swapped_baseline: str | None
    gap_percent: float | None
    gap_kind: str | None
    not_recomputable: str | None
    ledger_id: str | None
    locator: str


class RecomputationsRow(TypedDict):
    claim_id: str
    position: int
    value: float
    baseline: str
    arithmetic: str
    outcome: str
    gap_percent: float | None
    gap_kind: str
    not_counted: str | None
    stand_in: str | None
    departs: str | None
    division: str | None
    system: str | None
    source: str | None
    reading: str | None


class ContradictionsRow(TypedDict):
    contradiction_id: str
    kind: str
    claim_ids: str | None
    what: str
    resolution: str
    recomputation: str | None
    recomputation_sql: str | None
    recomputed: str
    document_id: str | None
    locator: str


class BuildRow(TypedDict):
    table_name: str
    row_count: int
    build_id: str
