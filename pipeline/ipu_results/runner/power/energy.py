"""Power of Graphcore boards by `gc-info`, whose attributes are lines of `key: value`.

The power is the whole board's, and each IPU of a board reports it: a C2 has two IPUs and must not be counted twice.
Form of the attributes: Graphcore's command line tools, chapter "Device attributes".
"""

from __future__ import annotations

import importlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.runner.power.meter import (
    INTERVAL_S,
    Poller,
    Reading,
    SampledSensor,
    check_watts,
    check_window,
    run_command,
)

COMMAND = ("gc-info", "-i", "-d")
POWER = "total board power"
SERIAL = "board serial number"
WATTS = re.compile(r"(\d+(?:\.\d+)?)\s*W", re.ASCII)
ABSENT = ("", "N/A")
MAX_DEVICES = 64  # on one board, and groups of them


def parse_attributes(text: str) -> list[dict[str, str]]:
    """Return the attributes of each device in a text. A repeated key begins the next device."""
    devices: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if key.strip() in devices[-1]:
            devices.append({})
        devices[-1][key.strip()] = value.strip()
    return devices


def sum_board_power(texts: Iterable[str]) -> Reading:
    """Return the power of all boards in what gc-info printed of each device. A board counts once."""
    boards: dict[str, list[float]] = {}
    for device in (device for text in texts for device in parse_attributes(text)):
        serial, power = device.get(SERIAL, ""), parse_power(device)
        if serial in ABSENT:
            return Reading(None, f"gc-info gave no {SERIAL}")
        if power.watts is None:
            return power
        boards.setdefault(serial, []).append(power.watts)
    if not boards:
        return Reading(None, "gc-info gave no device")
    return check_watts(sum(map(fmean, boards.values())), "gc-info")


def parse_power(device: dict[str, str]) -> Reading:
    """Return what one device reports of its board."""
    value = device.get(POWER, "")
    if match := WATTS.fullmatch(value):
        return check_watts(float(match[1]), "gc-info")
    return Reading(None, f"gc-info gave no {POWER}" if value in ABSENT else f"gc-info's {POWER} is not in watts")


def run_gc_info(number: str) -> str:
    """Return what gc-info prints of one device. Raises RunnerError when it cannot be run."""
    return run_command([*COMMAND, number])


def find_source(query: Callable[[str], str] = run_gc_info) -> Callable[[], list[str]]:
    """Return a function that reads the text of an IPU, which reports the power of its whole board.

    Raises RunnerError when gc-info cannot be run, or when there are several boards: which one measures is unknown then.
    """
    texts, serials = [query("0")], set[str]()
    while len(serials) < 2:  # ids count up from 0; gc-info fails or names no board after the last one
        new = {device[SERIAL] for device in parse_attributes(texts[-1]) if device.get(SERIAL, "") not in ABSENT}
        serials |= new
        if not new or len(texts) > MAX_DEVICES:
            return lambda: [query("0")]
        try:
            texts.append(query(str(len(texts))))
        except RunnerError:
            return lambda: [query("0")]
    raise RunnerError("IPUs of several boards, and the device's name has no id to tell which of them measures")


def open_board_sensor(read_texts: Callable[[], Sequence[str]], *, interval_s: float = INTERVAL_S) -> SampledSensor:
    """Open a sensor of all boards in the texts of gc-info. Raises RunnerError where they report no power."""
    power = sum_board_power(read_texts())
    if power.watts is None:
        raise RunnerError(power.reason or "gc-info gave no power")
    return SampledSensor(lambda: sum_board_power(read_texts()), scope="board", name="gc-info", interval_s=interval_s)


POWERCAP = Path("/sys/class/powercap")
# The smallest range in use, 65 kJ, lasts for 10 s at any power below 6.5 kW a package.
POLL_S = 10.0
# OpenVINO's `GPU` is Intel's and MIGraphX's is AMD's: NVML knows neither, and may know a third one.
NVIDIA = re.compile(r"(?:cuda|tensorrt)(?::(\d+))?", re.ASCII)


class EnergySensor:
    """The mean power between two readings of an energy counter. A failed reading voids its window.

    `units` is the number of the counter's units in a joule.
    """

    scope: str
    name: str
    source: str
    min_window_s: float
    units: float

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._earlier, self._started = 0, 0.0
        self.reason: str | None = "the sensor was not started"

    def read_energy(self) -> int:
        """Read the counter. Raises RunnerError when that fails."""
        raise NotImplementedError

    def poll(self) -> int:
        """Read the counter; a failure is kept as the reason why the window is void."""
        try:
            return self.read_energy()
        except RunnerError as error:
            self.reason = error.message
            return 0

    def start(self) -> None:
        self.reason = None
        self._earlier = self.poll()
        self._started = self._clock()

    def stop(self) -> float | None:
        """Return the mean watts since `start`, or None with `reason` set."""
        if self.reason is None:
            spent, elapsed_s = self.poll() - self._earlier, self._clock() - self._started
            self.reason = self.reason or check_window(elapsed_s, self.min_window_s)
        if self.reason is not None:
            return None
        watts, self.reason = check_watts(spent / self.units / elapsed_s, self.source)
        return watts

    def close(self) -> None:
        """Release the counter."""


