"""One measurement in a fresh process: a function of this package that tells what it measured, step by step."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environment import available_mb, resident_mb

ROOT = Path(__file__).resolve().parent.parent
MEMORY_SHARE = 0.85
POLL_S = 0.1
ERROR_LINES = 3

Step = dict[str, Any]
Measured = Callable[..., Iterator[Step]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the process told; `failure` says why it did not come to its end."""

    steps: list[Step]
    failure: str | None = None


def in_child(function: Measured, timeout_s: float = 3600.0, /, **arguments: Any) -> Outcome:
    """Run `function(**arguments)` in a process of its own, stopped before it takes the memory of others.

    Arguments and steps travel as JSON.
    """
    name = f"{function.__module__}:{function.__name__}"
    command = [sys.executable, "-m", "benchmarks.child", name, json.dumps(arguments)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT)
        failure = _watch(process, timeout_s)
        out.seek(0)
        err.seek(0)
        if failure is None and process.returncode:
            failure = " ".join(err.read().split("\n")[-ERROR_LINES - 1 :]).strip() or f"exit {process.returncode}"
        return Outcome([json.loads(line) for line in out], failure)


def told(function: Measured, /, **arguments: Any) -> Step:
    """The last step of a measurement that must not fail."""
    outcome = in_child(function, **arguments)
    if outcome.failure is not None:
        raise RuntimeError(f"{function.__name__}: {outcome.failure}")
    return outcome.steps[-1]


def _watch(process: subprocess.Popen[bytes], timeout_s: float) -> str | None:
    """Wait for the process; end it at the limits."""
    available, start = available_mb(), time.monotonic()
    try:
        while True:
            try:
                process.wait(POLL_S)
                return None
            except subprocess.TimeoutExpired:
                resident = resident_mb(process.pid)
            if available and resident and resident > MEMORY_SHARE * available:
                return f"stopped at {resident / 1000:.1f} GB of {available / 1000:.1f} GB that were free"
            if time.monotonic() - start > timeout_s:
                return f"stopped after {timeout_s:.0f} s"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    for step in function(**json.loads(sys.argv[2])):
        print(json.dumps(step), flush=True)


if __name__ == "__main__":
    main()
