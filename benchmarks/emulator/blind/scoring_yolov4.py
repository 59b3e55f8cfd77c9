"""Score the committed predictions of YOLOv4-P5 on one GC200 against the figures of Heidelberg, as
they stand.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.emulator.blind.predictions import FOLDER, YOLOV4
from benchmarks.emulator.blind.scoring import MODELS, WORST, format_table, summarise
from benchmarks.processes import ROOT

FIGURES = ROOT / "raw" / "independent" / "yolov4-heidelberg.csv"
CHIP = "GC200"
THROUGHPUT, LATENCY = "throughput", "latency"
METRICS: Mapping[str, str] = {"throughput": THROUGHPUT, "latency of a batch": LATENCY}
DOES_NOT_FIT = "DOES-NOT-FIT"
WORST_HEADER = (
    "figure",
    "pixels",
    "batch",
    "precision",
    "device iterations",
    "ms, measured",
    "predicted",
    "error",
)
Key = tuple[str, str, str, str, str]
"""File, device iterations, batch, image size and precision, as the predictions name them."""


@dataclass(frozen=True, slots=True)
class BlindFigure:
    """A figure and the prediction of its time of a batch; errors are signed shares of the measured
    time.
    """

    figure: str
    file: str
    iterations: int
    batch: int
    size: int
    precision: str
    memory_verdict: str
    measured_ms: float
    predicted_ms: float
    errors: Mapping[str, float]
    """By the column of the committed predictions."""
    in_band: bool


def score_yolov4() -> list[BlindFigure]:
    """Return every figure that gives the time of a batch with its prediction, in printed order.

    A throughput gives the period of a batch, in which the host's part of a call counts. A latency
    gives the time of a batch if a call has one device iteration; with several it counts the wait
    for the others, and is not scored.
    """
    with (FOLDER / f"{YOLOV4}.csv").open(encoding="utf-8", newline="") as file:
        predicted = {_get_key(row): row for row in csv.DictReader(file)}
    return list(_score(predicted))


def read_figures() -> Iterator[tuple[Key, str, float]]:
    """Yield set-up, THROUGHPUT or LATENCY, and the figure as printed: images a second, or
    milliseconds.
    """
    with FIGURES.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["chip"] != CHIP or line["metric"] not in METRICS:
                continue
            iterations, run = line["conditions"].split("; ")
            size = line["variant"].split("x")[0]
            key = (
                run.split()[-1],
                iterations.split()[0],
                line["batch_size"],
                size,
                line["precision"],
            )
            yield key, METRICS[line["metric"]], float(line["value"])


def _score(predicted: Mapping[Key, Mapping[str, str]]) -> Iterator[BlindFigure]:
    for key, figure, value in read_figures():
        row, (file, iterations, batch, size, precision) = predicted[key], key
        if figure == LATENCY and int(iterations) > 1:
            continue
        measured = value if figure == LATENCY else 1000 * int(batch) / value
        errors = {name: float(row[name]) / measured - 1 for name in MODELS}
        in_band = float(row["time_ms_low"]) <= measured <= float(row["time_ms_high"])
        labels = (
            figure,
            file,
            int(iterations),
            int(batch),
            int(size),
            precision,
            row["memory_verdict"],
        )
        yield BlindFigure(*labels, measured, float(row["time_ms"]), errors, in_band)


def _get_key(row: Mapping[str, str]) -> Key:
    names = ("source_file", "device_iterations", "micro_batch", "image_size", "precision")
    file, iterations, batch, size, precision = (row[name] for name in names)
    return file, iterations, batch, size, precision


def format_yolov4(rows: Sequence[BlindFigure]) -> str:
    """Return the tables of the scores as Markdown: by group of figures, and the largest errors."""
    groups = {
        f"{figure}, all": [row for row in rows if row.figure == figure]
        for figure in METRICS.values()
    }
    for row in rows:
        calls = (
            "one device iteration" if row.iterations == 1 else f"{row.iterations} device iterations"
        )
        groups.setdefault(f"{row.figure}, {calls}, {row.precision}", []).append(row)
    table = [
        [name, len(group), *summarise(group), sum(row.in_band for row in group)]
        for name, group in sorted(groups.items())
    ]
    header = (
        "figures",
        "n",
        *(f"{name}: {what}" for name in MODELS.values() for what in ("median", "mean", "max")),
        "in band",
    )
    worst = sorted(rows, key=lambda row: -abs(row.errors["time_ms"]))[:WORST]
    places = [
        [
            *(row.figure, row.size, row.batch, row.precision, row.iterations),
            *(
                f"{row.measured_ms:.3g}",
                f"{row.predicted_ms:.3g}",
                f"{100 * row.errors['time_ms']:+.0f} %",
            ),
        ]
        for row in worst
    ]
    slow = " and ".join(
        f"{sum(row.errors['time_ms'] > 0 for row in groups[f'{name}, all'])} of"
        f" {len(groups[f'{name}, all'])} by {name}"
        for name in METRICS.values()
    )
    too_large = sum(row.memory_verdict == DOES_NOT_FIT for row in rows)
    return (
        f"{format_table(table, header)}\n\nPredicted times that are too long: {slow}. {too_large}"
        " figures are of set-ups that are predicted not to fit. The largest"
        f" errors:\n\n{format_table(places, WORST_HEADER)}\n"
    )
