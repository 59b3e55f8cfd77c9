"""Select the published rows that predictions are compared with, by `data/rows.toml`.

The warehouse has the figures, the public configuration of each row, and the flags that make a row doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any, Literal

import duckdb

from ipu_results.emulator.data import read_toml
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.protocol import Protocol, count_replicas, select_protocol
from ipu_results.emulator.target import PLATFORMS, load_target
from ipu_results.errors import WarehouseError
from ipu_results.ground.physics import count_batches_in_flight
from ipu_results.ground.sql import run_query

# The fit, the two development sets (not fitted, but their errors were watched), and the blind set, in that order.
SETS = ("calibration", "resnext", "ten", "honest")
DEVELOPMENT, BLIND = ("resnext", "ten"), "honest"
KEYS = ("model", "platform", "framework", "variant")
DOUBTFUL_BATCH = "R24"  # more or fewer batches in flight than in the other rows of the same configuration
BITS, FP16_BITS = 8, 16  # of an input element
EIGHT_BIT = "8-bit input"  # in `precision_flags` of a configuration
IO_TILES = re.compile(r"\b(\d+) I/O tiles")  # in its `note`
SQL = f"""
    SELECT r.result_id, r.document_id, r.table_name, r.row_number, r.model, r.variant, r.platform, r.framework,
        r.batch_size, r.throughput, r.latency_ms, c.benchmark, c.tag, c.instances, c.replicas, c.precision_flags,
        c.note, r.result_id IN (SELECT result_id FROM flags WHERE rule = '{DOUBTFUL_BATCH}') AS doubtful
    FROM results r LEFT JOIN configurations c USING (result_id)
    WHERE r.task = 'inference' AND r.origin = 'published' ORDER BY r.table_name, r.row_number
"""


@dataclass(frozen=True, slots=True)
class RowSelector:
    """Rows of one document and how they are predicted. None in `variant` or `batch_sizes` matches any.

    `time` is the figure that holds the time of a batch: batch ÷ throughput, or the latency where one is in flight.
    `prefetch`, `threads` and `input_bits` are what the table of configurations does not hold. A row that has no public
    configuration names a `protocol`.
    """

    set: str
    rows: int
    document: str
    model: str
    platform: str
    framework: str
    network: str
    source: str
    protocol: str | None = None
    prefetch: bool = False
    threads: int | None = None
    input_bits: int | None = None
    variant: str | None = None
    batch_sizes: tuple[int, ...] | None = None
    time: Literal["throughput", "latency"] = "throughput"

    @property
    def target(self) -> str:
        return next(name for name, platform in PLATFORMS.items() if platform == self.platform)

    def matches(self, record: Mapping[str, Any]) -> bool:
        expected = {"document_id": self.document} | {key: getattr(self, key) for key in KEYS}
        # A selector says "" for rows without a variant, which the warehouse stores as null.
        if any(value is not None and (record[key] or "") != value for key, value in expected.items()):
            return False
        return self.batch_sizes is None or record["batch_size"] in self.batch_sizes

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.model, self.variant, self.framework, self.platform, self.document)))


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published row. `seconds` is its time for one batch, `latency` the printed one, if any, in seconds.

    `second_reading` is the same row with the batch that its figures suggest, where a rule doubts the printed one.
    """

    result_id: str
    batch_size: int
    seconds: float
    variant: str
    selector: RowSelector
    protocol: Protocol
    latency: float | None = None
    second_reading: PublishedRow | None = None

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
    return RowSelector(**{**entry, "document": documents[entry.get("document", "page")], "batch_sizes": batches})


def load_published_rows(connection: duckdb.DuckDBPyConnection, sets: Sequence[str] = SETS) -> list[PublishedRow]:
    """Read the rows of these sets. Raises WarehouseError where a selector matches more or fewer rows than it states."""
    records = run_query(connection, SQL).to_pylist()
    return [row for selector in load_selectors() if selector.set in sets for row in _select(selector, records)]


def _select(selector: RowSelector, records: Sequence[Mapping[str, Any]]) -> list[PublishedRow]:
    matches = [record for record in records if selector.matches(record)]
    if len(matches) != selector.rows:
        message = f"the warehouse holds {len(matches)} of the {selector.rows} rows to validate against"
        raise WarehouseError(message, place=str(selector))
    return [_parse_row(selector, record, matches) for record in matches]


def _parse_row(selector: RowSelector, record: Mapping[str, Any], siblings: Sequence[Mapping[str, Any]]) -> PublishedRow:
    batch, figure = record["batch_size"], record["latency_ms" if selector.time == "latency" else "throughput"]
    if not batch or not figure:
        message = f"row {record['result_id']} lacks its batch size or its {selector.time}"
        raise WarehouseError(message, place=str(selector))
    seconds = figure / MS if selector.time == "latency" else batch / figure
    latency = record["latency_ms"] / MS if record["latency_ms"] else None
    row = PublishedRow(
        record["result_id"],
        int(batch),
        seconds,
        record["variant"] or "",
        selector,
        build_protocol(selector, record),
        latency,
    )
    if not record["doubtful"] or latency is None:
        return row
    other = _suggest_batch(row, latency, siblings)
    return row if other is None else replace(row, second_reading=replace(row, batch_size=other, seconds=other / figure))


def _suggest_batch(row: PublishedRow, latency: float, siblings: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the batch with as many in flight as the median of the rows has, a multiple of the chips, or None."""
    complete = [each for each in siblings if each["latency_ms"] and each["throughput"] and each["batch_size"]]
    depths = [count_batches_in_flight(each["throughput"], each["latency_ms"], each["batch_size"]) for each in complete]
    chips = count_replicas(row.protocol, load_target(row.selector.target))
    items = row.batch_size / row.seconds * latency
    return round(items / median(depths) / chips) * chips or None if depths else None


def build_protocol(selector: RowSelector, configuration: Mapping[str, Any]) -> Protocol:
    """Build the host path of a row from its public configuration, or take the protocol that the selector names.

    Raises WarehouseError for a row that has neither.
    """
    target = load_target(selector.target)
    if selector.protocol is not None:
        return select_protocol(selector.protocol, target)
    if configuration["benchmark"] is None:
        raise WarehouseError(f"row {configuration['result_id']} has no public configuration", place=str(selector))
    bits = BITS if EIGHT_BIT in (configuration["precision_flags"] or "") else FP16_BITS
    tiles = IO_TILES.search(configuration["note"] or "")
    io_tiles = int(tiles[1]) if tiles else 0
    return Protocol(
        _name_settings(selector, io_tiles),
        selector.input_bits or bits,
        selector.prefetch,
        selector.source,
        io_tiles,
        configuration["instances"],
        configuration["replicas"],
        selector.threads,
    )


def _name_settings(selector: RowSelector, io_tiles: int) -> str:
    """Return the protocol that is nearest to these settings."""
    if not selector.prefetch:
        return "lowest-latency"
    if selector.threads:
        return "tensorflow"
    return "io-tiles" if io_tiles else "pytorch"
