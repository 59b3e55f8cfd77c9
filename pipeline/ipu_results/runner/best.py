"""The best probe of this machine since it was started: what tells a slow spell that outlasts a whole run."""

from __future__ import annotations

import json
import platform
from contextlib import suppress
from pathlib import Path

import psutil

from ipu_results._util.files import write_atomically
from ipu_results.emulator.cache import get_cache_folder
from ipu_results.errors import IpuResultsError
from ipu_results.runner.load import STEPS

FILE = "probes.json"


def best_known(where: Path | None = None) -> float | None:
    """Milliseconds; None where no sweep has run since the machine was started. A damaged file counts as absent."""
    try:
        found = json.loads(_path(where).read_text(encoding="utf-8"))
        known = found["best_ms"] if found["machine"] == _machine() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(known) if isinstance(known, int | float) and known > 0 else None


def remember(best_ms: float, where: Path | None = None) -> None:
    """Keep the lesser of this and what was known. A folder that cannot be written is passed over."""
    path = _path(where)
    known = best_known(where)
    told = {"machine": _machine(), "best_ms": best_ms if known is None else min(best_ms, known)}
    with suppress(OSError, IpuResultsError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(told).encode())


def _path(where: Path | None) -> Path:
    return (get_cache_folder() if where is None else where) / FILE


def _machine() -> str:
    """This start of this machine, and this interpreter: a virtual one may wake on other hardware."""
    return f"{int(psutil.boot_time())} {platform.processor()} {platform.python_version()} {STEPS}"
