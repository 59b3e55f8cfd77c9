"""Load the machines that are emulated: each constant with unit and source, from `data/targets/<chip>.toml`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from ipu_results.emulator.data import read_toml
from ipu_results.errors import UnrecognisedModelError

SHARE = 0.5  # of a value that an assumed constant may be less or more, where no range is stated
FILES = {"c2": "gc2", "m2000": "gc200", "bow-2000": "bow"}
PLATFORMS = {"c2": "C2", "m2000": "IPU-M2000", "bow-2000": "Bow-2000"}  # in the record
TARGETS = tuple(FILES)
DEFAULT_BATCH_SIZES: dict[str, tuple[int, ...]] = {  # totals over all chips: the paper's on C2, the page's elsewhere
    "c2": (2, 4, 6, 8, 10, 12),
    "m2000": (4, 8, 16, 32, 64),
    "bow-2000": (4, 8, 16, 32, 64),
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of a machine. `assumed`: no source states the value, the structure suggests it.

    `range` is what the value may be instead, for the sensitivity.
    """

    value: float
    unit: str
    source: str
    assumed: bool = False
    range: tuple[float, float] | None = None


def get_range(constant: Constant) -> tuple[float, float]:
    """Return what an assumed constant may be: as stated, else half less and half more. Supersteps are whole numbers."""
    low, high = constant.range or (constant.value * (1 - SHARE), constant.value * (1 + SHARE))
    return (math.floor(low), math.ceil(high)) if constant.unit == "superstep" else (low, high)


@dataclass(frozen=True)
class Target:
    """A machine of `chips` equal chips. `target["tiles"]` is a constant's value.

    `base` is the machine in TARGETS that it is or extends, and `settings` says what was changed by the user. Two
    targets are equal if their names and the values of their constants are.
    """

    name: str
    chip: str
    chips: int
    constants: tuple[tuple[str, Constant], ...]
    base: str = ""
    settings: str = ""

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str, default: float) -> float:
        return self._values.get(name, default)

    @property
    def tiles(self) -> int:
        return int(self["tiles"])

    @cached_property
    def digest(self) -> str:
        """sha256 over names and values of the constants, the first 16 hex digits."""
        lines = "\n".join(f"{name} {constant.value!r}" for name, constant in self.constants)
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    @cached_property
    def _values(self) -> Mapping[str, float]:
        return {name: constant.value for name, constant in self.constants}

    def with_constants(self, values: Mapping[str, float] = MappingProxyType({}), **named: float) -> Target:
        """Return the target with other values, by name: `with_constants({"slic.load": 18}, clock=1.5e9)`."""
        new = {**values, **named}
        constants = tuple(
            (name, replace(constant, value=new.get(name, constant.value))) for name, constant in self.constants
        )
        return replace(self, constants=constants)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and (self.name, self.digest) == (other.name, other.digest)


@cache
def load_target(name: str) -> Target:
    """Load a machine by name. Raises UnrecognisedModelError for a name that is not in TARGETS."""
    if name not in FILES:
        raise UnrecognisedModelError(f"is not a target: choose one of {', '.join(TARGETS)}", document=name)
    data = read_toml(f"targets/{FILES[name]}.toml")
    # Overriding keeps the order of the base, which the digest depends on.
    base = read_toml(f"targets/{data['extends']}.toml")["constants"] if "extends" in data else {}
    constants = tuple((key, _parse_constant(entry)) for key, entry in {**base, **data["constants"]}.items())
    return Target(data["name"], data["chip"], data["chips"], constants, name)


def _parse_constant(entry: Mapping[str, Any]) -> Constant:
    return Constant(**{**entry, "range": tuple(entry["range"]) if "range" in entry else None})
