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
from typing import Any

import numpy as np
import numpy.typing as npt

COVERAGE = 0.95
MIN_RUNS = 3  # with two runs t is 12.7: such an interval says nothing
MIN_GROUP_DF = 20  # fewer runs of comparable entries would be as uncertain as the entry's own
GROUP_WEIGHT = (
    2  # of the comparable entries' variance, where the entry's own has 1: chosen by simulation
)
# relative standard deviation of speed from one session to the next, which the runs of one session
# cannot show: `python -m benchmarks mlperf_independence` estimates it from pauses within entries
SESSION = 0.001
SESSION_ARM = SESSION * NormalDist().inv_cdf(0.5 + COVERAGE / 2)
MAX_DF = 200  # of a quantile: its t is 0.6 % above that of infinitely many
OWN, GROUP, ALONE = METHODS = ("own-runs", "group-convergence", "own-runs-alone")
MAX_STEPS = 100
DIGITS = (
    9  # of an end, relative to its score: exp and sums have other last bits on other processors
)
NO_POOL = (0.0, 0.0, 0, 0)
TINY = 1e-300  # keeps a division by a spread of zero from a warning

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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
        return np.maximum(
            list_quantiles(self.df) * self.plain, list_quantiles(self.yuen_df) * self.yuen
        )


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
    ends = np.array(dropped, dtype=np.int64).reshape(-1, 2).T
    low, high = np.where(ends.sum(axis=0) >= n, 0, ends)
    filled = [np.full((len(minutes), n.max(initial=1)), np.nan) for _ in range(2)]
    for table, rows in zip(filled, (minutes, counts), strict=True):
        for row, values in enumerate(rows):
            table[row, : len(values)] = values
    runs = Runs(filled[0], filled[1], n, low, high, np.zeros(len(n)))
    own = average(filled[1], runs)
    return replace(
        runs, reference=np.where(np.isnan(own), 0, np.array(ratios, dtype=np.float64) * own)
    )


def average(values: Numbers, runs: Runs) -> Numbers:
    """Return the olympic mean of each row."""
    ranks = np.arange(values.shape[1])
    kept = (ranks >= runs.low[:, None]) & (ranks < (runs.n - runs.high)[:, None])
    means: Numbers = np.where(kept, np.sort(values, axis=1), 0).sum(axis=1) / kept.sum(axis=1)
    return means


def estimate_errors(values: Numbers, runs: Runs) -> tuple[Numbers, Numbers]:
    """Return two standard errors of the olympic mean of each row: of the plain mean, and by Yuen
    (1974).

    Yuen's winsorises the values left out. It is larger where the middle of the distribution is
    empty, such as with two evaluations at which most runs stop, and 0 where less than two values
    are kept.
    """
    ranks = np.arange(values.shape[1])
    n = runs.n
    kept = runs.n - runs.low - runs.high
    plain = np.sqrt(_sum_squares(values, n) / np.maximum(n - 1, 1) / n)
    ordered = np.sort(values, axis=1)
    ends = (
        np.take_along_axis(ordered, at[:, None], axis=1) for at in (runs.low, n - runs.high - 1)
    )
    winsorised = np.where(ranks < n[:, None], np.clip(ordered, *ends), np.nan)
    squares = _sum_squares(winsorised, n) / np.maximum(kept * (kept - 1), 1)
    return plain, np.where(kept > 1, np.sqrt(squares), 0)


def _sum_squares(values: Numbers, n: Integers) -> Numbers:
    means = np.nansum(values, axis=1) / n
    squares: Numbers = np.nansum((values - means[:, None]) ** 2, axis=1)
    return squares


def estimate_intervals(runs: Runs, groups: Sequence[Sequence[Hashable]]) -> Intervals:
    """Estimate the interval of each score, relative to it; `groups` as for `estimate_parts`."""
    parts = estimate_parts(runs, groups)
    arm = parts.convergence.find_arm()
    error = np.maximum(parts.convergence.plain, parts.convergence.yuen)
    lower, upper = (
        np.abs(1 - expect_scores(parts.reference, sign * arm, error)) for sign in (-1.0, 1.0)
    )
    speed_arm = np.hypot(parts.speed.find_arm(), SESSION_ARM)
    # Zou and Donner (2008): each limit of a product from the distances of its factors' own limits.
    low = np.maximum(1 - np.hypot(lower, speed_arm), 0)
    high = 1 + np.hypot(upper, speed_arm)
    return Intervals(np.round(low, DIGITS), np.round(high, DIGITS), parts.methods)


def estimate_parts(runs: Runs, groups: Sequence[Sequence[Hashable]]) -> Estimates:
    """Estimate speed and convergence of each entry.

    `groups` names, for each entry, the comparable ones: of the first group with enough runs its
    variance of the convergence is used.
    """
    has_counts = ~np.isnan(runs.counts[:, 0])
    counts = np.where(
        has_counts[:, None], runs.counts, np.where(np.isnan(runs.minutes), np.nan, 1.0)
    )
    mean = average(counts, runs)
    minutes = average(runs.minutes, runs)
    residuals = runs.minutes / minutes[:, None] - counts / mean[:, None]
    speed = Error(*estimate_errors(residuals, runs), runs.n - 1, runs.n - runs.low - runs.high - 1)
    reference = runs.reference / mean
    convergence, is_pooled = _estimate_convergence(counts / mean[:, None], runs, groups, has_counts)
    scores = minutes * np.maximum(reference, 1)
    methods = np.where(has_counts, np.where(is_pooled, GROUP, ALONE), OWN)
    return Estimates(scores, reference, speed, convergence, methods.tolist())


