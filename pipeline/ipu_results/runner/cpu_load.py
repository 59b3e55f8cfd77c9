"""The machine's speed and load: a short computation whose time shows the speed, and who used the CPU in a window."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from ipu_results._util.files import write_atomically
from ipu_results.emulator.cache import get_cache_folder
from ipu_results.errors import IpuResultsError

STEPS = 60_000
HISTORY = "probes.json"
# Linux counts a guest's time within user and nice as well.
COUNTED_TWICE = ("guest", "guest_nice")
WAITING = ("idle", "iowait")


def run_probe(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Return the milliseconds of a fixed single-threaded computation: about 5, more when the machine is slow."""
    started = clock()
    compute_steps(STEPS)
    return (clock() - started) / 1e6


def compute_steps(steps: int) -> int:
    """Return the value after N steps of a linear congruential generator (constants of Numerical Recipes)."""
    value = 1
    for _ in range(steps):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
    return value


def load_best_probe(cache: Path | None = None) -> float | None:
    """Return the best probe since the machine was started, in ms: it reveals a slow spell that outlasts a whole run.

    None where no sweep has run since then. A damaged file counts as absent.
    """
    try:
        history = json.loads(((cache or get_cache_folder()) / HISTORY).read_text(encoding="utf-8"))
        best = history["best_ms"] if history["machine"] == _identify_machine() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(best) if isinstance(best, int | float) and best > 0 else None


def save_best_probe(best_ms: float, cache: Path | None = None) -> None:
    """Keep the better of this probe and the known one. A folder that cannot be written to is ignored."""
    path = (cache or get_cache_folder()) / HISTORY
    known = load_best_probe(cache)
    history = {"machine": _identify_machine(), "best_ms": best_ms if known is None else min(best_ms, known)}
    with suppress(OSError, IpuResultsError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(history).encode())


def _identify_machine() -> str:
    """Name this start of this machine and this interpreter: a virtual machine may wake on other hardware."""
    return f"{int(psutil.boot_time())} {platform.processor()} {platform.python_version()} {STEPS}"


class Load(NamedTuple):
    """Shares, 0 to 1, of the machine's CPU time in a window. None where the system does not report them.

    `foreign_cpu` was used by processes that are not ours, `steal` by the hypervisor for other machines.
    """

    foreign_cpu: float | None
    steal: float | None


class Usage(NamedTuple):
    """CPU seconds since the start: of the machine in total, busy and stolen, and of our processes."""

    total: float
    busy: float
    steal: float | None
    own: float


def read_usage(system: Callable[[], Any] = psutil.cpu_times, own: Callable[[], float] | None = None) -> Usage:
    """Read the CPU time used so far."""
    times = {name: spent for name, spent in system()._asdict().items() if name not in COUNTED_TWICE}
    total, steal = sum(times.values()), times.get("steal")
    idle = sum(times.get(name, 0.0) for name in WAITING)
    return Usage(total, total - idle - (steal or 0.0), steal, (own or read_own_seconds)())


def read_own_seconds(process: psutil.Process | None = None) -> float:
    """Sum the CPU seconds of this process and its descendants; an ended one counts in the parent that waited for it."""
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


def compute_load(earlier: Usage, later: Usage) -> Load:
    """Return the load between two moments; a window below the clock's tick has none."""
    total = later.total - earlier.total
    if total <= 0:
        return Load(None, None)
    foreign = (later.busy - earlier.busy) - (later.own - earlier.own)
    stolen = None if earlier.steal is None or later.steal is None else later.steal - earlier.steal
    return Load(_clip_share(foreign / total), None if stolen is None else _clip_share(stolen / total))


def _clip_share(share: float) -> float:
    return min(1.0, max(0.0, share))
