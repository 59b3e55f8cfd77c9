"""Select the published rows that predictions are compared with: `data/rows.toml` and
`data/training_rows.toml`.

The warehouse has the figures, the public configuration of each row, and the flags that make a row
doubtful. No training row is in any fit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

import duckdb
from ipu_results.emulator.network import Network, load_sized_network
from ipu_results.emulator.networks import SEQUENCE
from ipu_results.emulator.pipeline import Recompute
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.settings import Protocol, count_replicas, select_protocol
from ipu_results.emulator.target import PLATFORMS, load_target
from ipu_results.emulator.training import TrainingSetup
from ipu_results.errors import TooFewRowsError, WarehouseError
from ipu_results.kit.physics import count_batches_in_flight
from ipu_results.kit.sql import run_query
from ipu_results.record.store.query import open_warehouse

from benchmarks.processes import ROOT

DATA = Path(__file__).parent / "data"
Record = Mapping[str, Any]
# The fit, the two development sets (not fitted, but their errors were watched), and the blind set,
# in that order.
SETS = ("calibration", "resnext", "ten", "honest")
DEVELOPMENT, BLIND = ("resnext", "ten"), "honest"
KEYS = ("model", "platform", "framework", "variant")
# more or fewer batches in flight than in the other rows of the same configuration
DOUBTFUL_BATCH = "R24"
EIGHT_BIT = "8-bit input"  # in `precision_flags` of a configuration
IO_TILES = re.compile(r"\b(\d+) I/O tiles")  # in its `note`
SQL = f"""
    SELECT
        r.result_id, r.document_id, r.table_name, r.row_number, r.model_printed AS model, r.variant, r.platform,
        r.framework, r.batch_size, r.throughput, r.latency_ms, c.benchmark, c.tag, c.instances,
        c.replicas, c.precision_flags, c.note,
        r.result_id IN (SELECT result_id FROM flags WHERE rule = '{DOUBTFUL_BATCH}') AS doubtful
    FROM results r
    LEFT JOIN detail.configurations c USING (result_id)
    WHERE r.task = 'inference' AND r.origin = 'published'
    ORDER BY r.table_name, r.row_number
"""


@dataclass(frozen=True, slots=True)
class RowSelector:
    """Rows of one document and how they are predicted.

    None in `variant` or `batch_sizes` matches any.

    `time` is the figure that holds the time of a batch: batch ÷ throughput, or the latency where
    one is in flight. `prefetch`, `threads` and `input_bits` are what the table of configurations
    does not hold. A row that has no public configuration names a `protocol`.
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

    def matches(self, record: Record) -> bool:
        expected = {"document_id": self.document} | {key: getattr(self, key) for key in KEYS}
        # A selector says "" for rows without a variant, which the warehouse stores as null.
        for key, value in expected.items():
            if value is not None and (record[key] or "") != value:
                return False
        return self.batch_sizes is None or record["batch_size"] in self.batch_sizes

    def __str__(self) -> str:
        return ", ".join(
            filter(None, (self.model, self.variant, self.framework, self.platform, self.document))
        )


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published row.

    `seconds` is its time for one batch, `latency` the printed one, if any, in seconds.

    `second_reading` is the same row with the batch that its figures suggest, where a rule doubts
    the printed one.
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
def read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / name).read_text(encoding="utf-8"))


@cache
def load_selectors() -> tuple[RowSelector, ...]:
    documents = read_toml("rows.toml")["documents"]
    entries = _read_entries("rows.toml")
    return tuple(
        RowSelector(**{**entry, "document": documents[entry.get("document", "page")]})
        for entry in entries
    )


def _read_entries(file: str) -> list[dict[str, Any]]:
    entries = []
    for read in read_toml(file)["rows"]:
        entry = dict(read)
        for key, value in read.items():
            if isinstance(value, list):
                entry[key] = tuple(value)
        entries.append(entry)
    return entries


@cache
def load_rows() -> list[PublishedRow]:
    """Read the rows of all sets from the committed warehouse."""
    with open_warehouse(ROOT / "warehouse") as connection:
        return load_published_rows(connection)


def load_published_rows(connection: duckdb.DuckDBPyConnection) -> list[PublishedRow]:
    """Read the rows of all sets.

    Raises WarehouseError where a selector matches other than the stated rows.
    """
    records = run_query(connection, SQL).to_pylist()
    rows = []
    for selector in load_selectors():
        matches = list(filter(selector.matches, records))
        _check_count(matches, selector.rows, "rows", str(selector))
        rows += [_parse_inference_row(selector, record, matches) for record in matches]
    return rows


def _check_count(matches: Sequence[Record], rows: int, noun: str, place: str) -> None:
    if len(matches) < rows:
        message = f"the warehouse holds {len(matches)} of the {rows} {noun} to validate against"
        raise TooFewRowsError(message, place=place)
    if len(matches) > rows:  # a wrong selector, which no record mends
        raise WarehouseError(
            f"selects {len(matches)} {noun}, and {rows} are stated: narrow the selector",
            place=place,
        )


def _parse_inference_row(
    selector: RowSelector, record: Record, siblings: Sequence[Record]
) -> PublishedRow:
    batch = record["batch_size"]
    figure = record["latency_ms" if selector.time == "latency" else "throughput"]
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
    if other is None:
        return row
    return replace(row, second_reading=replace(row, batch_size=other, seconds=other / figure))


