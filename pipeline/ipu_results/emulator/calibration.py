"""Two numbers fitted on the C2 rows and frozen: cycles of a superstep and host seconds of an image."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from ipu_results.emulator.target import Target


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured batch: what the model knows of it, and the seconds that it took.

    `fixed` is cycles/clock + transfers, `supersteps` over the clock is what kappa multiplies, `images` what the host's.
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
    """The fit, and those with one row left out each, which give the band of every prediction."""

    fit: Fit
    jackknife: tuple[Fit, ...]
    constants: str

    @property
    def id(self) -> str:
        """Changes with the fit and with the constants of the machine that it was made on."""
        told = f"{self.constants} {self.fit.superstep:.6g} {self.fit.per_image:.6g}"
        return f"c2-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def calibrate(observed: Sequence[Observation], target: Target) -> Calibration:
    """Relative least squares over all rows, and with each row left out."""
    everything = fit(observed)
    left_out = tuple(fit([*observed[:at], *observed[at + 1 :]]) for at in range(len(observed)))
    return Calibration(everything, left_out, target.digest)


def fit(observed: Sequence[Observation]) -> Fit:
    unknown = np.array([[one.supersteps, one.images] for one in observed])
    rest = np.array([one.seconds - one.fixed for one in observed])
    weight = 1 / np.array([one.seconds for one in observed])
    solution, *_ = np.linalg.lstsq(unknown * weight[:, None], rest * weight, rcond=None)
    return Fit(float(solution[0]), float(solution[1]))


def seconds(one: Observation, numbers: Fit) -> float:
    return one.fixed + one.supersteps * numbers.superstep + one.images * numbers.per_image


@cache
def frozen() -> Calibration:
    """The committed calibration; `validate-emulator` makes it anew from the warehouse and compares."""
    text = (files("ipu_results.emulator") / "calibration.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    fits = tuple(Fit(**one) for one in data["jackknife"])
    return Calibration(Fit(**data["fit"]), fits, data["constants"])


def told(calibration: Calibration) -> str:
    """The text of `calibration.toml`."""
    lines = [
        "# Made by `ipu-results validate-emulator --recalibrate` from the six C2 rows; not to be edited.",
        f'constants = "{calibration.constants}"',
        "",
        "[fit]",
        *_numbers(calibration.fit),
    ]
    for one in calibration.jackknife:
        lines += ["", "[[jackknife]]", *_numbers(one)]
    return "\n".join(lines) + "\n"


def _numbers(one: Fit) -> tuple[str, str]:
    return f"superstep = {one.superstep!r}", f"per_image = {one.per_image!r}"
