"""Student's t distribution in closed form, so that `ingest` needs no SciPy. Accurate to about ten digits."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

EPSILON = 1e-14
TINY = 1e-300  # keeps the continued fraction from dividing by zero
MAX_STEPS = 500


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
