"""Compare the same work on machines of different size."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template, round_figures

MAX_GROWTH_PER_CHIP = 0.05
SAME_WORK = (
    "document_id",
    "table_name",
    "task",
    "model",
    "variant",
    "dataset",
    "framework",
    "precision",
    "compute_precision",
    "compiler",
    "chip",
)


def flag_superlinear_scaling(data: Dataset) -> pd.DataFrame:
    """Flag a throughput per chip that grows with the number of chips: sharing the work makes no chip faster.

    Only machines with the same chip are compared, and of each size only its fastest row, so that the points of a curve
    over the batch size are not taken for machines. SDK and batch may differ and are named in the message.
    """
    columns = ["result_id", "platform", "chip_count", "throughput", "batch_size", "sdk_version"]
    rows = data.published[columns].assign(work=data.groups(*SAME_WORK))
    rows = rows[rows["chip_count"].notna() & rows["throughput"].notna()]
    rows = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(["work", "chip_count"])
    rows = rows.sort_values(["work", "chip_count"], ignore_index=True)
    rows = rows.assign(per_chip=rows["throughput"] / rows["chip_count"])
    smaller = rows.shift().where(rows["work"] == rows["work"].shift())
    growth = rows["per_chip"] / smaller["per_chip"]
    rows = rows.join(smaller.add_suffix("_there"))[growth > 1 + MAX_GROWTH_PER_CHIP]
    return build_flags("R08", "warn", rows, "throughput", fill_template(TEMPLATE, _format_columns(rows)))


TEMPLATE = (
    "{percent} % of the throughput per chip of {platform_there}: {per_chip} items/s per chip{setup}, "
    "{per_chip_there} there{setup_there}"
)


def _format_columns(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "percent": round_figures(100 * rows["per_chip"] / rows["per_chip_there"]),
            "platform_there": rows["platform_there"],
            "per_chip": round_figures(rows["per_chip"]),
            "per_chip_there": round_figures(rows["per_chip_there"]),
            "setup": _setup(rows["batch_size"], rows["sdk_version"]),
            "setup_there": _setup(rows["batch_size_there"], rows["sdk_version_there"]),
        }
    )


def _setup(batch: pd.Series, sdk: pd.Series) -> list[str]:
    sizes = ("batch " + batch.astype("Int64").astype("string")).to_list()
    versions = ("SDK " + sdk.astype("string")).to_list()
    known = [[part for part in parts if part is not pd.NA] for parts in zip(sizes, versions, strict=True)]
    return [f" ({', '.join(parts)})" if parts else "" for parts in known]
