"""Find whole numbers behind printed figures: cycles of a clock, items of a batch, counts behind a
percentage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import (
    Dataset,
    build_flags,
    count_decimals,
    map_texts,
    number_groups,
)
from ipu_results.check.rules.microbenchmarks import read_figures
from ipu_results.ground.physics import GIGA, GIGA_PER_TERA

MIN_FIGURES = 3
CLEAR = 0.5  # a figure that accident makes a multiple more often says nothing
MAX_CHANCE = 1e-6  # of one column among all that are tried
COUNTS = range(2, 201)  # of what a percentage is a share of
NEAREST = 4  # doubles: a figure printed with all digits of a double was computed in some steps
SIZES = r"\bn=(\d+) k=(\d+) m=(\d+) tiles=(\d+)"  # of a matrix product on each tile
OVER_TILES = "mean over tiles"
WORK = "arithmetic throughput"  # of known work, it is a time
KINDS = {WORK: "cycles", "time": "cycles", "share": "share"}


def flag_whole_multiples(data: Dataset) -> pd.DataFrame:
    """Flag a column whose figures are all whole multiples of one unit, and what that unit is, at
    its first figure.

    Tried are cycles of each clock for times, and for rates with a known work (of a mean over tiles,
    cycles of all tiles), items of the row's batch for throughputs, and shares of up to 200 for
    percentages. A figure is a multiple if some value that rounds to it is. The chance is that of
    accident, times all columns and units that are tried.
    """
    clocks = sorted(set(data.platforms["clock_ghz"].dropna()))
    tried = [test for column in _list_columns(data) for test in _try_units(clocks, *column)]
    flags = []
    for result_id, column_name, name, unit, fits, count, chance, others in tried:
        if fits == count and chance + np.log10(len(tried)) < np.log10(MAX_CHANCE):
            rival = f", {others}" if others else ""
            message = (
                f"all {count} figures of {name} with digits enough are whole {unit}{rival}; the"
                f" chance of that by accident is 10^{chance + np.log10(len(tried)):.0f}, with"
                f" {len(tried)} tests counted"
            )
            flags.append((result_id, column_name, message))
    rows = pd.DataFrame(flags, columns=["result_id", "column", "message"], dtype="str")
    return build_flags("R46", "info", rows, rows["column"].array, rows["message"].array)


def _list_columns(data: Dataset) -> Iterator[tuple[str, str, str, str, Any]]:
    """Return kind, name of the column, its name in words, its first row, and `value`, `half` and
    `grain` of each row.

    `half` is half of a last digit.
    """
    rows = data.compute_once(read_figures)
    rows = rows[rows["metric"].isin(KINDS)]
    # `rows` here has the selected rows alone: an empty frame would take the index of a longer column
    rows = rows.assign(value=rows["canonical_value"], grain=1.0)
    sizes = map_texts(rows["shape"], lambda shapes: shapes.str.extract(SIZES).astype("float64"))
    seconds = 2 * sizes.prod(axis=1, skipna=False) / (rows["value"] * GIGA * GIGA_PER_TERA)
    is_work = (rows["metric"] == WORK) & seconds.notna()
    rows["half"] = rows["half"].where(~is_work, rows["half"] * seconds / rows["value"])
    rows["value"] = rows["value"].where(~is_work, seconds)
    rows["grain"] = sizes[3].where(is_work & rows["statistic"].eq(OVER_TILES), 1.0)
    rows = rows[is_work | (rows["metric"] != WORK)]
    for own, figures in _split(rows, "document_id", "chip", "metric", "statistic"):
        yield (
            KINDS[own.metric],
            "value",
            f"{own.metric} of {own.chip} ({own.document_id})",
            own.result_id,
            figures,
        )
    for column, kind in (("throughput", "batch"), ("latency_ms", "cycles")):
        cells = data.printed_cells
        cells = cells[cells["column_name"].isin([column])].drop_duplicates("row")
        cells = data.read_cells(cells, "raw_text", "value").set_index("row")
        rows = data.published.loc[
            cells.index, ["result_id", "document_id", "table_name", "batch_size", column]
        ]
        scale = (rows[column] / cells["value"]) * (1e-3 if column == "latency_ms" else 1)
        half = 0.5 * 10.0 ** -count_decimals(cells["raw_text"])
        rows = rows.assign(
            value=cells["value"] * scale, half=half * scale, grain=rows["batch_size"]
        )
        rows = rows[rows["grain"] > 1] if kind == "batch" else rows.assign(grain=1.0)
        for own, figures in _split(rows, "document_id", "table_name"):
            yield (
                kind,
                column,
                f"{column} of {own.table_name} ({own.document_id})",
                own.result_id,
                figures,
            )


def _split(rows: pd.DataFrame, *names: str) -> Iterator[tuple[Any, Any]]:
    """Return the first row of each group of MIN_FIGURES or more, and the figures of all its rows."""
    groups = number_groups(*(rows[name] for name in names))
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    figures = np.split(
        rows[["value", "half", "grain"]].to_numpy(dtype="float64")[order], starts[1:]
    )
    # of no rows, one part is left
    pairs = zip(rows.iloc[order[starts]].itertuples(), figures, strict=False)
    return ((own, columns.T) for own, columns in pairs if len(columns) >= MIN_FIGURES)


def _try_units(
    clocks: list[float], kind: str, column_name: str, name: str, first: str, figures: Any
) -> list[tuple[Any, ...]]:
    """Return for each unit of a column: the first row, the unit, how many figures fit, and the
    logarithm of chance.
    """
    value, half, grain = figures
    half = np.maximum(half, NEAREST * np.spacing(value))
    units: dict[str, Any] = {"items of the batch": grain}
    if kind == "cycles":
        summed = f" summed over {grain.max():.0f} tiles" if grain.max() > 1 else ""
        units = {f"cycles{summed} at {clock} GHz": 1 / (clock * GIGA) / grain for clock in clocks}
    elif kind == "share":
        units = {f"counts of {count}": 100 / count / grain for count in COUNTS}
    each = np.array([*units.values()])
    is_clear = 2 * half / each < CLEAR
    is_multiple = np.abs(value - np.round(value / each) * each) <= half * (1 + 1e-9)
    chances = np.where(is_clear, np.log10(2 * half / each), 0)
    sums = zip(
        units,
        (is_multiple & is_clear).sum(axis=1),
        is_clear.sum(axis=1),
        chances,
        is_clear,
        strict=True,
    )
    results = [
        (unit, int(fits), int(count), float(chance[clear].sum()))
        for unit, fits, count, chance, clear in sums
        if count >= MIN_FIGURES
    ]
    return [
        (
            first,
            column_name,
            name,
            unit,
            fits,
            count,
            chance,
            _list_others(results, unit) if kind == "cycles" else "",
        )
        for unit, fits, count, chance in results
    ]


def _list_others(results: list[tuple[str, int, int, float]], unit: str) -> str:
    others = [
        f"{fits} at {other.rpartition(' at ')[2]}" for other, fits, *_ in results if other != unit
    ]
    return ", ".join(others)
