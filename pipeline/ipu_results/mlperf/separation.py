"""Test whether the runs of two entries separate their official scores.

Where the luck of convergence is shared, the same system would have handed in any of the runs of
both as its own. So the runs are dealt out again, and p is the share of deals whose olympic means
differ by as much. Elsewhere p is that of the interval of the difference of the two scores, which
lets each converge in its own way. Both know that speed differs from one session to the next.
`docs/explanation/mlperf.md` has the derivation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from ipu_results.mlperf.interval import (
    MAX_DF,
    SESSION,
    Estimates,
    Flags,
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

PERMUTATION, DIFFERENCE = "permutation", "difference"
Shape = tuple[int, int, int]


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
    groups: Sequence[Sequence[Hashable]],
    one_batch: Flags,
) -> Separations:
    """Test pairs of rows of `runs`, the lower official score first.

    `groups` are as for `estimate_parts`; `one_batch` says which pairs have one batch size.
    """
    parts = estimate_parts(runs, groups)
    shared = _find_shared_luck(runs, parts, first, second, one_batch)
    p = np.ones(len(first))
    gap = parts.scores[second] - parts.scores[first]
    alike = np.flatnonzero(shared)
    p[alike], gap[alike] = _permute(runs, first[alike], second[alike])
    others = np.flatnonzero(~shared)
    p[others] = _test_difference(parts, first[others], second[others])
    return Separations(
        p,
        np.where(gap >= 0, p / 2, 1 - p / 2),
        np.where(shared, PERMUTATION, DIFFERENCE).tolist(),
    )


def _find_shared_luck(
    runs: Runs, parts: Estimates, first: Integers, second: Integers, one_batch: Flags
) -> Flags:
    """Find pairs of one batch size that converged alike, and those whose convergence does not
    matter: both are far below the reference.
    """
    error = parts.convergence.plain
    means = average(runs.counts, runs)
    errors = means * error
    # without counts the runs do not say how they converged, and no comparison with NaN holds
    is_apart = np.abs(means[second] - means[first]) > MAX_APART * np.hypot(
        errors[first], errors[second]
    )
    chance = compute_normal_share((1 - parts.reference) / np.maximum(error, 1e-12))
    is_far = chance < MAX_CHANCE
    return (one_batch & ~is_apart) | (is_far[first] & is_far[second])


def _test_difference(parts: Estimates, first: Integers, second: Integers) -> Numbers:
    """Return p by the interval of the difference of two scores (MOVER, Zou and Donner 2008): the
    level at which its nearer end is zero.

    Each distance is that of the published interval with one quantile for both: Student's t with the
    degrees of freedom of Welch and Satterthwaite.
    """
    gap = parts.scores[second] - parts.scores[first]
    rising = np.where(gap >= 0, 1.0, -1.0)
    sides = (_Side(parts, first, rising), _Side(parts, second, -rising))
    low, high = np.zeros_like(gap), np.full_like(gap, MAX_T)
    for _ in range(HALVINGS):
        t = (low + high) / 2
        is_within = sum(side.measure(t).sum(axis=0) for side in sides) < gap**2
        low, high = np.where(is_within, t, low), np.where(is_within, high, t)
    squares = np.concatenate([side.measure(low) for side in sides])
    freedom = np.concatenate([side.df for side in sides])
    spread = np.sum(squares**2 / freedom, axis=0)
    total = squares.sum(axis=0)
    df = np.clip(total**2 / np.maximum(spread, 1e-300), 1, MAX_DF)
    return np.maximum(_find_p(low, df), MIN_P)


class _Side:
    """How far the score of one entry of each pair may be off towards the other's."""

    def __init__(self, parts: Estimates, rows: Integers, sign: Numbers) -> None:
        self.sign = sign
        self.scores, self.reference = parts.scores[rows], parts.reference[rows]
        self.convergence = parts.convergence.plain[rows]
        # Yuen's needs two runs that are kept
        has_yuen = parts.speed.yuen_df > 0
        self.speed = np.where(has_yuen, parts.speed.yuen, parts.speed.plain)[rows]
        speed_df = np.where(has_yuen, parts.speed.yuen_df, parts.speed.df)[rows]
        sessions = np.full(len(rows), MAX_DF)
        self.df = np.stack([parts.convergence.df[rows], speed_df, sessions])

    def measure(self, t: Numbers) -> Numbers:
        """Return the squared distances by convergence, speed and session, a row each."""
        arm = self.sign * t * self.convergence
        moved = self.sign * (expect_scores(self.reference, arm, self.convergence) - 1)
        distances = np.stack([np.maximum(moved, 0), t * self.speed, t * SESSION])
        squares: Numbers = (distances * self.scores) ** 2
        return squares


