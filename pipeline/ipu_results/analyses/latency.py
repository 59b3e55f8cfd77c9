"""Throughput within a bound on latency, the front of each machine, and the lowest latency."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    Analysis,
    Frames,
    describe_left_out,
    format_chips,
    format_percent,
    join_paragraphs,
    join_words,
)
from ipu_results.analyses.drawing import make_log_axis, make_scale, make_tooltips
from ipu_results.ground.charts import (
    CROSS,
    ORIGIN_DASHES,
    ORIGIN_SHAPES,
    PALETTE,
    PLUS,
    apply_theme,
    make_data,
    make_title,
)

TIGHT_MS = 5.0
MIN_POINTS, MAX_WORKS = 3, 8  # in a panel
SEVERAL = 1.5  # batches in flight
GROUP = ["origin", "relationship", "work", "item", "platform"]
DETAILS = ("latency", "throughput", "batch", "framework", "precision", "basis", "variant")
X_TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 300, 1000)


def summarise(frames: Frames) -> str:
    """Describe what a bound costs, what a looser one gains, remarks, lowest latencies, and which
    rows are excluded.
    """
    bounded = frames["latency_bounded"]
    points = frames["latency_front"]
    lowest = frames["latency_lowest"]
    published = bounded[bounded["relationship"] == "vendor"]
    groups = points[points["relationship"] == "vendor"].groupby(GROUP).ngroups
    counts = [f"{len(rows)} within {bound:g} ms" for bound, rows in published.groupby("bound_ms")]
    return join_paragraphs(
        [_describe_cost(published)],
        [
            _describe_gain(published),
            _compare_machines(published),
            f"Of {groups} vendor pairs of workload and machine, {join_words(counts)} have a row.",
        ],
        [_describe_remarks(published)],
        [_describe_lowest(lowest[lowest["origin"] == "published"])],
        [
            _describe_basis(published),
            _describe_excluded(points),
            (
                f"A further {(bounded['relationship'] == 'independent').sum()} lines are of"
                f" independent parties and {(bounded['origin'] == 'measured').sum()} measured by"
                " this project, in groups of their own."
            ),
            "Emulated rows are in none.",
            (
                "The publishers chose the batch sizes, so a machine with few rows has a coarse"
                " front, not a slow one."
            ),
            (
                "Machines have different numbers of chips, and the best row may use any framework"
                " and precision."
            ),
        ],
    )


def _describe_cost(published: pd.DataFrame) -> str:
    """Describe which share of the throughput within the loosest bound is left within TIGHT_MS."""
    rows = published.pivot(index=GROUP, columns="bound_ms", values="throughput")
    loose = rows.columns.max()
    shares = (rows[TIGHT_MS] / rows[loose]).dropna()
    return (
        f"Within {TIGHT_MS:g} ms a machine keeps {format_percent(shares.median())} of the"
        f" throughput that it has within {loose:g} ms, in the median of the {len(shares)} vendor"
        f" pairs of workload and machine that have a row within {TIGHT_MS:g} ms (from"
        f" {format_percent(shares.min())} to {format_percent(shares.max())})."
    )


def _describe_remarks(published: pd.DataFrame) -> str:
    """Describe which of the best rows carry a remark, and the remarks on the rows of the loosest
    bound.
    """
    marked = published[published["remark"].notna()]
    if marked.empty:
        return ""
    rows = marked.sort_values(["bound_ms", "model", "platform"]).drop_duplicates(GROUP, keep="last")
    remarks = [f"{row.model} on {row.platform}: {row.remark}." for row in rows.itertuples()]
    return f"{len(marked)} of these lines carry a remark. {' '.join(remarks)}"


def _describe_lowest(published: pd.DataFrame) -> str:
    """Describe the rows that have a latency alone, and the lowest latency of each model that has
    such rows.
    """
    alone = published[published["rows_without_throughput"] > 0]
    if alone.empty:
        return ""
    names, machines = (join_words(alone[column].sort_values()) for column in ("model", "platform"))
    compared = published[published["model"].isin(alone["model"])]
    return " ".join(
        [
            (
                f"{alone['rows_without_throughput'].sum()} rows print a latency and no throughput"
                f" ({names} on {machines})."
            ),
            (
                "They cannot enter the lines above: throughput would follow from batch and latency"
                " only if one batch were in flight, which their source does not state."
            ),
            "The view `detail.latency_lowest` has them.",
            *(_compare_lowest(rows) for _, rows in compared.groupby("work")),
            "The batches differ, and so do chips and precisions.",
        ]
    )


def _compare_lowest(rows: pd.DataFrame) -> str:
    figures = [
        f"{row.latency_ms:g} ms on {row.platform} (batch"
        f" {row.batch_size}{_append_chips(row.chip_count)},"
        f" {row.precision})"
        for row in rows.sort_values(["latency_ms", "platform"]).itertuples()
    ]
    return f"The lowest latencies of {rows['work'].iloc[0]}: {join_words(figures)}."


def _describe_gain(published: pd.DataFrame) -> str:
    """Describe the workload and machine whose throughput a looser bound raises by the largest
    factor.
    """
    groups = [rows.sort_values("bound_ms") for _, rows in published.groupby(GROUP)]
    widest = max(groups, key=lambda rows: rows["throughput"].iloc[-1] / rows["throughput"].iloc[0])
    first = widest.iloc[0]
    last = widest.iloc[-1]
    return (
        f"A looser latency bound raises throughput the furthest for {first['model']} on"
        f" {first['platform']}: from {first['throughput']:,.0f} {first['item']}s/s within"
        f" {first['bound_ms']:g} ms to {last['throughput']:,.0f} within {last['bound_ms']:g} ms."
    )


def _compare_machines(published: pd.DataFrame) -> str:
    """Compare the machines at the loosest bound on the model that the most machines ran."""
    bound = published["bound_ms"].max()
    rows = published[(published["bound_ms"] == bound) & (published["work"] == published["model"])]
    model = rows.groupby("model")["platform"].nunique().idxmax()
    compared = rows[rows["model"] == model].sort_values("throughput", ascending=False)
    figures = [
        f"{row.throughput:,.0f} on {row.platform} (batch"
        f" {row.batch_size}{_append_chips(row.chip_count)})"
        for row in compared.itertuples()
    ]
    return (
        f"Within {bound:g} ms, {model} reaches these {compared['item'].iloc[0]}s/s:"
        f" {join_words(figures)}."
    )


def _describe_basis(published: pd.DataFrame) -> str:
    several = (published["latency_basis"] == "several-in-flight").sum()
    unknown = published["latency_basis"].isna().sum()
    more = (
        (published["latency_basis"] == "per-batch") & (published["batches_in_flight"] >= SEVERAL)
    ).sum()
    return (
        f"In {several} of these {len(published)} lines the latency is that of a batch among several"
        f" in flight. In {unknown}, no source states what was timed. Of the rest, {more} have"
        f" {SEVERAL} batches or more in flight by throughput and latency, although their"
        " configuration times one batch."
    )


def _describe_excluded(points: pd.DataFrame) -> str:
    items = points[points["latency_basis"] == "per-item"]
    shortest = items.loc[items["latency_ms"].idxmin()]
    counts = points["left_out"].value_counts()
    return (
        f"{describe_left_out(points)} Left out too are {counts.get('sparse', 0)} of sparse models"
        f" and {counts.get('per-item', 0)} that time a single item. An example is"
        f" {shortest['model']}, whose {shortest['latency_ms']:g} ms is not the latency of a batch."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw throughput over latency, one panel per model."""
    points = frames["latency_front"].sort_values([*GROUP, "latency_ms", "throughput", "result_id"])
    panels = points["model"].str.replace(r"^(EfficientDet)-D\d$", r"\1-D0 to D4", regex=True)
    panels = panels.str.replace(r"^(GPT2)-\w+$", r"\1", regex=True)
    works = points.groupby(panels)["work"].nunique()
    points = points[
        (panels.map(panels.value_counts()) >= MIN_POINTS) & (panels.map(works) <= MAX_WORKS)
    ]
    points = points.assign(panel=panels)
    records = [_make_record(row) for row in points.to_dict("records")]
    subtitle = (
        (
            "Lines: best throughput within a latency, one line per workload, origin and machine;"
            " filled points are on a line, hollow ones are not"
        ),
        (
            "Crossed out: rows with error flags; plus: suspect rows, and latencies of an item; both"
            " are on no line. Squares and dashes: EMULATED, not measured"
        ),
        (
            f"Models with fewer than {MIN_POINTS} rows or more than {MAX_WORKS} variants are only"
            " in the view. Batches and chips differ: see the rows"
        ),
        *_describe_marked(points),
    )
    chart = (
        alt.layer(*_build_layers(alt, records), data=make_data(alt, records))
        .properties(width=250, height=165)
        .facet(
            facet=alt.Facet(
                "panel:N", title=None, header=alt.Header(labelFontWeight="bold", labelFontSize=12)
            ),
            columns=3,
        )
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")  # each panel has an axis of its own, of one domain
        .properties(title=make_title(alt, "Inference throughput by latency", *subtitle))
    )
    return apply_theme(chart, legend_columns=4)


