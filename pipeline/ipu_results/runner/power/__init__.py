"""Power while a sweep measures: which sensor there is, and the mean over a window. No sensor gives no figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ipu_results.errors import RunnerError
from ipu_results.runner.power import gcinfo
from ipu_results.runner.power.meter import Declared, wall_meter
from ipu_results.runner.power.nvml import Nvml
from ipu_results.runner.power.rapl import POWERCAP, Rapl

SCOPES = ("device", "board", "package", "wall", "declared")
UNREAL = ("emulated", "simulated")


class Sensor(Protocol):
    """A source of power. `scope` says what it covers, one of SCOPES, and `name` what it is.

    `stop` gives the mean watts since `start`, or None and why in `reason`: the source could not be read, or the
    window was shorter than `min_window_s` seconds.
    """

    scope: str
    name: str
    min_window_s: float
    reason: str | None

    def start(self) -> None: ...
    def stop(self) -> float | None: ...
    def close(self) -> None: ...


def find(
    kind: str,
    device: str,
    command: str | None = None,
    declared: float | None = None,
    *,
    powercap: Path = POWERCAP,
    nvml: Any = None,
    gc_info: Callable[[], Sequence[str]] | None = None,
) -> tuple[Sensor | None, str]:
    """The sensor for a device of this kind, and what it is or why there is none.

    What the user declares comes before a command, and that before the device's own. `powercap`, `nvml` (a module like
    pynvml) and `gc_info` (its output for each device) replace the machine's. Raises RunnerError for a declared power
    or a command that cannot be used.
    """
    stated = Declared(declared) if declared is not None else wall_meter(command) if command is not None else None
    if kind in UNREAL:
        return None, f"no sensor: the device is {kind}, and what this machine draws is not its power"
    if stated:
        return stated, stated.name
    try:
        sensor = _own(kind, device, powercap, nvml, gc_info)
    except RunnerError as error:
        return None, f"no sensor: {error.message}"
    return sensor, sensor.name


def _own(kind: str, device: str, powercap: Path, nvml: Any, gc_info: Callable[[], Sequence[str]] | None) -> Sensor:
    """The sensor that the device itself has. Raises RunnerError when there is none."""
    if kind == "cpu":
        return Rapl(powercap)
    if kind == "gpu":
        return Nvml(device, nvml)
    if kind == "ipu":
        return _boards(gc_info or gcinfo.source(device))
    raise RunnerError(f"none is known for a device of kind {kind}")


def _boards(ask: Callable[[], Sequence[str]]) -> Sensor:
    found = gcinfo.board_power(ask())
    if found.watts is None:
        raise RunnerError(found.reason or "gc-info gave no power")
    return gcinfo.boards(ask)
