"""Little's law: items in flight = throughput × latency; over the batch size, batches in flight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.configurations import behind
from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, no_findings, rounded, told

ONE_BATCH_AT_LEAST = 0.95
ONE_ITEM_PER_CHIP_WITHIN = 0.05
PER_ITEM = "per-item"
CONTRADICTS_BEYOND = 1.5
AGREES_WITHIN = 0.15

SAME_TEST = ("document_id", "task", "model", "variant", "framework", "chip_count")
SAME_SETUP = ("document_id", "table_name", "model", "platform", "framework", "sdk_version")


def r01(data: Dataset) -> pd.DataFrame:
    """Less than one batch in flight: impossible where the latency is that of a batch.

    One-sided, since several batches in flight are normal; below one, one batch in flight bounds the latency from below.
    Where the public configuration behind the row times an item, that is why.
    """
    rows = data.published[
        ["result_id", "throughput", "latency_ms", "latency_basis", "batch_size", "chip_count", "in_flight"]
    ]
    rows = rows[(rows["in_flight"] < ONE_BATCH_AT_LEAST) & (rows["throughput"] > 0)]
    items = rows["throughput"] * rows["latency_ms"] / 1000
    per_chip = (items / rows["chip_count"] - 1).abs() < ONE_ITEM_PER_CHIP_WITHIN
    rows = rows.assign(
        in_flight=rounded(rows["in_flight"]),
        items=rounded(items),
        least=rounded(rows["batch_size"] / rows["throughput"] * 1000),
        hint=np.where(per_chip, ", one item on each chip", ""),
    )
    rows = rows.assign(reading=_readings(data, rows))
    template = (
        "{in_flight} batches in flight: throughput {throughput} × latency {latency_ms} ms / batch {batch_size}; "
        "{items} items{hint}; {reading}"
    )
    return findings("R01", "error", rows, "latency_ms", told(template, rows), suggested=told("at least {least}", rows))


def _readings(data: Dataset, rows: pd.DataFrame) -> list[str]:
    """What the latency would be per batch: with the source where one says that the printed figure is per item."""
    known = behind(data).set_index("result_id").reindex(rows["result_id"])[["repository", "tag", "path"]]
    rows = rows.assign(**{name: known[name].array for name in known})
    sure = (
        "the printed value is per item, as the script of {path}, {repository} {tag}, computes it: "
        "at least {least} ms per batch"
    )
    unsure = "at least {least} ms per batch if the printed value is per item"
    of_item = (rows["latency_basis"] == PER_ITEM).to_list()
    pairs = zip(of_item, told(sure, rows), told(unsure, rows), strict=True)
    return [said if certain else guessed for certain, said, guessed in pairs]


def r04(data: Dataset) -> pd.DataFrame:
    """The printed batch contradicts the sibling rows, which another batch size would fit.

    Siblings are the same test on the other generation's machine with as many chips, and the other variants in the same
    setup. Little's law alone cannot tell which of two machines' rows is wrong, so the row must not fit its own
    variants while its sibling does not contradict theirs; an error where such variants exist on either side, a
    warning where there are none. Variants alone give a warning.
    """
    rows = _depths(data)
    if rows.empty:
        return no_findings()
    by_machine = _by_other_machine(rows)
    rest = rows[~rows["result_id"].isin(by_machine["result_id"])]
    return pd.concat([by_machine, _by_variants(rest, rows)], ignore_index=True)


def _depths(data: Dataset) -> pd.DataFrame:
    """Rows with a depth, their items in flight and `usual`: the median depth of the other variants in their setup."""
    columns = ["result_id", "platform", "family", "variant", "batch_size", "in_flight"]
    rows = data.published[columns].assign(
        test=data.groups(*SAME_TEST),
        setup=data.groups(*SAME_SETUP),
        setup_variant=data.groups(*SAME_SETUP, "variant"),
        family_known=data.published["family"].notna() & data.published["chip_count"].notna(),
    )
    rows = rows[rows["in_flight"] > 0]
    rows = rows.assign(items=rows["in_flight"] * rows["batch_size"], usual=_median_of_others(rows))
    return rows.assign(unlike=_contradict(rows["in_flight"], rows["usual"]))


def _median_of_others(rows: pd.DataFrame) -> pd.Series:
    """Median depth over the setup's other variants, each variant counted once; NaN where there is no other."""
    variants = rows.groupby(["setup", "setup_variant"], sort=False)["in_flight"].median().reset_index()
    variants = variants.sort_values(["setup", "in_flight"], ignore_index=True)
    group = variants.groupby("setup", sort=False)["in_flight"]
    rank, others = group.cumcount().to_numpy(), group.transform("size").to_numpy() - 1
    start, depth = np.arange(len(variants)) - rank, variants["in_flight"].to_numpy()

    def other(position: Any) -> Any:
        return depth[np.minimum(start + position + (position >= rank), len(depth) - 1)]

    median = np.where(others > 0, (other(np.maximum(others - 1, 0) // 2) + other(others // 2)) / 2, np.nan)
    return rows["setup_variant"].map(pd.Series(median, index=variants["setup_variant"]))


def _contradict(depth: pd.Series, usual: pd.Series) -> pd.Series:
    ratio = depth / usual
    return (ratio > CONTRADICTS_BEYOND) | (ratio < 1 / CONTRADICTS_BEYOND)


def _by_other_machine(rows: pd.DataFrame) -> pd.DataFrame:
    pairs = _nearest_siblings(rows[rows["family_known"]])
    fitting = pairs["items"] / pairs["batch_size_there"]
    agrees = (fitting / pairs["in_flight_there"] - 1).abs() < AGREES_WITHIN
    suspect = (pairs["unlike"] | pairs["usual"].isna()) & ~pairs["unlike_there"]
    pairs = pairs.assign(fitting=rounded(fitting))
    pairs = pairs[_contradict(pairs["in_flight"], pairs["in_flight_there"]) & agrees & suspect]
    decided = pairs["usual"].notna() | pairs["usual_there"].notna()
    pairs = pairs.assign(in_flight=rounded(pairs["in_flight"]), in_flight_there=rounded(pairs["in_flight_there"]))
    template = (
        "{in_flight} batches in flight at batch {batch_size}, {in_flight_there} on {platform_there} at "
        "batch {batch_size_there}; {fitting} if the batch were {batch_size_there} here too"
    )
    severity = np.where(decided, "error", "warn")
    return findings(
        "R04", severity, pairs, "batch_size", told(template, pairs), suggested=told("{batch_size_there}", pairs)
    )


def _nearest_siblings(rows: pd.DataFrame) -> pd.DataFrame:
    """Each row whose batch its siblings do not print, beside the sibling with the nearest number of items in flight."""
    shared = rows.groupby(["test", "batch_size"])["family"].transform("nunique") > 1
    rows = rows.assign(shared=shared, key=np.log(rows["items"])).sort_values("key", kind="stable")
    rows = rows[rows.groupby("test")["family"].transform("nunique") > 1]
    there = rows[["test", "key", "family", "platform", "batch_size", "in_flight", "usual", "unlike"]]
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
    found = pd.concat(pairs) if pairs else rows.iloc[:0].merge(there.iloc[:0], on=["test", "key"])
    found = found[found["batch_size_there"].notna()].sort_values("result_id")
    return found.astype({"unlike_there": bool})


def _by_variants(rows: pd.DataFrame, siblings: pd.DataFrame) -> pd.DataFrame:
    """Rows unlike the other variants, where exactly one of the batches printed in the setup would make them alike."""
    rows = rows[rows["unlike"]]
    printed = siblings[["setup", "batch_size"]].drop_duplicates().sort_values(["setup", "batch_size"])
    batches, width = printed["batch_size"].to_numpy(), printed["batch_size"].max() + 1
    keys = (printed["setup"] * width + batches).to_numpy()
    wanted, base = rows["items"] / rows["usual"], rows["setup"] * width
    low = np.searchsorted(keys, base + (wanted / (1 + AGREES_WITHIN)).clip(upper=width), "right")
    high = np.searchsorted(keys, base + (wanted / (1 - AGREES_WITHIN)).clip(upper=width), "left")
    single = high - low == 1
    rows = rows[single].assign(fits=batches[low[single]])
    rows = rows[~_printed_by_own_variant(rows, siblings)]
    rows = rows.assign(
        fitting=rounded(rows["items"] / rows["fits"]),
        in_flight=rounded(rows["in_flight"]),
        usual=rounded(rows["usual"]),
    )
    template = (
        "{in_flight} batches in flight at batch {batch_size}, {usual} in the other variants on {platform}; "
        "{fitting} if the batch were {fits}, the only one printed there that agrees"
    )
    return findings("R04", "warn", rows, "batch_size", told(template, rows), suggested=told("{fits}", rows))


def _printed_by_own_variant(rows: pd.DataFrame, siblings: pd.DataFrame) -> Any:
    own = siblings[["setup_variant", "batch_size"]].drop_duplicates().rename(columns={"batch_size": "fits"})
    return rows[["setup_variant", "fits"]].merge(own, how="left", indicator="own")["own"].eq("both").to_numpy()
