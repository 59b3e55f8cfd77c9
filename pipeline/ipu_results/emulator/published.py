"""The published rows that predictions are held against, chosen by `rows.toml`; every figure is the warehouse's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.emulator.protocol import Protocol, protocol_of
from ipu_results.emulator.target import load_target
from ipu_results.errors import WarehouseError

SETS = ("calibration", "resnext", "ten", "honest")
KEYS = ("model", "platform", "framework", "variant")
COLUMNS = "result_id, document_id, table_name, row_number, model, variant, platform, framework"
FIGURES = "batch_size, throughput, latency_ms"
SQL = f"""
    SELECT {COLUMNS}, {FIGURES} FROM results
    WHERE task = 'inference' AND origin = 'published' ORDER BY table_name, row_number
"""
MS = 1000.0


@dataclass(frozen=True, slots=True)
class Selector:
    """Rows of one document and how they are predicted; None in `variant` or `batch_sizes` is any.

    `time` is the figure that gives the time of a batch: batch ÷ throughput, or the latency where one is in flight.
    """

    set: str
    rows: int
    document: str
    model: str
    platform: str
    framework: str
    network: str
    target: str
    protocol: str
    source: str
    variant: str | None = None
    batch_sizes: tuple[int, ...] | None = None
    pixel_bytes: int | None = None
    io_tiles: int | None = None
    time: Literal["throughput", "latency"] = "throughput"

    def takes(self, record: Mapping[str, Any]) -> bool:
        wanted = {"document_id": self.document} | {key: getattr(self, key) for key in KEYS}
        if any(value is not None and (record[key] or "") != value for key, value in wanted.items()):
            return False
        return self.batch_sizes is None or record["batch_size"] in self.batch_sizes

    @property
    def path(self) -> Protocol:
        found = protocol_of(self.protocol, load_target(self.target))
        pixels = found.pixel_bytes if self.pixel_bytes is None else self.pixel_bytes
        tiles = found.io_tiles if self.io_tiles is None else self.io_tiles
        return replace(found, pixel_bytes=pixels, io_tiles=tiles)

    def __str__(self) -> str:
        told = (self.model, self.variant, self.framework, self.platform, self.document)
        return ", ".join(one for one in told if one)


@dataclass(frozen=True, slots=True)
class Row:
    """A published row; `seconds` is what it gives for one batch."""

    result_id: str
    batch: int
    seconds: float
    variant: str
    how: Selector

    @property
    def label(self) -> str:
        return f"{self.how.model} {self.how.framework}"


@cache
def selectors() -> tuple[Selector, ...]:
    data = tomllib.loads((files("ipu_results.emulator") / "rows.toml").read_text(encoding="utf-8"))
    return tuple(_selector(entry, data["documents"]) for entry in data["rows"])


def _selector(entry: Mapping[str, Any], documents: Mapping[str, str]) -> Selector:
    batches = tuple(entry["batch_sizes"]) if "batch_sizes" in entry else None
    return Selector(**{**entry, "document": documents[entry["document"]], "batch_sizes": batches})


def published(connection: duckdb.DuckDBPyConnection, only: Sequence[str] = SETS) -> list[Row]:
    """The rows of these sets. Raises WarehouseError where a selector finds more or fewer rows than it names."""
    records = run_query(connection, SQL).to_pylist()
    return [row for one in selectors() if one.set in only for row in _rows(one, records)]


def _rows(how: Selector, records: Sequence[Mapping[str, Any]]) -> list[Row]:
    found = [record for record in records if how.takes(record)]
    if len(found) != how.rows:
        raise WarehouseError(f"holds {len(found)} of the {how.rows} rows to validate against", place=str(how))
    return [_row(how, record) for record in found]


def _row(how: Selector, record: Mapping[str, Any]) -> Row:
    batch, figure = record["batch_size"], record["latency_ms" if how.time == "latency" else "throughput"]
    if not batch or not figure:
        raise WarehouseError(f"row {record['result_id']} lacks its batch size or its {how.time}", place=str(how))
    seconds = figure / MS if how.time == "latency" else batch / figure
    return Row(record["result_id"], int(batch), seconds, record["variant"] or "", how)
