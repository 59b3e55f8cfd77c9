"""A chart of latency and throughput against the batch size, with the published rows.

Published and measured series are solid and filled, emulated ones dashed and hollow; a suspect point is crossed out.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
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
from ipu_results.runner.reference_rows import (
    EMULATED,
    Point,
    ReferenceRow,
    find_reference_sweeps,
    list_differing_conditions,
)
from ipu_results.runner.summary import convert_interval
from ipu_results.schema.vocabulary import normalise_name

WIDTH, HEIGHT = 360, 300
SUBTITLE = 165  # characters of a line over both panels
LOG_FROM = 8.0  # ratio between the medians of two series from which on they share a logarithmic axis
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
    """One line of the chart. A row holds `batch`, `suspect`, and each figure with the ends of its interval."""

    name: str
    origin: str
    color: str
    shape: str
    rows: Sequence[Row]

    @property
    def hollow(self) -> bool:
        return self.origin == "emulated"

    def select(self, figure: str) -> list[Row]:
        """Return the rows of one figure as the chart draws them."""
        return [
            {
                "series": self.name,
                "batch": row["batch"],
                "y": row[figure],
                "low": row[f"{figure}_low"],
                "high": row[f"{figure}_high"],
                "suspect": row["suspect"],
            }
            for row in self.rows
            if row[figure] is not None
        ]


def draw_chart(points: Sequence[Point], published: Sequence[ReferenceRow], suffix: str) -> bytes:
    """Return an image, `suffix` .svg or .png. Simulated points are not drawn.

    Raises MissingExtraError, and RunnerError where no point is left.
    """
    kept = [point for point in points if point.get("origin") in ("measured", "emulated")]
    if not kept:
        raise RunnerError("no point is measured or emulated: there is nothing to draw")
    return render_chart(lambda altair: _build_chart(altair, kept, published, len(points) - len(kept)), suffix)


def build_series(points: Sequence[Point], published: Sequence[ReferenceRow]) -> list[Series]:
    """Return what is drawn, the published rows first; runs whose names would be the same are named by their ids too."""
    published_rows: dict[str, dict[int, Row]] = {}
    for row in find_reference_sweeps(points, published):
        parts = ", ".join(part for part in (row.platform, row.software, row.computed_in) if part)
        batch = row.batch_size or 0
        published_rows.setdefault(f"{parts}: published, {row.publisher}", {})[batch] = _build_row(
            {"batch_size": batch, "latency_ms": row.latency_ms, "throughput": row.throughput}
        )
    runs: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        runs.setdefault(tuple(point.get(key) for key in ("run_id", "origin", *NAMED)), []).append(point)
    same = Counter(key[1:] for key in runs)
    colors = iter(PALETTE.assign([*published_rows, *(_name_series(own[0], False) for own in runs.values())]))
    shapes = {origin: cycle(of_origin) for origin, of_origin in SHAPES.items()}
    series = [
        Series(name, "published", next(colors), next(shapes["published"]), list(rows.values()))
        for name, rows in published_rows.items()
    ]
    for key, own in runs.items():
        name, origin = _name_series(own[0], same[key[1:]] > 1), own[0]["origin"]
        series.append(Series(name, origin, next(colors), next(shapes[origin]), list(map(_build_row, own))))
    return series


def _name_series(point: Point, with_run: bool) -> str:
    parts: dict[str, str] = {}
    for value in (str(point[key]) for key in NAMED if point.get(key)):
        parts.setdefault(normalise_name(value), value)  # an emulated C2 is platform C2 and device c2
    how = "EMULATED, not measured" if point["origin"] == "emulated" else "measured"
    run = f", {point.get('run_id')}" if with_run else ""
    return f"{', '.join(parts.values())}: {how}{run}"


def _build_row(point: Point) -> Row:
    low, high = point.get("latency_ms_low"), point.get("latency_ms_high")
    rates = convert_interval(point) or (None, None)
    return {
        "batch": point["batch_size"],
        "latency": point.get("latency_ms"),
        "latency_low": low if high else None,
        "latency_high": high if low else None,
        "throughput": point.get("throughput"),
        "throughput_low": rates[0],
        "throughput_high": rates[1],
        "suspect": bool(point.get("suspect")),
    }


def _build_chart(altair: Any, points: Sequence[Point], published: Sequence[ReferenceRow], simulated: int) -> Any:
    series, differing = build_series(points, published), list_differing_conditions(points, published)
    models = ", ".join(dict.fromkeys(str(point.get("model")) for point in points))
    title = make_title(
        altair,
        f"{models}: latency and throughput by batch size",
        *_build_subtitle(points, differing, simulated),
    )
    item = next((str(point["item"]) for point in points if point.get("item")), "item")
    kind = "" if "latency" in differing else ", amortised"
    panels = [_build_panel(altair, series, name, text.format(item=item, kind=kind)) for name, text in PANELS.items()]
    chart = altair.hconcat(*panels, spacing=36)
    chart = chart.resolve_scale(color="shared", shape="shared", fill="shared", strokeDash="shared")
    return apply_theme(chart.properties(title=title), legend_columns=1)


def _build_subtitle(points: Sequence[Point], differing: Sequence[str], simulated: int) -> list[str]:
    what = [name for name in differing if name != "figures"]  # the key says what is emulated
    lines = [f"Differs from the published rows, or is not known: {', '.join(what)}"] if what else []
    origins = {point["origin"] for point in points}
    key = ["bars: interval over the rounds"] if "measured" in origins else []
    key += [f"dashed and hollow: {EMULATED}; its band is the prediction's"] if "emulated" in origins else []
    key += ["crossed out: suspect"] if any(point.get("suspect") for point in points) else []
    lines += ["; ".join(key).capitalize()]
    lines += [f"Simulated points left out: {simulated}"] if simulated else []
    return [part for line in lines for part in textwrap.wrap(line, SUBTITLE)]


def _build_panel(altair: Any, series: Sequence[Series], figure: str, title: str) -> Any:
    rows = [row for own in series for row in own.select(figure)]
    x, y = _build_batch_axis(altair, sorted({row["batch"] for row in rows})), _build_value_axis(altair, rows, title)

    def encode(channel: Any, values: Sequence[Any]) -> Any:
        names = [own.name for own in series]
        # channels of the same domain share one legend
        return channel("series:N", title=None, sort=names, scale=altair.Scale(domain=names, range=list(values)))

    base = altair.Chart(make_data(altair, rows)).encode(
        x=x, y=y, color=encode(altair.Color, [own.color for own in series])
    )
    line = base.mark_line(strokeWidth=1.8).encode(
        strokeDash=encode(altair.StrokeDash, [ORIGIN_DASHES[own.origin] for own in series])
    )
    marks = base.mark_point(size=70, strokeWidth=1.8, opacity=1).encode(
        fill=encode(altair.Fill, ["transparent" if own.hollow else own.color for own in series]),
        shape=encode(altair.Shape, [own.shape for own in series]),
    )
    ends = [layer for own in series for layer in _build_ends(altair, own, own.select(figure), x, y)]
    crosses = [{"batch": row["batch"], "y": row["y"]} for row in rows if row["suspect"]]
    crossed = altair.Chart(make_data(altair, crosses)).encode(x=x, y=y)
    style = {"shape": CROSS, "size": 320, "stroke": PALETTE.ink["mark"], "strokeWidth": 2.2, "opacity": 1}
    layers = [*ends, line, marks, *([crossed.mark_point(**style)] if crosses else [])]
    return altair.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _build_ends(altair: Any, own: Series, rows: Sequence[Row], x: Any, y: Any) -> list[Any]:
    """Return a band for what is emulated, bars for what is measured; a lone point has a bar, as a band needs two."""
    values = [{"batch": row["batch"], "y": row["low"], "high": row["high"]} for row in rows if row["low"] is not None]
    base = altair.Chart(make_data(altair, values)).encode(x=x, y=y, y2="high:Q")
    if own.hollow and len(values) > 1:
        return [base.mark_area(color=own.color, opacity=0.15)]
    return [base.mark_rule(color=own.color, strokeWidth=1.6, strokeDash=ORIGIN_DASHES[own.origin])] if values else []


def _build_batch_axis(altair: Any, batches: Sequence[int]) -> Any:
    """Build the axis whose ticks are the batch sizes themselves."""
    axis = altair.Axis(values=list(batches), format="d", grid=False, labelOverlap="greedy", labelSeparation=4)
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
        return altair.Y("y:Q", title=title, scale=altair.Scale(domain=[0, max(values) * 1.05], nice=True))
    low, high = min(values) / ROOM, max(values) * ROOM
    axis = altair.Axis(values=_list_ticks(low, high), format="~g")
    scale = altair.Scale(type="log", domain=[low, high], nice=False)
    return altair.Y("y:Q", title=f"{title}, log scale", scale=scale, axis=axis)


def _needs_log(rows: Sequence[Row]) -> bool:
    """Report whether a linear axis would flatten something: a series next to another one, or small batches."""
    values = [row["y"] for row in rows]
    if _is_wide([row["batch"] for row in rows]) and max(values) > LOG_FROM * min(values):
        return True
    names = {row["series"] for row in rows}
    medians = [median(row["y"] for row in rows if row["series"] == name) for name in names]
    return bool(max(medians) > LOG_FROM * min(medians))


def _list_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each decade between the ends, or 1 and 3 where those would crowd."""
    return list_log_ticks(low, high, (1, 2, 5) if high / low < 2000 else (1, 3))
