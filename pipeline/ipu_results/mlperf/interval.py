"""Estimate how far an official score may move from one submission to the next.

`docs/explanation/mlperf.md`.

A score is minutes per sample times the samples to convergence, where fewer samples than the
reference needs count as the reference's. So its interval joins two: Student's t for the speed, from
how the entry's runs differ in minutes per sample, and one of the expected samples, cut by the
reference. How runs converge is seen in comparable entries, too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

COVERAGE = 0.95
MIN_RUNS = 3  # with two runs t is 12.7: such an interval says nothing
MIN_GROUP_DF = 20  # fewer runs of comparable entries would be as uncertain as the entry's own
# of the comparable entries' variance, where the entry's own has 1: chosen by simulation
GROUP_WEIGHT = 2
# relative standard deviation of speed from one session to the next, which the runs of one session
# cannot show: `python -m benchmarks mlperf_independence` estimates it from pauses within entries
SESSION = 0.001
SESSION_ARM = SESSION * NormalDist().inv_cdf(0.5 + COVERAGE / 2)
MAX_DF = 200  # of a quantile: its t is 0.6 % above that of infinitely many
MAX_STEPS = 100  # of Newton's method: it takes five
# of an end, relative to its score: exp and sums have other last bits on other processors
DIGITS = 9
TINY = 1e-300  # keeps a division by a spread of zero from a warning
MAX_Z = 40  # beyond it a normal variable is on one side, and exp would underflow

# how an interval was estimated: from the entry's runs, whose samples are unknown; with the
# convergence of comparable entries; from its own runs, as too few are comparable
OWN = "own-runs"
GROUP = "group-convergence"
ALONE = "own-runs-alone"

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Groups = Sequence[Sequence[Hashable]]
"""For each entry, the names of the groups whose entries are comparable, the closest first."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The counted runs of entries, a row each, filled up with NaN.

    `low` and `high` are how many of the fastest and slowest the score leaves out. `counts` are
    samples to convergence in any unit, NaN where a run of the entry has none. `reference` is in the
    same unit, 0 where none applies.
    """

    minutes: Numbers
    counts: Numbers
    n: Integers
    low: Integers
    high: Integers
    reference: Numbers


@dataclass(frozen=True, slots=True)
class Error:
    """Two standard errors of a relative olympic mean, and their degrees of freedom: of the plain
    mean, and by Yuen.
    """

    plain: Numbers
    yuen: Numbers
    df: Integers
    yuen_df: Integers

    def find_arm(self) -> Numbers:
        """Return how far the mean may be off."""
        plain = list_quantiles(self.df) * self.plain
        return np.maximum(plain, list_quantiles(self.yuen_df) * self.yuen)


class Pool(NamedTuple):
    """The variance of one run within the entries of a group, plain and by Yuen, and the degrees of
    freedom of both.
    """

    variance: float
    yuen_variance: float
    df: int
    yuen_df: int


NO_POOL = Pool(0.0, 0.0, 0, 0)


@dataclass(frozen=True, slots=True)
class Estimates:
    """What scores consist of, and how well each part is known.

    `reference` is over the entry's own mean samples, 0 where none applies.
    """

    scores: Numbers
    reference: Numbers
    speed: Error
    convergence: Error
    methods: Sequence[str]


@dataclass(frozen=True, slots=True)
class Intervals:
    """The ends of each entry's interval over its score, and the method."""

    low: Numbers
    high: Numbers
    methods: Sequence[str]


def make_runs(
    minutes: Sequence[Sequence[float]],
    counts: Sequence[Sequence[float]],
    dropped: Sequence[tuple[int, int]],
    ratios: Sequence[float],
) -> Runs:
    """Make the arrays; `ratios` are references over the entries' own olympic means of counts.

    An entry whose distinct runs are too few to leave any out keeps them all.
    """
    n = np.array([len(values) for values in minutes], dtype=np.int64)
    ends = np.array(dropped, dtype=np.int64).reshape(-1, 2)
    is_left_empty = ends.sum(axis=1) >= n
    ends[is_left_empty] = 0
    width = int(n.max(initial=1))
    runs = Runs(
        minutes=_fill(minutes, width),
        counts=_fill(counts, width),
        n=n,
        low=ends[:, 0],
        high=ends[:, 1],
        reference=np.zeros(len(n)),
    )
    mean = average(runs.counts, runs)
    reference = np.array(ratios, dtype=np.float64) * mean
    # runs whose samples are unknown have no reference
    reference[np.isnan(mean)] = 0
    return replace(runs, reference=reference)


def _fill(rows: Sequence[Sequence[float]], width: int) -> Numbers:
    """Return rows of unequal length as one array, filled up with NaN."""
    filled = np.full((len(rows), width), np.nan)
    for row, values in enumerate(rows):
        filled[row, : len(values)] = values
    return filled


