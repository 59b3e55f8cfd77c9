"""The published row to compare a point with, and the conditions in which the two differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.store.query import open_warehouse

Point = Mapping[str, Any]  # a line of points.csv, typed

PAPER = "qwant_c2"
SEQUENCE = re.compile(r"\bSL(\d+)\b")  # as schema/derived/results.sql reads it
UNKNOWN = "not known"
UNSTATED = "not stated by the source"
EMULATED = "emulated, not measured"
SIMULATED = "simulated, not measured"
ORIGIN_LABELS = {"measured": "measured", "emulated": EMULATED, "simulated": SIMULATED}
BITS = {"16.16": "fp16", "32.32": "fp32"}  # of Graphcore's pages, where nothing else is said of the precision

# What the rows of a table share and their columns do not hold. PAPER: arXiv:2002.11670 timed the program that the
# vendor then published as `resnext_inference` (PopART). Neither says which weights it read.
SETUPS: Mapping[str, Mapping[str, Any]] = {
    PAPER: {
        "network": "ResNeXt101-32x4d",
        "sessions": 2,
        "latency_kind": "amortised",
        "pipeline": "overlap",
        "preprocessing": "centre crop 224 × 224 without resize, ImageNet normalisation",
        "model_precision": "fp16",
        "power_scope": "board",
    }
}


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A published row; `errors` counts its flags of severity error, `setup` holds what is known beyond its columns."""

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
        return ", ".join(name for name in (self.framework, self.compiler) if name) or None

    @property
    def sweep(self) -> tuple[Any, ...]:
        """Return what it shares with the rows of the same source that differ in the batch only."""
        return (
            self.document_id,
            self.table_name,
            self.platform,
            self.software,
            self.computed_in,
            self.sequence_length,
            self.packed,
        )

    def get(self, name: str) -> Any:
        """Return a column, else what its table's setup says; None where the source is silent."""
        value = getattr(self, name, None)
        return self.setup.get(name) if value is None else value


COLUMNS = tuple(column.name for column in fields(ReferenceRow) if column.name not in ("errors", "setup"))
SQL = f"""
    SELECT
        {", ".join(COLUMNS)},
        (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'error') AS errors
    FROM results r
    WHERE task = 'inference' AND origin = 'published'
    ORDER BY document_id, table_name, row_number, result_id
"""


@cache
def _load_networks() -> Mapping[tuple[str, str, str | None], str]:
    return {(known.model, known.platform, known.framework): known.network for known in load_vocabulary().identities}


def find_model_name(model: str) -> str | None:
    """Return the vocabulary's name of a network; None for one without published rows."""
    known = load_vocabulary().models.get(normalise_name(model))
    return None if known is None else str(known["model"])


def load_reference_rows(warehouse: Path, model: str) -> list[ReferenceRow]:
    """Load the published inference rows of a network, by any of its names. Raises WarehouseError without one."""
    with open_warehouse(warehouse) as connection:
        return query_reference_rows(connection, model)


def query_reference_rows(connection: duckdb.DuckDBPyConnection, model: str) -> list[ReferenceRow]:
    """Query the same from an open warehouse, in the order of the sources; no row for an unknown network."""
    name = find_model_name(model)
    if name is None:
        return []
    records = run_query(connection, SQL).to_pylist()
    rows = (ReferenceRow(**record, setup=SETUPS.get(record["table_name"], {})) for record in records)
    return [row for row in rows if name in (row.model, row.network)]


def find_reference_row(point: Point, rows: Sequence[ReferenceRow]) -> ReferenceRow | None:
    """Return the row of the point's total batch: of its own platform first, then the paper's, then the most similar.

    Rows with an error flag, of another sequence length or of packed sequences do not count.
    """
    length = parse_sequence_length(point)
    fit = [
        row
        for row in rows
        if (row.batch_size, row.sequence_length) == (point["batch_size"], length) and not (row.errors or row.packed)
    ]
    return min(fit, key=lambda row: _rank(point, row), default=None)


