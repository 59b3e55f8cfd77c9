"""Simulate submissions whose true score is known, and count how often each interval contains it.

The true score is the mean of the official score over many submissions of the same system.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import numpy as np
from ipu_results.ground.files import DATASET
from ipu_results.mlperf.interval import (
    COVERAGE,
    GroupSpread,
    ScoreInterval,
    Spread,
    are_separable,
    compute_two_sided_p,
    estimate_interval,
    pool_convergence,
)
from ipu_results.mlperf.score import olympic_mean

from benchmarks.mlperf.shapes import FAMILIES, Numbers, Shape, load_shapes
from benchmarks.report import Options, Report, ReportTable, ReportTarget, SkipBenchmarkError, Value

SEED = 15
RUNS = {3: (1, 12), 5: (1, 8), 10: (1, 5), 40: (4, 3)}  # runs of an entry: (dropped at each end, comparable entries)
ENTRIES, QUICK_ENTRIES = 2000, 40
TRUTH, QUICK_TRUTH = 40_000, 2_000
RESAMPLES = 400
MIN_COVERAGE, MAX_FALSE = 0.93, 0.05
OURS, STUDENT, BOOTSTRAP = METHODS = ("here", "Student's t", "percentile bootstrap")


@dataclass(slots=True)
class Outcome:
    """What became of the simulated entries of one shape: by method, whether it held, and half-widths over the score.

    `false` is, for pairs of entries with the same true score, whether each method called them different.
    """

    shape: Shape
    held: dict[str, list[bool]] = field(default_factory=lambda: {name: [] for name in METHODS})
    widths: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in METHODS})
    false: dict[str, list[bool]] = field(default_factory=lambda: {name: [] for name in METHODS})

    def coverage(self, method: str) -> float:
        return fmean(self.held[method])


def run(options: Options, warehouse: Path = DATASET) -> Report:
    """Simulate the entries of every shape of the record."""
    shapes = load_shapes(warehouse)
    if not shapes:
        raise SkipBenchmarkError(f"{warehouse} has no MLPerf runs")
    entries, truth = (QUICK_ENTRIES, QUICK_TRUTH) if options.quick else (ENTRIES, TRUTH)
    outcomes = {n: [simulate(shape, n, entries, truth) for shape in shapes] for n in RUNS}
    by_family = {
        (n, family): [outcome for outcome in outcomes[n] if outcome.shape.family == family]
        for n in RUNS
        for family in FAMILIES
    }
    known = {key: group for key, group in by_family.items() if group}
    targets = [
        ReportTarget(f"coverage, {n} runs, {family}", _mean_coverage(group, OURS), MIN_COVERAGE, at_least=True)
        for (n, family), group in known.items()
    ]
    wrong = max(fmean(fmean(outcome.false[OURS]) for outcome in group) for group in known.values())
    targets.append(ReportTarget("equal pairs called different, worst row of the second table", wrong, MAX_FALSE))
    return Report(
        "mlperf_intervals",
        f"{entries:,} simulated entries of each of {len(shapes)} shapes, nominal coverage {COVERAGE:.0%}",
        [_tabulate_coverage(known), _tabulate_false(known), _tabulate_shapes(outcomes)],
        targets,
        [
            "Shapes are from the record: deviations of runs from their entry's mean, and the evaluations at which the "
            "runs of one round and batch size converged.",
            "Student's t and the bootstrap see the entry's own runs alone. Pairs: Welch's test for the former, the "
            "bootstrap of the difference for the latter.",
            "The last table has each shape at the number of runs that its entries have.",
        ],
    )


def simulate(shape: Shape, n: int, entries: int, truth: int) -> Outcome:
    """Simulate groups of comparable entries of `n` runs each, from a fixed seed."""
    drop, members = RUNS[n]
    rng = np.random.default_rng([SEED, n, *shape.name.encode()])
    expected = float(_score(shape.draw(rng, (truth, n))[1], drop).mean())
    outcome = Outcome(shape)
    for _ in range(math.ceil(entries / members)):
        counts, minutes = shape.draw(rng, (members, n))
        group = pool_convergence(counts.tolist())
        scored = [_estimate(row.tolist(), drop, group) for row in minutes]
        resampled = _score(minutes[:, rng.integers(0, n, (RESAMPLES, n))], drop)
        for (ours, student), scores in zip(scored, resampled, strict=True):
            low, high = np.percentile(scores, [2.5, 97.5])
            for name, interval in ((OURS, ours), (STUDENT, student)):
                half = interval.half_width()
                _add(outcome, name, abs(interval.minutes - expected) <= half, half / expected)
            _add(outcome, BOOTSTRAP, bool(low <= expected <= high), float(high - low) / 2 / expected)
        order = sorted(range(2), key=lambda index: scored[index][0].minutes)
        faster, slower = (scored[index] for index in order)
        outcome.false[OURS].append(are_separable(faster[0], slower[0]))
        outcome.false[STUDENT].append(_test_by_welch(faster[1], slower[1]) < 1 - COVERAGE)
        low, high = np.percentile(resampled[1] - resampled[0], [2.5, 97.5])
        outcome.false[BOOTSTRAP].append(bool(low > 0 or high < 0))
    return outcome


def _estimate(minutes: list[float], drop: int, group: GroupSpread | None) -> tuple[ScoreInterval, ScoreInterval]:
    score = olympic_mean(minutes, 0, drop)
    assert score is not None
    ours = estimate_interval(score, minutes, 1.0, group)
    student = estimate_interval(score, minutes, 1.0, None)
    assert ours is not None
    assert student is not None
    return ours, student


def _add(outcome: Outcome, method: str, held: bool, width: float) -> None:
    outcome.held[method].append(held)
    outcome.widths[method].append(width)


def _score(minutes: Numbers, drop: int) -> Numbers:
    """Compute the official score along the last axis."""
    kept = np.sort(minutes, axis=-1)[..., drop : minutes.shape[-1] - drop]
    scores: Numbers = kept.mean(axis=-1)
    return scores


def _test_by_welch(first: ScoreInterval, second: ScoreInterval) -> float:
    """Return the p-value of Welch's test of two scores, from the entries' own runs."""
    spreads: list[Spread] = [first.own, second.own]
    squares = [spread.standard_error**2 for spread in spreads]
    if not sum(squares):
        return float(first.minutes == second.minutes)
    df = sum(squares) ** 2 / sum(square**2 / spread.df for square, spread in zip(squares, spreads, strict=True))
    return compute_two_sided_p((first.minutes - second.minutes) / math.sqrt(sum(squares)), df)


def _mean_coverage(group: Sequence[Outcome], method: str) -> float:
    return fmean(outcome.coverage(method) for outcome in group)


def _tabulate_coverage(groups: Mapping[tuple[int, str], Sequence[Outcome]]) -> ReportTable:
    rows: list[list[Value]] = []
    for (n, family), group in groups.items():
        row: list[Value] = [f"{n} runs, {family}", len(group)]
        for method in METHODS:
            worst = min(outcome.coverage(method) for outcome in group)
            width = median(width for outcome in group for width in outcome.widths[method])
            row += [100 * _mean_coverage(group, method), 100 * worst, 100 * width]
        rows.append(row)
    columns = ["entries", "shapes", *(f"{method}: {part}" for method in METHODS for part in ("%", "worst %", "± %"))]
    return ReportTable("Intervals that contain the true score, mean and worst shape, and half-width", columns, rows)


def _tabulate_false(groups: Mapping[tuple[int, str], Sequence[Outcome]]) -> ReportTable:
    names = (OURS, "Welch", "bootstrap")
    rows: list[list[Value]] = []
    for (n, family), group in groups.items():
        shares = ([100 * fmean(outcome.false[method]) for outcome in group] for method in METHODS)
        rows.append([f"{n} runs, {family}", *(value for share in shares for value in (fmean(share), max(share)))])
    columns = ["pairs of equal entries", *(f"{name}: {part}" for name in names for part in ("%", "worst %"))]
    return ReportTable("Pairs with the same true score that a method calls different", columns, rows)


def _tabulate_shapes(outcomes: Mapping[int, Sequence[Outcome]]) -> ReportTable:
    rows: list[list[Value]] = [
        [f"{n} runs, {outcome.shape.name}", *(100 * outcome.coverage(method) for method in METHODS)]
        for n, group in outcomes.items()
        for outcome in group
        if _find_closest(outcome.shape.runs) == n
    ]
    return ReportTable("Coverage of each shape, in %", ["shape", *METHODS], rows)


def _find_closest(runs: int) -> int:
    return min(RUNS, key=lambda n: abs(math.log(n / runs)))
