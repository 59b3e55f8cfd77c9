"""`python -m benchmarks [NAME ...]`"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.environment import environment
from benchmarks.options import QUICK_ROWS, ROWS, Options, Skipped
from benchmarks.report import Report, as_markdown, as_text

NAMES = (
    *("ingest", "extract", "stages", "query", "mlperf", "emulator", "repeatability", "runner", "runner_real"),
    *("runner_configurations", "release"),
)
MIN_ROWS = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.name) - set(NAMES)):
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(NAMES)}")
    if asked.rows is not None and asked.rows < MIN_ROWS:
        parser.error(f"--rows must be at least {MIN_ROWS:,}")
    for path in (asked.mlperf, asked.official, asked.loadgen, asked.torch):
        if path is not None and not path.exists():
            parser.error(f"{path} is not there")
    rows = asked.rows or (QUICK_ROWS if asked.quick else ROWS)
    options = Options(asked.quick, rows, asked.mlperf, asked.official, asked.loadgen, asked.torch)
    show = as_markdown if asked.format == "markdown" else as_text
    told = environment()
    print(", ".join(f"{name} {value}" for name, value in told.items()), flush=True)
    reports = []
    for name in asked.name or NAMES:
        print(f"running {name} …", file=sys.stderr, flush=True)
        reports.append(_measured(name, options))
        print(f"\n{show(reports[-1])}", flush=True)
    if asked.out:
        found = {"environment": told, "quick": options.quick, "benchmarks": [report.as_json() for report in reports]}
        asked.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if all(report.skipped for report in reports) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure side by side and print ratios.")
    parser.add_argument("name", nargs="*", help=f"which: {', '.join(NAMES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, not how fast")
    parser.add_argument("--rows", type=int, help=f"rows of the queried table, {ROWS:,} by default")
    parser.add_argument("--mlperf", type=Path, metavar="PATH", help="archive or checkout of an MLPerf Training round")
    parser.add_argument("--official", type=Path, metavar="PYTHON", help="an interpreter that has mlperf-logging")
    parser.add_argument("--loadgen", type=Path, metavar="PYTHON", help="an interpreter that has mlcommons-loadgen")
    parser.add_argument("--torch", type=Path, metavar="PYTHON", help="an interpreter that has torch, numpy and pillow")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures as JSON, too")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    return parser


def _measured(name: str, options: Options) -> Report:
    start = time.perf_counter()
    try:
        report: Report = import_module(f"benchmarks.{name}").run(options)
    except Skipped as reason:
        return Report(name, "skipped", skipped=str(reason))
    report.seconds = time.perf_counter() - start
    return report


if __name__ == "__main__":
    sys.exit(main())
