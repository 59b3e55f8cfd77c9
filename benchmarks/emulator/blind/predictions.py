"""Predict rows before their published figures are read: convolution layers on a GC2, YOLOv4-P5 on a
GC200.

`python -m benchmarks.emulator.blind` repeats the predictions with the present model and compares
them with the committed ones, which stay as they were written. The figures come in later and score
the committed predictions.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import onnx
from ipu_results.emulator.check.scoring import estimate_grid, fit_bsp, sum_work
from ipu_results.emulator.codelets import compute_peak
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.prediction import MS, Prediction, predict
from ipu_results.emulator.settings import Protocol, load_target_file, select_protocol
from ipu_results.emulator.target import Fit, Target, load_calibration
from ipu_results.networks.builder import GraphBuilder

from benchmarks.emulator.accuracy import load_rows
from benchmarks.emulator.blind.yolov4 import build_yolov4

FOLDER = Path(__file__).parent
CONVOLUTIONS, YOLOV4 = "convolutions", "yolov4"
SHAPES: Mapping[str, str] = {
    name: f"{name.removesuffix('s')}_shapes.csv" for name in (CONVOLUTIONS, YOLOV4)
}
MACHINES: Mapping[tuple[str, str], str] = {
    (CONVOLUTIONS, "half"): "gc2-default.toml",
    (CONVOLUTIONS, "single"): "gc2-fp32.toml",
    (YOLOV4, "half"): "gc200.toml",
    (YOLOV4, "single"): "gc200-fp32.toml",
}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
DIGITS = 6
TIMES = (
    "time_ms",
    "time_ms_low",
    "time_ms_high",
    "items_per_s",
    "tflops",
    "roofline_ms",
    "grid_bsp_ms",
)
Row = dict[str, Any]


def predict_set(name: str) -> list[Row]:
    """Predict all rows of CONVOLUTIONS or YOLOV4."""
    return list(_predict_convolutions() if name == CONVOLUTIONS else _predict_yolov4())


def read_shapes(name: str) -> list[Row]:
    """Read the shapes of a set: numbers as such, names as text."""
    records = csv.DictReader(io.StringIO((FOLDER / SHAPES[name]).read_text(encoding="utf-8")))
    return [
        {key: int(value) if value.isdigit() else value for key, value in record.items()}
        for record in records
    ]


def format_rows(rows: Sequence[Row]) -> str:
    """Return the text of a predictions file. Numbers have DIGITS significant digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(
            [f"{value:.{DIGITS}g}" if isinstance(value, float) else value for value in row.values()]
        )
    return out.getvalue()


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def load_machine(set_: str, precision: str) -> Target:
    return load_target_file(FOLDER / MACHINES[set_, precision])


@cache
def fit_grid() -> Fit:
    """Fit the broadcast-grid baseline on the six C2 rows, as in the validation."""
    return fit_bsp(estimate_grid, [row for row in load_rows() if row.set == "calibration"])


# Convolution layers


def _predict_convolutions() -> Iterator[Row]:
    """Predict the time on the chip alone: a forward pass whose data are in its memory."""
    shapes = read_shapes(CONVOLUTIONS)
    for at, shape in enumerate(shapes):
        follower = shapes[at + 1] if at + 1 < len(shapes) else None
        size = (
            follower["input_size"] if follower and follower["network"] == shape["network"] else None
        )
        padding = choose_padding(shape["kernel"], shape["input_size"], shape["stride"], size)
        model = build_layer(
            padding=padding, **{key: value for key, value in shape.items() if key != "network"}
        )
        for precision in ("half", "single"):
            machine = load_machine(CONVOLUTIONS, precision)
            path = select_protocol("paper", machine)
            for batch in BATCHES:
                (prediction,) = predict(partial(read_program, model), machine, [batch], path)
                labels = {**shape, "padding": padding, "batch": batch, "precision": precision}
                yield {**labels, **_describe(prediction, model, machine, path, on_chip=True)}


def choose_padding(kernel: int, size: int, stride: int, following: int | None) -> int:
    """Choose no padding where only that gives the next layer's input size, else half the kernel."""
    half = kernel // 2
    sizes = {padding: (size + 2 * padding - kernel) // stride + 1 for padding in (half, 0)}
    return (
        0 if following is not None and sizes[half] != following and sizes[0] == following else half
    )


def build_layer(
    layer: str,
    kernel: int,
    input_size: int,
    in_channels: int,
    out_channels: int,
    stride: int,
    groups: int,
    padding: int,
) -> onnx.ModelProto:
    """Build a network of one convolution, or of one max-pool where the name says so."""
    graph = GraphBuilder(None)
    x = graph.add_input("image", (in_channels, input_size, input_size))
    window = {"kernel_shape": [kernel] * 2, "pads": [padding] * 4, "strides": [stride] * 2}
    if layer.startswith("MaxPool"):
        y = graph.add_node("MaxPool", layer, x, **window)
    else:
        weights = graph.add_drawn(
            f"{layer}.weight", (out_channels, in_channels // groups, kernel, kernel), 1.0
        )
        y = graph.add_node("Conv", layer, x, weights, group=groups, **window)
    size = (input_size + 2 * padding - kernel) // stride + 1
    return graph.build_model(layer, y, (out_channels, size, size))


# YOLOv4


def _predict_yolov4() -> Iterator[Row]:
    """Predict a call of the host: one batch alone, or several from prefetched data, one after
    another.
    """
    for shape in read_shapes(YOLOV4):
        machine, model = load_machine(YOLOV4, shape["precision"]), build_yolov4(shape["image_size"])
        several = shape["device_iterations"] > 1
        path = replace(
            select_protocol("pytorch" if several else "lowest-latency", machine), instances=1
        )
        (prediction,) = predict(partial(read_program, model), machine, [shape["micro_batch"]], path)
        described = _describe(prediction, model, machine, path, on_chip=False)
        call = shape["device_iterations"] * prediction.timing.period * MS
        yield {**shape, **described, "device_ms": prediction.device_ms, "call_ms": call}


# Both


def _describe(
    prediction: Prediction,
    model: onnx.ModelProto,
    machine: Target,
    path: Protocol,
    *,
    on_chip: bool,
) -> Row:
    """Return the model's time of a batch with its band, and that of a roofline and of a
    broadcast-grid BSP.
    """
    program = read_program(model, prediction.batch_size)
    calibration, cycles, steps = (
        load_calibration(),
        prediction.schedule.cycles,
        prediction.schedule.supersteps,
    )
    band = [
        (cycles + steps * fit.superstep) / machine["clock"]
        + (0 if on_chip else prediction.timing.protocol)
        for fit in (calibration.fit, *calibration.ends)
    ]
    work, count = sum_work(program, machine, estimate_grid)
    host = 0.0 if on_chip else prediction.timing.protocol
    seconds = band[0]
    macs = program.macs
    values = (
        *(
            seconds * MS,
            min(band) * MS,
            max(band) * MS,
            prediction.batch_size / seconds,
            2 * macs / seconds / 1e12,
        ),
        *(
            macs / compute_peak(machine) * MS,
            ((work + count * fit_grid().superstep) / machine["clock"] + host) * MS,
        ),
    )
    plans = {step.plan.vertex for step in prediction.schedule.steps if step.plan}
    return {
        "macs": macs,
        **dict(zip(TIMES, values, strict=True)),
        "supersteps": steps,
        "vertex": " ".join(sorted(plans)) if on_chip else "",
        "memory_verdict": prediction.memory_verdict,
        "protocol": "on chip" if on_chip else path.name,
        "input_bits": 0 if on_chip else path.input_bits,
    }