def _describe_marked(points: pd.DataFrame) -> list[str]:
    """Describe the machines on which every row of a model carries a remark, with what opens it."""
    remarks = points.assign(opening=points["remark"].str.partition(":")[0])
    machines: dict[tuple[str, str], list[str]] = {}
    for (platform, model), rows in remarks.groupby(["platform", "model"]):
        if rows["opening"].notna().all() and rows["opening"].nunique() == 1:
            machines.setdefault((platform, rows["opening"].iloc[0]), []).append(model)
    return [
        f"{platform}, {join_words(names)}: {opening}"
        for (platform, opening), names in machines.items()
    ]


def _make_record(row: dict[str, Any]) -> dict[str, Any]:
    figures = {
        "panel": row["panel"],
        "result_id": row["result_id"],
        "platform": row["platform"] + _append_chips(row["chip_count"]),
        "origin": row["origin"],
        "work": row["work"],
        "latency": row["latency_ms"],
        "throughput": row["throughput"],
        "item": row["item"],
        "batch": row["batch_size"],
        "framework": row["framework"],
        "precision": row["precision"],
        "basis": row["latency_basis"],
        "variant": row["variant"],
        "state": (
            row["left_out"]
            if pd.notna(row["left_out"])
            else "front"
            if row["on_front"]
            else "behind"
        ),
    }
    return {name: value for name, value in figures.items() if not pd.isna(value)}


