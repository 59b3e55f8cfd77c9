"""Compare the figures of a document of microbenchmarks with the device's limits and with each
other.

Two figures agree if some values that round to what is printed do. A figure that is printed twice is
two rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import (
    Dataset,
    build_flags,
    count_decimals,
    format_figure,
    map_texts,
    number_groups,
)

THOUSAND = 300.0
"""A figure this many times its neighbours, or this part of them, is flagged: unit prefixes differ
by 1000.
"""
CLEAR = 0.01
NEAR = 2.0  # a ratio within it is printed as a difference
"""A contradiction above this share is a warning, one below it is a remark."""
THEORETICAL = "theoretical"
OVER = "peak over "
PARTS: Mapping[str, Sequence[str]] = {
    "per transfer": ("transfers",),
    "per tile": ("tiles",),
    "per core": ("cores",),
    "per operand": ("operands_per_tile", "tiles"),
}
"""What a figure that is a share of a total is multiplied by, by the end of its statistic: sizes of
its shape.
"""
WORK = [
    "document_id",
    "chip",
    "chip_count",
    "operation",
    "shape",
    "precision_printed",
    "metric",
    "conditions",
]
SERIES = {"batches": "batch"}
SAME_SERIES = ["document_id", "chip", "chip_count", "operation", "precision_printed", "metric"]
LAST_SIZE = r"(?:^| )(\w+)=(\d+)$"
Findings = list[tuple[str, str, str]]
"""Row, severity and message."""


def flag_microbenchmark_above_peak(data: Dataset) -> pd.DataFrame:
    """Flag an arithmetic throughput above the peak of all the row's chips at its precision.

    The peak is the datasheet's where the dataset has it, else the theoretical one that the document
    itself prints.
    """
    rows = data.compute_once(read_figures)
    rows = rows[rows["metric"] == "arithmetic throughput"]
    printed = rows[rows["statistic"] == THEORETICAL]
    bounds = printed["precision_printed"].map(data.vocabulary.peaks)
    own = printed.groupby(["document_id", "chip", bounds])["canonical_value"].max().to_dict()
    sheets = (
        data.platforms.groupby("chip")[sorted(set(data.vocabulary.peaks.values()))]
        .first()
        .to_dict()
    )
    findings: Findings = []
    rows = rows.assign(
        bound=rows["precision_printed"].map(data.vocabulary.peaks),
        chip_count=rows["chip_count"].fillna(1),
    )
    rows = rows[rows["bound"].notna() & (rows["statistic"] != THEORETICAL)]
    for row in _list_rows(rows):
        peak = sheets[row.bound].get(row.chip, np.nan)
        source = "the peak"
        if np.isnan(peak):
            peak = own.get((row.document_id, row.chip, row.bound), np.nan)
            source = "the printed theoretical peak"
        if row.canonical_value > peak * row.chip_count:
            message = (
                f"{format_figure(row.canonical_value)} TFLOP/s; {source} of {row.chip_count} ×"
                f" {row.chip} at "
            )
            peak_of_all = format_figure(float(peak) * row.chip_count)
            findings.append(
                (row.result_id, "error", f"{message}{row.precision_printed} is {peak_of_all}")
            )
    return _build("R30", findings)


def flag_thousandfold(data: Dataset) -> pd.DataFrame:
    """Flag a figure that is THOUSAND times its neighbours or more, or as small a part of them: a
    unit mistaken.

    Neighbours are the two nearest sizes in rows that differ in the last size of their shape only. A
    figure that grows with the size is compared after division by the size, too, and flagged if both
    ways agree.
    """
    rows = data.compute_once(read_figures)
    rows = rows.join(map_texts(rows["shape"].fillna(""), _split_last_size))
    rows = rows[rows["size"].gt(0) & (rows["canonical_value"] > 0)]
    series = number_groups(
        *(rows[name] for name in WORK if name != "shape"), rows["statistic"], rows["base"]
    )
    order = np.lexsort((rows["size"], series))
    rows = rows.iloc[order]
    series = series[order]
    first, last = (np.searchsorted(series, series, side) for side in ("left", "right"))
    here = np.arange(len(rows))
    start = np.clip(np.minimum(here - 1, last - 3), first, None)
    near = [np.where((at < last) & (at != here), at, -1) for at in (start, start + 1, start + 2)]
    value = rows["canonical_value"].to_numpy()
    size = rows["size"].to_numpy()
    ratios = [np.where(at >= 0, value / value[at], np.nan) for at in near]
    ratios += [ratio / (size / size[at]) for ratio, at in zip(ratios, near, strict=True)]
    is_far = (np.fmin.reduce(ratios) >= THOUSAND) | (np.fmax.reduce(ratios) <= 1 / THOUSAND)
    findings: Findings = []
    for row, neighbours in zip(_list_rows(rows[is_far]), np.transpose(near)[is_far], strict=True):
        others = " and ".join(format_figure(float(value[at])) for at in neighbours if at >= 0)
        message = f"{row.raw} {row.unit}; the neighbouring sizes have {others} {row.canonical_unit}"
        findings.append((row.result_id, "warn", message))
    return _build("R31", findings)


def _split_last_size(shapes: pd.Series) -> pd.DataFrame:
    sizes = pd.to_numeric(shapes.str.extract(LAST_SIZE)[1]).astype("float64")
    return pd.DataFrame({"size": sizes, "base": shapes.str.replace(LAST_SIZE, "", regex=True)})


def flag_two_figures_of_one_work(data: Dataset) -> pd.DataFrame:
    """Flag a figure that its document prints another time with another value, both for the same
    work.
    """
    rows = data.compute_once(read_figures)
    rows = rows.assign(group=number_groups(*(rows[name] for name in [*WORK, "statistic"])))
    groups = rows.groupby("group")
    is_apart = groups["low"].transform("max") > groups["high"].transform("min")
    findings: Findings = []
    for group in _group(rows[is_apart], "group"):
        for row in group:
            other = next(
                (other for other in group if row.high < other.low or other.high < row.low), None
            )
            if other is not None:
                gap = (
                    row.canonical_value / other.canonical_value - 1
                    if other.canonical_value
                    else np.inf
                )
                message = f"{row.raw} {row.unit} here, {other.raw} {other.unit} at {other.place}"
                findings.append((row.result_id, _grade(gap), message))
    return _build("R32", findings)


def _group(rows: pd.DataFrame, name: str) -> list[list[Any]]:
    """Return the rows as tuples, in groups of one column."""
    groups: dict[Hashable, list[Any]] = defaultdict(list)
    for row in _list_rows(rows):
        groups[getattr(row, name)].append(row)
    return list(groups.values())


def _list_rows(rows: pd.DataFrame) -> list[Any]:
    """Return the rows as tuples.

    As objects, since Arrow's texts are converted one at a time otherwise.
    """
    return list(rows.astype(object).itertuples())


def flag_share_against_total(data: Dataset) -> pd.DataFrame:
    """Flag a figure per transfer, tile, core or operand that, times their number, is not the total
    of the same work.
    """
    rows = data.compute_once(read_figures)
    parts = map_texts(rows["statistic"].fillna(""), _find_parts)["parts"]
    # The table, too, since totals differ between tables.
    rows = rows.assign(parts=parts, table=rows["place"].str.replace(r", column .*", "", regex=True))
    rows = rows.assign(work=number_groups(*(rows[name] for name in [*WORK, "table"])))
    findings: Findings = []
    for work in _group(rows[rows["work"].isin(rows.loc[rows["parts"].notna(), "work"])], "work"):
        totals = [row for row in work if row.parts is None]
        for row in (row for row in work if row.parts is not None):
            pairs = (pair.partition("=") for pair in str(row.shape).split())
            sizes = {name: int(value) for name, _, value in pairs if value.isdecimal()}
            if any(part not in sizes for part in row.parts):
                continue
            number = prod(sizes[part] for part in row.parts)
            low = row.low * number
            high = row.high * number
            total = next((total for total in totals if high < total.low or total.high < low), None)
            if total is not None:
                ratio = row.canonical_value * number / total.canonical_value
                message = (
                    f"{row.raw} {row.unit} × {number} is {_format_ratio(ratio)} {total.raw}"
                    f" {total.unit}"
                )
                findings.append(
                    (row.result_id, _grade(ratio - 1), f"{message}, which {total.place} prints")
                )
    return _build("R33", findings)


def _find_parts(statistics: pd.Series) -> pd.DataFrame:
    parts = [
        next((parts for words, parts in PARTS.items() if text.endswith(words)), None)
        for text in statistics
    ]
    return pd.DataFrame({"parts": parts})


def flag_peak_against_series(data: Dataset) -> pd.DataFrame:
    """Flag a peak over sizes that is not the largest figure that the same document prints for these
    sizes.
    """
    rows = data.compute_once(read_figures)
    findings: Findings = []
    for words, name in SERIES.items():
        is_peak = (rows["statistic"] == OVER + words).fillna(False)
        own = rows[is_peak | rows["shape"].str.contains(f" {name}=", na=False)]
        is_peak = is_peak[own.index]
        ends = own["shape"].str.extract(rf"^(.*) {name}=(\d+)$")
        bases = ends[0].where(~is_peak, own["shape"])
        own = own.assign(
            same=number_groups(*(own[key] for key in SAME_SERIES), bases), size=ends[1]
        )
        peaks = own[is_peak]
        series = own[~is_peak & ends[1].notna()]
        largest = series.sort_values(
            "canonical_value", ascending=False, kind="stable"
        ).drop_duplicates("same")
        pairs = peaks.drop(columns="size").merge(largest, on="same", suffixes=("", "_there"))
        pairs = pairs[pairs["raw"] != pairs["raw_there"]]
        for row in _list_rows(pairs[pairs["canonical_value"] != pairs["canonical_value_there"]]):
            gap = row.canonical_value / row.canonical_value_there - 1
            message = (
                f"{row.raw} {row.unit}; at {name} {row.size} it is {row.raw_there}"
                f" ({row.place_there})"
            )
            findings.append((row.result_id, _grade(gap), message))
    return _build("R34", findings)


FIGURE_COLUMNS = [
    *WORK,
    *"result_id place statistic canonical_value canonical_unit unit raw half low high".split(),
]


def read_figures(data: Dataset) -> pd.DataFrame:
    """Return the rows with the figure as printed: `raw`, and `half`, half a unit of its last digit.

    `low` and `high` are the least and the largest figure that round to the printed one.
    """
    cells = data.cells.loc[
        data.cells["column_name"] == "value", ["result_id", "raw_text", "factor"]
    ]
    rows = data.microbenchmarks.rename(columns={"microbenchmark_id": "result_id"})
    rows = rows.merge(cells.rename(columns={"raw_text": "raw"}), on="result_id", validate="1:1")
    half = 0.5 * 10.0 ** -count_decimals(rows["raw"]) * rows["factor"]
    margin = half * (1 + 1e-9)
    value = rows["canonical_value"]
    return rows.assign(half=half, low=value - margin, high=value + margin)[FIGURE_COLUMNS]


def _format_ratio(ratio: float) -> str:
    """Return the ratio of two figures in words: as a difference where they are near each other."""
    if not 1 / NEAR < ratio < NEAR:
        return f"{format_figure(float(format(ratio, '.3g')))} times"
    return f"{abs(ratio - 1):.1%} {'above' if ratio > 1 else 'below'}"


def _grade(gap: float) -> str:
    return "warn" if abs(gap) >= CLEAR else "info"


def _build(rule: str, findings: Findings) -> pd.DataFrame:
    ids, severities, messages = ([entry[at] for entry in findings] for at in range(3))
    rows = pd.DataFrame({"result_id": pd.Series(ids, dtype="str")})
    return build_flags(rule, severities, rows, "value", messages)
