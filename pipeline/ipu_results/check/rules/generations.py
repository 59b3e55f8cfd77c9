"""The same row on two generations of machine: same test, batch, precision and number of chips."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, rounded, told

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


def generation_pairs(data: Dataset) -> pd.DataFrame:
    """Each row beside the same row on the machine of the generation before; the columns of that one end in `_before`.

    The dataset is part of what must agree, since another dataset is another test; the SDK is not, since a generation
    comes with its own. Unknown batches and chip counts match nothing. Of several rows before, the fastest counts.
    """
    rows = data.published[["result_id", "platform", "family", "batch_size", "chip_count", *FIGURES]]
    rank = rows["family"].map({family: rank for rank, family in enumerate(GENERATIONS)}).astype("float64")
    rows = rows.assign(rank=rank, key=data.groups(*SAME_ROW))
    rows = rows[rows[["rank", "batch_size", "chip_count"]].notna().all(axis=1)]
    before = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(["key", "rank"])
    before = before[["key", "rank", "platform", *FIGURES]].assign(rank=before["rank"] + 1)
    return rows.merge(before, on=["key", "rank"], suffixes=("", "_before"))


def r06(data: Dataset) -> pd.DataFrame:
    """The newer machine is slower, or answers later, than the one before it."""
    pairs = data.once(generation_pairs)
    slower = pairs[pairs["throughput"] < pairs["throughput_before"]]
    slower = slower.assign(ratio=rounded(slower["throughput"] / slower["throughput_before"]))
    later = pairs[pairs["latency_ms"] > pairs["latency_ms_before"]]
    later = later.assign(ratio=rounded(later["latency_ms"] / later["latency_ms_before"]))
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
            findings("R06", "warn", slower, "throughput", told(throughput, slower)),
            findings("R06", "warn", later, "latency_ms", told(latency, later)),
        ],
        ignore_index=True,
    )


def r07(data: Dataset) -> pd.DataFrame:
    """Throughput over that of the generation before lies outside what the machines differ by (clock ratio 1.39)."""
    pairs = data.once(generation_pairs)
    ratio = pairs["throughput"] / pairs["throughput_before"]
    ends = pairs[["family"]].merge(EXPECTED, on="family", how="left")
    low, high = ends["low"], ends["high"]
    rows = pairs.assign(ratio=ratio, low=low, high=high)[(ratio < low) | (ratio > high)]
    rows = rows.assign(ratio=rounded(rows["ratio"]))
    template = (
        "{ratio} times the throughput of the generation before, expected {low} to {high}: {throughput} items/s on "
        "{platform}, {throughput_before} on {platform_before}"
    )
    return findings("R07", "info", rows, "throughput", told(template, rows))
