"""What one sweep was asked to do, as it stands in its journal and its record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.runner.backends.base import Device
from ipu_results.runner.environment import cpu_quota, usable_cores
from ipu_results.runner.plan import Plan

SESSIONS = {"m2000": 4, "bow-2000": 4}  # one per chip
DEFAULT_SESSIONS = 2  # as in the paper
BATCH_SIZES = (2, 4, 6, 8, 10, 12)  # the paper's
LARGER_SIZES = (4, 8, 16, 32, 64)  # the page's, of machines with four chips


def sessions_of(device: Device) -> int:
    return SESSIONS.get(device.name, DEFAULT_SESSIONS)


def default_sizes(sessions: int) -> tuple[int, ...]:
    """The paper's batch sizes, or the page's, that so many sessions can share evenly."""
    sizes = LARGER_SIZES if sessions in SESSIONS.values() else BATCH_SIZES
    return tuple(size for size in sizes if size % sessions == 0) or tuple(sessions * one for one in range(1, 7))


def cores() -> int:
    """Whole cores that this process may use, within what its control groups allow."""
    usable, quota = usable_cores() or 1, cpu_quota()
    return max(1, min(usable, int(quota) if quota else usable))


def options_of(told: Iterable[str]) -> dict[str, Any]:
    """The backend's own options, of texts such as `noise=0.02`. Raises RunnerError."""
    found: dict[str, Any] = {}
    for one in told:
        name, equals, value = one.partition("=")
        try:
            if not equals:
                raise ValueError
            found[name] = json.loads(value)
        except ValueError as error:
            raise RunnerError(f"{one!r} is no option NAME=JSON") from error
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """`model` and `images` are a built-in name or a path, and a folder or None for the seeded generator.

    `threads` are those of each session; `options` go to the backend.
    """

    device: Device
    plan: Plan
    model: str
    precision: str | None = None
    threads: int | None = None
    images: str | None = None
    power_command: str | None = None
    power_declared: float | None = None
    python: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    command_line: str = "ipu-results sweep"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Asked:
        return cls(**{**told, "device": Device(**told["device"]), "plan": Plan.from_json(told["plan"])})

    def published(self) -> dict[str, Any]:
        """The setup as a record tells it: no path of this machine."""
        return {
            **{name: getattr(self, name) for name in ("precision", "threads", "power_declared")},
            "model": Path(self.model).name,
            "images": None if self.images is None else Path(self.images).name,
            "power_command": self.power_command is not None,
            "options": dict(self.options),
        }
