"""A meter of power, and those that need no device: a command that the user names, and a declaration."""

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
from pathlib import PurePath
from statistics import fmean
from typing import Protocol

from ipu_results.errors import RunnerError

OUTPUT_LIMIT = 1 << 16  # bytes that a power command may print; it should print one number
MAX_W = 1e6  # above what any machine draws: a counter that was reset, or another unit
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


class PowerMeter(Protocol):
    """A source of power."""

    scope: str
    """What the figure covers: device, board, package, wall or declared."""
    name: str
    """What the record calls the source."""
    min_window_s: float
    """Seconds of the shortest window that has a mean."""
    reason: str | None
    """Why the last window has no figure: the source could not be read, or the window was too short."""

    def start(self) -> None:
        """Begin a window."""

    def stop(self) -> float | None:
        """End the window; return its mean watts, or None with `reason` set."""

    def close(self) -> None:
        """Release the source."""


def explain_watts(watts: float, source: str) -> str | None:
    """Return why these watts are not a figure: 0 W, which no device that computes draws, or above MAX_W."""
    return None if 0 < watts <= MAX_W else f"{source} gave {watts:g} W"


def check_watts(watts: float, source: str) -> float:
    """Return these watts. Raises RunnerError where they are not a figure."""
    if reason := explain_watts(watts, source):
        raise RunnerError(reason)
    return watts


class DeclaredPower:
    """A power that the user states. Raises RunnerError unless it is a finite number above 0."""

    scope, min_window_s = "declared", 0.0
    reason: str | None = None

    def __init__(self, watts: float) -> None:
        if not (math.isfinite(watts) and watts > 0):
            raise RunnerError(f"the declared power must be a number of watts above 0, not {watts:g}")
        self._watts = watts
        self.name = f"declared {watts:g} W"

    def start(self) -> None:
        pass

    def stop(self) -> float | None:
        return self._watts

    def close(self) -> None:
        pass


class WindowMeter:
    """Base of what is read while a window lasts. One reading that fails voids its window."""

    scope: str
    name: str
    min_window_s: float
    reason: str | None = None
    source: str
    """Its name in a reason."""
    units: float | None = None
    """How many units of an energy counter, which `read` returns then, are a joule. None: `read` returns watts."""
    interval_s: float | None = None
    """Seconds between the readings of a thread; None: no thread. A counter is read at both ends of a window, too."""
    clock: Callable[[], float] = staticmethod(time.monotonic)
    _thread: threading.Thread | None = None

    def read(self) -> float:
        """Return watts or the counter. Raises RunnerError."""
        raise NotImplementedError

    def start(self) -> None:
        self.close()
        self.reason = None
        self._readings: list[float] = []
        self._faults: list[str] = []
        self._ended = threading.Event()
        if self.units:
            self._poll()
        self._started = self.clock()
        if self.interval_s:
            self._thread = threading.Thread(target=self._poll_along, args=(self.interval_s,), daemon=True)
            self._thread.start()

    def stop(self) -> float | None:
        self.close()
        if self.units:
            self._poll()
        elapsed_s, readings, faults = self.clock() - self._started, self._readings, self._faults
        watts = None
        if faults:
            total = f"{len(faults)} of {len(faults) + len(readings)} readings failed: "
            self.reason = ("" if self.units else total) + faults[0]
        elif elapsed_s < self.min_window_s:
            self.reason = f"the window of {elapsed_s:.1f} s is shorter than {self.min_window_s:g} s"
        elif self.units:
            watts = (readings[-1] - readings[0]) / self.units / elapsed_s
            self.reason = explain_watts(watts, self.source)
        elif readings:
            watts = fmean(readings)
        else:
            self.reason = "there was no reading within the window"
        return None if self.reason else watts

    def close(self) -> None:
        """Wait for the reading under way, if any; none follows it."""
        if self._thread:
            self._ended.set()
            self._thread.join()
        self._thread = None

    def _poll(self) -> None:
        try:
            self._readings.append(self.read())
        except Exception as error:  # raised in a thread it would be lost, and the window would look whole
            self._faults.append(str(error) or type(error).__name__)

    def _poll_along(self, interval_s: float) -> None:
        wait_s = interval_s / 2
        while not self._ended.wait(wait_s):
            self._poll()
            wait_s = interval_s


class WallMeter(WindowMeter):
    """A command that prints the watts, run without a shell. Raises RunnerError if it cannot be split into words."""

    scope, source, min_window_s, interval_s = "wall", "the power command", 2.0, 1.0
    timeout_s = 5.0

    def __init__(self, command: str) -> None:
        try:
            self._argv = shlex.split(command)
        except ValueError as error:
            raise RunnerError(f"the power command cannot be read: {str(error).lower()}") from error
        if not any(self._argv[:1]):
            raise RunnerError("the power command is empty")
        self.name = f"power command {PurePath(self._argv[0]).name}"

    def read(self) -> float:
        return parse_watts(run_command(self._argv, self.timeout_s))


def parse_watts(text: str) -> float:
    """Parse the one number of watts that a power command must print. Raises RunnerError."""
    if not NUMBER.fullmatch(text.strip()):
        raise RunnerError("the power command printed no single number of watts")
    return check_watts(float(text), WallMeter.source)


def run_command(argv: Sequence[str], timeout_s: float) -> str:
    """Return what a command prints. Raises RunnerError when it does not start, fails, hangs or prints without end."""
    late = threading.Event()
    program = PurePath(argv[0]).name  # without folder and arguments, which may name a user or a machine
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a command"
        raise RunnerError(f"{program} could not be started: {reason}") from error

    def expire() -> None:
        late.set()
        _kill_group(process)

    alarm = threading.Timer(timeout_s, expire)
    alarm.start()
    with process:
        assert process.stdout is not None
        try:
            output = process.stdout.read(OUTPUT_LIMIT + 1)
            if len(output) > OUTPUT_LIMIT:
                _kill_group(process)
            process.wait()
        except BaseException:
            _kill_group(process)
            raise
        finally:
            alarm.cancel()
    if late.is_set():
        raise RunnerError(f"{program} did not answer within {timeout_s:g} s")
    if len(output) > OUTPUT_LIMIT:
        raise RunnerError(f"{program} printed more than {OUTPUT_LIMIT} bytes")
    if process.returncode:
        raise RunnerError(f"{program} ended with status {process.returncode}")
    return output.decode("utf-8", errors="replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started, which may hold its output open after it has ended itself."""
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
