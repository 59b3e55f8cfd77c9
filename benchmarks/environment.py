"""Where the figures come from: processor, cores, versions, date; and what a process uses of memory."""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("ipu-results", "pandas", "pyarrow", "duckdb", "pandera", "lxml", "beautifulsoup4", "numpy")
MEGABYTE = 1_000_000


def environment() -> dict[str, str | int | float]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_1min": round(os.getloadavg()[0], 2),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in LIBRARIES},
    }


def peak_mb() -> float:
    """The most resident memory that this process has had.

    Linux counts ru_maxrss from before exec, thus with the parent's memory in it; VmHWM does not.
    """
    found = _kilobytes(Path("/proc/self/status"), "VmHWM")
    if found is None:
        usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage / MEGABYTE if sys.platform == "darwin" else usage * 1024 / MEGABYTE
    return found


def resident_mb(pid: int) -> float | None:
    """Resident memory of a process; None where it has ended or the system does not tell."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS")


def peak_mb_of(pid: int) -> float | None:
    """The most resident memory that a process has had so far; None where it has ended or the system does not tell."""
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM")


def available_mb() -> float | None:
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable")


def _kilobytes(path: Path, name: str) -> float | None:
    text = _field(path, name)
    return int(text.split()[0]) * 1024 / MEGABYTE if text else None


def _field(path: Path, name: str) -> str | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
