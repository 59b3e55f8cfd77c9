"""Run `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from ipu_results.runner.environment import describe_environment, read_versions

from benchmarks.report import (
    QUICK_ROWS,
    ROWS,
    Options,
    Report,
    SkipBenchmarkError,
    format_report,
    format_value,
)

# Each module of this package has `run(options) -> Report`.
BENCHMARKS = {
    "ingest": "ingest",
    "open": "open",
    "large": "large",
    "stages": "stages",
    "mlperf": "mlperf.comparison",
    "mlperf_intervals": "mlperf.intervals",
    "mlperf_independence": "mlperf.independence",
    "expect": "expect",
    "peaks": "peaks",
    "honest": "honest",
    "planted_errors": "planted_errors",
    "emulator": "emulator",
    "repeatability": "runner.repeatability",
    "runner": "runner.overhead",
    "release": "release",
    "documents": "documents.comparison",
}
LIBRARIES = (
    "ipu-results",
    "pandas",
    "pyarrow",
    "duckdb",
    "pandera",
    "lxml",
    "numpy",
)
MIN_ROWS = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, print their reports and return the exit status: 1 where all were
    skipped.
    """
    parser = _build_parser()
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.name) - set(BENCHMARKS)):
        parser.error(f"{unknown[0]!r} is not a benchmark; choose from: {', '.join(BENCHMARKS)}")
    if args.rows is not None and args.rows < MIN_ROWS:
        parser.error(f"--rows must be at least {MIN_ROWS:,}")
    for path in (args.mlperf, args.official):
        if path is not None and not path.exists():
            parser.error(f"{path} does not exist")
    rows = args.rows or (QUICK_ROWS if args.quick else ROWS)
    options = Options(args.quick, rows, args.mlperf, args.official)
    environment = _describe_machine()
    print(", ".join(f"{name} {value}" for name, value in environment.items()), flush=True)
    reports = []
    for name in args.name or BENCHMARKS:
        print(f"running {name} …", file=sys.stderr, flush=True)
        reports.append(_run_benchmark(name, options))
        print(f"\n{format_report(reports[-1])}", flush=True)
    if args.out:
        benchmarks = [report.to_json() for report in reports]
        figures = {"environment": environment, "quick": options.quick, "benchmarks": benchmarks}
        args.out.write_text(
            json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return 1 if all(report.skipped for report in reports) else 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure ways of doing the same thing in turns and print their ratios.",
    )
    parser.add_argument(
        "name", nargs="*", help=f"the benchmarks to run, default all: {', '.join(BENCHMARKS)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="use small sizes, to show that it runs, not how fast"
    )
    parser.add_argument("--rows", type=int, help=f"rows of the released table, default {ROWS:,}")
    parser.add_argument(
        "--mlperf",
        type=Path,
        metavar="PATH",
        help="archive or checkout of an MLPerf Training round",
    )
    parser.add_argument(
        "--official", type=Path, metavar="PYTHON", help="an interpreter with mlperf-logging"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the figures as JSON")
    return parser


def _describe_machine() -> dict[str, str | int | float]:
    machine = describe_environment()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": machine["cpu"] or platform.machine(),
        "cores": machine["logical_cores"] or 0,
        "memory_gb": machine["memory_gb"],
        "load_1min": machine["load_average"][0],
        "system": machine["system"],
        "python": platform.python_version(),
        **read_versions(LIBRARIES),
    }


def _run_benchmark(name: str, options: Options) -> Report:
    start, load = time.perf_counter(), os.getloadavg()[0]
    try:
        report: Report = import_module(f"benchmarks.{BENCHMARKS[name]}").run(options)
    except SkipBenchmarkError as reason:
        return Report(name, "skipped", skipped=str(reason))
    report.seconds = time.perf_counter() - start
    loads = ", ".join(map(format_value, (load, os.getloadavg()[0])))
    report.notes.append(f"Load of the machine over the last minute, before and after: {loads}.")
    return report


if __name__ == "__main__":
    sys.exit(main())
