"""Whole processes: wall time, processor time of them and of all that they started, and peak memory of each."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from benchmarks.child import ERROR_LINES, ROOT
from benchmarks.environment import peak_mb_of

WORKER = "multiprocessing.spawn"


@dataclass(frozen=True, slots=True)
class Took:
    """What a command took, in seconds. Peaks in MB are there where memory was watched and the system tells."""

    wall: float
    user: float
    system: float
    main_peak: float | None = None
    worker_peaks: tuple[float, ...] = ()

    @property
    def cpu(self) -> float:
        return self.user + self.system


def took(command: Sequence[str], out: Path, stdin: Path | None = None, every_s: float | None = None) -> Took:
    """Run a command, its output in a file. `every_s` is how often its memory is looked at; None is never.

    Raises RuntimeError where it fails.
    """
    peaks: dict[int, tuple[bool, float]] = {}
    with open(stdin or os.devnull, "rb") as source, out.open("wb") as to, TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdin=source, stdout=to, stderr=errors)
        try:
            done, status, usage = os.wait4(process.pid, 0 if every_s is None else os.WNOHANG)
            while not done:
                _look(process.pid, peaks)
                time.sleep(every_s or 0)
                done, status, usage = os.wait4(process.pid, os.WNOHANG)
            taken = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        errors.seek(0)
        told = errors.read().decode(errors="replace")
    if process.returncode:
        last = " ".join(told.strip().split("\n")[-ERROR_LINES:])
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {last}")
    workers = tuple(peak for is_worker, peak in peaks.values() if is_worker)
    main = peaks[process.pid][1] if process.pid in peaks else None
    return Took(taken, usage.ru_utime, usage.ru_stime, main, workers)


def _look(root: int, peaks: dict[int, tuple[bool, float]]) -> None:
    """The high-water mark of each process so far. It only grows, so the last look before its end tells it."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if (peak := peak_mb_of(pid)) is not None:
            peaks[pid] = (WORKER in _text(Path(f"/proc/{pid}/cmdline")), peak)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += map(int, _text(task).split())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
