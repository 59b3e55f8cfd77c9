"""Predictions as flat records: the fields of the contract first, then what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipu_results.emulator.prediction import MS, Prediction
from ipu_results.emulator.schedule import Step
from ipu_results.emulator.split import DIMENSIONS, Plan
from ipu_results.emulator.target import load_target

CONTRACT = (
    *("batch_size", "micro_batch_size", "throughput", "latency_ms", "latency_ms_low", "latency_ms_high"),
    *("device_ms", "protocol_ms", "power_w", "memory_verdict"),
)
FIELDS = (
    *CONTRACT,
    *("target", "model", "protocol", "calibration_id", "origin", "compute_share", "exchange_share", "superstep_share"),
)
LAYERS = (
    *("operator", "kind", "vertex", "split", "compute_cycles", "reduce_cycles", "exchange_cycles", "supersteps", "us"),
    *("batch_size", "micro_batch_size", "target", "model", "calibration_id", "origin"),
)
SHOWN = {
    "batch_size": 0,
    "micro_batch_size": 0,
    "throughput": 0,
    "latency_ms": 2,
    "latency_ms_low": 2,
    "latency_ms_high": 2,
    "device_ms": 2,
    "protocol_ms": 2,
    "compute_share": 2,
    "exchange_share": 2,
    "superstep_share": 2,
    "power_w": 0,
    "memory_verdict": 0,
}  # columns for the eye and their decimals
SHOWN_LAYERS = dict.fromkeys(LAYERS[:9], 0) | {"us": 2}

Record = Mapping[str, Any]


def record(one: Prediction, model: str) -> Record:
    """FIELDS in their order, unrounded. Times in ms, throughput in items per second, shares of the device's time."""
    return {name: model if name == "model" else getattr(one, name) for name in FIELDS}


def layer_records(one: Prediction, model: str, superstep: float) -> list[Record]:
    """LAYERS of every operator in the order in which they run; `us` is with `superstep` cycles for each superstep."""
    clock = load_target(one.target)["clock"]
    return [
        _layer(step, one, model, (step.cycles + step.supersteps * superstep) / clock) for step in one.schedule.steps
    ]


def _layer(step: Step, one: Prediction, model: str, seconds: float) -> Record:
    return {
        "operator": step.name,
        "kind": step.kind,
        "vertex": step.plan.vertex if step.plan else None,
        "split": _split(step.plan) if step.plan else None,
        "compute_cycles": step.compute,
        "reduce_cycles": step.reduce,
        "exchange_cycles": step.exchange,
        "supersteps": step.supersteps,
        "us": seconds * MS * MS,
        "batch_size": one.batch_size,
        "micro_batch_size": one.micro_batch_size,
        "target": one.target,
        "model": model,
        "calibration_id": one.calibration_id,
        "origin": one.origin,
    }


def _split(plan: Plan) -> str:
    """Parts of each dimension that is split, such as `rows 7 × outs 4`."""
    parts = [f"{name} {count}" for name, count in zip(DIMENSIONS, plan.split, strict=True) if count > 1]
    return " × ".join(parts) or "none"


def rounded(records: Sequence[Record], shown: Mapping[str, int]) -> list[list[Any]]:
    """The columns `shown` for the eye."""
    return [[_rounded(one[name], digits) for name, digits in shown.items()] for one in records]


def _rounded(value: Any, digits: int) -> Any:
    return round(value, digits or None) if isinstance(value, float) else "" if value is None else value


def remark(one: Prediction, model: str) -> str:
    """The last line under every table."""
    told = f"emulated, not measured: {model} on {one.target}, protocol {one.protocol}, calibration {one.calibration_id}"
    if one.target != "c2":
        return told
    return f"{told}; on c2 a straight line through the paper's rows does as well, and power is ± 10 % and not validated"