def parse_sequence_length(point: Point) -> int | None:
    """Return the tokens of a sequence, which the variant states: `SL128`; None for images."""
    match = SEQUENCE.search(str(point.get("variant") or ""))
    return int(match[1]) if match else None


def find_reference_sweeps(points: Sequence[Point], rows: Sequence[ReferenceRow]) -> list[ReferenceRow]:
    """Return the sweeps that the points' reference rows belong to, one row per batch; without any the paper's."""
    chosen = [row for row in (find_reference_row(point, rows) for point in points) if row is not None]
    sweeps = {row.sweep for row in chosen} or {row.sweep for row in rows if row.table_name == PAPER}
    by_batch: dict[tuple[Any, ...], ReferenceRow] = {}
    for row in [*chosen, *(row for row in rows if row.sweep in sweeps and not row.errors)]:
        by_batch.setdefault((row.sweep, row.batch_size), row)
    return list(by_batch.values())


def _rank(point: Point, row: ReferenceRow) -> tuple[Any, ...]:
    elsewhere = (row.platform != point.get("platform"), row.table_name != PAPER)
    return (*elsewhere, len(list_differences(point, row)), row.document_id, row.table_name, row.row_number)


def list_differences(point: Point, row: ReferenceRow) -> list[str]:
    """Return what differs or is unknown, each as `what: ours / theirs`; nothing where the two are comparable."""
    return [
        f"{what}: {_or_else(ours, UNKNOWN)} / {_or_else(theirs, UNSTATED)}"
        for what, ours, theirs in pair_conditions(point, row)
        if not is_same(ours, theirs)
    ]


def list_differing_conditions(points: Sequence[Point], rows: Sequence[ReferenceRow]) -> list[str]:
    """Return what differs for any of the points, without the values."""
    pairs = [(point, find_reference_row(point, rows)) for point in points]
    lines = (line for point, row in pairs if row is not None for line in list_differences(point, row))
    return list(dict.fromkeys(line.partition(":")[0] for line in lines))


def pair_conditions(point: Point, row: ReferenceRow) -> list[tuple[str, Any, Any]]:
    """Return every condition as (what, ours, theirs)."""
    origin = point.get("origin") or "measured"
    pairs: list[tuple[str, Any, Any]] = []
    if origin != "measured":
        pairs.append(("figures", ORIGIN_LABELS.get(origin, origin), "published"))
    pairs += [
        ("device", point.get("platform"), row.platform),
        ("chips", point.get("chip_count"), row.chip_count),
        ("sessions", point.get("sessions"), row.get("sessions")),
        ("network", find_model_name(point.get("model") or "") or point.get("model"), row.network),
        ("weights", point.get("weights"), row.get("weights")),
        ("pre-processing", point.get("preprocessing"), row.get("preprocessing")),
        ("model precision", point.get("model_precision"), row.get("model_precision")),
        ("compute precision", point.get("compute_precision"), row.computed_in),
        ("latency", point.get("latency_kind"), row.get("latency_kind")),
        ("pipeline", point.get("pipeline"), row.get("pipeline")),
        ("framework", point.get("framework"), row.software),
    ]
    versions = point.get("sdk_version"), row.sdk_version
    if any(versions) and is_same(point.get("framework"), row.framework):  # else the versions are of different software
        pairs.append(("SDK", *versions))
    if point.get("power_w") and (row.power_w or row.efficiency):
        pairs.append(("power scope", point.get("power_scope"), row.get("power_scope")))
    return pairs


def is_same(ours: Any, theirs: Any) -> bool:
    if ours in (None, "") or theirs in (None, ""):
        return False
    return normalise_name(str(ours)) == normalise_name(str(theirs))


def _or_else(value: Any, otherwise: str) -> str:
    return otherwise if value in (None, "") else str(value)
