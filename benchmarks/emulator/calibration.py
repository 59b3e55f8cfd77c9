"""Fit the two numbers of the calibration to the six C2 rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ipu_results.emulator.target import Calibration, Fit, Target


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured batch of `seconds`: `fixed` + `supersteps` · κ + s + `images` · h.

    `fixed` is cycles ÷ clock and transfers, in seconds; `supersteps` are already divided by the
    clock.
    """

    fixed: float
    supersteps: float
    images: int
    seconds: float


NOTHING = Fit(0.0, 0.0, 0.0)  # before the fit


def calibrate(observed: Sequence[Observation], target: Target) -> Calibration:
    """Fit all rows, again with each row excluded, and again with κ at both ends of its range."""
    kappa = target["superstep.cycles"]
    jackknife = []
    for at in range(len(observed)):
        others = [*observed[:at], *observed[at + 1 :]]
        jackknife.append(fit_observations(others, kappa))
    ends = []
    for end in target.constants["superstep.cycles"].range or ():
        ends.append(fit_observations(observed, end))
    fit = fit_observations(observed, kappa)
    return Calibration(fit, tuple(jackknife), target.digest, tuple(ends))


def fit_observations(observed: Sequence[Observation], superstep: float) -> Fit:
    """Solve for s and h by least squares of the relative errors, at a superstep of this many
    cycles.
    """
    unknown = []
    rest = []
    seconds = []
    for row in observed:
        unknown.append([1.0, row.images])
        rest.append(row.seconds - row.fixed - row.supersteps * superstep)
        seconds.append(row.seconds)
    per_batch, per_image = solve_relative(unknown, rest, seconds)
    return Fit(superstep, per_batch, per_image)


def solve_relative(
    unknown: Sequence[Sequence[float]], rest: Sequence[float], seconds: Sequence[float]
) -> list[float]:
    """Solve `unknown` · x = `rest` by least squares of the errors relative to `seconds`."""
    weight = 1 / np.array(seconds)
    left = np.array(unknown) * weight[:, None]
    right = np.array(rest) * weight
    solution = np.linalg.lstsq(left, right, rcond=None)[0]
    return [float(value) for value in solution]
