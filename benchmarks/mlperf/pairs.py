"""Simulate pairs of systems that converge differently, and submitters who choose the runs that they
hand in.

Runs are normal: samples to convergence at a distance from the reference and with a spread, and
speed that differs between runs and between sessions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from ipu_results.mlperf.interval import (
    COVERAGE,
    SESSION,
    Integers,
    Numbers,
    Runs,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.separation import PERMUTATION, compare_pairs

from benchmarks.report import ReportTable, ReportTarget, Value

SEED = 48
# runs of an entry: (dropped at each end, comparable entries)
RUNS = {5: (1, 8), 10: (1, 5), 40: (4, 3)}
DISTANCES = ((-5, -5), (-5, 0), (-5, 5), (0, 0), (0, 5), (5, 5), (-5, 3), (-3, -1), (-2, 2))
SPREADS = (2, 8)
SPEED_SPREAD = 0.005  # of the runs of a session
PAIRS = 12_000
QUICK_PAIRS = 120
TRUTH = 200_000
QUICK_TRUTH = 4_000
EFFECT = 3.0  # of the pairs that differ, in standard errors of the difference
MIN_SIZE = 0.03
MAX_SIZE = 0.065
# handed in, of runs that were made
CHOICES = ((10, 10), (10, 20), (10, 30), (5, 15))
CHOICE_DISTANCES = (-5, 0, 5)
CHOICE_SPREAD = 5


@dataclass(frozen=True, slots=True)
class System:
    """How a system converges: its mean samples over the reference's, and the spread of a run, both
    in %.
    """

    distance: int
    spread: int

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> tuple[Numbers, Numbers]:
        """Draw samples over the reference's, and minutes: a row is a session."""
        counts = (1 + self.distance / 100) * (1 + self.spread / 100 * rng.standard_normal(size))
        speed = 1 + SPEED_SPREAD * rng.standard_normal(size)
        sessions = 1 + SESSION * rng.standard_normal((size[0], 1))
        return counts, counts * speed * sessions


def simulate_pairs(pairs: int, truth: int) -> pd.DataFrame:
    """Simulate each two systems with one true score, and with two."""
    rows = []
    for n, (near, far), (spread, other) in product(RUNS, DISTANCES, product(SPREADS, SPREADS)):
        # two systems at one distance are the same pair in either order
        if near != far or spread <= other:
            left = System(near, spread)
            right = System(far, other)
            rows.append(_simulate_pair(n, left, right, pairs, truth))
    return pd.DataFrame(rows)


