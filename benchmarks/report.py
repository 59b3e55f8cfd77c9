"""What a benchmark found: tables, notes and targets, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Target:
    """`value` ought to be at most `limit`, or at least it."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        verdict, side = "met" if self.met else "MISSED", "least" if self.at_least else "most"
        return f"{self.name}: {shown(self.value)}, target at {side} {shown(self.limit)}: {verdict}"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]


@dataclass(slots=True)
class Report:
    name: str
    title: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str | None = None

    def as_json(self) -> dict[str, Any]:
        told = asdict(self)
        told["targets"] = [{**asdict(target), "met": target.met} for target in self.targets]
        return told


def shown(value: Value) -> str:
    """Integers with thousands marks, doubles to three digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def as_text(report: Report) -> str:
    if report.skipped:
        return f"{report.name}: SKIPPED: {report.skipped}"
    parts = [f"{report.name}: {report.title}"]
    for table in report.tables:
        lines = [list(table.columns), *([shown(value) for value in row] for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        parts.append("\n".join([table.title, *("  " + _aligned(line, widths) for line in lines)]))
    parts += ["\n".join(target.line() for target in report.targets)] if report.targets else []
    return "\n\n".join([*parts, *(["\n".join(report.notes)] if report.notes else [])])


def as_markdown(report: Report) -> str:
    if report.skipped:
        return f"### `{report.name}`\n\nSKIPPED: {report.skipped}"
    parts = [f"### `{report.name}`: {report.title}"]
    for table in report.tables:
        lines = [table.columns, ["---", *["---:"] * (len(table.columns) - 1)]]
        lines += [[shown(value) for value in row] for row in table.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"{table.title}\n\n{body}")
    points = [target.line() for target in report.targets] + report.notes
    return "\n\n".join([*parts, *(["\n".join(f"- {point}" for point in points)] if points else [])])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.rjust(width) if at else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *rest])
