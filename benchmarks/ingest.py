"""Compare `ipu-results ingest` over the committed documents with a process that only imports its
libraries.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType

from ipu_results.record.sources.catalogue import CACHE

from benchmarks.processes import ROOT, CommandCost, find_program, measure_command, take_turns
from benchmarks.report import Options, Report, ReportTable, ReportTarget

IMPORTS = "import pandas, pyarrow, duckdb, pandera.pandas, lxml.etree"
INGEST = "ipu-results ingest"
CHANGED = "ipu-results ingest after one changed file"
ALONE = "the imports alone"
ROUNDS = 7
QUICK_ROUNDS = 1
MAX_COLD_RATIO = 7.0
MAX_CHANGED_RATIO = 3.5
MAX_MB = 540.0
COLUMNS = ("process", "median s", "min s", "max s", "ratio", "CPU s", "peak MB")
POLL_S = 0.02  # between readings of the peak memory, which only grows
RAW = ROOT / "raw"
PAPER = "resnext101-c2-2020-02-28.pdf.toml"

Costs = Mapping[str, Sequence[CommandCost]]


def run(options: Options) -> Report:
    """Measure `ingest` in turns with the imports alone, after one round that does not count."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        raw = project / "raw"
        shutil.copytree(RAW / "qwant" if options.quick else RAW, raw)
        folders = ["--raw", str(raw), "--warehouse", str(project / "warehouse")]
        ingest = [*find_program(), "ingest", *folders]
        commands = {
            INGEST: ingest,
            CHANGED: ingest,
            ALONE: [sys.executable, "-c", IMPORTS],
        }
        before = {INGEST: partial(forget, project), CHANGED: partial(change_one, raw)}
        costs = measure_processes(commands, options, before)
    peak = max(cost.main_peak or 0.0 for cost in costs[INGEST])
    imports = get_wall(costs, ALONE)
    cold = get_wall(costs, INGEST) / imports
    changed = get_wall(costs, CHANGED) / imports
    return Report(
        "ingest",
        "build the warehouse from the committed documents, compared with importing the libraries",
        [tabulate_costs(costs, ALONE)],
        [
            ReportTarget("ingest / imports", cold, MAX_COLD_RATIO),
            ReportTarget("ingest after one changed file / imports", changed, MAX_CHANGED_RATIO),
            ReportTarget("peak memory of ingest, MB", peak, MAX_MB),
        ],
        [
            f"The imports: `{IMPORTS}`. Every run is a fresh process. One unmeasured round went"
            " before."
        ],
    )


def forget(project: Path) -> None:
    """Delete the cache of read documents."""
    shutil.rmtree(project / CACHE, ignore_errors=True)


def change_one(raw: Path) -> None:
    """Change one file: the sidecar of the paper, by a comment."""
    with next(raw.rglob(PAPER)).open("a", encoding="utf-8") as sidecar:
        sidecar.write("# changed\n")


def measure_processes(
    commands: Mapping[str, Sequence[str]],
    options: Options,
    before: Mapping[str, Callable[[], None]] = MappingProxyType({}),
) -> Costs:
    """Measure whole processes in turns, after one round that does not count; `before` has what to
    do before a command, which is not measured.
    """

    def measure(name: str) -> CommandCost:
        if name in before:
            before[name]()
        return measure_command(commands[name], Path(os.devnull), poll_s=POLL_S)

    ways = {name: partial(measure, name) for name in commands}
    if options.quick:
        return take_turns(ways, QUICK_ROUNDS)
    take_turns(ways, 1)
    return take_turns(ways, ROUNDS)


def tabulate_costs(costs: Costs, base: str) -> ReportTable:
    rows = []
    for name, runs in costs.items():
        walls = [cost.wall for cost in runs]
        peak = max(cost.main_peak or 0.0 for cost in runs)
        ratio = median(walls) / get_wall(costs, base)
        cpu = get_cpu(costs, name)
        rows.append((name, median(walls), min(walls), max(walls), ratio, cpu, peak))
    title = f"Wall time, CPU time and memory, {len(costs[base])} interleaved runs"
    return ReportTable(title, COLUMNS, rows)


def get_wall(costs: Costs, name: str) -> float:
    return median(cost.wall for cost in costs[name])


def get_cpu(costs: Costs, name: str) -> float:
    return median(cost.cpu for cost in costs[name])
