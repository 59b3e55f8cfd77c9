"""The machines: each constant with unit and source, read from `targets/<chip>.toml`."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files

from ipu_results.errors import UnrecognisedModelError

FILES = {"c2": "gc2", "m2000": "gc200", "bow-2000": "bow"}
TARGETS = tuple(FILES)


@dataclass(frozen=True, slots=True)
class Constant:
    """`assumed`: no source gives the value, the structure suggests it."""

    value: float
    unit: str
    source: str
    assumed: bool = False


@dataclass(frozen=True)
class Target:
    """A machine of `chips` equal chips. `target["tiles"]` is a constant's value; equal targets have equal constants."""

    name: str
    chip: str
    chips: int
    constants: tuple[tuple[str, Constant], ...]

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
        """sha256 over names and values of the constants, in 16 hex digits."""
        told = "\n".join(f"{name} {constant.value!r}" for name, constant in self.constants)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @cached_property
    def _values(self) -> Mapping[str, float]:
        return {name: constant.value for name, constant in self.constants}

    def changed(self, **values: float) -> Target:
        """The target with other constants, dots written as double underscores: `changed(slic__load=18)`."""
        new = {name.replace("__", "."): value for name, value in values.items()}
        constants = tuple(
            (name, replace(constant, value=new.get(name, constant.value))) for name, constant in self.constants
        )
        return Target(self.name, self.chip, self.chips, constants)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and (self.name, self.digest) == (other.name, other.digest)


@cache
def load_target(name: str) -> Target:
    """Raises UnrecognisedModelError for a name that is not one of TARGETS."""
    if name not in FILES:
        raise UnrecognisedModelError(f"is no target: one of {', '.join(TARGETS)}", document=name)
    text = (files("ipu_results.emulator") / "targets" / f"{FILES[name]}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    constants = tuple((key, Constant(**entry)) for key, entry in data["constants"].items())
    return Target(data["name"], data["chip"], data["chips"], constants)
