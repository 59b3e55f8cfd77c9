"""Compare a row with its table and with the text around it."""

from __future__ import annotations

import re

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template

TABLE = ("document_id", "table_name")
COMPARED = (*TABLE, "model", "variant", "platform")
VERSION = re.compile(r"(pre-?)?(?:sdk)?\s*(\d+(?:\.\d+)*)", re.IGNORECASE)
VERSION_PARTS = 4


def flag_section(data: Dataset) -> pd.DataFrame:
    """Flag a platform that is not the one that the section around the table is about."""
    rows = data.published[["result_id", "platform", "section"]]
    rows = rows[rows["section"].notna() & (rows["platform"] != rows["section"])]
    template = "{platform}, while the section around the table speaks of {section}"
    return build_flags("R11", "warn", rows, "platform", fill_template(template, rows))


def flag_older_sdk(data: Dataset) -> pd.DataFrame:
    """Flag an SDK that is older than the most common one of its table (the newest of several equally common ones).

    The vendor called the releases before 2.5 `Pre-SDK2.5`, so it counts as older than 2.5 and newer than any version
    below. A version without a number is skipped, since its age is unknown.
    """
    rows = data.published[["result_id", "sdk_version"]].assign(table=data.groups(*TABLE))
    keys = {text: _parse_version(text) for text in rows["sdk_version"].dropna().unique()}
    ranks = {key: rank for rank, key in enumerate(sorted({key for key in keys.values() if key}))}
    rank_of = {text: ranks[key] for text, key in keys.items() if key}
    rows = rows.assign(rank=rows["sdk_version"].map(rank_of).astype("float64")).dropna(subset="rank")
    sizes = rows.groupby(["table", "rank", "sdk_version"]).size().rename("count").reset_index()
    counts = sizes.groupby(["table", "rank"], as_index=False).agg({"count": "sum", "sdk_version": "first"})
    common = counts.sort_values(["table", "count", "rank"]).drop_duplicates("table", keep="last")
    rows = rows.merge(common[["table", "rank", "sdk_version"]], on="table", suffixes=("", "_common"))
    rows = rows[rows["rank"] < rows["rank_common"]]
    return build_flags(
        "R17",
        "info",
        rows,
        "sdk_version",
        fill_template("SDK {sdk_version}, older than {sdk_version_common}, the most common one of its table", rows),
    )


def _parse_version(text: str) -> tuple[float, ...] | None:
    """Parse a version for sorting: `2.4` equals `2.4.0`, and `Pre-SDK2.5` is just before 2.5."""
    match = VERSION.search(text)
    if not match:
        return None
    numbers = [float(part) for part in match.group(2).split(".")]
    if match.group(1):
        numbers[-1] -= 0.5
    return tuple([*numbers, *[0.0] * VERSION_PARTS][:VERSION_PARTS])


def flag_mixed_precision(data: Dataset) -> pd.DataFrame:
    """Flag rows of one model, variant and machine that were run at different precisions."""
    rows = data.published[["result_id", "precision"]].assign(compared=data.groups(*COMPARED))
    rows = rows[rows["precision"].notna()]
    kinds = rows.drop_duplicates(["compared", "precision"]).sort_values(["compared", "precision"])
    mixed = kinds[kinds["compared"].duplicated(keep=False)]
    listed = mixed.groupby("compared")["precision"].agg(" and ".join)
    rows = rows[rows["compared"].isin(listed.index)]
    rows = rows.assign(listed=rows["compared"].map(listed))
    template = "{precision} in a group of rows that mixes {listed}: same model, variant and platform"
    return build_flags("R18", "info", rows, "precision", fill_template(template, rows))
