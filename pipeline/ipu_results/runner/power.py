"""Power while a sweep measures: the meter of a device, one class a source. Without a meter there is no figure."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.runner.meter import DeclaredPower, PowerMeter, WallMeter, WindowMeter, check_watts, run_command

BOARD_POWER = "total board power"
SERIAL = "board serial number"
WATTS = re.compile(r"(\d+(?:\.\d+)?)\s*W", re.ASCII)
ABSENT = ("", "N/A")
MAX_DEVICES = 64  # on one board, and groups of them

POWERCAP = Path("/sys/class/powercap")
# OpenVINO's `GPU` is Intel's and MIGraphX's is AMD's: NVML knows neither, and may know a third one.
NVIDIA = re.compile(r"(?:cuda|tensorrt)(?::(\d+))?", re.ASCII)


def find_meter(
    kind: str, device: str, command: str | None = None, declared: float | None = None
) -> tuple[PowerMeter | None, str]:
    """Return the meter for a device of this kind, and its name or why there is none.

    What the user declares comes before a command, and that before the device's own. Raises RunnerError for a declared
    power or a command that cannot be used.
    """
    stated: PowerMeter | None = None
    if declared is not None:
        stated = DeclaredPower(declared)
    elif command is not None:
        stated = WallMeter(command)
    if kind in ("emulated", "simulated"):
        return None, f"no sensor: the device is {kind}, and what this machine draws is not its power"
    if stated:
        return stated, stated.name
    sources: Mapping[str, Callable[[str], PowerMeter]] = {"cpu": RaplMeter, "gpu": NvmlMeter, "ipu": BoardMeter}
    if kind not in sources:
        return None, f"no sensor: none is known for a device of kind {kind}"
    try:
        meter = sources[kind](device)
    except RunnerError as error:
        return None, f"no sensor: {error.message}"
    return meter, meter.name


class BoardMeter(WindowMeter):
    """The board of the IPUs, by `gc-info`: each IPU reports the whole board's power, so one of them is read.

    Raises RunnerError when gc-info cannot be run or gives no power, or when there are several boards: which one
    measures is unknown then. Form of the attributes: Graphcore's command line tools, chapter "Device attributes".
    """

    scope, name, source, min_window_s, interval_s = "board", "gc-info", "gc-info", 2.0, 1.0

    def __init__(self, device: str) -> None:  # noqa: ARG002 (a name has no id of an IPU)
        serials: set[str] = set()
        for number in range(MAX_DEVICES + 1):  # ids count up from 0
            try:
                devices = query_gc_info(number)
            except RunnerError:
                if number == 0:
                    raise
                break
            new = {device[SERIAL] for device in devices if device.get(SERIAL, "") not in ABSENT}
            serials |= new
            if len(serials) > 1:
                raise RunnerError(
                    "IPUs of several boards, and the device's name has no id to tell which of them measures"
                )
            if not new:  # gc-info fails or names no board after the last one
                break
        self.read()

    def read(self) -> float:
        return average_board_power(query_gc_info(0))


def query_gc_info(number: int) -> list[dict[str, str]]:
    """Return the attributes that gc-info prints for the IPU of this id. Raises RunnerError when it cannot be run."""
    return parse_attributes(run_command(["gc-info", "-i", "-d", str(number)], WallMeter.timeout_s))


def parse_attributes(text: str) -> list[dict[str, str]]:
    """Return the attributes of each device, lines of `key: value`. A repeated key begins the next device."""
    devices: list[dict[str, str]] = [{}]
    for key, colon, value in (line.partition(":") for line in text.splitlines()):
        if key.strip() in devices[-1]:
            devices.append({})
        if colon:
            devices[-1][key.strip()] = value.strip()
    return devices


def average_board_power(devices: Sequence[Mapping[str, str]]) -> float:
    """Return the watts of the one board that these devices are on. Raises RunnerError."""
    readings = []
    for device in devices:
        power = device.get(BOARD_POWER, "")
        if device.get(SERIAL, "") in ABSENT:
            raise RunnerError(f"gc-info gave no {SERIAL}")
        if power in ABSENT:
            raise RunnerError(f"gc-info gave no {BOARD_POWER}")
        if not (match := WATTS.fullmatch(power)):
            raise RunnerError(f"gc-info's {BOARD_POWER} is not in watts")
        readings.append(check_watts(float(match[1]), "gc-info"))
    return fmean(readings)


class RaplMeter(WindowMeter):
    """The sum over the packages of CPUs, from Linux below /sys/class/powercap.

    Raises RunnerError when there is no package counter or one cannot be read.
    """

    scope, source, min_window_s, units = "package", "RAPL", 1.0, 1e6
    # The smallest range in use, 65 kJ, lasts for 10 s at any power below 6.5 kW a package: no counter wraps around
    # twice between two readings of the thread.
    interval_s = 10.0

    def __init__(self, device: str = "") -> None:  # noqa: ARG002 (all packages count)
        self._packages = [path for path in sorted(POWERCAP.glob("intel-rapl:*")) if _is_package(path)]
        if not self._packages:
            raise RunnerError("no RAPL counter")
        self._spans = [read_counter(path / "max_energy_range_uj") for path in self._packages]
        self._last, self._total = self._read_counters(), 0
        self.name = f"RAPL, {len(self._packages)} package{'s' if len(self._packages) > 1 else ''}"

    def _read_counters(self) -> list[int]:
        return [read_counter(path / "energy_uj") for path in self._packages]

    def read(self) -> float:
        """Return the microjoules since the meter was opened."""
        now = self._read_counters()
        self._total += sum(map(count_spent, self._last, now, self._spans))
        self._last = now
        return self._total

    def start(self) -> None:
        with suppress(RunnerError):  # a jump of the counter voids the window before only
            self._last = self._read_counters()
        super().start()


def _is_package(path: Path) -> bool:
    """Distinguish the domain of a whole package from its parts (`core`, `dram`) and from `psys`, which overlaps it."""
    with suppress(OSError):
        return (path / "name").read_text(encoding="ascii", errors="replace").startswith("package")
    return False


def read_counter(path: Path) -> int:
    """Read a counter in microjoules. Raises RunnerError when it cannot be read."""
    try:
        return int(path.read_text(encoding="ascii"))
    except PermissionError as error:
        raise RunnerError(f"permission denied on RAPL's {path.name}") from error
    except (OSError, ValueError) as error:
        raise RunnerError(f"RAPL's {path.name} cannot be read") from error


def count_spent(earlier: int, later: int, span: int) -> int:
    """Return the microjoules between two readings of a counter that wraps around at `span`, at most once in between."""
    if later >= earlier:
        return later - earlier
    if not 0 <= later < earlier <= span:
        raise RunnerError(f"a RAPL counter went back from {earlier} to {later} µJ, and its range is {span} µJ")
    return later + span - earlier


class NvmlMeter(WindowMeter):
    """One GPU, by the package nvidia-ml-py. Raises RunnerError when NVML, the GPU or its counter is not there.

    A GPU without an energy counter (before Volta, some virtual ones) has no meter. `nvmlDeviceGetPowerUsage` cannot
    replace it: A100 and H100 sample it for a quarter of the time, older ones average it over a second.
    """

    scope, source, min_window_s, units = "device", "NVML", 5.0, 1e3

    def __init__(self, device: str) -> None:
        match = NVIDIA.fullmatch(device)
        if not match:
            raise RunnerError(f"{device} is not the name of an NVIDIA GPU, and NVML reads no other")
        try:
            self._nvml = import_module("pynvml")
        except ImportError as error:
            raise RunnerError("no NVML: nvidia-ml-py is not installed") from error
        self._call(self._nvml.nvmlInit, "no NVML")
        self._open = True
        try:
            self._handle = self._call(lambda: find_handle(self._nvml, int(match[1] or 0)), "no GPU in NVML")
            with suppress(self._nvml.NVMLError):  # of a model that cannot be divided
                if self._nvml.nvmlDeviceGetMigMode(self._handle)[0]:
                    raise RunnerError("the GPU is divided (MIG), and NVML counts the energy of the whole")
            self.read()
            self.name = f"NVML energy counter, {self._call(lambda: self._nvml.nvmlDeviceGetName(self._handle))}"
        except RunnerError:
            self.close()
            raise

    def _call(self, call: Callable[[], Any], what: str = "NVML") -> Any:
        try:
            return call()
        except self._nvml.NVMLError as error:
            raise RunnerError(f"{what}: {str(error).lower()}") from error

    def read(self) -> float:
        """Return the millijoules since the driver was loaded."""
        read = self._nvml.nvmlDeviceGetTotalEnergyConsumption
        return int(self._call(lambda: read(self._handle), "the energy counter of NVML"))

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()


def find_handle(nvml: Any, number: int) -> Any:
    """Return NVML's handle of the GPU with this number of CUDA. Raises RunnerError when that is not certain."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number)] if visible is None else [name.strip() for name in visible.split(",")][number : number + 1]
    if not names:
        raise RunnerError(f"CUDA_VISIBLE_DEVICES hides GPU {number}")
    if names[0].startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(names[0])
    if not re.fullmatch(r"\d+", names[0], re.ASCII):
        raise RunnerError(f"CUDA_VISIBLE_DEVICES names no whole GPU for device {number}")
    if os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":  # CUDA puts the fastest first, NVML the lowest on the bus
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        if len({nvml.nvmlDeviceGetName(handle) for handle in handles}) > 1:
            message = "GPUs of several models and no CUDA_DEVICE_ORDER=PCI_BUS_ID: NVML may number them otherwise"
            raise RunnerError(message)
    return nvml.nvmlDeviceGetHandleByIndex(int(names[0]))
