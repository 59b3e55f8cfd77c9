"""Bow over Classic on matched rows, and on a naive join."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    Analysis,
    Frames,
    compute_mean,
    describe_range,
    join_cells,
    join_paragraphs,
    join_words,
    select_clean,
)
from ipu_results.analyses.drawing import WIDTH, build_ratio_chart, draw_rule, make_log_axis, make_scale, make_tooltips
from ipu_results.ground.charts import PALETTE, apply_theme, make_data, make_title

SAME = ("same_test", "same_framework", "same_precision", "same_batch")
MATCHED, NAIVE = "matched rows", "naive join"


def summarise(frames: Frames) -> str:
    """Describe the means of the matched pairs and of the naive join, and what is excluded."""
    pairs, naive = frames["generations"], select_clean(frames["generations_naive"])
    return join_paragraphs(
        [_describe_finding(pairs)],
        [_describe_means(pairs), _describe_trend(pairs), _describe_releases(pairs)],
        [_describe_naive(naive), _describe_unknown_items(pairs, naive), _describe_inference(naive)],
    )


def _describe_finding(pairs: pd.DataFrame) -> str:
    ratios = pairs["throughput_ratio"]
    return (
        f"Bow has {compute_mean(ratios):.2f} times the throughput of the Classic machines, as a geometric mean over "
        f"{len(ratios)} matched pairs ({ratios.min():.2f} to {ratios.max():.2f}), and its clock is "
        f"{pairs['clock_ratio'].max():.2f} times as fast."
    )


def _describe_means(pairs: pd.DataFrame) -> str:
    groups = pairs.groupby("chip_count")["throughput_ratio"]
    by_chips = [f"{compute_mean(ratios):.2f} on {chips} chips ({describe_range(ratios)})" for chips, ratios in groups]
    return (
        f"By size, the mean is {join_words(by_chips)}. Each pair has the same test, framework, precision, batch size, "
        "number of chips and item, and nearly the same SDK."
    )


def _describe_trend(pairs: pd.DataFrame) -> str:
    """Describe the means only where they fall with the number of chips."""
    groups = [(chips, ratios) for chips, ratios in pairs.groupby("chip_count")["throughput_ratio"]]
    means = [compute_mean(ratios) for _, ratios in groups]
    if means != sorted(means, reverse=True):
        return ""
    chips, last = groups[-1]
    return (
        "The fewer the chips, the closer the gain comes to the ratio of the clocks. The rows do not explain this, and "
        f"{len(last)} pairs are too few to conclude it for {chips} chips."
    )


def _describe_releases(pairs: pd.DataFrame) -> str:
    bow, classic = (join_words(sorted(pairs[f"{machine}_sdk_version"].unique())) for machine in ("bow", "classic"))
    tasks = join_words(sorted(pairs["task"].unique()))
    return f"All {len(pairs)} pairs are {tasks} rows, Bow with {bow} and Classic with {classic}."


def _describe_naive(naive: pd.DataFrame) -> str:
    ratios = naive["throughput_ratio"]
    groups = naive.groupby("chip_count")["throughput_ratio"]
    means = join_words([f"{compute_mean(values):.2f} on {chips}" for chips, values in groups])
    return (
        f"A join on task, model and chips alone has {len(naive)} pairs, from {ratios.min():.2f} to "
        f"{ratios.max():.2f}. Its means are {means} chips. Such pairs compare sequence lengths, frameworks and batch "
        "sizes rather than machines."
    )


def _describe_unknown_items(pairs: pd.DataFrame, naive: pd.DataFrame) -> str:
    """Describe the pairs that are excluded only because their items are unknown."""
    excluded = naive[naive[list(SAME)].all(axis=1) & naive["near_sdk"] & ~naive["same_item"]]
    if excluded.empty:
        return ""
    chips = excluded["chip_count"].iloc[0]
    together = pd.concat([frame[frame["chip_count"] == chips] for frame in (pairs, excluded)])
    ratios = join_words([f"{ratio:.2f}" for ratio in excluded["throughput_ratio"]])
    return (
        f"Excluded, because no source states what its items are: {join_words(sorted(excluded['model'].unique()))}, at "
        f"{ratios}. With it, the mean on {chips} chips would be {compute_mean(together['throughput_ratio']):.2f}."
    )


def _describe_inference(naive: pd.DataFrame) -> str:
    """Describe the inference pairs that agree in all but the SDK."""
    agreeing = naive[naive[[*SAME, "same_item"]].all(axis=1) & (naive["task"] == "inference")]
    other = agreeing[~agreeing["near_sdk"]]
    timed = other["latency_ratio"].dropna()
    return (
        f"{agreeing['near_sdk'].sum() or 'No'} inference pairs have nearly the same SDK. The {len(other)} that agree "
        f"in test, framework, precision, batch size and item have {compute_mean(other['throughput_ratio']):.2f} times "
        f"the throughput. Of these, the {len(timed)} with as many batches in flight have {compute_mean(timed):.2f} "
        "times the latency. How much of this is due to the newer software is unknown."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw each matched pair, and the means of matched rows and of the naive join."""
    pairs, naive = frames["generations"], select_clean(frames["generations_naive"])
    clock = pairs["clock_ratio"].max()
    title = make_title(
        alt,
        "Bow over Classic: throughput of matched rows, and of a naive join",
        f"Dashed: the ratio of the clocks, {clock:.2f}. Published rows without error flags, no MLPerf",
    )
    panels = (_draw_matched(alt, pairs, clock), _draw_naive(alt, pairs, naive, clock))
    chart = alt.vconcat(*panels, spacing=30).resolve_scale(color="independent", shape="independent")
    return apply_theme(chart.properties(title=title))