def _find_p(t: Numbers, df: Numbers) -> Numbers:
    """Return p by Student's t, between those of the whole degrees of freedom."""
    below = np.floor(df).astype(int)
    p = np.empty_like(t)
    for whole in np.unique(below).tolist():
        rows = np.flatnonzero(below == whole)
        fewer, more = (compute_two_sided_p(t[rows], each) for each in (whole, whole + 1))
        p[rows] = fewer + (df[rows] - whole) * (more - fewer)
    return p


def _permute(runs: Runs, first: Integers, second: Integers) -> tuple[Numbers, Numbers]:
    """Return p and the difference of each pair by dealing out its runs."""
    p = np.ones(len(first))
    gap = np.zeros(len(first))
    shapes = np.stack([runs.n, runs.low, runs.high], axis=1)
    pairs = np.concatenate([shapes[first], shapes[second]], axis=1)
    for pair in np.unique(pairs, axis=0):
        rows = np.flatnonzero((pairs == pair).all(axis=1))
        a, b = tuple(pair[:3].tolist()), tuple(pair[3:].tolist())
        p[rows], gap[rows] = _test_shape(runs, first[rows], second[rows], a, b)
    return p, gap


def _test_shape(
    runs: Runs, first: Integers, second: Integers, a: Shape, b: Shape
) -> tuple[Numbers, Numbers]:
    """Test pairs whose entries have as many runs, and leave as many out."""
    left, right = (
        np.sort(values, axis=1) for values in make_values(runs, first, second, a[0], b[0])
    )
    right -= _find_session_part(left, right, a, b)[:, None]
    gap = _subtract_means(left, right, a, b)
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


def _subtract_means(left: Numbers, right: Numbers, a: Shape, b: Shape) -> Numbers:
    """Return the difference of the olympic means of sorted runs."""
    gap: Numbers = right[:, b[1] : b[0] - b[2]].mean(axis=1) - left[:, a[1] : a[0] - a[2]].mean(
        axis=1
    )
    return gap


def _find_session_part(left: Numbers, right: Numbers, a: Shape, b: Shape) -> Numbers:
    """Return the part of each difference that two sessions may explain.

    The rest is as far from zero, in quantiles of Student's t with the error of the runs alone, as
    the whole is with that of the sessions added.
    """
    gap = _subtract_means(left, right, a, b)
    df = a[0] + b[0] - 2
    within = _square_error(left, *a[1:]) + _square_error(right, *b[1:])
    between = SESSION**2 * (left.mean(axis=1) ** 2 + right.mean(axis=1) ** 2)
    both = within + between
    freedom = np.minimum(df * (both / within) ** 2, MAX_DF).astype(int)
    share = np.sqrt(within / both) * list_quantiles(np.array([df])) / list_quantiles(freedom)
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
    winsorised = np.clip(values, values[:, [low]], values[:, [n - high - 1]])
    resolution = RESOLUTION * values.mean(axis=1)
    squares: Numbers = winsorised.var(axis=1) * n / (kept * (kept - 1)) + resolution**2
    return squares


def make_values(
    runs: Runs, first: Integers, second: Integers, n: int, m: int
) -> tuple[Numbers, Numbers]:
    """Return what each run adds to its score: its minutes, or those that the reference's samples
    would have taken.

    Near the reference it is the mean of both, weighted by the probability that the mean of the
    pair's runs is above it.
    """
    minutes = runs.minutes[first, :n], runs.minutes[second, :m]
    reference = np.where(runs.reference > 0, runs.reference, np.nan)
    progress = [
        runs.counts[rows, :size] / reference[rows, None] for rows, size in ((first, n), (second, m))
    ]
    both = np.concatenate(progress, axis=1)
    known = np.maximum(np.count_nonzero(~np.isnan(both), axis=1), 1)
    mean = np.nansum(both, axis=1) / known
    variance = np.nansum((both - mean[:, None]) ** 2, axis=1) / np.maximum(known - 1, 1)
    entries = np.maximum(sum(~np.isnan(part[:, 0]) for part in progress), 1)
    error = np.sqrt(variance / (known / entries))
    share = compute_normal_share((mean - 1) / np.maximum(error, 1e-12))[:, None]
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
    error = _square_error(left) + _square_error(right)
    p: Numbers = compute_two_sided_p(
        np.abs(gap) / np.sqrt(error), left.shape[1] + right.shape[1] - 2
    )
    return p
