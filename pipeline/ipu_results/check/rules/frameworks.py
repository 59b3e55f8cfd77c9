"""Compare the same row under two frameworks: same network, machine, SDK, batch and precision."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template, round_figures
from ipu_results.check.rules.identity import flag_network_identity

MAX_FRAMEWORK_RATIO = 1.4
SAME_ROW = (
    *("document_id", "table_name", "task", "model", "variant", "dataset", "platform", "sdk_version", "batch_size"),
    *("precision", "compute_precision", "compiler", "item"),
)


def flag_framework_ratio(data: Dataset) -> pd.DataFrame:
    """Flag more than MAX_FRAMEWORK_RATIO times the throughput that another framework reaches in the same row.

    Rows whose name hides another network (R20) are not the same. Of several rows of a framework the fastest counts.
    """
    columns = ["result_id", "model", "framework", "throughput", "batch_size"]
    networks = data.compute_once(flag_network_identity)[["result_id", "suggested"]]
    rows = data.published[columns].assign(key=data.groups(*SAME_ROW)).merge(networks, how="left", validate="1:1")
    rows = rows.assign(network=rows["suggested"].fillna(rows["model"])).drop(columns=["model", "suggested"])
    rows = rows[rows[["framework", "throughput", "batch_size"]].notna().all(axis=1) & (rows["throughput"] > 0)]
    rows = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(
        ["key", "network", "framework"]
    )
    pairs = rows.merge(rows.drop(columns="batch_size"), on=["key", "network"], suffixes=("", "_other"))
    pairs = pairs[pairs["throughput"] > MAX_FRAMEWORK_RATIO * pairs["throughput_other"]]
    pairs = pairs.sort_values("throughput_other", ascending=False, kind="stable").drop_duplicates("result_id")
    pairs = pairs.assign(ratio=round_figures(pairs["throughput"] / pairs["throughput_other"]))
    template = (
        "{ratio} times the throughput of {framework_other} in the same row: {throughput} items/s with {framework}, "
        "{throughput_other} with {framework_other} at batch {batch_size}"
    )
    return build_flags("R26", "info", pairs, "throughput", fill_template(template, pairs))
