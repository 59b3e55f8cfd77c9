"""The points of sweeps with their reference rows: a table for people, records for programs, and a
chart.

In the chart published and measured series are solid and filled, emulated ones dashed and hollow; a
suspect point is crossed out.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.ground.charts import (
    CROSS,
    ORIGIN_DASHES,
    PALETTE,
    apply_theme,
    list_log_ticks,
    make_data,
    make_title,
    render_chart,
)
from ipu_results.ground.physics import compute_rate
from ipu_results.ground.text import format_table
from ipu_results.runner.reference_rows import (
    COLUMNS,
    EMULATED,
    ORIGIN_LABELS,
    Point,
    ReferenceRow,
    find_reference_row,
    find_reference_sweeps,
    list_differences,
    list_differing_conditions,
)
from ipu_results.schema.vocabulary import normalise_name

DIGITS = 4
MARK = "suspect"


def format_summary(
    points: Sequence[Point], published: Sequence[ReferenceRow], note: str | None = None
) -> str:
    """Format a line per point, and below the table how to read it.

    `note` says why there are no published rows.
    """
    rows = [find_reference_row(point, published) for point in points]
    names = name_runs(points)
    runs = {point.get("run_id"): point for point in points}
    headings = [
        f"{names[run]}: " * (len(runs) > 1) + _format_heading(point) for run, point in runs.items()
    ]
    lines = [
        _build_line(point, row, points, names) for point, row in zip(points, rows, strict=True)
    ]
    columns = [
        name
        for name in (lines[0] if lines else ())
        if any(line[name] is not None for line in lines)
    ]
    table = format_table(
        columns, [["" if line[name] is None else line[name] for name in columns] for line in lines]
    )
    notes = _explain_table(points)
    for point in points:
        if point.get("suspect"):
            notes.append(f"{MARK}: {_format_batches([point], points)}: {point['suspect']}")
    notes += _list_differences(points, rows)
    alone = [point for point, row in zip(points, rows, strict=True) if row is None]
    if note is not None:
        notes.append(note)
    elif alone:
        text = "no published row of this model and batch without an error flag"
        notes.append(f"{text}: {_format_batches(alone, points)}")
    return "\n".join([*headings, table, "", *notes])


def build_records(
    points: Sequence[Point], published: Sequence[ReferenceRow]
) -> list[dict[str, Any]]:
    """Return each point's fields, those of its reference row as `published_*` (null without one),
    and `differs`.
    """
    records = []
    for point in points:
        row = find_reference_row(point, published)
        theirs = {f"published_{name}": getattr(row, name, None) for name in COLUMNS}
        differs = [] if row is None else list_differences(point, row)
        records.append(
            {**point, **theirs, "throughput_ratio": compute_ratio(point, row), "differs": differs}
        )
    return records


def compute_ratio(point: Point, row: ReferenceRow | None) -> float | None:
    """Return our throughput over the published one."""
    ours, theirs = point.get("throughput"), row.throughput if row else None
    return ours / theirs if ours and theirs else None


def convert_interval(point: Point) -> tuple[float, float] | None:
    """Return the ends of the latency's interval or band as items per second, the lower one first."""
    low, high = point.get("latency_ms_low"), point.get("latency_ms_high")
    return (
        (compute_rate(point["batch_size"], high), compute_rate(point["batch_size"], low))
        if low and high
        else None
    )


def name_runs(points: Sequence[Point]) -> dict[str | None, str]:
    """Return a short name for each run: its backend where that is unique, else with the device,
    else the run's id.
    """
    runs = {point.get("run_id"): point for point in points}
    choices: Sequence[tuple[str, ...]] = (("backend",), ("backend", "device"))
    for columns in choices:
        names = {
            run: " ".join(str(point.get(name) or "") for name in columns).strip()
            for run, point in runs.items()
        }
        if all(names.values()) and len(set(names.values())) == len(runs):
            return names
    return {run: str(run) for run in runs}


def _format_heading(point: Point) -> str:
    origin = point.get("origin") or "measured"
    how = "" if origin == "measured" else f" ({ORIGIN_LABELS.get(origin, origin)})"
    backend = " ".join(str(point[key]) for key in ("backend", "backend_version") if point.get(key))
    parts = [f"{point.get('model')} on {point.get('platform')}{how}", backend, point.get("run_id")]
    return ", ".join(str(part) for part in parts if part)


