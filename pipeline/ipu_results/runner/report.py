"""The points of one run as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from ipu_results.kit.physics import compute_rate
from ipu_results.kit.text import format_table
from ipu_results.runner.record import Point

# intervals of a few percent carry no more
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
    columns = []
    for name in lines[0]:
        if any(line[name] is not None for line in lines):
            columns.append(name)
    rows = []
    for line in lines:
        rows.append(["" if line[name] is None else line[name] for name in columns])
    table = format_table(columns, rows)
    return "\n".join([_format_heading(points[0]), table, "", *_explain(points)])


def _format_heading(point: Point) -> str:
    where = f"{point['model']} on {point['platform']}"
    if point["origin"] != "measured":
        where += f" ({ORIGIN_LABELS[point['origin']]})"
    return f"{where}, {point['backend']} {point['backend_version']}, {point['run_id']}"


def _build_line(point: Point) -> dict[str, str | int | float | None]:
    """Return the cells by header; a column that is None in every line is not shown."""
    # the interval or band is printed in items per second: the longest latency gives the lowest rate
    size = point["batch_size"]
    slowest = point["latency_ms_high"]
    fastest = point["latency_ms_low"]
    return {
        "batch": size,
        "figures": ORIGIN_LABELS[point["origin"]],
        f"{point['item']}s/s": _round(point["throughput"]),
        "from": _round(compute_rate(size, slowest)) if slowest else None,
        "to": _round(compute_rate(size, fastest)) if fastest else None,
        "ms (amortised)": _round(point["latency_ms"]),
        "ms (isolated)": _round(point["latency_isolated_ms"]),
        "ms (isolated p99)": _round(point["latency_p99_ms"]),
        "precision": point["compute_precision"] or "not known",
        "cosine": _round(point["cosine"], 6),
        "top-1": _round(point["top1"]),
        "W": _round(point["power_w"]),
        "mark": MARK if point["suspect"] else None,
    }


def _round(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _explain(points: Sequence[Point]) -> list[str]:
    """Say what the intervals are, that weights are random, and why points are suspect."""
    lines = []
    confidences = {point["interval_confidence"] for point in points}
    levels = [level for level in confidences if level is not None]
    if levels:
        covers = ", ".join(f"{level:.3g}" for level in sorted(levels))
        lines.append(f"from, to: interval over the rounds, nominal coverage {covers}")
    first = points[0]
    if first["origin"] == "emulated":
        calibration = first["calibration_id"]
        lines.append(f"from, to: the prediction's band; calibration {calibration}")
    if first["weights"].startswith("random-"):
        lines.append(f"weights: {first['weights']}; the run measures time, not accuracy")
    for point in points:
        if point["suspect"]:
            lines.append(f"{MARK}: batch {point['batch_size']}: {point['suspect']}")
    return lines
