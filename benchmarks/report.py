"""What a benchmark gets and returns: options, and a report of tables, targets and notes that prints
as Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tabulate import tabulate

ROWS = 1_000_000
QUICK_ROWS = 20_000

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of all benchmarks. `quick` selects small sizes, whose figures mean nothing.

    `rows` is the size of the released table and `mlperf` a round of MLPerf Training, as archive or
    checkout. `official` is a Python interpreter that has mlperf-logging.
    """

    quick: bool = False
    rows: int = ROWS
    mlperf: Path | None = None
    official: Path | None = None


class SkipBenchmarkError(Exception):
    """A benchmark cannot run here. The message says why."""


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """A figure that ought to be at most `limit`, or at least `limit`."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def format_line(self) -> str:
        bound = "at least" if self.at_least else "at most"
        target = f"target {bound} {format_value(self.limit)}"
        verdict = "met" if self.met else "MISSED"
        return f"{self.name}: {format_value(self.value)}, {target}: {verdict}"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of a report; the first column is text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]


@dataclass(slots=True)
class Report:
    """The result of one benchmark. `skipped` is the reason why it did not run."""

    name: str
    title: str
    tables: list[ReportTable] = field(default_factory=list)
    targets: list[ReportTarget] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str | None = None

    def to_json(self) -> dict[str, Any]:
        targets = [{**asdict(target), "met": target.met} for target in self.targets]
        return {**asdict(self), "targets": targets}


def format_value(value: Value) -> str:
    """Format integers with thousands separators, floats with three digits, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def format_report(report: Report) -> str:
    """Format a report as Markdown whose tables are aligned for a terminal, too."""
    if report.skipped:
        return f"### `{report.name}`\n\nSKIPPED: {report.skipped}"
    parts = [f"### `{report.name}`: {report.title}"]
    for table in report.tables:
        rows = [list(map(format_value, row)) for row in table.rows]
        align = ["left", *["right"] * (len(table.columns) - 1)]
        text = tabulate(rows, table.columns, tablefmt="pipe", colalign=align, disable_numparse=True)
        parts.append(f"{table.title}\n\n{text}")
    points = [target.format_line() for target in report.targets] + report.notes
    if points:
        parts.append("\n".join(f"- {point}" for point in points))
    return "\n\n".join(parts)
