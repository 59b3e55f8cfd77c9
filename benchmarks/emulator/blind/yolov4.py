"""Build YOLOv4-P5 by shapes alone, after Wang, Bochkovskiy and Liao 2020 (arXiv:2011.08036)."""

from __future__ import annotations

from functools import cache

import onnx
from ipu_results.emulator.networks.builder import BatchNorm, GraphBuilder

NORM = BatchNorm()
OPSET, IR = 18, 8  # the first with Mish
CLASSES, ANCHORS = 80, 4
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
    x = _add_layer(graph, "stem", graph.add_input("image", (3, size, size)), (3, 32), 3)
    outputs, before = [], 32
    for stage, (channels, blocks) in enumerate(BACKBONE):
        x = _add_layer(graph, f"down{stage}", x, (before, channels), 3, stride=2)
        x, before = _add_stage(graph, f"stage{stage}", x, channels, blocks), channels
        outputs.append(x)
    p3, p4, p5 = outputs[2:]
    p5 = _add_pyramid(graph, "spp", p5)
    p4 = _add_up(graph, "up4", p4, p5, (512, 256), size // 16)
    p3 = _add_up(graph, "up3", p3, p4, (256, 128), size // 8)
    middle = _add_down(graph, "down4", p3, p4, 256)
    low = _add_down(graph, "down5", middle, p5, 512)
    fields = ((p3, 128, size // 8), (middle, 256, size // 16), (low, 512, size // 32))
    heads = [_add_head(graph, f"head{at}", *field) for at, field in enumerate(fields, 3)]
    boxes = graph.add_node("Concat", "boxes", *heads, axis=1)
    for name, values in (("from", (0, 0)), ("to", DETECTIONS), ("axes", (1, 2))):
        graph.add_integers(f"detections.{name}", *values)
    kept = graph.add_node(
        "Slice", "detections", boxes, "detections.from", "detections.to", "detections.axes"
    )
    return graph.build_model(f"yolov4-p5-{size}", kept, DETECTIONS, OPSET, IR)


def _add_layer(
    graph: GraphBuilder,
    name: str,
    x: str,
    channels: tuple[int, int],
    kernel: int = 1,
    *,
    stride: int = 1,
) -> str:
    y = graph.add_convolution(name, x, channels, kernel, stride=stride, norm=NORM)
    return graph.add_node("Mish", f"{name}.mish", y)


def _add_plain(graph: GraphBuilder, name: str, x: str, channels: tuple[int, int]) -> str:
    return graph.add_convolution(name, x, channels)


def _add_joined(
    graph: GraphBuilder, name: str, parts: tuple[str, str], channels: tuple[int, int]
) -> str:
    """Join two branches of a cross-stage block: their own batch-norm, activation and convolution."""
    y = graph.add_node("Concat", f"{name}.cat", *parts, axis=1)
    y = _add_norm(graph, f"{name}.cat.norm", y, channels[0])
    return _add_layer(
        graph, f"{name}.join", graph.add_node("Mish", f"{name}.cat.mish", y), channels
    )


def _add_norm(graph: GraphBuilder, name: str, x: str, channels: int) -> str:
    """Add a batch-norm of its own, which is not folded, with parameters by shape alone."""
    roles = ("scale", "shift", "mean", "variance")
    parameters = [graph.add_filled(f"{name}.{role}", (channels,), 1.0) for role in roles]
    return graph.add_node("BatchNormalization", name, x, *parameters, epsilon=NORM.epsilon)


def _add_residuals(
    graph: GraphBuilder, name: str, x: str, channels: int, blocks: int, *, shortcut: bool
) -> str:
    for block in range(blocks):
        y = _add_layer(graph, f"{name}.{block}.reduce", x, (channels, channels))
        y = _add_layer(graph, f"{name}.{block}.conv", y, (channels, channels), 3)
        x = graph.add_node("Add", f"{name}.{block}.add", x, y) if shortcut else y
    return x


def _add_stage(graph: GraphBuilder, name: str, x: str, channels: int, blocks: int) -> str:
    """Add a cross-stage block of the backbone: half of the channels pass the residual blocks."""
    half = channels // 2
    y = _add_layer(graph, f"{name}.in", x, (channels, half))
    y = _add_residuals(graph, name, y, half, blocks, shortcut=True)
    parts = (
        _add_plain(graph, f"{name}.out", y, (half, half)),
        _add_plain(graph, f"{name}.skip", x, (channels, half)),
    )
    return _add_joined(graph, name, parts, (channels, channels))


def _add_neck(graph: GraphBuilder, name: str, x: str, channels: tuple[int, int]) -> str:
    """Add a cross-stage block of the neck, three blocks without shortcut."""
    inside, out = channels
    x = _add_layer(graph, f"{name}.in", x, (inside, out))
    parts = (
        _add_residuals(graph, name, x, out, 3, shortcut=False),
        _add_plain(graph, f"{name}.skip", x, (out, out)),
    )
    return _add_joined(graph, name, parts, (2 * out, out))


def _add_pyramid(graph: GraphBuilder, name: str, x: str) -> str:
    """Add the spatial pyramid pooling of 1024 channels."""
    skip = _add_plain(graph, f"{name}.skip", x, (1024, 512))
    x = _add_layer(graph, f"{name}.in", x, (1024, 512))
    x = _add_layer(graph, f"{name}.conv1", x, (512, 512), 3)
    x = _add_layer(graph, f"{name}.conv2", x, (512, 512))
    pools = [
        graph.add_node(
            "MaxPool", f"{name}.pool{k}", x, kernel_shape=[k, k], pads=[k // 2] * 4, strides=[1, 1]
        )
        for k in POOLS
    ]
    x = _add_layer(
        graph,
        f"{name}.conv3",
        graph.add_node("Concat", f"{name}.pools", x, *pools, axis=1),
        (2048, 512),
    )
    x = _add_layer(graph, f"{name}.conv4", x, (512, 512), 3)
    return _add_joined(graph, name, (x, skip), (1024, 512))


def _add_up(
    graph: GraphBuilder, name: str, above: str, below: str, channels: tuple[int, int], size: int
) -> str:
    """Add the path upwards: the smaller map is narrowed, doubled and joined with the larger one."""
    x = _add_layer(graph, f"{name}.narrow", below, channels)
    x = _double(graph, f"{name}.double", x, channels[1], size // 2)
    y = _add_layer(graph, f"{name}.side", above, channels)
    return _add_neck(
        graph, f"{name}.neck", graph.add_node("Concat", f"{name}.both", y, x, axis=1), channels
    )


def _double(graph: GraphBuilder, name: str, x: str, channels: int, size: int) -> str:
    """Repeat each element in both directions, as nearest-neighbour upsampling does."""
    split = graph.add_integers(f"{name}.split", 0, channels, size, 1, size, 1)
    spread = graph.add_integers(f"{name}.spread", 1, channels, size, 2, size, 2)
    joined = graph.add_integers(f"{name}.joined", 0, channels, 2 * size, 2 * size)
    y = graph.add_node(
        "Expand", f"{name}.expand", graph.add_node("Reshape", f"{name}.apart", x, split), spread
    )
    return graph.add_node("Reshape", name, y, joined)


def _add_down(graph: GraphBuilder, name: str, above: str, side: str, channels: int) -> str:
    """Add the path downwards: the larger map is halved and joined with the smaller one."""
    x = _add_layer(graph, f"{name}.half", above, (channels // 2, channels), 3, stride=2)
    joined = graph.add_node("Concat", f"{name}.both", x, side, axis=1)
    return _add_neck(graph, f"{name}.neck", joined, (2 * channels, channels))


def _add_head(graph: GraphBuilder, name: str, x: str, channels: int, size: int) -> str:
    """Add the last convolution of a scale, the detection and the decoding of its boxes."""
    x = _add_layer(graph, f"{name}.conv", x, (channels, 2 * channels), 3)
    x = _add_plain(graph, f"{name}.detect", x, (2 * channels, ANCHORS * FIELDS))
    by_anchor = graph.add_integers(f"{name}.anchors", 0, ANCHORS, FIELDS, size * size)
    listed = graph.add_integers(f"{name}.listed", 0, ANCHORS * size * size, FIELDS)
    x = graph.add_node("Reshape", f"{name}.split", x, by_anchor)
    x = graph.add_node("Transpose", f"{name}.turned", x, perm=[0, 1, 3, 2])
    return graph.add_node(
        "Reshape", f"{name}.boxes", graph.add_node("Sigmoid", f"{name}.sigmoid", x), listed
    )
