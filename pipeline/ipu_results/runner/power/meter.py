"""Power by a command or by declaration, and what every sensor shares: readings, polling, the mean over a window."""

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
from typing import NamedTuple

from ipu_results.errors import RunnerError

INTERVAL_S = 1.0
MIN_WINDOW_S = 2.0
COMMAND_TIMEOUT_S = 5.0
OUTPUT_LIMIT = 1 << 16
# Above what any machine draws: a counter that was reset, or another unit.
MAX_W = 1e6
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


class Reading(NamedTuple):
    """One reading in watts, above 0 and at most MAX_W, or None with the reason."""

    watts: float | None
    reason: str | None


def check_watts(watts: float, source: str) -> Reading:
    """Return the reading of these watts. A device that computes draws power: 0 W means that there is no figure."""
    if 0 < watts <= MAX_W:
        return Reading(watts, None)
    return Reading(None, f"{source} gave {watts:g} W")


def check_window(elapsed_s: float, needed_s: float) -> str | None:
    """Return why a window is too short for a mean, None when it is not."""
    return f"the window of {elapsed_s:.1f} s is shorter than {needed_s:g} s" if elapsed_s < needed_s else None


class Poller:
    """A thread that calls `act` after `first_s` and then every `interval_s`, until it is stopped."""

    def __init__(self, act: Callable[[], object], interval_s: float, first_s: float) -> None:
        self._act, self._interval_s, self._first_s = act, interval_s, first_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic() + self._first_s
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self._act()
            due = max(due + self._interval_s, time.monotonic())

    def stop(self) -> None:
        """Wait for the call under way, if any; none follows it."""
        self._ended.set()
        self._thread.join()


class SampledSensor:
    """The mean of readings taken in the middle of each interval. One bad reading voids its window."""

    def __init__(
        self,
        read: Callable[[], Reading],
        *,
        scope: str,
        name: str,
        interval_s: float = INTERVAL_S,
        min_window_s: float = MIN_WINDOW_S,
    ) -> None:
        self._read, self._interval_s = read, interval_s
        self.scope, self.name, self.min_window_s = scope, name, min_window_s
        self.reason: str | None = None
        self._poller: Poller | None = None
        self._readings: list[Reading] = []
        self._started = 0.0

    def start(self) -> None:
        self.close()
        self.reason, self._readings = None, []
        self._started = time.monotonic()
        self._poller = Poller(self._sample, self._interval_s, self._interval_s / 2)

    def _sample(self) -> None:
        try:
            reading = self._read()
        except Exception as error:
            reading = Reading(None, str(error) or type(error).__name__)
        self._readings.append(reading)

    def stop(self) -> float | None:
        """Return the mean watts since `start`, or None with `reason` set. Waits for the reading under way."""
        elapsed = time.monotonic() - self._started
        self.close()
        watts, self.reason = average_readings(self._readings)
        self.reason = self.reason or check_window(elapsed, self.min_window_s)
        return None if self.reason else watts

    def close(self) -> None:
        if self._poller:
            self._poller.stop()
        self._poller = None


def average_readings(readings: Sequence[Reading]) -> Reading:
    """Return the mean of the readings, or the reason of the first that failed."""
    if not readings:
        return Reading(None, "there was no reading within the window")
    bad = [reading.reason for reading in readings if reading.watts is None]
    if bad:
        return Reading(None, f"{len(bad)} of {len(readings)} readings failed: {bad[0]}")
    return Reading(math.fsum(reading.watts or 0.0 for reading in readings) / len(readings), None)


def run_command(argv: Sequence[str], timeout_s: float = COMMAND_TIMEOUT_S) -> str:
    """Return what a command prints. Raises RunnerError when it does not start, fails, hangs or prints without end."""
    program = name_program(argv)
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a command"
        raise RunnerError(f"{program} could not be started: {reason}") from error
    output, late = _read_output(process, timeout_s)
    if late:
        raise RunnerError(f"{program} did not answer within {timeout_s:g} s")
    if len(output) > OUTPUT_LIMIT:
        raise RunnerError(f"{program} printed more than {OUTPUT_LIMIT} bytes")
    if process.returncode:
        raise RunnerError(f"{program} ended with status {process.returncode}")
    return output.decode("utf-8", errors="replace")


def _read_output(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bool]:
    """Return the output up to the limit, and whether the time ran out before the command closed its output."""
    late = threading.Event()

    def expire() -> None:
        late.set()
        _kill(process)

    alarm = threading.Timer(timeout_s, expire)
    alarm.start()
    with process:
        assert process.stdout is not None
        try:
            output = process.stdout.read(OUTPUT_LIMIT + 1)
            if len(output) > OUTPUT_LIMIT:
                _kill(process)
            process.wait()
        except BaseException:
            _kill(process)
            raise
        finally:
            alarm.cancel()
    return output, late.is_set()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started, which may hold its output open after it has ended itself."""
    with suppress(OSError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def name_program(argv: Sequence[str]) -> str:
    """Return the name of the program without its folder and arguments, which may name a user or a machine."""
    return PurePath(argv[0]).name if argv else ""


def parse_watts(text: str, source: str = "the power command") -> Reading:
    """Parse the one number of watts that a power command must print."""
    match = NUMBER.fullmatch(text.strip())
    if not match:
        return Reading(None, f"{source} printed no single number of watts")
    return check_watts(float(match[0]), source)


def open_wall_meter(
    command: str, *, timeout_s: float = COMMAND_TIMEOUT_S, interval_s: float = INTERVAL_S
) -> SampledSensor:
    """Open a sensor that runs `command` once an interval, without a shell. Raises RunnerError if it cannot be split."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise RunnerError(f"the power command cannot be read: {str(error).lower()}") from error
    if not any(argv[:1]):
        raise RunnerError("the power command is empty")

    def read() -> Reading:
        return parse_watts(run_command(argv, timeout_s))

    return SampledSensor(read, scope="wall", name=f"power command {name_program(argv)}", interval_s=interval_s)


class DeclaredPower:
    """A power that the user states. Raises RunnerError unless it is a finite number above 0."""

    scope = "declared"
    min_window_s = 0.0
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
