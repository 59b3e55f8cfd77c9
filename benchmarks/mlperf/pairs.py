"""Simulate pairs of systems that converge differently.

Runs are normal: samples to convergence at a distance from the reference and with a spread, and
speed that differs between runs and between sessions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from ipu_results.mlperf.interval import (
    COVERAGE,
    SESSION,
    Numbers,
    Runs,
    make_runs,
)
from ipu_results.mlperf.separation import compare_pairs

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
    }


def score(counts: Numbers, minutes: Numbers, drop: int) -> Numbers:
    """Score runs along the last axis by the official rule, with a reference of one."""
    scores: Numbers = average_kept(minutes, drop) * np.maximum(1, 1 / average_kept(counts, drop))
    return scores


def average_kept(values: Numbers, drop: int) -> Numbers:
    """Compute the olympic mean along the last axis, without `drop` values at each end."""
    kept = np.sort(values, axis=-1)[..., drop : values.shape[-1] - drop]
    means: Numbers = kept.mean(axis=-1)
    return means


def _make(counts: Numbers, minutes: Numbers, drop: int) -> Runs:
    entries = len(counts)
    dropped = [(drop, drop)] * entries
    runs = make_runs(minutes.tolist(), counts.tolist(), dropped, [0.0] * entries)
    return replace(runs, reference=np.ones(len(counts)))


def tabulate(*, quick: bool) -> tuple[ReportTable, list[ReportTarget]]:
    """Return the table of unlike pairs, and its targets."""
    frame = simulate_pairs(QUICK_PAIRS, QUICK_TRUTH) if quick else simulate_pairs(PAIRS, TRUTH)
    lowest = float(frame["size"].min())
    highest = float(frame["size"].max())
    targets = [
        ReportTarget("lowest size of pairs", lowest, MIN_SIZE, at_least=True),
        ReportTarget("highest size of pairs", highest, MAX_SIZE),
    ]
    return _tabulate_pairs(frame), targets


def _tabulate_pairs(frame: pd.DataFrame) -> ReportTable:
    columns = ["distances", "spreads"]
    for n in RUNS:
        columns += [f"{n} runs: size %", f"{n} runs: power %"]
    rows: list[Sequence[Value]] = []
    for (distances, spreads), cell in frame.groupby(["distances", "spreads"], sort=False):
        row: list[Value] = [distances, spreads]
        for figures in cell.itertuples():
            row += [100 * figures.size, 100 * figures.power]
        rows.append(row)
    return ReportTable(
        "Pairs by distance from the reference in % and spread of a run in %: size and power",
        columns,
        rows,
    )
