"""Convert predictions to flat records: the fields of the contract first, then what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipu_results.emulator.prediction import MS, Prediction
from ipu_results.emulator.show import OperatorProfile
from ipu_results.emulator.split import DIMENSIONS, SplitPlan

FIELDS = (
    *("batch_size", "micro_batch_size", "throughput", "latency_ms", "latency_ms_low", "latency_ms_high"),
    *("device_ms", "protocol_ms", "power_w", "memory_verdict"),
    *("target", "model", "protocol", "calibration_id", "origin", "compute_share", "exchange_share", "superstep_share"),
    "settings",
)
LAYER_FIELDS = (
    *("operator", "kind", "vertex", "split", "compute_cycles", "reduce_cycles", "exchange_cycles", "supersteps", "us"),
    *("batch_size", "micro_batch_size", "target", "model", "calibration_id", "origin"),
    *("macs", "peak_share", "live_bytes", "tile_bytes", "energy_j"),
)
# Columns of the tables on a terminal, and their decimals.
TABLE_DIGITS = {
    **dict.fromkeys(("batch_size", "micro_batch_size", "throughput"), 0),
    **dict.fromkeys(("latency_ms", "latency_ms_low", "latency_ms_high", "device_ms", "protocol_ms"), 2),
    **dict.fromkeys(("compute_share", "exchange_share", "superstep_share"), 2),
    **dict.fromkeys(("power_w", "memory_verdict"), 0),
}
LAYER_TABLE_DIGITS = dict.fromkeys(LAYER_FIELDS[:9], 0) | {"us": 2, "peak_share": 2, "tile_bytes": 0}

Record = Mapping[str, Any]


def to_record(prediction: Prediction, model: str) -> Record:
    """Return FIELDS in their order, unrounded: ms, items per second, watts, shares of the time on the chip."""
    return {name: model if name == "model" else getattr(prediction, name) for name in FIELDS}


def to_layer_records(prediction: Prediction, model: str, profiles: Sequence[OperatorProfile]) -> list[Record]:
    """Return LAYER_FIELDS of every operator in the order in which they run: µs, bytes and joules."""
    return [_to_layer_record(profile, prediction, model) for profile in profiles]


def _to_layer_record(profile: OperatorProfile, prediction: Prediction, model: str) -> Record:
    step = profile.step
    return {
        "operator": step.name,
        "kind": step.kind,
        "vertex": step.plan.vertex if step.plan else None,
        "split": _format_split(step.plan) if step.plan else None,
        "compute_cycles": step.compute,
        "reduce_cycles": step.reduce,
        "exchange_cycles": step.exchange,
        "supersteps": step.supersteps,
        "us": profile.seconds * MS * MS,
        "macs": step.macs,
        **{name: getattr(profile, name) for name in ("peak_share", "live_bytes", "tile_bytes", "energy_j")},
        **{name: value for name, value in to_record(prediction, model).items() if name in LAYER_FIELDS},
    }


def _format_split(plan: SplitPlan) -> str:
    """Name the parts of each dimension that is split, such as `rows 7 × outs 4`."""
    parts = [f"{name} {count}" for name, count in zip(DIMENSIONS, plan.split, strict=True) if count > 1]
    return " × ".join(parts) or "none"


def round_records(records: Sequence[Record], digits: Mapping[str, int]) -> list[list[Any]]:
    """Return the columns of `digits`, rounded for a table."""
    return [[_round_value(record[name], places) for name, places in digits.items()] for record in records]


def _round_value(value: Any, places: int) -> Any:
    return round(value, places or None) if isinstance(value, float) else "" if value is None else value


def format_footer(prediction: Prediction, model: str) -> str:
    """Return the last line under every table."""
    footer = (
        f"emulated, not measured: {model} on {prediction.target}, protocol {prediction.protocol}, "
        f"calibration {prediction.calibration_id}"
    )
    if prediction.settings is not None:
        return f"{footer}; changed: {prediction.settings}"
    if prediction.target != "c2":
        return footer
    return f"{footer}; on c2 a straight line through the paper's rows does as well, and power is ± 10 %, not validated"
