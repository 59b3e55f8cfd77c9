"""Power while a sweep measures: the sensor of a device, and the mean over a window. No sensor, no figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ipu_results.errors import RunnerError
from ipu_results.runner.power import energy
from ipu_results.runner.power.energy import POWERCAP, NvmlSensor, RaplSensor
from ipu_results.runner.power.meter import DeclaredPower, open_wall_meter

SCOPES = ("device", "board", "package", "wall", "declared")
UNREAL = ("emulated", "simulated")


class Sensor(Protocol):
    """A source of power. `scope` says what it covers, one of SCOPES, and `name` what it is.

    `stop` returns the mean watts since `start`, or None and why in `reason`: the source could not be read, or the
    window was shorter than `min_window_s` seconds.
    """

    scope: str
    name: str
    min_window_s: float
    reason: str | None

    def start(self) -> None: ...
    def stop(self) -> float | None: ...
    def close(self) -> None: ...


def find_sensor(
    kind: str,
    device: str,
    command: str | None = None,
    declared: float | None = None,
    *,
    powercap: Path = POWERCAP,
    nvml: Any = None,
    gc_info: Callable[[], Sequence[str]] | None = None,
) -> tuple[Sensor | None, str]:
    """Return the sensor for a device of this kind, and its name or why there is none.

    What the user declares comes before a command, and that before the device's own. `powercap`, `nvml` (a module like
    pynvml) and `gc_info` (its output for each device) replace the machine's. Raises RunnerError for a declared power
    or a command that cannot be used.
    """
    stated: Sensor | None = None
    if declared is not None:
        stated = DeclaredPower(declared)
    elif command is not None:
        stated = open_wall_meter(command)
    if kind in UNREAL:
        return None, f"no sensor: the device is {kind}, and what this machine draws is not its power"
    if stated:
        return stated, stated.name
    try:
        sensor = _open_own_sensor(kind, device, powercap, nvml, gc_info)
    except RunnerError as error:
        return None, f"no sensor: {error.message}"
    return sensor, sensor.name


def _open_own_sensor(
    kind: str, device: str, powercap: Path, nvml: Any, gc_info: Callable[[], Sequence[str]] | None
) -> Sensor:
    """Open the sensor that the device itself has. Raises RunnerError when there is none."""
    if kind == "cpu":
        return RaplSensor(powercap)
    if kind == "gpu":
        return NvmlSensor(device, nvml)
    if kind == "ipu":
        return energy.open_board_sensor(gc_info or energy.find_source())
    raise RunnerError(f"none is known for a device of kind {kind}")