def _simulate_pair(n: int, left: System, right: System, pairs: int, truth: int) -> dict[str, Value]:
    # seeds are not negative, and distances are
    seed = [SEED, n, 100 + left.distance, 100 + left.spread]
    rng = np.random.default_rng([*seed, 100 + right.distance, 100 + right.spread])
    drop, members = RUNS[n]
    entries = math.ceil(pairs / members) * members
    # entries whose true score is 1, those of `left` first
    drawn = []
    for system in (left, right):
        true_score = score(*system.draw(rng, (truth, n)), drop).mean()
        counts, minutes = system.draw(rng, (entries, n))
        drawn.append((counts, minutes / true_score))
    counts = np.concatenate([drawn[0][0], drawn[1][0]])
    minutes = np.concatenate([drawn[0][1], drawn[1][1]])
    scores = score(counts, minutes, drop)
    groups = [[row // members] for row in range(2 * entries)]
    first = np.arange(entries)
    apart = EFFECT * math.hypot(scores[:entries].std(), scores[entries:].std())
    shares = []
    for factor in (1.0, 1 + apart):
        factors = np.repeat([1.0, factor], entries)[:, None]
        runs = _make(counts, minutes * factors, drop)
        is_alike = np.full(entries, left == right)
        tested = compare_pairs(runs, first, first + entries, groups, is_alike)
        shares.append(float((tested.p < 1 - COVERAGE).mean()))
    return {
        "runs": n,
        "distances": f"{left.distance:+d}, {right.distance:+d}",
        "spreads": f"{left.spread}, {right.spread}",
        "size": shares[0],
        "power": shares[1],
        "permuted": tested.tests.count(PERMUTATION) / entries,
    }


def score(counts: Numbers, minutes: Numbers, drop: int) -> Numbers:
    """Score runs along the last axis by the official rule, with a reference of one."""
    kept = slice(drop, counts.shape[-1] - drop)
    needed = np.sort(counts, axis=-1)[..., kept].mean(axis=-1)
    taken = np.sort(minutes, axis=-1)[..., kept].mean(axis=-1)
    scores: Numbers = taken * np.maximum(1, 1 / needed)
    return scores


def _make(counts: Numbers, minutes: Numbers, drop: int) -> Runs:
    entries = len(counts)
    dropped = [(drop, drop)] * entries
    runs = make_runs(minutes.tolist(), counts.tolist(), dropped, [0.0] * entries)
    return replace(runs, reference=np.ones(len(counts)))


def simulate_choices(entries: int, truth: int) -> Iterable[list[Value]]:
    """Simulate submitters who hand in the window of runs whose score is the median of all
    windows.
    """
    for handed_in, made in CHOICES:
        drop, members = RUNS[handed_in]
        row: list[Value] = [f"{handed_in} of {made}"]
        for distance in CHOICE_DISTANCES:
            system = System(distance, CHOICE_SPREAD)
            rng = np.random.default_rng([SEED, handed_in, made, 100 + distance])
            chosen = _choose_windows(*system.draw(rng, (truth, made)), handed_in)
            true_score = float(score(*chosen, drop).mean())
            size = math.ceil(entries / members / 2) * members * 2
            chosen = _choose_windows(*system.draw(rng, (size, made)), handed_in)
            coverage, rejected = _judge(*chosen, drop, members, true_score)
            row += [100 * coverage, 100 * rejected]
        yield row


def _choose_windows(counts: Numbers, minutes: Numbers, n: int) -> tuple[Numbers, Numbers]:
    """Return of each row the n consecutive runs whose score is the median, the lower of two."""
    count_windows = np.lib.stride_tricks.sliding_window_view(counts, n, axis=1)
    minute_windows = np.lib.stride_tricks.sliding_window_view(minutes, n, axis=1)
    scores = score(count_windows, minute_windows, RUNS[n][0])
    middle = np.argsort(scores, axis=1)[:, (scores.shape[1] - 1) // 2]
    rows = np.arange(len(counts))
    return count_windows[rows, middle], minute_windows[rows, middle]


def _judge(
    counts: Numbers, minutes: Numbers, drop: int, members: int, truth: float
) -> tuple[float, float]:
    """Return the coverage of the intervals, and the share of pairs that the test separates."""
    runs = _make(counts, minutes, drop)
    groups = [[row // members] for row in range(len(counts))]
    intervals = estimate_intervals(runs, groups)
    scores = score(counts, minutes, drop)
    held = (scores * intervals.low <= truth) & (truth <= scores * intervals.high)
    first: Integers = np.arange(len(counts) // 2)
    second = first + len(first)
    tested = compare_pairs(runs, first, second, groups, np.ones(len(first), dtype=bool))
    return float(held.mean()), float((tested.p < 1 - COVERAGE).mean())


def tabulate(*, quick: bool) -> tuple[list[ReportTable], list[ReportTarget]]:
    """Return the tables of unlike pairs and of chosen runs, and the targets of the former."""
    pairs = QUICK_PAIRS if quick else PAIRS
    truth = QUICK_TRUTH if quick else TRUTH
    frame = simulate_pairs(pairs, truth)
    targets = [
        ReportTarget("lowest size of pairs", float(frame["size"].min()), MIN_SIZE, at_least=True),
        ReportTarget("highest size of pairs", float(frame["size"].max()), MAX_SIZE),
    ]
    choices = list(simulate_choices(pairs, truth))
    columns = ["runs"]
    for distance in CHOICE_DISTANCES:
        columns += [f"{distance:+d} %: coverage %", f"{distance:+d} %: size %"]
    chosen = ReportTable(
        f"Chosen runs, with a spread of {CHOICE_SPREAD} %: the window of runs whose score is the"
        " median of all windows, by distance from the reference",
        columns,
        choices,
    )
    return [_tabulate_pairs(frame), chosen], targets


def _tabulate_pairs(frame: pd.DataFrame) -> ReportTable:
    columns = ["distances", "spreads"]
    for n in RUNS:
        columns += [f"{n} runs: size %", f"{n} runs: power %", f"{n} runs: permuted %"]
    rows: list[Sequence[Value]] = []
    for (distances, spreads), cell in frame.groupby(["distances", "spreads"], sort=False):
        row: list[Value] = [distances, spreads]
        for figures in cell.itertuples():
            row += [100 * figures.size, 100 * figures.power, 100 * figures.permuted]
        rows.append(row)
    return ReportTable(
        "Pairs by distance from the reference in % and spread of a run in %: size, power, and"
        " share by permutation",
        columns,
        rows,
    )
