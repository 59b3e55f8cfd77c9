"""Test whether the runs of two entries separate their official scores.

Where the luck of convergence is shared, the same system would have handed in any of the runs of
both as its own. So the runs are dealt out again, and p is the share of deals whose olympic means
differ by as much. Elsewhere p is that of the interval of the difference of the two scores, which
lets each converge in its own way. Both know that speed differs from one session to the next.
`docs/explanation/mlperf.md` has the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from ipu_results.mlperf.interval import (
    MAX_DF,
    SESSION,
    TINY,
    Estimates,
    Flags,
    Groups,
    Integers,
    Numbers,
    Runs,
    average,
    compute_normal_share,
    compute_two_sided_p,
    estimate_parts,
    expect_scores,
    list_quantiles,
)

# all deals where they are fewer, else as many at random: near 0.05, p is then exact to 0.01
MAX_DEALS = 2_000
MIN_P = 1e-6  # five runs say nothing about the tail beyond
SEED = 27
TOLERANCE = 1e-9  # relative: deals of equal values differ in the last bits of their sums
CHUNK = 256  # pairs at a time, for memory
# multiplications: OpenBLAS starts threads for more, and they wait longer than they work
SMALL_PRODUCT = 500_000
# Standard errors by which the mean samples of entries of one batch size may differ. In the record
# 16 % of the pairs differ by more than two, where 5 % would if all converged alike.
MAX_APART = 2.5
MAX_CHANCE = 0.01  # that an entry's mean samples are above the reference's, where luck is none
RESOLUTION = 1e-6  # of run times, relative: a millisecond of a quarter of an hour
MAX_T = 64.0  # p is below MIN_P from 32 on, with the fewest runs from 1,000 on
HALVINGS = 30  # of MAX_T: to 1e-7
MIN_ERROR = 1e-12  # relative: keeps a division by a spread of zero from a warning

PERMUTATION = "permutation"
DIFFERENCE = "difference"


class Shape(NamedTuple):
    """How many runs an entry has, and how many of the fastest and slowest its score leaves out."""

    runs: int
    low: int
    high: int

    @property
    def kept(self) -> int:
        return self.runs - self.low - self.high

    def average(self, ordered: Numbers) -> Numbers:
        """Return the olympic mean of each row of sorted runs."""
        kept = ordered[:, self.low : self.runs - self.high]
        means: Numbers = kept.mean(axis=1)
        return means

    def list_weights(self) -> Numbers:
        """Return what each of the sorted runs weighs in their olympic mean."""
        weights = np.zeros(self.runs)
        weights[self.low : self.runs - self.high] = 1 / self.kept
        return weights


@dataclass(frozen=True, slots=True)
class Separations:
    """For each pair: p of equal scores, the probability that the second is truly the lower one, and
    which test it was.
    """

    p: Numbers
    wrong_order: Numbers
    tests: Sequence[str]


def compare_pairs(
    runs: Runs,
    first: Integers,
    second: Integers,
    groups: Groups,
    one_batch: Flags,
) -> Separations:
    """Test pairs of rows of `runs`, the lower official score first.

    `groups` are as for `estimate_parts`; `one_batch` says which pairs have one batch size.
    """
    parts = estimate_parts(runs, groups)
    is_shared = _find_shared_luck(runs, parts, first, second, one_batch)
    is_other = ~is_shared
    shared_p, shared_gap = _permute(runs, first[is_shared], second[is_shared])
    p = np.ones(len(first))
    p[is_shared] = shared_p
    p[is_other] = _test_difference(parts, first[is_other], second[is_other])
    gap = parts.scores[second] - parts.scores[first]
    gap[is_shared] = shared_gap
    wrong_order = np.where(gap >= 0, p / 2, 1 - p / 2)
    tests = np.where(is_shared, PERMUTATION, DIFFERENCE)
    return Separations(p, wrong_order, tests.tolist())


def _find_shared_luck(
    runs: Runs, parts: Estimates, first: Integers, second: Integers, one_batch: Flags
) -> Flags:
    """Find pairs of one batch size that converged alike, and those whose convergence does not
    matter: both are far below the reference.
    """
    error = parts.convergence.plain
    means = average(runs.counts, runs)
    errors = means * error
    distance = np.abs(means[second] - means[first])
    # without counts the runs do not say how they converged, and no comparison with NaN holds
    is_apart = distance > MAX_APART * np.hypot(errors[first], errors[second])
    chance = compute_normal_share((1 - parts.reference) / np.maximum(error, MIN_ERROR))
    is_far = chance < MAX_CHANCE
    return (one_batch & ~is_apart) | (is_far[first] & is_far[second])


def _test_difference(parts: Estimates, first: Integers, second: Integers) -> Numbers:
    """Return p by the interval of the difference of two scores (MOVER, Zou and Donner 2008): the
    level at which its nearer end is zero.

    Each distance is that of the published interval with one quantile for both: Student's t with the
    degrees of freedom of Welch and Satterthwaite.
    """
    gap = parts.scores[second] - parts.scores[first]
    # the two scores move towards each other
    towards = np.where(gap >= 0, 1.0, -1.0)
    sides = (_Side(parts, first, towards), _Side(parts, second, -towards))
    # bisection: at the quantile t where the distances make up the gap, the interval ends at zero
    low = np.zeros_like(gap)
    high = np.full_like(gap, MAX_T)
    for _ in range(HALVINGS):
        t = (low + high) / 2
        reached = sum(side.square_distances(t).sum(axis=0) for side in sides)
        is_below = reached < gap**2
        low = np.where(is_below, t, low)
        high = np.where(is_below, high, t)
    squares = np.concatenate([side.square_distances(low) for side in sides])
    freedom = np.concatenate([side.df for side in sides])
    total = squares.sum(axis=0)
    spread = np.sum(squares**2 / freedom, axis=0)
    df = np.clip(total**2 / np.maximum(spread, TINY), 1, MAX_DF)
    return np.maximum(_interpolate_p(low, df), MIN_P)


class _Side:
    """How far the score of one entry of each pair may be off towards the other's."""

    def __init__(self, parts: Estimates, rows: Integers, towards: Numbers) -> None:
        self.towards = towards
        self.scores = parts.scores[rows]
        self.reference = parts.reference[rows]
        self.convergence = parts.convergence.plain[rows]
        # Yuen's needs two runs that are kept
        speed = parts.speed
        has_yuen = speed.yuen_df > 0
        errors = np.where(has_yuen, speed.yuen, speed.plain)
        freedom = np.where(has_yuen, speed.yuen_df, speed.df)
        self.speed = errors[rows]
        session_df = np.full(len(rows), MAX_DF)
        self.df = np.stack([parts.convergence.df[rows], freedom[rows], session_df])

    def square_distances(self, t: Numbers) -> Numbers:
        """Return the squares of how far each score may be off at a quantile t: by convergence, by
        speed and by session, a row each.
        """
        arm = self.towards * t * self.convergence
        score = expect_scores(self.reference, arm, self.convergence)
        by_convergence = np.maximum(self.towards * (score - 1), 0)
        relative = np.stack([by_convergence, t * self.speed, t * SESSION])
        squares: Numbers = (relative * self.scores) ** 2
        return squares


