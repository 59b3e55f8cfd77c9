"""Predict published rows, summarise the errors, and fit the calibration again from its six rows.

Simpler models predict the same rows. Each is fitted on the C2 rows alone, as the emulator is.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median
from types import MappingProxyType

from ipu_results.emulator.codelets import compute_mac_rate
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import Convolution, Gemm, Program
from ipu_results.emulator.prediction import MS, Prediction, predict
from ipu_results.emulator.schedule import schedule, to_convolution_shape
from ipu_results.emulator.settings import compute_timing
from ipu_results.emulator.split import ConvolutionShape
from ipu_results.emulator.target import Calibration, Fit, Target, load_target
from ipu_results.errors import WarehouseError

from benchmarks.emulator.calibration import (
    NOTHING,
    Observation,
    calibrate,
    predict_seconds,
    solve_relative,
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
        return (
            None
            if self.row.latency is None
            else self.prediction.timing.latency / self.row.latency - 1
        )


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


def load_program(name: str, micro_batch: int) -> Program:
    return load_network(name)(micro_batch)


def predict_rows(
    rows: Sequence[PublishedRow],
    calibration: Calibration,
    targets: Mapping[str, Target] = MappingProxyType({}),
) -> list[ScoredRow]:
    """Predict each row by its selector. `targets` replaces machines by name."""
    return [_predict_row(row, calibration, targets) for row in rows]


def _predict_row(
    row: PublishedRow, calibration: Calibration, targets: Mapping[str, Target]
) -> ScoredRow:
    target = targets.get(row.selector.target) or load_target(row.selector.target)
    network = load_network(row.selector.network)
    (prediction,) = predict(network, target, [row.batch_size], row.protocol, calibration)
    other = row.second_reading
    return ScoredRow(
        row,
        prediction,
        None if other is None else _predict_row(other, calibration, targets),
    )


def observe(row: PublishedRow, target: Target) -> Observation:
    """Compute what the model knows of a calibration row without the two fitted numbers."""
    micro = row.batch_size // target.chips
    program = load_program(row.selector.network, micro)
    plan = schedule(program, target)
    # The numbers of the fit are left at zero here; they are its unknowns.
    fixed = compute_timing(
        plan.cycles / target["clock"], program, target, row.protocol, NOTHING
    ).period
    return Observation(fixed, plan.supersteps / target["clock"], micro, row.seconds)


def recalibrate(rows: Sequence[PublishedRow], target: Target | None = None) -> Calibration:
    """Fit the calibration to the six C2 rows among `rows`."""
    machine = target or load_target("c2")
    return calibrate([observe(row, machine) for row in rows if row.set == "calibration"], machine)


def compute_errors(observed: Sequence[Observation], fits: Iterable[Fit]) -> list[float]:
    """Return the error of each calibration row by its fit."""
    return [
        predict_seconds(row, fit) / row.seconds - 1 for row, fit in zip(observed, fits, strict=True)
    ]


def calibrations_differ(new: Calibration, old: Calibration) -> bool:
    """Check whether two calibrations have other constants, another number of rows or other fits."""
    news, olds = ((each.fit, *each.jackknife, *each.ends) for each in (new, old))
    if new.constants != old.constants or len(news) != len(olds):
        return True
    return not all(
        _is_close(getattr(a, name), getattr(b, name))
        for a, b in zip(news, olds, strict=True)
        for name in ("superstep", "per_batch", "per_image")
    )


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
    if missing := [each.row for each in scored if each.row.result_id not in known]:
        row = missing[0]
        raise WarehouseError(
            f"row {row.result_id} has no committed prediction", place=str(row.selector)
        )
    return [each for each in scored if not _is_close(each.seconds, known[each.row.result_id])]


Baseline = Callable[[PublishedRow], float]  # seconds of a batch
CycleModel = Callable[[ConvolutionShape, Target], float]
SCALED = (
    "C2 line, scaled by peak",
    "C2 line, scaled by clock",
    "C2 line, start by clock, slope by peak",
)
UTILISATION, ROOFLINE = "constant utilisation", "roofline"
PERFECT, GRID = "perfect-utilisation BSP", "broadcast-grid BSP"


def compute_peak(target: Target) -> float:
    """Return multiply-accumulates of one chip per second."""
    return compute_mac_rate(target) * target.tiles * target["clock"]


def fit_baselines(rows: Sequence[PublishedRow]) -> dict[str, Baseline]:
    """Fit each model on the C2 rows, by name."""
    # A line knows nothing of networks and chips: MACs, clocks and peak rates carry it over to the
    # others.
    line = _fit_line(rows)
    clock: _Rate = itemgetter("clock")
    scales = ((compute_peak, compute_peak), (clock, clock), (clock, compute_peak))
    models = {name: _scale_line(line, rows, *by) for name, by in zip(SCALED, scales, strict=True)}
    # The share of peak with the smallest relative squares over the time.
    ideal = [_use_peak(1.0)(row) / row.seconds for row in rows]
    models[UTILISATION] = _use_peak(sum(share * share for share in ideal) / sum(ideal))
    models[ROOFLINE] = _use_peak(1.0)
    models[PERFECT] = _fit_bsp(estimate_perfect, rows)
    models[GRID] = _fit_bsp(estimate_grid, rows)
    return models


def compute_line_errors(rows: Sequence[PublishedRow]) -> tuple[list[float], list[float]]:
    """Return the errors of a straight line on the C2 rows: fitted to all, and with the row itself
    excluded.
    """
    lines = [_fit_line([*rows[:at], *rows[at + 1 :]]) for at in range(len(rows))]
    sample, excluded = (
        [
            (start + slope * _count_images(row)) / row.seconds - 1
            for row, (start, slope) in zip(rows, each, strict=True)
        ]
        for each in ([_fit_line(rows)] * len(rows), lines)
    )
    return sample, excluded


def estimate_perfect(shape: ConvolutionShape, target: Target) -> float:
    """Return the cycles of a product that is spread evenly over all tiles at peak rate."""
    inputs = shape.batch * shape.groups * shape.ins * shape.in_rows * shape.in_columns
    moved = (
        (inputs + shape.macs / _count_field(shape))
        * target["element.bytes"]
        / target["exchange.bytes"]
    )
    return (shape.macs / compute_mac_rate(target) + moved) / target.tiles


def estimate_grid(shape: ConvolutionShape, target: Target) -> float:
    """Return the cycles on a grid of field × outs ≤ tiles with as many bytes of inputs as of
    weights on each tile.
    """
    field, outs = _count_field(shape), shape.groups * shape.outs
    kernel, tiles = shape.kernel_rows * shape.kernel_columns, target.tiles
    # Bytes are equal where down ÷ across = field · stride² ÷ (outs · kernel); down · across =
    # tiles.
    balanced = round(math.sqrt(tiles * field * shape.stride**2 / (outs * kernel)))
    down = max(1, min(balanced, field, tiles))
    across = min(outs, tiles // down)
    down = min(field, tiles // across)
    n, o = math.ceil(field / down), math.ceil(outs / across)
    inputs = n * shape.stride**2 * shape.ins * math.ceil(o / shape.outs)
    weights = o * shape.ins * kernel
    return (
        n * weights / compute_mac_rate(target)
        + (inputs + weights) * target["element.bytes"] / target["exchange.bytes"]
    )


def _count_field(shape: ConvolutionShape) -> int:
    return shape.batch * shape.rows * shape.columns


def _count_images(row: PublishedRow) -> int:
    """Count the images of one chip."""
    return row.batch_size // load_target(row.selector.target).chips


def _count_macs(row: PublishedRow) -> float:
    """Count the multiply-accumulates of one image."""
    return load_program(row.selector.network, 1).macs


def _fit_line(rows: Sequence[PublishedRow]) -> tuple[float, float]:
    """Return start and slope over the images of one chip, by least squares of the relative errors."""
    seconds = [row.seconds for row in rows]
    start, slope = solve_relative([[1.0, _count_images(row)] for row in rows], seconds, seconds)
    return start, slope


_Rate = Callable[[Target], float]  # what a time is inverse to


def _scale_line(
    line: tuple[float, float], rows: Sequence[PublishedRow], start_rate: _Rate, slope_rate: _Rate
) -> Baseline:
    old, macs = load_target(rows[0].selector.target), _count_macs(rows[0])

    def predict(row: PublishedRow) -> float:
        target = load_target(row.selector.target)
        slope = line[1] * (slope_rate(old) / slope_rate(target)) * _count_macs(row) / macs
        return line[0] * (start_rate(old) / start_rate(target)) + slope * _count_images(row)

    return predict


def _use_peak(share: float) -> Baseline:
    def predict(row: PublishedRow) -> float:
        return (
            _count_macs(row)
            * _count_images(row)
            / (share * compute_peak(load_target(row.selector.target)))
        )

    return predict


def _fit_bsp(cycles: CycleModel, rows: Sequence[PublishedRow]) -> Baseline:
    """Fit a bulk-synchronous model whose products cost `cycles`."""
    fit = fit_bsp(cycles, rows)

    def predict(row: PublishedRow) -> float:
        program, target = _load(row)
        work, steps = sum_work(program, target, cycles)
        device = (work + steps * fit.superstep) / target["clock"]
        return compute_timing(device, program, target, row.protocol, fit).period

    return predict


def fit_bsp(cycles: CycleModel, rows: Sequence[PublishedRow]) -> Fit:
    """Fit κ and h of a bulk-synchronous model on the C2 rows; its host has no time of a batch."""
    unknown, rest = [], []
    for row in rows:
        program, target = _load(row)
        work, steps = sum_work(program, target, cycles)
        fixed = compute_timing(
            work / target["clock"], program, target, row.protocol, NOTHING
        ).period
        unknown.append([steps / target["clock"], _count_images(row)])
        rest.append(row.seconds - fixed)
    superstep, per_image = solve_relative(unknown, rest, [row.seconds for row in rows])
    return Fit(superstep, 0.0, per_image)


def _load(row: PublishedRow) -> tuple[Program, Target]:
    return load_program(row.selector.network, _count_images(row)), load_target(row.selector.target)


def sum_work(program: Program, target: Target, cycles: CycleModel) -> tuple[float, int]:
    """Sum cycles and supersteps: products by the simple model, all else as the emulator has it."""
    work, steps = 0.0, 0
    for operator, step in zip(program.operators, schedule(program, target).steps, strict=True):
        if isinstance(operator, Convolution | Gemm):
            work, steps = work + cycles(to_convolution_shape(operator), target), steps + 1
        else:
            work, steps = work + step.cycles, steps + step.supersteps
    return work, steps
