"""The published row to compare a point with, and the conditions in which the two differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from ipu_results.comparison import comparable
from ipu_results.comparison.comparable import (
    BITS,
    SETUPS,
    find_rule_obstacle,
    is_same,
    name_software,
)
from ipu_results.comparison.measurement import parse_sequence_length
from ipu_results.ground.sql import run_query
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.store.query import open_warehouse

Point = Mapping[str, Any]  # a line of points.csv, typed

PAPER = "qwant_c2"
EMULATED = comparable.EMULATED
UNKNOWN = "not known"
UNSTATED = "not stated by the source"
SIMULATED = "simulated, not measured"
ORIGIN_LABELS = {"measured": "measured", "emulated": EMULATED, "simulated": SIMULATED}
SWEEP_WORDS = {
    "precision": "compute precision",
    "sdk_version": "SDK",
}  # else those of schema/comparison.toml
RULES = [
    rule for rule in comparable.RULES if rule.column in ("errors", "sequence_length", "packed")
]


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A published row; `errors` counts its flags of severity error, `setup` holds what is known
    beyond its columns.
    """

    result_id: str
    document_id: str
    table_name: str
    row_number: int
    publisher: str
    model: str
    variant: str | None
    platform: str
    chip: str | None
    chip_count: int | None
    framework: str | None
    compiler: str | None
    sdk_version: str | None
    precision: str | None
    compute_precision: str | None
    batch_size: int | None
    micro_batch_size: int | None
    throughput: float | None
    item: str | None
    latency_ms: float | None
    latency_kind: str | None
    efficiency: float | None
    power_w: float | None
    power_scope: str | None
    errors: int
    sequence_length: int | None = None
    packed: bool | None = None
    setup: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def network(self) -> str:
        """Return the network that ran, where the name as printed means several."""
        known = _load_networks().get((self.model, self.platform, self.framework))
        return str(self.setup.get("network") or known or self.model)

    @property
    def computed_in(self) -> str | None:
        return self.compute_precision or BITS.get(self.precision or "", self.precision)

    @property
    def software(self) -> str | None:
        """Return the framework, and the graph compiler where the source names one."""
        return name_software(self.framework, self.compiler)

    @property
    def sweep(self) -> tuple[Any, ...]:
        """Return what it shares with the rows of the same source that differ in the batch only."""
        names = (
            "document_id table_name platform software computed_in sequence_length packed".split()
        )
        return tuple(getattr(self, name) for name in names)

    def get(self, name: str) -> Any:
        """Return a column, else what its table's setup says; None where the source is silent."""
        value = getattr(self, name, None)
        return self.setup.get(name) if value is None else value


COLUMNS = tuple(
    column.name for column in fields(ReferenceRow) if column.name not in ("errors", "setup")
)
SQL = f"""
    SELECT
        {", ".join(COLUMNS)},
        (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'error') AS
        errors
    FROM results r
    WHERE task = 'inference' AND origin = 'published'
    ORDER BY document_id, table_name, row_number, result_id
"""


@cache
def _load_networks() -> Mapping[tuple[str, str, str | None], str]:
    return {
        (known.model, known.platform, known.framework): known.network
        for known in load_vocabulary().identities
    }


def find_model_name(model: str) -> str | None:
    """Return the vocabulary's name of a network; None for one without published rows."""
    known = load_vocabulary().models.get(normalise_name(model))
    return None if known is None else str(known["model"])


def load_reference_rows(warehouse: Path, model: str) -> list[ReferenceRow]:
    """Load the published inference rows of a network, by any of its names.

    Raises WarehouseError without one.
    """
    with open_warehouse(warehouse) as connection:
        return query_reference_rows(connection, model)


def query_reference_rows(connection: duckdb.DuckDBPyConnection, model: str) -> list[ReferenceRow]:
    """Query the same from an open warehouse, in the order of the sources; no row for an unknown
    network.
    """
    name = find_model_name(model)
    if name is None:
        return []
    records = run_query(connection, SQL).to_pylist()
    rows = (
        ReferenceRow(**record, setup=SETUPS.get(record["table_name"], {})) for record in records
    )
    return [row for row in rows if name in (row.model, row.network)]


