"""The shape of every tensor at one batch size; what depends on constants and shapes alone is computed on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from ipu_results.emulator.model import Node
from ipu_results.errors import InconsistentModelError, UnknownShapeError, UnsupportedOperatorError

SMALL, SMALL_FLOATS = 4096, 16  # elements up to which a constant's data are kept: shapes and scalars, not weights
FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
SHAPES = frozenset({"Shape", "Size"})  # need a tensor's shape alone
PACKED = {
    element: width
    for width, names in ((4, ("INT4", "UINT4", "FLOAT4E2M1")), (2, ("INT2", "UINT2")))
    for element in (getattr(TensorProto, name) for name in names)
}
PREFIX = re.compile(r"^\[\w+\]\s*")
TOLD = 160  # characters of a message of onnx


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: `constant` if it is known before any input is, `data` if it is small too."""

    shape: tuple[int, ...]
    element: int
    constant: bool = False
    data: TensorProto | None = None

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def array(self) -> npt.NDArray[np.generic] | None:
        return None if self.data is None else numpy_helper.to_array(self.data)

    @property
    def proto(self) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(self.element, self.shape)


Values = dict[str, Value]


def initial(graph: onnx.GraphProto, data_inputs: Mapping[str, tuple[int, ...]]) -> Values:
    """Inputs at their shapes, initializers, and inputs that stand for parameters without data."""
    values = {}
    for one in graph.input:
        element = one.type.tensor_type.elem_type
        shape = data_inputs.get(one.name)
        values[one.name] = Value(_fixed(one), element, constant=True) if shape is None else Value(shape, element)
    return values | {one.name: _initializer(one) for one in graph.initializer}


def _fixed(one: onnx.ValueInfoProto) -> tuple[int, ...]:
    dims = one.type.tensor_type.shape.dim
    if any(not axis.HasField("dim_value") for axis in dims):
        raise UnknownShapeError(f"parameter {one.name} has a dimension without a size")
    return tuple(axis.dim_value for axis in dims)


def _initializer(tensor: TensorProto) -> Value:
    shape = tuple(tensor.dims)
    if tensor.data_type not in element_types() or min(shape, default=0) < 0:
        raise InconsistentModelError(f"initializer {tensor.name} has no shape or type that there is")
    inside = tensor.data_location != TensorProto.EXTERNAL and tensor.data_type != TensorProto.STRING
    kept = inside and _small(prod(shape), tensor.data_type)
    if inside:
        _check_data(tensor, kept)
    return Value(shape, tensor.data_type, constant=True, data=tensor if kept else None)


def _small(elements: int, element: int) -> bool:
    return elements <= (SMALL_FLOATS if element in FLOATS else SMALL)


def _check_data(tensor: TensorProto, small: bool) -> None:
    """Reads small data; of large ones, which are not copied, the size alone is checked."""
    wrong = InconsistentModelError(f"initializer {tensor.name} holds other data than its shape and type say")
    if not small and tensor.HasField("raw_data") and 8 * tensor.ByteSize() < prod(tensor.dims) * bits(tensor.data_type):
        raise wrong
    try:
        if small:
            numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise wrong from error


@cache
def element_types() -> frozenset[int]:
    return frozenset(helper.get_all_tensor_dtypes())


def bits(element: int) -> int:
    """Of one element, as onnx names its type."""
    if element in PACKED:
        return PACKED[element]
    return 8 * int(helper.tensor_dtype_to_np_dtype(element).itemsize)


def is_constant(node: Node, values: Values) -> bool:
    """Whether the node's outputs are known before any input is: made of constants, or a shape."""
    if node.kind in RANDOM:
        return False
    return node.kind in SHAPES or all(values[one].constant for one in node.inputs)