def _suggest_batch(row: PublishedRow, latency: float, siblings: Sequence[Record]) -> int | None:
    """Return the batch with as many in flight as the median of the rows has, a multiple of the
    chips, or None.
    """
    depths = []
    for each in siblings:
        figures = (each["throughput"], each["latency_ms"], each["batch_size"])
        if all(figures):
            depths.append(count_batches_in_flight(*figures))
    if not depths:
        return None
    chips = count_replicas(row.protocol, load_target(row.selector.target))
    items = row.batch_size / row.seconds * latency
    return round(items / median(depths) / chips) * chips or None


def build_protocol(selector: RowSelector, configuration: Record) -> Protocol:
    """Build the host path of a row from its public configuration, or take the protocol that the
    selector names.

    Raises WarehouseError for a row that has neither.
    """
    target = load_target(selector.target)
    if selector.protocol is not None:
        return select_protocol(selector.protocol, target)
    if configuration["benchmark"] is None:
        raise WarehouseError(
            f"row {configuration['result_id']} has no public configuration", place=str(selector)
        )
    bits = 8 if EIGHT_BIT in (configuration["precision_flags"] or "") else 16
    tiles = IO_TILES.search(configuration["note"] or "")
    io_tiles = int(tiles[1]) if tiles else 0
    # The name of the protocol that is nearest to these settings.
    if not selector.prefetch:
        nearest = "lowest-latency"
    elif selector.threads:
        nearest = "tensorflow"
    elif io_tiles:
        nearest = "io-tiles"
    else:
        nearest = "pytorch"
    return Protocol(
        nearest,
        selector.input_bits or bits,
        selector.prefetch,
        selector.source,
        io_tiles,
        configuration["instances"],
        configuration["replicas"],
        selector.threads,
    )


MAX_CHIPS = 64  # of one pod; more are in a set of their own
LARGE = "train-large"
TRAINING_SETS = ("train", "train-host-fed", "train-weak", LARGE)
# What the configurations call recomputation; with checkpoints, `cut_after` begins a stage at each.
RECOMPUTE: dict[str | None, Recompute | None] = {
    None: None,
    "layer": "layer",
    "stage": "stage",
    "checkpoint": "stage",
}
TRAINING_SQL = """
    SELECT
        r.result_id, r.document_id, r.table_name, r.row_number, r.model_printed AS model, r.variant,
        r.sequence_length, r.platform, r.framework, r.batch_size, r.throughput, c.micro_batch_size,
        c.replicas, c.gradient_accumulation, c.instances, c.layers_per_ipu, c.recompute,
        c.available_memory_proportion, c.optimizer_state_offchip
    FROM results r
    JOIN detail.configurations c USING (result_id)
    WHERE r.task = 'training' AND r.origin = 'published' AND r.throughput IS NOT NULL
    ORDER BY r.table_name, r.row_number
"""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A published training row: `throughput` in items per second, and the setup behind it."""

    result_id: str
    set: str
    name: str
    network: Network
    target: str
    framework: str
    variant: str
    batch_size: int
    throughput: float
    setup: TrainingSetup

    @property
    def seconds(self) -> float:
        """Return the time that the figures give the configured step."""
        setup = self.setup
        return (
            setup.micro_batch * setup.replicas * setup.accumulation * setup.items / self.throughput
        )


def load_training_rows(connection: duckdb.DuckDBPyConnection) -> list[TrainingRow]:
    """Read all rows. Raises WarehouseError where an entry matches other than the stated rows."""
    document = read_toml("training_rows.toml")["document"]["id"]
    records = [
        each
        for each in run_query(connection, TRAINING_SQL).to_pylist()
        if each["document_id"] == document
    ]
    rows = []
    for entry in _read_entries("training_rows.toml"):
        matches = [record for record in records if _is_of_entry(entry, record)]
        place = f"{entry['model']}, {', '.join(entry.get('variants', entry['frameworks']))}"
        _check_count(matches, entry["rows"], "training rows", place)
        rows += [_parse_training_row(entry, record) for record in matches]
    return rows


def _is_of_entry(entry: Record, record: Record) -> bool:
    """Check whether a row is one of an entry: what an entry does not name, any row has."""
    if record["model"] != entry["model"]:
        return False
    names = ("variant", "platform", "framework")
    return all(record[name] in entry.get(f"{name}s", (record[name],)) for name in names)


def _parse_training_row(entry: Record, record: Record) -> TrainingRow:
    for key in ("micro_batch_size", "replicas", "gradient_accumulation"):
        if not record[key]:
            raise WarehouseError(f"row {record['result_id']} has no {key} in its configuration")
    layers = tuple(int(count) for count in (record["layers_per_ipu"] or "").split())
    proportions = tuple(
        float(share) for share in (record["available_memory_proportion"] or "").split()
    )
    setup = TrainingSetup(
        record["micro_batch_size"],
        record["replicas"],
        record["gradient_accumulation"],
        RECOMPUTE[record["recompute"]],
        proportions,
        bool(record["optimizer_state_offchip"]),
        record["instances"],
        layers=layers,
        **{each.name: entry[each.name] for each in fields(TrainingSetup) if each.name in entry},
    )
    return TrainingRow(
        record["result_id"],
        LARGE if setup.chips * setup.replicas > MAX_CHIPS else entry.get("set", TRAINING_SETS[0]),
        entry["network"],
        load_sized_network(entry["network"], record["sequence_length"] or SEQUENCE),
        "bow-2000" if record["platform"].startswith("Bow") else "m2000",
        record["framework"],
        record["variant"] or "",
        int(record["batch_size"]),
        record["throughput"],
        setup,
    )
