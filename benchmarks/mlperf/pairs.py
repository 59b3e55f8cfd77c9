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
PAIRS, QUICK_PAIRS = 12_000, 120
TRUTH, QUICK_TRUTH = 200_000, 4_000
EFFECT = 3.0  # of the pairs that differ, in standard errors of the difference
MIN_SIZE, MAX_SIZE = 0.03, 0.065
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
    cells = [
        (n, System(a, left), System(b, right))
        for n in RUNS
        for a, b in DISTANCES
        for left, right in product(SPREADS, SPREADS)
        if a != b or left <= right
    ]
    return pd.DataFrame([_simulate_pair(*cell, pairs, truth) for cell in cells])


def _simulate_pair(n: int, left: System, right: System, pairs: int, truth: int) -> dict[str, Value]:
    seed = [
        SEED,
        n,
        *(100 + part for each in (left, right) for part in (each.distance, each.spread)),
    ]
    rng = np.random.default_rng(seed)
    drop, members = RUNS[n]
    entries = math.ceil(pairs / members) * members
    counts, minutes, scores = (
        np.concatenate(parts)
        for parts in zip(
            *(_draw_entries(system, rng, n, drop, entries, truth) for system in (left, right)),
            strict=True,
        )
    )
    groups = [[row // members] for row in range(2 * entries)]
    apart = EFFECT * math.hypot(scores[:entries].std(), scores[entries:].std())
    shares = []
    for factor in (1.0, 1 + apart):
        factors = np.repeat([1.0, factor], entries)[:, None]
        runs = _make(counts, minutes * factors, drop)
        first = np.arange(entries)
        tested = compare_pairs(
            runs, first, first + entries, groups, np.full(entries, left == right)
        )
        shares.append(float((tested.p < 1 - COVERAGE).mean()))
    return {
        "runs": n,
        "distances": f"{left.distance:+d}, {right.distance:+d}",
        "spreads": f"{left.spread}, {right.spread}",
        "size": shares[0],
        "power": shares[1],
        "permuted": tested.tests.count(PERMUTATION) / entries,
    }


def _draw_entries(
    system: System, rng: np.random.Generator, n: int, drop: int, entries: int, truth: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Draw samples, minutes and scores of entries whose true score is 1."""
    true_score = score(*system.draw(rng, (truth, n)), drop).mean()
    counts, minutes = system.draw(rng, (entries, n))
    minutes /= true_score
    return counts, minutes, score(counts, minutes, drop)


def score(counts: Numbers, minutes: Numbers, drop: int) -> Numbers:
    """Score runs along the last axis by the official rule, with a reference of one."""
    means = [
        np.sort(values, axis=-1)[..., drop : values.shape[-1] - drop].mean(axis=-1)
        for values in (counts, minutes)
    ]
    scores: Numbers = means[1] * np.maximum(1, 1 / means[0])
    return scores


def _make(counts: Numbers, minutes: Numbers, drop: int) -> Runs:
    runs = make_runs(
        minutes.tolist(), counts.tolist(), [(drop, drop)] * len(counts), [0.0] * len(counts)
    )
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
    windows = [
        np.lib.stride_tricks.sliding_window_view(values, n, axis=1) for values in (counts, minutes)
    ]
    scores = score(windows[0], windows[1], RUNS[n][0])
    middle = np.argsort(scores, axis=1)[:, (scores.shape[1] - 1) // 2]
    rows = np.arange(len(counts))
    return windows[0][rows, middle], windows[1][rows, middle]


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
    pairs, truth = (QUICK_PAIRS, QUICK_TRUTH) if quick else (PAIRS, TRUTH)
    frame = simulate_pairs(pairs, truth)
    figures = ("size", "power", "permuted")
    rows: list[Sequence[Value]] = []
    for (distances, spreads), own in frame.groupby(["distances", "spreads"], sort=False):
        by_runs = own.set_index("runs")
        cells = [100 * float(by_runs.at[n, name]) for n in RUNS for name in figures]
        rows.append([distances, spreads, *cells])
    columns = [f"{n} runs: {name} %" for n in RUNS for name in figures]
    choices = list(simulate_choices(pairs, truth))
    shares = [
        f"{distance:+d} %: {name} %"
        for distance in CHOICE_DISTANCES
        for name in ("coverage", "size")
    ]
    return [
        ReportTable(
            "Pairs by distance from the reference in % and spread of a run in %: size, power, and"
            " share by permutation",
            ["distances", "spreads", *columns],
            rows,
        ),
        ReportTable(
            f"Chosen runs, with a spread of {CHOICE_SPREAD} %: the window of runs whose score is the"
            " median of all windows, by distance from the reference",
            ["runs", *shares],
            choices,
        ),
    ], [
        ReportTarget("lowest size of pairs", float(frame["size"].min()), MIN_SIZE, at_least=True),
        ReportTarget("highest size of pairs", float(frame["size"].max()), MAX_SIZE),
    ]
