"""Fit two numbers on the six C2 rows: host seconds of a batch (s) and of an image (h).

The cycles of a superstep (κ) are a constant of the machine, which no source states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ipu_results.emulator.data import read_toml
from ipu_results.emulator.target import Target, get_range

CALIBRATION_FILE = "calibration.toml"
HEADER = "# Made by `python -m benchmarks.emulator freeze` from the six C2 rows; not to be edited."


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured batch of `seconds`: `fixed` + `supersteps` · κ + s + `images` · h.

    `fixed` is cycles ÷ clock and transfers, in seconds; `supersteps` are already divided by the clock.
    """

    fixed: float
    supersteps: float
    images: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Fit:
    """`superstep` in cycles, `per_batch` and `per_image` in seconds."""

    superstep: float
    per_batch: float
    per_image: float


NOTHING = Fit(0.0, 0.0, 0.0)  # before the fit


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fit, those with one row excluded each, those at both ends of the range of κ, and the machine's digest.

    The band of every prediction is from the fits of `jackknife` and `ends`.
    """

    fit: Fit
    jackknife: tuple[Fit, ...]
    constants: str
    ends: tuple[Fit, ...] = ()

    @property
    def id(self) -> str:
        """Name the fit and the constants of the machine that it was made on: either changes it."""
        text = f"{self.constants} {self.fit.superstep:.6g} {self.fit.per_batch:.6g} {self.fit.per_image:.6g}"
        return f"c2-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def calibrate(observed: Sequence[Observation], target: Target) -> Calibration:
    """Fit all rows, again with each row excluded, and again with κ at both ends of its range."""
    kappa = target["superstep.cycles"]
    jackknife = tuple(fit_observations([*observed[:at], *observed[at + 1 :]], kappa) for at in range(len(observed)))
    ends = tuple(fit_observations(observed, end) for end in get_range(dict(target.constants)["superstep.cycles"]))
    return Calibration(fit_observations(observed, kappa), jackknife, target.digest, ends)


def fit_observations(observed: Sequence[Observation], superstep: float) -> Fit:
    """Solve for s and h by least squares of the relative errors, at a superstep of this many cycles."""
    rest = [row.seconds - row.fixed - row.supersteps * superstep for row in observed]
    seconds = [row.seconds for row in observed]
    per_batch, per_image = solve_relative([[1.0, row.images] for row in observed], rest, seconds)
    return Fit(superstep, per_batch, per_image)


def solve_relative(unknown: Sequence[Sequence[float]], rest: Sequence[float], seconds: Sequence[float]) -> list[float]:
    """Solve `unknown` · x = `rest` by least squares of the errors relative to `seconds`."""
    weight = 1 / np.array(seconds)
    solution, *_ = np.linalg.lstsq(np.array(unknown) * weight[:, None], np.array(rest) * weight, rcond=None)
    return [float(value) for value in solution]


def predict_seconds(row: Observation, fit: Fit) -> float:
    return row.fixed + row.supersteps * fit.superstep + fit.per_batch + row.images * fit.per_image


@cache
def load_calibration() -> Calibration:
    """Load the committed calibration. `validate-emulator` recomputes it from the warehouse and compares."""
    data = read_toml(CALIBRATION_FILE)
    jackknife, ends = (tuple(Fit(**entry) for entry in data[name]) for name in ("jackknife", "ends"))
    return Calibration(Fit(**data["fit"]), jackknife, data["constants"], ends)


def format_calibration(calibration: Calibration) -> str:
    """Return the text of `calibration.toml`."""
    lines = [HEADER, f'constants = "{calibration.constants}"', "", "[fit]", *_format_fit(calibration.fit)]
    for name, fits in (("jackknife", calibration.jackknife), ("ends", calibration.ends)):
        for fit in fits:
            lines += ["", f"[[{name}]]", *_format_fit(fit)]
    return "\n".join(lines) + "\n"


def _format_fit(fit: Fit) -> list[str]:
    return [f"{name} = {getattr(fit, name)!r}" for name in ("superstep", "per_batch", "per_image")]