def average(values: Numbers, runs: Runs) -> Numbers:
    """Return the olympic mean of each row."""
    ranks = np.arange(values.shape[1])
    start = runs.low[:, None]
    stop = (runs.n - runs.high)[:, None]
    is_kept = (ranks >= start) & (ranks < stop)
    kept = np.where(is_kept, np.sort(values, axis=1), 0)
    means: Numbers = kept.sum(axis=1) / is_kept.sum(axis=1)
    return means


def estimate_errors(values: Numbers, runs: Runs) -> tuple[Numbers, Numbers]:
    """Return two standard errors of the olympic mean of each row: of the plain mean, and by Yuen
    (1974).

    Yuen's winsorises the values left out. It is larger where the middle of the distribution is
    empty, such as with two evaluations at which most runs stop, and 0 where less than two values
    are kept.
    """
    n = runs.n
    variance = _sum_squares(values, n) / np.maximum(n - 1, 1)
    plain = np.sqrt(variance / n)
    first = runs.low[:, None]
    last = (n - runs.high - 1)[:, None]
    ordered = np.sort(values, axis=1)
    fastest = np.take_along_axis(ordered, first, axis=1)
    slowest = np.take_along_axis(ordered, last, axis=1)
    # what fills up a row is NaN, and stays so
    winsorised = np.clip(ordered, fastest, slowest)
    kept = n - runs.low - runs.high
    squares = _sum_squares(winsorised, n) / np.maximum(kept * (kept - 1), 1)
    yuen = np.where(kept > 1, np.sqrt(squares), 0)
    return plain, yuen


def _sum_squares(values: Numbers, n: Integers) -> Numbers:
    means = np.nansum(values, axis=1) / n
    distances = values - means[:, None]
    squares: Numbers = np.nansum(distances**2, axis=1)
    return squares


def estimate_intervals(runs: Runs, groups: Groups) -> Intervals:
    """Estimate the interval of each score, relative to it; `groups` as for `estimate_parts`."""
    parts = estimate_parts(runs, groups)
    arm = parts.convergence.find_arm()
    error = np.maximum(parts.convergence.plain, parts.convergence.yuen)
    below = np.abs(1 - expect_scores(parts.reference, -arm, error))
    above = np.abs(1 - expect_scores(parts.reference, arm, error))
    speed_arm = np.hypot(parts.speed.find_arm(), SESSION_ARM)
    # Zou and Donner (2008): each limit of a product from the distances of its factors' own limits.
    low = np.maximum(1 - np.hypot(below, speed_arm), 0)
    high = 1 + np.hypot(above, speed_arm)
    return Intervals(
        low=np.round(low, DIGITS),
        high=np.round(high, DIGITS),
        methods=parts.methods,
    )


def estimate_parts(runs: Runs, groups: Groups) -> Estimates:
    """Estimate speed and convergence of each entry.

    Of the first of its `groups` with enough runs, the variance of the convergence is used.
    """
    has_counts = ~np.isnan(runs.counts[:, 0])
    # runs whose samples are unknown count as if they had converged alike
    alike = np.where(np.isnan(runs.minutes), np.nan, 1.0)
    counts = np.where(has_counts[:, None], runs.counts, alike)
    mean = average(counts, runs)
    minutes = average(runs.minutes, runs)
    relative_counts = counts / mean[:, None]
    relative_minutes = runs.minutes / minutes[:, None]
    speed = _estimate_error(relative_minutes - relative_counts, runs)
    own = _estimate_error(relative_counts, runs)
    pools = _choose_pools(own, runs, groups, has_counts)
    is_pooled = np.array([pool.df > 0 for pool in pools], dtype=bool)
    methods = np.full(len(pools), OWN, dtype=object)
    methods[has_counts] = ALONE
    methods[has_counts & is_pooled] = GROUP
    reference = runs.reference / mean
    return Estimates(
        scores=minutes * np.maximum(reference, 1),
        reference=reference,
        speed=speed,
        convergence=_join_errors(own, pools, runs.n),
        methods=methods.tolist(),
    )


def _estimate_error(values: Numbers, runs: Runs) -> Error:
    plain, yuen = estimate_errors(values, runs)
    kept = runs.n - runs.low - runs.high
    return Error(plain, yuen, df=runs.n - 1, yuen_df=kept - 1)


def _join_errors(own: Error, pools: Sequence[Pool], n: Integers) -> Error:
    """Return the errors of convergence with what comparable entries say of them."""
    # without pools, too, an array of two dimensions
    rows = np.array(pools).reshape(-1, len(Pool._fields))
    variance, yuen_variance, df, yuen_df = rows.T
    is_pooled = df > 0
    weight = np.where(is_pooled, GROUP_WEIGHT, 0)
    squares = (own.plain**2 + weight * (variance / n)) / (1 + weight)
    # the group adds the entry's degrees as often as it weighs, and no more than it has
    group_df = np.minimum(weight * own.df, df.astype(np.int64))
    return Error(
        plain=np.sqrt(squares),
        yuen=np.where(is_pooled, np.sqrt(yuen_variance / n), own.yuen),
        df=own.df + group_df,
        yuen_df=np.where(is_pooled, yuen_df.astype(np.int64), own.yuen_df),
    )


