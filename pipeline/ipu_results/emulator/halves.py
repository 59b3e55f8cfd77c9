"""A model that computes what a machine in fp16 would: every weight and every result rounded to fp16."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The nearest fp16 values, infinite beyond 65504."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def in_halves(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose float weights are fp16 values and whose float results go through fp16, one node at a time.

    Each node computes in float32 and its result is rounded once, which is what accumulating in float32 and storing in
    fp16 gives. Partial sums that a machine keeps in fp16 are not rounded, nor is anything inside a node.
    """
    typed = onnx.shape_inference.infer_shapes(model)
    kinds = {one.name: one.type.tensor_type.elem_type for one in (*typed.graph.value_info, *typed.graph.output)}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(rounded(numpy_helper.to_array(tensor)), tensor.name))
    nodes = [one for node in copy.graph.node for one in _with_casts(node, kinds)]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _with_casts(node: onnx.NodeProto, kinds: dict[str, int]) -> Iterator[onnx.NodeProto]:
    """The node, its float outputs under other names, and what turns these into the rounded ones."""
    wide = [name for name in node.output if kinds.get(name) == FLOAT]
    for at, name in enumerate(node.output):
        if name in wide:
            node.output[at] = f"{name}/wide"
    yield node
    for name in wide:
        yield helper.make_node("Cast", [f"{name}/wide"], [f"{name}/half"], f"{name}/half", to=HALF)
        yield helper.make_node("Cast", [f"{name}/half"], [name], f"{name}/rounded", to=FLOAT)