def _interpolate_p(t: Numbers, df: Numbers) -> Numbers:
    """Return p by Student's t, between those of the whole degrees of freedom."""
    below = np.floor(df).astype(int)
    p = np.empty_like(t)
    for whole in np.unique(below).tolist():
        rows = below == whole
        part = df[rows] - whole
        at_whole = compute_two_sided_p(t[rows], whole)
        at_next = compute_two_sided_p(t[rows], whole + 1)
        p[rows] = at_whole + part * (at_next - at_whole)
    return p


def _permute(runs: Runs, first: Integers, second: Integers) -> tuple[Numbers, Numbers]:
    """Return p and the difference of each pair by dealing out its runs."""
    p = np.ones(len(first))
    gap = np.zeros(len(first))
    shapes = np.stack([runs.n, runs.low, runs.high], axis=1)
    pairs = np.concatenate([shapes[first], shapes[second]], axis=1)
    # pairs of the same two shapes at once: they have the same deals
    for pair in np.unique(pairs, axis=0):
        rows = np.flatnonzero((pairs == pair).all(axis=1))
        shape_a, shape_b = pair.reshape(2, -1).tolist()
        a = Shape(*shape_a)
        b = Shape(*shape_b)
        left, right = make_values(runs, first[rows], second[rows], a.runs, b.runs)
        p[rows], gap[rows] = _test_values(left, right, a, b)
    return p, gap