def _choose_pools(own: Error, runs: Runs, groups: Groups, has_counts: Flags) -> list[Pool]:
    """Return, for each entry, the pool of its first group that has MIN_GROUP_DF."""
    members: dict[Hashable, list[int]] = {}
    for row, names in enumerate(groups):
        if has_counts[row] and own.df[row] > 0:
            for name in names:
                members.setdefault(name, []).append(row)
    pools = {}
    for name, rows in members.items():
        pool = _make_pool(own, runs, rows)
        if pool.df >= MIN_GROUP_DF:
            pools[name] = pool
    chosen = []
    for row, names in enumerate(groups):
        chosen.append(_find_pool(names, pools) if has_counts[row] else NO_POOL)
    return chosen


def _find_pool(names: Sequence[Hashable], pools: Mapping[Hashable, Pool]) -> Pool:
    for name in names:
        if name in pools:
            return pools[name]
    return NO_POOL


def _make_pool(own: Error, runs: Runs, rows: Sequence[int]) -> Pool:
    """Return the mean variances of entries, weighted by their degrees of freedom."""
    n = runs.n[rows]
    variance = own.plain[rows] ** 2 * n
    yuen_variance = own.yuen[rows] ** 2 * n
    df = own.df[rows]
    yuen_df = own.yuen_df[rows]
    return Pool(
        variance=(variance @ df) / df.sum(),
        yuen_variance=(yuen_variance @ yuen_df) / max(yuen_df.sum(), 1),
        df=df.sum(),
        yuen_df=yuen_df.sum(),
    )


def expect_scores(reference: Numbers, arm: Numbers, error: Numbers) -> Numbers:
    """Return the scores, over the official ones, if the mean samples were off by `arm`."""
    return _expect_normalised(1 + arm, reference, error) / np.maximum(reference, 1)


def _expect_normalised(mean: Numbers, reference: Numbers, error: Numbers) -> Numbers:
    """Return the mean of max(X, reference) for a normal X with this mean and standard error."""
    z = (mean - reference) / np.maximum(error, TINY)
    near = np.clip(z, -MAX_Z, MAX_Z)
    density = np.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    overshoot = density + near * compute_normal_share(near)
    return np.where(z > MAX_Z, mean, reference + error * overshoot)


def compute_normal_share(z: Numbers) -> Numbers:
    """Return the probability that a standard normal variable is below z."""
    shares = []
    for value in z.tolist():
        shares.append(math.erfc(-value / math.sqrt(2)) / 2)
    return np.array(shares)


def list_quantiles(df: Integers) -> Numbers:
    """Return the quantile for each number of degrees of freedom, 0 for none."""
    unique, inverse = np.unique(df, return_inverse=True)
    quantiles = np.zeros(len(unique))
    for place, value in enumerate(unique.tolist()):
        if value > 0:
            quantiles[place] = compute_t_quantile(COVERAGE, value)
    return quantiles[inverse]


@cache
def compute_t_quantile(coverage: float, df: int) -> float:
    """Return the t that a variable with `df` degrees of freedom stays within, on both sides, with
    this probability.
    """
    tail = 1 - coverage
    df = min(df, MAX_DF)  # the series is as long as they are many
    t = NormalDist().inv_cdf(1 - tail / 2)
    # Newton from below: the distribution function is concave for t > 0, so no overshoot
    for _ in range(MAX_STEPS):
        excess = float(compute_two_sided_p(np.float64(t), df)) - tail
        step = excess / (2 * _compute_density(t, df))
        t += step
        if abs(step) <= 1e-12 * t:
            break
    return t


def compute_two_sided_p(t: Any, df: int) -> Any:
    """Return the probability that |T| exceeds t, for any array of t.

    Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    angle = np.arctan2(t, math.sqrt(df))
    sine = np.sin(angle)
    cosine = np.cos(angle)
    is_odd = df % 2
    # a series in powers of the cosine: odd ones for odd degrees of freedom, none for one
    term = cosine**is_odd
    total = term if df > 1 else 0 * term
    for n in range(2 + is_odd, df - 1, 2):
        term = term * cosine**2 * ((n - 1) / n)
        total = total + term
    within = sine * total
    if is_odd:
        within = 2 / math.pi * (angle + within)
    return np.maximum(1 - within, 0)


def _compute_density(t: float, df: int) -> float:
    log_ratio = math.lgamma((df + 1) / 2) - math.lgamma(df / 2)
    log_scale = log_ratio - math.log(df * math.pi) / 2
    log_tail = (df + 1) / 2 * math.log1p(t * t / df)
    return math.exp(log_scale - log_tail)
