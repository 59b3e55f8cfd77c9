"""Test whether the runs of two entries separate their official scores: a permutation test of the
olympic means.

The same system would have handed in any of the runs of both as its own. So the runs are dealt out
again, and p is the share of deals whose olympic means differ by as much.
`docs/explanation/mlperf.md` has the derivation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from ipu_results.mlperf.interval import (
    Integers,
    Numbers,
    Runs,
    compute_normal_share,
    compute_two_sided_p,
)

# all deals where they are fewer, else as many at random: near 0.05, p is then exact to 0.01
MAX_DEALS = 2_000
MIN_P = 1e-6  # five runs say nothing about the tail beyond
SEED = 27
TOLERANCE = 1e-9  # relative: deals of equal values differ in the last bits of their sums
CHUNK = 256  # pairs at a time, for memory
# multiplications: OpenBLAS starts threads for more, and they wait longer than they work
SMALL_PRODUCT = 500_000

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Separations:
    """For each pair: p of equal scores, and the probability that the second is truly the lower one."""

    p: Numbers
    wrong_order: Numbers


def compare_pairs(runs: Runs, first: Integers, second: Integers) -> Separations:
    """Test pairs of rows of `runs`, the lower official score first."""
    p = np.ones(len(first))
    gap = np.zeros(len(first))
    shapes, kinds = np.unique(
        np.stack([runs.n, runs.low, runs.high], axis=1), axis=0, return_inverse=True
    )
    codes = kinds.ravel()[first] * len(shapes) + kinds.ravel()[second]
    for code in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        a, b = shapes[[*divmod(code, len(shapes))]].tolist()
        p[rows], gap[rows] = _test_shape(runs, first[rows], second[rows], tuple(a), tuple(b))
    return Separations(p, np.where(gap >= 0, p / 2, 1 - p / 2))


def _test_shape(
    runs: Runs, first: Integers, second: Integers, a: Shape, b: Shape
) -> tuple[Numbers, Numbers]:
    """Test pairs whose entries have as many runs, and leave as many out."""
    left, right = (
        np.sort(values, axis=1) for values in make_values(runs, first, second, a[0], b[0])
    )
    gap = right[:, b[1] : b[0] - b[2]].mean(axis=1) - left[:, a[1] : a[0] - a[2]].mean(axis=1)
    pooled = np.sort(np.concatenate([left, right], axis=1), axis=1)
    total = comb(a[0] + b[0], a[0])
    is_complete = total <= MAX_DEALS
    apart = (left[:, -1] < right[:, 0]) | (right[:, -1] < left[:, 0])
    counts = np.zeros(len(gap))
    is_extreme = np.ones(len(gap), dtype=bool)
    # where all runs of one are faster, hardly a random deal is as far off
    close = np.flatnonzero(~apart | is_complete)
    deals = _make_deals(a, b) if len(close) else np.empty(0)
    for start in range(0, len(close), CHUNK):
        at = close[start : start + CHUNK]
        differences = _multiply(pooled[at] * np.sign(gap[at])[:, None], deals)
        observed = np.abs(gap[at])
        is_extreme[at] = differences.max(axis=1) <= observed * (1 + TOLERANCE)
        reached = np.abs(differences, out=differences) >= (observed * (1 - TOLERANCE))[:, None]
        counts[at] = np.count_nonzero(reached, axis=1)
    p = counts / total if is_complete else (counts + 1) / MAX_DEALS
    p[is_extreme] = np.minimum(
        p[is_extreme], _test_by_t(left[is_extreme], right[is_extreme], gap[is_extreme])
    )
    return np.maximum(p, MIN_P), gap


def make_values(
    runs: Runs, first: Integers, second: Integers, n: int, m: int
) -> tuple[Numbers, Numbers]:
    """Return what each run adds to its score: its minutes, or those that the reference's samples
    would have taken.

    Near the reference it is the mean of both, weighted by the probability that the mean of the
    pair's runs is above it.
    """
    minutes = runs.minutes[first, :n], runs.minutes[second, :m]
    has_reference = np.stack([runs.reference[first] > 0, runs.reference[second] > 0], axis=1)
    if not has_reference.any():
        return minutes
    with np.errstate(divide="ignore"):
        progress = [
            np.where(known[:, None], runs.counts[rows, :size] / runs.reference[rows, None], np.nan)
            for rows, size, known in (
                (first, n, has_reference[:, 0]),
                (second, m, has_reference[:, 1]),
            )
        ]
    both = np.concatenate(progress, axis=1)
    known = np.maximum(np.count_nonzero(~np.isnan(both), axis=1), 1)
    mean = np.nansum(both, axis=1) / known
    variance = np.nansum((both - mean[:, None]) ** 2, axis=1) / np.maximum(known - 1, 1)
    error = np.sqrt(variance / (known / np.maximum(has_reference.sum(axis=1), 1)))
    share = np.where(
        has_reference.any(axis=1), compute_normal_share((mean - 1) / np.maximum(error, 1e-12)), 1
    )[:, None]
    left, right = (
        values * np.where(np.isnan(part), 1, share + (1 - share) / part)
        for values, part in zip(minutes, progress, strict=True)
    )
    return left, right


def _multiply(left: Numbers, right: Numbers) -> Numbers:
    """Return the product of two matrices, as many rows at a time as make a small one."""
    rows = max(1, SMALL_PRODUCT // max(1, right.size))
    # repeats rows to fill the last part
    parts = np.resize(left, (-(-len(left) // rows), rows, left.shape[1])) @ right
    product: Numbers = parts.reshape(-1, right.shape[1])[: len(left)]
    return product


@lru_cache(maxsize=8)
def _make_deals(a: Shape, b: Shape) -> Numbers:
    """Return what the sorted runs of both weigh in the difference of the two means, a column for
    each deal.
    """
    total = a[0] + b[0]
    if comb(total, a[0]) <= MAX_DEALS:
        chosen = np.zeros((comb(total, a[0]), total), dtype=bool)
        for row, places in enumerate(combinations(range(total), a[0])):
            chosen[row, places] = True
    else:
        keys = np.random.default_rng([SEED, *a, *b]).random((MAX_DEALS - 1, total))
        chosen = keys <= np.partition(keys, a[0] - 1, axis=1)[:, a[0] - 1 : a[0]]
    reached = chosen.cumsum(axis=1, dtype=np.int16)
    place = np.where(chosen, reached - 1, a[0] + np.arange(total, dtype=np.int16) - reached)
    return np.ascontiguousarray(np.concatenate([-_weigh(a), _weigh(b)])[place].T)


def _weigh(shape: Shape) -> Numbers:
    """Return what each of the sorted runs of an entry weighs in its olympic mean."""
    n, low, high = shape
    return np.repeat([0.0, 1 / (n - low - high), 0.0], [low, n - low - high, high])


def _test_by_t(left: Numbers, right: Numbers, gap: Numbers) -> Numbers:
    """Return p by Student's t: where no deal differs by more the same way, the deals cannot say how
    small p is.
    """
    error = sum(side.var(axis=1, ddof=1) / side.shape[1] for side in (left, right))
    t = np.abs(gap) / np.sqrt(np.maximum(error, 1e-300))
    p: Numbers = compute_two_sided_p(t, left.shape[1] + right.shape[1] - 2)
    return p
