"""Compare the committed calibration and predictions with those of the warehouse and the model.

Training predictions are scored next to those of inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.settings import Protocol
from ipu_results.emulator.target import Calibration, Target, load_calibration, load_target
from ipu_results.emulator.training import TrainingPrediction, extend_target, predict_training

from benchmarks.emulator import scoring
from benchmarks.emulator.rows import (
    BLIND,
    TRAINING_SETS,
    PublishedRow,
    TrainingRow,
    load_rows,
)


@dataclass(frozen=True)
class Validation:
    """Everything recomputed from the warehouse."""

    calibration: Calibration
    recomputed: Calibration
    scored: Sequence[scoring.ScoredRow]

    @property
    def calibration_differs(self) -> bool:
        return scoring.calibrations_differ(self.recomputed, self.calibration)

    @property
    def changed_predictions(self) -> list[scoring.ScoredRow]:
        return scoring.list_changed_predictions(
            [each for each in self.scored if each.row.set == BLIND]
        )

    def score(self, *sets: str) -> scoring.ErrorSummary:
        """Summarise the errors on these sets, as printed."""
        return scoring.summarise_errors(
            [each.error for each in self.scored if each.row.set in sets]
        )


@cache
def load_validation() -> Validation:
    return validate(load_rows())


def validate(rows: Sequence[PublishedRow], calibration: Calibration | None = None) -> Validation:
    """Predict all rows with the committed calibration.

    A changed row then shows as a difference and not as another model.
    """
    known = calibration or load_calibration()
    return Validation(known, scoring.recalibrate(rows), scoring.predict_rows(rows, known))


def to_json(validation: Validation, training: Sequence[TrainingScore] = ()) -> dict[str, Any]:
    """Return the JSON of `python -m benchmarks.emulator validate`: errors as fractions, times in ms."""
    return {
        "origin": "emulated",
        "calibration_id": validation.calibration.id,
        "calibration_agrees": not validation.calibration_differs,
        "predictions_departed": [each.row.result_id for each in validation.changed_predictions],
        "rows": [
            *(_row_to_json(each) for each in validation.scored),
            *(_training_row_to_json(each) for each in training),
        ],
    }


# What is stated of a doubtful row with the batch that its figures suggest.
READING = (
    *("batch_size", "published_ms", "emulated_ms", "error"),
    *("published_latency_ms", "emulated_latency_ms", "latency_error"),
)


def _row_to_json(scored: scoring.ScoredRow) -> dict[str, Any]:
    row = scored.row
    selector = row.selector
    prediction = scored.prediction
    second = None if scored.second is None else _row_to_json(scored.second)
    return {
        **_label(row, selector.network, selector.target, selector.framework, row.protocol.name),
        "published_ms": row.seconds * MS,
        "emulated_ms": scored.seconds * MS,
        "emulated_device_ms": prediction.device_ms,
        "emulated_protocol_ms": prediction.protocol_ms,
        "error": scored.error,
        "published_latency_ms": None if row.latency is None else row.latency * MS,
        "emulated_latency_ms": prediction.latency_ms,
        "latency_error": scored.latency_error,
        "second_reading": second and {name: second[name] for name in READING},
        "settings": _settings_to_json(row.protocol, load_target(selector.target)),
    }


def _label(
    row: PublishedRow | TrainingRow, network: str, target: str, framework: str, protocol: str
) -> dict[str, Any]:
    return {
        "result_id": row.result_id,
        "set": row.set,
        "network": network,
        "target": target,
        "framework": framework,
        "variant": row.variant or None,
        "protocol": protocol,
        "batch_size": row.batch_size,
    }


def _settings_to_json(protocol: Protocol, target: Target) -> dict[str, Any]:
    """Return the host path of a row, as its public configuration states it."""
    names = ("input_bits", "instances", "replicas", "io_tiles", "prefetch", "in_flight")
    usual = {"instances": int(target["host.processes"]), "replicas": target.chips}
    return {
        name: getattr(protocol, name) or usual.get(name, getattr(protocol, name)) for name in names
    }


@dataclass(frozen=True, slots=True)
class TrainingScore:
    """A published training row and its prediction."""

    row: TrainingRow
    prediction: TrainingPrediction

    @property
    def error(self) -> float:
        """Return the signed share of the published time of a step."""
        return self.prediction.step_s / self.row.seconds - 1


def score_training(rows: Sequence[TrainingRow]) -> list[TrainingScore]:
    """Predict each row."""
    scores = []
    for row in rows:
        target = extend_target(load_target(row.target))
        scores.append(TrainingScore(row, predict_training(row.network, target, row.setup)))
    return scores


def iterate_sets(scores: Sequence[TrainingScore]) -> list[tuple[str, list[TrainingScore]]]:
    """Return the scores by set, in the order of TRAINING_SETS."""
    grouped = [(name, [each for each in scores if each.row.set == name]) for name in TRAINING_SETS]
    return [(name, members) for name, members in grouped if members]


def _training_row_to_json(score: TrainingScore) -> dict[str, Any]:
    row = score.row
    prediction = score.prediction
    setup = row.setup
    return {
        **_label(row, row.name, row.target, row.framework, "training"),
        "published_ms": row.seconds * MS,
        "emulated_ms": prediction.step_s * MS,
        "published_throughput": row.throughput,
        "emulated_throughput": prediction.throughput,
        "error": score.error,
        **dict.fromkeys(
            ("published_latency_ms", "emulated_latency_ms", "latency_error", "second_reading")
        ),
        "settings": {
            "chips": prediction.chips,
            "stages": prediction.stages,
            "micro_batch": setup.micro_batch,
            "replicas": setup.replicas,
            "accumulation": setup.accumulation,
            "recompute": setup.recompute,
            "available_memory_proportion": list(setup.proportions),
            "optimizer_state_offchip": setup.offchip,
        },
        "parts_ms": {
            "round": prediction.round_s * MS,
            "all_reduce": prediction.all_reduce_s * MS,
            "update": prediction.update_s * MS,
            "offload": prediction.offload_s * MS,
        },
        "bubble_share": prediction.bubble_share,
        "memory_verdict": prediction.memory_verdict,
    }
