"""ResNet and ResNeXt: bottlenecks with the stride in the 3×3 (v1.5), after He et al. 2015 and Xie et al. 2016."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from ipu_results.networks.builder import LINEAR, Builder, Norm

EXPANSION = 4
STEM = 64
PLANES = (64, 128, 256, 512)
CLASSES = 1000
RESIDUAL = Norm(scale=0.2)  # keeps the sum of many random blocks within fp16


@dataclass(frozen=True, slots=True)
class Residual:
    """`width` channels in each of `groups` groups of the first stage's 3×3, doubled from stage to stage."""

    blocks: tuple[int, int, int, int]
    groups: int
    width: int
    resolution: int = 224

    def build(self, graph: Builder, name: str) -> onnx.ModelProto:
        x = graph.data("image", (3, self.resolution, self.resolution))
        x = graph.conv("stem", x, (3, STEM), 7, stride=2, gain=LINEAR, norm=Norm())
        x = graph.node("Relu", "stem.relu", x)
        x = graph.node("MaxPool", "stem.pool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
        channels = STEM
        for stage, (blocks, planes) in enumerate(zip(self.blocks, PLANES, strict=True), start=1):
            for block in range(blocks):
                stride = 2 if block == 0 and stage > 1 else 1
                x = self._bottleneck(graph, f"stage{stage}.{block}", x, (channels, planes), stride)
                channels = EXPANSION * planes
        x = graph.node("Flatten", "flatten", graph.node("GlobalAveragePool", "pool", x))
        return graph.model(name, graph.dense("classes", x, (channels, CLASSES)), (CLASSES,))

    def _bottleneck(self, graph: Builder, name: str, x: str, channels: tuple[int, int], stride: int) -> str:
        inside = self.groups * self.width * channels[1] // PLANES[0]
        outside = EXPANSION * channels[1]
        y = graph.conv(f"{name}.reduce", x, (channels[0], inside), norm=Norm())
        y = graph.node("Relu", f"{name}.reduce.relu", y)
        y = graph.conv(f"{name}.conv", y, (inside, inside), 3, stride=stride, groups=self.groups, norm=Norm())
        y = graph.node("Relu", f"{name}.conv.relu", y)
        y = graph.conv(f"{name}.expand", y, (inside, outside), norm=RESIDUAL)
        if channels[0] != outside:
            x = graph.conv(f"{name}.project", x, (channels[0], outside), stride=stride, norm=Norm())
        return graph.node("Relu", f"{name}.relu", graph.node("Add", f"{name}.add", y, x))


NETWORKS = {
    "resnext101-32x4d": Residual((3, 4, 23, 3), groups=32, width=4),
    "resnext101-32x8d": Residual((3, 4, 23, 3), groups=32, width=8),
    "resnet50": Residual((3, 4, 6, 3), groups=1, width=64),
}
