"""Tiny ONNX models written as text, in the syntax of `onnx.parser`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.networks.builder import DATA_INPUTS
from ipu_results.emulator.operators import Operator
from onnx import numpy_helper

from tests.conftest import run_cli

IMAGE = "(float[N,4,8,8] x) => (float[] y)"
Weight = Sequence[int] | float


def model(
    signature: str,
    body: str,
    weights: Mapping[str, Weight] | None = None,
    *,
    opset: int = 17,
    ir: int = 8,
) -> onnx.ModelProto:
    """Parse a model of a signature as `(float[N,3,8,8] x) => (float[N,4] y)`.

    Each weight is an initializer: zeros of a shape, or a number. A node has no name of its own
    unless the body gives one, so it is called after its output.
    """
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}]>'
    parsed = onnx.parser.parse_model(f"{head} tiny {signature} {{ {body} }}")
    for name, weight in (weights or {}).items():
        values = np.array(weight, np.float32)
        if isinstance(weight, Sequence):
            values = np.zeros(weight, np.float32)
        parsed.graph.initializer.append(numpy_helper.from_array(values, name))
    return parsed


def image(
    body: str, weights: Mapping[str, Weight] | None = None, **versions: int
) -> onnx.ModelProto:
    """Return a model from the image x, of 4 channels and 8 by 8, to y."""
    return model(IMAGE, body, weights, **versions)


def operators(source: onnx.ModelProto, batch: int = 2) -> list[Operator]:
    return list(read_program(source, batch).operators)


def count_parameters(model: onnx.ModelProto) -> int:
    """Count trainable values: weights, biases, scale and shift of norms, stored or by shape alone."""
    shapes = {}
    for value in model.graph.input:
        shapes[value.name] = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            shapes[tensor.name] = list(tensor.dims)
    for entry in model.metadata_props:
        if entry.key == DATA_INPUTS:
            for name in entry.value.split():
                del shapes[name]
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            for running in node.input[3:5]:
                shapes.pop(running, None)
    return sum(math.prod(shape) for shape in shapes.values() if shape)


def predict_json(*args: object) -> list[dict[str, Any]]:
    """Run `ipu-results predict`; return its records."""
    done = run_cli("predict", *args, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    records: list[dict[str, Any]] = json.loads(done.stdout)
    return records
