"""Predict published rows, summarise the errors, and fit the calibration again from its six rows."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import MS, Prediction, predict
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.settings import compute_timing
from ipu_results.emulator.target import Calibration, Target, load_target
from ipu_results.errors import WarehouseError

from benchmarks.emulator.calibration import (
    NOTHING,
    Observation,
    calibrate,
)
from benchmarks.emulator.rows import DATA, PublishedRow

PREDICTIONS_FILE = "predictions.csv"
TOLERANCE = 1e-6  # relative: sums differ this much between machines


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A published row and its prediction.

    Errors are signed shares: of the published time per batch, or latency.

    `second` is the same row with the batch that its figures suggest, where a rule doubts the
    printed one.
    """

    row: PublishedRow
    prediction: Prediction
    second: ScoredRow | None = None

    @property
    def seconds(self) -> float:
        return self.prediction.timing.period

    @property
    def error(self) -> float:
        return self.seconds / self.row.seconds - 1

    @property
    def latency_error(self) -> float | None:
        """Return None for a row without a latency."""
        if self.row.latency is None:
            return None
        return self.prediction.timing.latency / self.row.latency - 1


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Number of rows, and median, mean and maximum of the absolute errors, as shares."""

    rows: int
    median: float
    mean: float
    max: float


def summarise_errors(errors: Sequence[float]) -> ErrorSummary:
    sizes = [abs(error) for error in errors]
    return ErrorSummary(len(sizes), median(sizes), sum(sizes) / len(sizes), max(sizes))


def predict_rows(rows: Sequence[PublishedRow], calibration: Calibration) -> list[ScoredRow]:
    """Predict each row by its selector."""
    return [_predict_row(row, calibration) for row in rows]


def _predict_row(row: PublishedRow, calibration: Calibration) -> ScoredRow:
    target = load_target(row.selector.target)
    network = load_network(row.selector.network)
    (prediction,) = predict(network, target, [row.batch_size], row.protocol, calibration)
    second = None
    if row.second_reading:
        second = _predict_row(row.second_reading, calibration)
    return ScoredRow(row, prediction, second)


def observe(row: PublishedRow, target: Target) -> Observation:
    """Compute what the model knows of a calibration row without the two fitted numbers."""
    micro = row.batch_size // target.chips
    program = load_network(row.selector.network)(micro)
    plan = schedule(program, target)
    clock = target["clock"]
    # The numbers of the fit are left at zero here; they are its unknowns.
    timing = compute_timing(plan.cycles / clock, program, target, row.protocol, NOTHING)
    return Observation(timing.period, plan.supersteps / clock, micro, row.seconds)


def recalibrate(rows: Sequence[PublishedRow]) -> Calibration:
    """Fit the calibration to the six C2 rows among `rows`."""
    target = load_target("c2")
    return calibrate([observe(row, target) for row in rows if row.set == "calibration"], target)


def calibrations_differ(new: Calibration, old: Calibration) -> bool:
    """Check whether two calibrations have other constants, another number of rows or other fits."""
    news = list_numbers(new)
    olds = list_numbers(old)
    if new.constants != old.constants or len(news) != len(olds):
        return True
    return not all(map(_is_close, news, olds))


def list_numbers(calibration: Calibration) -> list[float]:
    """List the numbers of all fits of a calibration."""
    numbers: list[float] = []
    for fit in (calibration.fit, *calibration.jackknife, *calibration.ends):
        numbers += [fit.superstep, fit.per_batch, fit.per_image]
    return numbers


def _is_close(new: float, old: float) -> bool:
    return abs(new - old) <= TOLERANCE * abs(old)


def load_predictions() -> Mapping[str, float]:
    """Load the committed seconds per batch of the blind set by row, as predicted before they were
    scored.
    """
    records = csv.DictReader((DATA / PREDICTIONS_FILE).read_text(encoding="utf-8").splitlines())
    return {record["result_id"]: float(record["time_ms"]) / MS for record in records}


def list_changed_predictions(scored: Sequence[ScoredRow]) -> list[ScoredRow]:
    """Return the rows whose prediction differs from the committed one."""
    known = load_predictions()
    changed = []
    for each in scored:
        row = each.row
        if row.result_id not in known:
            message = f"row {row.result_id} has no committed prediction"
            raise WarehouseError(message, place=str(row.selector))
        if not _is_close(each.seconds, known[row.result_id]):
            changed.append(each)
    return changed
