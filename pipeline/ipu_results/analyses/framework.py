"""One test on one machine in two frameworks."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import finished, titled
from ipu_results.analyses.strip import strip
from ipu_results.analyses.words import label, listed, mean, spread

TEST = ("model", "variant", "platform")


def told(frames: Frames) -> str:
    clean = _clean(frames["framework_effect"])
    same, other = clean[clean["same_network"]], clean[~clean["same_network"]]
    by_pair = [
        f"{new} over {base} in {task} {mean(of):.2f} ({spread(of)})"
        for (task, new, base), of in same.groupby(["task", "framework", "base_framework"])["throughput_ratio"]
    ]
    return " ".join(
        [
            f"With test, machine, SDK, precision and batch equal, {len(same)} pairs of rows differ in the framework; "
            f"geometric means of the throughputs' ratios are {listed(by_pair)}.",
            *_depths(same),
            _networks(other),
            f"The pairs cover {listed(sorted(same['model'].unique()))} on {listed(sorted(same['platform'].unique()))}; "
            "the page prints most models in one framework, and a vendor tunes the programs of each framework apart, "
            "so this is a comparison of programs as shipped, not of frameworks as such.",
        ]
    )


def _clean(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["errors"] == 0]


def _depths(same: pd.DataFrame) -> list[str]:
    """A sentence for each two frameworks whose programs keep unlike numbers of batches in flight."""
    known = same[same[["batches_in_flight", "base_batches_in_flight"]].notna().all(axis=1)]
    return [_depth(framework, base, of) for (framework, base), of in known.groupby(["framework", "base_framework"])]


def _depth(framework: str, base: str, rows: pd.DataFrame) -> str:
    fewer = rows["base_batches_in_flight"] < rows["batches_in_flight"]
    said = [
        f"{mean(of['throughput_ratio']):.2f} ({spread(of['throughput_ratio'])}) where {base} keeps {word} in flight "
        f"({_ends(of['base_batches_in_flight'])} batches against {_ends(of['batches_in_flight'])})"
        for word, of in (("fewer", rows[fewer]), ("more", rows[~fewer]))
        if len(of)
    ]
    return (
        f"But the programs differ in more than the framework: {framework} over {base} is {listed(said)}, by throughput "
        "and latency; how many a program keeps is printed nowhere."
    )


def _ends(depths: pd.Series) -> str:
    low, high = f"{depths.min():.1f}", f"{depths.max():.1f}"
    return low if low == high else f"{low} to {high}"


def _networks(other: pd.DataFrame) -> str:
    if other.empty:
        return ""
    ratios = other["throughput_ratio"]
    named = zip(other["network"], other["framework"], other["base_network"], other["base_framework"], strict=True)
    found = sorted({f"{mine} in {framework} and {theirs} in {base}" for mine, framework, theirs, base in named})
    return (
        f"Not among them is {listed(sorted(other['model'].unique()))} at {mean(ratios):.2f} ({spread(ratios)}): "
        f"{listed(found)} ran under that one name."
    )


def chart(alt: Any, frames: Frames) -> Any:
    clean = _clean(frames["framework_effect"])
    clean = clean.assign(pair=clean["framework"] + " over " + clean["base_framework"])
    order = ["same_network", "pair", "model", "variant", "platform", "batch_size", "result_id"]
    records = [
        {
            "label": f"{label(row, *TEST)}, SDK {row['sdk_version']}, batch {row['batch_size']:,}",
            "ratio": round(row["throughput_ratio"], 4),
            "series": row["pair"],
            "throughput": row["throughput"],
            "base": row["base_throughput"],
            "task": row["task"],
            "network": row["network"],
            "base_network": row["base_network"],
            "crossed": not row["same_network"],
        }
        for row in clean.sort_values(order, ascending=[False] + [True] * 6).to_dict("records")
    ]
    axis = alt.Axis(values=[0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5], format="~g")
    title = "Throughput over that of the other framework, log scale"
    x = alt.X("ratio:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=12), axis=axis)
    under = (
        "Published rows equal in test, machine, SDK, precision and batch",
        "Crossed out: two different networks under one name (rule R20)",
    )
    whole = strip(alt, records, x, "Frameworks", sorted(clean["pair"].unique()), 1.0)
    return finished(whole.properties(title=titled(alt, "One test, one machine, two frameworks", *under)))


ANALYSIS = Analysis(
    "framework_effect", "What does the framework cost on one machine?", ("framework_effect",), told, chart
)
