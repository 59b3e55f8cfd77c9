"""Build EfficientNet B0 to B7: one stage table and two multipliers, after Tan and Le 2019."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx

from ipu_results.networks.builder import LINEAR, SWISH, BatchNorm, GraphBuilder

STEM, CLASSES = 32, 1000
SQUEEZE = 4
DIVISOR = 8
GATED = 4 * SWISH  # a squeeze-excite gate of random weights passes about half
RESIDUAL = 0.2


@dataclass(frozen=True, slots=True)
class StageSpec:
    expand: int
    kernel: int
    stride: int
    in_channels: int
    out_channels: int
    layers: int


STAGES = (
    StageSpec(1, 3, 1, 32, 16, 1),
    StageSpec(6, 3, 2, 16, 24, 2),
    StageSpec(6, 5, 2, 24, 40, 2),
    StageSpec(6, 3, 2, 40, 80, 3),
    StageSpec(6, 5, 1, 80, 112, 3),
    StageSpec(6, 5, 2, 112, 192, 4),
    StageSpec(6, 3, 1, 192, 320, 1),
)


@dataclass(frozen=True, slots=True)
class EfficientNet:
    """`group` channels make one group of a depthwise convolution. `expand` replaces the factor of all but the first."""

    width: float
    depth: float
    resolution: int
    epsilon: float = 1e-5
    group: int = 1
    expand: int | None = None

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        norm = BatchNorm(self.epsilon)
        stem, head = self._scale_channels(STEM), 4 * self._scale_channels(STAGES[-1].out_channels)
        x = graph.add_input("image", (3, self.resolution, self.resolution))
        x = add_swish(
            graph, "stem.swish", graph.add_convolution("stem", x, (3, stem), 3, stride=2, gain=LINEAR, norm=norm)
        )
        for number, stage in enumerate(STAGES, start=1):
            x = self._add_stage(graph, f"stage{number}", x, stage)
        x = graph.add_convolution("head", x, (head // 4, head), gain=LINEAR, norm=norm)
        x = graph.add_node("GlobalAveragePool", "pool", add_swish(graph, "head.swish", x))
        x = graph.add_node("Flatten", "flatten", x)
        return graph.build_model(name, graph.add_dense("classes", x, (head, CLASSES)), (CLASSES,))

    def _add_stage(self, graph: GraphBuilder, name: str, x: str, stage: StageSpec) -> str:
        channels, out = self._scale_channels(stage.in_channels), self._scale_channels(stage.out_channels)
        for layer in range(math.ceil(stage.layers * self.depth)):
            stride = stage.stride if layer == 0 else 1
            x = self._add_block(graph, f"{name}.{layer}", x, stage, (channels, out), stride)
            channels = out
        return x

    def _add_block(
        self, graph: GraphBuilder, name: str, x: str, stage: StageSpec, channels: tuple[int, int], stride: int
    ) -> str:
        norm, inside = (
            BatchNorm(self.epsilon),
            channels[0] * (stage.expand if stage.expand == 1 else self.expand or stage.expand),
        )
        y, gain = x, LINEAR
        if stage.expand != 1:
            y = graph.add_convolution(f"{name}.expand", x, (channels[0], inside), gain=LINEAR, norm=norm)
            y, gain = add_swish(graph, f"{name}.expand.swish", y), SWISH
        y = graph.add_convolution(
            f"{name}.depthwise",
            y,
            (inside, inside),
            stage.kernel,
            stride=stride,
            groups=inside // self.group,
            gain=gain,
            norm=norm,
        )
        y = add_swish(graph, f"{name}.depthwise.swish", y)
        y = add_squeeze_excite(graph, f"{name}.gate", y, inside, max(1, channels[0] // SQUEEZE))
        if stride != 1 or channels[0] != channels[1]:
            return graph.add_convolution(f"{name}.project", y, (inside, channels[1]), gain=GATED, norm=norm)
        y = graph.add_convolution(
            f"{name}.project", y, (inside, channels[1]), gain=GATED, norm=BatchNorm(self.epsilon, RESIDUAL)
        )
        return graph.add_node("Add", f"{name}.add", y, x)

    def _scale_channels(self, base: int) -> int:
        """Scale a number of channels to the nearest multiple of 8 that loses no more than a tenth."""
        scaled = base * self.width
        rounded = max(DIVISOR, int(scaled + DIVISOR / 2) // DIVISOR * DIVISOR)
        return rounded if rounded >= 0.9 * scaled else rounded + DIVISOR


def add_swish(graph: GraphBuilder, name: str, x: str) -> str:
    return graph.add_node("Mul", name, x, graph.add_node("Sigmoid", f"{name}.sigmoid", x))


def add_squeeze_excite(graph: GraphBuilder, name: str, x: str, channels: int, squeezed: int) -> str:
    y = graph.add_node("GlobalAveragePool", f"{name}.pool", x)
    y = add_swish(graph, f"{name}.swish", graph.add_convolution(f"{name}.squeeze", y, (channels, squeezed)))
    y = graph.add_node("Sigmoid", f"{name}.sigmoid", graph.add_convolution(f"{name}.excite", y, (squeezed, channels)))
    return graph.add_node("Mul", name, x, y)


NETWORKS = {
    "efficientnet-b0": EfficientNet(1.0, 1.0, 224),
    "efficientnet-b4": EfficientNet(1.4, 1.8, 380),
    # Masters et al. 2021, arXiv:2106.03640: groups of 16 and a smaller expansion; batch-norms in place of group-norms.
    "efficientnet-b4-g16": EfficientNet(1.4, 1.8, 380, group=16, expand=4),
    "efficientnet-b7": EfficientNet(2.0, 3.1, 600, epsilon=1e-3),
}
