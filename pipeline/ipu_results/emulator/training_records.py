"""Convert a training prediction to a flat record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.training import TrainingPrediction, TrainingSetup

FIELDS = (
    *("batch_size", "micro_batch_size", "replicas", "accumulation", "chips", "stages", "throughput"),
    *("step_ms", "round_ms", "rounds", "bubble_share", "all_reduce_ms", "update_ms", "offload_ms", "host_bound"),
    *("memory_verdict", "memory_share", "target", "model", "calibration_id", "origin", "settings"),
)
TABLE_DIGITS = {
    **dict.fromkeys(("batch_size", "micro_batch_size", "chips", "stages", "throughput"), 0),
    **dict.fromkeys(("step_ms", "round_ms", "bubble_share", "all_reduce_ms", "update_ms", "offload_ms"), 2),
    "memory_verdict": 0,
}


def to_record(prediction: TrainingPrediction, setup: TrainingSetup, model: str) -> Mapping[str, Any]:
    """Return FIELDS in their order, unrounded: ms, items per second, shares."""
    return {
        "batch_size": prediction.batch_size,
        "micro_batch_size": setup.micro_batch,
        "replicas": setup.replicas,
        "accumulation": setup.accumulation,
        "chips": prediction.chips,
        "stages": prediction.stages,
        "throughput": prediction.throughput,
        "step_ms": prediction.step_s * MS,
        "round_ms": prediction.round_s * MS,
        "rounds": prediction.rounds,
        "bubble_share": prediction.bubble_share,
        "all_reduce_ms": prediction.all_reduce_s * MS,
        "update_ms": prediction.update_s * MS,
        "offload_ms": prediction.offload_s * MS,
        "host_bound": prediction.host_bound,
        "memory_verdict": prediction.memory_verdict,
        "memory_share": prediction.memory_share,
        "target": prediction.target,
        "model": model,
        "calibration_id": prediction.calibration_id,
        "origin": prediction.origin,
        "settings": prediction.settings,
    }


def format_footer(prediction: TrainingPrediction, model: str) -> str:
    """Return the line under the table."""
    footer = (
        f"emulated, not measured: one training step of {model} on {prediction.chips} chips of {prediction.target}, "
        f"calibration {prediction.calibration_id}; its error on published rows is larger than that of inference"
    )
    return footer if prediction.settings is None else f"{footer}; changed: {prediction.settings}"
