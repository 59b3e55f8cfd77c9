"""The published row to stand beside a point, and what the two do not share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.store.query import open_warehouse

Point = Mapping[str, Any]  # a line of points.csv, typed

PAPER = "qwant_c2"
UNKNOWN = "not known"
UNTOLD = "not told by the source"
EMULATED = "emulated, not measured"
SIMULATED = "simulated, not measured"
OF_ORIGIN = {"measured": "measured", "emulated": EMULATED, "simulated": SIMULATED}
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
SQL = """
    SELECT
        result_id, document_id, table_name, row_number, publisher, model, variant, platform, chip, chip_count,
        framework, compiler, sdk_version, precision, compute_precision, batch_size, micro_batch_size, throughput,
        item, latency_ms, latency_kind, efficiency, power_w, power_scope,
        (SELECT count(*) FROM flags f WHERE f.result_id = r.result_id AND f.severity = 'error') AS errors
    FROM results r
    WHERE task = 'inference' AND origin = 'published'
    ORDER BY document_id, table_name, row_number, result_id
"""


@dataclass(frozen=True, slots=True)
class Published:
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
    setup: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def network(self) -> str:
        """The network that ran, where the name as printed stands for several."""
        known = _networks().get((self.model, self.platform, self.framework))
        return str(self.setup.get("network") or known or self.model)

    @property
    def computed_in(self) -> str | None:
        return self.compute_precision or BITS.get(self.precision or "", self.precision)

    @property
    def software(self) -> str | None:
        """The framework, and the graph compiler that the source names beside it."""
        return ", ".join(one for one in (self.framework, self.compiler) if one) or None

    @property
    def sweep(self) -> tuple[str | None, ...]:
        """What it shares with the rows of the same source that differ in the batch alone."""
        return (self.document_id, self.table_name, self.platform, self.software, self.computed_in)

    def told(self, name: str) -> Any:
        """A column, else what its table's setup says; None where the source is silent."""
        value = getattr(self, name, None)
        return self.setup.get(name) if value is None else value


@cache
def _networks() -> Mapping[tuple[str, str, str | None], str]:
    return {(one.model, one.platform, one.framework): one.network for one in load_vocabulary().identities}


def canonical(model: str) -> str | None:
    """The vocabulary's name of a network; None for one that nothing was published of."""
    known = load_vocabulary().models.get(normalise_name(model))
    return None if known is None else str(known["model"])


def published_rows(warehouse: Path, model: str) -> list[Published]:
    """The published inference rows of a network, by any of its names. Raises WarehouseError where none is built."""
    with open_warehouse(warehouse) as connection:
        return rows_of(connection, model)


def rows_of(connection: duckdb.DuckDBPyConnection, model: str) -> list[Published]:
    """The same from an open warehouse, in the order of the sources. No row for a network that the record lacks."""
    name = canonical(model)
    if name is None:
        return []
    found = (
        Published(**record, setup=SETUPS.get(record["table_name"], {}))
        for record in run_query(connection, SQL).to_pylist()
    )
    return [row for row in found if name in (row.model, row.network)]


def beside(point: Point, published: Sequence[Published]) -> Published | None:
    """The row of the point's total batch: of its own platform first, then the paper's, then the one most alike.

    A row with an error flag stands beside nothing.
    """
    fit = [row for row in published if row.batch_size == point["batch_size"] and not row.errors]
    return min(fit, key=lambda row: _rank(point, row), default=None)


def companions(points: Sequence[Point], published: Sequence[Published]) -> list[Published]:
    """The sweeps that the rows beside the points belong to, one row per batch; the paper's where there are none."""
    chosen = [row for row in (beside(point, published) for point in points) if row is not None]
    sweeps = {row.sweep for row in chosen} or {row.sweep for row in published if row.table_name == PAPER}
    rows = [*chosen, *(row for row in published if row.sweep in sweeps and not row.errors)]
    found: dict[tuple[Any, ...], Published] = {}
    for row in rows:
        found.setdefault((row.sweep, row.batch_size), row)
    return list(found.values())


def _rank(point: Point, row: Published) -> tuple[Any, ...]:
    elsewhere = (row.platform != point.get("platform"), row.table_name != PAPER)
    return (*elsewhere, len(differences(point, row)), row.document_id, row.table_name, row.row_number)


def differences(point: Point, row: Published) -> list[str]:
    """What differs or is unknown, each as `what: ours / theirs`; nothing where the two may be compared as they are."""
    pairs = _pairs(point, row)
    return [
        f"{what}: {_said(ours, UNKNOWN)} / {_said(theirs, UNTOLD)}"
        for what, ours, theirs in pairs
        if not _same(ours, theirs)
    ]


def differing(points: Sequence[Point], published: Sequence[Published]) -> list[str]:
    """What differs for any of the points, without the values."""
    pairs = [(point, beside(point, published)) for point in points]
    told = (one for point, row in pairs if row is not None for one in differences(point, row))
    return list(dict.fromkeys(one.partition(":")[0] for one in told))


def _pairs(point: Point, row: Published) -> list[tuple[str, Any, Any]]:
    origin = point.get("origin") or "measured"
    figures = [("figures", OF_ORIGIN.get(origin, origin), "published")] if origin != "measured" else []
    return [
        *figures,
        ("device", point.get("platform"), row.platform),
        ("chips", point.get("chip_count"), row.chip_count),
        ("sessions", point.get("sessions"), row.told("sessions")),
        ("network", canonical(point.get("model") or "") or point.get("model"), row.network),
        ("weights", point.get("weights"), row.told("weights")),
        ("pre-processing", point.get("preprocessing"), row.told("preprocessing")),
        ("model precision", point.get("model_precision"), row.told("model_precision")),
        ("compute precision", point.get("compute_precision"), row.computed_in),
        ("latency", point.get("latency_kind"), row.told("latency_kind")),
        ("pipeline", point.get("pipeline"), row.told("pipeline")),
        ("framework", point.get("framework"), row.software),
        *_sdk(point, row),
        *_power(point, row),
    ]


def _sdk(point: Point, row: Published) -> list[tuple[str, Any, Any]]:
    """Versions of different software cannot be compared."""
    told = point.get("sdk_version"), row.sdk_version
    return [("SDK", *told)] if _same(point.get("framework"), row.framework) and any(told) else []


def _power(point: Point, row: Published) -> list[tuple[str, Any, Any]]:
    ours, theirs = point.get("power_w"), row.power_w or row.efficiency
    return [("power scope", point.get("power_scope"), row.told("power_scope"))] if ours and theirs else []


def _same(ours: Any, theirs: Any) -> bool:
    if ours in (None, "") or theirs in (None, ""):
        return False
    return normalise_name(str(ours)) == normalise_name(str(theirs))


def _said(value: Any, otherwise: str) -> str:
    return otherwise if value in (None, "") else str(value)