def _append_chips(count: float) -> str:
    return "" if pd.isna(count) else f", {format_chips(count)}"


def _build_layers(alt: Any, records: list[dict[str, Any]]) -> list[Any]:
    platforms = sorted({str(record["platform"]) for record in records})
    base = alt.Chart().encode(
        x=make_log_axis(alt, "X", "latency", "Latency (ms)", X_TICKS, padding=8),
        y=alt.Y(
            "throughput:Q",
            title="Throughput (items/s)",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(format="~s", tickCount=4, labelOverlap="greedy"),
        ),
        color=alt.Color(
            "platform:N",
            title="Machine",
            scale=make_scale(alt, platforms, PALETTE.assign(platforms)),
        ),
        tooltip=make_tooltips(alt, "platform", "origin", "work", *DETAILS),
    )
    shape, dash = (
        channel("origin:N", title="Origin", scale=make_scale(alt, values, values.values()))
        for channel, values in ((alt.Shape, ORIGIN_SHAPES), (alt.StrokeDash, ORIGIN_DASHES))
    )
    front = base.transform_filter("datum.state == 'front'")
    return [
        front.mark_line(interpolate="step-after", strokeWidth=1.4).encode(
            strokeDash=dash, detail="work:N"
        ),
        base.transform_filter("datum.state != 'front'")
        .mark_point(size=34, opacity=0.75)
        .encode(shape=shape),
        front.mark_point(filled=True, size=44, opacity=1).encode(shape=shape),
        _mark_over(base, "datum.state == 'error'", CROSS, 150),
        _mark_over(base, "datum.state == 'suspect' || datum.state == 'per-item'", PLUS, 90),
    ]


def _mark_over(base: Any, condition: str, shape: str, size: int) -> Any:
    marks = base.transform_filter(condition)
    return marks.mark_point(
        shape=shape, size=size, stroke=PALETTE.ink["mark"], strokeWidth=1.6, opacity=1
    )


ANALYSIS = Analysis(
    "latency_bounded",
    "How much throughput does a bound on latency leave?",
    ("latency_bounded", "latency_front", "latency_lowest"),
    summarise,
    build_chart,
)
