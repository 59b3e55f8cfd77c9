"""The points of sweeps with their reference rows: a table for people, records for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipu_results.ground.physics import compute_rate
from ipu_results.ground.text import format_table
from ipu_results.runner.reference_rows import (
    COLUMNS,
    EMULATED,
    ORIGIN_LABELS,
    Point,
    ReferenceRow,
    find_reference_row,
    list_differences,
)

DIGITS = 4
MARK = "suspect"


def format_summary(points: Sequence[Point], published: Sequence[ReferenceRow], note: str | None = None) -> str:
    """Format a line per point, and below the table how to read it. `note` says why there are no published rows."""
    rows = [find_reference_row(point, published) for point in points]
    names = name_runs(points)
    runs = {point.get("run_id"): point for point in points}
    headings = [f"{names[run]}: " * (len(runs) > 1) + _format_heading(point) for run, point in runs.items()]
    table = _format_table([_build_line(point, row, points, names) for point, row in zip(points, rows, strict=True)])
    notes = [
        *_explain_table(points),
        *_explain_weights(points),
        *_list_suspects(points),
        *_list_differences(points, rows),
    ]
    return "\n".join([*headings, table, "", *notes, *_list_without_row(points, rows, note)])


def build_records(points: Sequence[Point], published: Sequence[ReferenceRow]) -> list[dict[str, Any]]:
    """Return each point's fields, those of its reference row as `published_*` (null without one), and `differs`."""
    return [_build_record(point, find_reference_row(point, published)) for point in points]


def compute_ratio(point: Point, row: ReferenceRow | None) -> float | None:
    """Return our throughput over the published one."""
    ours, theirs = point.get("throughput"), row.throughput if row else None
    return ours / theirs if ours and theirs else None


def convert_interval(point: Point) -> tuple[float, float] | None:
    """Return the ends of the latency's interval or band as items per second, the lower one first."""
    low, high = point.get("latency_ms_low"), point.get("latency_ms_high")
    return (compute_rate(point["batch_size"], high), compute_rate(point["batch_size"], low)) if low and high else None


def name_runs(points: Sequence[Point]) -> dict[str | None, str]:
    """Return a short name for each run: its backend where that is unique, else with the device, else the run's id."""
    runs = {point.get("run_id"): point for point in points}
    choices: Sequence[tuple[str, ...]] = (("backend",), ("backend", "device"))
    for columns in choices:
        names = {run: " ".join(str(point.get(name) or "") for name in columns).strip() for run, point in runs.items()}
        if all(names.values()) and len(set(names.values())) == len(runs):
            return names
    return {run: str(run) for run in runs}


def _format_heading(point: Point) -> str:
    origin = point.get("origin") or "measured"
    how = "" if origin == "measured" else f" ({ORIGIN_LABELS.get(origin, origin)})"
    backend = " ".join(str(point[key]) for key in ("backend", "backend_version") if point.get(key))
    parts = [f"{point.get('model')} on {point.get('platform')}{how}", backend, point.get("run_id")]
    return ", ".join(str(part) for part in parts if part)


def _build_record(point: Point, row: ReferenceRow | None) -> dict[str, Any]:
    theirs = {f"published_{name}": getattr(row, name, None) for name in COLUMNS}
    differs = [] if row is None else list_differences(point, row)
    return {**point, **theirs, "throughput_ratio": compute_ratio(point, row), "differs": differs}


