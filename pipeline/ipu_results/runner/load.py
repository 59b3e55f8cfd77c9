"""What else the machine does: a short computation whose time tells its speed, and who used the CPU in a window."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import psutil

STEPS = 60_000
# Linux counts a guest's time within user and nice as well.
COUNTED_TWICE = ("guest", "guest_nice")
WAITING = ("idle", "iowait")


class Probe:
    """A fixed single-threaded computation in pure Python of about 5 ms; its time rises when the machine slows down."""

    def __init__(self, steps: int = STEPS, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._steps, self._clock = steps, clock

    def run(self) -> float:
        """Milliseconds that it took this time."""
        started = self._clock()
        compute(self._steps)
        return (self._clock() - started) / 1e6


def compute(steps: int) -> int:
    """The value after that many steps of a linear congruential generator (Numerical Recipes' constants)."""
    value = 1
    for _ in range(steps):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
    return value


class Load(NamedTuple):
    """Shares, 0 to 1, of the machine's CPU time in a window. None where the system does not tell.

    `foreign_cpu` was used by processes that are not ours, `steal` taken by the hypervisor for other machines.
    """

    foreign_cpu: float | None
    steal: float | None


class Usage(NamedTuple):
    """CPU seconds since the start: of the machine in all, busy and stolen, and of our processes."""

    total: float
    busy: float
    steal: float | None
    own: float


def usage(system: Callable[[], Any] = psutil.cpu_times, own: Callable[[], float] | None = None) -> Usage:
    """The CPU time used so far."""
    times = {name: spent for name, spent in system()._asdict().items() if name not in COUNTED_TWICE}
    total, steal = sum(times.values()), times.get("steal")
    idle = sum(times.get(name, 0.0) for name in WAITING)
    return Usage(total, total - idle - (steal or 0.0), steal, (own or own_seconds)())


def own_seconds(process: psutil.Process | None = None) -> float:
    """CPU seconds of this process and its descendants; those that ended count in the parent that waited for them."""
    process = process or psutil.Process()
    family = [process]
    with suppress(psutil.Error):
        family += process.children(recursive=True)
    seconds = 0.0
    for member in family:
        with suppress(psutil.Error):
            times = member.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def between(earlier: Usage, later: Usage) -> Load:
    """The load from one state to the other; a window below the clock's tick has none."""
    total = later.total - earlier.total
    if total <= 0:
        return Load(None, None)
    foreign = (later.busy - earlier.busy) - (later.own - earlier.own)
    stolen = None if earlier.steal is None or later.steal is None else later.steal - earlier.steal
    return Load(_share(foreign, total), None if stolen is None else _share(stolen, total))


def _share(part: float, total: float) -> float:
    return min(1.0, max(0.0, part / total))


class LoadWatch:
    """The load between `start` and `stop`."""

    def __init__(self, look: Callable[[], Usage] = usage) -> None:
        self._look = look
        self._earlier: Usage | None = None

    def start(self) -> None:
        self._earlier = self._look()

    def stop(self) -> Load:
        """The load since `start`, which may be asked again for a longer window."""
        return between(self._earlier, self._look()) if self._earlier else Load(None, None)
