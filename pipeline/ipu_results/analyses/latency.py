"""Throughput that a bound on latency leaves, and the front of each machine."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import COLORS, CROSS, finished, titled
from ipu_results.analyses.words import listed

LEAST_POINTS = 3  # of a panel
SEVERAL = 1.5  # batches in flight
GROUP = ["origin", "network", "work", "item", "platform"]
TIMED = ("latency", "throughput", "batch", "framework", "precision", "basis", "variant")
ORIGINS = {"published": ("circle", [1, 0]), "measured": ("triangle-up", [1, 0]), "emulated": ("square", [4, 3])}
X_TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 1000)
PLUS = "M-1,0L1,0M0,-1L0,1"


def told(frames: Frames) -> str:
    bounded, points = frames["latency_bounded"], frames["latency_front"]
    published = bounded[bounded["origin"] == "published"]
    return " ".join(
        [
            _coverage(published, points[points["origin"] == "published"]),
            _bought(published),
            _against(published),
            _basis(published),
            _left_out(points),
            f"Beside them {(bounded['origin'] == 'emulated').sum()} lines are emulated and "
            f"{(bounded['origin'] == 'measured').sum()} measured by this project, in groups of their own.",
            "Batches were picked by who printed them, so a machine with few rows has a coarse front, not a poor one; "
            "machines have unlike numbers of chips, and the best row may be of any framework and precision.",
        ]
    )


def _coverage(published: pd.DataFrame, points: pd.DataFrame) -> str:
    groups = points.fillna({"work": ""}).groupby(GROUP).ngroups
    counts = [f"{len(of)} within {bound:g} ms" for bound, of in published.groupby("bound_ms")]
    return f"Of {groups} published pairs of work and machine, {listed(counts)} have a row."


def _widest(published: pd.DataFrame) -> pd.DataFrame:
    """The bounds of the pair of work and machine that gains most throughput from a looser bound."""
    groups = [of.sort_values("bound_ms") for _, of in published.fillna({"work": ""}).groupby(GROUP)]
    return max(groups, key=lambda of: of["throughput"].iloc[-1] / of["throughput"].iloc[0])


def _bought(published: pd.DataFrame) -> str:
    widest = _widest(published)
    first, last = widest.iloc[0], widest.iloc[-1]
    return (
        f"A looser bound buys most for {first['network']} on {first['platform']}: {first['throughput']:,.0f} "
        f"{first['item']}s/s within {first['bound_ms']:g} ms, {last['throughput']:,.0f} within {last['bound_ms']:g} ms."
    )


def _against(published: pd.DataFrame) -> str:
    """The same network on the machines that have it, at the loosest bound."""
    bound = published["bound_ms"].max()
    rows = published[(published["bound_ms"] == bound) & published["work"].isna()]
    network = rows.groupby("network")["platform"].nunique().idxmax()
    found = rows[rows["network"] == network].sort_values("throughput", ascending=False)
    said = [
        f"{row.throughput:,.0f} on {row.platform} (batch {row.batch_size}{_chips(row.chip_count)})"
        for row in found.itertuples()
    ]
    return f"{network} within {bound:g} ms, in {found['item'].iloc[0]}s/s: {listed(said)}."


def _basis(published: pd.DataFrame) -> str:
    several = (published["latency_basis"] == "several-in-flight").sum()
    unknown = published["latency_basis"].isna().sum()
    more = ((published["latency_basis"] == "per-batch") & (published["batches_in_flight"] >= SEVERAL)).sum()
    return (
        f"In {several} of these {len(published)} lines the time is that of a batch among several in flight, in "
        f"{unknown} no source says what was timed; {more} of the rest have {SEVERAL} batches or more in flight by "
        "throughput and latency, though the configuration behind them times one batch."
    )


def _left_out(points: pd.DataFrame) -> str:
    errors = points[points["left_out"] == "error"]
    items = points[points["latency_basis"] == "per-item"]
    return (
        f"Left out are {len(errors)} rows with error flags (of {listed(sorted(errors['model'].unique()))}), "
        f"{(points['left_out'] == 'suspect').sum()} suspect local ones and {(points['left_out'] == 'per-item').sum()} "
        f"more that time an item: {items['model'].iloc[items['latency_ms'].argmin()]}'s {items['latency_ms'].min():g} "
        "ms is no batch's."
    )


def chart(alt: Any, frames: Frames) -> Any:
    points = frames["latency_front"].sort_values([*GROUP, "latency_ms", "throughput", "result_id"])
    panels = points["network"].str.replace(r"^(EfficientDet)-D\d$", r"\1-D0 to D4", regex=True)
    points = points[panels.map(panels.value_counts()) >= LEAST_POINTS].assign(panel=panels)
    records = [_record(row) for row in points.to_dict("records")]
    facet = alt.Facet("panel:N", title=None, header=alt.Header(labelFontWeight="bold", labelFontSize=12))
    under = (
        "Lines: best throughput within a latency, one line per work, origin and machine; filled points are on it, "
        "hollow ones are not",
        "Crossed out: rows with error flags; plus: suspect rows, and latencies of an item; both on no line. "
        "Squares and dashes: EMULATED, not measured",
        f"Networks with fewer than {LEAST_POINTS} rows are in the view alone. Batches and chips differ: see the rows",
    )
    return finished(
        alt.layer(*_layers(alt, records), data=alt.Data(values=records))
        .properties(width=250, height=165)
        .facet(facet=facet, columns=3)
        .resolve_scale(y="independent")
        .properties(title=titled(alt, "Inference throughput by latency", *under))
    ).configure_legend(orient="bottom", labelLimit=0, columns=4)


def _record(row: dict[str, Any]) -> dict[str, Any]:
    figures = {
        "panel": row["panel"],
        "platform": row["platform"] + _chips(row["chip_count"]),
        "origin": row["origin"],
        "work": f"{row['network']} {row['work']}",
        "latency": float(f"{row['latency_ms']:.5g}"),
        "throughput": float(f"{row['throughput']:.6g}"),
        "item": row["item"],
        "batch": row["batch_size"],
        "framework": row["framework"],
        "precision": row["precision"] if pd.notna(row["precision"]) else row["compute_precision"],
        "basis": row["latency_basis"],
        "variant": row["variant"],
        "state": row["left_out"] if pd.notna(row["left_out"]) else "front" if row["on_front"] else "beside",
    }
    return {name: value for name, value in figures.items() if not pd.isna(value)}


def _chips(count: float) -> str:
    return "" if pd.isna(count) else f", {count:.0f} chip{'s' * (count > 1)}"


def _layers(alt: Any, records: list[dict[str, Any]]) -> list[Any]:
    platforms = sorted({str(record["platform"]) for record in records})
    ticks = alt.Axis(values=list(X_TICKS), format="~g", labelOverlap="greedy")
    base = alt.Chart().encode(
        x=alt.X("latency:Q", title="Latency (ms)", scale=alt.Scale(type="log", nice=False, padding=8), axis=ticks),
        y=alt.Y(
            "throughput:Q",
            title="Throughput (items/s)",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(format="~s", tickCount=4, labelOverlap="greedy"),
        ),
        color=alt.Color(
            "platform:N",
            title="Machine",
            scale=alt.Scale(domain=platforms, range=list(COLORS[: len(platforms)])),
        ),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("platform", "origin", "work", *TIMED)],
    )
    names = list(ORIGINS)
    shape = alt.Shape(
        "origin:N", title="Origin", scale=alt.Scale(domain=names, range=[ORIGINS[name][0] for name in names])
    )
    dash = alt.StrokeDash(
        "origin:N", title="Origin", scale=alt.Scale(domain=names, range=[ORIGINS[name][1] for name in names])
    )
    front = base.transform_filter("datum.state == 'front'")
    return [
        front.mark_line(interpolate="step-after", strokeWidth=1.4).encode(strokeDash=dash, detail="work:N"),
        base.transform_filter("datum.state != 'front'").mark_point(size=34, opacity=0.75).encode(shape=shape),
        front.mark_point(filled=True, size=44, opacity=1).encode(shape=shape),
        _over(base, "datum.state == 'error'", CROSS, 150),
        _over(base, "datum.state == 'suspect' || datum.state == 'per-item'", PLUS, 90),
    ]


def _over(base: Any, which: str, shape: str, size: int) -> Any:
    return base.transform_filter(which).mark_point(shape=shape, size=size, stroke="#000000", strokeWidth=1.6, opacity=1)


ANALYSIS = Analysis(
    "latency_bounded",
    "How much throughput does a bound on latency leave?",
    ("latency_bounded", "latency_front"),
    told,
    chart,
)
