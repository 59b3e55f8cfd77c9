"""Compare the committed calibration and predictions with those of the warehouse and the model.

Training predictions are scored next to those of inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ipu_results.emulator.target import Calibration, load_calibration, load_target
from ipu_results.emulator.training import TrainingPrediction, extend_target, predict_training

from benchmarks.emulator import scoring
from benchmarks.emulator.rows import (
    BLIND,
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


@cache
def load_validation() -> Validation:
    """Predict all rows with the committed calibration.

    A changed row then shows as a difference and not as another model.
    """
    rows = load_rows()
    known = load_calibration()
    return Validation(known, scoring.recalibrate(rows), scoring.predict_rows(rows, known))


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