def _test_values(left: Numbers, right: Numbers, a: Shape, b: Shape) -> tuple[Numbers, Numbers]:
    """Return p and the difference of pairs, a row each, by the values of their runs."""
    left = np.sort(left, axis=1)
    right = np.sort(right, axis=1)
    right -= _find_session_part(left, right, a, b)[:, None]
    gap = b.average(right) - a.average(left)
    both = np.concatenate([left, right], axis=1)
    pooled = np.sort(both, axis=1)
    is_complete = count_deals(a, b) <= MAX_DEALS
    # all runs of one are faster than all of the other
    is_left_faster = left[:, -1] < right[:, 0]
    is_right_faster = right[:, -1] < left[:, 0]
    is_apart = is_left_faster | is_right_faster
    counts = np.zeros(len(gap))  # of the deals that differ by as much
    is_extreme = np.ones(len(gap), dtype=bool)  # no deal differs by more the same way
    # runs that are apart are not dealt out at random: hardly a deal would be as far off
    dealt = np.flatnonzero(~is_apart | is_complete)
    for start in range(0, len(dealt), CHUNK):
        rows = dealt[start : start + CHUNK]
        observed = np.abs(gap[rows])
        signs = np.sign(gap[rows])[:, None]
        differences = _multiply(pooled[rows] * signs, _make_deals(a, b))
        is_extreme[rows] = differences.max(axis=1) <= observed * (1 + TOLERANCE)
        np.abs(differences, out=differences)
        needed = observed * (1 - TOLERANCE)
        counts[rows] = np.count_nonzero(differences >= needed[:, None], axis=1)
    if is_complete:
        p = counts / count_deals(a, b)
    else:
        p = (counts + 1) / MAX_DEALS
    by_t = _test_by_t(left[is_extreme], right[is_extreme], gap[is_extreme])
    p[is_extreme] = np.minimum(p[is_extreme], by_t)
    return np.maximum(p, MIN_P), gap


def count_deals(a: Shape, b: Shape) -> int:
    """Count the ways in which the runs of both can be dealt out."""
    return comb(a.runs + b.runs, a.runs)


def _find_session_part(left: Numbers, right: Numbers, a: Shape, b: Shape) -> Numbers:
    """Return the part of each difference that two sessions may explain.

    The rest is as far from zero, in quantiles of Student's t with the error of the runs alone, as
    the whole is with that of the sessions added.
    """
    gap = b.average(right) - a.average(left)
    df = a.runs + b.runs - 2
    # squared errors
    runs_alone = _square_error(left, a.low, a.high)
    runs_alone += _square_error(right, b.low, b.high)
    squared_means = left.mean(axis=1) ** 2 + right.mean(axis=1) ** 2
    sessions = SESSION**2 * squared_means
    both = runs_alone + sessions
    freedom = np.minimum(df * (both / runs_alone) ** 2, MAX_DF).astype(int)
    quantile_alone = list_quantiles(np.array([df]))
    quantile_both = list_quantiles(freedom)
    share = np.sqrt(runs_alone / both) * quantile_alone / quantile_both
    part: Numbers = gap * (1 - np.minimum(share, 1))
    return part


def _square_error(values: Numbers, low: int = 0, high: int = 0) -> Numbers:
    """Return Yuen's squared standard error of the olympic mean of each row of sorted runs, or that
    of the plain mean where fewer than two runs are kept; never below what a clock shows.
    """
    n = values.shape[1]
    kept = n - low - high
    if kept < 2:
        return _square_error(values)
    fastest = values[:, [low]]
    slowest = values[:, [n - high - 1]]
    winsorised = np.clip(values, fastest, slowest)
    square = winsorised.var(axis=1) * n / (kept * (kept - 1))
    resolution = RESOLUTION * values.mean(axis=1)
    squares: Numbers = square + resolution**2
    return squares


