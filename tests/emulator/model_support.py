"""Tiny ONNX models written as text, in the syntax of `onnx.parser`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.parser
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.operators import Operator
from onnx import numpy_helper


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
    return model("(float[N,4,8,8] x) => (float[] y)", body, weights, **versions)


def operators(source: onnx.ModelProto, batch: int = 2) -> list[Operator]:
    return list(read_program(source, batch).operators)