def _estimate_convergence(
    counts: Numbers,
    runs: Runs,
    groups: Sequence[Sequence[Hashable]],
    has_counts: Flags,
) -> tuple[Error, Flags]:
    """Return the errors of the mean of relative counts, and whether others have a say."""
    plain, yuen = estimate_errors(counts, runs)
    own_df = runs.n - 1
    kept_df = runs.n - runs.low - runs.high - 1
    pools = _pool(plain**2 * runs.n, yuen**2 * runs.n, own_df, kept_df, groups, has_counts)
    pooled = np.array(
        [next((pools[name] for name in names if name in pools), NO_POOL) for names in groups]
    ).reshape(-1, 4)
    is_pooled = has_counts & (pooled[:, 2] > 0)
    variance, yuen_variance = (pooled[:, column] / runs.n for column in (0, 1))
    weight = np.where(is_pooled, GROUP_WEIGHT, 0)
    error = Error(
        plain=np.sqrt((plain**2 + weight * variance) / (1 + weight)),
        yuen=np.where(is_pooled, np.sqrt(yuen_variance), yuen),
        df=own_df + np.minimum(weight * own_df, pooled[:, 2].astype(np.int64)),
        yuen_df=np.where(is_pooled, pooled[:, 3].astype(np.int64), kept_df),
    )
    return error, is_pooled


def _pool(
    plain: Numbers,
    yuen: Numbers,
    own_df: Integers,
    kept_df: Integers,
    groups: Sequence[Sequence[Hashable]],
    has_counts: Flags,
) -> Mapping[Hashable, tuple[float, float, int, int]]:
    """Pool the variances of one run within the entries of each group that has MIN_GROUP_DF: two
    kinds, and their df.
    """
    members: dict[Hashable, list[int]] = {}
    for row, names in enumerate(groups):
        if has_counts[row] and own_df[row] > 0:
            for name in names:
                members.setdefault(name, []).append(row)
    pools = {}
    for name, rows in members.items():
        df = int(own_df[rows].sum())
        yuen_df = int(kept_df[rows].sum())
        if df >= MIN_GROUP_DF:
            yuen_variance = float(yuen[rows] @ kept_df[rows]) / max(yuen_df, 1)
            pools[name] = (float(plain[rows] @ own_df[rows]) / df, yuen_variance, df, yuen_df)
    return pools


def expect_scores(reference: Numbers, arm: Numbers, error: Numbers) -> Numbers:
    """Return the scores, over the official ones, if the mean samples were off by `arm`."""
    return _expect_normalised(1 + arm, reference, error) / np.maximum(reference, 1)


def _expect_normalised(mean: Numbers, reference: Numbers, error: Numbers) -> Numbers:
    """Return the mean of max(X, reference) for a normal X with this mean and standard error."""
    z = (mean - reference) / np.maximum(error, TINY)
    near = np.clip(z, -40, 40)
    overshoot = np.exp(-near * near / 2) / math.sqrt(2 * math.pi) + near * compute_normal_share(
        near
    )
    return np.where(z > 40, mean, reference + error * overshoot)


def compute_normal_share(z: Numbers) -> Numbers:
    """Return the probability that a standard normal variable is below z."""
    return np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in z.tolist()])


def list_quantiles(df: Integers) -> Numbers:
    """Return the quantile for each number of degrees of freedom, 0 for none."""
    unique, inverse = np.unique(df, return_inverse=True)
    quantiles = [
        compute_t_quantile(COVERAGE, value) if value > 0 else 0.0 for value in unique.tolist()
    ]
    return np.array(quantiles)[inverse]


@cache
def compute_t_quantile(coverage: float, df: int) -> float:
    """Return the t that a variable with `df` degrees of freedom stays within, on both sides, with
    this probability.
    """
    tail = 1 - coverage
    df = min(df, MAX_DF)
    t = NormalDist().inv_cdf(1 - tail / 2)
    # Newton from below: the distribution function is concave for t > 0, so no overshoot
    for _ in range(MAX_STEPS):
        step = (float(compute_two_sided_p(np.float64(t), df)) - tail) / (
            2 * _compute_density(t, df)
        )
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
    term = cosine if is_odd else np.ones_like(cosine)
    total = np.zeros_like(cosine) if df == 1 else term
    for n in range(2 + is_odd, df - 1, 2):
        term = term * cosine**2 * ((n - 1) / n)
        total = total + term
    within = 2 / math.pi * (angle + sine * total) if is_odd else sine * total
    return np.maximum(1 - within, 0)


def _compute_density(t: float, df: int) -> float:
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))
