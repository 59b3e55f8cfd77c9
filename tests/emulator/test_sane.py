"""Predictions of 500 random graphs are never absurd: larger is not faster, Bow is not slower."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial

import onnx
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.networks.builder import Flow, GraphBuilder
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.target import load_target

GRAPHS = 500
TOLERANCE = 0.02  # a larger network may be this much faster, by how its parts are rounded
SEED = 1
CHANNELS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 31, 32, 48, 64, 100, 128, 192, 256, 511, 768, 1024)
IMAGE_KINDS = ("conv", "conv", "depthwise", "grouped", "Relu", "Swish", "Add", "pool")
TEXT_KINDS = ("dense", "attention", "norm", "Relu", "Add")


@dataclass(frozen=True)
class Design:
    """A random network: its layers are drawn from `seed`, its sizes are stated."""

    seed: int
    text: bool
    channels: int
    length: int
    """Tokens of a sequence, or pixels of a side."""
    batch: int


def draw_design(seed: int) -> Design:
    draw = random.Random(f"{SEED} {seed}")
    text = draw.random() < 0.5
    channels = draw.choice(CHANNELS)
    if text:
        return Design(seed, text, channels, draw.randint(1, 1000), draw.randint(1, 8))
    return Design(seed, text, channels, draw.randint(4, 100), draw.choice((1, 2, 3, 4, 8, 16)))


def build_graph(design: Design) -> onnx.ModelProto:
    """Build the network, whose kinds of layers do not depend on its sizes."""
    draw = random.Random(f"layers {design.seed}")
    graph = GraphBuilder(None)
    width = design.channels
    if design.text:
        flow = Flow(graph, graph.add_input("x", (design.length, width)), width)
        for at in range(draw.randint(1, 3)):
            _add_text_layer(flow, draw.choice(TEXT_KINDS), f"layer{at}")
        return graph.build_model("text", flow.x, (design.length, width), opset=17, ir=8)
    side = design.length
    flow = Flow(graph, graph.add_input("x", (width, side, side)), width)
    for at in range(draw.randint(1, 4)):
        kind = draw.choice(IMAGE_KINDS)
        kernel = draw.choice((1, 1, 3, 5))
        stride = 1
        if kind in ("conv", "depthwise", "grouped") and at < 2:
            stride = draw.choice((1, 1, 1, 2))
        _add_image_layer(flow, kind, f"layer{at}", kernel, stride)
        side = -(-side // stride)
    return graph.build_model("image", flow.x, (width, side, side))


def _add_image_layer(flow: Flow, kind: str, name: str, kernel: int, stride: int) -> None:
    width = flow.channels
    # two groups where there is an even number of channels at both sizes that are compared
    groups = {"conv": 1, "depthwise": width, "grouped": 1 if width % 2 else 2}
    if kind in groups:
        flow.convolve(name, width, kernel, groups=groups[kind], stride=stride)
    elif kind == "pool":
        flow.add("MaxPool", name, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    elif kind == "Swish":
        flow.swish(name)
    else:
        flow.add(kind, name, *[flow.x] * (kind == "Add"))


def _add_text_layer(flow: Flow, kind: str, name: str) -> None:
    width = flow.channels
    if kind == "dense":
        flow.add("MatMul", name, flow.graph.add_drawn(f"{name}.weight", (width, width), 1.0))
    elif kind == "attention":
        source = flow.x
        turned = flow.branch().add("Transpose", f"{name}.turned", perm=[0, 2, 1])
        flow.add("MatMul", f"{name}.scores", turned.x).add("Softmax", f"{name}.softmax", axis=-1)
        flow.add("MatMul", name, source)
    elif kind == "norm":
        scale = flow.graph.add_filled(f"{name}.scale", (width,), 1.0)
        flow.add("LayerNormalization", name, scale, axis=-1)
    else:
        flow.add(kind, name, *[flow.x] * (kind == "Add"))


def time_design(design: Design, machine: str = "m2000") -> Prediction:
    target = replace(load_target(machine), chips=1)
    network = partial(read_program, build_graph(design))
    return predict(network, target, [design.batch], "lowest-latency")[0]


def grow(design: Design) -> list[Design]:
    """Return the design with more channels, a greater length and a larger batch."""
    draw = random.Random(f"growth {design.seed}")
    return [
        replace(design, channels=2 * design.channels),
        replace(design, channels=design.channels + 2 * draw.randint(1, 40)),
        replace(design, length=design.length + draw.randint(1, design.length)),
        replace(design, batch=design.batch + draw.randint(1, design.batch)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_larger_is_not_faster_and_bow_not_slower(part: int) -> None:
    wrong = []
    for seed in range(part, GRAPHS, 10):
        design = draw_design(seed)
        usual = time_design(design)
        for larger in grow(design):
            latency_ms = time_design(larger).latency_ms
            if latency_ms < usual.latency_ms * (1 - TOLERANCE):
                wrong.append((larger, usual.latency_ms, latency_ms))
        bow = time_design(design, "bow-2000")
        if bow.latency_ms > usual.latency_ms:
            wrong.append((design, usual.latency_ms, bow.latency_ms))
        largest = max(step.temporary for step in usual.schedule.steps)
        if largest > usual.memory_available_bytes and usual.memory_verdict != "DOES-NOT-FIT":
            wrong.append((design, largest, usual.memory_available_bytes))
    assert wrong == []
