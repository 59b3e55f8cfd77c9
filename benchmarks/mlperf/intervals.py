"""Simulate submissions whose true score is known, by the official rule with its normalisation.

An interval should contain the true score, which is the mean of the official score over many
submissions of the same system. A test should call two systems with one true score different in 5 %
of cases, and others as often as it can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from ipu_results.kit.files import DATASET
from ipu_results.mlperf.interval import (
    COVERAGE,
    SESSION,
    Integers,
    Numbers,
    Runs,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.separation import compare_pairs

from benchmarks.mlperf import pairs
from benchmarks.mlperf.pairs import average_kept
from benchmarks.mlperf.shapes import Shape, load_shapes
from benchmarks.report import Options, Report, ReportTable, ReportTarget, SkipBenchmarkError, Value

SEED = 15
JUDGED = (5, 10, 40)  # runs of an entry for which single shapes have a target
ENDS = 5  # shapes at each end that the report names
# runs of an entry: (dropped at each end, comparable entries)
RUNS = {3: (1, 12), 5: (1, 8), 10: (1, 5), 40: (4, 3)}
# mean samples to convergence, over those of the reference
OFFSETS = (-0.03, -0.01, 0.0, 0.01, 0.03)
ENTRIES = 2400
QUICK_ENTRIES = 48
TRUTH = 60_000
QUICK_TRUTH = 2_000
EFFECT = 3.0  # of the pairs that differ, in standard errors of the difference
MIN_COVERAGE = 0.93
MAX_COVERAGE = 0.985
MAX_SIZE = 0.06


@dataclass(frozen=True, slots=True)
class Sample:
    """Simulated entries: their runs, official scores, and the score that each has on average."""

    runs: Runs
    scores: Numbers
    truth: float


def run(options: Options, warehouse: Path = DATASET) -> Report:
    """Simulate the entries of every shape of the record."""
    shapes = load_shapes(warehouse)
    if not shapes:
        raise SkipBenchmarkError(f"{warehouse} has no MLPerf runs")
    entries = QUICK_ENTRIES if options.quick else ENTRIES
    truth = QUICK_TRUTH if options.quick else TRUTH
    rows: list[dict[str, Value]] = []
    for n, offset, shape in product(RUNS, OFFSETS, shapes):
        rows.append(simulate(shape, n, offset, entries, truth))
    frame = pd.DataFrame(rows)
    judged = frame[frame["runs"].isin(JUDGED)]
    targets = []
    for n, coverage in judged.groupby("runs")["coverage"]:
        lowest = float(coverage.min())
        highest = float(coverage.max())
        name = f"coverage of a shape, {n} runs"
        targets.append(ReportTarget(f"lowest {name}", lowest, MIN_COVERAGE, at_least=True))
        targets.append(ReportTarget(f"highest {name}", highest, MAX_COVERAGE))
    sizes = frame.groupby(["runs", "offset"])["size"].mean()
    targets.append(ReportTarget("highest mean size of the test", float(sizes.max()), MAX_SIZE))
    pair_table, pair_targets = pairs.tabulate(quick=options.quick)
    return Report(
        "mlperf_intervals",
        f"{entries:,} simulated entries of each of {len(shapes)} shapes, nominal coverage"
        f" {COVERAGE:.0%}",
        [
            _tabulate_coverage(frame),
            _tabulate_outside(judged),
            _tabulate_ends(judged),
            _tabulate_tests(frame),
            pair_table,
        ],
        targets + pair_targets,
        [
            (
                "Shapes are pairs of samples to convergence and minutes per sample of runs of the"
                " record."
            ),
            (
                "The official rule: olympic mean x max(1, reference / own mean). The reference is"
                " such that the mean samples to convergence are that far from it."
            ),
            f"Each entry is of a session, whose speed has a standard deviation of {SESSION:.1%}.",
            (
                "Size: pairs of equal systems called different at 5 %. Power: the same of pairs"
                f" that are {EFFECT:g} standard errors of their difference apart."
            ),
        ],
    )


def simulate(shape: Shape, n: int, offset: float, entries: int, truth: int) -> dict[str, Value]:
    """Simulate comparable entries of `n` runs each from a fixed seed, and pairs of them."""
    rng = np.random.default_rng([SEED, n, round(1000 + 1000 * offset), *shape.name.encode()])
    sample = _draw(shape, n, offset, rng, entries, truth)
    members = RUNS[n][1]
    groups = [[number // members] for number in range(len(sample.scores))]
    # every other entry is slower
    apart = EFFECT * math.sqrt(2) * float(sample.scores.std()) / sample.truth
    first = np.arange(0, len(sample.scores) - 1, 2)
    minutes = sample.runs.minutes.copy()
    minutes[first + 1] *= 1 + apart
    return {
        "shape": shape.name,
        "runs": n,
        "offset": offset,
        **_judge_intervals(sample, groups, members),
        "size": _test(sample.runs, first, groups),
        "power": _test(replace(sample.runs, minutes=minutes), first, groups),
    }


def _judge_intervals(sample: Sample, groups: list[list[int]], members: int) -> dict[str, Value]:
    """Return how often the intervals contain the true score, and how wide they are over it."""
    intervals = estimate_intervals(sample.runs, groups)
    low = sample.scores * intervals.low
    high = sample.scores * intervals.high
    held = (low <= sample.truth) & (sample.truth <= high)
    # Comparable entries share a width, so groups of them are the independent draws.
    by_group = held.reshape(-1, members).mean(axis=1)
    return {
        "coverage": float(held.mean()),
        "error": float(by_group.std(ddof=1)) / math.sqrt(len(by_group)),
        "width": float(np.median(high - low)) / 2 / sample.truth,
    }


def _draw(
    shape: Shape, n: int, offset: float, rng: np.random.Generator, entries: int, truth: int
) -> Sample:
    drop, members = RUNS[n]
    counts, minutes = shape.draw(rng, (truth, n))
    reference = float(average_kept(counts, drop).mean()) / (1 + offset)
    true_scores = average_kept(minutes, drop) * np.maximum(
        1, reference / average_kept(counts, drop)
    )
    counts, minutes = shape.draw(rng, (math.ceil(entries / members) * members, n))
    minutes *= 1 + SESSION * rng.standard_normal((len(minutes), 1))
    ratios = reference / average_kept(counts, drop)
    scores = average_kept(minutes, drop) * np.maximum(1, ratios)
    dropped = [(drop, drop)] * len(counts)
    runs = make_runs(minutes.tolist(), counts.tolist(), dropped, ratios.tolist())
    return Sample(runs, scores, float(true_scores.mean()))


def _test(runs: Runs, first: Integers, groups: list[list[int]]) -> float:
    """Return the share of pairs of neighbouring rows that the test calls different."""
    is_alike = np.ones(len(first), dtype=bool)
    tested = compare_pairs(runs, first, first + 1, groups, is_alike)
    return float((tested.p < 1 - COVERAGE).mean())


def _tabulate_coverage(intervals: pd.DataFrame) -> ReportTable:
    rows: list[list[Value]] = []
    for (n, offset), cell in intervals.groupby(["runs", "offset"]):
        coverage = cell["coverage"]
        shares = [coverage.mean(), coverage.min(), coverage.max(), cell["width"].median()]
        rows.append([_name(n, offset), *_to_percent(shares)])
    columns = ["entries", "%", "lowest %", "highest %", "± %"]
    title = "Intervals that contain the true score: mean, lowest and highest shape, and half-width"
    return ReportTable(title, columns, rows)


def _name(n: object, offset: float) -> str:
    return f"{n} runs, {100 * offset:+.0f} %"


def _to_percent(shares: Iterable[float]) -> list[Value]:
    return [100 * float(share) for share in shares]


def _tabulate_outside(judged: pd.DataFrame) -> ReportTable:
    """Count the shapes within the bounds and outside of them."""
    rows: list[list[Value]] = []
    for (n, offset), shapes in judged.groupby(["runs", "offset"]):
        coverage = shapes["coverage"]
        below = int((coverage < MIN_COVERAGE).sum())
        above = int((coverage > MAX_COVERAGE).sum())
        rows.append([_name(n, offset), below, len(shapes) - below - above, above])
    bounds = f"{100 * MIN_COVERAGE:g} to {100 * MAX_COVERAGE:g} %"
    return ReportTable(
        f"Shapes by coverage, {bounds}", ["entries", "below", "within", "above"], rows
    )


def _tabulate_ends(judged: pd.DataFrame) -> ReportTable:
    """List the shapes with the lowest and the highest coverage."""
    rows: list[list[Value]] = []
    for n, shapes in judged.sort_values("coverage").groupby("runs"):
        for row in pd.concat([shapes.head(ENDS), shapes.tail(ENDS)]).itertuples():
            shares = (row.coverage, row.error, row.width)
            rows.append([f"{_name(n, row.offset)}, {row.shape}", *_to_percent(shares)])
    columns = ["entries", "%", "standard error, %", "± %"]
    return ReportTable("Lowest and highest coverage of a shape", columns, rows)


def _tabulate_tests(frame: pd.DataFrame) -> ReportTable:
    rows: list[list[Value]] = []
    for (n, offset), shapes in frame.groupby(["runs", "offset"]):
        shares = (shapes["size"].mean(), shapes["size"].max(), shapes["power"].mean())
        rows.append([_name(n, offset), *_to_percent(shares)])
    columns = ["pairs", "size %", "worst %", "power %"]
    title = "Tests of pairs: size, that of the worst shape, and power"
    return ReportTable(title, columns, rows)
