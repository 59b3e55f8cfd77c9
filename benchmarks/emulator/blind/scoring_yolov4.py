"""Score the committed predictions of YOLOv4-P5 on one GC200 against the figures of Heidelberg, as
they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.emulator.blind.predictions import FOLDER, YOLOV4, read_lines
from benchmarks.emulator.blind.scoring import (
    Verdict,
    count_slow,
    find_worst,
    format_error,
    format_table,
    judge,
    list_columns,
    summarise,
)
from benchmarks.processes import ROOT

FIGURES = ROOT / "raw" / "independent" / "yolov4-heidelberg.csv"
CHIP = "GC200"
THROUGHPUT = "throughput"
LATENCY = "latency"
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


class Setup(NamedTuple):
    """What a figure was measured with, as the predictions name it."""

    file: str
    iterations: int
    batch: int
    size: int
    precision: str


class BlindFigure(NamedTuple):
    """A figure and the prediction of its time of a batch."""

    figure: str
    setup: Setup
    fits: bool
    measured_ms: float
    predicted_ms: float
    verdict: Verdict


def read_figures() -> Iterator[tuple[Setup, str, float]]:
    """Yield set-up, THROUGHPUT or LATENCY, and the figure as printed: images a second, or
    milliseconds.
    """
    for line in read_lines(FIGURES):
        if line["chip"] == CHIP and line["metric"] in METRICS:
            iterations, run = line["conditions"].split("; ")
            setup = Setup(
                run.split()[-1],
                int(iterations.split()[0]),
                int(line["batch_size"]),
                int(line["variant"].split("x")[0]),
                line["precision"],
            )
            yield setup, METRICS[line["metric"]], float(line["value"])


def score_yolov4() -> list[BlindFigure]:
    """Return every figure that gives the time of a batch with its prediction, in printed order.

    A throughput gives the period of a batch, in which the host's part of a call counts. A latency
    gives the time of a batch if a call has one device iteration; with several it counts the wait
    for the others, and is not scored.
    """
    predicted = {}
    for row in read_lines(FOLDER / f"{YOLOV4}.csv"):
        setup = Setup(
            row["source_file"],
            int(row["device_iterations"]),
            int(row["micro_batch"]),
            int(row["image_size"]),
            row["precision"],
        )
        predicted[setup] = row
    scored = []
    for setup, figure, value in read_figures():
        if figure == LATENCY and setup.iterations > 1:
            continue
        row = predicted[setup]
        measured = value if figure == LATENCY else 1000 * setup.batch / value
        fits = row["memory_verdict"] != DOES_NOT_FIT
        verdict = judge(row, measured)
        scored.append(BlindFigure(figure, setup, fits, measured, float(row["time_ms"]), verdict))
    return scored


def format_yolov4(rows: Sequence[BlindFigure]) -> str:
    """Return the tables of the scores as Markdown: by group of figures, and the largest errors."""
    groups: dict[str, list[BlindFigure]] = {}
    slow = []
    for figure in METRICS.values():
        every = [row for row in rows if row.figure == figure]
        groups[f"{figure}, all"] = every
        slow.append(f"{count_slow(every)} of {len(every)} by {figure}")
    for row in rows:
        calls = "one device iteration"
        if row.setup.iterations > 1:
            calls = f"{row.setup.iterations} device iterations"
        groups.setdefault(f"{row.figure}, {calls}, {row.setup.precision}", []).append(row)
    table = []
    for name, group in sorted(groups.items()):
        held = sum(row.verdict.in_band for row in group)
        table.append([name, len(group), *summarise(group), held])
    worst = []
    for row in find_worst(rows):
        setup = row.setup
        cells = [row.figure, setup.size, setup.batch, setup.precision, setup.iterations]
        times = [f"{row.measured_ms:.3g}", f"{row.predicted_ms:.3g}"]
        worst.append([*cells, *times, format_error(row)])
    too_large = sum(not row.fits for row in rows)
    return (
        f"{format_table(table, ['figures', 'n', *list_columns(), 'in band'])}\n\n"
        f"Predicted times that are too long: {' and '.join(slow)}. {too_large}"
        " figures are of set-ups that are predicted not to fit. The largest"
        f" errors:\n\n{format_table(worst, WORST_HEADER)}\n"
    )