def _build_line(
    point: Point, row: ReferenceRow | None, points: Sequence[Point], names: Mapping[str | None, str]
) -> dict[str, Any]:
    """Return the cells by header; a column that is None in every line is not shown."""
    ends, items = convert_interval(point), {own.get("item") for own in points}
    unit = f"{next(iter(items))}s" if len(items) == 1 and None not in items else "items"
    origin = point.get("origin") or "measured"
    return {
        "run": names[point.get("run_id")] if len(names) > 1 else None,
        "batch": point["batch_size"],
        "figures": ORIGIN_LABELS.get(origin, origin),
        f"{unit}/s": _round(point.get("throughput")),
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


def _round(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _explain_table(points: Sequence[Point]) -> list[str]:
    lines = []
    if levels := sorted(
        {point["interval_confidence"] for point in points if point.get("interval_confidence")}
    ):
        covers = ", ".join(f"{level:.3g}" for level in levels)
        lines.append(f"from, to: interval over the rounds, nominal coverage {covers}")
    if emulated := [point for point in points if point.get("origin") == "emulated"]:
        ids = sorted({point["calibration_id"] for point in emulated if point.get("calibration_id")})
        calibration = f"; calibration {', '.join(ids)}" if ids else ""
        batches = _format_batches(emulated, points)
        lines.append(f"{EMULATED}: {batches}; from, to: the prediction's band{calibration}")
    if seeded := sorted(
        {
            str(point["weights"])
            for point in points
            if str(point.get("weights")).startswith("random-")
        }
    ):
        lines.append(f"weights: {', '.join(seeded)}; the run measures time, not accuracy")
    return lines


def _list_differences(points: Sequence[Point], rows: Sequence[ReferenceRow | None]) -> list[str]:
    """List what differs from the reference rows; points that differ in the same things share their
    lines.
    """
    groups: dict[tuple[str, ...], list[tuple[Point, ReferenceRow]]] = {}
    for point, row in zip(points, rows, strict=True):
        if row is not None:
            groups.setdefault(tuple(list_differences(point, row)), []).append((point, row))
    lines = []
    for differs, pairs in groups.items():
        sources = ", ".join(dict.fromkeys(row.document_id for _, row in pairs))
        who = (
            ""
            if len(pairs) == len(points)
            else f", {_format_batches([point for point, _ in pairs], points)}"
        )
        head = (
            f"what differs (ours / {sources}){who}:"
            if differs
            else f"no difference known from {sources}{who}"
        )
        lines += [head, *(f"  {difference}" for difference in differs)]
    return lines


def _format_batches(some: Sequence[Point], points: Sequence[Point]) -> str:
    """Format the batch sizes of some points, by run where there are several."""
    names = name_runs(points)
    runs: dict[str | None, list[str]] = {}
    for point in some:
        runs.setdefault(point.get("run_id"), []).append(str(point["batch_size"]))
    return "; ".join(
        f"{names[run]}, " * (len(names) > 1) + f"batch {', '.join(sizes)}"
        for run, sizes in runs.items()
    )


WIDTH, HEIGHT = 360, 300
SUBTITLE = 165  # characters of a line over both panels
LOG_FROM = (
    8.0  # ratio between the medians of two series from which on they share a logarithmic axis
)
LOG_BATCH_FROM = 16  # ratio between the largest batch and the smallest
ROOM = 1.25
SHAPES = {
    "published": ("diamond", "cross"),
    "measured": ("circle", "triangle-up", "triangle-right"),
    "emulated": ("square", "triangle-down", "triangle-left"),
}
PANELS = {"latency": "Latency{kind} (ms per batch)", "throughput": "Throughput ({item}s/s)"}
NAMED = ("platform", "backend", "device", "compute_precision")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the chart.

    A row holds `batch`, `suspect`, and of each figure the value and its interval's ends.
    """

    name: str
    origin: str
    color: str
    shape: str
    rows: Sequence[Row]

    def select(self, figure: str) -> list[Row]:
        """Return the rows of one figure as the chart draws them."""
        rows = (
            (row, dict(zip(("y", "low", "high"), row[figure], strict=True))) for row in self.rows
        )
        return [
            {"series": self.name, "batch": row["batch"], **ends, "suspect": row["suspect"]}
            for row, ends in rows
            if ends["y"] is not None
        ]


def draw_chart(points: Sequence[Point], published: Sequence[ReferenceRow], suffix: str) -> bytes:
    """Return an image, `suffix` .svg or .png. Simulated points are not drawn.

    Raises MissingExtraError, and RunnerError where no point is left.
    """
    kept = [point for point in points if point.get("origin") in ("measured", "emulated")]
    if not kept:
        raise RunnerError("no point is measured or emulated: there is nothing to draw")
    return render_chart(
        lambda altair: _build_chart(altair, kept, published, len(points) - len(kept)), suffix
    )


def build_series(points: Sequence[Point], published: Sequence[ReferenceRow]) -> list[Series]:
    """Return what is drawn, the published rows first; runs whose names would be the same are named
    by their ids too.
    """
    published_rows: dict[str, dict[int, Row]] = {}
    for row in find_reference_sweeps(points, published):
        parts = ", ".join(part for part in (row.platform, row.software, row.computed_in) if part)
        batch = row.batch_size or 0
        published_rows.setdefault(f"{parts}: published, {row.publisher}", {})[batch] = _build_row(
            {"batch_size": batch, "latency_ms": row.latency_ms, "throughput": row.throughput}
        )
    runs: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        runs.setdefault(tuple(point.get(key) for key in ("run_id", "origin", *NAMED)), []).append(
            point
        )
    same = Counter(key[1:] for key in runs)
    colors = iter(
        PALETTE.assign([*published_rows, *(_name_series(own[0], False) for own in runs.values())])
    )
    shapes = {origin: cycle(of_origin) for origin, of_origin in SHAPES.items()}
    series = [
        Series(name, "published", next(colors), next(shapes["published"]), list(rows.values()))
        for name, rows in published_rows.items()
    ]
    for key, own in runs.items():
        name, origin = _name_series(own[0], same[key[1:]] > 1), own[0]["origin"]
        series.append(
            Series(name, origin, next(colors), next(shapes[origin]), list(map(_build_row, own)))
        )
    return series


def _name_series(point: Point, with_run: bool) -> str:
    parts: dict[str, str] = {}
    for value in (str(point[key]) for key in NAMED if point.get(key)):
        parts.setdefault(
            normalise_name(value), value
        )  # an emulated C2 is platform C2 and device c2
    how = "EMULATED, not measured" if point["origin"] == "emulated" else "measured"
    run = f", {point.get('run_id')}" if with_run else ""
    return f"{', '.join(parts.values())}: {how}{run}"


def _build_row(point: Point) -> Row:
    low, high = point.get("latency_ms_low"), point.get("latency_ms_high")
    ends = (low, high) if low and high else (None, None)
    return {
        "batch": point["batch_size"],
        "latency": (point.get("latency_ms"), *ends),
        "throughput": (point.get("throughput"), *(convert_interval(point) or ends)),
        "suspect": bool(point.get("suspect")),
    }


def _build_chart(
    altair: Any, points: Sequence[Point], published: Sequence[ReferenceRow], simulated: int
) -> Any:
    series, differing = (
        build_series(points, published),
        list_differing_conditions(points, published),
    )
    models = ", ".join(dict.fromkeys(str(point.get("model")) for point in points))
    subtitle = _build_subtitle(points, differing, simulated)
    title = make_title(altair, f"{models}: latency and throughput by batch size", *subtitle)
    item = next((str(point["item"]) for point in points if point.get("item")), "item")
    kind = "" if "latency" in differing else ", amortised"
    panels = [
        _build_panel(altair, series, name, text.format(item=item, kind=kind))
        for name, text in PANELS.items()
    ]
    chart = altair.hconcat(*panels, spacing=36)
    chart = chart.resolve_scale(color="shared", shape="shared", fill="shared", strokeDash="shared")
    return apply_theme(chart.properties(title=title), legend_columns=1)


def _build_subtitle(points: Sequence[Point], differing: Sequence[str], simulated: int) -> list[str]:
    what = [name for name in differing if name != "figures"]  # the key says what is emulated
    lines = [f"Differs from the published rows, or is not known: {', '.join(what)}"] if what else []
    origins = {point["origin"] for point in points}
    key = ["bars: interval over the rounds"] if "measured" in origins else []
    key += (
        [f"dashed and hollow: {EMULATED}; its band is the prediction's"]
        if "emulated" in origins
        else []
    )
    key += ["crossed out: suspect"] if any(point.get("suspect") for point in points) else []
    lines += ["; ".join(key).capitalize()]
    lines += [f"Simulated points left out: {simulated}"] if simulated else []
    return [part for line in lines for part in textwrap.wrap(line, SUBTITLE)]


def _build_panel(altair: Any, series: Sequence[Series], figure: str, title: str) -> Any:
    rows = [row for own in series for row in own.select(figure)]
    x, y = (
        _build_batch_axis(altair, sorted({row["batch"] for row in rows})),
        _build_value_axis(altair, rows, title),
    )

    def encode(channel: Any, values: Sequence[Any]) -> Any:
        names = [own.name for own in series]
        # channels of the same domain share one legend
        return channel(
            "series:N", title=None, sort=names, scale=altair.Scale(domain=names, range=list(values))
        )

    base = altair.Chart(make_data(altair, rows)).encode(
        x=x, y=y, color=encode(altair.Color, [own.color for own in series])
    )
    line = base.mark_line(strokeWidth=1.8).encode(
        strokeDash=encode(altair.StrokeDash, [ORIGIN_DASHES[own.origin] for own in series])
    )
    marks = base.mark_point(size=70, strokeWidth=1.8, opacity=1).encode(
        fill=encode(
            altair.Fill,
            ["transparent" if own.origin == "emulated" else own.color for own in series],
        ),
        shape=encode(altair.Shape, [own.shape for own in series]),
    )
    ends = [layer for own in series for layer in _build_ends(altair, own, own.select(figure), x, y)]
    crosses = [{"batch": row["batch"], "y": row["y"]} for row in rows if row["suspect"]]
    crossed = altair.Chart(make_data(altair, crosses)).encode(x=x, y=y)
    style = {
        "shape": CROSS,
        "size": 320,
        "stroke": PALETTE.ink["mark"],
        "strokeWidth": 2.2,
        "opacity": 1,
    }
    layers = [*ends, line, marks, *([crossed.mark_point(**style)] if crosses else [])]
    return altair.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _build_ends(altair: Any, own: Series, rows: Sequence[Row], x: Any, y: Any) -> list[Any]:
    """Return a band for what is emulated, bars for what is measured; a lone point has a bar, as a
    band needs two.
    """
    values = [
        {"batch": row["batch"], "y": row["low"], "high": row["high"]}
        for row in rows
        if row["low"] is not None
    ]
    base = altair.Chart(make_data(altair, values)).encode(x=x, y=y, y2="high:Q")
    if own.origin == "emulated" and len(values) > 1:
        return [base.mark_area(color=own.color, opacity=0.15)]
    return (
        [base.mark_rule(color=own.color, strokeWidth=1.6, strokeDash=ORIGIN_DASHES[own.origin])]
        if values
        else []
    )


def _build_batch_axis(altair: Any, batches: Sequence[int]) -> Any:
    """Build the axis whose ticks are the batch sizes themselves."""
    axis = altair.Axis(
        values=list(batches), format="d", grid=False, labelOverlap="greedy", labelSeparation=4
    )
    first, last, title = batches[0], batches[-1], "Batch size (total over all sessions)"
    if _is_wide(batches):
        scale = altair.Scale(type="log", base=2, domain=[first / ROOM, last * ROOM], nice=False)
        return altair.X("batch:Q", title=f"{title}, log scale", scale=scale, axis=axis)
    room = max(1.0, 0.06 * (last - first))
    scale = altair.Scale(domain=[max(0, first - room), last + room], nice=False)
    return altair.X("batch:Q", title=title, scale=scale, axis=axis)


def _is_wide(batches: Sequence[int]) -> bool:
    return max(batches) >= LOG_BATCH_FROM * min(batches)


def _build_value_axis(altair: Any, rows: Sequence[Row], title: str) -> Any:
    values = [row[key] for row in rows for key in ("y", "low", "high") if row[key] is not None]
    if not _needs_log(rows):
        return altair.Y(
            "y:Q", title=title, scale=altair.Scale(domain=[0, max(values) * 1.05], nice=True)
        )
    low, high = min(values) / ROOM, max(values) * ROOM
    steps = (1, 2, 5) if high / low < 2000 else (1, 3)  # of each decade; more would crowd
    axis = altair.Axis(values=list_log_ticks(low, high, steps), format="~g")
    scale = altair.Scale(type="log", domain=[low, high], nice=False)
    return altair.Y("y:Q", title=f"{title}, log scale", scale=scale, axis=axis)


def _needs_log(rows: Sequence[Row]) -> bool:
    """Report whether a linear axis would flatten something: a series next to another one, or small
    batches.
    """
    values = [row["y"] for row in rows]
    if _is_wide([row["batch"] for row in rows]) and max(values) > LOG_FROM * min(values):
        return True
    names = {row["series"] for row in rows}
    medians = [median(row["y"] for row in rows if row["series"] == name) for name in names]
    return bool(max(medians) > LOG_FROM * min(medians))
