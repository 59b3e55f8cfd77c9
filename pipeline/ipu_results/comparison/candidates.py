"""What differs between a measurement and a row of the record, and what one side does not state."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import duckdb

from ipu_results.check.gate import PER_ITEM
from ipu_results.comparison.measurement import Measurement
from ipu_results.ground.files import load_schema_file
from ipu_results.ground.sql import run_query
from ipu_results.runner.reference_rows import BITS, EMULATED, SETUPS, ReferenceRow, is_same, pair_conditions
from ipu_results.schema import quote
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

NAMES = {"SDK": "SDK version", "compute precision": "precision"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition. `known` is false where either side does not state it: then it may be the same or not."""

    what: str
    ours: str | None
    theirs: str | None
    known: bool


def list_differences(ours: Measurement, row: Mapping[str, Any]) -> list[Difference]:
    """List the conditions that differ, those that both sides state first."""
    pairs = [pair for pair in _list_pairs(ours, row) if not is_same(pair[1], pair[2]) and pair[1:] != (None, None)]
    differences = [
        Difference(what, _to_text(own), _to_text(theirs), own is not None and theirs is not None)
        for what, own, theirs in pairs
    ]
    return sorted(differences, key=lambda difference: not difference.known)


def _list_pairs(ours: Measurement, row: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    point = {
        "platform": ours.platform,
        "chip_count": ours.chips,
        "model": ours.network,
        "compute_precision": _name_precision(ours.precision),
        "latency_kind": ours.latency_kind or ours.latency_basis,
        "framework": ours.framework,
        "sdk_version": ours.sdk_version,
        "power_w": ours.power_w,
        "power_scope": ours.power_scope,
        **ours.setup,
    }
    known = {
        field.name: row[field.name] for field in fields(ReferenceRow) if field.name in row and field.name != "errors"
    }
    known |= {
        "chip_count": row["chips"],
        "model": row["network"],
        "latency_kind": row["latency_kind"] or row["latency_basis"],
        "compute_precision": _name_precision(row["effective_precision"]),
    }
    reference = ReferenceRow(**known, errors=row["errors"], setup=SETUPS.get(row["table_name"], {}))
    yield "figures", _name_origin(ours.origin), _name_origin(row["origin"])
    yield "batch size", ours.batch_size, row["batch_size"]
    yield "variant", ours.variant, row["variant"]
    yield "conditions", ours.conditions, row["conditions"]
    yield "dataset", ours.dataset, row["dataset"]
    for what, own, theirs in pair_conditions(point, reference):
        yield NAMES.get(what, what), own or None, theirs or None


def _name_precision(precision: str | None) -> str | None:
    """Return a precision under the name that all its spellings share: 16.16 is FP16, as in the distance of a row."""
    name = BITS.get(precision or "", precision)
    return name and load_vocabulary().precision_names.get(normalise_name(name), name)


def _name_origin(origin: str) -> str:
    return EMULATED if origin == "emulated" else "measured"


def _to_text(value: Any) -> str | None:
    return None if value is None else str(value)


Row = Mapping[str, Any]

RUN = load_schema_file("comparison.toml")["run"]  # shared with the form of the page
MLPERF: str = RUN["mlperf"]
MAX_BATCH_FACTOR: float = RUN["max_batch_factor"]
SAME_LATENCY = frozenset(frozenset(pair) for pair in RUN["same_latency"])
REASONS: Mapping[str, str] = RUN["reasons"]
DISTANCE: Mapping[str, float] = RUN["distance"]
INPUT_SIZE = re.compile(r"\d{2,}x\d{2,}")  # of an image, in a variant
SQL = """
    SELECT r.*, p.family, e.comparable_rounds, e.minutes_low, e.minutes_high, e.attribution
    FROM results r
    LEFT JOIN platforms p USING (platform)
    LEFT JOIN mlperf_entries e USING (result_id)
    WHERE {where}
    ORDER BY r.document_id, r.table_name, r.row_number, r.result_id
"""


class Obstacle(str):
    """Why a row or a figure may not be compared, in words; `code` names the rule for programs.

    `has_next_step` says that the user can state what is missing.
    """

    code: str
    has_next_step: bool

    def __new__(cls, reason: str, code: str = "other", *, has_next_step: bool = False) -> Obstacle:
        obstacle = super().__new__(cls, reason)
        obstacle.code, obstacle.has_next_step = code, has_next_step
        return obstacle


def load_candidates(connection: duckdb.DuckDBPyConnection, network: str) -> list[dict[str, Any]]:
    """Load the rows of a network, each measurement once."""
    return load_rows(connection, f"r.network = {quote(network)} AND r.same_as IS NULL")


def load_rows(connection: duckdb.DuckDBPyConnection, where: str = "true") -> list[dict[str, Any]]:
    """Load rows of `results` with what a comparison needs of their machine and official entry."""
    rows: list[dict[str, Any]] = run_query(connection, SQL.format(where=where)).to_pylist()
    return rows


def find_obstacle(ours: Measurement, row: Row) -> Obstacle | None:
    """Return why a row may not be compared with the measurement at all; None where it may."""
    if ours.task != row["task"]:
        return Obstacle(REASONS["task"].format(theirs=row["task"], ours=ours.task), "different-tasks")
    if row["run_id"] is not None and row["run_id"] == ours.run_id:
        return Obstacle("the row is of the same run", "same-measurement")
    if obstacle := _find_mlperf_obstacle(ours, row):
        return obstacle
    if row["errors"]:
        return Obstacle(REASONS["error"], "flagged")
    if row["suspect"]:
        return Obstacle(REASONS["suspect"], "flagged")
    if ours.phase != row["phase"]:
        return _differ("phase", ours.phase, row["phase"], "different-workloads")
    if ours.sequence_length != row["sequence_length"]:
        return _differ("sequence length", ours.sequence_length, row["sequence_length"], "different-workloads")
    if (ours.packed or False) != (row["packed"] or False):
        return _differ("packed sequences", ours.packed, row["packed"], "different-workloads")
    if ours.sparsity != row["sparsity"]:
        dense = REASONS["dense"]
        return _differ("sparsity", ours.sparsity or dense, row["sparsity"] or dense, "different-workloads")
    size, their_size = find_input_size(ours.variant), find_input_size(row["variant"])
    if size and their_size and size != their_size:
        return _differ("input size", size, their_size, "different-workloads")
    return _find_batch_obstacle(ours, row)


def _find_mlperf_obstacle(ours: Measurement, row: Row) -> Obstacle | None:
    if MLPERF not in (ours.benchmark, row["benchmark"]):
        return None
    if ours.benchmark is None and ours.minutes is not None:
        return Obstacle(REASONS["minutes"], "mlperf-with-other", has_next_step=True)
    if ours.benchmark != row["benchmark"]:
        return Obstacle(REASONS["mlperf"], "mlperf-with-other")
    if ours.division is None or ours.mlperf_round is None:
        return Obstacle(
            "the division or the round of your MLPerf run is not stated (--division, --round)",
            "mlperf-divisions",
            has_next_step=True,
        )
    if ours.division != row["division"]:
        return _differ("MLPerf division", ours.division, row["division"], "mlperf-divisions")
    if not _is_comparable_round(ours.mlperf_round, row):
        return Obstacle("MLCommons lists the two rounds of the benchmark as not comparable", "mlperf-rounds")
    return None


def _is_comparable_round(mlperf_round: str, row: Row) -> bool:
    try:
        own = float(mlperf_round)
        first, _, last = str(row["comparable_rounds"] or row["mlperf_round"]).partition("-")
        return float(first) <= own <= float(last or first)
    except ValueError:
        return False


def _find_batch_obstacle(ours: Measurement, row: Row) -> Obstacle | None:
    """Return why the batch sizes of two inference rows are too far apart."""
    theirs = row["batch_size"]
    if ours.task != "inference" or (ours.batch_size is None and theirs is None):
        return None
    if ours.batch_size is None:
        return Obstacle(REASONS["batch_not_stated"], "different-batch-sizes")
    if theirs is not None and max(ours.batch_size / theirs, theirs / ours.batch_size) > MAX_BATCH_FACTOR:
        return Obstacle(REASONS["batch"].format(factor=f"{MAX_BATCH_FACTOR:g}"), "different-batch-sizes")
    return None


def find_figure_obstacle(figure: str, ours: Measurement, row: Row) -> Obstacle | None:
    """Return why one figure may not be compared although the rows may; None where it may."""
    if figure in ("throughput", "efficiency") and (ours.item is None or ours.item != row["item"]):
        return _differ("item", ours.item, row["item"], "different-items")
    if figure == "latency_ms":
        return _find_latency_obstacle(ours.stated_basis, get_latency_basis(row))
    if figure in ("efficiency", "power_w") and (ours.power_scope is None or ours.power_scope != row["power_scope"]):
        return _differ("power scope", ours.power_scope, row["power_scope"], "different-power-scopes")
    if figure == "minutes" and (ours.benchmark is None or ours.benchmark != row["benchmark"]):
        return _differ("benchmark", ours.benchmark, row["benchmark"], "mlperf-with-other")
    return None


def get_latency_basis(row: Row) -> str | None:
    """Return what the latency of a row times; None where its source does not say."""
    basis: str | None = row["latency_basis"] or row["latency_kind"]
    return basis


def _find_latency_obstacle(ours: str | None, theirs: str | None) -> Obstacle | None:
    if ours == theirs or frozenset({ours, theirs}) in SAME_LATENCY:
        return None
    if PER_ITEM in (ours, theirs) or (ours and theirs):
        return _differ("what the latency times", ours, theirs, "different-latencies")
    return None


def _differ(what: str, ours: Any, theirs: Any, code: str) -> Obstacle:
    stated = {"ours": ours, "theirs": theirs}
    words = {side: REASONS["not_stated"] if value is None else value for side, value in stated.items()}
    return Obstacle(REASONS["differ"].format(what=what, **words), code)


def name_precision(precision: str | None) -> str | None:
    """Return a precision in the form in which two are compared: 16.16 is fp16."""
    if precision is None:
        return None
    name = BITS.get(precision, precision)
    return normalise_name(load_vocabulary().precision_names.get(normalise_name(name), name))


def find_input_size(variant: str | None) -> str | None:
    """Return the size of an image that a variant names, such as 224x224; None where it names none."""
    match = INPUT_SIZE.search(variant or "")
    return match.group() if match else None


def has_same_chips(ours: Measurement, row: Row) -> bool:
    """Return whether as many chips took part, as far as both sides say."""
    return None in (ours.chips, row["chips"]) or ours.chips == row["chips"]


def compute_distance(ours: Measurement, row: Row, family: str | None) -> float:
    """Return how far a comparable row is, 0 for the same conditions; `family` is that of our machine."""
    return sum(
        (
            _compute_machine_distance(ours, row, family),
            _compute_batch_distance(ours.batch_size, row["batch_size"]),
            _weigh(
                name_precision(ours.precision),
                name_precision(row["effective_precision"]),
                DISTANCE["other_precision"],
                DISTANCE["unknown_precision"],
            ),
            _weigh(ours.framework, row["framework"], DISTANCE["other_framework"], DISTANCE["unknown_framework"]),
            DISTANCE["other_variant"] * (_normalise(ours.variant) != _normalise(row["variant"])),
            DISTANCE["other_sdk"] * (ours.sdk_version != row["sdk_version"]),
        )
    )


def _compute_machine_distance(ours: Measurement, row: Row, family: str | None) -> float:
    if ours.platform is None:
        return DISTANCE["unknown_machine"]
    if ours.platform == row["platform"] and has_same_chips(ours, row):
        return 0.0
    if ours.chip is not None and ours.chip == row["chip"]:
        return DISTANCE["other_chip_count"] + _log_ratio(ours.chips, row["chips"])
    return DISTANCE["other_chip"] if family is not None and family == row["family"] else DISTANCE["other_family"]


def _compute_batch_distance(ours: int | None, theirs: int | None) -> float:
    if ours is None or theirs is None:
        return 0.0 if ours == theirs else DISTANCE["unknown_batch"]
    return DISTANCE["per_doubled_batch"] * _log_ratio(ours, theirs)


def _log_ratio(ours: int | None, theirs: int | None) -> float:
    return abs(math.log2(ours / theirs)) if ours and theirs else 0.0


def _weigh(ours: str | None, theirs: str | None, differs: float, unknown: float) -> float:
    if ours is None or theirs is None:
        return unknown
    return 0.0 if ours == theirs else differs


def _normalise(text: str | None) -> str:
    return normalise_name(text or "")


def sort_by_distance(ours: Measurement, rows: Sequence[Row], family: str | None) -> list[tuple[float, Row]]:
    """Return comparable rows with their distance, nearest first; equals in the order of the sources, newest first."""
    pairs = [(compute_distance(ours, row, family), row) for row in rows]
    return sorted(
        pairs, key=lambda pair: (pair[0], -(pair[1]["published_on"].toordinal() if pair[1]["published_on"] else 0))
    )
