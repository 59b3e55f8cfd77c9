"""Compare the same work over batch sizes, depths of pipelines, sizes of machines and generations of
machine.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, build_flags, find_positions
from ipu_results.check.rules.little import PER_BATCH, find_doubtful_latencies, find_median_of_others
from ipu_results.check.rules.placement import join_configurations

GENERATIONS = ("Mk1", "Classic", "Bow")
EXPECTED = {"Bow": (1.15, 1.53)}
SAME_ROW = """
    document_id task model_printed variant dataset_printed framework batch_size precision_printed
    chip_count
""".split()
FIGURES = ("throughput", "latency_ms")


def join_generations(data: Dataset) -> pd.DataFrame:
    """Join each row to the same row on the previous generation, whose columns end in `_before`.

    The dataset must agree, since another dataset is another test. The SDK need not, since a
    generation comes with its own. Unknown batches and chip counts match nothing. Of several rows of
    the previous generation the fastest counts.
    """
    rows = data.published[["result_id", "platform", "family", "batch_size", "chip_count", *FIGURES]]
    rank = find_positions(rows["family"], pd.Series(GENERATIONS, dtype=rows["family"].dtype))
    rows = rows.assign(rank=rank, key=data.groups(*SAME_ROW))
    rows = rows[(rank >= 0) & rows["batch_size"].notna() & rows["chip_count"].notna()]
    before = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(
        ["key", "rank"]
    )
    before = before[["key", "rank", "platform", *FIGURES]].assign(rank=before["rank"] + 1)
    return rows.merge(before, on=["key", "rank"], suffixes=("", "_before"))


def flag_slower_generation(data: Dataset) -> pd.DataFrame:
    """Flag a machine that is slower, or has a higher latency, than the generation before it."""
    pairs = data.compute_once(join_generations)
    flags = []
    for column, unit, word in (("throughput", "items/s", "slower"), ("latency_ms", "ms", "later")):
        before = pairs[f"{column}_before"]
        is_worse = pairs[column] < before if word == "slower" else pairs[column] > before
        template = (
            f"{word} than the generation before: {{{column}}} {unit} on {{platform}},"
            f" {{{column}_before}} on {{platform_before}} at the same batch {{batch_size}}"
            " ({ratio:3} times)"
        )
        worse = pairs.assign(ratio=pairs[column] / before)[is_worse]
        flags.append(build_flags("R06", "warn", worse, column, template))
    return pd.concat(flags, ignore_index=True)


def flag_generation_ratio(data: Dataset) -> pd.DataFrame:
    """Flag a throughput ratio to the previous generation outside the expected range (clock ratio
    1.39).
    """
    pairs = data.compute_once(join_generations)
    ratio = pairs["throughput"] / pairs["throughput_before"]
    ends = [
        pairs["family"].map({family: ends[at] for family, ends in EXPECTED.items()})
        for at in (0, 1)
    ]
    low, high = (end.astype("float64") for end in ends)
    rows = pairs.assign(ratio=ratio, low=low, high=high)[(ratio < low) | (ratio > high)]
    template = (
        "{ratio:3} times the throughput of the generation before, expected {low} to {high}:"
        " {throughput} items/s on {platform}, {throughput_before} on {platform_before}"
    )
    return build_flags("R07", "info", rows, "throughput", template)


MAX_GROWTH_PER_CHIP = 0.05
SAME_WORK = """
    document_id table_name task model_printed variant dataset_printed framework precision_printed chip