def find_reference_row(point: Point, rows: Sequence[ReferenceRow]) -> ReferenceRow | None:
    """Return the row of the point's total batch: of its own platform first, then the paper's, then
    the most similar.

    Rows with an error flag, of another sequence length or of packed sequences do not count.
    """
    own = {"sequence_length": parse_sequence_length(point.get("variant"))}
    fit = [
        row
        for row in rows
        if row.batch_size == point["batch_size"]
        and not any(
            find_rule_obstacle(rule, own.get(rule.column), getattr(row, rule.column))
            for rule in RULES
        )
    ]
    return min(fit, key=lambda row: _rank(point, row), default=None)


def find_reference_sweeps(
    points: Sequence[Point], rows: Sequence[ReferenceRow]
) -> list[ReferenceRow]:
    """Return the sweeps that the points' reference rows belong to, one row per batch; without any
    the paper's.
    """
    chosen = [
        row for row in (find_reference_row(point, rows) for point in points) if row is not None
    ]
    sweeps = {row.sweep for row in chosen} or {row.sweep for row in rows if row.table_name == PAPER}
    by_batch: dict[tuple[Any, ...], ReferenceRow] = {}
    for row in [*chosen, *(row for row in rows if row.sweep in sweeps and not row.errors)]:
        by_batch.setdefault((row.sweep, row.batch_size), row)
    return list(by_batch.values())


def _rank(point: Point, row: ReferenceRow) -> tuple[Any, ...]:
    elsewhere = (row.platform != point.get("platform"), row.table_name != PAPER)
    return (
        *elsewhere,
        len(list_differences(point, row)),
        row.document_id,
        row.table_name,
        row.row_number,
    )


def list_differences(point: Point, row: ReferenceRow) -> list[str]:
    """Return what differs or is unknown, each as `what: ours / theirs`; nothing where the two are
    comparable.
    """
    return [
        f"{what}: {_or_else(ours, UNKNOWN)} / {_or_else(theirs, UNSTATED)}"
        for what, ours, theirs in pair_conditions(point, row)
        if not is_same(ours, theirs)
    ]


def list_differing_conditions(points: Sequence[Point], rows: Sequence[ReferenceRow]) -> list[str]:
    """Return what differs for any of the points, without the values."""
    pairs = [(point, find_reference_row(point, rows)) for point in points]
    lines = (
        line for point, row in pairs if row is not None for line in list_differences(point, row)
    )
    return list(dict.fromkeys(line.partition(":")[0] for line in lines))


def pair_conditions(point: Point, row: ReferenceRow) -> list[tuple[str, Any, Any]]:
    """Return every condition as (what, ours, theirs)."""
    shared = ("sessions", "weights", "preprocessing", "model_precision", "pipeline")
    ours = {
        name: point.get(name)
        for name in (*shared, "platform", "framework", "sdk_version", "power_w", "power_scope")
    } | {
        "chips": point.get("chip_count"),
        "network": find_model_name(point.get("model") or "") or point.get("model"),
        "precision": point.get("compute_precision"),
        "latency": point.get("latency_kind"),
        "software": point.get("framework"),
    }
    theirs = {name: row.get(name) for name in (*ours, "efficiency")} | {
        "chips": row.chip_count,
        "precision": row.computed_in,
        "latency": row.get("latency_kind"),
    }
    origin = point.get("origin") or "measured"
    if origin != "measured":
        ours["figures"], theirs["figures"] = ORIGIN_LABELS.get(origin, origin), "published"
    pairs = comparable.pair_conditions(ours, theirs)
    return [
        (SWEEP_WORDS.get(name, comparable.CONDITIONS[name]), own, other)
        for name, own, other in pairs
    ]


def _or_else(value: Any, otherwise: str) -> str:
    return otherwise if value in (None, "") else str(value)
