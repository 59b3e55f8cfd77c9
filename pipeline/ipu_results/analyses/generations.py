"""Bow over Classic on matched rows, and what the naive join would say."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import finished, titled
from ipu_results.analyses.strip import WIDTH, rule, strip
from ipu_results.analyses.words import label, listed, mean, spread

SAME = ("same_test", "same_framework", "same_precision", "same_batch")
DIAMOND = {"filled": True, "shape": "diamond", "size": 130, "opacity": 1}


def told(frames: Frames) -> str:
    pairs, naive = frames["generations"], _clean(frames["generations_naive"])
    parts = (_matched_means(pairs), _falling(pairs), _released(pairs), _naive(naive))
    return " ".join(filter(None, (*parts, _without_items(pairs, naive), _other_releases(naive))))


def _matched_means(pairs: pd.DataFrame) -> str:
    groups = pairs.groupby("chip_count")["throughput_ratio"]
    by_chips = [f"{mean(of):.2f} on {chips} chips ({spread(of)})" for chips, of in groups]
    return (
        "With test, framework, precision, batch, chips and items equal and nearly the same SDK, the geometric mean of "
        f"Bow's throughput over Classic's is {listed(by_chips)}; the clocks' ratio is {pairs['clock_ratio'].max():.2f}."
    )


def _released(pairs: pd.DataFrame) -> str:
    bow, classic = (listed(sorted(pairs[f"{side}_sdk_version"].unique())) for side in ("bow", "classic"))
    tasks = listed(sorted(pairs["task"].unique()))
    return f"All {len(pairs)} pairs are of {tasks}, Bow with {bow} and Classic with {classic}."


def _clean(naive: pd.DataFrame) -> pd.DataFrame:
    return naive[naive["errors"] == 0]


def _falling(pairs: pd.DataFrame) -> str:
    """What the means say where they fall with the number of chips."""
    counts, means = zip(
        *((chips, mean(of)) for chips, of in pairs.groupby("chip_count")["throughput_ratio"]), strict=True
    )
    if list(means) != sorted(means, reverse=True):
        return ""
    few = (pairs["chip_count"] == counts[-1]).sum()
    return (
        f"The fewer chips, the nearer a buyer came to what the clock promised; {few} pairs are few to say so of "
        f"{counts[-1]} chips, and the rows do not tell why."
    )


def _naive(naive: pd.DataFrame) -> str:
    ratios = naive["throughput_ratio"]
    means = {chips: mean(of) for chips, of in naive.groupby("chip_count")["throughput_ratio"]}
    said = listed([f"{found:.2f} on {chips}" for chips, found in means.items()])
    return (
        f"Joined on task, model and chips alone there are {len(naive)} pairs, from {ratios.min():.2f} to "
        f"{ratios.max():.2f}, with means of {said} chips: those compare sequence lengths, frameworks and batches "
        "rather than machines."
    )


def _without_items(pairs: pd.DataFrame, naive: pd.DataFrame) -> str:
    """What the demand for known items leaves out."""
    found = naive[naive[list(SAME)].all(axis=1) & naive["near_sdk"] & ~naive["same_item"]]
    if found.empty:
        return ""
    chips = found["chip_count"].iloc[0]
    among = pd.concat([pairs[pairs["chip_count"] == chips], found[found["chip_count"] == chips]])
    return (
        f"Left out for want of a source that says what its items are: {listed(sorted(found['model'].unique()))}, at "
        f"{listed([f'{ratio:.2f}' for ratio in found['throughput_ratio']])}; with it the mean on {chips} chips would "
        f"be {mean(among['throughput_ratio']):.2f}."
    )


def _other_releases(naive: pd.DataFrame) -> str:
    agree = naive[[*SAME, "same_item"]].all(axis=1)
    inference = naive[agree & (naive["task"] == "inference") & ~naive["near_sdk"]]
    timed = inference["latency_ratio"].dropna()
    near = (naive[agree & naive["near_sdk"]]["task"] == "inference").sum()
    return (
        f"{near or 'No'} inference pairs have nearly the same SDK: {len(inference)} that agree in test, "
        f"framework, precision, batch and items give "
        f"{mean(inference['throughput_ratio']):.2f} times the throughput and, the {len(timed)} with as many batches in "
        f"flight, {mean(timed):.2f} times the latency, the newer software's part in it unknown."
    )


def chart(alt: Any, frames: Frames) -> Any:
    pairs, naive = frames["generations"], frames["generations_naive"]
    clock = pairs["clock_ratio"].max()
    return finished(
        alt.vconcat(_matched(alt, pairs, clock), _joined(alt, pairs, naive, clock), spacing=30)
        .resolve_scale(color="independent", shape="independent")
        .properties(
            title=titled(
                alt,
                "Bow over Classic: throughput of matched rows, and of a naive join",
                f"Dashed: the clocks' ratio, {clock:.2f}. Published rows without error flags, no MLPerf",
            )
        )
    )


def _matched(alt: Any, pairs: pd.DataFrame, clock: float) -> Any:
    ordered = pairs.sort_values(["chip_count", "throughput_ratio", "bow_result_id"])
    records = [
        {
            "label": label(row, "model", "variant", "framework", "bow_platform"),
            "ratio": round(row["throughput_ratio"], 4),
            "series": str(row["chip_count"]),
            "bow": row["bow_throughput"],
            "classic": row["classic_throughput"],
            "batch": row["batch_size"],
            "crossed": False,
        }
        for row in ordered.to_dict("records")
    ]
    scale, axis = alt.Scale(zero=False, nice=True), alt.Axis(format=".2f", tickCount=6)
    x = alt.X("ratio:Q", title="Throughput of Bow over Classic, matched rows", scale=scale, axis=axis)
    return strip(alt, records, x, "Chips", list(dict.fromkeys(record["series"] for record in records)), clock)


def _joined(alt: Any, pairs: pd.DataFrame, naive: pd.DataFrame, clock: float) -> Any:
    """Every naive pair as a tick, the two means as diamonds, one line per number of chips."""
    clean = _clean(naive).sort_values(["chip_count", "throughput_ratio"])
    ticks = [{"chips": row.chip_count, "ratio": round(row.throughput_ratio, 4)} for row in clean.itertuples()]
    ticks = list({tuple(tick.items()): tick for tick in ticks}.values())
    means = [
        {"chips": chips, "ratio": round(mean(of), 4), "mean": said}
        for said, frame in (("naive join", clean), ("matched rows", pairs))
        for chips, of in frame.groupby("chip_count")["throughput_ratio"]
    ]
    axis = alt.Axis(values=[0.1, 0.2, 0.5, 1, 2, 5], format="~g")
    x = alt.X(
        "ratio:Q",
        title="Throughput of Bow over Classic, log scale",
        scale=alt.Scale(type="log", nice=False, padding=8),
        axis=axis,
    )
    y = alt.Y("chips:O", title="Chips")
    colors = alt.Scale(domain=["matched rows", "naive join"], range=["#000000", "#D55E00"])
    shapes = alt.Scale(domain=["matched rows", "naive join"], range=["circle", "diamond"])
    naive_ticks = alt.Chart(alt.Data(values=ticks)).mark_tick(thickness=1, opacity=0.45, color="#D55E00", size=16)
    points = (
        alt.Chart(alt.Data(values=means))
        .mark_point(**DIAMOND)
        .encode(
            x=x,
            y=y,
            color=alt.Color("mean:N", title="Geometric mean", scale=colors),
            shape=alt.Shape("mean:N", title="Geometric mean", scale=shapes),
            tooltip=[alt.Tooltip("mean:N"), alt.Tooltip("ratio:Q")],
        )
    )
    layers = (rule(alt, clock, x), naive_ticks.encode(x=x, y=y), points)
    return alt.layer(*layers).properties(width=WIDTH, height=alt.Step(26))


ANALYSIS = Analysis(
    "generations",
    "How much faster is Bow than the Classic machines?",
    ("generations", "generations_naive"),
    told,
    chart,
)
