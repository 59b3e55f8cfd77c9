"""The points of sweeps beside the published rows: a table for the eye, records for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ipu_results._util.text import format_table
from ipu_results.runner.beside import EMULATED, OF_ORIGIN, Point, Published, beside, differences

MS = 1000.0
DIGITS = 4
MARK = "suspect"
COLUMNS_OF_ROW = tuple(one.name for one in fields(Published) if one.name not in ("setup", "errors"))


def summary(points: Sequence[Point], published: Sequence[Published], note: str | None = None) -> str:
    """One line per point, and under the table what it needs to be read. `note` says why there are no published rows."""
    rows = [beside(point, published) for point in points]
    names = run_names(points)
    table = _table([_line(point, row, points, names) for point, row in zip(points, rows, strict=True)])
    told = [*_reading(points), *_suspects(points), *_differing(points, rows), *_alone(points, rows, note)]
    return "\n".join([*_headings(points, names), table, "", *told])


def records(points: Sequence[Point], published: Sequence[Published]) -> list[dict[str, Any]]:
    """Each point's fields, those of the row beside it as `published_*` (null where there is none), and `differs`."""
    return [_record(point, beside(point, published)) for point in points]


def ratio(point: Point, row: Published | None) -> float | None:
    """Our throughput over the published one."""
    ours, theirs = point.get("throughput"), row.throughput if row else None
    return ours / theirs if ours and theirs else None


def interval(point: Point) -> tuple[float, float] | None:
    """Items per second that the ends of the latency's interval or band come to, the lower one first."""
    low, high = point.get("latency_ms_low"), point.get("latency_ms_high")
    return (point["batch_size"] * MS / high, point["batch_size"] * MS / low) if low and high else None


def run_names(points: Sequence[Point]) -> dict[str | None, str]:
    """A short name for each run: its backend where that tells them apart, with the device, else the run's id."""
    runs = {point.get("run_id"): point for point in points}
    choices: Sequence[tuple[str, ...]] = (("backend",), ("backend", "device"))
    for columns in choices:
        names = {run: " ".join(str(one.get(name) or "") for name in columns).strip() for run, one in runs.items()}
        if all(names.values()) and len(set(names.values())) == len(runs):
            return names
    return {run: str(run) for run in runs}


def _headings(points: Sequence[Point], names: Mapping[str | None, str]) -> list[str]:
    runs = {point.get("run_id"): point for point in points}
    return [f"{names[run]}: {_heading(one)}" if len(runs) > 1 else _heading(one) for run, one in runs.items()]


def _heading(point: Point) -> str:
    origin = point.get("origin") or "measured"
    how = "" if origin == "measured" else f" ({OF_ORIGIN.get(origin, origin)})"
    backend = " ".join(str(point[key]) for key in ("backend", "backend_version") if point.get(key))
    told = [f"{point.get('model')} on {point.get('platform')}{how}", backend, point.get("run_id")]
    return ", ".join(str(one) for one in told if one)


def _record(point: Point, row: Published | None) -> dict[str, Any]:
    theirs = {f"published_{name}": getattr(row, name, None) for name in COLUMNS_OF_ROW}
    differs = [] if row is None else differences(point, row)
    return {**point, **theirs, "throughput_ratio": ratio(point, row), "differs": differs}


def _line(
    point: Point, row: Published | None, points: Sequence[Point], names: Mapping[str | None, str]
) -> dict[str, Any]:
    """The cells by header; a header may only be blank in every line, and is then left out."""
    ends = interval(point)
    origin = point.get("origin") or "measured"
    return {
        "run": names[point.get("run_id")] if len(names) > 1 else None,
        "batch": point["batch_size"],
        "figures": OF_ORIGIN.get(origin, origin),
        f"{_item(points)}/s": _rounded(point.get("throughput")),
        "from": _rounded(ends[0]) if ends else None,
        "to": _rounded(ends[1]) if ends else None,
        "ms (amortised)": _rounded(point.get("latency_ms")),
        "ms (isolated)": _rounded(point.get("latency_isolated_ms")),
        "ms (isolated p99)": _rounded(point.get("latency_p99_ms")),
        "precision": point.get("compute_precision") or "not known",
        "cosine": _rounded(point.get("cosine"), 6),
        "top-1": _rounded(point.get("top1")),
        "W": _rounded(point.get("power_w")),
        "mark": MARK if point.get("suspect") else None,
        "published": row.platform if row else None,
        "its /s": row.throughput if row else None,
        "its ms": row.latency_ms if row else None,
        "ours / published": _rounded(ratio(point, row), 3),
    }


def _table(lines: Sequence[Mapping[str, Any]]) -> str:
    columns = [name for name in (lines[0] if lines else ()) if any(line[name] is not None for line in lines)]
    return format_table(columns, [["" if line[name] is None else line[name] for name in columns] for line in lines])


def _item(points: Sequence[Point]) -> str:
    named = {point.get("item") for point in points}
    return f"{named.pop()}s" if len(named) == 1 and None not in named else "items"


def _rounded(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _reading(points: Sequence[Point]) -> list[str]:
    levels = sorted({point["interval_confidence"] for point in points if point.get("interval_confidence")})
    covers = ", ".join(f"{level:.3g}" for level in levels)
    emulated = [point for point in points if point.get("origin") == "emulated"]
    ids = sorted({point["calibration_id"] for point in emulated if point.get("calibration_id")})
    calibration = f"; calibration {', '.join(ids)}" if ids else ""
    return [
        *([f"from, to: interval over the rounds, nominal coverage {covers}"] if levels else []),
        *([f"{EMULATED}: {_batches(emulated, points)}; from, to: the prediction's band{calibration}"] * bool(emulated)),
    ]


def _suspects(points: Sequence[Point]) -> list[str]:
    return [f"{MARK}: {_batches([one], points)}: {one['suspect']}" for one in points if one.get("suspect")]


def _differing(points: Sequence[Point], rows: Sequence[Published | None]) -> list[str]:
    """Points that differ from their rows in the same things share their lines."""
    groups: dict[tuple[str, ...], list[tuple[Point, Published]]] = {}
    for point, row in zip(points, rows, strict=True):
        if row is not None:
            groups.setdefault(tuple(differences(point, row)), []).append((point, row))
    return [line for differs, pairs in groups.items() for line in _group(differs, pairs, points)]


def _group(differs: Sequence[str], pairs: Sequence[tuple[Point, Published]], points: Sequence[Point]) -> list[str]:
    sources = ", ".join(dict.fromkeys(row.document_id for _, row in pairs))
    who = "" if len(pairs) == len(points) else f", {_batches([point for point, _ in pairs], points)}"
    if not differs:
        return [f"no difference known from {sources}{who}"]
    return [f"what differs (ours / {sources}){who}:", *(f"  {one}" for one in differs)]


def _alone(points: Sequence[Point], rows: Sequence[Published | None], note: str | None) -> list[str]:
    alone = [point for point, row in zip(points, rows, strict=True) if row is None]
    said = [] if note is None else [note]
    if not alone or said:
        return said
    return [f"no published row of this model and batch without an error flag: {_batches(alone, points)}"]


def _batches(some: Sequence[Point], points: Sequence[Point]) -> str:
    """The batch sizes of some points, by run where there are several."""
    names = run_names(points)
    runs: dict[str | None, list[str]] = {}
    for point in some:
        runs.setdefault(point.get("run_id"), []).append(str(point["batch_size"]))
    told = [(f"{names[run]}, " if len(names) > 1 else "", ", ".join(sizes)) for run, sizes in runs.items()]
    return "; ".join(f"{who}batch {sizes}" for who, sizes in told)