def _build_line(
    point: Point, row: ReferenceRow | None, points: Sequence[Point], names: Mapping[str | None, str]
) -> dict[str, Any]:
    """Return the cells by header; a column that is None in every line is not shown."""
    ends = convert_interval(point)
    origin = point.get("origin") or "measured"
    return {
        "run": names[point.get("run_id")] if len(names) > 1 else None,
        "batch": point["batch_size"],
        "figures": ORIGIN_LABELS.get(origin, origin),
        f"{_name_items(points)}/s": _round(point.get("throughput")),
        "from": _round(ends[0]) if ends else None,
        "to": _round(ends[1]) if ends else None,
        "ms (amortised)": _round(point.get("latency_ms")),
        "ms (isolated)": _round(point.get("latency_isolated_ms")),
        "ms (isolated p99)": _round(point.get("latency_p99_ms")),
        "precision": point.get("compute_precision") or "not known",
        "cosine": _round(point.get("cosine"), 6),
        "top-1": _round(point.get("top1")),
        "W": _round(point.get("power_w")),
        "mark": MARK if point.get("suspect") else None,
        "published": row.platform if row else None,
        "published /s": row.throughput if row else None,
        "published ms": row.latency_ms if row else None,
        "ours / published": _round(compute_ratio(point, row), 3),
    }


def _format_table(lines: Sequence[Mapping[str, Any]]) -> str:
    columns = [name for name in (lines[0] if lines else ()) if any(line[name] is not None for line in lines)]
    return format_table(columns, [["" if line[name] is None else line[name] for name in columns] for line in lines])


def _name_items(points: Sequence[Point]) -> str:
    items = {point.get("item") for point in points}
    return f"{items.pop()}s" if len(items) == 1 and None not in items else "items"


def _round(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _explain_table(points: Sequence[Point]) -> list[str]:
    lines = []
    if levels := sorted({point["interval_confidence"] for point in points if point.get("interval_confidence")}):
        covers = ", ".join(f"{level:.3g}" for level in levels)
        lines.append(f"from, to: interval over the rounds, nominal coverage {covers}")
    if emulated := [point for point in points if point.get("origin") == "emulated"]:
        ids = sorted({point["calibration_id"] for point in emulated if point.get("calibration_id")})
        calibration = f"; calibration {', '.join(ids)}" if ids else ""
        batches = _format_batches(emulated, points)
        lines.append(f"{EMULATED}: {batches}; from, to: the prediction's band{calibration}")
    return lines


def _explain_weights(points: Sequence[Point]) -> list[str]:
    seeded = sorted({str(point.get("weights")) for point in points if str(point.get("weights")).startswith("random-")})
    return [f"weights: {', '.join(seeded)}; the run measures time, not accuracy"] if seeded else []


def _list_suspects(points: Sequence[Point]) -> list[str]:
    return [
        f"{MARK}: {_format_batches([point], points)}: {point['suspect']}" for point in points if point.get("suspect")
    ]


def _list_differences(points: Sequence[Point], rows: Sequence[ReferenceRow | None]) -> list[str]:
    """List what differs from the reference rows; points that differ in the same things share their lines."""
    groups: dict[tuple[str, ...], list[tuple[Point, ReferenceRow]]] = {}
    for point, row in zip(points, rows, strict=True):
        if row is not None:
            groups.setdefault(tuple(list_differences(point, row)), []).append((point, row))
    lines = []
    for differs, pairs in groups.items():
        sources = ", ".join(dict.fromkeys(row.document_id for _, row in pairs))
        who = "" if len(pairs) == len(points) else f", {_format_batches([point for point, _ in pairs], points)}"
        head = f"what differs (ours / {sources}){who}:" if differs else f"no difference known from {sources}{who}"
        lines += [head, *(f"  {difference}" for difference in differs)]
    return lines


def _list_without_row(points: Sequence[Point], rows: Sequence[ReferenceRow | None], note: str | None) -> list[str]:
    if note is not None:
        return [note]
    alone = [point for point, row in zip(points, rows, strict=True) if row is None]
    text = "no published row of this model and batch without an error flag"
    return [f"{text}: {_format_batches(alone, points)}"] if alone else []


def _format_batches(some: Sequence[Point], points: Sequence[Point]) -> str:
    """Format the batch sizes of some points, by run where there are several."""
    names = name_runs(points)
    runs: dict[str | None, list[str]] = {}
    for point in some:
        runs.setdefault(point.get("run_id"), []).append(str(point["batch_size"]))
    return "; ".join(f"{names[run]}, " * (len(names) > 1) + f"batch {', '.join(sizes)}" for run, sizes in runs.items())
