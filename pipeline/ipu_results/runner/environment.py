"""The machine of a sweep: its properties, its speed and load from moment to moment, and other
sweeps on it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypedDict

import psutil
from filelock import FileLock, Timeout

from ipu_results.errors import IpuResultsError
from ipu_results.kit.files import write_atomically

PROC = Path("/proc")
SYS = Path("/sys")
# the flags of a CPU that matter for arithmetic
ARITHMETIC = (
    "sse4_2 avx avx2 fma f16c avx512f avx512_vnni avx512_bf16 avx512_fp16 avx_vnni amx_tile"
    " amx_bf16 amx_int8 amx_fp16 neon asimd asimdhp asimddp bf16 i8mm sve"
)
# parts of the name of a control group
CONTAINERS = ("docker", "kubepods", "containerd", "libpod", "lxc", "garden")
# how the maker of a virtual machine's firmware begins
HYPERVISORS = (
    "QEMU",
    "VMware",
    "innotek",
    "Xen",
    "Parallels",
    "Google",
    "DigitalOcean",
    "OpenStack",
)


class Environment(TypedDict):
    """The machine, in the record's names; None where the system does not report a property."""

    cpu: str | None
    cpu_flags: list[str] | None
    machine: str
    logical_cores: int | None
    physical_cores: int | None
    usable_cores: int | None
    cpu_quota: float | None
    memory_gb: float
    governor: str | None
    system: str
    kernel: str
    python: str
    container: str | None
    virtual_machine: str | None
    load_average: list[float]


class CpuInfo(NamedTuple):
    """What /proc/cpuinfo says: `flags` are those for arithmetic, None if it lists none."""

    model: str | None = None
    flags: list[str] | None = None
    hypervisor: bool = False


