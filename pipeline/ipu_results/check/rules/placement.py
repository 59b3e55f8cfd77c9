"""Compare a row with what surrounds it: its table and text, other frameworks, and public
configurations.

A weak match with a configuration, the nearest known one, proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import (
    Dataset,
    build_flags,
    fill_template,
    find_positions,
    map_texts,
    number_groups,
)
from ipu_results.check.rules.identity import find_networks

MAX_FRAMEWORK_RATIO = 1.4
SAME_ROW = """
    document_id table_name task model_printed variant dataset_printed platform sdk_version batch_size
    precision_printed item
""".split()


def flag_framework_ratio(data: Dataset) -> pd.DataFrame:
    """Flag more than MAX_FRAMEWORK_RATIO times the throughput that another framework reaches in the
    same row.

    Rows whose name hides another network (R20) are not the same. Of several rows of a framework the
    fastest counts.
    """
    rows = data.published[["result_id", "framework", "throughput", "batch_size"]]
    same = number_groups(data.groups(*SAME_ROW), data.compute_once(find_networks)["model"])
    rows = rows.assign(same=same)[
        (rows["throughput"] > 0) & rows["batch_size"].notna() & rows["framework"].notna()
    ]
    rows = rows[rows["same"].duplicated(keep=False)]
    rows = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(
        ["same", "framework"]
    )
    pairs = rows.merge(rows.drop(columns="batch_size"), on="same", suffixes=("", "_other"))
    pairs = pairs[pairs["throughput"] > MAX_FRAMEWORK_RATIO * pairs["throughput_other"]]
    pairs = pairs.sort_values("throughput_other", ascending=False, kind="stable").drop_duplicates(
        "result_id"
    )
    pairs = pairs.assign(ratio=pairs["throughput"] / pairs["throughput_other"])
    template = (
        "{ratio:3} times the throughput of {framework_other} in the same row: {throughput} items/s"
        " with {framework}, {throughput_other} with {framework_other} at batch {batch_size}"
    )
    return build_flags("R26", "info", pairs, "throughput", template)


EXACT = "exact"
NEAR = ("exact", "likely")
FACTORS = ("micro_batch_size", "replicas", "gradient_accumulation")
COMMAND = "{benchmark} of {path}, {repository} {tag} ({match_confidence} match)"


def join_configurations(data: Dataset, *columns: str) -> pd.DataFrame:
    """Return published rows with `columns`, joined to their configuration if it is an exact or a
    likely match.
    """
    known = data.compute_once(_list_near_matches)
    rows = data.published.loc[known.index, ["result_id", *columns]]
    return rows.merge(known, left_index=True, right_index=True, suffixes=("", "_configured"))


def _list_near_matches(data: Dataset) -> pd.DataFrame:
    """Return the exact and likely matches by the position of their row in `published`."""
    known = data.configurations
    known = known[
        known["match_confidence"].isin(NEAR) & known["result_id"].notna()
    ].drop_duplicates("result_id")
    rows = find_positions(known["result_id"], data.published["result_id"])
    return known.drop(columns="result_id").set_axis(rows)[rows >= 0].sort_index()


def flag_batch_against_configuration(data: Dataset) -> pd.DataFrame:
    """Flag a printed batch that is not the configuration's: micro-batch × replicas × accumulation.

    Only exact and likely matches count. A likely match differs from the row in one point, which may
    be the batch. So it is only information, without a suggestion, and the message has the note of
    the match.
    """
    rows = join_configurations(data, "batch_size")
    total = rows["global_batch_from_config"].astype("float64")
    rows = rows.assign(total=total)[
        total.notna() & rows["batch_size"].notna() & (total != rows["batch_size"])
    ]
    factors = zip(*(rows[name] for name in FACTORS), strict=True)
    known = [[str(factor) for factor in of_row if pd.notna(factor)] for of_row in factors]
    # If only the batch itself is known, it is not written as a product.
    made = [f" = {' × '.join(parts)}" if len(parts) > 1 else "" for parts in known]
    rows = rows.assign(made=made, remark=_format_notes(rows))
    template = f"prints batch {{batch_size}}; {COMMAND} gives {{total}}{{made}}{{remark}}"
    suggested = _suggest(rows, fill_template("{total}", rows))
    return build_flags("R13", _rate(rows), rows, "batch_size", template, suggested=suggested)


def flag_unnamed_work(data: Dataset) -> pd.DataFrame:
    """Flag a time to result with what the configuration times: no page says which work its result
    is.

    A time to train ends at a quality that the benchmark sets. A time to result ends where the
    script does, so two documents may print times of different work under one name. Only exact and
    likely matches count.
    """
    rows = join_configurations(data, "time_to_result_s")
    rows = rows[rows["time_to_result_s"].notna() & rows["note"].notna()]
    template = f"the page does not say what was done in {{time_to_result_s}} s; {COMMAND}: {{note}}"
    return build_flags("R28", "info", rows, "time_to_result_s", template)


STARTS_UP = r"(?i)\b(?:1st epoch|epoch 1 of|step 0)\b"


def flag_start_up(data: Dataset) -> pd.DataFrame:
    """Flag the rate of a first epoch or step: it includes start-up, such as compilation."""
    rows = data.published[["result_id", "throughput", "conditions"]]
    rows = rows[
        rows["throughput"].notna()
        & rows["conditions"].str.contains(STARTS_UP, na=False, regex=True)
    ]
    template = (
        "the rate of {conditions} includes start-up; it is not to be compared with a steady rate"
    )
    return build_flags("R36", "warn", rows, "throughput", template)


def _rate(rows: pd.DataFrame) -> Any:
    """Rate a contradiction: a warning if the match is exact."""
    return np.where(rows["match_confidence"] == EXACT, "warn", "info")


def _suggest(rows: pd.DataFrame, values: Iterable[str | None]) -> list[str | None]:
    """Suggest the configuration's values where the match is exact."""
    exact = (rows["match_confidence"] == EXACT).to_list()
    return [value if is_exact else None for value, is_exact in zip(values, exact, strict=True)]


