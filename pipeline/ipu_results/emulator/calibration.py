"""Fit two numbers on the six C2 rows: cycles of a superstep (κ) and host seconds of an image (h)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ipu_results.emulator.data import read_toml
from ipu_results.emulator.target import Target

CALIBRATION_FILE = "calibration.toml"
HEADER = "# Made by `python -m benchmarks.emulator freeze` from the six C2 rows; not to be edited."


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured batch of `seconds`: `fixed` + `supersteps` · κ + `images` · h.

    `fixed` is cycles ÷ clock and transfers, in seconds; `supersteps` are already divided by the clock.
    """

    fixed: float
    supersteps: float
    images: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Fit:
    """`superstep` in cycles, `per_image` in seconds."""

    superstep: float
    per_image: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fit, those with one row excluded each (the band of every prediction), and the digest of the machine."""

    fit: Fit
    jackknife: tuple[Fit, ...]
    constants: str

    @property
    def id(self) -> str:
        """Name the fit and the constants of the machine that it was made on: either changes it."""
        text = f"{self.constants} {self.fit.superstep:.6g} {self.fit.per_image:.6g}"
        return f"c2-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def calibrate(observed: Sequence[Observation], target: Target) -> Calibration:
    """Fit all rows, and again with each row excluded."""
    jackknife = tuple(fit_observations([*observed[:at], *observed[at + 1 :]]) for at in range(len(observed)))
    return Calibration(fit_observations(observed), jackknife, target.digest)


def fit_observations(observed: Sequence[Observation]) -> Fit:
    """Solve for κ and h by least squares of the relative errors."""
    unknown = np.array([[row.supersteps, row.images] for row in observed])
    rest = np.array([row.seconds - row.fixed for row in observed])
    weight = 1 / np.array([row.seconds for row in observed])  # makes squares those of relative errors
    solution, *_ = np.linalg.lstsq(unknown * weight[:, None], rest * weight, rcond=None)
    return Fit(float(solution[0]), float(solution[1]))


def predict_seconds(row: Observation, fit: Fit) -> float:
    return row.fixed + row.supersteps * fit.superstep + row.images * fit.per_image


@cache
def load_calibration() -> Calibration:
    """Load the committed calibration. `validate-emulator` recomputes it from the warehouse and compares."""
    data = read_toml(CALIBRATION_FILE)
    return Calibration(Fit(**data["fit"]), tuple(Fit(**entry) for entry in data["jackknife"]), data["constants"])


def format_calibration(calibration: Calibration) -> str:
    """Return the text of `calibration.toml`."""
    lines = [HEADER, f'constants = "{calibration.constants}"', "", "[fit]", *_format_fit(calibration.fit)]
    for fit in calibration.jackknife:
        lines += ["", "[[jackknife]]", *_format_fit(fit)]
    return "\n".join(lines) + "\n"


def _format_fit(fit: Fit) -> tuple[str, str]:
    return f"superstep = {fit.superstep!r}", f"per_image = {fit.per_image!r}"
