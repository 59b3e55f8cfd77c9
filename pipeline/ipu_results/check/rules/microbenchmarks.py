"""Compare the figures of a document of microbenchmarks with the device's limits and with each other.

Two figures agree if some values that round to what is printed do. A figure that is printed twice is two rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, build_flags, format_figure

THOUSAND = 300.0
"""A figure this many times its neighbours, or this part of them, is flagged: unit prefixes differ by 1000."""
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
"""What a figure that is a share of a total is multiplied by, by the end of its statistic: sizes of its shape."""
WORK = ["document_id", "device", "device_count", "operation", "shape", "precision", "metric", "conditions"]
SERIES = {"batches": "batch"}
LAST_SIZE = re.compile(r"(?:^| )(\w+)=(\d+)$")
Findings = list[tuple[str, str, str]]
"""Row, severity and message."""


def flag_microbenchmark_above_peak(data: Dataset) -> pd.DataFrame:
    """Flag an arithmetic throughput above the peak of all the row's chips at its precision.

    The peak is the datasheet's where the dataset has it, else the theoretical one that the document itself prints.
    """
    rows = data.compute_once(read_figures)
    rows = rows[rows["metric"] == "arithmetic throughput"]
    printed = rows[rows["statistic"] == THEORETICAL]
    bounds = printed["precision"].map(data.vocabulary.peaks)
    own = printed.groupby(["document_id", "device", bounds])["canonical_value"].max().to_dict()
    sheets = data.platforms.groupby("chip")[sorted(set(data.vocabulary.peaks.values()))].first().to_dict()
    findings: Findings = []
    for row in _list_rows(rows[rows["statistic"] != THEORETICAL]):
        bound = data.vocabulary.peaks.get(str(row.precision))
        if bound is None:
            continue
        peak = sheets[bound].get(row.device, np.nan)
        source = "the peak"
        if pd.isna(peak):
            peak, source = own.get((row.document_id, row.device, bound), np.nan), "the printed theoretical peak"
        count = 1 if pd.isna(row.device_count) else int(row.device_count)
        if row.canonical_value > peak * count:
            message = f"{format_figure(row.canonical_value)} TFLOP/s; {source} of {count} × {row.device} at "
            findings.append(
                (row.result_id, "error", f"{message}{row.precision} is {format_figure(float(peak) * count)}")
            )
    return _build("R30", findings)


def flag_thousandfold(data: Dataset) -> pd.DataFrame:
    """Flag a figure that is THOUSAND times its neighbours or more, or as small a part of them: a unit mistaken.

    Neighbours are the two nearest sizes in rows that differ in the last size of their shape only. A figure that grows
    with the size is compared after division by the size, too, and flagged if both ways agree.
    """
    rows = data.compute_once(read_figures)
    shapes = rows["shape"].fillna("")
    sizes = pd.to_numeric(shapes.str.extract(LAST_SIZE)[1]).astype("float64")
    rows = rows.assign(size=sizes, base=shapes.str.replace(LAST_SIZE, "", regex=True))
    rows = rows[rows["size"].gt(0) & (rows["canonical_value"] > 0)]
    keys = [name for name in WORK if name != "shape"]
    findings: Findings = []
    for series in _group(rows, [*keys, "statistic", "base"]):
        ordered = sorted(series, key=lambda row: row.size)
        for at, row in enumerate(ordered):
            start = min(max(at - 1, 0), max(len(ordered) - 3, 0))
            near = [other for other in ordered[start : start + 3] if other is not row]
            ratios = [row.canonical_value / other.canonical_value for other in near]
            both = [*ratios, *(ratio / (row.size / other.size) for ratio, other in zip(ratios, near, strict=True))]
            if near and (min(both) >= THOUSAND or max(both) <= 1 / THOUSAND):
                others = " and ".join(format_figure(other.canonical_value) for other in near)
                message = f"{row.raw} {row.unit}; the neighbouring sizes have {others} {row.canonical_unit}"
                findings.append((str(row.result_id), "warn", message))
    return _build("R31", findings)


def flag_two_figures_of_one_work(data: Dataset) -> pd.DataFrame:
    """Flag a figure that its document prints another time with another value, both for the same work."""
    findings: Findings = []
    for group in _group(data.compute_once(read_figures), [*WORK, "statistic"]):
        for row in group:
            other = next((other for other in group if _are_apart(_get_range(row), _get_range(other))), None)
            if other is not None:
                gap = row.canonical_value / other.canonical_value - 1 if other.canonical_value else np.inf
                message = f"{row.raw} {row.unit} here, {other.raw} {other.unit} at {other.place}"
                findings.append((row.result_id, _grade(gap), message))
    return _build("R32", findings)


def _group(rows: pd.DataFrame, names: Sequence[str]) -> list[list[Any]]:
    """Return the rows as tuples, in groups of equal columns; null equals null. Faster than a groupby of many groups."""
    groups: dict[Hashable, list[Any]] = defaultdict(list)
    keys = zip(*(rows[name].astype("str").tolist() for name in names), strict=True)
    for key, row in zip(keys, _list_rows(rows), strict=True):
        groups[key].append(row)
    return list(groups.values())


def _list_rows(rows: pd.DataFrame) -> list[Any]:
    """Return the rows as tuples. As objects, since Arrow's texts are converted one at a time otherwise."""
    return list(rows.astype(object).itertuples())


