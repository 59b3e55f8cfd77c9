"""EfficientNet B0 to B7: one stage table and two multipliers, after Tan and Le 2019."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx

from ipu_results.networks.builder import LINEAR, SWISH, Builder, Norm

STEM, CLASSES = 32, 1000
SQUEEZE = 4
DIVISOR = 8
GATED = 4 * SWISH  # a squeeze-excite gate of random weights passes about half
RESIDUAL = 0.2


@dataclass(frozen=True, slots=True)
class Stage:
    expand: int
    kernel: int
    stride: int
    in_channels: int
    out_channels: int
    layers: int


STAGES = (
    Stage(1, 3, 1, 32, 16, 1),
    Stage(6, 3, 2, 16, 24, 2),
    Stage(6, 5, 2, 24, 40, 2),
    Stage(6, 3, 2, 40, 80, 3),
    Stage(6, 5, 1, 80, 112, 3),
    Stage(6, 5, 2, 112, 192, 4),
    Stage(6, 3, 1, 192, 320, 1),
)


@dataclass(frozen=True, slots=True)
class EfficientNet:
    width: float
    depth: float
    resolution: int
    epsilon: float = 1e-5

    def build(self, graph: Builder, name: str) -> onnx.ModelProto:
        norm = Norm(self.epsilon)
        stem, head = self._channels(STEM), 4 * self._channels(STAGES[-1].out_channels)
        x = graph.data("image", (3, self.resolution, self.resolution))
        x = swish(graph, "stem.swish", graph.conv("stem", x, (3, stem), 3, stride=2, gain=LINEAR, norm=norm))
        for number, stage in enumerate(STAGES, start=1):
            x = self._stage(graph, f"stage{number}", x, stage)
        x = graph.conv("head", x, (head // 4, head), gain=LINEAR, norm=norm)
        x = graph.node("GlobalAveragePool", "pool", swish(graph, "head.swish", x))
        x = graph.node("Flatten", "flatten", x)
        return graph.model(name, graph.dense("classes", x, (head, CLASSES)), (CLASSES,))

    def _stage(self, graph: Builder, name: str, x: str, stage: Stage) -> str:
        channels, out = self._channels(stage.in_channels), self._channels(stage.out_channels)
        for layer in range(math.ceil(stage.layers * self.depth)):
            stride = stage.stride if layer == 0 else 1
            x = self._block(graph, f"{name}.{layer}", x, stage, (channels, out), stride)
            channels = out
        return x

    def _block(self, graph: Builder, name: str, x: str, stage: Stage, channels: tuple[int, int], stride: int) -> str:
        norm, inside = Norm(self.epsilon), channels[0] * stage.expand
        y, gain = x, LINEAR
        if stage.expand != 1:
            y = graph.conv(f"{name}.expand", x, (channels[0], inside), gain=LINEAR, norm=norm)
            y, gain = swish(graph, f"{name}.expand.swish", y), SWISH
        y = graph.conv(
            f"{name}.depthwise", y, (inside, inside), stage.kernel, stride=stride, groups=inside, gain=gain, norm=norm
        )
        y = swish(graph, f"{name}.depthwise.swish", y)
        y = squeeze_excite(graph, f"{name}.gate", y, inside, max(1, channels[0] // SQUEEZE))
        if stride != 1 or channels[0] != channels[1]:
            return graph.conv(f"{name}.project", y, (inside, channels[1]), gain=GATED, norm=norm)
        y = graph.conv(f"{name}.project", y, (inside, channels[1]), gain=GATED, norm=Norm(self.epsilon, RESIDUAL))
        return graph.node("Add", f"{name}.add", y, x)

    def _channels(self, base: int) -> int:
        """The scaled number of channels, to the nearest multiple of 8 that loses no more than a tenth."""
        scaled = base * self.width
        rounded = max(DIVISOR, int(scaled + DIVISOR / 2) // DIVISOR * DIVISOR)
        return rounded if rounded >= 0.9 * scaled else rounded + DIVISOR


def swish(graph: Builder, name: str, x: str) -> str:
    return graph.node("Mul", name, x, graph.node("Sigmoid", f"{name}.sigmoid", x))


def squeeze_excite(graph: Builder, name: str, x: str, channels: int, squeezed: int) -> str:
    y = graph.node("GlobalAveragePool", f"{name}.pool", x)
    y = swish(graph, f"{name}.swish", graph.conv(f"{name}.squeeze", y, (channels, squeezed)))
    y = graph.node("Sigmoid", f"{name}.sigmoid", graph.conv(f"{name}.excite", y, (squeezed, channels)))
    return graph.node("Mul", name, x, y)


NETWORKS = {
    "efficientnet-b0": EfficientNet(1.0, 1.0, 224),
    "efficientnet-b4": EfficientNet(1.4, 1.8, 380),
    "efficientnet-b7": EfficientNet(2.0, 3.1, 600, epsilon=1e-3),
}
