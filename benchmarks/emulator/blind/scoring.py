"""Score the committed predictions of table 5.5 of arXiv:1912.03413 against its figures, as they
stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Protocol, TypeVar

from tabulate import tabulate

from benchmarks.emulator.blind.predictions import BATCHES, CONVOLUTIONS, FOLDER, read_lines
from benchmarks.processes import ROOT

FIGURES = ROOT / "raw" / "independent" / "citadel-2019.csv"
TABLE = "table 5.5,"
MODELS: Mapping[str, str] = {
    "time_ms": "emulator",
    "roofline_ms": "roofline",
    "grid_bsp_ms": "grid BSP",
}
STATISTICS: Mapping[str, Callable[[list[float]], float]] = {
    "median": median,
    "mean": mean,
    "max": max,
}
WORST = 12
WORST_HEADER = ("network", "layer", "batch", "TFLOP/s, measured", "predicted", "error of the time")
OPERATIONS_PER_MAC = 2
Key = tuple[str, str, int]
"""Network, layer and batch."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far a committed prediction is from a measured time."""

    errors: Mapping[str, float]
    """Signed shares of the measured time, by the column of the committed predictions."""
    in_band: bool


class Scored(Protocol):
    """A figure with the verdict on its prediction."""

    @property
    def verdict(self) -> Verdict: ...


Row = TypeVar("Row", bound=Scored)


@dataclass(frozen=True, slots=True)
class BlindRow:
    """A figure of the table, as printed, and the prediction of it."""

    network: str
    layer: str
    batch: int
    groups: int
    tflops: float
    predicted_tflops: float
    verdict: Verdict


def judge(prediction: Mapping[str, str], measured_ms: float) -> Verdict:
    """Compare a committed prediction with a measured time."""
    errors = {name: float(prediction[name]) / measured_ms - 1 for name in MODELS}
    low = float(prediction["time_ms_low"])
    high = float(prediction["time_ms_high"])
    return Verdict(errors, low <= measured_ms <= high)


def score_convolutions() -> list[BlindRow]:
    """Return every convolution that has both a figure and a half-precision prediction, in printed
    order.

    The table prints operations a second: the time is the committed count of operations over them. A
    max-pool has no committed count, and is not scored.
    """
    figures = read_figures()
    predicted = {}
    for row in read_lines(FOLDER / f"{CONVOLUTIONS}.csv"):
        if row["precision"] == "half":
            predicted[row["network"], row["layer"], int(row["batch"])] = row
    rows = []
    for key, tflops in figures.items():
        row = predicted[key]
        operations = OPERATIONS_PER_MAC * int(row["macs"])
        if operations:
            verdict = judge(row, operations / tflops / 1e9)
            groups = int(row["groups"])
            rows.append(BlindRow(*key, groups, tflops, float(row["tflops"]), verdict))
    return rows


def read_figures() -> dict[Key, float]:
    """Return the TFLOP/s that the table prints, by network, layer and batch."""
    figures = {}
    for line in read_lines(FIGURES):
        if TABLE in line["place"] and line["operation"] == "convolution":
            shape = dict(pair.split("=") for pair in line["shape"].split())
            network = shape["network"].replace("_", " ")
            figures[network, shape["layer"], int(shape["batch"])] = float(line["value"])
    return figures


def format_scores(rows: Sequence[BlindRow]) -> str:
    """Return the tables of the scores as Markdown: by group of rows, and the largest errors."""
    groups: dict[str, list[BlindRow]] = {"all": list(rows)}
    for batch in BATCHES:
        groups[f"batch {batch}"] = [row for row in rows if row.batch == batch]
    for row in rows:
        groups.setdefault(row.network, []).append(row)
    groups["one group"] = [row for row in rows if row.groups == 1]
    groups["32 groups"] = [row for row in rows if row.groups > 1]
    table = [[name, len(group), *summarise(group)] for name, group in groups.items() if group]
    worst = []
    for row in find_worst(rows):
        predicted = f"{row.predicted_tflops:.3g}"
        error = format_error(row)
        worst.append([row.network, row.layer, row.batch, row.tflops, predicted, error])
    held = sum(row.verdict.in_band for row in rows)
    return (
        f"{format_table(table, ['layers', 'figures', *list_columns()])}\n\n"
        f"{count_slow(rows)} of {len(rows)} predicted times are too long."
        f" {held} measured ones are within the predicted band. The"
        f" largest errors:\n\n{format_table(worst, WORST_HEADER)}\n"
    )


def list_columns() -> list[str]:
    """List the names of what `summarise` returns."""
    return [f"{name}: {statistic}" for name in MODELS.values() for statistic in STATISTICS]


def summarise(rows: Sequence[Scored]) -> list[str]:
    """Return median, mean and maximum of the absolute errors of each model."""
    cells = []
    for name in MODELS:
        sizes = [abs(row.verdict.errors[name]) for row in rows]
        for compute in STATISTICS.values():
            cells.append(f"{100 * compute(sizes):.1f} %")
    return cells


def find_worst(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the largest errors, the largest first."""
    return sorted(rows, key=lambda row: -abs(row.verdict.errors["time_ms"]))[:WORST]


def format_error(row: Scored) -> str:
    return f"{100 * row.verdict.errors['time_ms']:+.0f} %"


def count_slow(rows: Sequence[Scored]) -> int:
    """Count the predicted times that are too long."""
    return sum(row.verdict.errors["time_ms"] > 0 for row in rows)


def format_table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Return a Markdown table whose cells are not changed."""
    return str(tabulate(rows, headers=header, tablefmt="pipe", disable_numparse=True))
