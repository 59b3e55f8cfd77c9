"""Tiny ONNX models written as text, in the syntax of `onnx.parser`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
import onnx.parser
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.networks.builder import DATA_INPUTS
from ipu_results.emulator.operators import Operator
from onnx import numpy_helper

IMAGE = "(float[N,4,8,8] x) => (float[] y)"


def model(
    signature: str,
    body: str,
    weights: Mapping[str, tuple[int, ...]] | None = None,
    *,
    opset: int = 17,
    ir: int = 8,
) -> onnx.ModelProto:
    """`signature` as `(float[N,3,8,8] x) => (float[N,4] y)`; each weight is an initializer of
    zeros.

    A node has no name of its own unless the body gives one, so it is called after its output.
    """
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}]>'
    parsed = onnx.parser.parse_model(f"{head} tiny {signature} {{ {body} }}")
    for name, shape in (weights or {}).items():
        parsed.graph.initializer.append(
            numpy_helper.from_array(np.zeros(shape, dtype=np.float32), name)
        )
    return parsed


def image(
    body: str, weights: Mapping[str, tuple[int, ...]] | None = None, **versions: int
) -> onnx.ModelProto:
    """Return a model from the image x, of 4 channels and 8 by 8, to y."""
    return model(IMAGE, body, weights, **versions)


def operators(source: onnx.ModelProto, batch: int = 2) -> list[Operator]:
    return list(read_program(source, batch).operators)


def count_parameters(model: onnx.ModelProto) -> int:
    """Count trainable values: weights, biases, and scale and shift of norms, with data or by shape
    alone.
    """
    data = {
        name
        for entry in model.metadata_props
        if entry.key == DATA_INPUTS
        for name in entry.value.split()
    }
    shapes = {
        value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }
    floats = (
        tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT
    )
    shapes |= {tensor.name: list(tensor.dims) for tensor in floats}
    running = {
        name
        for node in model.graph.node
        if node.op_type == "BatchNormalization"
        for name in node.input[3:5]
    }
    return sum(
        math.prod(shape) for name, shape in shapes.items() if shape and name not in data | running
    )
