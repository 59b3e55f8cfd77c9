"""Latency and throughput against the batch size, beside the published rows, as a drawing that tells them apart.

Published and measured series are solid and filled, emulated ones dashed and hollow; a suspect point is crossed out.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import Any

from ipu_results._util.charts import render_chart
from ipu_results.errors import RunnerError
from ipu_results.runner.beside import EMULATED, Point, Published, companions, differing
from ipu_results.runner.summary import interval
from ipu_results.schema.vocabulary import normalise_name

WIDTH, HEIGHT = 360, 300
SUBTITLE = 165  # characters of a line over both panels
LOG_FROM = 8.0  # ratio between the medians of two series from which on they share a logarithmic axis
LOG_BATCH_FROM = 16  # ratio between the largest batch and the smallest
ROOM = 1.25
# Okabe and Ito's palette, told apart by readers with any colour vision; black is for what was published.
BLACK = ("#000000", "#7f7f7f", "#5b5b5b")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = {
    "published": ("diamond", "cross"),
    "measured": ("circle", "triangle-up", "triangle-right"),
    "emulated": ("square", "triangle-down", "triangle-left"),
}
DASHES = {"published": [1, 0], "measured": [1, 0], "emulated": [5, 4]}
CROSS = "M-1,-1L1,1M-1,1L1,-1"
PANELS = {"latency": "Latency{kind} (ms per batch)", "throughput": "Throughput ({item}s/s)"}
NAMED = ("platform", "backend", "device", "compute_precision")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mark:
    """One point of a series; the ends are those of its interval or band, lower first."""

    batch: int
    latency: float | None
    throughput: float | None
    latency_ends: tuple[float, float] | None = None
    throughput_ends: tuple[float, float] | None = None
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    origin: str
    color: str
    shape: str
    marks: tuple[Mark, ...]

    @property
    def hollow(self) -> bool:
        return self.origin == "emulated"


def draw(points: Sequence[Point], published: Sequence[Published], suffix: str) -> bytes:
    """An image, `suffix` .svg or .png. Simulated points are left out.

    Raises MissingExtraError, and RunnerError where no point is left.
    """
    kept = [point for point in points if point.get("origin") in ("measured", "emulated")]
    if not kept:
        raise RunnerError("no point is measured or emulated: there is nothing to draw")
    return render_chart(lambda altair: _chart(altair, kept, published, len(points) - len(kept)), suffix)


def series(points: Sequence[Point], published: Sequence[Published]) -> list[Series]:
    """What is drawn, the published rows first; runs whose names would be the same are named by their ids too."""
    found = [*_published(points, published), *_runs(points)]
    blacks, colors = cycle(BLACK), cycle(COLORS)
    shapes = {origin: cycle(of) for origin, of in SHAPES.items()}
    return [
        Series(name, origin, next(blacks if origin == "published" else colors), next(shapes[origin]), marks)
        for name, origin, marks in found
    ]


def _published(points: Sequence[Point], published: Sequence[Published]) -> list[tuple[str, str, tuple[Mark, ...]]]:
    groups: dict[str, dict[int, Mark]] = {}
    for row in companions(points, published):
        told = (row.platform, row.software, row.computed_in)
        name = f"{', '.join(one for one in told if one)}: published, {row.publisher}"
        groups.setdefault(name, {})[row.batch_size or 0] = Mark(row.batch_size or 0, row.latency_ms, row.throughput)
    return [(name, "published", tuple(marks.values())) for name, marks in groups.items()]


def _runs(points: Sequence[Point]) -> list[tuple[str, str, tuple[Mark, ...]]]:
    runs: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        runs.setdefault(tuple(point.get(key) for key in ("run_id", "origin", *NAMED)), []).append(point)
    again = Counter(key[1:] for key in runs)
    return [(_name(of[0], again[key[1:]] > 1), of[0]["origin"], tuple(map(_mark, of))) for key, of in runs.items()]


def _name(point: Point, with_run: bool) -> str:
    told: dict[str, str] = {}
    for value in (str(point[key]) for key in NAMED if point.get(key)):
        told.setdefault(normalise_name(value), value)  # an emulated C2 is platform C2 and device c2
    how = "EMULATED, not measured" if point["origin"] == "emulated" else "measured"
    run = f", {point.get('run_id')}" if with_run else ""
    return f"{', '.join(told.values())}: {how}{run}"


def _mark(point: Point) -> Mark:
    low, high, suspect = (point.get(key) for key in ("latency_ms_low", "latency_ms_high", "suspect"))
    figures = point.get("latency_ms"), point.get("throughput")
    return Mark(point["batch_size"], *figures, (low, high) if low and high else None, interval(point), bool(suspect))


def _chart(altair: Any, points: Sequence[Point], published: Sequence[Published], left_out: int) -> Any:
    all_series, what = series(points, published), differing(points, published)
    models = ", ".join(dict.fromkeys(str(point.get("model")) for point in points))
    under = {"subtitle": _subtitle(points, what, left_out), "subtitleFontSize": 11, "subtitlePadding": 4}
    text = f"{models}: latency and throughput by batch size"
    title = altair.Title(text, **under, anchor="start", fontSize=15, offset=14)
    item = next((str(point["item"]) for point in points if point.get("item")), "item")
    kind = "" if "latency" in what else ", amortised"
    panels = [_panel(altair, all_series, name, said.format(item=item, kind=kind)) for name, said in PANELS.items()]
    return (
        altair.hconcat(*panels, spacing=36)
        .resolve_scale(color="shared", shape="shared", fill="shared", strokeDash="shared")
        .properties(title=title)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor="#e6e6e6")
        .configure_legend(orient="bottom", columns=1, labelLimit=0, labelFontSize=12, symbolSize=110)
    )


def _subtitle(points: Sequence[Point], differ: Sequence[str], left_out: int) -> list[str]:
    what = [one for one in differ if one != "figures"]  # the key tells what is emulated
    lines = [f"Differs from the published rows, or is not known: {', '.join(what)}"] if what else []
    lines += [_key(points)]
    lines += [f"Simulated points left out: {left_out}"] if left_out else []
    return [part for line in lines for part in textwrap.wrap(line, SUBTITLE)]


def _key(points: Sequence[Point]) -> str:
    origins = {point["origin"] for point in points}
    said = ["bars: interval over the rounds"] if "measured" in origins else []
    said += [f"dashed and hollow: {EMULATED}; its band is the prediction's"] if "emulated" in origins else []
    said += ["crossed out: suspect"] if any(point.get("suspect") for point in points) else []
    return "; ".join(said).capitalize()


def _panel(altair: Any, all_series: Sequence[Series], figure: str, title: str) -> Any:
    rows = [row for one in all_series for row in _rows(one, figure)]
    x, y = _batch_axis(altair, sorted({row["batch"] for row in rows})), _value_axis(altair, rows, title)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=x, y=y, color=_by_series(altair.Color, altair, all_series, [one.color for one in all_series])
    )
    fills = ["transparent" if one.hollow else one.color for one in all_series]
    line = base.mark_line(strokeWidth=1.8).encode(
        strokeDash=_by_series(altair.StrokeDash, altair, all_series, [DASHES[one.origin] for one in all_series])
    )
    marks = base.mark_point(size=70, strokeWidth=1.8, opacity=1).encode(
        fill=_by_series(altair.Fill, altair, all_series, fills),
        shape=_by_series(altair.Shape, altair, all_series, [one.shape for one in all_series]),
    )
    ends = [layer for one in all_series for layer in _ends(altair, one, _rows(one, figure), x, y)]
    layers = [*ends, line, marks, *_crosses(altair, rows, x, y)]
    return altair.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _by_series(channel: Any, altair: Any, all_series: Sequence[Series], told: Sequence[Any]) -> Any:
    """Channels of the same domain share one legend."""
    names = [one.name for one in all_series]
    return channel("series:N", title=None, sort=names, scale=altair.Scale(domain=names, range=list(told)))


def _ends(altair: Any, one: Series, rows: Sequence[Row], x: Any, y: Any) -> list[Any]:
    """A band for what is emulated, bars for what is measured; a band needs two points, so a lone one has a bar."""
    values = [{"batch": row["batch"], "y": row["low"], "high": row["high"]} for row in rows if row["low"] is not None]
    base = altair.Chart(altair.Data(values=values)).encode(x=x, y=y, y2="high:Q")
    if one.hollow and len(values) > 1:
        return [base.mark_area(color=one.color, opacity=0.15)]
    return [base.mark_rule(color=one.color, strokeWidth=1.6, strokeDash=DASHES[one.origin])] if values else []


def _crosses(altair: Any, rows: Sequence[Row], x: Any, y: Any) -> list[Any]:
    values = [{"batch": row["batch"], "y": row["y"]} for row in rows if row["suspect"]]
    base = altair.Chart(altair.Data(values=values)).encode(x=x, y=y)
    return [base.mark_point(shape=CROSS, size=320, stroke="#000000", strokeWidth=2.2, opacity=1)] if values else []


def _rows(one: Series, figure: str) -> list[Row]:
    found = [(mark, getattr(mark, figure), getattr(mark, f"{figure}_ends") or (None, None)) for mark in one.marks]
    return [
        {"series": one.name, "batch": mark.batch, "y": y, "low": low, "high": high, "suspect": mark.suspect}
        for mark, y, (low, high) in found
        if y is not None
    ]


def _batch_axis(altair: Any, batches: Sequence[int]) -> Any:
    """The batch sizes themselves are the ticks."""
    axis = altair.Axis(values=list(batches), format="d", grid=False, labelOverlap="greedy", labelSeparation=4)
    least, most, title = batches[0], batches[-1], "Batch size (total over all sessions)"
    if _wide(batches):
        scale = altair.Scale(type="log", base=2, domain=[least / ROOM, most * ROOM], nice=False)
        return altair.X("batch:Q", title=f"{title}, log scale", scale=scale, axis=axis)
    room = max(1.0, 0.06 * (most - least))
    scale = altair.Scale(domain=[max(0, least - room), most + room], nice=False)
    return altair.X("batch:Q", title=title, scale=scale, axis=axis)


def _wide(batches: Sequence[int]) -> bool:
    return max(batches) >= LOG_BATCH_FROM * min(batches)


def _value_axis(altair: Any, rows: Sequence[Row], title: str) -> Any:
    values = [row[key] for row in rows for key in ("y", "low", "high") if row[key] is not None]
    if not _apart(rows):
        scale = altair.Scale(domain=[0, max(values) * 1.05], nice=True)
        return altair.Y("y:Q", title=title, scale=scale)
    ends = (min(values) / ROOM, max(values) * ROOM)
    axis = altair.Axis(values=_ticks(*ends), format="~g")
    return altair.Y(
        "y:Q", title=f"{title}, log scale", scale=altair.Scale(type="log", domain=list(ends), nice=False), axis=axis
    )


def _apart(rows: Sequence[Row]) -> bool:
    """Whether a linear axis would press something flat: a series beside another one, or small batches beside large."""
    values = [row["y"] for row in rows]
    if _wide([row["batch"] for row in rows]) and max(values) > LOG_FROM * min(values):
        return True
    names = {row["series"] for row in rows}
    medians = [median(row["y"] for row in rows if row["series"] == name) for name in names]
    return bool(max(medians) > LOG_FROM * min(medians))


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade between the ends, or 1 and 3 where those would crowd."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 2000 else (1, 3)
    found = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in found if low <= tick <= high]