def flag_share_against_total(data: Dataset) -> pd.DataFrame:
    """Flag a figure per transfer, tile, core or operand that, times their number, is not the total of the same work."""
    rows = _list_rows(data.compute_once(read_figures))
    totals: dict[Hashable, list[Any]] = defaultdict(list)
    for row in rows:
        if not _find_parts(row):
            totals[_get_work(row)].append(row)
    findings: Findings = []
    for row in rows:
        parts = _find_parts(row)
        pairs = (pair.partition("=") for pair in str(row.shape).split())
        sizes = {name: int(value) for name, _, value in pairs if value.isdecimal()}
        if not parts or any(part not in sizes for part in parts):
            continue
        number = prod(sizes[part] for part in parts)
        low, high = _get_range(row)
        for total in totals[_get_work(row)]:
            if _are_apart((low * number, high * number), _get_range(total)):
                ratio = row.canonical_value * number / total.canonical_value
                message = f"{row.raw} {row.unit} × {number} is {_format_ratio(ratio)} {total.raw} {total.unit}"
                findings.append((row.result_id, _grade(ratio - 1), f"{message}, which {total.place} prints"))
                break
    return _build("R33", findings)


def flag_peak_against_series(data: Dataset) -> pd.DataFrame:
    """Flag a peak over sizes that is not the largest figure that the same document prints for these sizes."""
    rows = data.compute_once(read_figures)
    findings: Findings = []
    for words, name in SERIES.items():
        peaks = rows[rows["statistic"] == OVER + words]
        ends = rows["shape"].fillna("").str.extract(rf"^(.*) {name}=(\d+)$")
        series = rows.assign(base=ends[0], size=ends[1])[ends[1].notna()]
        keys = ["document_id", "device", "device_count", "operation", "precision", "metric"]
        largest = series.loc[series.groupby([*keys, "base"], dropna=False)["canonical_value"].idxmax()]
        known = {tuple(row[key] for key in [*keys, "base"]): row for _, row in largest.iterrows()}
        for _, row in peaks.iterrows():
            top = known.get(tuple(row[key] for key in [*keys, "shape"]))
            if top is not None and top["raw"] != row["raw"] and top["canonical_value"] != row["canonical_value"]:
                gap = row["canonical_value"] / top["canonical_value"] - 1
                message = f"{row['raw']} {row['unit']}; at {name} {top['size']} it is {top['raw']} ({top['place']})"
                findings.append((row["result_id"], _grade(gap), message))
    return _build("R34", findings)


def read_figures(data: Dataset) -> pd.DataFrame:
    """Return the rows with the figure as printed: `raw`, and `half`, half a unit of its last digit."""
    cells = data.cells.loc[data.cells["column_name"] == "value", ["result_id", "raw_text", "factor"]]
    rows = data.microbenchmarks.rename(columns={"microbenchmark_id": "result_id"})
    rows = rows.merge(cells.rename(columns={"raw_text": "raw"}), on="result_id", validate="1:1")
    decimals = rows["raw"].str.extract(r"\.(\d+)$")[0].str.len().fillna(0).astype("float64")
    return rows.assign(half=0.5 * 10.0**-decimals * rows["factor"])


def _get_range(row: Any) -> tuple[float, float]:
    """Return the least and the largest figure that round to the printed one."""
    value, half = float(row.canonical_value), float(row.half)
    return value - half * (1 + 1e-9), value + half * (1 + 1e-9)


def _are_apart(first: tuple[float, float], other: tuple[float, float]) -> bool:
    return first[1] < other[0] or other[1] < first[0]


def _find_parts(row: Any) -> Sequence[str]:
    statistic = row.statistic if isinstance(row.statistic, str) else ""
    return next((parts for words, parts in PARTS.items() if statistic.endswith(words)), ())


def _get_work(row: Any) -> Hashable:
    """Return what a total and its shares have in common: the table too, since totals differ between tables."""
    table = re.sub(r", column .*", "", row.place)
    return (table, *(str(getattr(row, name)) for name in WORK))


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