def _draw_matched(alt: Any, pairs: pd.DataFrame, clock: float) -> Any:
    ordered = pairs.sort_values(["chip_count", "throughput_ratio", "bow_result_id"])
    records = [
        {
            "label": join_cells(row, "model", "variant", "framework", "bow_platform"),
            "ratio": round(row["throughput_ratio"], 4),
            "series": str(row["chip_count"]),
            "bow": row["bow_throughput"],
            "classic": row["classic_throughput"],
            "batch": row["batch_size"],
            "crossed": False,
            "result_id": row["bow_result_id"],
        }
        for row in ordered.to_dict("records")
    ]
    scale, axis = alt.Scale(zero=False, nice=True), alt.Axis(format=".2f", tickCount=6)
    x = alt.X("ratio:Q", title="Throughput of Bow over Classic, matched rows", scale=scale, axis=axis)
    names = list(dict.fromkeys(record["series"] for record in records))
    return build_ratio_chart(alt, records, x, "Chips", names, clock)


def _draw_naive(alt: Any, pairs: pd.DataFrame, naive: pd.DataFrame, clock: float) -> Any:
    """Draw every naive pair as a tick and the two means as points, one line per number of chips."""
    ordered = naive.sort_values(["chip_count", "throughput_ratio"])
    ticks = [{"chips": row.chip_count, "ratio": round(row.throughput_ratio, 4)} for row in ordered.itertuples()]
    ticks = list({tuple(tick.items()): tick for tick in ticks}.values())
    means = [
        {"chips": chips, "ratio": round(compute_mean(ratios), 4), "mean": name}
        for name, frame in ((NAIVE, naive), (MATCHED, pairs))
        for chips, ratios in frame.groupby("chip_count")["throughput_ratio"]
    ]
    title = "Throughput of Bow over Classic, log scale"
    x = make_log_axis(alt, "X", "ratio", title, [0.1, 0.2, 0.5, 1, 2, 5], padding=8)
    y = alt.Y("chips:O", title="Chips")
    colors = (PALETTE.ink["mark"], PALETTE.series[1])
    color, shape = (
        channel("mean:N", title="Geometric mean", scale=make_scale(alt, (MATCHED, NAIVE), values))
        for channel, values in ((alt.Color, colors), (alt.Shape, ("circle", "diamond")))
    )
    base = alt.Chart(make_data(alt, ticks)).encode(x=x, y=y)
    points = alt.Chart(make_data(alt, means)).mark_point(filled=True, size=130, opacity=1)
    points = points.encode(x=x, y=y, color=color, shape=shape, tooltip=make_tooltips(alt, "chips", "mean", "ratio"))
    layers = (draw_rule(alt, clock, x), base.mark_tick(thickness=1, opacity=0.45, color=colors[1], size=16), points)
    return alt.layer(*layers).properties(width=WIDTH, height=alt.Step(26))


ANALYSIS = Analysis(
    "generations",
    "How much faster is Bow than the Classic machines?",
    ("generations", "generations_naive"),
    summarise,
    build_chart,
)
