"""Predict the same rows by models of two and three numbers, and by the rows of the record itself.

The numbers are fitted on the 25 rows of C2 and of development alone. The host path of a row is that
of the emulator, so that the models differ in the time of the chip alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ipu_results.emulator.codelets import compute_mac_rate
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import Program
from ipu_results.emulator.prediction import predict, select_computing
from ipu_results.emulator.schedule import GradientProduct, GradientStep, derive_gradients
from ipu_results.emulator.settings import Protocol, Timing, compute_timing
from ipu_results.emulator.target import Target, load_calibration, load_target
from ipu_results.emulator.training import TrainingPrediction, TrainingSetup, sum_slowest

from benchmarks.emulator.calibration import solve_relative
from benchmarks.emulator.rows import DEVELOPMENT, PublishedRow, load_rows
from benchmarks.emulator.scores import Score

FITTED_SETS = ("calibration", *DEVELOPMENT)
ROUNDS = 3  # of the fit: which rows wait for their host depends on the numbers themselves
Read = Callable[[Timing], float]
"""Which time of a batch a row prints."""


@dataclass(frozen=True, slots=True)
class Work:
    """Seconds of multiply-accumulates at the peak rate, and of one cycle for each operator and each
    vector of results.
    """

    peak: float
    operators: float
    vectors: float

    def __add__(self, other: Work) -> Work:
        return Work(
            self.peak + other.peak,
            self.operators + other.operators,
            self.vectors + other.vectors,
        )

    def scale(self, factor: float) -> Work:
        return Work(self.peak * factor, self.operators * factor, self.vectors * factor)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What each of the parts of Work is multiplied by. Two numbers have no cost of vectors."""

    peak: float
    operators: float
    vectors: float = 0.0

    def estimate(self, work: Work) -> float:
        """Return the seconds of the chip."""
        vectors = self.vectors * work.vectors
        return self.peak * work.peak + self.operators * work.operators + vectors


def _count(macs: int, operators: int, elements: int, target: Target) -> Work:
    second = target.tiles * target["clock"]
    return Work(
        macs / (compute_mac_rate(target) * second),
        operators / target["clock"],
        elements / (target["vector"] * second),
    )


def count_work(program: Program, target: Target) -> Work:
    """Count the work of a forward pass."""
    elements = sum(operator.elements for operator in program.operators)
    return _count(program.macs, len(program.operators), elements, target)


def count_backward(program: Program, target: Target) -> Work:
    """Count the work of the gradients."""
    steps = [step for part in derive_gradients(program) for step in part]
    macs = sum(step.macs for step in steps if isinstance(step, GradientProduct))
    return _count(macs, len(steps), sum(map(_count_results, steps)), target)


def _count_results(step: GradientStep) -> int:
    if not isinstance(step, GradientProduct):
        return step.elements
    return step.shapes[0].elements


@cache
def load_numbers() -> tuple[Numbers, Numbers]:
    """Fit two and three numbers to the 25 rows, by least squares of the relative errors."""
    rows = [row for row in load_rows() if row.set in FITTED_SETS]
    return _fit(rows, 2), _fit(rows, 3)


def _fit(rows: Sequence[PublishedRow], count: int) -> Numbers:
    numbers = Numbers(1.0, 0.0)
    for _ in range(ROUNDS):
        unknown = []
        rest = []
        for row in rows:
            work, path = _read_row(row)
            device = numbers.estimate(work)
            unknown.append([work.peak, work.operators, work.vectors][:count])
            rest.append(row.seconds - (path(device).period - device))
        numbers = Numbers(*solve_relative(unknown, rest, [row.seconds for row in rows]))
    return numbers


def _read_row(row: PublishedRow) -> tuple[Work, Callable[[float], Timing]]:
    target = load_target(row.selector.target)
    micro = row.batch_size // (row.protocol.replicas or target.chips)
    program = load_network(row.selector.network)(micro)
    machine = select_computing(target, row.protocol)
    fit = load_calibration().fit

    def add_host(device: float) -> Timing:
        return compute_timing(device, program, target, row.protocol, fit)

    return count_work(program, machine), add_host


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds by the emulator and by the models of two and three numbers."""

    emulator: float
    two: float
    three: float


def predict_times(
    programs: Callable[[int], Program], target: Target, batch: int, path: Protocol, read: Read
) -> Times:
    """Predict one batch."""
    (prediction,) = predict(programs, target, [batch], path)
    program = programs(prediction.micro_batch_size)
    work = count_work(program, select_computing(target, path))
    fit = load_calibration().fit
    simple = [
        read(compute_timing(numbers.estimate(work), program, target, path, fit))
        for numbers in load_numbers()
    ]
    return Times(read(prediction.timing), *simple)


def predict_step_times(
    step: TrainingPrediction,
    programs: Callable[[int], Program],
    target: Target,
    setup: TrainingSetup,
) -> Times:
    """Return the times of a training step, whose other parts are those of the emulator.

    The chips of a replica share the work evenly, and a pipeline fills and drains.
    """
    program = programs(setup.micro_batch)
    forward = count_work(program, target)
    work = forward + count_backward(program, target)
    if setup.recompute:
        work += forward
    chips = len(step.loads)
    if step.host_bound:
        computed = setup.accumulation * step.round_s
    else:
        computed = step.rounds * sum_slowest(step.loads)
    rest = step.step_s - computed
    simple = []
    for numbers in load_numbers():
        rounds = step.rounds * numbers.estimate(work.scale(1 / chips))
        fed = computed if step.host_bound else 0.0
        simple.append(max(rounds, fed) + rest)
    return Times(step.step_s, *simple)


def interpolate(scores: Iterable[Score]) -> list[Score]:
    """Add to each row what a line through the two nearest rows of its series says."""
    rows = list(scores)
    members: dict[str, list[Score]] = {}
    for row in rows:
        members.setdefault(row.series, []).append(row)
    return [_add_line(row, members[row.series]) if row.series else row for row in rows]


def _add_line(row: Score, members: Sequence[Score]) -> Score:
    others = [each for each in members if each.size != row.size]
    others.sort(key=lambda each: abs(math.log(each.size / row.size)))
    near = _select_two(others)
    return replace(row, nearest=_draw_line(row, *near)) if near else row


def _select_two(others: Sequence[Score]) -> tuple[Score, Score] | None:
    """Return the two nearest rows that differ in size."""
    for second in others[1:]:
        if second.size != others[0].size:
            return others[0], second
    return None


def _draw_line(row: Score, first: Score, second: Score) -> float:
    slope = (second.measured - first.measured) / (second.size - first.size)
    return first.measured + slope * (row.size - first.size)
