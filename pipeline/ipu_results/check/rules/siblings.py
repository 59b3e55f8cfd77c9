"""Compare a row with its siblings: its curve, the rows with its conditions, and those of its
network and chip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import (
    Dataset,
    build_flags,
    build_no_flags,
    map_texts,
    number_groups,
    round_figures,
)
from ipu_results.check.rules.identity import read_figures
from ipu_results.ground.physics import PER_ITEM

PLACE = ("document_id", "table_name")
SETUP = """
    task model_printed variant dataset_printed platform chip chip_count sdk_version framework precision_printed
    conditions
""".split()
KINDS = ("micro_batch_size", "item", "power_scope", "latency_basis")
FIGURES = ("throughput", "latency_ms")
MEASURED = r"\d+\.\d+(?:e[+-]?\d+)? (?:ms|s)\b"


def flag_conditions_twice(data: Dataset) -> pd.DataFrame:
    """Flag two figures of a table under the same conditions, in every column that says what was
    run.

    Either what tells them apart is in no column, or one condition is mistaken. Times among the
    conditions are what was measured, and tell nothing apart.
    """
    words = data.published["conditions"].str.replace(MEASURED, "", regex=True)
    setup = [name for name in SETUP if name != "conditions"]
    rows = data.published[["result_id", *FIGURES]].assign(
        group=number_groups(data.groups(*PLACE, *setup, *KINDS, "batch_size"), words.fillna(""))
    )
    rows = rows[rows["group"].duplicated(keep=False)]
    flags = []
    for column in FIGURES:
        own = rows[rows[column].notna()]
        figures = own.groupby("group")[column]
        own = own.assign(
            low=figures.transform("min"),
            high=figures.transform("max"),
            count=figures.transform("size"),
        )
        template = (
            "{count} rows of this table print {low} to {high} under the same conditions: find in"
            " the source what tells them apart, which is in no column, or which condition is"
            " mistaken"
        )
        flags.append(build_flags("R38", "warn", own[own["low"] < own["high"]], column, template))
    return pd.concat(flags, ignore_index=True)


NEIGHBOUR_DIGITS = 4  # by chance, one pair of neighbours in some thousand agrees in these
TABLE_DIGITS = 6  # by chance, no two rows of a table do


def flag_repeated_sibling(data: Dataset) -> pd.DataFrame:
    """Flag a figure that another row of the same network in the table prints, too.

    Two rows in a row agree in NEIGHBOUR_DIGITS significant digits or more, others in TABLE_DIGITS.
    """
    cells = data.compute_once(read_figures)
    cells = cells[cells["column_name"].isin(FIGURES) & (cells["digits"] >= NEIGHBOUR_DIGITS)]
    work = data.groups(*PLACE, "task", "model_printed")[cells["row"]]
    cells = cells.assign(same=number_groups(work, cells["column_name"].cat.codes, cells["figure"]))
    cells = cells.sort_values(["same", "row"])
    step = cells["row"].diff().where(cells["same"] == cells["same"].shift())
    near = (step == 1) | (step.notna() & (cells["digits"] >= TABLE_DIGITS))
    below = near.shift(-1, fill_value=False)
    other = cells["row"].shift().where(near, cells["row"].shift(-1))
    rows = data.read_cells(cells.assign(other=other)[near | below], "result_id", "column_name")
    rows = rows.assign(place=data.format_places(rows["other"].astype("int64")))
    template = "{raw_text} is also printed at {place}; one of the two may be a copy"
    return build_flags("R39", "warn", rows, rows["column_name"].array, template)


MIN_CURVES = 4  # that take the same step
OUT_OF_LINE = 0.2  # in logarithms: a ratio of 1.22
AT_END = 0.8  # where only one step says so: a ratio of 2.23
OUT_OF_CURVE = 0.4  # of a curve alone, which bends where a machine fills up: a ratio of 1.49
SPREADS = 5.9  # median deviations: four standard deviations


def flag_out_of_line(data: Dataset) -> pd.DataFrame:
    """Flag a figure that is out of line with the smaller and the larger batch of its curve.

    All in logarithms. Where MIN_CURVES curves of the table go from one batch to the next, their
    median step is expected, within OUT_OF_LINE and SPREADS median deviations. Odd is the point
    between two unexpected steps, and the first or last one whose step is off by AT_END where the
    next step is as expected. A point is also odd that is off the line through the points next to
    it, by OUT_OF_CURVE and SPREADS median bends, and more than they are.
    """
    flags = []
    for column in FIGURES:
        points = _find_points(data, column)
        deviations = pd.concat([_deviate_from_curves(points), _deviate_from_neighbours(points)])
        deviations = deviations[~deviations.index.duplicated()].sort_index()
        rows = data.published.loc[deviations.index, ["result_id", "batch_size", column]]
        rows = rows.assign(times=round_figures(np.exp(deviations)))
        template = (
            f"{{{column}}} at batch {{batch_size}} is {{times}} times what the other batches let"
            " expect; read the figure and its conditions again"
        )
        flags.append(build_flags("R40", "warn", rows, column, template))
    return pd.concat(flags, ignore_index=True)


def _find_points(data: Dataset, column: str) -> pd.DataFrame:
    """Return curve, table, batch `at` and `log` of each point by curve and batch; those printed
    twice are left out.
    """
    rows = data.published
    points = pd.DataFrame(
        {
            "curve": data.groups(*PLACE, *SETUP),
            "table": data.groups(*PLACE),
            "at": rows["batch_size"],
            "log": np.log(rows[column].where(rows[column] > 0)),
        },
        index=rows.index,
    ).dropna()
    return points.drop_duplicates(["curve", "at"], keep=False).sort_values(["curve", "at"])


def _shift(values: Any, curve: Any, by: int) -> Any:
    """Shift within a curve; null where it has no such point."""
    at = np.arange(len(curve)) - by
    inside = np.clip(at, 0, len(curve) - 1)
    return np.where((at == inside) & (curve[inside] == curve), values[inside], np.nan)


def _deviate_from_curves(points: pd.DataFrame) -> pd.Series:
    """Return by how much odd points are off the steps that the other curves take."""
    curve, size, figure = (points[name].to_numpy() for name in ("curve", "at", "log"))
    before = _shift(size, curve, 1)
    steps = pd.Series(figure - _shift(figure, curve, 1))
    same = number_groups(points["table"], before, size)
    off = steps - steps.groupby(same).transform("median")
    spread = SPREADS * off.abs().groupby(same).transform("median")
    off = off.where(steps.groupby(same).transform("count") >= MIN_CURVES).to_numpy()
    is_odd = np.abs(off) > np.maximum(OUT_OF_LINE, spread.to_numpy())
    odd = is_odd.astype("float64")
    after = -_shift(off, curve, -1)
    is_odd_after = _shift(odd, curve, -1) == 1
    is_first = np.isnan(before)
    is_last = np.isnan(_shift(size, curve, -1))
    between = is_odd & is_odd_after & (np.sign(off) == np.sign(after))
    first = is_first & (np.abs(after) > AT_END) & is_odd_after & (_shift(odd, curve, -2) == 0)
    is_after_second = ~np.isnan(_shift(before, curve, 1))
    last = (
        is_last & (np.abs(off) > AT_END) & is_odd & (_shift(odd, curve, 1) == 0) & is_after_second
    )
    return pd.Series(np.where(is_first, after, off), points.index)[between | first | last]


def _deviate_from_neighbours(points: pd.DataFrame) -> pd.Series:
    """Return by how much odd points are off the straight line, in logarithms, between the points
    next to them.
    """
    curve = points["curve"].to_numpy()
    size = np.log(points["at"].to_numpy())
    figure = points["log"].to_numpy()
    before, after = (_shift(size, curve, by) for by in (1, -1))
    share = (size - before) / (after - before)
    off = figure - (_shift(figure, curve, 1) * (1 - share) + _shift(figure, curve, -1) * share)
    far = pd.Series(np.abs(off), points.index)
    spread = SPREADS * far.groupby(points["table"]).transform("median")
    nearby = np.fmax.reduce(
        [np.zeros(len(off)), *(_shift(np.abs(off), curve, by) for by in (1, -1))]
    )
    return pd.Series(off, points.index)[
        (far > np.maximum(OUT_OF_CURVE, spread)) & (far > MORE_THAN_NEXT * nearby)
    ]


MORE_THAN_NEXT = 1.5  # a point that is off by one makes those next to it off by a half
CLIENTS = r"\b(\d+|one) (?:client )?threads? with one (batch|sequence)"
DEPTH_TOLERANCE = 0.1
TIGHT, TIGHT_SHARE, TIGHT_ROWS = 0.05, 0.8, 5


def flag_depth_against_clients(data: Dataset) -> pd.DataFrame:
    """Flag other batches in flight than clients wait for, as the conditions say, or than the rest
    of the table has.

    A client with one batch keeps one in flight. Without such words a table counts if TIGHT_SHARE of
    TIGHT_ROWS rows or more are within TIGHT of its median, of the items in flight where a latency
    is that of an item. A row may be off by DEPTH_TOLERANCE.
    """
    rows = data.published[["result_id", "conditions", "batch_size", *FIGURES, "in_flight"]]
    is_item = data.published["latency_basis"].eq(PER_ITEM).fillna(False)
    rows = rows.assign(table=data.groups(*PLACE), is_item=is_item)[rows["in_flight"] > 0]
    words = map_texts(rows["conditions"], lambda texts: texts.str.extract(CLIENTS))
    clients = pd.to_numeric(words[0].replace("one", "1")).astype("float64")
    clients = clients / rows["batch_size"].where(words[1].eq("sequence").fillna(False), 1)
    of_items = (
        _find_usual(rows[rows["is_item"]].eval("in_flight * batch_size"), rows["table"])
        / rows["batch_size"]
    )
    usual = _find_usual(rows["in_flight"], rows["table"]).fillna(of_items)
    source = np.where(clients.notna(), "its clients wait for", "the other rows of its table have")
    rows = rows.assign(expected=clients.fillna(usual), source=source)
    rows = rows[(rows["in_flight"] / rows["expected"] - 1).abs() > DEPTH_TOLERANCE]
    template = (
        "{in_flight:3} batches in flight: throughput {throughput} × latency {latency_ms} ms / batch"
        " {batch_size}; {source} {expected:3}; read the latency, the batch and the clients again"
    )
    return build_flags("R41", "warn", rows, "latency_ms", template)


def _find_usual(depths: pd.Series, table: pd.Series) -> pd.Series:
    """Return the median of each table where nearly all rows are near it."""
    by_table = depths.groupby(table)
    usual = by_table.transform("median")
    near = ((depths / usual - 1).abs() <= TIGHT).groupby(table).transform("mean")
    return usual.where((near >= TIGHT_SHARE) & (by_table.transform("size") >= TIGHT_ROWS))


MIN_ALIKE = 4


def flag_unlike_its_conditions(data: Dataset) -> pd.DataFrame:
    """Flag the one row of its printed conditions with another machine, SDK, framework, precision,
    network or batch.

    MIN_ALIKE rows or more of the table have these conditions, and all of them agree with each
    other.
    """
    groups = data.groups(*PLACE, "conditions")
    named = data.published["conditions"].notna()
    flags = [build_no_flags()]
    for column in UNLIKE:
        at = np.flatnonzero(named & data.published[column].notna())
        group = groups[at]
        value = data.groups(column)[at]
        _, pair, counts = np.unique(
            group * (value.max(initial=0) + 1) + value, return_inverse=True, return_counts=True
        )
        size = np.bincount(group, minlength=1)[group]
        own = counts[pair]
        alone = (own == 1) & (size > MIN_ALIKE)
        if not alone.any():
            continue
        rows = data.published.loc[at, ["result_id", column]].assign(group=group, count=size - 1)
        # all others have one value
        alike = rows.loc[own == size - 1, ["group", column]].drop_duplicates("group")
        rows = (
            rows[alone]
            .merge(alike.rename(columns={column: "usual"}), on="group")
            .rename(columns={column: "own"})
        )
        template = (
            "{own}, where the {count} other rows with the same conditions have {usual}; read the"
            " cell again"
        )
        flags.append(build_flags("R43", "warn", rows, column, template))
    return pd.concat(flags, ignore_index=True)


UNLIKE = "platform sdk_version framework precision_printed model_printed batch_size".split()
SAME_SILICON = {"Bow": "GC200"}  # a Bow is a GC200 at a higher clock
FAR = 3.0
MIN_ROWS = 3


def flag_unlike_its_network(data: Dataset) -> pd.DataFrame:
    """Flag a throughput per chip that is far from all others of the network in the record.

    Others are the rows of any document with the same task, network and variant: in training those
    on the same chip, and for each batch those on a Bow or a GC200, or on the same chip. The nearest
    is FAR times as much or as little, and nearly as far as the others are from each other.
    """
    rows = data.published
    per_chip = np.log((rows["throughput"] / rows["chip_count"]).where(rows["throughput"] > 0))
    silicon = pd.factorize(rows["chip"].replace(SAME_SILICON))[0]
    work = data.groups("task", "model_printed", "variant", "item")
    frame = pd.DataFrame(
        {"work": work, "silicon": silicon, "batch": rows["batch_size"], "chip": rows["chip"]}
    )
    frame = frame.assign(log=per_chip)[per_chip.notna() & rows["chip"].notna()]
    training = frame[rows.loc[frame.index, "task"] == "training"]
    deviations = pd.concat(
        [_find_far(training, ["work", "chip"]), _find_far(frame, ["work", "silicon", "batch"])]
    )
    deviations = deviations[~deviations.index.duplicated()].sort_index()
    rows = rows.loc[
        deviations.index, ["result_id", "model_printed", "chip", "throughput", "chip_count"]
    ]
    rows = rows.assign(times=round_figures(np.exp(deviations)))
    template = (
        "{throughput} items/s on {chip_count} × {chip} are {times} times the nearest throughput per"
        " chip of {model_printed} in the record; read the unit, the batch and the machine again"
    )
    return build_flags("R44", "warn", rows, "throughput", template)


NEARLY = 0.7


def _find_far(frame: pd.DataFrame, same: list[str]) -> pd.Series:
    """Return the logarithm of the ratio to the nearest figure, of the least and the greatest of a
    group if far.
    """
    frame = frame.dropna(subset=same).sort_values([*same, "log"])
    group = frame.groupby(same, sort=False)["log"]
    first = group.transform("min")
    last = group.transform("max")
    below = group.shift()
    above = group.shift(-1)
    is_many = group.transform("size") >= MIN_ROWS
    low = (
        is_many
        & below.isna()
        & (above - frame["log"] > np.maximum(np.log(FAR), NEARLY * (last - above)))
    )
    high = (
        is_many
        & above.isna()
        & (frame["log"] - below > np.maximum(np.log(FAR), NEARLY * (below - first)))
    )
    return (frame["log"] - below.where(high, above))[low | high]


SAME_ROW = "task model_printed variant platform framework batch_size precision_printed".split()
ELSEWHERE = 1.2


def flag_other_document(data: Dataset) -> pd.DataFrame:
    """Flag a throughput that differs more than ELSEWHERE times from the same row of another
    document.
    """
    columns = ["result_id", "document_id", "model_printed", "platform", "batch_size", "throughput"]
    rows = data.published[columns].assign(group=data.groups(*SAME_ROW))
    rows = rows[(rows["throughput"] > 0) & rows["batch_size"].notna()]
    rows = rows[rows["group"].duplicated(keep=False)]
    own = rows.groupby(["group", "document_id"])["throughput"]
    rows = rows.assign(least=own.transform("min"), most=own.transform("max"))
    # a document that agrees with one of two figures differs from none
    group = rows.groupby("group")
    rows = rows.assign(low=group["most"].transform("min"), high=group["least"].transform("max"))
    rows = rows.assign(ratio=rows["high"] / rows["low"])[rows["high"] > ELSEWHERE * rows["low"]]
    template = (
        "documents print {low} to {high} items/s, {ratio:3} times, for {model_printed} on {platform} at"
        " batch {batch_size} and the same precision; compare their SDKs and conditions"
    )
    return build_flags("R45", "info", rows, "throughput", template)
