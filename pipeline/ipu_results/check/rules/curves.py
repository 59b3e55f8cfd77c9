"""Curves over the batch size: rows that differ in nothing else. Latency and throughput should both rise along one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, rounded, told

CURVE = (
    "document_id",
    "table_name",
    "task",
    "model",
    "variant",
    "dataset",
    "platform",
    "framework",
    "compiler",
    "sdk_version",
    "precision",
    "compute_precision",
)
LATENCY_REPEATS_WITHIN = 0.025
THROUGHPUT_MAY_FALL_BY = 0.05
DEPTH_MAY_CHANGE_BY = 1.5


def along_curves(data: Dataset, column: str) -> pd.DataFrame:
    """Rows that have a batch and `column`, with those of the next smaller batch of the curve.

    Adds `previous_batch` and `previous`, the lowest figure printed there; rows at the smallest batch are left out.
    """
    rows = data.published[["result_id", "batch_size", column]].assign(curve=data.groups(*CURVE))
    rows = rows[rows["batch_size"].notna() & rows[column].notna()].sort_values(["curve", "batch_size", column])
    points = rows.drop_duplicates(["curve", "batch_size"])
    before = points.shift().where(points["curve"] == points["curve"].shift())
    points = points.assign(previous_batch=before["batch_size"], previous=before[column])
    first = (~rows.duplicated(["curve", "batch_size"])).to_numpy().cumsum() - 1
    rows = rows.assign(**{name: points[name].to_numpy()[first] for name in ("previous_batch", "previous")})
    return rows[rows["previous_batch"].notna()]


def r02(data: Dataset) -> pd.DataFrame:
    """Latency falls as the batch grows: a larger batch takes longer, unless the figure is not per batch.

    A fall within LATENCY_REPEATS_WITHIN is what two runs of one program differ by, and only a warning.
    """
    rows = along_curves(data, "latency_ms")
    rows = rows[rows["latency_ms"] < rows["previous"]]
    sure = rows["latency_ms"] < (1 - LATENCY_REPEATS_WITHIN) * rows["previous"]
    template = "latency falls as the batch grows: {latency_ms} ms at batch {batch_size}, {previous} at {previous_batch}"
    return findings("R02", np.where(sure, "error", "warn"), rows, "latency_ms", told(template, rows))


def r03(data: Dataset) -> pd.DataFrame:
    """Throughput falls by more than THROUGHPUT_MAY_FALL_BY as the batch grows."""
    rows = along_curves(data, "throughput")
    rows = rows[rows["throughput"] < (1 - THROUGHPUT_MAY_FALL_BY) * rows["previous"]]
    rows = rows.assign(fall=rounded(100 * (1 - rows["throughput"] / rows["previous"])))
    template = (
        "throughput falls by {fall} % as the batch grows: {throughput} items/s at batch {batch_size}, "
        "{previous} at {previous_batch}"
    )
    return findings("R03", "warn", rows, "throughput", told(template, rows))


def r05(data: Dataset) -> pd.DataFrame:
    """Batches in flight jump along the curve: the rows were not run with one pipeline depth or one way of timing."""
    rows = along_curves(data, "in_flight")
    jump = rows["in_flight"] / rows["previous"]
    rows = rows[(jump > DEPTH_MAY_CHANGE_BY) | (jump < 1 / DEPTH_MAY_CHANGE_BY)]
    rows = rows.assign(in_flight=rounded(rows["in_flight"]), previous=rounded(rows["previous"]))
    template = "{in_flight} batches in flight at batch {batch_size}, {previous} at {previous_batch}"
    return findings("R05", "warn", rows, "latency_ms", told(template, rows))
