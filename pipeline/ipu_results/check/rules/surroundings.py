"""A row against the table that it stands in and the text around it."""

from __future__ import annotations

import re

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, told

TABLE = ("document_id", "table_name")
COMPARED = (*TABLE, "model", "variant", "platform")
VERSION = re.compile(r"(pre-?)?(?:sdk)?\s*(\d+(?:\.\d+)*)", re.IGNORECASE)
VERSION_PARTS = 4


def r11(data: Dataset) -> pd.DataFrame:
    """The row's platform is not the one that the section around its table speaks of."""
    rows = data.published[["result_id", "platform", "section"]]
    rows = rows[rows["section"].notna() & (rows["platform"] != rows["section"])]
    template = "{platform}, while the section around the table speaks of {section}"
    return findings("R11", "warn", rows, "platform", told(template, rows))


def r17(data: Dataset) -> pd.DataFrame:
    """The row's SDK is older than the most common one of its table, the newest of several equally common.

    `Pre-SDK2.5` is what the vendor called the releases before 2.5, so it counts as older than 2.5 and newer than
    any version below. A version that holds no number is skipped: nothing tells how old it is.
    """
    rows = data.published[["result_id", "sdk_version"]].assign(table=data.groups(*TABLE))
    keys = {text: _version_key(text) for text in rows["sdk_version"].dropna().unique()}
    ranks = {key: rank for rank, key in enumerate(sorted({key for key in keys.values() if key}))}
    rank_of = {text: ranks[key] for text, key in keys.items() if key}
    rows = rows.assign(rank=rows["sdk_version"].map(rank_of).astype("float64")).dropna(subset="rank")
    sizes = rows.groupby(["table", "rank", "sdk_version"]).size().rename("count").reset_index()
    counts = sizes.groupby(["table", "rank"], as_index=False).agg({"count": "sum", "sdk_version": "first"})
    common = counts.sort_values(["table", "count", "rank"]).drop_duplicates("table", keep="last")
    rows = rows.merge(common[["table", "rank", "sdk_version"]], on="table", suffixes=("", "_common"))
    rows = rows[rows["rank"] < rows["rank_common"]]
    return findings(
        "R17",
        "info",
        rows,
        "sdk_version",
        told("SDK {sdk_version}, older than {sdk_version_common}, the most common one of its table", rows),
    )


def _version_key(text: str) -> tuple[float, ...] | None:
    """`2.4` equals `2.4.0`; `Pre-SDK2.5` stands just before 2.5."""
    found = VERSION.search(text)
    if not found:
        return None
    numbers = [float(part) for part in found.group(2).split(".")]
    if found.group(1):
        numbers[-1] -= 0.5
    return tuple([*numbers, *[0.0] * VERSION_PARTS][:VERSION_PARTS])


def r18(data: Dataset) -> pd.DataFrame:
    """Rows of one model, variant and machine that a reader compares were run at different precisions."""
    rows = data.published[["result_id", "precision"]].assign(compared=data.groups(*COMPARED))
    rows = rows[rows["precision"].notna()]
    kinds = rows.drop_duplicates(["compared", "precision"]).sort_values(["compared", "precision"])
    mixed = kinds[kinds["compared"].duplicated(keep=False)]
    listed = mixed.groupby("compared")["precision"].agg(" and ".join)
    rows = rows[rows["compared"].isin(listed.index)]
    rows = rows.assign(listed=rows["compared"].map(listed))
    template = "{precision} in a group of rows that mixes {listed}: same model, variant and platform"
    return findings("R18", "info", rows, "precision", told(template, rows))
