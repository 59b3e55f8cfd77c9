"""Measure a query and a load where no DuckDB file is built, as in a fresh clone or an installed
wheel.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ipu_results.store.files import DATABASE

from benchmarks.ingest import VERSION, get_cpu, measure_processes, tabulate_costs
from benchmarks.processes import ROOT, find_program
from benchmarks.report import Options, Report, ReportTarget

QUERY, LOAD = "ipu-results query", "ipu_results.load"
SQL = "SELECT model, count(*) FROM inference GROUP BY ALL ORDER BY ALL"
MAX_CPU_S = 1.0


def run(options: Options) -> Report:
    """Measure both over a copy of the committed files, and count the files that they write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ignored = shutil.ignore_patterns(DATABASE, ".*")
        shutil.copytree(ROOT / "warehouse", folder, ignore=ignored, dirs_exist_ok=True)
        before = set(folder.rglob("*"))
        load = f"import ipu_results; ipu_results.load('inference', warehouse={name!r})"
        commands = {
            QUERY: [*find_program(), "query", SQL, "--warehouse", name],
            LOAD: [sys.executable, "-c", load],
            VERSION: [*find_program(), "--version"],
        }
        costs = measure_processes(commands, options)
        written = len(set(folder.rglob("*")) - before)
    return Report(
        "open",
        "answer from the Parquet files alone",
        [tabulate_costs(costs, VERSION)],
        [
            *(
                ReportTarget(f"{name}: CPU seconds", get_cpu(costs, name), MAX_CPU_S)
                for name in (QUERY, LOAD)
            ),
            ReportTarget("files written", written, 0),
        ],
        ["Every run is a fresh process. One unmeasured round went before."],
    )
