"""Find whole numbers behind printed figures: cycles of a clock, items of a batch, counts behind a percentage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, build_flags, count_decimals, map_texts
from ipu_results.check.rules.microbenchmarks import read_figures
from ipu_results.ground.physics import GIGA, GIGA_PER_TERA

MIN_FIGURES = 3
CLEAR = 0.5  # a figure that accident makes a multiple more often says nothing
MAX_CHANCE = 1e-6  # of one column among all that are tried
COUNTS = range(2, 201)  # of what a percentage is a share of
NEAREST = 4  # doubles: a figure printed with all digits of a double was computed in some steps
SIZES = r"\bn=(\d+) k=(\d+) m=(\d+) tiles=(\d+)"  # of a matrix product on each tile
OVER_TILES = "mean over tiles"


def flag_whole_multiples(data: Dataset) -> pd.DataFrame:
    """Flag a column whose figures are all whole multiples of one unit, and what that unit is, at its first figure.

    Tried are cycles of each clock for times, and for rates with a known work (of a mean over tiles, cycles of all
    tiles), items of the row's batch for throughputs, and shares of up to 200 for percentages. A figure is a multiple if
    some value that rounds to it is. The chance is that of accident, times all columns and units that are tried.
    """
    tried = [test for column in _list_columns(data) for test in _try_units(data, column)]
    flags = []
    for result_id, column_name, name, unit, fits, count, chance, others in tried:
        if fits == count and chance + np.log10(len(tried)) < np.log10(MAX_CHANCE):
            rival = f", {others}" if others else ""
            message = (
                f"all {count} figures of {name} with digits enough are whole {unit}{rival}; the chance of that by "
                f"accident is 10^{chance + np.log10(len(tried)):.0f}, with {len(tried)} tests counted"
            )
            flags.append((result_id, column_name, message))
    rows = pd.DataFrame(flags, columns=["result_id", "column", "message"], dtype="str")
    return build_flags("R46", "info", rows, rows["column"].array, rows["message"].array)


def _list_columns(data: Dataset) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Return kind, name of the column, its name in words, and its figures: `value`, `half` of a last digit, `grain`."""
    rows = data.compute_once(read_figures)
    rows = rows.assign(value=rows["canonical_value"])
    sizes = map_texts(rows["shape"], lambda shapes: shapes.str.extract(SIZES).astype("float64"))
    seconds = 2 * sizes.prod(axis=1, skipna=False) / (rows["value"] * GIGA * GIGA_PER_TERA)
    is_work = (rows["metric"] == "arithmetic throughput") & seconds.notna()
    over_tiles = (rows["statistic"] == OVER_TILES).fillna(False)
    rows = rows.assign(
        half=rows["half"].where(~is_work, rows["half"] * seconds / rows["value"]),
        value=rows["value"].where(~is_work, seconds),
        grain=sizes[3].where(is_work & over_tiles, 1.0).fillna(1.0),
        kind=np.select([is_work | (rows["metric"] == "time"), rows["metric"] == "share"], ["cycles", "share"], ""),
    )
    series = ["document_id", "device", "metric", "statistic", "kind"]
    for (document, device, metric, *_, kind), own in rows[rows["kind"] != ""].groupby(series, dropna=False):
        yield kind, "value", f"{metric} of {device} ({document})", own
    for column, kind in (("throughput", "batch"), ("latency_ms", "cycles")):
        cells = data.printed_cells
        cells = cells[cells["column_name"] == column].drop_duplicates("row").set_index("row")
        rows = data.published.loc[cells.index, ["result_id", "document_id", "table_name", "batch_size", column]]
        scale = (rows[column] / cells["value"]) * (1e-3 if column == "latency_ms" else 1)
        half = 0.5 * 10.0 ** -count_decimals(cells["raw_text"])
        rows = rows.assign(value=cells["value"] * scale, half=half * scale, grain=rows["batch_size"])
        rows = rows[rows["grain"] > 1] if kind == "batch" else rows.assign(grain=1.0)
        for (document, table), own in rows.groupby(["document_id", "table_name"]):
            yield kind, column, f"{column} of {table} ({document})", own


def _try_units(data: Dataset, column: tuple[str, str, str, pd.DataFrame]) -> list[tuple[Any, ...]]:
    """Return for each unit of a column: the first row, the unit, how many figures fit, and the logarithm of chance."""
    kind, column_name, name, rows = column
    if len(rows) < MIN_FIGURES:
        return []
    summed = f" summed over {rows['grain'].max():.0f} tiles" if kind == "cycles" and rows["grain"].max() > 1 else ""
    clocks = sorted(set(data.platforms["clock_ghz"].dropna()))
    units: dict[str, Any] = {"cycles": {f"cycles{summed} at {clock} GHz": 1 / (clock * GIGA) for clock in clocks}}.get(
        kind, {}
    )
    units |= {"items of the batch": -1.0} if kind == "batch" else {}
    units |= {f"counts of {count}": 100 / count for count in COUNTS} if kind == "share" else {}
    value, half, grain = (rows[name].to_numpy(dtype="float64") for name in ("value", "half", "grain"))
    half = np.maximum(half, NEAREST * np.spacing(value))
    results = []
    for unit, size in units.items():
        each = grain if kind == "batch" else size / grain
        is_clear = 2 * half / each < CLEAR
        is_multiple = np.abs(value - np.round(value / each) * each) <= half * (1 + 1e-9)
        if (count := int(is_clear.sum())) >= MIN_FIGURES:
            results.append(
                (unit, int((is_multiple & is_clear).sum()), count, float(np.log10(2 * half / each)[is_clear].sum()))
            )
    first = rows["result_id"].iloc[0]
    return [
        (first, column_name, name, unit, fits, count, chance, _list_others(results, unit) if kind == "cycles" else "")
        for unit, fits, count, chance in results
    ]


def _list_others(results: list[tuple[str, int, int, float]], unit: str) -> str:
    others = [f"{fits} at {other.rpartition(' at ')[2]}" for other, fits, *_ in results if other != unit]
    return ", ".join(others)
