"""One test on one machine in two frameworks."""

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
from ipu_results.analyses.drawing import build_ratio_chart, make_log_axis
from ipu_results.ground.charts import apply_theme, make_title

TEST = ("model", "variant", "platform")


def summarise(frames: Frames) -> str:
    """Describe the mean ratio of each two frameworks, what else differs, and what the pairs cover."""
    clean = select_clean(frames["framework_effect"])
    same, other = clean[clean["same_network"]], clean[~clean["same_network"]]
    means = [
        f"{_describe_ratio(rows)} for {framework} over {base} in {task}"
        for (task, framework, base), rows in same.groupby(["task", "framework", "base_framework"])
    ]
    return join_paragraphs(
        [
            f"The mean throughput ratio is {join_words(means)}.",
        ],
        [
            f"These are geometric means over {len(same)} pairs of rows that differ in the framework, with test, "
            "machine, SDK, precision and batch size equal.",
            *_compare_depths(same),
        ],
        [
            _describe_other_networks(other),
            f"The pairs cover {join_words(sorted(same['model'].unique()))} on "
            f"{join_words(sorted(same['platform'].unique()))}.",
            "The page prints most models in one framework, and a vendor tunes the programs of each framework "
            "separately. So this compares programs as shipped, not frameworks as such.",
        ],
    )


def _describe_ratio(rows: pd.DataFrame) -> str:
    return f"{compute_mean(rows['throughput_ratio']):.2f} ({describe_range(rows['throughput_ratio'])})"


def _compare_depths(same: pd.DataFrame) -> list[str]:
    """Describe each two frameworks whose programs keep different numbers of batches in flight."""
    known = same[same[["batches_in_flight", "base_batches_in_flight"]].notna().all(axis=1)]
    sentences = [
        _describe_depths(framework, base, rows)
        for (framework, base), rows in known.groupby(["framework", "base_framework"])
    ]
    if not sentences:
        return []
    source = "These numbers follow from throughput and latency, as no source prints them."
    return ["The programs differ in more than the framework.", *sentences, source]


def _describe_depths(framework: str, base: str, rows: pd.DataFrame) -> str:
    fewer = rows["base_batches_in_flight"] < rows["batches_in_flight"]
    parts = [
        f"{_describe_ratio(part)} where {base} keeps {comparison} batches in flight "
        f"({_describe_ends(part['base_batches_in_flight'])} against {_describe_ends(part['batches_in_flight'])})"
        for comparison, part in (("fewer", rows[fewer]), ("more", rows[~fewer]))
        if len(part)
    ]
    return f"{framework} over {base} is {join_words(parts)}."


def _describe_ends(depths: pd.Series) -> str:
    low, high = f"{depths.min():.1f}", f"{depths.max():.1f}"
    return low if low == high else f"{low} to {high}"


def _describe_other_networks(other: pd.DataFrame) -> str:
    """Describe the pairs that ran two networks under one name."""
    if other.empty:
        return ""
    columns = zip(other["network"], other["framework"], other["base_network"], other["base_framework"], strict=True)
    networks = sorted({f"{own} in {framework} and {base} in {base_in}" for own, framework, base, base_in in columns})
    models = join_words(sorted(other["model"].unique()))
    return f"Excluded is {models} at {_describe_ratio(other)}, because this name covers {join_words(networks)}."


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw each pair on one line; pairs of two networks under one name are crossed out."""
    clean = select_clean(frames["framework_effect"])
    clean = clean.assign(pair=clean["framework"] + " over " + clean["base_framework"])
    order = ["same_network", "pair", "model", "variant", "platform", "batch_size", "result_id"]
    records = [
        {
            "label": f"{join_cells(row, *TEST)}, SDK {row['sdk_version']}, batch {row['batch_size']:,}",
            "ratio": round(row["throughput_ratio"], 4),
            "series": row["pair"],
            "throughput": row["throughput"],
            "base": row["base_throughput"],
            "task": row["task"],
            "network": row["network"],
            "base_network": row["base_network"],
            "crossed": not row["same_network"],
            "result_id": row["result_id"],
        }
        for row in clean.sort_values(order, ascending=[False] + [True] * 6).to_dict("records")
    ]
    label, ticks = "Throughput over that of the other framework, log scale", [0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5]
    x = make_log_axis(alt, "X", "ratio", label, ticks, padding=12)
    title = make_title(
        alt,
        "One test, one machine, two frameworks",
        "Published rows equal in test, machine, SDK, precision and batch",
        "Crossed out: two different networks under one name (rule R20)",
    )
    chart = build_ratio_chart(alt, records, x, "Frameworks", sorted(clean["pair"].unique()), 1.0)
    return apply_theme(chart.properties(title=title))


ANALYSIS = Analysis(
    "framework_effect", "What does the framework cost on one machine?", ("framework_effect",), summarise, build_chart
)
