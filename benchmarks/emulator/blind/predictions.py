"""The rows that were predicted before their published figures were read: convolution layers on a
GC2, YOLOv4-P5 on a GC200.

The committed predictions stay as they were written, by the code of the commit that their sidecars
name. The figures came in later and score them.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from ipu_results.emulator.networks.builder import GraphBuilder
from ipu_results.emulator.settings import load_target_file
from ipu_results.emulator.target import Target

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
Row = dict[str, Any]


def read_shapes(name: str) -> list[Row]:
    """Read the shapes of a set: numbers as such, names as text."""
    rows = []
    for line in read_lines(FOLDER / SHAPES[name]):
        row: Row = dict(line)
        for key, text in line.items():
            if text.isdigit():
                row[key] = int(text)
        rows.append(row)
    return rows


def read_lines(path: Path) -> list[dict[str, str]]:
    """Read the lines of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def load_machine(set_: str, precision: str) -> Target:
    return load_target_file(FOLDER / MACHINES[set_, precision])


def choose_padding(kernel: int, size: int, stride: int, following: int | None) -> int:
    """Choose no padding where only that gives the next layer's input size, else half the kernel."""
    half = kernel // 2
    padded = (size + 2 * half - kernel) // stride + 1
    plain = (size - kernel) // stride + 1
    is_plain = following is not None and plain == following != padded
    return 0 if is_plain else half


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
