"""Measure what opens the record where no DuckDB file is built, as in a fresh clone or an installed
wheel: `--help`, queries, a load, a comparison.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ipu_results.record.store.files import DATABASE

from benchmarks.ingest import get_cpu, measure_processes, tabulate_costs
from benchmarks.processes import ROOT, find_program
from benchmarks.report import Options, Report, ReportTarget

HELP = "--help"
QUERY = "query of one table"
LOAD = "ipu_results.load"
COMPARE = "compare"
SQL = "SELECT model, count(*) FROM inference GROUP BY ALL ORDER BY ALL"
RUN = ("--model=resnet50", "--platform=ipu-m2000", "--batch-size=4", "--throughput=7800")
MAX_CPU_S = {HELP: 0.15, QUERY: 0.6, LOAD: 1.0, COMPARE: 1.4}


def run(options: Options) -> Report:
    """Measure them over a copy of the committed files, and count the files that they write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ignored = shutil.ignore_patterns(DATABASE, ".*")
        shutil.copytree(ROOT / "warehouse", folder, ignore=ignored, dirs_exist_ok=True)
        before = set(folder.rglob("*"))
        load = f"import ipu_results; ipu_results.load('inference', warehouse={name!r})"
        program = find_program()
        commands = {
            HELP: [*program, "--help"],
            QUERY: [*program, "query", SQL, "--warehouse", name],
            LOAD: [sys.executable, "-c", load],
            COMPARE: [*program, "compare", *RUN, "--warehouse", name],
        }
        costs = measure_processes(commands, options)
        written = len(set(folder.rglob("*")) - before)
    targets = [
        ReportTarget(f"{command}: CPU seconds", get_cpu(costs, command), limit)
        for command, limit in MAX_CPU_S.items()
    ]
    return Report(
        "open",
        "answer from the Parquet files alone",
        [tabulate_costs(costs, HELP)],
        [*targets, ReportTarget("files written", written, 0)],
        ["Every run is a fresh process. One unmeasured round went before."],
    )