def describe_environment() -> Environment:
    cpu = parse_cpuinfo(read_text(PROC / "cpuinfo") or "")
    return {
        "cpu": cpu.model or platform.processor() or None,
        "cpu_flags": cpu.flags,
        "machine": platform.machine(),
        "logical_cores": psutil.cpu_count(logical=True),
        "physical_cores": psutil.cpu_count(logical=False),
        "usable_cores": count_usable_cores(),
        "cpu_quota": read_cpu_quota(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "governor": read_governors(),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "container": detect_container(),
        "virtual_machine": detect_virtual_machine(cpu.hypervisor),
        "load_average": [round(load, 2) for load in psutil.getloadavg()],
    }


def read_text(path: Path) -> str | None:
    """Return the text of a file of the system without white space around it; None where it cannot
    be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \t\n")
    except OSError:
        return None


def parse_cpuinfo(cpuinfo: str) -> CpuInfo:
    """Read the properties of the first processor."""
    first: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        first.setdefault(key.strip(), value.strip())
    model = first.get("model name")
    if model is None and "CPU part" in first:
        model = f"Arm implementer {first.get('CPU implementer')} part {first['CPU part']}"
    listed = (first.get("flags") or first.get("Features") or "").split()
    if not listed:
        return CpuInfo(model)
    flags = [flag for flag in ARITHMETIC.split() if flag in listed]
    return CpuInfo(model, flags, "hypervisor" in listed)


def name_cpu() -> str:
    """Return the name of the CPU as the system knows it."""
    model = parse_cpuinfo(read_text(PROC / "cpuinfo") or "").model
    return model or platform.processor() or platform.machine()


def count_usable_cores() -> int | None:
    """Count the logical cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def read_cpu_quota(proc: Path = PROC, sys: Path = SYS) -> float | None:
    """Return the CPU time that the control groups allow this process, in cores; None without a
    limit.

    The group's folder and those above it limit it. In a container the path may be one that only the
    host has. Control groups of version 1 are not read.
    """
    folder = sys / "fs" / "cgroup"
    folders = [folder]
    groups = read_text(proc / "self" / "cgroup") or ""
    group = re.search(r"^0::(.*)$", groups, re.MULTILINE)
    path = group[1] if group else ""
    for part in path.split("/"):
        if part not in ("", ".."):
            folder /= part
            folders.append(folder)
    limits = []
    for each in folders:
        limit = read_text(each / "cpu.max") or ""
        match = re.fullmatch(r"(\d+) 0*([1-9]\d*)", limit, re.ASCII)
        if match:  # `max` sets no limit
            limits.append(int(match[1]) / int(match[2]))
    return min(limits, default=None)


def read_governors() -> str | None:
    """Return the CPU frequency governors in use, joined by a comma if there are several."""
    paths = (SYS / "devices" / "system" / "cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = {read_text(path) or "" for path in paths}
    return ", ".join(sorted(governors - {""})) or None


def detect_container(proc: Path = PROC, root: Path = Path("/")) -> str | None:
    """Return the kind of container that this process is in, and the evidence."""
    if (root / ".dockerenv").exists():
        return "docker: marker file"
    if (root / "run" / ".containerenv").exists():
        return "podman: marker file"
    named = read_text(root / "run" / "systemd" / "container")
    if named:
        return f"{named}: told by systemd"  # kept: text of record.json
    groups = read_text(proc / "1" / "cgroup") or ""
    for kind in CONTAINERS:
        if kind in groups:
            return f"{kind}: control group"
    return None


def detect_virtual_machine(flagged: bool, sys: Path = SYS) -> str | None:
    """Return the evidence that this is a virtual machine, and its vendor where known; None without
    evidence.
    """
    vendor = read_text(sys / "class" / "dmi" / "id" / "sys_vendor")
    kind = read_text(sys / "hypervisor" / "type")
    if flagged:
        return f"hypervisor flag: {vendor}" if vendor else "hypervisor flag"
    if kind:
        return f"hypervisor type: {kind}"
    if vendor and vendor.startswith(HYPERVISORS):
        return f"vendor: {vendor}"
    return None


def read_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    versions = {}
    for name in sorted(names):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


# about 5 ms, which is short beside a block
STEPS = 60_000
HISTORY = "probes.json"
CACHE_VARIABLE = "IPU_RESULTS_CACHE"  # environment variable that names another folder
# Linux counts a guest's time within user and nice as well.
COUNTED_TWICE = ("guest", "guest_nice")
# a core that waits for a disk computes nothing
WAITING = ("idle", "iowait")


def run_probe() -> float:
    """Return the milliseconds of a fixed single-threaded computation: about 5, more when the
    machine is slow.

    It is a linear congruential generator with the constants of Numerical Recipes.
    """
    started = time.perf_counter_ns()
    value = 1
    for _ in range(STEPS):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
    return (time.perf_counter_ns() - started) / 1e6


def get_cache_folder() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 (seldom needed)

    folder = os.environ.get(CACHE_VARIABLE)
    return Path(folder) if folder else user_cache_path("ipu-results", appauthor=False)


def load_best_probe(cache: Path | None = None) -> float | None:
    """Return the best probe since the machine was started, in ms: it reveals a slow spell that
    outlasts a whole run.

    None where no sweep has run since then. A damaged file counts as absent.
    """
    path = (cache or get_cache_folder()) / HISTORY
    try:
        history = json.loads(path.read_text(encoding="utf-8"))
        best = history["best_ms"]
        machine = history["machine"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if machine != _identify_machine() or not isinstance(best, int | float):
        return None
    return float(best) if best > 0 else None


def save_best_probe(best_ms: float, cache: Path | None = None) -> None:
    """Keep the better of this probe and the known one.

    A folder that cannot be written to is ignored.
    """
    path = (cache or get_cache_folder()) / HISTORY
    known_ms = load_best_probe(cache)
    if known_ms:
        best_ms = min(best_ms, known_ms)
    history = {"machine": _identify_machine(), "best_ms": best_ms}
    with suppress(OSError, IpuResultsError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(history).encode())


def _identify_machine() -> str:
    """Name this start of this machine and this interpreter: a virtual machine may wake on other
    hardware.
    """
    return f"{int(psutil.boot_time())} {platform.processor()} {platform.python_version()} {STEPS}"


class Load(NamedTuple):
    """Shares, 0 to 1, of the machine's CPU time in a window.

    None where the system does not report them.

    `foreign_cpu` was used by processes that are not ours, `steal` by the hypervisor for other
    machines.
    """

    foreign_cpu: float | None
    steal: float | None


class Usage(NamedTuple):
    """CPU seconds since the start: of the machine, busy and stolen ones, and of our processes."""

    total: float
    busy: float
    steal: float | None
    own: float


def read_usage() -> Usage:
    """Read the CPU time used so far."""
    times = psutil.cpu_times()._asdict()
    for name in COUNTED_TWICE:
        times.pop(name, None)
    total = sum(times.values())
    idle = sum(times.get(name, 0.0) for name in WAITING)
    steal = times.get("steal")
    busy = total - idle - (steal or 0.0)
    return Usage(total, busy, steal, own=_read_own_seconds())


def _read_own_seconds() -> float:
    """Sum the CPU seconds of this process and its descendants; an ended one counts in the parent
    that waited for it.
    """
    process = psutil.Process()
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
    # two readings within one tick of the clock
    if total <= 0:
        return Load(None, None)
    busy = later.busy - earlier.busy
    own = later.own - earlier.own
    steal = None
    if earlier.steal is not None and later.steal is not None:
        steal = _clip_share((later.steal - earlier.steal) / total)
    return Load(_clip_share((busy - own) / total), steal)


def _clip_share(share: float) -> float:
    return min(1.0, max(0.0, share))


# where sweeps announce themselves: an environment variable names the folder, or it is a temporary one
VARIABLE = "IPU_RESULTS_LOCKS"
FOLDER = "ipu-results-sweeps"
SUFFIX = ".lock"
# A sweep that checks whether another one is alive holds its lock for a moment: waiting must outlast
# that.
ANNOUNCE_S = 5.0
CHECK_S = 0.05


class ConcurrentSweeps:
    """The sweeps other than the one of this name.

    `reason` says why they cannot be known, None when they can.
    """

    def __init__(self, folder: Path, run_id: str, reason: str | None = None) -> None:
        self._folder = folder
        self._run_id = run_id
        self.reason = reason

    def list_others(self) -> list[str]:
        """Return the run ids of the other living sweeps, in order; remove files of dead ones where
        that is allowed.
        """
        if self.reason:
            return []
        others = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            if path.stem != self._run_id and _is_alive(path):
                others.append(path.stem)
        return others


def _is_alive(path: Path) -> bool:
    lock = FileLock(
        path, timeout=CHECK_S, poll_interval=CHECK_S / 5, mode=0o666, preserve_lock_file=True
    )
    try:
        lock.acquire()
    except (Timeout, PermissionError):
        # a living sweep holds its lock; another user's file counts too, as it may be of one
        return True
    except OSError:
        return False
    with suppress(OSError):
        path.unlink(missing_ok=True)
    lock.release()
    return False


@contextmanager
def announce_sweep(run_id: str) -> Iterator[ConcurrentSweeps]:
    """Announce a sweep to the others while the block runs.

    A folder that cannot be written to does not stop a sweep: the others are then unknown, with the
    reason.
    """
    folder = Path(os.environ.get(VARIABLE) or Path(tempfile.gettempdir()) / FOLDER)
    path = folder / f"{run_id}{SUFFIX}"
    lock = FileLock(path, timeout=ANNOUNCE_S, mode=0o666, preserve_lock_file=True)
    reason = None
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                # for all users; as in /tmp, each removes only what is their own
                folder.chmod(0o1777)
        lock.acquire()
    except OSError as error:
        reason = f"the folder of the locks cannot be used: {error.strerror or type(error).__name__}"
    try:
        yield ConcurrentSweeps(folder, run_id, reason)
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            lock.release()
