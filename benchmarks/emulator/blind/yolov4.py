"""Build YOLOv4-P5 by shapes alone, after Wang, Bochkovskiy and Liao 2020 (arXiv:2011.08036)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import onnx
from ipu_results.emulator.networks.builder import BatchNorm, Flow, GraphBuilder

NORM = BatchNorm()
# the first with Mish
OPSET = 18
IR = 8
CLASSES = 80
ANCHORS = 4
FIELDS = 5 + CLASSES  # box, objectness and classes of an anchor
# channels and residual blocks of each stage
BACKBONE = ((64, 1), (128, 3), (256, 15), (512, 15), (1024, 7))
POOLS = (5, 9, 13)
DETECTIONS = (300, 6)  # what non-maximum suppression returns of an image: boxes, score and class


@cache
def build_yolov4(size: int) -> onnx.ModelProto:
    """Build the network for square images of `size` pixels, a multiple of 32.

    Batch-norms follow a convolution, where they are folded, or a concatenation, where they are not.
    Boxes are decoded by a sigmoid over all fields. Non-maximum suppression is not modelled: a slice
    of its size stands for its result.
    """
    graph = GraphBuilder(None, folded=True)
    flow = Flow(graph, graph.add_input("image", (3, size, size)), 3)
    _add_layer(flow, "stem", 32, 3)
    levels = []
    for stage, (channels, blocks) in enumerate(BACKBONE):
        flow.prefix = ""
        _add_layer(flow, f"down{stage}", channels, 3, stride=2)
        flow.prefix = f"stage{stage}."
        _add_stage(flow, blocks)
        levels.append(flow.branch())
    small, medium, large = levels[2:]
    large = _add_pyramid(replace(large, prefix="spp."))
    medium = _add_up("up4.", medium, large, size // 16)
    small = _add_up("up3.", small, medium, size // 8)
    middle = _add_down("down4.", small, medium)
    low = _add_down("down5.", middle, large)
    boxes = [
        _add_head(replace(small, prefix="head3."), size // 8).x,
        _add_head(replace(middle, prefix="head4."), size // 16).x,
        _add_head(replace(low, prefix="head5."), size // 32).x,
    ]
    joined = graph.add_node("Concat", "boxes", *boxes, axis=1)
    ends = {"from": (0, 0), "to": DETECTIONS, "axes": (1, 2)}
    kept = graph.add_slice("detections", joined, **ends)
    return graph.build_model(f"yolov4-p5-{size}", kept, DETECTIONS, OPSET, IR)


def _add_layer(flow: Flow, name: str, channels: int, kernel: int = 1, stride: int = 1) -> None:
    flow.convolve(name, channels, kernel, stride=stride, norm=NORM).add("Mish", f"{name}.mish")


def _join(flow: Flow, other: Flow, channels: int) -> Flow:
    """Join two branches of a cross-stage block: their own batch-norm, activation and convolution."""
    flow.add("Concat", "cat", other.x, axis=1)
    flow.channels += other.channels
    # This norm is not folded. Its parameters are known by shape alone.
    name = f"{flow.prefix}cat.norm"
    roles = ("scale", "shift", "mean", "variance")
    shape = (flow.channels,)
    parameters = [flow.graph.add_filled(f"{name}.{role}", shape, 1.0) for role in roles]
    flow.add("BatchNormalization", "cat.norm", *parameters, epsilon=NORM.epsilon)
    _add_layer(flow.add("Mish", "cat.mish"), "join", channels)
    return flow


def _add_residuals(flow: Flow, blocks: int, *, shortcut: bool) -> None:
    for block in range(blocks):
        start = flow.x
        _add_layer(flow, f"{block}.reduce", flow.channels)
        _add_layer(flow, f"{block}.conv", flow.channels, 3)
        if shortcut:
            end = flow.x
            flow.x = start
            flow.add("Add", f"{block}.add", end)


def _add_stage(flow: Flow, blocks: int) -> None:
    """Add a cross-stage block of the backbone: half of the channels pass the residual blocks."""
    channels = flow.channels
    skip = flow.branch()
    _add_layer(flow, "in", channels // 2)
    _add_residuals(flow, blocks, shortcut=True)
    flow.convolve("out", channels // 2)
    _join(flow, skip.convolve("skip", channels // 2), channels)


def _add_neck(flow: Flow, channels: int) -> Flow:
    """Add a cross-stage block of the neck, three blocks without shortcut."""
    _add_layer(flow, "in", channels)
    skip = flow.branch()
    _add_residuals(flow, 3, shortcut=False)
    return _join(flow, skip.convolve("skip", channels), channels)


def _add_pyramid(flow: Flow) -> Flow:
    """Add the spatial pyramid pooling of 1024 channels."""
    half = flow.channels // 2
    skip = flow.branch().convolve("skip", half)
    _add_layer(flow, "in", half)
    _add_layer(flow, "conv1", half, 3)
    _add_layer(flow, "conv2", half)
    pools = []
    for side in POOLS:
        window = {"kernel_shape": [side] * 2, "pads": [side // 2] * 4, "strides": [1, 1]}
        pools.append(flow.branch().add("MaxPool", f"pool{side}", **window).x)
    flow.add("Concat", "pools", *pools, axis=1)
    flow.channels = half * (1 + len(pools))
    _add_layer(flow, "conv3", half)
    _add_layer(flow, "conv4", half, 3)
    return _join(flow, skip, half)


def _add_up(prefix: str, above: Flow, below: Flow, size: int) -> Flow:
    """Add the path upwards: the smaller map is narrowed, doubled and joined with the larger one."""
    channels = below.channels // 2
    narrow = replace(below, prefix=prefix)
    _add_layer(narrow, "narrow", channels)
    _double(narrow, size // 2)
    side = replace(above, prefix=prefix)
    _add_layer(side, "side", channels)
    side.add("Concat", "both", narrow.x, axis=1)
    side.channels = 2 * channels
    return _add_neck(side.branch("neck."), channels)


def _double(flow: Flow, size: int) -> None:
    """Repeat each element in both directions, as nearest-neighbour upsampling does."""
    graph = flow.graph
    name = f"{flow.prefix}double"
    channels = flow.channels
    split = graph.add_integers(f"{name}.split", 0, channels, size, 1, size, 1)
    spread = graph.add_integers(f"{name}.spread", 1, channels, size, 2, size, 2)
    joined = graph.add_integers(f"{name}.joined", 0, channels, 2 * size, 2 * size)
    flow.add("Reshape", "double.apart", split).add("Expand", "double.expand", spread)
    flow.add("Reshape", "double", joined)


def _add_down(prefix: str, above: Flow, side: Flow) -> Flow:
    """Add the path downwards: the larger map is halved and joined with the smaller one."""
    channels = side.channels
    flow = replace(above, prefix=prefix)
    _add_layer(flow, "half", channels, 3, stride=2)
    flow.add("Concat", "both", side.x, axis=1)
    flow.channels = 2 * channels
    return _add_neck(flow.branch("neck."), channels)


def _add_head(flow: Flow, size: int) -> Flow:
    """Add the last convolution of a scale, the detection and the decoding of its boxes."""
    graph = flow.graph
    _add_layer(flow, "conv", 2 * flow.channels, 3)
    flow.convolve("detect", ANCHORS * FIELDS)
    name = flow.prefix
    by_anchor = graph.add_integers(f"{name}anchors", 0, ANCHORS, FIELDS, size * size)
    listed = graph.add_integers(f"{name}listed", 0, ANCHORS * size * size, FIELDS)
    flow.add("Reshape", "split", by_anchor).add("Transpose", "turned", perm=[0, 1, 3, 2])
    return flow.add("Sigmoid", "sigmoid").add("Reshape", "boxes", listed)
