"""Describe the machines by their constants, and the two numbers that are fitted on the six C2 rows.

These are the host's seconds of a batch and of an image. The cycles of a superstep are a constant of
the machine, which no source states.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from ipu_results.errors import UnrecognisedModelError


def read_text(name: str) -> str:
    return files("ipu_results.emulator").joinpath("data", name).read_text(encoding="utf-8")


@cache
def read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(read_text(name))


CALIBRATION_FILE = "calibration.toml"


@dataclass(frozen=True, slots=True)
class Fit:
    """The host's seconds `per_batch` and `per_image`, fitted where a superstep has these cycles."""

    superstep: float
    per_batch: float
    per_image: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is fitted on the C2 rows.

    Each fit of `jackknife` leaves out one row. `ends` are at both ends of the range of a superstep.
    `constants` is the digest of the machine.
    """

    fit: Fit
    jackknife: tuple[Fit, ...]
    constants: str
    ends: tuple[Fit, ...] = ()

    @property
    def id(self) -> str:
        """Name the fit and the constants of the machine that it was made on: either changes it."""
        fit = self.fit
        numbers = f"{fit.superstep:.6g} {fit.per_batch:.6g} {fit.per_image:.6g}"
        text = f"{self.constants} {numbers}"
        return f"c2-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@cache
def load_calibration() -> Calibration:
    """Load the committed calibration.

    `python -m benchmarks.emulator validate` recomputes it from the warehouse and compares.
    """
    data = read_toml(CALIBRATION_FILE)
    return Calibration(
        fit=Fit(**data["fit"]),
        jackknife=tuple(Fit(**entry) for entry in data["jackknife"]),
        constants=data["constants"],
        ends=tuple(Fit(**entry) for entry in data["ends"]),
    )


@cache
def load_band(kind: str) -> tuple[float, float]:
    """Load the band of a kind of work: what a measured time may be, as multiples of the predicted
    one.

    It holds 80 % of its rows, which `bands.toml` counts. `covered` there is the share of a
    document's rows that a band without this document held.
    """
    entry = read_toml("bands.toml")[kind]
    return entry["low"], entry["high"]


# The machines, and what the record calls them.
PLATFORMS = {"c2": "C2", "m2000": "IPU-M2000", "bow-2000": "Bow-2000", "c600": "C600"}
TARGETS = tuple(PLATFORMS)
DEFAULT_NETWORK = "resnext101-32x4d"
# totals over all chips: the paper's on C2, the page's elsewhere
DEFAULT_BATCH_SIZES: dict[str, tuple[int, ...]] = {
    "c2": (2, 4, 6, 8, 10, 12),
    "m2000": (4, 8, 16, 32, 64),
    "bow-2000": (4, 8, 16, 32, 64),
    "c600": (1, 4, 16, 32, 64),
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of a machine. `assumed`: no source states the value, the structure suggests it.

    `range` is what the value may be instead, by its source or by guess.
    """

    value: float
    unit: str
    source: str
    assumed: bool = False
    range: Sequence[float] | None = None


@dataclass(frozen=True)
class Target:
    """A machine of `chips` equal chips. `target["tiles"]` is a constant's value.

    `base` is the machine in TARGETS that it is or extends, and `settings` says what was changed by
    the user. Two targets are equal if their names and the values of their constants are.
    """

    name: str
    chip: str
    chips: int
    constants: Mapping[str, Constant]
    base: str = ""
    settings: str = ""

    def __getitem__(self, name: str) -> float:
        return self.constants[name].value

    def __contains__(self, name: str) -> bool:
        return name in self.constants

    def get(self, name: str, default: float) -> float:
        constant = self.constants.get(name)
        return constant.value if constant else default

    @property
    def tiles(self) -> int:
        return int(self["tiles"])

    @cached_property
    def digest(self) -> str:
        """sha256 over names and values of the constants, the first 16 hex digits."""
        lines = "\n".join(f"{name} {constant.value!r}" for name, constant in self.constants.items())
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    @cached_property
    def searched(self) -> Target:
        """The machine with the constants alone that the search for splits reads.

        Machines that are equal in these share their plans. A search that reads another constant is
        a KeyError until `searched` in settings.toml has it.
        """
        searched = tuple(read_toml("settings.toml")["constants"]["searched"])
        constants = {}
        for name, constant in self.constants.items():
            if name.startswith(searched):
                constants[name] = constant
        return Target(name="", chip="", chips=0, constants=constants)

    def with_constants(self, values: Mapping[str, float]) -> Target:
        """Return the target with other values.

        Raises UnrecognisedModelError for a name that the machine does not have.
        """
        constants = dict(self.constants)
        for name, value in values.items():
            if name not in constants:
                raise UnrecognisedModelError(f"is not a constant of {self.name}", document=name)
            constants[name] = replace(constants[name], value=value)
        return replace(self, constants=constants)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Target):
            return False
        return self.name == other.name and self.digest == other.digest


@cache
def load_target(name: str) -> Target:
    """Load a machine by name. Raises UnrecognisedModelError for a name that is not in TARGETS."""
    if name not in TARGETS:
        raise UnrecognisedModelError(
            f"is not a target: choose one of {', '.join(TARGETS)}", document=name
        )
    data = read_toml(f"targets/{name}.toml")
    constants: dict[str, Constant] = {}
    if "extends" in data:
        constants.update(load_target(data["extends"]).constants)
    # Overriding keeps the order of the base, which the digest depends on.
    for key, entry in data["constants"].items():
        constants[key] = Constant(**entry)
    return Target(name, data["chip"], data["chips"], constants, base=name)
