"""Built-in networks as ONNX graphs, with seeded weights or by shapes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx

from ipu_results.errors import UnrecognisedModelError
from ipu_results.networks import bert, efficientnet, residual
from ipu_results.networks.builder import DATA_INPUTS, Builder
from ipu_results.networks.values import Values

__all__ = ["DEFAULT", "NAMES", "build", "parameters"]

DEFAULT = "resnext101-32x4d"
IMAGES: Mapping[str, residual.Residual | efficientnet.EfficientNet] = {**residual.NETWORKS, **efficientnet.NETWORKS}
NAMES = (*IMAGES, *bert.NETWORKS)
SEQUENCE = 128


def build(
    name: str,
    *,
    weights: bool | int = False,
    batch: int | None = None,
    folded: bool = False,
    sequence: int = SEQUENCE,
) -> onnx.ModelProto:
    """The graph of a built-in network: images as NCHW float32, or tokens, types and an additive mask for BERT.

    `weights` False leaves the parameters as inputs known by shape alone; True draws them with seed 0, an integer with
    that seed (0 too). `batch` None keeps a symbolic batch dimension. `folded` puts batch-norms into the convolutions.
    `sequence` is BERT's, up to 512. The same arguments give the same bytes. Raises `UnrecognisedModelError`.
    """
    values = None if weights is False else Values(int(weights) if weights is not True else 0)
    graph = Builder(values, batch=batch, folded=folded)
    if name in IMAGES:
        return IMAGES[name].build(graph, name)
    if name in bert.NETWORKS:
        return bert.NETWORKS[name].build(graph, name, _checked(name, sequence))
    raise UnrecognisedModelError(f"is no built-in network: one of {', '.join(NAMES)}", document=name)


def parameters(model: onnx.ModelProto) -> int:
    """Trainable values: weights, biases, and scale and shift of norms, with data or by shape alone."""
    data = {name for one in model.metadata_props if one.key == DATA_INPUTS for name in one.value.split()}
    shapes = {one.name: [axis.dim_value for axis in one.type.tensor_type.shape.dim] for one in model.graph.input}
    shapes |= {one.name: list(one.dims) for one in model.graph.initializer if one.data_type == onnx.TensorProto.FLOAT}
    running = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
    return sum(math.prod(shape) for name, shape in shapes.items() if shape and name not in data | running)


def _checked(name: str, sequence: int) -> int:
    if not 1 <= sequence <= bert.POSITIONS:
        raise UnrecognisedModelError(f"a sequence is 1 to {bert.POSITIONS} tokens, not {sequence}", document=name)
    return sequence
