"""`ipu-results ingest` over the carried documents, beside a process that only imports the libraries it stands on."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.child import ROOT
from benchmarks.options import Options
from benchmarks.report import Report, Table, Target

IMPORTS = "import pandas, pyarrow, duckdb, pandera.pandas, bs4"
REPEATS, QUICK_REPEATS = 7, 1
LIMIT = 3.0
RAW = ROOT / "raw"


def run(options: Options) -> Report:
    repeats, raw = (QUICK_REPEATS, RAW / "qwant") if options.quick else (REPEATS, RAW)
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "ipu-results ingest": [*program(), "ingest", "--raw", str(raw), "--warehouse", folder],
            "the imports alone": [sys.executable, "-c", IMPORTS],
            "ipu-results --version": [*program(), "--version"],
        }
        if not options.quick:
            _interleaved(commands, 1)
        taken = _interleaved(commands, repeats)
    base = median(taken["the imports alone"])
    rows = [(name, median(times), min(times), max(times), median(times) / base) for name, times in taken.items()]
    ratio = median(taken["ipu-results ingest"]) / base
    return Report(
        "ingest",
        "build the warehouse from the carried documents, beside importing the libraries",
        [Table(f"Wall time, {repeats} interleaved runs", ("process", "median s", "min s", "max s", "ratio"), rows)],
        [Target("ingest / imports", ratio, LIMIT)],
        [f"The imports: `{IMPORTS}`. Every run is a fresh process; one round went before, unmeasured."],
    )


def _interleaved(commands: dict[str, list[str]], repeats: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            taken[name].append(_seconds(command))
    return taken


def program() -> list[str]:
    script = Path(sysconfig.get_path("scripts")) / "ipu-results"
    return [str(script)] if script.exists() else [sys.executable, "-m", "ipu_results"]


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    return taken
