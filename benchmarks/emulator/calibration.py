"""Fit the two numbers of the calibration to the six C2 rows, and say how far assumed constants may
be off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ipu_results.emulator.target import Calibration, Constant, Fit, Target


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


# of a value that an assumed constant may be less or more, where no range is stated: chosen, not
# measured
SHARE = 0.5


def get_range(constant: Constant) -> tuple[float, float]:
    """Return what an assumed constant may be: as stated, else half less and half more.

    Supersteps are whole numbers.
    """
    low, high = constant.range or (constant.value * (1 - SHARE), constant.value * (1 + SHARE))
    return (math.floor(low), math.ceil(high)) if constant.unit == "superstep" else (low, high)


def calibrate(observed: Sequence[Observation], target: Target) -> Calibration:
    """Fit all rows, again with each row excluded, and again with κ at both ends of its range."""
    kappa = target["superstep.cycles"]
    jackknife = tuple(
        fit_observations([*observed[:at], *observed[at + 1 :]], kappa)
        for at in range(len(observed))
    )
    ends = tuple(
        fit_observations(observed, end) for end in get_range(target.constants["superstep.cycles"])
    )
    return Calibration(fit_observations(observed, kappa), jackknife, target.digest, ends)


def fit_observations(observed: Sequence[Observation], superstep: float) -> Fit:
    """Solve for s and h by least squares of the relative errors, at a superstep of this many
    cycles.
    """
    rest = [row.seconds - row.fixed - row.supersteps * superstep for row in observed]
    seconds = [row.seconds for row in observed]
    per_batch, per_image = solve_relative([[1.0, row.images] for row in observed], rest, seconds)
    return Fit(superstep, per_batch, per_image)


def solve_relative(
    unknown: Sequence[Sequence[float]], rest: Sequence[float], seconds: Sequence[float]
) -> list[float]:
    """Solve `unknown` · x = `rest` by least squares of the errors relative to `seconds`."""
    weight = 1 / np.array(seconds)
    solution, *_ = np.linalg.lstsq(
        np.array(unknown) * weight[:, None], np.array(rest) * weight, rcond=None
    )
    return [float(value) for value in solution]


def predict_seconds(row: Observation, fit: Fit) -> float:
    return row.fixed + row.supersteps * fit.superstep + fit.per_batch + row.images * fit.per_image
