"""What the charts of several analyses share: axes, scales, panels, and one chart of ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ipu_results.ground.charts import CROSS, PALETTE, SHAPES, apply_theme, make_data, make_title

WIDTH, STEP = 460, 17
PANEL = {"width": 400, "height": 330}

# Titles with units by field. A page shows the numbers of a chart under these, and links `result_id`
# to its source.
TOOLTIPS = {
    "basis": "Latency counts",
    "base": "Throughput of the other (items/s)",
    "base_model": "Model of the other",
    "batch": "Batch size (items)",
    "bow": "Throughput of Bow (items/s)",
    "chips": "Chips",
    "classic": "Throughput of Classic (items/s)",
    "differs": "What differs",
    "efficiency": "Per chip (% of the smallest)",
    "in_flight": "Batches in flight",
    "interval_method": "Interval by",
    "kind": "Figure",
    "label": "Test",
    "latency": "Latency (ms)",
    "micro_batch": "Images per batch and chip",
    "minutes": "Time to train (min)",
    "minutes_high": "95 % interval to (min)",
    "minutes_low": "95 % interval from (min)",
    "ms": "Time (ms)",
    "oldest": "Oldest SDK",
    "price": "Price of a tie (USD)",
    "ratio": "Ratio",
    "separable_pairs": "Pairs separable",
    "separable_pairs_corrected": "Pairs separable, corrected",
    "tested_pairs": "Pairs tested",
    "throughput": "Throughput (items/s)",
    "tied_ranks": "Tied with ranks",
    "set": "Rows",
    "what": "Time of",
    "work": "Workload",
}


def make_tooltips(alt: Any, *fields: str, **titles: str) -> list[Any]:
    """Make the tooltips of fields, each with its unit in its title; `titles` replace those of
    TOOLTIPS.
    """
    known = {**TOOLTIPS, **titles}
    return [
        alt.Tooltip(f"{name}:N", title=known.get(name, name.capitalize().replace("_", " ")))
        for name in fields
    ]


def make_log_axis(
    alt: Any,
    channel: str,
    field: str,
    title: str,
    ticks: Sequence[float],
    label: str = "~g",
    **scale: Any,
) -> Any:
    """Make a logarithmic axis, `channel` X or Y; `label` is the format of its ticks, `scale` a
    domain or a padding.
    """
    axis = alt.Axis(
        values=list(ticks),
        format=label,
        grid=label == "~g" or channel == "Y",
        labelOverlap="greedy",
    )
    return getattr(alt, channel)(
        f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False, **scale), axis=axis
    )


def make_size_axis(alt: Any, field: str, title: str, ticks: Sequence[int]) -> Any:
    """Make a horizontal axis of sizes that double, such as batch sizes."""
    domain = [0.9 * ticks[0], 1.13 * ticks[-1]]
    return make_log_axis(alt, "X", field, f"{title} (log scale)", ticks, "d", base=2, domain=domain)


def make_scale(alt: Any, names: Iterable[str], values: Iterable[Any]) -> Any:
    """Map names to colours, shapes or dashes; values beyond the names are dropped."""
    pairs = dict(zip(names, values, strict=False))
    return alt.Scale(domain=list(pairs), range=list(pairs.values()))


def make_channels(
    alt: Any,
    field: str,
    title: str,
    names: Iterable[str],
    colors: Iterable[Any],
    shapes: Iterable[Any] = SHAPES,
) -> dict[str, Any]:
    """Make the colour and the shape of a field, which share one legend: a reader need not
    distinguish colours.
    """
    names = list(names)
    return {
        "color": alt.Color(f"{field}:N", title=title, scale=make_scale(alt, names, colors)),
        "shape": alt.Shape(f"{field}:N", title=title, scale=make_scale(alt, names, shapes)),
    }


def join_panels(
    alt: Any,
    panels: Sequence[Any],
    title: Sequence[str],
    legend_columns: int,
    legends: str = "independent",
) -> Any:
    """Join panels side by side under a title and its subtitle; `legends` are independent or shared."""
    chart = alt.hconcat(*panels, spacing=30).properties(title=make_title(alt, *title))
    return apply_theme(
        chart.resolve_scale(color=legends, shape=legends, strokeDash=legends), legend_columns
    )


def make_label_axis(alt: Any, records: Sequence[Mapping[str, Any]], title: str, limit: int) -> Any:
    """Make a vertical axis with a line per `label` in the order of the records; `limit` is its
    width in pixels.
    """
    labels = list(dict.fromkeys(record["label"] for record in records))
    above = {"titleAngle": 0, "titleAlign": "right", "titleX": -8, "titleY": -7}
    return alt.Y(
        "label:N", title=title, sort=labels, axis=alt.Axis(labelLimit=limit, grid=True, **above)
    )


def build_ratio_chart(
    alt: Any,
    records: Sequence[Mapping[str, Any]],
    x: Any,
    legend: str,
    names: Sequence[str],
    reference: float,
) -> Any:
    """Build a chart with one line per `label` and a point at each `ratio`, its colour and shape by
    `series`.

    `names` are the series in the order of the legend. Records with a true `crossed` are crossed
    out. A dashed rule marks the ratio `reference`.
    """
    base = alt.Chart(make_data(alt, records))
    y = make_label_axis(alt, records, "Test", 420)
    tooltip = make_tooltips(
        alt, *(name for name in records[0] if name not in ("crossed", "result_id"))
    )
    channels = make_channels(alt, "series", legend, names, PALETTE.series)
    points = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=x, y=y, **channels, tooltip=tooltip
    )
    crosses = base.transform_filter("datum.crossed").encode(x=x, y=y)
    crosses = crosses.mark_point(
        shape=CROSS, size=130, stroke=PALETTE.ink["mark"], strokeWidth=2, opacity=1
    )
    return alt.layer(draw_rule(alt, reference, x), points, crosses).properties(
        width=WIDTH, height=alt.Step(STEP)
    )


def draw_rule(alt: Any, ratio: float, x: Any) -> Any:
    """Draw a dashed vertical line at a ratio."""
    base = alt.Chart(make_data(alt, [{"ratio": ratio}])).encode(x=x)
    return base.mark_rule(color=PALETTE.ink["rule"], strokeDash=[4, 3])
