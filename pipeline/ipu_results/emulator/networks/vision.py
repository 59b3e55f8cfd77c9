"""Build networks of images: ResNet and ResNeXt, EfficientNet, ViT and UNet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from ipu_results.emulator.networks import text
from ipu_results.emulator.networks.builder import LINEAR, RELU, SWISH, BatchNorm, GraphBuilder

CLASSES = 1000  # of ImageNet
RESIDUAL = 0.2  # scale of the last norm of a block: keeps the sum of many random blocks within fp16

EXPANSION = 4
PLANES = (64, 128, 256, 512)  # of the four stages; the stem has as many channels as the first


@dataclass(frozen=True, slots=True)
class ResNet:
    """Bottlenecks with the stride in the 3×3 (v1.5), after He et al. 2015 and Xie et al. 2016.

    `width` channels in each of `groups` groups of the first stage's 3×3, doubled from stage to
    stage.
    """

    blocks: tuple[int, int, int, int]
    groups: int
    width: int
    resolution: int = 224

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        x = graph.add_input("image", (3, self.resolution, self.resolution))
        x = graph.add_convolution(
            "stem", x, (3, PLANES[0]), 7, stride=2, gain=LINEAR, norm=BatchNorm()
        )
        x = graph.add_node("Relu", "stem.relu", x)
        x = graph.add_node(
            "MaxPool", "stem.pool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]
        )
        channels = PLANES[0]
        for stage, (blocks, planes) in enumerate(zip(self.blocks, PLANES, strict=True), start=1):
            for block in range(blocks):
                stride = 2 if block == 0 and stage > 1 else 1
                x = self._add_bottleneck(
                    graph, f"stage{stage}.{block}", x, (channels, planes), stride
                )
                channels = EXPANSION * planes
        return _add_classes(graph, name, x, channels)

    def _add_bottleneck(
        self, graph: GraphBuilder, name: str, x: str, channels: tuple[int, int], stride: int
    ) -> str:
        inside = self.groups * self.width * channels[1] // PLANES[0]
        outside = EXPANSION * channels[1]
        norm = BatchNorm()
        window = {"stride": stride, "groups": self.groups}
        y = graph.add_convolution(f"{name}.reduce", x, (channels[0], inside), norm=norm)
        y = graph.add_node("Relu", f"{name}.reduce.relu", y)
        y = graph.add_convolution(f"{name}.conv", y, (inside, inside), 3, **window, norm=norm)
        y = graph.add_node("Relu", f"{name}.conv.relu", y)
        y = graph.add_convolution(
            f"{name}.expand", y, (inside, outside), norm=BatchNorm(scale=RESIDUAL)
        )
        if channels[0] != outside:
            x = graph.add_convolution(
                f"{name}.project", x, (channels[0], outside), stride=stride, norm=norm
            )
        return graph.add_node("Relu", f"{name}.relu", graph.add_node("Add", f"{name}.add", y, x))


def _add_classes(graph: GraphBuilder, name: str, x: str, channels: int) -> onnx.ModelProto:
    x = graph.add_node("Flatten", "flatten", graph.add_node("GlobalAveragePool", "pool", x))
    return graph.build_model(name, graph.add_dense("classes", x, (channels, CLASSES)), (CLASSES,))


STEM = 32
SQUEEZE = 4  # input channels of a block to a channel of its gate
DIVISOR = 8  # of every number of channels
GATED = 4 * SWISH  # a squeeze-excite gate of random weights passes about half


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
    """B0 to B7: one table of stages and two multipliers, after Tan and Le 2019.

    `group` channels make one group of a depthwise convolution. `expand` replaces the factor of all
    but the first.
    """

    width: float
    depth: float
    resolution: int
    epsilon: float = 1e-5
    group: int = 1
    expand: int | None = None

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        norm = BatchNorm(self.epsilon)
        stem = self._scale_channels(STEM)
        last = self._scale_channels(STAGES[-1].out_channels)
        x = graph.add_input("image", (3, self.resolution, self.resolution))
        x = graph.add_convolution("stem", x, (3, stem), 3, stride=2, gain=LINEAR, norm=norm)
        x = _add_swish(graph, "stem.swish", x)
        for number, stage in enumerate(STAGES, start=1):
            channels = self._scale_channels(stage.in_channels)
            out = self._scale_channels(stage.out_channels)
            for layer in range(math.ceil(stage.layers * self.depth)):
                stride = stage.stride if layer == 0 else 1
                x = self._add_block(
                    graph, f"stage{number}.{layer}", x, stage, (channels, out), stride
                )
                channels = out
        x = graph.add_convolution("head", x, (last, 4 * last), gain=LINEAR, norm=norm)
        return _add_classes(graph, name, _add_swish(graph, "head.swish", x), 4 * last)

    def _add_block(
        self,
        graph: GraphBuilder,
        name: str,
        x: str,
        stage: StageSpec,
        channels: tuple[int, int],
        stride: int,
    ) -> str:
        norm = BatchNorm(self.epsilon)
        y = x
        gain = LINEAR
        inside = channels[0] * (stage.expand if stage.expand == 1 else self.expand or stage.expand)
        if stage.expand != 1:
            y = graph.add_convolution(
                f"{name}.expand", x, (channels[0], inside), gain=LINEAR, norm=norm
            )
            y = _add_swish(graph, f"{name}.expand.swish", y)
            gain = SWISH
        kernel = stage.kernel
        window = {"stride": stride, "groups": inside // self.group}
        y = graph.add_convolution(
            f"{name}.depthwise", y, (inside, inside), kernel, **window, gain=gain, norm=norm
        )
        y = _add_swish(graph, f"{name}.depthwise.swish", y)
        y = _add_squeeze_excite(graph, f"{name}.gate", y, inside, max(1, channels[0] // SQUEEZE))
        residual = stride == 1 and channels[0] == channels[1]
        norm = BatchNorm(self.epsilon, RESIDUAL if residual else norm.scale)
        y = graph.add_convolution(
            f"{name}.project", y, (inside, channels[1]), gain=GATED, norm=norm
        )
        return graph.add_node("Add", f"{name}.add", y, x) if residual else y

    def _scale_channels(self, base: int) -> int:
        """Scale a number of channels to the nearest multiple of 8 that loses no more than a tenth."""
        scaled = base * self.width
        rounded = max(DIVISOR, int(scaled + DIVISOR / 2) // DIVISOR * DIVISOR)
        return rounded if rounded >= 0.9 * scaled else rounded + DIVISOR


def _add_swish(graph: GraphBuilder, name: str, x: str) -> str:
    return graph.add_node("Mul", name, x, graph.add_node("Sigmoid", f"{name}.sigmoid", x))


def _add_squeeze_excite(
    graph: GraphBuilder, name: str, x: str, channels: int, squeezed: int
) -> str:
    y = graph.add_node("GlobalAveragePool", f"{name}.pool", x)
    y = _add_swish(
        graph, f"{name}.swish", graph.add_convolution(f"{name}.squeeze", y, (channels, squeezed))
    )
    y = graph.add_node(
        "Sigmoid",
        f"{name}.sigmoid",
        graph.add_convolution(f"{name}.excite", y, (squeezed, channels)),
    )
    return graph.add_node("Mul", name, x, y)


PATCH = 16
VIT_RESOLUTION = 224
PATCHES = (VIT_RESOLUTION // PATCH) ** 2


@dataclass(frozen=True, slots=True)
class VisionTransformer:
    """A transformer that normalises before each half of a layer, after Dosovitskiy et al. 2020."""

    layers: int
    hidden: int

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        image = graph.add_input("image", (3, VIT_RESOLUTION, VIT_RESOLUTION))
        kernel = graph.add_drawn("patches.weight", (self.hidden, 3, PATCH, PATCH), text.SIGMA)
        bias = graph.add_filled("patches.bias", (self.hidden,), 0.0)
        x = graph.add_node(
            "Conv", "patches", image, kernel, bias, kernel_shape=[PATCH] * 2, strides=[PATCH] * 2
        )
        x = graph.add_node(
            "Reshape",
            "patches.flat",
            x,
            graph.add_integers("patches.shape", 0, self.hidden, PATCHES),
        )
        x = graph.add_node("Transpose", "patches.turned", x, perm=[0, 2, 1])
        # A pad makes room for the token of the class, whose embedding is part of the positions.
        x = graph.add_node(
            "Pad", "class.token", x, graph.add_integers("class.pads", 0, 1, 0, 0, 0, 0)
        )
        table = graph.add_drawn("positions.table", (PATCHES + 1, self.hidden), text.SIGMA)
        x = text.add_pre_norm_layers(
            graph, graph.add_node("Add", "positions", x, table), self.layers, self.hidden
        )
        x = text.add_layer_norm(graph, "norm", x, self.hidden, text.PRE_NORM_EPSILON)
        x = graph.add_node(
            "Flatten", "class.flat", graph.add_slice("class", x, start=(0,), end=(1,), axis=(1,))
        )
        x = text.add_linear(graph, "classes", x, (self.hidden, CLASSES))
        return graph.build_model(name, x, (CLASSES,), text.OPSET, text.IR)


UNET_OPSET, UNET_IR = 13, 7
UNET_RESOLUTION = 572
FILTERS = (64, 128, 256, 512, 1024)
CROPS = (392, 200, 104, 56)  # what the decoder takes of each level's field
SEGMENTS = 2  # cell and background


@dataclass(frozen=True, slots=True)
class UNet:
    """UNet without padding, 572 × 572 to 388 × 388, after Ronneberger et al. 2015."""

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        x = graph.add_input("image", (1, UNET_RESOLUTION, UNET_RESOLUTION))
        size = UNET_RESOLUTION
        channels = 1
        kept: list[str] = []
        for level, filters in enumerate(FILTERS):
            x = _add_pair(graph, f"encoder{level}", x, (channels, filters))
            size -= 4
            channels = filters
            if level < len(CROPS):
                start = (size - CROPS[level]) // 2
                ends = {"start": [start] * 2, "end": [start + CROPS[level]] * 2, "axes": (2, 3)}
                kept.append(graph.add_slice(f"encoder{level}.crop", x, **ends))
                x = graph.add_node(
                    "MaxPool", f"encoder{level}.pool", x, kernel_shape=[2, 2], strides=[2, 2]
                )
                size //= 2
        for level, filters in enumerate(FILTERS[-2::-1]):
            # A transposed convolution of 2 × 2 with stride 2 is a 1 × 1 one to four times the
            # channels, spread out.
            y = _add_biased_convolution(graph, f"decoder{level}.up", x, (channels, 4 * filters), 1)
            y = graph.add_node("DepthToSpace", f"decoder{level}.spread", y, blocksize=2)
            y = graph.add_node("Relu", f"decoder{level}.up.relu", y)
            size = 2 * size
            y = graph.add_node("Concat", f"decoder{level}.concat", y, kept.pop(), axis=1)
            x = _add_pair(graph, f"decoder{level}", y, (2 * filters, filters))
            size -= 4
            channels = filters
        x = _add_biased_convolution(graph, "classes", x, (channels, SEGMENTS), 1)
        return graph.build_model(name, x, (SEGMENTS, size, size), UNET_OPSET, UNET_IR)


def _add_pair(graph: GraphBuilder, name: str, x: str, channels: tuple[int, int]) -> str:
    """Add two convolutions of 3 × 3 without padding, which together take two pixels off every side."""
    for at, inside in enumerate(channels):
        x = _add_biased_convolution(graph, f"{name}.{at}", x, (inside, channels[1]), 3)
        x = graph.add_node("Relu", f"{name}.{at}.relu", x)
    return x


def _add_biased_convolution(
    graph: GraphBuilder, name: str, x: str, channels: tuple[int, int], kernel: int
) -> str:
    shape = (channels[1], channels[0], kernel, kernel)
    weights = graph.add_drawn(f"{name}.weight", shape, (RELU / (channels[0] * kernel**2)) ** 0.5)
    return graph.add_node(
        "Conv", name, x, weights, graph.add_filled(f"{name}.bias", shape[:1], 0.0)
    )


IMAGES: Mapping[str, ResNet | EfficientNet | VisionTransformer | UNet] = {
    "resnext101-32x4d": ResNet((3, 4, 23, 3), groups=32, width=4),
    "resnext101-32x8d": ResNet((3, 4, 23, 3), groups=32, width=8),
    "resnet50": ResNet((3, 4, 6, 3), groups=1, width=64),
    "resnet50-folded": ResNet((3, 4, 6, 3), groups=1, width=64),
    "efficientnet-b0": EfficientNet(1.0, 1.0, 224),
    "efficientnet-b4": EfficientNet(1.4, 1.8, 380),
    # Masters et al. 2021, arXiv:2106.03640: groups of 16 and a smaller expansion; batch-norms in
    # place of group-norms.
    "efficientnet-b4-g16": EfficientNet(1.4, 1.8, 380, group=16, expand=4),
    "efficientnet-b7": EfficientNet(2.0, 3.1, 600, epsilon=1e-3),
    "vit-base": VisionTransformer(12, 768),
    "unet": UNet(),
}
