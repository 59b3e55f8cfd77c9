"""Score the committed predictions of table 5.5 of arXiv:1912.03413 against its figures, as they
stand.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Protocol

from tabulate import tabulate

from benchmarks.emulator.blind.predictions import BATCHES, CONVOLUTIONS, FOLDER
from benchmarks.processes import ROOT

FIGURES = ROOT / "raw" / "independent" / "citadel-2019.csv"
TABLE = "table 5.5,"
MODELS: Mapping[str, str] = {
    "time_ms": "emulator",
    "roofline_ms": "roofline",
    "grid_bsp_ms": "grid BSP",
}
WORST = 12
WORST_HEADER = ("network", "layer", "batch", "TFLOP/s, measured", "predicted", "error of the time")
OPERATIONS_PER_MAC = 2
Key = tuple[str, str, int]
"""Network, layer and batch."""


class Scored(Protocol):
    """Whatever has signed errors by the column of the committed predictions."""

    @property
    def errors(self) -> Mapping[str, float]: ...


@dataclass(frozen=True, slots=True)
class BlindRow:
    """A figure of the table and the prediction of it; errors are signed shares of the measured
    time.
    """

    network: str
    layer: str
    batch: int
    groups: int
    memory_verdict: str
    tflops: float
    """As printed."""
    predicted_tflops: float
    errors: Mapping[str, float]
    """By the column of the committed predictions."""
    in_band: bool


def score_convolutions() -> list[BlindRow]:
    """Return every convolution that has both a figure and a half-precision prediction, in printed
    order.

    The table prints operations a second: the time is the committed count of operations over them. A
    max-pool has no committed count, and is not scored.
    """
    with (FOLDER / f"{CONVOLUTIONS}.csv").open(encoding="utf-8", newline="") as file:
        predicted = {
            _get_key(row): row for row in csv.DictReader(file) if row["precision"] == "half"
        }
    rows = []
    for key, tflops in read_figures().items():
        row = predicted[key]
        if not (operations := OPERATIONS_PER_MAC * int(row["macs"])):
            continue
        measured_ms = operations / tflops / 1e9
        times = {name: float(row[name]) for name in MODELS}
        errors = {name: time / measured_ms - 1 for name, time in times.items()}
        in_band = float(row["time_ms_low"]) <= measured_ms <= float(row["time_ms_high"])
        rows.append(
            BlindRow(
                *key,
                int(row["groups"]),
                row["memory_verdict"],
                tflops,
                float(row["tflops"]),
                errors,
                in_band,
            )
        )
    return rows


def read_figures() -> dict[Key, float]:
    """Return the TFLOP/s that the table prints, by network, layer and batch."""
    figures = {}
    with FIGURES.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if TABLE in line["place"] and line["operation"] == "convolution":
                shape = dict(pair.split("=") for pair in line["shape"].split())
                figures[shape["network"].replace("_", " "), shape["layer"], int(shape["batch"])] = (
                    float(line["value"])
                )
    return figures


def _get_key(row: Mapping[str, str]) -> Key:
    return row["network"], row["layer"], int(row["batch"])


def format_scores(rows: Sequence[BlindRow]) -> str:
    """Return the tables of the scores as Markdown: by group of rows, and the largest errors."""
    networks = dict.fromkeys(row.network for row in rows)
    groups: dict[str, list[BlindRow]] = {
        "all": list(rows),
        **{f"batch {batch}": [row for row in rows if row.batch == batch] for batch in BATCHES},
        **{name: [row for row in rows if row.network == name] for name in networks},
        "one group": [row for row in rows if row.groups == 1],
        "32 groups": [row for row in rows if row.groups > 1],
    }
    header = [
        "layers",
        "figures",
        *(f"{name}: {what}" for name in MODELS.values() for what in ("median", "mean", "max")),
    ]
    table = [[name, len(group), *summarise(group)] for name, group in groups.items() if group]
    worst = sorted(rows, key=lambda row: -abs(row.errors["time_ms"]))[:WORST]
    worst_table = [
        [
            row.network,
            row.layer,
            row.batch,
            row.tflops,
            f"{row.predicted_tflops:.3g}",
            f"{100 * row.errors['time_ms']:+.0f} %",
        ]
        for row in worst
    ]
    slow = sum(row.errors["time_ms"] > 0 for row in rows)
    return (
        f"{format_table(table, header)}\n\n{slow} of {len(rows)} predicted times are too long."
        f" {sum(row.in_band for row in rows)} measured ones are within the predicted band. The"
        f" largest errors:\n\n{format_table(worst_table, WORST_HEADER)}\n"
    )


def summarise(rows: Sequence[Scored]) -> list[str]:
    """Return median, mean and maximum of the absolute errors of each model."""
    functions: Iterable[Callable[[list[float]], float]] = (median, mean, max)
    return [
        f"{function([abs(row.errors[name]) for row in rows]):.1%}".replace("%", " %")
        for name in MODELS
        for function in functions
    ]


def format_table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Return a Markdown table whose cells are not changed."""
    return str(tabulate(rows, headers=header, tablefmt="pipe", disable_numparse=True))
