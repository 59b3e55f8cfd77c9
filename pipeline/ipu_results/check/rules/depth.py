"""Compare the batches in flight with what the public configuration behind a row lets expect."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.configurations import join_configurations
from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template, round_figures
from ipu_results.check.rules.little import find_doubtful_latencies, find_median_of_others

PER_BATCH = "per-batch"
MIN_SIBLINGS = 3
MAX_DEPTH_RATIO = 1.5
SEVERAL_IN_FLIGHT = 1.4
SAME_CONFIGURATION = (
    *("repository", "tag", "path", "benchmark", "latency_definition"),
    *("model", "variant", "platform", "framework", "sdk_version"),
)


def flag_depth_against_siblings(data: Dataset) -> pd.DataFrame:
    """Flag batches in flight that differ by more than MAX_DEPTH_RATIO times from rows of the same configuration.

    Siblings have the same command, variant, machine and way of timing, and differ in the batch. How many batches are in
    flight is a setting of the command, so a row unlike the median of MIN_SIBLINGS or more others did not run with the
    printed batch or with that setting. Only exact and likely matches count, and latencies of an item are excluded.
    """
    rows = join_configurations(
        data, "model", "variant", "platform", "framework", "sdk_version", "batch_size", "in_flight"
    )
    doubtful = data.published.loc[find_doubtful_latencies(data), "result_id"]
    rows = rows[(rows["in_flight"] > 0) & ~rows["result_id"].isin(doubtful)]
    rows = rows.assign(group=rows.groupby(list(SAME_CONFIGURATION), dropna=False, sort=False).ngroup())
    rows = rows.assign(
        others=rows.groupby("group")["group"].transform("size") - 1,
        usual=find_median_of_others(rows["in_flight"], rows["group"]),
    )
    ratio = rows["in_flight"] / rows["usual"]
    rows = rows[(rows["others"] >= MIN_SIBLINGS) & ((ratio > MAX_DEPTH_RATIO) | (ratio < 1 / MAX_DEPTH_RATIO))]
    rows = rows.assign(
        fitting=round_figures(rows["batch_size"] * rows["in_flight"] / rows["usual"]),
        in_flight=round_figures(rows["in_flight"]),
        usual=round_figures(rows["usual"]),
    )
    template = (
        "{in_flight} batches in flight at batch {batch_size}, {usual} in the median of {others} other rows of "
        "{benchmark} of {path}, {repository} {tag} ({match_confidence} match); "
        "a batch of about {fitting} would give as many"
    )
    return build_flags("R24", "warn", rows, "batch_size", fill_template(template, rows))


def flag_depth_against_basis(data: Dataset) -> pd.DataFrame:
    """Flag SEVERAL_IN_FLIGHT or more batches in flight where the configuration times one batch.

    The script times a batch from its first input to its last output and does not say how many others are under way. The
    figures say that there were some, so the latency is not that of a machine with one batch.
    """
    rows = data.published[["result_id", "throughput", "latency_ms", "latency_basis", "batch_size", "in_flight"]]
    rows = rows[rows["latency_basis"].eq(PER_BATCH).fillna(False) & (rows["in_flight"] >= SEVERAL_IN_FLIGHT)]
    rows = rows.assign(in_flight=round_figures(rows["in_flight"]))
    template = (
        "{in_flight} batches in flight: throughput {throughput} × latency {latency_ms} ms / batch {batch_size}; the "
        "configuration times one batch and does not say how many are in flight"
    )
    return build_flags("R25", "info", rows, "latency_basis", fill_template(template, rows))
