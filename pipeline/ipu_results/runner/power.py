"""Power while a sweep measures: RAPL, NVML, the board of an IPU, a command, or a declared figure.

Without a meter there is no figure.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePath
from statistics import fmean
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.runner.environment import read_text

MAX_W = 1e6  # above what any machine draws: a counter that was reset, or another unit
# what a command may take to print its figure
COMMAND_TIMEOUT_S = 5.0
# ASCII only: `float` takes digits of any script and `nan`
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
# Lines of gc-info. Form of the attributes: Graphcore's command line tools, "Device attributes".
SERIAL = re.compile(r"^[ \t]*board serial number:[ \t]*(?!N/A)(\S+)", re.MULTILINE)
BOARD_POWER = re.compile(
    r"^[ \t]*total board power:[ \t]*(\d+(?:\.\d+)?)[ \t]*W\s*$", re.MULTILINE | re.ASCII
)
MAX_IPUS = 64  # of one machine
POWERCAP = Path("/sys/class/powercap")
# OpenVINO's `GPU` is Intel's and MIGraphX's is AMD's: NVML knows neither, and may know a third one.
NVIDIA = re.compile(r"(?:cuda|tensorrt)(?::(\d+))?", re.ASCII)


def find_meter(
    kind: str, device: str, command: str | None = None, declared: float | None = None
) -> tuple[PowerMeter | None, str]:
    """Return the meter for a device of this kind, and its name or why there is none.

    What the user declares comes before a command, and that before the device's own. Raises
    RunnerError for a declared power or a command that cannot be used.
    """
    meter: PowerMeter | None = None
    if declared is not None:
        meter = DeclaredPower(declared)
    elif command is not None:
        meter = CommandMeter(command)
    # a wrong figure or command is refused here, too
    if kind in ("emulated", "simulated"):
        reason = f"the device is {kind}, and what this machine draws is not its power"
        return None, f"no sensor: {reason}"
    if meter is None:
        try:
            meter = _open_own_meter(kind, device)
        except RunnerError as error:
            return None, f"no sensor: {error.message}"
    return meter, meter.name


def _open_own_meter(kind: str, device: str) -> PowerMeter:
    if kind == "cpu":
        return RaplMeter()
    if kind == "gpu":
        return NvmlMeter(device)
    if kind == "ipu":
        return BoardMeter()
    raise RunnerError(f"none is known for a device of kind {kind}")


class PowerMeter:
    """Base of the sources of power, each read while a window lasts.

    One reading that fails voids its window.
    """

    scope: str
    """What the figure covers: device, board, package, wall or declared."""
    name: str
    """What the record calls the source."""
    source: str
    """Its name in a reason."""
    min_window_s = 0.0
    """Seconds of the shortest window that has a mean."""
    units: float | None = None
    """Where `read` returns an energy counter: how many of its units are a joule.

    None: `read` returns watts.
    """
    interval_s: float | None = None
    """Seconds between the readings of a thread; None: no thread.

    A counter is read at both ends of a window, too.
    """
    reason: str | None = None
    """Why the last window has no figure: the source could not be read, or the window was too short.
    """
    clock: Callable[[], float] = staticmethod(time.monotonic)
    _thread: threading.Thread | None = None

    def read(self) -> float:
        """Return watts or the counter. Raises RunnerError."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin a window."""
        self.reason = None
        self._readings: list[float] = []
        self._faults: list[str] = []
        self._ended = threading.Event()
        if self.units:
            self._poll()
        self._started = self.clock()
        if self.interval_s:
            self._thread = threading.Thread(
                target=self._poll_along, args=(self.interval_s,), daemon=True
            )
            self._thread.start()

    def stop(self) -> float | None:
        """End the window; return its mean watts, or None with `reason` set."""
        self.close()
        if self.units:
            self._poll()
        try:
            return self._average(self.clock() - self._started)
        except RunnerError as error:
            self.reason = error.message
            return None

    def close(self) -> None:
        """Wait for the reading under way, if any; none follows it."""
        if self._thread:
            # the reading under way is waited for: a late one would count in the next window
            self._ended.set()
            self._thread.join()
        self._thread = None

    def _average(self, elapsed_s: float) -> float:
        if self._faults:
            raise RunnerError(self._faults[0])
        if elapsed_s < self.min_window_s:
            raise RunnerError(
                f"the window of {elapsed_s:.1f} s is shorter than {self.min_window_s:g} s"
            )
        if self.units:
            joules = (self._readings[-1] - self._readings[0]) / self.units
            return check_watts(joules / elapsed_s, self.source)
        if not self._readings:
            raise RunnerError("there was no reading within the window")
        return fmean(self._readings)

    def _poll(self) -> None:
        try:
            self._readings.append(self.read())
        except Exception as error:
            # raised in a thread it would be lost, and the window would look whole
            self._faults.append(str(error) or type(error).__name__)

    def _poll_along(self, interval_s: float) -> None:
        wait_s = interval_s / 2
        while not self._ended.wait(wait_s):
            self._poll()
            wait_s = interval_s


