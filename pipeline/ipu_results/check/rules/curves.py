"""Check curves over the batch size: rows that differ in nothing else. Latency and throughput should both rise."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.depth import flag_depth_against_siblings
from ipu_results.check.rules.findings import build_flags, fill_template, round_figures
from ipu_results.check.rules.little import find_doubtful_latencies

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
    "conditions",
)
LATENCY_TOLERANCE = 0.025
MAX_THROUGHPUT_FALL = 0.05
MAX_DEPTH_CHANGE = 1.5


def join_previous_batch(data: Dataset, column: str, excluded: pd.Series | None = None) -> pd.DataFrame:
    """Return the rows with a batch and `column`, joined to the next smaller batch of their curve.

    Adds `previous_batch` and `previous`, the lowest figure printed there. Rows at the smallest batch are left out.
    `excluded` marks rows of `published` to leave out of the curves.
    """
    rows = data.published[["result_id", "batch_size", column]].assign(curve=data.groups(*CURVE))
    rows = rows if excluded is None else rows[~excluded]
    rows = rows[rows["batch_size"].notna() & rows[column].notna()].sort_values(["curve", "batch_size", column])
    points = rows.drop_duplicates(["curve", "batch_size"])
    before = points.shift().where(points["curve"] == points["curve"].shift())
    points = points.assign(previous_batch=before["batch_size"], previous=before[column])
    first = (~rows.duplicated(["curve", "batch_size"])).to_numpy().cumsum() - 1
    rows = rows.assign(**{name: points[name].to_numpy()[first] for name in ("previous_batch", "previous")})
    return rows[rows["previous_batch"].notna()]


def flag_falling_latency(data: Dataset) -> pd.DataFrame:
    """Flag a latency that falls as the batch grows: a larger batch takes longer.

    Latencies of an item, and those that R01 flags, are excluded. A fall within LATENCY_TOLERANCE is what two runs of
    one program differ by, and one within the printed deviation what its calls differ by, so it is only a warning.
    """
    rows = join_previous_batch(data, "latency_ms", find_doubtful_latencies(data))
    rows = rows[rows["latency_ms"] < rows["previous"]]
    deviation = data.published["latency_std_ms"].reindex(rows.index).fillna(0)
    sure = rows["latency_ms"] < np.minimum((1 - LATENCY_TOLERANCE) * rows["previous"], rows["previous"] - deviation)
    template = "latency falls as the batch grows: {latency_ms} ms at batch {batch_size}, {previous} at {previous_batch}"
    return build_flags("R02", np.where(sure, "error", "warn"), rows, "latency_ms", fill_template(template, rows))


def flag_falling_throughput(data: Dataset) -> pd.DataFrame:
    """Flag a throughput that falls by more than MAX_THROUGHPUT_FALL as the batch grows."""
    rows = join_previous_batch(data, "throughput")
    rows = rows[rows["throughput"] < (1 - MAX_THROUGHPUT_FALL) * rows["previous"]]
    rows = rows.assign(fall=round_figures(100 * (1 - rows["throughput"] / rows["previous"])))
    template = (
        "throughput falls by {fall} % as the batch grows: {throughput} items/s at batch {batch_size}, "
        "{previous} at {previous_batch}"
    )
    return build_flags("R03", "warn", rows, "throughput", fill_template(template, rows))


def flag_depth_jump(data: Dataset) -> pd.DataFrame:
    """Flag a jump of the batches in flight along a curve: pipeline depth or way of timing is not the same.

    Latencies of an item are excluded, as are rows that R01 or R24 flags: after such a row the next one is normal.
    """
    unlike = data.compute_once(flag_depth_against_siblings)["result_id"]
    excluded = find_doubtful_latencies(data) | data.published["result_id"].isin(unlike)
    rows = join_previous_batch(data, "in_flight", excluded)
    jump = rows["in_flight"] / rows["previous"]
    rows = rows[(jump > MAX_DEPTH_CHANGE) | (jump < 1 / MAX_DEPTH_CHANGE)]
    rows = rows.assign(in_flight=round_figures(rows["in_flight"]), previous=round_figures(rows["previous"]))
    template = "{in_flight} batches in flight at batch {batch_size}, {previous} at {previous_batch}"
    return build_flags("R05", "warn", rows, "latency_ms", fill_template(template, rows))
