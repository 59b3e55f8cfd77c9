"""Build UNet without padding, 572 × 572 to 388 × 388, after Ronneberger et al. 2015."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from ipu_results.networks.builder import RELU, GraphBuilder

OPSET, IR = 13, 7
RESOLUTION = 572
FILTERS = (64, 128, 256, 512, 1024)
CROPS = (392, 200, 104, 56)  # what the decoder takes of each level's field
CLASSES = 2


@dataclass(frozen=True, slots=True)
class UNet:
    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        x, size, channels = graph.add_input("image", (1, RESOLUTION, RESOLUTION)), RESOLUTION, 1
        kept: list[str] = []
        for level, filters in enumerate(FILTERS):
            x, size = _add_pair(graph, f"encoder{level}", x, (channels, filters)), size - 4
            channels = filters
            if level < len(FILTERS) - 1:
                kept.append(_add_crop(graph, f"encoder{level}.crop", x, size, CROPS[level]))
                x = graph.add_node("MaxPool", f"encoder{level}.pool", x, kernel_shape=[2, 2], strides=[2, 2])
                size //= 2
        for level, filters in enumerate(FILTERS[-2::-1]):
            # A transposed convolution of 2 × 2 with stride 2 is a 1 × 1 one to four times the channels, spread out.
            y = _add_convolution(graph, f"decoder{level}.up", x, (channels, 4 * filters), 1)
            y = graph.add_node("DepthToSpace", f"decoder{level}.spread", y, blocksize=2)
            y, size = graph.add_node("Relu", f"decoder{level}.up.relu", y), 2 * size
            y = graph.add_node("Concat", f"decoder{level}.concat", y, kept.pop(), axis=1)
            x, size, channels = _add_pair(graph, f"decoder{level}", y, (2 * filters, filters)), size - 4, filters
        x = _add_convolution(graph, "classes", x, (channels, CLASSES), 1)
        return graph.build_model(name, x, (CLASSES, size, size), OPSET, IR)


def _add_pair(graph: GraphBuilder, name: str, x: str, channels: tuple[int, int]) -> str:
    for at, inside in enumerate((channels[0], channels[1])):
        x = _add_convolution(graph, f"{name}.{at}", x, (inside, channels[1]), 3)
        x = graph.add_node("Relu", f"{name}.{at}.relu", x)
    return x


def _add_convolution(graph: GraphBuilder, name: str, x: str, channels: tuple[int, int], kernel: int) -> str:
    shape = (channels[1], channels[0], kernel, kernel)
    weights = graph.add_drawn(f"{name}.weight", shape, (RELU / (channels[0] * kernel**2)) ** 0.5)
    return graph.add_node("Conv", name, x, weights, graph.add_filled(f"{name}.bias", shape[:1], 0.0))


def _add_crop(graph: GraphBuilder, name: str, x: str, size: int, target: int) -> str:
    start = (size - target) // 2
    bounds = [
        graph.add_integers(f"{name}.start", start, start),
        graph.add_integers(f"{name}.end", start + target, start + target),
        graph.add_integers(f"{name}.axes", 2, 3),
    ]
    return graph.add_node("Slice", name, x, *bounds)


NETWORKS = {"unet": UNet()}
