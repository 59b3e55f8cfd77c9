"""Compute a network as a machine in fp16 would: every weight and every result is rounded to fp16."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from ipu_results.emulator.network import Network
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError
from ipu_results.networks import build

Array = npt.NDArray[Any]
FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
MAX_MESSAGE = 300  # characters of onnxruntime's own message


@lru_cache(maxsize=2)
def open_session(network: Network, data_inputs: tuple[str, ...]) -> Any:
    """Open an onnxruntime session in fp16, kept for the next batch because it takes seconds.

    Raises InconsistentModelError for a network without weights.
    """
    import onnxruntime  # noqa: PLC0415 (slow to import, and only needed to run)

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # keeps every cast
    options.log_severity_level = 4
    data = insert_fp16_casts(_load_weights(network, data_inputs)).SerializeToString()
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        message = " ".join(str(error).split())[:MAX_MESSAGE]
        raise UnrecognisedModelError(f"onnxruntime cannot run it: {message}", document=network.name) from error


def round_to_fp16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the nearest fp16 values as float32, infinite beyond 65504."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def insert_fp16_casts(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy whose float weights are fp16 values and whose float results pass through fp16 after each node.

    Each node computes in float32 and its result is rounded once, which is what accumulating in float32 and storing in
    fp16 gives. Partial sums that a machine keeps in fp16 are not rounded, and nothing inside a node is.
    """
    typed = onnx.shape_inference.infer_shapes(model)
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*typed.graph.value_info, *typed.graph.output)}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(round_to_fp16(numpy_helper.to_array(tensor)), tensor.name))
    nodes = [cast for node in copy.graph.node for cast in _add_casts(node, kinds)]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _add_casts(node: onnx.NodeProto, kinds: dict[str, int]) -> Iterator[onnx.NodeProto]:
    """Rename the node's float outputs, and cast them to fp16 and back under their own names."""
    wide = [name for name in node.output if kinds.get(name) == FLOAT]
    for at, name in enumerate(node.output):
        if name in wide:
            node.output[at] = f"{name}/wide"
    yield node
    for name in wide:
        yield helper.make_node("Cast", [f"{name}/wide"], [f"{name}/half"], f"{name}/half", to=FLOAT16)
        yield helper.make_node("Cast", [f"{name}/half"], [name], f"{name}/rounded", to=FLOAT)


def _load_weights(network: Network, data_inputs: tuple[str, ...]) -> onnx.ModelProto:
    if network.built_in:
        return build(network.name, weights=True)
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    if network.folder is not None:
        onnx.load_external_data_for_model(model, str(network.folder))
    filled = {tensor.name for tensor in model.graph.initializer}
    if missing := [value.name for value in model.graph.input if value.name not in filled.union(data_inputs)]:
        message = f"has no weights (for example {missing[0]}): it can be timed but not run"
        raise InconsistentModelError(message, document=network.name)
    return model