def check_watts(watts: float, source: str) -> float:
    """Return these watts.

    Raises RunnerError for 0 W, which no device that computes draws, and above MAX_W.
    """
    if not 0 < watts <= MAX_W:
        raise RunnerError(f"{source} gave {watts:g} W")
    return watts


class DeclaredPower(PowerMeter):
    """A power that the user states. Raises RunnerError unless it is a finite number above 0."""

    scope = "declared"

    def __init__(self, watts: float) -> None:
        if not (math.isfinite(watts) and watts > 0):
            raise RunnerError(
                f"the declared power must be a number of watts above 0, not {watts:g}"
            )
        self._watts = watts
        self.name = f"declared {watts:g} W"

    def stop(self) -> float | None:
        return self._watts


class CommandMeter(PowerMeter):
    """A command that prints the watts of a wall meter, or of any other source; run without a shell.

    Raises RunnerError if it cannot be split into words.
    """

    scope = "wall"
    source = "the power command"
    min_window_s = 2.0
    interval_s = 1.0

    def __init__(self, command: str) -> None:
        try:
            self._argv = shlex.split(command)
        except ValueError as error:
            raise RunnerError(f"the power command cannot be read: {str(error).lower()}") from error
        if not self._argv or not self._argv[0]:
            raise RunnerError("the power command is empty")
        self.name = f"power command {PurePath(self._argv[0]).name}"

    def read(self) -> float:
        text = run_command(self._argv).strip()
        if not NUMBER.fullmatch(text):
            raise RunnerError("the power command printed no single number of watts")
        return check_watts(float(text), self.source)