""".split()


def flag_superlinear_scaling(data: Dataset) -> pd.DataFrame:
    """Flag a throughput per chip that grows with the number of chips: sharing the work makes no
    chip faster.

    Only machines with the same chip are compared, and of each size only its fastest row, so that
    the points of a curve over the batch size are not taken for machines. SDK and batch may differ
    and are named in the message.
    """
    columns = ["result_id", "platform", "chip_count", "throughput", "batch_size", "sdk_version"]
    rows = data.published[columns].assign(work=data.groups(*SAME_WORK))
    rows = rows[rows["chip_count"].notna() & rows["throughput"].notna()]
    rows = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(
        ["work", "chip_count"]
    )
    rows = rows.sort_values(["work", "chip_count"], ignore_index=True)
    rows = rows.assign(per_chip=rows["throughput"] / rows["chip_count"])
    growth = (rows["per_chip"] / rows["per_chip"].shift()).where(
        rows["work"] == rows["work"].shift()
    )
    [larger] = np.nonzero(growth > 1 + MAX_GROWTH_PER_CHIP)
    smaller = rows.take(larger - 1).set_axis(larger)
    rows = rows.take(larger).join(smaller.add_suffix("_there"))
    rows = rows.assign(
        percent=100 * rows["per_chip"] / rows["per_chip_there"],
        setup=_format_setup(rows["batch_size"], rows["sdk_version"]),
        setup_there=_format_setup(rows["batch_size_there"], rows["sdk_version_there"]),
    )
    template = (
        "{percent:3} % of the throughput per chip of {platform_there}: {per_chip:3} items/s per"
        " chip{setup}, {per_chip_there:3} there{setup_there}"
    )
    return build_flags("R08", "warn", rows, "throughput", template)


MIN_GROWTH = 1.1  # of the throughput, on twice the chips or more


def flag_no_growth(data: Dataset) -> pd.DataFrame:
    """Flag a throughput that does not grow with the chips: less than MIN_GROWTH times as much on
    twice as many or more.

    Of each number of chips only the fastest row is compared. If it does not grow, all rows of that
    number are flagged.
    """
    rows = data.published[["result_id", "chip_count", "throughput"]].assign(
        work=data.groups(*SAME_WORK)
    )
    rows = rows[rows["chip_count"].notna() & rows["throughput"].notna()]
    best = rows.sort_values("throughput", ascending=False, kind="stable").drop_duplicates(
        ["work", "chip_count"]
    )
    pairs = best.merge(best, on="work", suffixes=("", "_there"))
    pairs = pairs[pairs["chip_count"] >= 2 * pairs["chip_count_there"]]
    pairs = pairs[pairs["throughput"] < MIN_GROWTH * pairs["throughput_there"]]
    pairs = pairs.sort_values("throughput_there", ascending=False, kind="stable").drop_duplicates(
        ["work", "chip_count"]
    )
    rows = rows.merge(
        pairs.drop(columns="result_id"),
        on=["work", "chip_count"],
        suffixes=("", "_best"),
        validate="m:1",
    )
    template = (
        "{throughput_best:4} items/s at best on {chip_count} chips, {throughput_there:4} on"
        " {chip_count_there}: the curve does not grow with the chips"
    )
    return build_flags("R37", "warn", rows, "throughput", template)


def _format_setup(batch: pd.Series, sdk: pd.Series) -> list[str]:
    sizes = ("batch " + batch.astype("Int64").astype("string")).to_list()
    versions = ("SDK " + sdk.astype("string")).to_list()
    known = [
        [part for part in parts if part is not pd.NA] for parts in zip(sizes, versions, strict=True)
    ]
    return [f" ({', '.join(parts)})" if parts else "" for parts in known]


CURVE = """
    document_id table_name task model_printed variant dataset_printed platform framework sdk_version precision_printed
    conditions
""".split()
LATENCY_TOLERANCE = 0.025
MAX_THROUGHPUT_FALL = 0.05
MAX_DEPTH_CHANGE = 1.5


def join_previous_batch(
    data: Dataset, column: str, excluded: pd.Series | None = None
) -> pd.DataFrame:
    """Return the rows with a batch and `column`, joined to the next smaller batch of their curve.

    Adds `previous_batch` and `previous`, the lowest figure printed there. Rows at the smallest
    batch are left out. `excluded` marks rows of `published` to leave out of the curves.
    """
    rows = data.published[["result_id", "batch_size", column]].assign(curve=data.groups(*CURVE))
    rows = rows if excluded is None else rows[~excluded]
    rows = rows[rows["batch_size"].notna() & rows[column].notna()].sort_values(
        ["curve", "batch_size", column]
    )
    is_first = ~rows.duplicated(["curve", "batch_size"])
    points = rows.loc[is_first, ["curve", "batch_size", column]]
    before = points.shift().where(points["curve"] == points["curve"].shift())[
        ["batch_size", column]
    ]
    previous = before.to_numpy()[is_first.to_numpy().cumsum() - 1]
    rows = rows.assign(previous_batch=previous[:, 0], previous=previous[:, 1])
    return rows[rows["previous_batch"].notna()]


def flag_falling_latency(data: Dataset) -> pd.DataFrame:
    """Flag a latency that falls as the batch grows: a larger batch takes longer.

    Latencies of an item, and those that R01 flags, are excluded. A fall within LATENCY_TOLERANCE is
    what two runs of one program differ by, and one within the printed deviation what its calls
    differ by, so it is only a warning.
    """
    rows = join_previous_batch(data, "latency_ms", find_doubtful_latencies(data))
    rows = rows[rows["latency_ms"] < rows["previous"]]
    deviation = data.published["latency_std_ms"].reindex(rows.index).fillna(0)
    sure = rows["latency_ms"] < np.minimum(
        (1 - LATENCY_TOLERANCE) * rows["previous"], rows["previous"] - deviation
    )
    template = (
        "latency falls as the batch grows: {latency_ms} ms at batch {batch_size}, {previous} at"
        " {previous_batch}"
    )
    return build_flags("R02", np.where(sure, "error", "warn"), rows, "latency_ms", template)


def flag_falling_throughput(data: Dataset) -> pd.DataFrame:
    """Flag a throughput that falls by more than MAX_THROUGHPUT_FALL as the batch grows."""
    rows = join_previous_batch(data, "throughput")
    rows = rows[rows["throughput"] < (1 - MAX_THROUGHPUT_FALL) * rows["previous"]]
    rows = rows.assign(fall=100 * (1 - rows["throughput"] / rows["previous"]))
    template = (
        "throughput falls by {fall:3} % as the batch grows: {throughput} items/s at batch"
        " {batch_size}, {previous} at {previous_batch}"
    )
    return build_flags("R03", "warn", rows, "throughput", template)


def flag_depth_jump(data: Dataset) -> pd.DataFrame:
    """Flag a jump of the batches in flight along a curve: pipeline depth or way of timing is not
    the same.

    Latencies of an item are excluded, as are rows that R01 or R24 flags: after such a row the next
    one is normal.
    """
    unlike = data.compute_once(flag_depth_against_siblings)["result_id"]
    excluded = find_doubtful_latencies(data) | data.published["result_id"].isin(unlike)
    rows = join_previous_batch(data, "in_flight", excluded)
    jump = rows["in_flight"] / rows["previous"]
    rows = rows[(jump > MAX_DEPTH_CHANGE) | (jump < 1 / MAX_DEPTH_CHANGE)]
    template = (
        "{in_flight:3} batches in flight at batch {batch_size}, {previous:3} at {previous_batch}"
    )
    return build_flags("R05", "warn", rows, "latency_ms", template)


MIN_SIBLINGS = 3
MAX_DEPTH_RATIO = 1.5
SEVERAL_IN_FLIGHT = 1.4
SAME_CONFIGURATION = """
    repository tag path benchmark latency_definition model_printed variant platform framework sdk_version
