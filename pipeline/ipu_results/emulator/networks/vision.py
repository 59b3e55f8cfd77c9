"""Build networks of images: ResNet and ResNeXt, EfficientNet, ViT and UNet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from ipu_results.emulator.networks import text
from ipu_results.emulator.networks.builder import (
    LINEAR,
    SWISH,
    BatchNorm,
    Flow,
    GraphBuilder,
    read_sizes,
    size_networks,
)

CLASSES = 1000  # of ImageNet
RESIDUAL = 0.2  # scale of the last norm of a block: keeps the sum of many random blocks within fp16


def _start(graph: GraphBuilder, channels: int, resolution: int) -> Flow:
    """Begin with a square image."""
    image = graph.add_input("image", (channels, resolution, resolution))
    return Flow(graph, image, channels)


EXPANSION = 4
PLANES = (64, 128, 256, 512)  # of the four stages; the stem has as many channels as the first


@dataclass(frozen=True, slots=True)
class ResNet:
    """Bottlenecks with the stride in the 3×3 (v1.5), after He et al. 2015 and Xie et al. 2016.

    `width` channels in each of `groups` groups of the first stage's 3×3, doubled from stage to
    stage.
    """

    blocks: Sequence[int]
    groups: int
    width: int
    resolution: int = 224

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        flow = _start(graph, 3, self.resolution)
        flow.convolve("stem", PLANES[0], 7, stride=2, gain=LINEAR, norm=BatchNorm())
        flow.add("Relu", "stem.relu")
        flow.add("MaxPool", "stem.pool", kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
        for stage, blocks in enumerate(self.blocks, start=1):
            for block in range(blocks):
                stride = 1
                if block == 0 and stage > 1:
                    stride = 2
                start = replace(flow, prefix=f"stage{stage}.{block}.")
                flow = self._add_bottleneck(start, PLANES[stage - 1], stride)
        return _add_classes(flow, name)

    def _add_bottleneck(self, start: Flow, planes: int, stride: int) -> Flow:
        inside = self.groups * self.width * planes // PLANES[0]
        outside = EXPANSION * planes
        norm = BatchNorm()
        flow = start.branch()
        flow.convolve("reduce", inside, norm=norm)
        flow.add("Relu", "reduce.relu")
        flow.convolve("conv", inside, 3, stride=stride, groups=self.groups, norm=norm)
        flow.add("Relu", "conv.relu")
        flow.convolve("expand", outside, norm=BatchNorm(scale=RESIDUAL))
        if start.channels != outside:
            start.convolve("project", outside, stride=stride, norm=norm)
        flow.add("Add", "add", start.x)
        return flow.add("Relu", "relu")


def _add_classes(flow: Flow, name: str) -> onnx.ModelProto:
    flow.prefix = ""
    flow.add("GlobalAveragePool", "pool")
    flow.add("Flatten", "flatten")
    classes = flow.graph.add_dense("classes", flow.x, (flow.channels, CLASSES))
    return flow.graph.build_model(name, classes, (CLASSES,))


STEM = 32
SQUEEZE = 4  # input channels of a block to a channel of its gate
DIVISOR = 8  # of every number of channels
GATED = 4 * SWISH  # a gate of random weights passes about half: a quarter of the variance


@dataclass(frozen=True, slots=True)
class StageSpec:
    expand: int
    kernel: int
    stride: int
    channels: int
    layers: int


STAGES = [StageSpec(**sizes) for sizes in read_sizes()["stages"].values()]


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
        flow = _start(graph, 3, self.resolution)
        flow.convolve("stem", self._scale_channels(STEM), 3, stride=2, gain=LINEAR, norm=norm)
        flow.swish("stem.swish")
        for number, stage in enumerate(STAGES, start=1):
            for layer in range(math.ceil(stage.layers * self.depth)):
                start = replace(flow, prefix=f"stage{number}.{layer}.")
                stride = 1
                if layer == 0:
                    stride = stage.stride
                flow = self._add_block(start, stage, stride)
        flow.prefix = ""
        flow.convolve("head", 4 * flow.channels, gain=LINEAR, norm=norm)
        flow.swish("head.swish")
        return _add_classes(flow, name)

    def _add_block(self, start: Flow, stage: StageSpec, stride: int) -> Flow:
        norm = BatchNorm(self.epsilon)
        outside = self._scale_channels(stage.channels)
        inside = start.channels
        gain = LINEAR
        flow = start.branch()
        if stage.expand != 1:
            inside *= self.expand or stage.expand
            flow.convolve("expand", inside, gain=LINEAR, norm=norm)
            flow.swish("expand.swish")
            gain = SWISH
        window = {"stride": stride, "groups": inside // self.group}
        flow.convolve("depthwise", inside, stage.kernel, **window, gain=gain, norm=norm)
        flow.swish("depthwise.swish")
        _add_squeeze_excite(flow, max(1, start.channels // SQUEEZE))
        residual = stride == 1 and start.channels == outside
        if residual:
            norm = replace(norm, scale=RESIDUAL)
        flow.convolve("project", outside, gain=GATED, norm=norm)
        if residual:
            flow.add("Add", "add", start.x)
        return flow

    def _scale_channels(self, base: int) -> int:
        """Scale channels to the nearest multiple of 8 that loses no more than a tenth."""
        scaled = base * self.width
        nearest = int(scaled + DIVISOR / 2) // DIVISOR * DIVISOR
        rounded = max(DIVISOR, nearest)
        if rounded < 0.9 * scaled:
            rounded += DIVISOR
        return rounded


def _add_squeeze_excite(flow: Flow, squeezed: int) -> None:
    gate = flow.branch("gate.")
    gate.add("GlobalAveragePool", "pool")
    gate.convolve("squeeze", squeezed)
    gate.swish("swish")
    gate.convolve("excite", flow.channels)
    gate.add("Sigmoid", "sigmoid")
    flow.add("Mul", "gate", gate.x)


PATCH = 16
VIT_RESOLUTION = 224
PATCHES = (VIT_RESOLUTION // PATCH) ** 2


@dataclass(frozen=True, slots=True)
class VisionTransformer:
    """A transformer that normalises before each half of a layer, after Dosovitskiy et al. 2020."""

    layers: int
    hidden: int

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        hidden = self.hidden
        flow = _start(graph, 3, VIT_RESOLUTION)
        # weights as small as those of the text networks
        gain = text.SIGMA**2 * flow.channels * PATCH**2
        flow.convolve("patches", hidden, PATCH, stride=PATCH, gain=gain, padded=False)
        shape = graph.add_integers("patches.shape", 0, hidden, PATCHES)
        flow.add("Reshape", "patches.flat", shape)
        flow.add("Transpose", "patches.turned", perm=[0, 2, 1])
        # A pad makes room for the token of the class, whose embedding is part of the positions.
        pads = graph.add_integers("class.pads", 0, 1, 0, 0, 0, 0)
        flow.add("Pad", "class.token", pads)
        table = graph.add_drawn("positions.table", (PATCHES + 1, hidden), text.SIGMA)
        flow.add("Add", "positions", table)
        text.add_layers(flow, self.layers)
        text.normalise(flow, "norm", text.PRE_NORM_EPSILON)
        flow.x = graph.add_slice("class", flow.x, start=(0,), end=(1,), axis=(1,))
        flow.add("Flatten", "class.flat")
        text.add_linear(flow, "classes", CLASSES)
        return graph.build_model(name, flow.x, (CLASSES,), text.OPSET, text.IR)


UNET_OPSET = 13
UNET_IR = 7
UNET_INPUT = 572  # pixels of a side
UNET_OUTPUT = 388
FILTERS = (64, 128, 256, 512, 1024)
# What the decoder takes of each level's field, from which pixel to before which.
CROPS = (
    (88, 480),
    (40, 240),
    (16, 120),
    (4, 60),
)
SEGMENTS = 2  # cell and background


@dataclass(frozen=True, slots=True)
class UNet:
    """UNet without padding, 572 × 572 to 388 × 388, after Ronneberger et al. 2015."""

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        flow = _start(graph, 1, UNET_INPUT)
        kept: list[str] = []
        for level, (start, stop) in enumerate(CROPS):
            flow.prefix = f"encoder{level}."
            _add_pair(flow, FILTERS[level])
            bounds = {"start": (start, start), "end": (stop, stop), "axes": (2, 3)}
            kept.append(graph.add_slice(f"{flow.prefix}crop", flow.x, **bounds))
            flow.add("MaxPool", "pool", kernel_shape=[2, 2], strides=[2, 2])
        flow.prefix = "encoder4."
        _add_pair(flow, FILTERS[-1])
        for level, filters in enumerate(reversed(FILTERS[:-1])):
            flow.prefix = f"decoder{level}."
            # A transposed convolution of 2 × 2 with stride 2 is a 1 × 1 one to four times the
            # channels, spread out.
            flow.convolve("up", 4 * filters)
            flow.add("DepthToSpace", "spread", blocksize=2)
            flow.add("Relu", "up.relu")
            flow.add("Concat", "concat", kept.pop(), axis=1)
            flow.channels = 2 * filters
            _add_pair(flow, filters)
        flow.prefix = ""
        flow.convolve("classes", SEGMENTS)
        field = (SEGMENTS, UNET_OUTPUT, UNET_OUTPUT)
        return graph.build_model(name, flow.x, field, UNET_OPSET, UNET_IR)


def _add_pair(flow: Flow, channels: int) -> None:
    """Add two convolutions of 3 × 3 without padding: they take two pixels off each side."""
    for part in ("0", "1"):
        flow.convolve(part, channels, 3, padded=False)
        flow.add("Relu", f"{part}.relu")


IMAGES: Mapping[str, ResNet | EfficientNet | VisionTransformer | UNet] = {
    **size_networks("resnet", ResNet),
    **size_networks("efficientnet", EfficientNet),
    **size_networks("vit", VisionTransformer),
    **size_networks("unet", UNet),
}
