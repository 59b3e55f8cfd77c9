"""Apply Little's law: items in flight = throughput × latency; divided by the batch size, batches in
flight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import (
    Dataset,
    build_flags,
    build_no_flags,
    fill_template,
    round_figures,
)
from ipu_results.check.rules.placement import join_configurations
from ipu_results.ground.physics import (
    MIN_BATCHES_IN_FLIGHT,
    PER_ITEM,
    compute_min_latency_ms,
    count_items_in_flight,
)

ONE_ITEM_PER_CHIP_TOLERANCE = 0.05
PER_BATCH = "per-batch"
WITH_GAPS = "the latency is that of a batch, so the throughput counts time outside it"
CONTRADICTION_RATIO = 1.5
AGREEMENT_TOLERANCE = 0.15

SAME_TEST = ("document_id", "task", "model_printed", "variant", "framework", "chip_count")
SAME_SETUP = (
    "document_id",
    "table_name",
    "model_printed",
    "platform",
    "framework",
    "sdk_version",
    "conditions",
)


def flag_latency_below_period(data: Dataset) -> pd.DataFrame:
    """Flag less than one batch in flight, which is impossible if the latency is that of a batch.

    The rule is one-sided, since several batches in flight are normal. One batch in flight bounds
    the latency from below. If the public configuration behind the row times an item, the message
    says so. If the source says that it times a batch, its throughput counts time outside: a remark,
    no error.
    """
    rows = data.published[
        [
            "result_id",
            "throughput",
            "latency_ms",
            "latency_basis",
            "batch_size",
            "chip_count",
            "in_flight",
        ]
    ]
    rows = rows[(rows["in_flight"] < MIN_BATCHES_IN_FLIGHT) & (rows["throughput"] > 0)]
    items = count_items_in_flight(rows["throughput"], rows["latency_ms"])
    per_chip = (items / rows["chip_count"] - 1).abs() < ONE_ITEM_PER_CHIP_TOLERANCE
    rows = rows.assign(
        in_flight=round_figures(rows["in_flight"]),
        items=round_figures(items),
        min_latency=round_figures(compute_min_latency_ms(rows["throughput"], rows["batch_size"])),
        hint=np.where(per_chip, ", one item on each chip", ""),
    )
    rows = rows.assign(reading=_readings(data, rows))
    template = (
        "{in_flight} batches in flight: throughput {throughput} × latency {latency_ms} ms / batch"
        " {batch_size}; {items} items{hint}; {reading}"
    )
    severity = ["info" if reading.startswith(WITH_GAPS) else "error" for reading in rows["reading"]]
    return build_flags(
        "R01", severity, rows, "latency_ms", template, suggested="at least {min_latency}"
    )


def _readings(data: Dataset, rows: pd.DataFrame) -> list[str]:
    """Say what the latency would be per batch, with the source if one says that the printed figure
    is per item.
    """
    known = (
        join_configurations(data)
        .set_index("result_id")
        .reindex(rows["result_id"])[["repository", "tag", "path"]]
    )
    rows = rows.assign(**{name: known[name].array for name in known})
    sure = (
        "the printed value is per item, as the script of {path}, {repository} {tag}, computes it: "
        "at least {min_latency} ms per batch"
    )
    stated = (
        "the printed value is per item, as the source says: at least {min_latency} ms per batch"
    )
    gaps = f"{WITH_GAPS}: {{min_latency}} ms per batch"
    unsure = "at least {min_latency} ms per batch if the printed value is per item"
    basis = rows["latency_basis"].fillna("").to_list()
    traced = rows["path"].notna().to_list()
    texts = zip(
        *(fill_template(template, rows) for template in (sure, stated, gaps, unsure)), strict=True
    )
    return [
        {
            PER_ITEM: by_script if is_traced else by_source,
            PER_BATCH: doubt if is_traced else with_gaps,
        }.get(what, doubt)
        for what, is_traced, (by_script, by_source, with_gaps, doubt) in zip(
            basis, traced, texts, strict=True
        )
    ]


def find_doubtful_latencies(data: Dataset) -> pd.Series[bool]:
    """Mark rows whose latency is not that of a batch: their configuration times an item, or R01
    flags them.
    """
    below = data.compute_once(flag_latency_below_period)["result_id"]
    return data.published["latency_basis"].eq(PER_ITEM).fillna(False) | data.published[
        "result_id"
    ].isin(below)


def flag_batch_against_siblings(data: Dataset) -> pd.DataFrame:
    """Flag a printed batch that contradicts the sibling rows, if another batch size would fit them.

    Siblings are the same test on another generation's machine with as many chips, and the other
    variants in the same set-up. Little's law alone cannot decide which of two machines' rows is
    wrong. So the row must not fit its own variants while its sibling does not contradict its own.
    That is an error if such variants exist on either side, and a warning if there are none.
    Variants alone give a warning.
    """
    rows = _depths(data)
    if rows.empty:
        return build_no_flags()
    by_machine = _by_other_machine(rows)
    rest = rows[~rows["result_id"].isin(by_machine["result_id"])]
    return pd.concat([by_machine, _by_variants(rest, rows)], ignore_index=True)


def _depths(data: Dataset) -> pd.DataFrame:
    """Return rows with a depth and items in flight; `usual` is the median depth of their set-up's
    other variants.
    """
    columns = ["result_id", "platform", "family", "variant", "batch_size", "in_flight"]
    rows = data.published[columns].assign(
        test=data.groups(*SAME_TEST),
        setup=data.groups(*SAME_SETUP),
        setup_variant=data.groups(*SAME_SETUP, "variant"),
        family_known=data.published["family"].notna() & data.published["chip_count"].notna(),
    )
    rows = rows[rows["in_flight"] > 0]
    variants = (
        rows.groupby(["setup", "setup_variant"], sort=False)["in_flight"].median().reset_index()
    )
    # each variant is counted once
    median = find_median_of_others(variants["in_flight"], variants["setup"])
    usual = rows["setup_variant"].map(median.set_axis(variants["setup_variant"]))
    rows = rows.assign(items=rows["in_flight"] * rows["batch_size"], usual=usual)
    return rows.assign(unlike=_contradict(rows["in_flight"], rows["usual"]))


def find_median_of_others(values: pd.Series, groups: pd.Series) -> pd.Series:
    """Return for each value the median of the other values of its group; NaN if there is no other."""
    ordered = pd.DataFrame({"group": groups, "value": values}).sort_values(["group", "value"])
    value = ordered["value"].to_numpy()
    by_group = ordered.groupby("group", sort=False)["value"]
    rank = by_group.cumcount().to_numpy()
    others = by_group.transform("size").to_numpy() - 1
    start = np.arange(len(ordered)) - rank

    def other(position: Any) -> Any:
        return value[np.minimum(start + position + (position >= rank), len(value) - 1)]

    median = np.where(
        others > 0, (other(np.maximum(others - 1, 0) // 2) + other(others // 2)) / 2, np.nan
    )
    return pd.Series(median, index=ordered.index).reindex(values.index)


def _contradict(depth: pd.Series, usual: pd.Series) -> pd.Series:
    ratio = depth / usual
    return (ratio > CONTRADICTION_RATIO) | (ratio < 1 / CONTRADICTION_RATIO)


def _by_other_machine(rows: pd.DataFrame) -> pd.DataFrame:
    pairs = _nearest_siblings(rows[rows["family_known"]])
    fitting = pairs["items"] / pairs["batch_size_there"]
    agrees = (fitting / pairs["in_flight_there"] - 1).abs() < AGREEMENT_TOLERANCE
    suspect = (pairs["unlike"] | pairs["usual"].isna()) & ~pairs["unlike_there"]
    pairs = pairs.assign(fitting=fitting)
    pairs = pairs[_contradict(pairs["in_flight"], pairs["in_flight_there"]) & agrees & suspect]
    severity = np.where(pairs["usual"].notna() | pairs["usual_there"].notna(), "error", "warn")
    template = (
        "{in_flight:3} batches in flight at batch {batch_size}, {in_flight_there:3} on"
        " {platform_there} at batch {batch_size_there}; {fitting:3} if the batch were"
        " {batch_size_there} here too"
    )
    return build_flags(
        "R04", severity, pairs, "batch_size", template, suggested="{batch_size_there}"
    )


def _nearest_siblings(rows: pd.DataFrame) -> pd.DataFrame:
    """Join each row whose batch its siblings do not print to the sibling with the nearest number of
    items in flight.
    """
    shared = rows.groupby(["test", "batch_size"])["family"].transform("nunique") > 1
    rows = rows.assign(shared=shared, key=np.log(rows["items"])).sort_values("key", kind="stable")
    rows = rows[rows.groupby("test")["family"].transform("nunique") > 1]
    there = rows[
        ["test", "key", "family", "platform", "batch_size", "in_flight", "usual", "unlike"]
    ]
    there = there.rename(columns=lambda name: name if name in ("test", "key") else f"{name}_there")
    pairs = [
        pd.merge_asof(
            rows[(rows["family"] == family) & ~rows["shared"]],
            there[there["family_there"] != family],
            on="key",
            by="test",
            direction="nearest",
        )
        for family in sorted(rows["family"].unique())
    ]
    joined = pd.concat(pairs) if pairs else rows.iloc[:0].merge(there.iloc[:0], on=["test", "key"])
    joined = joined[joined["batch_size_there"].notna()].sort_values("result_id")
    return joined.astype({"unlike_there": bool})


def _by_variants(rows: pd.DataFrame, siblings: pd.DataFrame) -> pd.DataFrame:
    """Flag rows unlike the other variants, if exactly one of the batches printed in the set-up
    would fit them.
    """
    rows = rows[rows["unlike"]]
    printed = (
        siblings[["setup", "batch_size"]].drop_duplicates().sort_values(["setup", "batch_size"])
    )
    batches = printed["batch_size"].to_numpy()
    width = printed["batch_size"].max() + 1
    keys = (printed["setup"] * width + batches).to_numpy()
    fitting = rows["items"] / rows["usual"]
    base = rows["setup"] * width
    low = np.searchsorted(
        keys, base + (fitting / (1 + AGREEMENT_TOLERANCE)).clip(upper=width), "right"
    )
    high = np.searchsorted(
        keys, base + (fitting / (1 - AGREEMENT_TOLERANCE)).clip(upper=width), "left"
    )
    single = high - low == 1
    rows = rows[single].assign(fits=batches[low[single]])
    own = siblings.loc[
        siblings["setup_variant"].isin(rows["setup_variant"]), ["setup_variant", "batch_size"]
    ]
    printed_by_own = set(own.itertuples(index=False, name=None))
    pairs = zip(rows["setup_variant"], rows["fits"], strict=True)
    rows = rows[np.array([pair not in printed_by_own for pair in pairs], dtype=bool)]
    rows = rows.assign(fitting=rows["items"] / rows["fits"])
    template = (
        "{in_flight:3} batches in flight at batch {batch_size}, {usual:3} in the other variants on"
        " {platform}; {fitting:3} if the batch were {fits}, the only one printed there that agrees"
    )
    return build_flags("R04", "warn", rows, "batch_size", template, suggested="{fits}")