def make_values(
    runs: Runs, first: Integers, second: Integers, n: int, m: int
) -> tuple[Numbers, Numbers]:
    """Return what each of the `n` and `m` runs of a pair adds to its score: its minutes, or those
    that the reference's samples would have taken.

    Near the reference it is the mean of both, weighted by the probability that the mean of the
    pair's runs is above it.
    """
    reference = np.where(runs.reference > 0, runs.reference, np.nan)
    # samples over the reference's
    left = runs.counts[first, :n] / reference[first, None]
    right = runs.counts[second, :m] / reference[second, None]
    share = _estimate_share_above(left, right)[:, None]

    def weigh(minutes: Numbers, progress: Numbers) -> Numbers:
        weights = share + (1 - share) / progress
        # a run without samples has no reference
        return minutes * np.where(np.isnan(progress), 1, weights)

    return weigh(runs.minutes[first, :n], left), weigh(runs.minutes[second, :m], right)


def _estimate_share_above(left: Numbers, right: Numbers) -> Numbers:
    """Return the probability that the mean of each pair's runs is above the reference, by their
    samples over the reference's.
    """
    both = np.concatenate([left, right], axis=1)
    counted = np.count_nonzero(~np.isnan(both), axis=1)
    counted = np.maximum(counted, 1)
    mean = np.nansum(both, axis=1) / counted
    squares = np.nansum((both - mean[:, None]) ** 2, axis=1)
    variance = squares / np.maximum(counted - 1, 1)
    has_counts = ~np.isnan([left[:, 0], right[:, 0]])
    entries = np.count_nonzero(has_counts, axis=0)
    runs_each = counted / np.maximum(entries, 1)
    error = np.sqrt(variance / runs_each)  # of the mean of one entry
    errors_above = (mean - 1) / np.maximum(error, MIN_ERROR)
    return compute_normal_share(errors_above)


def _multiply(left: Numbers, right: Numbers) -> Numbers:
    """Return the product of two matrices, as many rows at a time as make a small one."""
    rows = max(1, SMALL_PRODUCT // max(1, right.size))
    parts = math.ceil(len(left) / rows)
    # repeats rows to fill the last part
    filled = np.resize(left, (parts, rows, left.shape[1]))
    product: Numbers = (filled @ right).reshape(-1, right.shape[1])
    return product[: len(left)]


@lru_cache(maxsize=8)
def _make_deals(a: Shape, b: Shape) -> Numbers:
    """Return what the sorted runs of both weigh in the difference of the two means, a column for
    each deal.
    """
    total = a.runs + b.runs
    # which of the sorted runs the first entry gets, a row for each deal
    if count_deals(a, b) <= MAX_DEALS:
        dealt = np.array(list(combinations(range(total), a.runs)))
        is_first = np.zeros((len(dealt), total), dtype=bool)
        np.put_along_axis(is_first, dealt, True, axis=1)
    else:
        random = np.random.default_rng([SEED, *a, *b])
        keys = random.random((MAX_DEALS - 1, total))
        # the entry gets the runs with the smallest keys
        last = a.runs - 1
        largest = np.partition(keys, last, axis=1)[:, [last]]
        is_first = keys <= largest
    # in its own entry, a run has the rank that its place among the runs dealt to that entry gives
    weights = np.empty(is_first.shape)
    weights[is_first] = np.tile(-a.list_weights(), len(is_first))
    weights[~is_first] = np.tile(b.list_weights(), len(is_first))
    return np.ascontiguousarray(weights.T)


def _test_by_t(left: Numbers, right: Numbers, gap: Numbers) -> Numbers:
    """Return p by Student's t: where no deal differs by more the same way, the deals cannot say how
    small p is.
    """
    error = np.sqrt(_square_error(left) + _square_error(right))
    df = left.shape[1] + right.shape[1] - 2
    p: Numbers = compute_two_sided_p(np.abs(gap) / error, df)
    return p
