"""Test whether the runs of two entries separate their official scores: a permutation test of the olympic means.

The same system would have handed in any of the runs of both as its own. So the runs are dealt out again, and p is the
share of deals whose olympic means differ by as much. `docs/explanation/mlperf.md` has the derivation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from ipu_results.mlperf.interval import Integers, Numbers, Runs, average, compute_normal_share, compute_two_sided_p

ALPHA = 0.05
MAX_DEALS = 2_000  # all deals where they are fewer, else as many at random: near 0.05, p is then exact to 0.01
MIN_P = 1e-6  # five runs say nothing about the tail beyond
SEED = 27
TOLERANCE = 1e-9  # relative: deals of equal values differ in the last bits of their sums
CHUNK = 2_048  # pairs at a time, for memory

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Separations:
    """For each pair: p of equal scores, and the probability that the second is truly the lower one."""

    p: Numbers
    wrong_order: Numbers


def compare_pairs(runs: Runs, first: Integers, second: Integers) -> Separations:
    """Test pairs of rows of `runs`, the lower official score first."""
    p, gap = np.ones(len(first)), np.zeros(len(first))
    shapes = np.stack([runs.n, runs.low, runs.high], axis=1)
    by_shape: dict[tuple[Shape, Shape], list[int]] = defaultdict(list)
    for pair, (a, b) in enumerate(zip(shapes[first].tolist(), shapes[second].tolist(), strict=True)):
        by_shape[tuple(a), tuple(b)].append(pair)
    for (a, b), members in by_shape.items():
        rows = np.array(members)
        p[rows], gap[rows] = _test_shape(runs, first[rows], second[rows], a, b)
    return Separations(p, np.where(gap >= 0, p / 2, 1 - p / 2))


def _test_shape(runs: Runs, first: Integers, second: Integers, a: Shape, b: Shape) -> tuple[Numbers, Numbers]:
    """Test pairs whose entries have as many runs, and leave as many out."""
    left, right = make_values(runs, first, second, a[0], b[0])
    gap = average(right, runs.select(second)) - average(left, runs.select(first))
    pooled = np.sort(np.concatenate([left, right], axis=1), axis=1)
    total = comb(a[0] + b[0], a[0])
    is_complete = total <= MAX_DEALS
    apart = (left.max(axis=1) < right.min(axis=1)) | (right.max(axis=1) < left.min(axis=1))
    counts, is_extreme = np.zeros(len(gap)), np.ones(len(gap), dtype=bool)
    close = np.flatnonzero(~apart | is_complete)  # where all runs of one are faster, hardly a random deal is as far off
    deals = _make_deals(a, b) if len(close) else np.empty(0)
    for start in range(0, len(close), CHUNK):
        at = close[start : start + CHUNK]
        differences, observed = pooled[at] @ deals * np.sign(gap[at])[:, None], np.abs(gap[at])
        is_extreme[at] = differences.max(axis=1) <= observed * (1 + TOLERANCE)
        reached = np.abs(differences, out=differences) >= (observed * (1 - TOLERANCE))[:, None]
        counts[at] = np.count_nonzero(reached, axis=1)
    p = counts / total if is_complete else (counts + 1) / MAX_DEALS
    p[is_extreme] = np.minimum(p[is_extreme], _test_by_t(left[is_extreme], right[is_extreme], gap[is_extreme]))
    return np.maximum(p, MIN_P), gap


def make_values(runs: Runs, first: Integers, second: Integers, n: int, m: int) -> tuple[Numbers, Numbers]:
    """Return what each run adds to its score: its minutes, or those that the reference's samples would have taken.

    Near the reference it is the mean of both, weighted by the probability that the mean of the pair's runs is above it.
    """
    minutes = runs.minutes[first, :n], runs.minutes[second, :m]
    has_reference = np.stack([runs.reference[first] > 0, runs.reference[second] > 0], axis=1)
    if not has_reference.any():
        return minutes
    with np.errstate(divide="ignore"):
        progress = [
            np.where(known[:, None], runs.counts[rows, :size] / runs.reference[rows, None], np.nan)
            for rows, size, known in ((first, n, has_reference[:, 0]), (second, m, has_reference[:, 1]))
        ]
    both = np.concatenate(progress, axis=1)
    known = np.maximum(np.count_nonzero(~np.isnan(both), axis=1), 1)
    mean = np.nansum(both, axis=1) / known
    variance = np.nansum((both - mean[:, None]) ** 2, axis=1) / np.maximum(known - 1, 1)
    error = np.sqrt(variance / (known / np.maximum(has_reference.sum(axis=1), 1)))
    share = np.where(has_reference.any(axis=1), compute_normal_share((mean - 1) / np.maximum(error, 1e-12)), 1)[:, None]
    left, right = (
        values * np.where(np.isnan(part), 1, share + (1 - share) / part)
        for values, part in zip(minutes, progress, strict=True)
    )
    return left, right


@cache
def _make_deals(a: Shape, b: Shape) -> Numbers:
    """Return what the sorted runs of both weigh in the difference of the two means, a column for each deal."""
    total = a[0] + b[0]
    if comb(total, a[0]) <= MAX_DEALS:
        chosen = np.zeros((comb(total, a[0]), total), dtype=bool)
        for row, places in enumerate(combinations(range(total), a[0])):
            chosen[row, places] = True
    else:
        keys = np.random.default_rng([SEED, *a, *b]).random((MAX_DEALS - 1, total))
        chosen = keys <= np.partition(keys, a[0] - 1, axis=1)[:, a[0] - 1 : a[0]]
    return np.ascontiguousarray((_weigh(~chosen, b) - _weigh(chosen, a)).T)


def _weigh(chosen: npt.NDArray[np.bool_], shape: Shape) -> Numbers:
    n, low, high = shape
    place = chosen.cumsum(axis=1, dtype=np.int16) - 1
    return np.where(chosen & (place >= low) & (place < n - high), 1 / (n - low - high), 0.0)


def _test_by_t(left: Numbers, right: Numbers, gap: Numbers) -> Numbers:
    """Return p by Student's t: where no deal differs by more the same way, the deals cannot say how small p is."""
    error = sum(side.var(axis=1, ddof=1) / side.shape[1] for side in (left, right))
    t = np.abs(gap) / np.sqrt(np.maximum(error, 1e-300))
    p: Numbers = compute_two_sided_p(t, left.shape[1] + right.shape[1] - 2)
    return p
