"""Hold the peaks that programs were reported to assume wrongly against those of the record."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import duckdb
from ipu_results.kit.files import DATASET
from ipu_results.record.store.query import open_warehouse

from benchmarks.report import Options, Report, ReportTable, ReportTarget

REPORTS = Path(__file__).with_suffix(".toml")
ROUNDING = 0.01  # 756 and 756.5 are one figure
STANDING = """
    SELECT lowest_tflops, highest_tflops, standing
    FROM detail.peak_standings
    WHERE chip = $chip AND precision = $precision AND sparsity = 'dense'
"""
HEADINGS = (
    "chip",
    "type",
    "assumed",
    "lowest",
    "highest",
    "standing",
    "outcome",
    "mistake",
    "report",
)


def run(_: Options) -> Report:
    """Print for each report what was assumed, what the sources say, and whether they contradict it."""
    reports = tomllib.loads(REPORTS.read_text(encoding="utf-8"))["report"]
    with open_warehouse(DATASET) as connection:
        rows = [judge(connection, report) for report in reports]
    contradicted = sum(row[6] == "contradicted" for row in rows)
    return Report(
        "peaks",
        "Peaks that programs assumed, against the peaks of the record (TFLOP/s a chip, dense)",
        tables=[ReportTable("", HEADINGS, rows)],
        targets=[
            ReportTarget("reports contradicted", contradicted / len(rows), 1.0, at_least=True)
        ],
    )


def judge(connection: duckdb.DuckDBPyConnection, report: dict[str, Any]) -> tuple[Any, ...]:
    """Return the row of a report."""
    values = {"chip": report["chip"], "precision": report["precision"]}
    found = connection.execute(STANDING, values).fetchone()
    lowest, highest, standing = found or (None, None, "not in the record")
    outcome = "unknown"
    if lowest is not None and highest is not None:
        low = lowest * (1 - ROUNDING)
        high = highest * (1 + ROUNDING)
        outcome = "holds" if low <= report["assumed"] <= high else "contradicted"
    return (
        report["chip"],
        report["precision"],
        report["assumed"],
        lowest,
        highest,
        standing,
        outcome,
        report["mistake"],
        report["url"],
    )
