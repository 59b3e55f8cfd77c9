"""Select the published rows that predictions are compared with, by `data/rows.toml`; the warehouse has the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.emulator.data import read_toml
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.protocol import Protocol, select_protocol
from ipu_results.emulator.target import load_target
from ipu_results.errors import WarehouseError

# The fit, the two development sets (not fitted, but their errors were watched), and the blind set, in that order.
SETS = ("calibration", "resnext", "ten", "honest")
DEVELOPMENT, BLIND = ("resnext", "ten"), "honest"
KEYS = ("model", "platform", "framework", "variant")
SQL = """
    SELECT result_id, document_id, table_name, row_number, model, variant, platform, framework,
        batch_size, throughput, latency_ms
    FROM results
    WHERE task = 'inference' AND origin = 'published' ORDER BY table_name, row_number
"""


@dataclass(frozen=True, slots=True)
class RowSelector:
    """Rows of one document and how they are predicted. None in `variant` or `batch_sizes` matches any.

    `time` is the figure that holds the time of a batch: batch ÷ throughput, or the latency where one is in flight.
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

    def matches(self, record: Mapping[str, Any]) -> bool:
        expected = {"document_id": self.document} | {key: getattr(self, key) for key in KEYS}
        # A selector says "" for rows without a variant, which the warehouse stores as null.
        if any(value is not None and (record[key] or "") != value for key, value in expected.items()):
            return False
        return self.batch_sizes is None or record["batch_size"] in self.batch_sizes

    @property
    def host_path(self) -> Protocol:
        protocol = select_protocol(self.protocol, load_target(self.target))
        pixels = protocol.pixel_bytes if self.pixel_bytes is None else self.pixel_bytes
        tiles = protocol.io_tiles if self.io_tiles is None else self.io_tiles
        return replace(protocol, pixel_bytes=pixels, io_tiles=tiles)

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.model, self.variant, self.framework, self.platform, self.document)))


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published row. `seconds` is its time for one batch."""

    result_id: str
    batch_size: int
    seconds: float
    variant: str
    selector: RowSelector

    @property
    def set(self) -> str:
        return self.selector.set

    @property
    def label(self) -> str:
        return f"{self.selector.model} {self.selector.framework}"


@cache
def load_selectors() -> tuple[RowSelector, ...]:
    data = read_toml("rows.toml")
    return tuple(_parse_selector(entry, data["documents"]) for entry in data["rows"])


def _parse_selector(entry: Mapping[str, Any], documents: Mapping[str, str]) -> RowSelector:
    batches = tuple(entry["batch_sizes"]) if "batch_sizes" in entry else None
    return RowSelector(**{**entry, "document": documents[entry["document"]], "batch_sizes": batches})


def load_published_rows(connection: duckdb.DuckDBPyConnection, sets: Sequence[str] = SETS) -> list[PublishedRow]:
    """Read the rows of these sets. Raises WarehouseError where a selector matches more or fewer rows than it states."""
    records = run_query(connection, SQL).to_pylist()
    return [row for selector in load_selectors() if selector.set in sets for row in _select(selector, records)]


def _select(selector: RowSelector, records: Sequence[Mapping[str, Any]]) -> list[PublishedRow]:
    matches = [record for record in records if selector.matches(record)]
    if len(matches) != selector.rows:
        message = f"the warehouse holds {len(matches)} of the {selector.rows} rows to validate against"
        raise WarehouseError(message, place=str(selector))
    return [_parse_row(selector, record) for record in matches]


def _parse_row(selector: RowSelector, record: Mapping[str, Any]) -> PublishedRow:
    batch, figure = record["batch_size"], record["latency_ms" if selector.time == "latency" else "throughput"]
    if not batch or not figure:
        message = f"row {record['result_id']} lacks its batch size or its {selector.time}"
        raise WarehouseError(message, place=str(selector))
    seconds = figure / MS if selector.time == "latency" else batch / figure
    return PublishedRow(record["result_id"], int(batch), seconds, record["variant"] or "", selector)