def _format_notes(rows: pd.DataFrame) -> list[str]:
    return [f"; {note}" if pd.notna(note) else "" for note in rows["note"]]


def flag_data_against_configuration(data: Dataset) -> pd.DataFrame:
    """Flag a printed dataset that is not what the public command feeds.

    Only exact and likely matches count.
    """
    rows = join_configurations(data, "dataset_printed")
    rows = rows[rows["dataset_printed"].notna() & rows["dataset_agrees"].eq(False).fillna(False)]
    template = f"prints {{dataset_printed}}; {COMMAND} feeds: {{data_fed}}"
    return build_flags("R15", "info", rows, "dataset_printed", template, suggested="{data_fed}")


def flag_precision_against_configuration(data: Dataset) -> pd.DataFrame:
    """Flag a printed precision that the configuration's settings do not fit.

    Only exact and likely matches count, and a likely one is only information. The suggestion is the
    one precision that fits all settings. Settings that leave the precision open, such as 8-bit
    input, say nothing.
    """
    rows = join_configurations(data, "precision_printed", "activation_bits")
    fitting = {
        text: _find_fitting(data, text) for text in rows["precision_flags"].dropna().unique()
    }
    rows = rows[rows["activation_bits"].notna() & rows["precision_flags"].notna()]
    fits = [fitting[text] for text in rows["precision_flags"]]
    contradicts = [
        bool(known) and value not in known
        for value, known in zip(rows["precision_printed"], fits, strict=True)
    ]
    rows = rows.assign(
        remark=_format_notes(rows), only=[known[0] if len(known) == 1 else None for known in fits]
    )
    rows = rows[np.array(contradicts, dtype=bool)]
    template = f"prints {{precision_printed}}; {COMMAND} sets: {{precision_flags}}{{remark}}"
    return build_flags(
        "R23",
        _rate(rows),
        rows,
        "precision_printed",
        template,
        suggested=_suggest(rows, rows["only"]),
    )


def _find_fitting(data: Dataset, text: str) -> list[str]:
    """Return the printed precisions that fit every setting of a configuration; none if all leave it
    open.
    """
    known = [
        set(data.vocabulary.precision_settings.get(setting, ())) for setting in text.split("; ")
    ]
    return sorted(set.intersection(*filter(None, known))) if any(known) else []


TABLE = ("document_id", "table_name")
COMPARED = (*TABLE, "model_printed", "variant", "platform")
VERSION = re.compile(r"(pre-?)?(?:sdk)?\s*(\d+(?:\.\d+)*)", re.IGNORECASE)
VERSION_PARTS = 4


def flag_section(data: Dataset) -> pd.DataFrame:
    """Flag a platform that is not the one that the section around the table is about."""
    rows = data.published[["result_id", "platform", "section"]]
    rows = rows[rows["section"].notna() & (rows["platform"] != rows["section"])]
    template = "{platform}, while the section around the table speaks of {section}"
    return build_flags("R11", "warn", rows, "platform", template)


def flag_older_sdk(data: Dataset) -> pd.DataFrame:
    """Flag an SDK that is older than the most common one of its table (the newest of several
    equally common ones).

    The vendor called the releases before 2.5 `Pre-SDK2.5`, so it counts as older than 2.5 and newer
    than any version below. A version without a number is skipped, since its age is unknown.
    """
    rows = data.published[["result_id", "sdk_version"]].assign(table=data.groups(*TABLE))
    rows = rows[rows["sdk_version"].notna()]
    rows = rows.join(map_texts(rows["sdk_version"], _rank_versions)).dropna(subset="rank")
    sizes = rows.groupby(["table", "rank", "sdk_version"]).size().rename("count").reset_index()
    counts = sizes.groupby(["table", "rank"], as_index=False).agg(
        {"count": "sum", "sdk_version": "first"}
    )
    common = counts.sort_values(["table", "count", "rank"]).drop_duplicates("table", keep="last")
    rows = rows.merge(
        common[["table", "rank", "sdk_version"]], on="table", suffixes=("", "_common")
    )
    rows = rows[rows["rank"] < rows["rank_common"]]
    template = (
        "SDK {sdk_version}, older than {sdk_version_common}, the most common one of its table"
    )
    return build_flags("R17", "info", rows, "sdk_version", template)


def _rank_versions(texts: pd.Series) -> pd.DataFrame:
    keys = [_parse_version(text) for text in texts]
    ranks = {key: rank for rank, key in enumerate(sorted({key for key in keys if key}))}
    return pd.DataFrame({"rank": [ranks[key] if key else None for key in keys]}, dtype="float64")


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
    rows = data.published[["result_id", "precision_printed", "activation_bits"]]
    rows = rows.assign(compared=data.groups(*COMPARED))[rows["activation_bits"].notna()]
    kinds = rows.drop_duplicates(["compared", "precision_printed"]).sort_values(
        ["compared", "precision_printed"]
    )
    mixed = kinds[kinds["compared"].duplicated(keep=False)]
    listed = mixed.groupby("compared")["precision_printed"].agg(" and ".join)
    rows = rows[rows["compared"].isin(listed.index)]
    rows = rows.assign(listed=rows["compared"].map(listed))
    template = "{precision_printed} in a group of rows that mixes {listed}: same model, variant and platform"
    return build_flags("R18", "info", rows, "precision_printed", template)