class RaplSensor(EnergySensor):
    """The sum over the packages, from Linux below /sys/class/powercap.

    A thread reads along, so that no counter wraps around twice between two readings. Raises RunnerError when there is
    no package counter or one cannot be read.
    """

    scope, source, min_window_s, units = "package", "RAPL", 1.0, 1e6

    def __init__(
        self, powercap: Path = POWERCAP, *, poll_s: float = POLL_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        self._domains, self._poll_s = list_packages(powercap), poll_s
        if not self._domains:
            raise RunnerError("no RAPL counter")
        self._spans = [read_counter(path / "max_energy_range_uj") for path in self._domains]
        self._last = self._read_counters()
        self._total = 0
        self._lock = threading.Lock()
        self._poller: Poller | None = None
        self.name = f"RAPL, {len(self._domains)} package{'s' if len(self._domains) > 1 else ''}"

    def _read_counters(self) -> list[int]:
        return [read_counter(path / "energy_uj") for path in self._domains]

    def read_energy(self) -> int:
        """Return the microjoules since the sensor was opened."""
        with self._lock:
            now = self._read_counters()
            self._total += sum(map(count_spent, self._last, now, self._spans))
            self._last = now
            return self._total

    def start(self) -> None:
        self.close()
        with suppress(RunnerError):  # a jump of the counter voids the window before only
            self._last = self._read_counters()
        super().start()
        self._poller = Poller(self.poll, self._poll_s, self._poll_s)

    def stop(self) -> float | None:
        watts = super().stop()
        self.close()
        return watts

    def close(self) -> None:
        if self._poller:
            self._poller.stop()
        self._poller = None


def list_packages(powercap: Path) -> list[Path]:
    """Return the domains of whole packages, without their parts (`core`, `dram`) and the overlapping `psys`."""

    def read_name(path: Path) -> str:
        with suppress(OSError):
            return (path / "name").read_text(encoding="ascii", errors="replace")
        return ""

    return [path for path in sorted(powercap.glob("intel-rapl:*")) if read_name(path).startswith("package")]


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


class NvmlSensor(EnergySensor):
    """One GPU, by the package nvidia-ml-py. Raises RunnerError when NVML, the GPU or its counter is not there.

    A GPU without an energy counter (before Volta, some virtual ones) has no sensor. `nvmlDeviceGetPowerUsage` cannot
    replace it: A100 and H100 sample it for a quarter of the time, older ones average it over a second.
    """

    scope, source, min_window_s, units = "device", "NVML", 5.0, 1e3

    def __init__(
        self,
        device: str,
        nvml: Any = None,
        *,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(clock)
        number = parse_number(device)
        self._nvml = nvml or import_nvml()
        self._call(self._nvml.nvmlInit, "no NVML")
        self._open = True
        try:
            self._handle = self._call(lambda: find_handle(self._nvml, number, environ), "no GPU in NVML")
            self._refuse_divided()
            self.read_energy()
            self.name = f"NVML energy counter, {self._call(lambda: self._nvml.nvmlDeviceGetName(self._handle))}"
        except RunnerError:
            self.close()
            raise

    def _call(self, call: Callable[[], Any], what: str = "NVML") -> Any:
        try:
            return call()
        except self._nvml.NVMLError as error:
            raise RunnerError(f"{what}: {str(error).lower()}") from error

    def read_energy(self) -> int:
        """Return the millijoules since the driver was loaded."""
        read = self._nvml.nvmlDeviceGetTotalEnergyConsumption
        return int(self._call(lambda: read(self._handle), "the energy counter of NVML"))

    def _refuse_divided(self) -> None:
        try:
            divided = self._nvml.nvmlDeviceGetMigMode(self._handle)[0]
        except self._nvml.NVMLError:  # a model that cannot be divided
            return
        if divided:
            raise RunnerError("the GPU is divided (MIG), and NVML counts the energy of the whole")

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()


def import_nvml() -> Any:
    """Import pynvml. Raises RunnerError when nvidia-ml-py is not installed."""
    try:
        return importlib.import_module("pynvml")
    except ImportError as error:
        raise RunnerError("no NVML: nvidia-ml-py is not installed") from error


def parse_number(device: str) -> int:
    """Return CUDA's number in the name of a device, such as `cuda:1`. Raises RunnerError when it is not NVIDIA's."""
    match = NVIDIA.fullmatch(device)
    if not match:
        raise RunnerError(f"{device} is not the name of an NVIDIA GPU, and NVML reads no other")
    return int(match[1] or 0)


def find_handle(nvml: Any, number: int, environ: Mapping[str, str]) -> Any:
    """Return NVML's handle of the GPU with this number of CUDA. Raises RunnerError when that is not certain."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number)] if visible is None else [name.strip() for name in visible.split(",")][number : number + 1]
    if not names:
        raise RunnerError(f"CUDA_VISIBLE_DEVICES hides GPU {number}")
    if names[0].startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(names[0])
    if not re.fullmatch(r"\d+", names[0], re.ASCII):
        raise RunnerError(f"CUDA_VISIBLE_DEVICES names no whole GPU for device {number}")
    if environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":  # CUDA puts the fastest first, NVML the lowest on the bus
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        if len({nvml.nvmlDeviceGetName(handle) for handle in handles}) > 1:
            message = "GPUs of several models and no CUDA_DEVICE_ORDER=PCI_BUS_ID: NVML may number them otherwise"
            raise RunnerError(message)
    return nvml.nvmlDeviceGetHandleByIndex(int(names[0]))
