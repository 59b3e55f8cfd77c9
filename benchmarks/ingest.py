"""Compare `ipu-results ingest` over the committed documents with a process that only imports its libraries."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.processes import ROOT, find_program, measure_command, take_turns
from benchmarks.report import Options, Report, ReportTable, ReportTarget

IMPORTS = "import pandas, pyarrow, duckdb, pandera.pandas, bs4"
INGEST, ALONE, VERSION = "ipu-results ingest", "the imports alone", "ipu-results --version"
ROUNDS, QUICK_ROUNDS = 7, 1
MAX_RATIO = 3.0
RAW = ROOT / "raw"


def run(options: Options) -> Report:
    """Measure whole processes in turns, after one round that does not count."""
    rounds, raw = (QUICK_ROUNDS, RAW / "qwant") if options.quick else (ROUNDS, RAW)
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            INGEST: [*find_program(), "ingest", "--raw", str(raw), "--warehouse", folder],
            ALONE: [sys.executable, "-c", IMPORTS],
            VERSION: [*find_program(), "--version"],
        }
        ways = {name: partial(measure_command, command, Path(os.devnull)) for name, command in commands.items()}
        if not options.quick:
            take_turns(ways, 1)
        costs = take_turns(ways, rounds)
    seconds = {name: [cost.wall for cost in some] for name, some in costs.items()}
    base = median(seconds[ALONE])
    rows = [(name, median(some), min(some), max(some), median(some) / base) for name, some in seconds.items()]
    return Report(
        "ingest",
        "build the warehouse from the committed documents, compared with importing the libraries",
        [
            ReportTable(
                f"Wall time, {rounds} interleaved runs", ("process", "median s", "min s", "max s", "ratio"), rows
            )
        ],
        [ReportTarget("ingest / imports", median(seconds[INGEST]) / base, MAX_RATIO)],
        [f"The imports: `{IMPORTS}`. Every run is a fresh process. One unmeasured round went before."],
    )