def run_command(argv: Sequence[str], timeout_s: float = COMMAND_TIMEOUT_S) -> str:
    """Return what a command prints. Raises RunnerError when it does not start, fails or hangs."""
    # without folder and arguments, which may name a user or a machine
    program = PurePath(argv[0]).name
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a command"
        raise RunnerError(f"{program} could not be started: {reason}") from error
    # closes the pipes however it ends
    with process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _kill_group(process)
            raise RunnerError(f"{program} did not answer within {timeout_s:g} s") from error
    if process.returncode:
        raise RunnerError(f"{program} ended with status {process.returncode}")
    return output.decode("utf-8", errors="replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started, which may hold its output open after it has ended."""
    if os.name == "nt":
        process.kill()
        return
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


class BoardMeter(PowerMeter):
    """The board of the IPUs, by `gc-info`: each IPU reports the whole board's power, so the first
    is read.

    Raises RunnerError when gc-info cannot be run or gives no power, or when there are several
    boards: which one measures is unknown then.
    """

    scope = "board"
    name = "gc-info"
    source = "gc-info"
    min_window_s = 2.0
    interval_s = 1.0

    def __init__(self) -> None:
        self.read()
        boards: set[str] = set()
        for number in range(MAX_IPUS):  # ids count up from 0
            try:
                serials = SERIAL.findall(query_gc_info(number))
            except RunnerError:
                break
            if not serials:
                break
            boards.update(serials)
        if len(boards) > 1:
            raise RunnerError(
                "IPUs of several boards, and the device's name has no id to tell which of them"
                " measures"
            )

    def read(self) -> float:
        text = query_gc_info(0)
        if not SERIAL.search(text):
            raise RunnerError("gc-info gave no board serial number")
        match = BOARD_POWER.search(text)
        if not match:
            raise RunnerError("gc-info gave no total board power in watts")
        return check_watts(float(match[1]), "gc-info")


def query_gc_info(number: int) -> str:
    """Return what gc-info prints for the IPU of this id. Raises RunnerError."""
    return run_command(["gc-info", "-i", "-d", str(number)])


class RaplMeter(PowerMeter):
    """The sum over the packages of CPUs, from Linux below /sys/class/powercap.

    Raises RunnerError when there is no package counter or one cannot be read.
    """

    scope = "package"
    source = "RAPL"
    min_window_s = 1.0
    units = 1e6
    # The smallest range in use, 65 kJ, lasts for 10 s at any power below 6.5 kW a package: no
    # counter wraps around twice between two readings of the thread.
    interval_s = 10.0

    def __init__(self) -> None:
        # Parts of a package (`core`, `dram`) and `psys`, which overlaps it, have other names.
        self._packages = []
        for path in sorted(POWERCAP.glob("intel-rapl:*")):
            if (read_text(path / "name") or "").startswith("package"):
                self._packages.append(path)
        if not self._packages:
            raise RunnerError("no RAPL counter")
        self._spans = [read_counter(path / "max_energy_range_uj") for path in self._packages]
        self._last = self._read_counters()
        self._total = 0
        count = len(self._packages)
        self.name = f"RAPL, {count} package{'s' if count > 1 else ''}"

    def _read_counters(self) -> list[int]:
        return [read_counter(path / "energy_uj") for path in self._packages]

    def read(self) -> float:
        """Return the microjoules since the meter was opened."""
        now = self._read_counters()
        spent = 0
        for earlier, later, span in zip(self._last, now, self._spans, strict=True):
            spent += count_spent(earlier, later, span)
        self._total += spent
        self._last = now
        return self._total

    def start(self) -> None:
        # counts from here: a jump of the counter voids the window before only
        with suppress(RunnerError):
            self._last = self._read_counters()
        super().start()


def read_counter(path: Path) -> int:
    """Read a counter in microjoules. Raises RunnerError when it cannot be read."""
    try:
        return int(path.read_text(encoding="ascii"))
    except PermissionError as error:
        raise RunnerError(f"permission denied on RAPL's {path.name}") from error
    except (OSError, ValueError) as error:
        raise RunnerError(f"RAPL's {path.name} cannot be read") from error


def count_spent(earlier: int, later: int, span: int) -> int:
    """Return the microjoules between two readings of a counter that wraps around at `span`, at most
    once in between.
    """
    if later >= earlier:
        return later - earlier
    if not 0 <= later < earlier <= span:
        raise RunnerError(
            f"a RAPL counter went back from {earlier} to {later} µJ, and its range is {span} µJ"
        )
    return later + span - earlier


class NvmlMeter(PowerMeter):
    """One GPU, by the package nvidia-ml-py.

    Raises RunnerError when NVML, the GPU or its counter is not there.

    A GPU without an energy counter (before Volta, some virtual ones) has no meter.
    `nvmlDeviceGetPowerUsage` cannot replace it: A100 and H100 sample it for a quarter of the time,
    older ones average it over a second.
    """

    scope = "device"
    source = "NVML"
    min_window_s = 5.0
    units = 1e3

    def __init__(self, device: str) -> None:
        match = NVIDIA.fullmatch(device)
        if not match:
            raise RunnerError(f"{device} is not the name of an NVIDIA GPU, and NVML reads no other")
        try:
            self._nvml = import_module("pynvml")
        except ImportError as error:
            raise RunnerError("no NVML: nvidia-ml-py is not installed") from error
        # It stays open until the process ends: NVML counts its users, and the sweep is one of them.
        self._call(self._nvml.nvmlInit, "no NVML")
        number = int(match[1] or 0)
        self._handle = self._call(lambda: find_handle(self._nvml, number), "no GPU in NVML")
        with suppress(self._nvml.NVMLError):  # of a model that cannot be divided
            if self._nvml.nvmlDeviceGetMigMode(self._handle)[0]:
                raise RunnerError(
                    "the GPU is divided (MIG), and NVML counts the energy of the whole"
                )
        self.read()
        gpu = self._call(lambda: self._nvml.nvmlDeviceGetName(self._handle))
        self.name = f"NVML energy counter, {gpu}"

    def _call(self, call: Callable[[], Any], what: str = "NVML") -> Any:
        try:
            return call()
        except self._nvml.NVMLError as error:
            raise RunnerError(f"{what}: {str(error).lower()}") from error

    def read(self) -> float:
        """Return the millijoules since the driver was loaded."""
        read = self._nvml.nvmlDeviceGetTotalEnergyConsumption
        return int(self._call(lambda: read(self._handle), "the energy counter of NVML"))


def find_handle(nvml: Any, number: int) -> Any:
    """Return NVML's handle of the GPU with this number of CUDA.

    Raises RunnerError when that is not certain.
    """
    name = str(number)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = visible.split(",")
        name = names[number].strip() if number < len(names) else ""
    if name.startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(name)
    if not re.fullmatch(r"\d+", name, re.ASCII):
        raise RunnerError(f"CUDA_VISIBLE_DEVICES names no whole GPU for device {number}")
    # CUDA puts the fastest first unless told otherwise, NVML the lowest on the bus
    if os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise RunnerError("CUDA_DEVICE_ORDER is not PCI_BUS_ID: NVML may number GPUs otherwise")
    return nvml.nvmlDeviceGetHandleByIndex(int(name))
