"""Build the built-in networks as ONNX graphs, with seeded weights or by shapes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx

from ipu_results.errors import UnrecognisedModelError
from ipu_results.networks import bert, efficientnet, residual, transformer, unet
from ipu_results.networks.builder import DATA_INPUTS, GraphBuilder, WeightGenerator

__all__ = ["ALL_NAMES", "DEFAULT", "NAMES", "build", "count_parameters"]

DEFAULT = "resnext101-32x4d"
ImageNetwork = residual.ResNet | efficientnet.EfficientNet | transformer.VisionTransformer | unet.UNet
IMAGES: Mapping[str, ImageNetwork] = {
    **residual.NETWORKS,
    **efficientnet.NETWORKS,
    **transformer.IMAGES,
    **unet.NETWORKS,
}
TEXTS: Mapping[str, tuple[bert.Bert | transformer.Gpt2, int]] = {  # with the longest sequence
    **{name: (network, bert.POSITIONS) for name, network in bert.NETWORKS.items()},
    **{name: (network, transformer.POSITIONS) for name, network in transformer.TEXTS.items()},
}
ALL_NAMES = (*IMAGES, *TEXTS)
# For predictions of training alone: no rule and no inference row is about them.
TRAINING_NAMES = ("efficientnet-b4-g16", *transformer.IMAGES, *unet.NETWORKS, *transformer.TEXTS)
TRAINING_NAMES += tuple(name for name in bert.NETWORKS if "pretraining" in name)
NAMES = tuple(name for name in ALL_NAMES if name not in TRAINING_NAMES)
SEQUENCE = 128


def build(
    name: str,
    *,
    weights: bool | int = False,
    batch: int | None = None,
    folded: bool = False,
    sequence: int = SEQUENCE,
) -> onnx.ModelProto:
    """Build a network: images as NCHW float32, or tokens, types and an additive mask for BERT.

    `weights` False leaves the parameters as inputs known by shape alone; True draws them with seed 0, an integer with
    that seed (0 too). `batch` None keeps a symbolic batch dimension. `folded` puts batch-norms into the convolutions.
    `sequence` is BERT's, up to 512, or GPT-2's, up to 1024. The same arguments give the same bytes. Raises
    `UnrecognisedModelError`.
    """
    generator = None if weights is False else WeightGenerator(0 if weights is True else weights)
    graph = GraphBuilder(generator, batch=batch, folded=folded)
    if name in IMAGES:
        return IMAGES[name].build(graph, name)
    if name not in TEXTS:
        message = f"is not a built-in network: choose one of {', '.join(ALL_NAMES)}"
        raise UnrecognisedModelError(message, document=name)
    network, longest = TEXTS[name]
    if not 1 <= sequence <= longest:
        message = f"a sequence has 1 to {longest} tokens, not {sequence}"
        raise UnrecognisedModelError(message, document=name)
    return network.build(graph, name, sequence)


def count_parameters(model: onnx.ModelProto) -> int:
    """Count trainable values: weights, biases, and scale and shift of norms, with data or by shape alone."""
    data = {name for entry in model.metadata_props if entry.key == DATA_INPUTS for name in entry.value.split()}
    shapes = {value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in model.graph.input}
    shapes |= {
        tensor.name: list(tensor.dims)
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
    }
    running = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
    return sum(math.prod(shape) for name, shape in shapes.items() if shape and name not in data | running)
