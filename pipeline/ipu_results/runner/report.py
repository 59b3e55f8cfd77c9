"""The points of one run as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipu_results.kit.physics import compute_rate
from ipu_results.kit.text import format_table

Point = Mapping[str, Any]  # a line of points.csv, typed

DIGITS = 4
MARK = "suspect"
ORIGIN_LABELS = {
    "measured": "measured",
    "emulated": "emulated, not measured",
    "simulated": "simulated, not measured",
}


def format_summary(points: Sequence[Point]) -> str:
    """Format a heading, a line per point, and below the table how to read it."""
    lines = [_build_line(point) for point in points]
    columns = [name for name in lines[0] if any(line[name] is not None for line in lines)]
    cells = [["" if line[name] is None else line[name] for name in columns] for line in lines]
    parts = [_format_heading(points[0]), format_table(columns, cells), "", *_explain(points)]
    return "\n".join(parts)


def convert_interval(point: Point) -> tuple[float, float] | None:
    """Return the ends of the latency's interval or band as items per second, the lower one first."""
    low = point.get("latency_ms_low")
    high = point.get("latency_ms_high")
    if not (low and high):
        return None
    return compute_rate(point["batch_size"], high), compute_rate(point["batch_size"], low)


def _format_heading(point: Point) -> str:
    where = f"{point['model']} on {point['platform']}"
    if point["origin"] != "measured":
        where += f" ({ORIGIN_LABELS[point['origin']]})"
    return f"{where}, {point['backend']} {point['backend_version']}, {point['run_id']}"


def _build_line(point: Point) -> dict[str, Any]:
    """Return the cells by header; a column that is None in every line is not shown."""
    low, high = convert_interval(point) or (None, None)
    return {
        "batch": point["batch_size"],
        "figures": ORIGIN_LABELS[point["origin"]],
        f"{point['item']}s/s": _round(point["throughput"]),
        "from": _round(low),
        "to": _round(high),
        "ms (amortised)": _round(point["latency_ms"]),
        "ms (isolated)": _round(point.get("latency_isolated_ms")),
        "ms (isolated p99)": _round(point.get("latency_p99_ms")),
        "precision": point.get("compute_precision") or "not known",
        "cosine": _round(point.get("cosine"), 6),
        "top-1": _round(point.get("top1")),
        "W": _round(point.get("power_w")),
        "mark": MARK if point.get("suspect") else None,
    }


def _round(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _explain(points: Sequence[Point]) -> list[str]:
    """Say what the intervals are, that weights are random, and why points are suspect."""
    lines = []
    levels = {point["interval_confidence"] for point in points if point.get("interval_confidence")}
    if levels:
        covers = ", ".join(f"{level:.3g}" for level in sorted(levels))
        lines.append(f"from, to: interval over the rounds, nominal coverage {covers}")
    first = points[0]
    if first["origin"] == "emulated":
        calibration = first["calibration_id"]
        lines.append(f"from, to: the prediction's band; calibration {calibration}")
    weights = str(first["weights"])
    if weights.startswith("random-"):
        lines.append(f"weights: {weights}; the run measures time, not accuracy")
    for point in points:
        if point.get("suspect"):
            lines.append(f"{MARK}: batch {point['batch_size']}: {point['suspect']}")
    return lines