def infer(node: Node, values: Values, opset: int) -> None:
    """Adds the node's outputs to `values`."""
    if not _known(node.kind, opset):
        raise UnsupportedOperatorError(f"{node.kind} is no operator of opset {opset}", place=node.place)
    inputs = {one: values[one] for one in node.inputs}
    constant = is_constant(node, values)
    outputs = {name: _value(node, name, proto, constant) for name, proto in _types(node, inputs, opset).items() if name}
    if set(outputs) != set(node.outputs):
        raise UnknownShapeError("the type of an output is not known", place=node.place)
    values |= _evaluated(node, inputs, outputs, opset) if constant else outputs


def _known(kind: str, opset: int) -> bool:
    try:
        return not onnx.defs.get_schema(kind, opset).deprecated
    except onnx.defs.SchemaError:
        return False


def _types(node: Node, inputs: Values, opset: int) -> dict[str, onnx.TypeProto]:
    schema = onnx.defs.get_schema(node.kind, opset)
    types = {name: one.proto for name, one in inputs.items()}
    data = {name: one.data for name, one in inputs.items() if one.data is not None}
    try:
        return infer_node_outputs(schema, node.proto, types, data, opset_imports=[helper.make_opsetid("", opset)])
    except (InferenceError, ValidationError, RuntimeError, ValueError) as error:
        raise InconsistentModelError(_line(error), place=node.place) from error


def _line(error: Exception) -> str:
    text = " ".join(PREFIX.sub("", str(error)).split())
    return text if len(text) <= TOLD else text[:TOLD] + "…"


def _value(node: Node, name: str, proto: onnx.TypeProto, constant: bool) -> Value:
    tensor = proto.tensor_type
    if not proto.HasField("tensor_type"):
        raise UnsupportedOperatorError(f"{name} is no tensor", place=node.place)
    if not tensor.HasField("shape"):
        raise UnknownShapeError(f"the shape of {name} does not follow from the inputs' shapes", place=node.place)
    for number, axis in enumerate(tensor.shape.dim):
        if not axis.HasField("dim_value"):
            raise UnknownShapeError(
                f"dimension {number} of {name} does not follow from the inputs' shapes", place=node.place
            )
    shape = tuple(axis.dim_value for axis in tensor.shape.dim)
    if min(shape, default=1) < (0 if constant else 1):
        raise InconsistentModelError(f"{name} comes out empty, as {'×'.join(map(str, shape))}", place=node.place)
    return Value(shape, tensor.elem_type, constant)


def _evaluated(node: Node, inputs: Values, outputs: Values, opset: int) -> Values:
    """The outputs with their data where these are small and follow from the shapes and data of the inputs."""
    if not all(_small(one.elements, one.element) for one in outputs.values()):
        return outputs
    if node.kind in SHAPES:
        found = _measured(node, inputs[node.inputs[0]])
    elif all(one.data is not None for one in inputs.values()):
        found = _computed(node, inputs, outputs, opset)
    else:
        return outputs
    return {
        name: Value(array.shape, outputs[name].element, constant=True, data=numpy_helper.from_array(array, name))
        for name, array in zip(node.outputs, found, strict=True)
    }


def _measured(node: Node, source: Value) -> list[npt.NDArray[np.generic]]:
    if node.kind == "Size":
        return [np.array(source.elements, dtype=np.int64)]
    ends = {one.name: one.i for one in node.proto.attribute}
    return [np.array(source.shape[ends.get("start", 0) : ends.get("end", len(source.shape))], dtype=np.int64)]


def _computed(node: Node, inputs: Values, outputs: Values, opset: int) -> list[npt.NDArray[np.generic]]:
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 (slow to import, and seldom needed)

    graph = helper.make_graph(
        [node.proto],
        "constants",
        [helper.make_value_info(name, one.proto) for name, one in inputs.items()],
        [helper.make_value_info(name, one.proto) for name, one in outputs.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    feeds = {name: one.array for name, one in inputs.items()}
    try:
        return [np.asarray(one) for one in ReferenceEvaluator(model).run(list(outputs), feeds)]
    except Exception as error:
        raise UnsupportedOperatorError(f"its constant cannot be computed: {_line(error)}", place=node.place) from error
