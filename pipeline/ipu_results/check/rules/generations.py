"""Compare the same row on two generations of machine: same test, batch, precision and number of chips."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template, round_figures

GENERATIONS = ("Mk1", "Classic", "Bow")
EXPECTED = pd.DataFrame({"family": ["Bow"], "low": [1.15], "high": [1.53]})
SAME_ROW = (
    "document_id",
    "task",
    "model",
    "variant",
    "dataset",
    "framework",
    "batch_size",
    "precision",
    "chip_count",
)
FIGURES = ("throughput", "latency_ms")


def join_generations(data: Dataset) -> pd.DataFrame:
    """Join each row to the same row on the previous generation, whose columns end in `_before`.

    The dataset must agree, since another dataset is another test. The SDK need not, since a generation comes with its
    own. Unknown batches and chip counts match nothing. Of several rows of the previous generation the fastest counts.
    """
    rows = data.published[["result_id", "platform", "family", "batch_size", "chip_count", *FIGURES]]
    rank = rows["family"].map({family: rank for rank, family in enumerate(GENERATIONS)}).astype("float64")
    rows = rows.assign(rank=rank, key=data.groups(*SAME_ROW))
    rows = rows[rows[["rank", "batch_size", "chip_count"]].notna().all(axis=1)]
    before = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(["key", "rank"])
    before = before[["key", "rank", "platform", *FIGURES]].assign(rank=before["rank"] + 1)
    return rows.merge(before, on=["key", "rank"], suffixes=("", "_before"))


def flag_slower_generation(data: Dataset) -> pd.DataFrame:
    """Flag a machine that is slower, or has a higher latency, than the generation before it."""
    pairs = data.compute_once(join_generations)
    slower = pairs[pairs["throughput"] < pairs["throughput_before"]]
    slower = slower.assign(ratio=round_figures(slower["throughput"] / slower["throughput_before"]))
    later = pairs[pairs["latency_ms"] > pairs["latency_ms_before"]]
    later = later.assign(ratio=round_figures(later["latency_ms"] / later["latency_ms_before"]))
    throughput = (
        "slower than the generation before: {throughput} items/s on {platform}, {throughput_before} on "
        "{platform_before} at the same batch {batch_size} ({ratio} times)"
    )
    latency = (
        "later than the generation before: {latency_ms} ms on {platform}, {latency_ms_before} on {platform_before} "
        "at the same batch {batch_size} ({ratio} times)"
    )
    return pd.concat(
        [
            build_flags("R06", "warn", slower, "throughput", fill_template(throughput, slower)),
            build_flags("R06", "warn", later, "latency_ms", fill_template(latency, later)),
        ],
        ignore_index=True,
    )


def flag_generation_ratio(data: Dataset) -> pd.DataFrame:
    """Flag a throughput ratio to the previous generation outside the expected range (clock ratio 1.39)."""
    pairs = data.compute_once(join_generations)
    ratio = pairs["throughput"] / pairs["throughput_before"]
    ends = pairs[["family"]].merge(EXPECTED, on="family", how="left")
    low, high = ends["low"], ends["high"]
    rows = pairs.assign(ratio=ratio, low=low, high=high)[(ratio < low) | (ratio > high)]
    rows = rows.assign(ratio=round_figures(rows["ratio"]))
    template = (
        "{ratio} times the throughput of the generation before, expected {low} to {high}: {throughput} items/s on "
        "{platform}, {throughput_before} on {platform_before}"
    )
    return build_flags("R07", "info", rows, "throughput", fill_template(template, rows))
