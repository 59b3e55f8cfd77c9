"""Estimate how far a score may move from one submission to the next, from the spread of its runs.

The interval covers the score that the same system would have on average over many submissions. Its half-width is the
larger of two. One rests on the entry's own runs: Student's t times their standard error. The other rests on how
differently the runs of comparable entries converged: where most runs stop at the same evaluation, five runs often show
no spread although some runs of other entries stopped later. `python -m benchmarks mlperf_intervals` has the coverage.

Student's t is in closed form, accurate to about ten digits, so that `ingest` needs no SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean

COVERAGE = 0.95
MIN_RUNS = 3  # with two runs t is 12.7: such an interval says nothing
MIN_GROUP_DF = 20  # fewer runs of comparable entries would be as uncertain as the entry's own
OWN, GROUP, ALONE = METHODS = ("own-runs", "group-convergence", "own-runs-alone")
EPSILON = 1e-14  # relative change at which the continued fraction has converged, some units of the last place
TINY = 1e-300  # keeps the continued fraction from dividing by zero
MAX_STEPS = 500  # far more than either loop takes for any number of runs


@dataclass(frozen=True, slots=True)
class Spread:
    """The standard error of a score, in minutes, and its degrees of freedom."""

    standard_error: float
    df: int

    def half_width(self, coverage: float = COVERAGE) -> float:
        """Return how far the interval reaches to each side."""
        return compute_t_quantile(coverage, self.df) * self.standard_error


@dataclass(frozen=True, slots=True)
class ScoreInterval:
    """The score with its two spreads; `group` is None without enough comparable entries."""

    minutes: float
    own: Spread
    group: Spread | None

    @property
    def method(self) -> str:
        """Return which spread gives the larger half-width, ALONE without comparable entries."""
        if self.group is None:
            return ALONE
        return GROUP if self.group.half_width() > self.own.half_width() else OWN

    def half_width(self, coverage: float = COVERAGE) -> float:
        """Return the larger half-width of the two spreads."""
        own = self.own.half_width(coverage)
        return own if self.group is None else max(own, self.group.half_width(coverage))


@dataclass(frozen=True, slots=True)
class GroupSpread:
    """The relative variance within entries of what their runs needed to converge, pooled."""

    variance: float
    df: int


def pool_convergence(entries: Iterable[Sequence[float]]) -> GroupSpread | None:
    """Pool the counts at convergence of entries, each a list of its runs. None with fewer than MIN_GROUP_DF."""
    squares, df = 0.0, 0
    for counts in entries:
        mean = fmean(counts)
        squares += math.fsum((count / mean - 1) ** 2 for count in counts)
        df += len(counts) - 1
    return GroupSpread(squares / df, df) if df >= MIN_GROUP_DF else None


def estimate_interval(
    score: float, minutes: Sequence[float], factor: float, group: GroupSpread | None
) -> ScoreInterval | None:
    """Estimate the interval of a score in minutes.

    `minutes` are those of the counted runs, each log once, before the scaling `factor`. None with fewer than MIN_RUNS.
    """
    n = len(minutes)
    if n < MIN_RUNS:
        return None
    own = Spread(_compute_deviation(minutes) * factor / math.sqrt(n), n - 1)
    shared = None if group is None else Spread(math.sqrt(group.variance / n) * score, group.df)
    return ScoreInterval(score, own, shared)


def _compute_deviation(values: Sequence[float]) -> float:
    """Compute the standard deviation (n - 1). `statistics.stdev` is exact and takes many times as long."""
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def are_separable(faster: ScoreInterval, slower: ScoreInterval, coverage: float = COVERAGE) -> bool:
    """Return whether the interval of the difference of two scores excludes zero.

    That interval follows from the two of the scores: the square of its half-width is the sum of theirs (Zou and
    Donner, 2008, for two independent estimates).
    """
    return slower.minutes - faster.minutes > math.hypot(faster.half_width(coverage), slower.half_width(coverage))


@cache
def compute_t_quantile(coverage: float, df: int) -> float:
    """Return the t that a variable with `df` degrees of freedom stays within, on both sides, with this probability."""
    tail = 1 - coverage
    t = NormalDist().inv_cdf(1 - tail / 2)
    for _ in range(MAX_STEPS):  # Newton from below: the distribution function is concave for t > 0, so no overshoot
        step = (compute_two_sided_p(t, df) - tail) / (2 * _compute_density(t, df))
        t += step
        if abs(step) <= 1e-12 * t:
            break
    return t


def compute_two_sided_p(t: float, df: float) -> float:
    """Return the probability that |T| exceeds t for `df` degrees of freedom."""
    return _compute_beta_share(df / 2, 0.5, df / (df + t * t))


def _compute_density(t: float, df: float) -> float:
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))


def _compute_beta_share(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if not 0 < x < 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _evaluate_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _evaluate_fraction(b, a, 1 - x) / b


def _evaluate_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's algorithm."""
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or TINY)
    value = d
    for m in range(1, MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or TINY)
            c = (1 + term / c) or TINY
            value *= d * c
        if abs(d * c - 1) < EPSILON:
            break
    return value
