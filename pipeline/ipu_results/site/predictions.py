"""Predictions made in advance, since no browser runs the emulator, against published times, with chart and finding."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import duckdb

from ipu_results.analyses.analysis import Answer, Record, format_percent
from ipu_results.analyses.drawing import make_scale, make_tooltips
from ipu_results.emulator.check import PublishedRow, load_published_rows
from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import MS, predict
from ipu_results.emulator.split import PlanCache, open_plan_cache
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, load_target
from ipu_results.ground.charts import PALETTE, apply_theme, make_data
from ipu_results.networks import IMAGES

# Name, sign and whether the emulator never saw the rows, by the emulator's sets.
SETS = {
    "calibration": "C2 rows it was fitted on",
    "resnext": "ResNeXt101, held out, errors known",
    "ten": "ten other networks, held out, errors known",
    "honest": "held out, errors not looked at",
}
SHAPES = ("circle", "square", "triangle-up", "diamond")
BAND = 0.25  # the dashed lines
MARGIN = 1.3  # factor between the outermost points and the ends of the axes
SIZE = 460
TITLES = {
    "published": "Published time per batch (ms)",
    "emulated": "EMULATED time per batch (ms)",
    "label": "Row",
    "platform": "Machine",
}


def describe_points(points: Sequence[Record]) -> Answer:
    """Describe the errors of the rows whose errors were not looked at, then those of each set."""
    errors = {name: _list_errors(points, name) for name in SETS}
    blind = errors["honest"]
    finding = (
        f"The emulator's time per batch differs from the published one by {format_percent(median(blind))} in the "
        f"median of {len(blind)} rows whose errors were not looked at while it was made, and by "
        f"{format_percent(max(blind))} at most."
    )
    figures = " ".join(
        f"{SETS[name].capitalize() if name != 'resnext' else SETS[name]}: {len(values)} rows, "
        f"{format_percent(median(values))} in the median and {format_percent(max(values))} at most."
        for name, values in errors.items()
        if values
    )
    caveats = (
        "The other held-out rows fit better, but their errors were known while the model was made.",
        "Two numbers of the emulator were fitted on the C2 rows, so their errors show nothing.",
        "Every emulated figure is calculated from the architecture. Nothing was executed on an IPU.",
    )
    return Answer(finding, (figures,), caveats)


def _list_errors(points: Sequence[Record], name: str) -> list[float]:
    return [abs(point["emulated"] / point["published"] - 1) for point in points if point["set"] == name]


def draw_points(alt: Any, points: Sequence[Record]) -> Any:
    """Draw emulated over published time per batch on two equal logarithmic axes."""
    times = [point[name] for point in points for name in ("published", "emulated")]
    ends = [min(times) / MARGIN, max(times) * MARGIN]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axes = {
        "x": alt.X("published:Q", title=TITLES["published"], scale=scale),
        "y": alt.Y("emulated:Q", title=TITLES["emulated"], scale=scale),
    }
    records = [{**point, "set": SETS.get(point["set"], point["set"])} for point in points]
    names = list(SETS.values())
    color = alt.Color(
        "set:N", title="Rows", scale=make_scale(alt, names, [PALETTE.validation_sets[name] for name in SETS])
    )
    shape = alt.Shape("set:N", title="Rows", scale=make_scale(alt, names, SHAPES))
    tooltip = make_tooltips(alt, "label", "platform", "batch", "published", "emulated", "set", **TITLES)
    marks = alt.Chart(make_data(alt, records)).mark_point(filled=True, size=70, opacity=0.85)
    lines = [_draw_line(alt, ends, factor, axes) for factor in (1 - BAND, 1, 1 + BAND)]
    chart = alt.layer(*lines, marks.encode(**axes, color=color, shape=shape, tooltip=tooltip))
    subtitle = f"On the line both agree; the dashed lines are ± {BAND:.0%}"
    title = alt.Title(describe_points(points).finding, subtitle=[subtitle], anchor="start", fontSize=15)
    return apply_theme(chart.properties(width=SIZE, height=SIZE, title=title), legend_columns=2)


def _draw_line(alt: Any, ends: Sequence[float], factor: float, axes: dict[str, Any]) -> Any:
    starts = [end / max(1, factor) for end in ends]
    line = [{"published": start, "emulated": start * factor} for start in starts]
    dash = [1, 0] if factor == 1 else [4, 4]
    style = {"color": PALETTE.ink["rule"], "strokeWidth": 1, "clip": True, "strokeDash": dash}
    return alt.Chart(make_data(alt, line)).mark_line(**style).encode(**axes)


DIGITS = 6  # of what is calculated
ALL_DIGITS = 15  # of a published time


def build_predictions(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the predictions of the form, and the validation rows with published and emulated time."""
    with open_plan_cache() as planner:
        return {"predictions": _predict_all(planner), "points": build_points(connection, planner)}


def build_points(connection: duckdb.DuckDBPyConnection, planner: PlanCache | None = None) -> list[dict[str, Any]]:
    """Predict the time per batch of each published row that the emulator is validated on."""
    rows = load_published_rows(connection)
    if planner is not None:
        return [_make_point(row, planner) for row in rows]
    with open_plan_cache() as opened:
        return [_make_point(row, opened) for row in rows]


def _predict_all(planner: PlanCache) -> list[dict[str, Any]]:
    """Predict each built-in image network on each machine, with the machine's own protocol."""
    return [
        {field: _round(value, DIGITS) for field, value in prediction.to_record(name).items()}
        for target, batches in DEFAULT_BATCH_SIZES.items()
        for name in IMAGES
        for prediction in predict(load_network(name), load_target(target), batches, planner=planner)
    ]


def _make_point(row: PublishedRow, planner: PlanCache) -> dict[str, Any]:
    """Predict the time per batch of one published row."""
    selector = row.selector
    network, target = load_network(selector.network), load_target(selector.target)
    (prediction,) = predict(network, target, [row.batch_size], row.protocol, planner=planner)
    return {
        "result_id": row.result_id,
        "set": row.set,
        "label": row.label,
        "platform": selector.platform,
        "batch": row.batch_size,
        "published": _round(row.seconds * MS, ALL_DIGITS),
        "emulated": _round(prediction.timing.period * MS, DIGITS),
    }


def _round(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
