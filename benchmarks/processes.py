"""Measure in other processes: a function of this package step by step, or a command with its time
and memory.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
PROC = Path("/proc")
MEMORY_SHARE = 0.85  # of the free memory: a child that needs more is killed
TIMEOUT_S = 3600
POLL_S = 0.1
ERROR_LINES = 3
WORKER = "multiprocessing.spawn"  # in the command line of a worker process

Step = dict[str, Any]
StepFunction = Callable[..., Iterator[Step]]
Figure = TypeVar("Figure")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The steps that a child process reported; `failure` says why it did not finish."""

    steps: list[Step]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class CommandCost:
    """Seconds of a command.

    Peaks, in MB, are there where memory was watched and the system reports it.
    """

    wall: float
    user: float
    system: float
    main_peak: float | None = None
    worker_peaks: tuple[float, ...] = ()

    @property
    def cpu(self) -> float:
        return self.user + self.system


def run_in_child(function: StepFunction, /, **arguments: Any) -> Outcome:
    """Run `function(**arguments)` in a fresh process, killed before it uses up the machine's
    memory.

    Arguments and steps are passed as JSON.
    """
    name = f"{function.__module__}:{function.__name__}"
    command = [sys.executable, "-m", "benchmarks.processes", name, json.dumps(arguments)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT)
        failure = _watch(process)
        out.seek(0)
        err.seek(0)
        if failure is None and process.returncode:
            failure = join_last_lines(err.read()) or f"exit {process.returncode}"
        return Outcome([json.loads(line) for line in out], failure)


def run_steps(function: StepFunction, /, **arguments: Any) -> list[Step]:
    """Run a function in a child and return all of its steps. Raises RuntimeError where it fails."""
    outcome = run_in_child(function, **arguments)
    if outcome.failure is not None:
        raise RuntimeError(
            f"{function.__name__}: {outcome.failure}, after {len(outcome.steps)} steps"
        )
    return outcome.steps


def find_program() -> list[str]:
    """Return the command `ipu-results`, or how Python runs it where its script is not installed."""
    script = Path(sysconfig.get_path("scripts")) / "ipu-results"
    return [str(script)] if script.exists() else [sys.executable, "-m", "ipu_results"]


def measure_command(command: Sequence[str], out: Path, poll_s: float | None = None) -> CommandCost:
    """Run a command and write its output to a file.

    `poll_s` is how often memory is read, None for never.

    Raises RuntimeError where it fails.
    """
    peaks: dict[int, tuple[bool, float]] = {}
    with out.open("wb") as target, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=target, stderr=errors
        )
        try:
            done, status, usage = os.wait4(process.pid, 0 if poll_s is None else os.WNOHANG)
            while not done:
                _read_peaks(process.pid, peaks)
                time.sleep(poll_s or 0)
                done, status, usage = os.wait4(process.pid, os.WNOHANG)
            wall = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        errors.seek(0)
        message = join_last_lines(errors.read().decode(errors="replace"))
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {message}")
    workers = tuple(peak for is_worker, peak in peaks.values() if is_worker)
    main_peak = peaks[process.pid][1] if process.pid in peaks else None
    return CommandCost(wall, usage.ru_utime, usage.ru_stime, main_peak, workers)


def take_turns(
    ways: Mapping[str, Callable[[], Figure]], rounds: int, order: random.Random | None = None
) -> dict[str, list[Figure]]:
    """Run every way once a round, in this order or in one drawn for each round, and return the
    figures by way.
    """
    figures: dict[str, list[Figure]] = {name: [] for name in ways}
    for _ in range(rounds):
        names = order.sample(list(ways), len(ways)) if order else list(ways)
        for name in names:
            figures[name].append(ways[name]())
    return figures


def read_peak_mb() -> float:
    """Return the maximum resident memory of this process so far, 0 where the system has no /proc.

    Linux counts ru_maxrss from before exec, thus with the parent's memory; VmHWM does not.
    """
    return _read_mb(PROC / "self/status", "VmHWM") or 0.0


def _read_mb(path: Path, name: str) -> float | None:
    """Return a field in kB of a file in /proc as MB; None where the process has ended or the system
    has no /proc.
    """
    for line in _read_text(path).splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / 1e6
    return None


def _watch(process: subprocess.Popen[bytes]) -> str | None:
    """Wait for a process, or kill it where memory or time runs out, and say which."""
    available = _read_mb(PROC / "meminfo", "MemAvailable")
    end = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < end:
            try:
                process.wait(POLL_S)
                return None
            except subprocess.TimeoutExpired:
                resident = _read_mb(PROC / f"{process.pid}/status", "VmRSS")
            if available and resident and resident > MEMORY_SHARE * available:
                return (
                    f"stopped at {resident / 1000:.1f} GB of {available / 1000:.1f} GB that were"
                    " free"
                )
        return f"stopped after {TIMEOUT_S:,} s"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _read_peaks(root: int, peaks: dict[int, tuple[bool, float]]) -> None:
    """Read the peak of a process and of all its descendants.

    It only grows, so the last reading is the result.
    """
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        peak = _read_mb(PROC / f"{pid}/status", "VmHWM")
        if peak is not None:
            peaks[pid] = (WORKER in _read_text(PROC / f"{pid}/cmdline"), peak)
        for task in PROC.glob(f"{pid}/task/*/children"):
            waiting += map(int, _read_text(task).split())


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def join_last_lines(text: str) -> str:
    return " ".join(text.strip().split("\n")[-ERROR_LINES:])


def main() -> None:
    """Run the function `MODULE:NAME` with arguments in JSON, and print a line of JSON for each
    step.
    """
    module, _, name = sys.argv[1].partition(":")
    for step in getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2])):
        print(json.dumps(step), flush=True)


if __name__ == "__main__":
    main()
