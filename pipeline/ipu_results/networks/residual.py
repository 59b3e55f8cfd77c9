"""Build ResNet and ResNeXt: bottlenecks with the stride in the 3×3 (v1.5), after He et al. 2015 and Xie et al. 2016."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from ipu_results.networks.builder import LINEAR, BatchNorm, GraphBuilder

EXPANSION = 4
STEM = 64
PLANES = (64, 128, 256, 512)
CLASSES = 1000
RESIDUAL = BatchNorm(scale=0.2)  # keeps the sum of many random blocks within fp16


@dataclass(frozen=True, slots=True)
class ResNet:
    """`width` channels in each of `groups` groups of the first stage's 3×3, doubled from stage to stage."""

    blocks: tuple[int, int, int, int]
    groups: int
    width: int
    resolution: int = 224

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        x = graph.add_input("image", (3, self.resolution, self.resolution))
        x = graph.add_convolution("stem", x, (3, STEM), 7, stride=2, gain=LINEAR, norm=BatchNorm())
        x = graph.add_node("Relu", "stem.relu", x)
        x = graph.add_node("MaxPool", "stem.pool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
        channels = STEM
        for stage, (blocks, planes) in enumerate(zip(self.blocks, PLANES, strict=True), start=1):
            for block in range(blocks):
                stride = 2 if block == 0 and stage > 1 else 1
                x = self._add_bottleneck(graph, f"stage{stage}.{block}", x, (channels, planes), stride)
                channels = EXPANSION * planes
        x = graph.add_node("Flatten", "flatten", graph.add_node("GlobalAveragePool", "pool", x))
        return graph.build_model(name, graph.add_dense("classes", x, (channels, CLASSES)), (CLASSES,))

    def _add_bottleneck(self, graph: GraphBuilder, name: str, x: str, channels: tuple[int, int], stride: int) -> str:
        inside = self.groups * self.width * channels[1] // PLANES[0]
        outside = EXPANSION * channels[1]
        y = graph.add_convolution(f"{name}.reduce", x, (channels[0], inside), norm=BatchNorm())
        y = graph.add_node("Relu", f"{name}.reduce.relu", y)
        y = graph.add_convolution(
            f"{name}.conv", y, (inside, inside), 3, stride=stride, groups=self.groups, norm=BatchNorm()
        )
        y = graph.add_node("Relu", f"{name}.conv.relu", y)
        y = graph.add_convolution(f"{name}.expand", y, (inside, outside), norm=RESIDUAL)
        if channels[0] != outside:
            x = graph.add_convolution(f"{name}.project", x, (channels[0], outside), stride=stride, norm=BatchNorm())
        return graph.add_node("Relu", f"{name}.relu", graph.add_node("Add", f"{name}.add", y, x))


NETWORKS = {
    "resnext101-32x4d": ResNet((3, 4, 23, 3), groups=32, width=4),
    "resnext101-32x8d": ResNet((3, 4, 23, 3), groups=32, width=8),
    "resnet50": ResNet((3, 4, 6, 3), groups=1, width=64),
}