""".split()


def flag_depth_against_siblings(data: Dataset) -> pd.DataFrame:
    """Flag batches in flight that differ by more than MAX_DEPTH_RATIO times from rows of the same
    configuration.

    Siblings have the same command, variant, machine and way of timing, and differ in the batch. How
    many batches are in flight is a setting of the command, so a row unlike the median of
    MIN_SIBLINGS or more others did not run with the printed batch or with that setting. Only exact
    and likely matches count, and latencies of an item are excluded.
    """
    rows = join_configurations(
        data,
        "model_printed",
        "variant",
        "platform",
        "framework",
        "sdk_version",
        "batch_size",
        "in_flight",
    )
    doubtful = data.published.loc[find_doubtful_latencies(data), "result_id"]
    rows = rows[(rows["in_flight"] > 0) & ~rows["result_id"].isin(doubtful)]
    rows = rows.assign(group=rows.groupby(SAME_CONFIGURATION, dropna=False, sort=False).ngroup())
    rows = rows.assign(
        others=rows.groupby("group")["group"].transform("size") - 1,
        usual=find_median_of_others(rows["in_flight"], rows["group"]),
    )
    ratio = rows["in_flight"] / rows["usual"]
    rows = rows[
        (rows["others"] >= MIN_SIBLINGS)
        & ((ratio > MAX_DEPTH_RATIO) | (ratio < 1 / MAX_DEPTH_RATIO))
    ]
    rows = rows.assign(fitting=rows["batch_size"] * rows["in_flight"] / rows["usual"])
    template = (
        "{in_flight:3} batches in flight at batch {batch_size}, {usual:3} in the median of {others}"
        " other rows of {benchmark} of {path}, {repository} {tag} ({match_confidence} match); a"
        " batch of about {fitting:3} would give as many"
    )
    return build_flags("R24", "warn", rows, "batch_size", template)


def flag_depth_against_basis(data: Dataset) -> pd.DataFrame:
    """Flag SEVERAL_IN_FLIGHT or more batches in flight where the configuration times one batch.

    The script times a batch from its first input to its last output and does not say how many
    others are under way. The figures say that there were some, so the latency is not that of a
    machine with one batch.
    """
    rows = data.published[
        ["result_id", "throughput", "latency_ms", "latency_basis", "batch_size", "in_flight"]
    ]
    rows = rows[
        rows["latency_basis"].eq(PER_BATCH).fillna(False) & (rows["in_flight"] >= SEVERAL_IN_FLIGHT)
    ]
    template = (
        "{in_flight:3} batches in flight: throughput {throughput} × latency {latency_ms} ms / batch"
        " {batch_size}; the configuration times one batch and does not say how many are in flight"
    )
    return build_flags("R25", "info", rows, "latency_basis", template)
