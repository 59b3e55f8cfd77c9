"""Check an ONNX model, sort its nodes, and infer the shape of every tensor at one batch size.

What depends on constants and shapes alone is computed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.inliner
from onnx import TensorProto, TypeProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from ipu_results.errors import (
    InconsistentModelError,
    UnknownShapeError,
    UnrecognisedModelError,
    UnsupportedOperatorError,
)

ONNX_DOMAINS = ("", "ai.onnx")
# Operators that are read as their definition in the standard, made of others.
EXPANDED = ("AffineGrid", "Attention", "CenterCropPad", "RotaryEmbedding", "SwiGLU")

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Node:
    """A node with a name that is unique in its graph.

    Inputs and outputs that are left out are not listed.
    """

    name: str
    kind: str
    proto: onnx.NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def place(self) -> str:
        """The name in messages."""
        return f"{self.kind} {self.name}"

    @property
    def attributes(self) -> dict[str, Any]:
        return {each.name: helper.get_attribute_value(each) for each in self.proto.attribute}

    def unsupported(self, what: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(f"{what} is not supported", place=self.place)

    def inconsistent(self, message: str) -> InconsistentModelError:
        return InconsistentModelError(message, place=self.place)


def prepare_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Refuse a model that the installed onnx does not know.

    Inline its local functions and operators in EXPANDED.
    """
    if not model.graph.node:
        raise UnrecognisedModelError("is not an ONNX model, or has no nodes")
    if model.ir_version > onnx.IR_VERSION:
        raise UnrecognisedModelError(
            f"IR version {model.ir_version} is newer than {onnx.IR_VERSION}, the last known"
        )
    known = onnx.defs.onnx_opset_version()
    opset = read_opset(model)
    if opset > known:
        raise UnrecognisedModelError(f"opset {opset} is newer than {known}, the last known")
    for name in _iterate_names(model.graph):
        if not isinstance(name, str) or not name.isprintable():
            raise UnrecognisedModelError("a name in it is not printable text")
    kinds = {node.op_type for node in model.graph.node if node.domain in ONNX_DOMAINS}
    if not kinds.isdisjoint(EXPANDED):
        names = [("", kind) for kind in EXPANDED]
        model = onnx.inliner.inline_selected_functions(model, names, inline_schema_functions=True)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return model


def _iterate_names(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    """Yield all names that messages may show; protobuf returns bytes where they are not UTF-8."""
    for node in graph.node:
        yield node.name
        yield node.op_type
        yield node.domain
        yield from node.input
        yield from node.output
        for attribute in node.attribute:
            yield attribute.name
    for value in (*graph.input, *graph.output):
        yield value.name
        for axis in value.type.tensor_type.shape.dim:
            yield axis.dim_param
    for tensor in graph.initializer:
        yield tensor.name


def read_opset(model: onnx.ModelProto) -> int:
    versions = [opset.version for opset in model.opset_import if opset.domain in ONNX_DOMAINS]
    if not versions:
        raise UnrecognisedModelError("does not name a version of the ONNX operators")
    return int(max(versions))


def select_nodes(graph: onnx.GraphProto) -> list[Node]:
    """Return the nodes that the outputs need, in the order of the file.

    ONNX wants each node after those that it reads.
    """
    nodes = _name_nodes(graph)
    read = {value.name for value in graph.output}
    needed: list[Node] = []
    for node in reversed(nodes):
        if not read.isdisjoint(node.outputs):
            read.update(node.inputs)
            needed.append(node)
    needed.reverse()
    known = {value.name for value in graph.input}
    known.update(tensor.name for tensor in graph.initializer)
    for node in needed:
        for tensor in node.inputs:
            if tensor not in known:
                raise node.inconsistent(
                    f"{tensor} is not an input, an initializer or an output of an earlier node"
                )
        known.update(node.outputs)
    return needed


def _name_nodes(graph: onnx.GraphProto) -> list[Node]:
    """Return all nodes, and check that every result comes from one of them."""
    nodes: dict[str, Node] = {}
    makers: dict[str, Node] = {}
    for proto in graph.node:
        node = _name_node(proto, nodes)
        nodes[node.name] = node
        for output in node.outputs:
            if output in makers:
                raise node.inconsistent(f"{output} already comes from {makers[output].place}")
            makers[output] = node
    if not graph.output:
        raise InconsistentModelError("the graph has no output")
    for value in graph.output:
        if value.name not in makers:
            raise InconsistentModelError(f"no node produces the output {value.name}")
    if graph.sparse_initializer:
        raise UnsupportedOperatorError("sparse initializers are not supported")
    return list(nodes.values())


def _name_node(proto: onnx.NodeProto, taken: Mapping[str, Node]) -> Node:
    """Name a node as the file does, or after its first output; `taken` are those before it."""
    first_output = proto.output[0] if proto.output else ""
    base = proto.name or first_output or f"node{len(taken)}"
    name = base
    copy = 2
    while name in taken:
        name = f"{base}#{copy}"
        copy += 1
    node = Node(
        name,
        kind=proto.op_type,
        proto=proto,
        inputs=tuple(filter(None, proto.input)),
        outputs=tuple(filter(None, proto.output)),
    )
    if proto.domain not in ONNX_DOMAINS:
        raise node.unsupported(f"domain {proto.domain}")
    if any(attribute.HasField("g") or attribute.graphs for attribute in proto.attribute):
        raise node.unsupported("a node with a subgraph")
    return node


# Elements up to which a constant's data are kept: enough for shapes and scalars, not for weights.
MAX_KEPT = 4096
MAX_KEPT_FLOATS = 16
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
RANDOM = (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
# Operators whose result depends on the data of this many inputs. The others give a shape or a type.
DECISIVE_INPUTS = {"Shape": 0, "Size": 0, "CastLike": 1}
# numpy holds these in a whole byte
PACKED_BITS: dict[int, int] = {
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
}
PREFIX = re.compile(r"^\[\w+\]\s*")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor: `constant` if it is known before any input is, `data` if it is small too."""

    shape: tuple[int, ...]
    element_type: int
    constant: bool = False
    data: TensorProto | None = None

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def array(self) -> Array | None:
        return None if self.data is None else numpy_helper.to_array(self.data)

    @property
    def proto(self) -> TypeProto:
        return helper.make_tensor_type_proto(self.element_type, self.shape)


TensorInfos = dict[str, TensorInfo]


def collect_initial_tensors(
    graph: onnx.GraphProto, data_inputs: Mapping[str, tuple[int, ...]]
) -> TensorInfos:
    """Return inputs at their shapes, initializers, and inputs that are parameters known by shape
    alone.

    An input that an initializer fills has the shape of the initializer, whatever it says itself.
    """
    filled = {tensor.name for tensor in graph.initializer}
    tensors: TensorInfos = {}
    for value in graph.input:
        if value.name in filled:
            continue
        tensor_type = value.type.tensor_type
        element_type = tensor_type.elem_type
        if value.name in data_inputs:
            tensors[value.name] = TensorInfo(data_inputs[value.name], element_type)
            continue
        if not _is_sized(value.type):
            raise UnknownShapeError(f"parameter {value.name} has a dimension without a size")
        shape = tuple(axis.dim_value for axis in tensor_type.shape.dim)
        tensors[value.name] = TensorInfo(shape, element_type, constant=True)
    for tensor in graph.initializer:
        tensors[tensor.name] = _read_initializer(tensor)
    return tensors


def _read_initializer(tensor: TensorProto) -> TensorInfo:
    shape = tuple(tensor.dims)
    element_type = tensor.data_type
    if element_type not in list_element_types() or min(shape, default=0) < 0:
        raise InconsistentModelError(
            f"initializer {tensor.name} has an invalid shape or element type"
        )
    if tensor.data_location == TensorProto.EXTERNAL or element_type == TensorProto.STRING:
        return TensorInfo(shape, element_type, constant=True)
    elements = prod(shape)
    message = f"the data of initializer {tensor.name} do not match its shape and type"
    if _is_small(elements, element_type):
        try:
            numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise InconsistentModelError(message) from error
        return TensorInfo(shape, element_type, constant=True, data=tensor)
    # Large data are not copied: their size alone is checked.
    bits = elements * get_element_bits(element_type)
    if tensor.HasField("raw_data") and 8 * tensor.ByteSize() < bits:
        raise InconsistentModelError(message)
    return TensorInfo(shape, element_type, constant=True)


def _is_small(elements: int, element_type: int) -> bool:
    if element_type in FLOATS:
        return elements <= MAX_KEPT_FLOATS
    return elements <= MAX_KEPT


@cache
def list_element_types() -> frozenset[int]:
    return frozenset(helper.get_all_tensor_dtypes())


def get_element_bits(element_type: int) -> int:
    if element_type in PACKED_BITS:
        return PACKED_BITS[element_type]
    return 8 * int(helper.tensor_dtype_to_np_dtype(element_type).itemsize)


def is_constant(node: Node, tensors: TensorInfos) -> bool:
    """Check whether the node's outputs are known before any input is: made of constants, or a
    shape.
    """
    if node.kind in RANDOM:
        return False
    return all(tensors[name].constant for name in _list_decisive(node))


def _list_decisive(node: Node) -> tuple[str, ...]:
    """List the inputs whose data the result depends on."""
    count = DECISIVE_INPUTS.get(node.kind, len(node.inputs))
    return node.inputs[:count]


def infer_outputs(node: Node, tensors: TensorInfos, opset: int) -> None:
    """Add the node's outputs to `tensors`."""
    inputs = {name: tensors[name] for name in node.inputs}
    constant = is_constant(node, tensors)
    types = _infer_types(node, inputs, opset)
    if constant and not all(map(_is_sized, types.values())):
        # The shape may follow from data, as that of NonZero.
        computed = _compute_constant(node, inputs, types, opset)
        if computed:
            tensors |= computed
            return
    outputs = {}
    for name, proto in types.items():
        if name:
            outputs[name] = _read_type(node, name, proto, constant)
    if set(outputs) != set(node.outputs):
        raise UnknownShapeError("the type of an output is not known", place=node.place)
    are_small = all(_is_small(each.elements, each.element_type) for each in outputs.values())
    if constant and are_small:
        outputs |= _compute_constant(node, inputs, types, opset)
    tensors |= outputs


def _is_sized(proto: TypeProto) -> bool:
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return False
    return all(axis.HasField("dim_value") for axis in tensor.shape.dim)


def _infer_types(node: Node, inputs: TensorInfos, opset: int) -> dict[str, TypeProto]:
    try:
        schema = onnx.defs.get_schema(node.kind, opset)
    except onnx.defs.SchemaError:
        schema = None
    if schema is None or schema.deprecated:
        message = f"{node.kind} is not an operator of opset {opset}"
        raise UnsupportedOperatorError(message, place=node.place)
    types = {}
    data = {}
    for name, tensor in inputs.items():
        types[name] = tensor.proto
        if tensor.data is not None:
            data[name] = tensor.data
    opsets = [helper.make_opsetid("", opset)]
    try:
        return infer_node_outputs(schema, node.proto, types, data, opset_imports=opsets)
    except (InferenceError, ValidationError, RuntimeError, ValueError) as error:
        message = " ".join(PREFIX.sub("", str(error)).split())
        raise node.inconsistent(message) from error


def _read_type(node: Node, name: str, proto: TypeProto, constant: bool) -> TensorInfo:
    if not proto.HasField("tensor_type"):
        raise UnsupportedOperatorError(f"{name} is not a tensor", place=node.place)
    if not _is_sized(proto):
        message = f"the shape of {name} does not follow from the inputs' shapes"
        raise UnknownShapeError(message, place=node.place)
    tensor = proto.tensor_type
    shape = tuple(axis.dim_value for axis in tensor.shape.dim)
    is_negative = min(shape, default=0) < 0
    is_empty = 0 in shape and not constant
    if is_negative or is_empty:
        raise node.inconsistent(f"{name} would be empty, as {'×'.join(map(str, shape))}")
    return TensorInfo(shape, tensor.elem_type, constant)


def _compute_constant(
    node: Node, inputs: TensorInfos, types: Mapping[str, TypeProto], opset: int
) -> TensorInfos:
    """Compute outputs that follow from the shapes and data of the inputs.

    Returns nothing for an operator that cannot be computed. Its results then have a shape and no
    data, and a node that needs the data names itself.
    """
    arrays = _compute_arrays(node, inputs, types, opset)
    if len(arrays) != len(node.outputs):
        return {}
    known = {}
    for name, array in zip(node.outputs, arrays, strict=True):
        element_type = types[name].tensor_type.elem_type
        data = None
        if _is_small(array.size, element_type):
            data = numpy_helper.from_array(array, name)
        known[name] = TensorInfo(array.shape, element_type, constant=True, data=data)
    return known


def _compute_arrays(
    node: Node, inputs: TensorInfos, types: Mapping[str, TypeProto], opset: int
) -> list[Array]:
    """Return the outputs, or none where onnx cannot compute them."""
    # slow to import, and seldom needed
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    feeds: dict[str, Array] = {}
    decisive = _list_decisive(node)
    for name, tensor in inputs.items():
        array = tensor.array
        if array is None:
            if name in decisive:
                return []
            # Its shape and type are all that is read: zeros that take no memory have both.
            zero = np.zeros((), helper.tensor_dtype_to_np_dtype(tensor.element_type))
            array = np.broadcast_to(zero, tensor.shape)
        feeds[name] = array
    sources = [helper.make_value_info(name, tensor.proto) for name, tensor in inputs.items()]
    results = [helper.make_value_info(name, types[name]) for name in node.outputs]
    graph = helper.make_graph([node.proto], "constants", sources, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        if node.kind == "GatherElements":  # the evaluator of onnx 1.23.2 fails on it
            return [_gather_elements(node, feeds)]
        outputs = ReferenceEvaluator(model).run(list(node.outputs), feeds)
        return [np.asarray(output) for output in outputs]
    except Exception:
        return []


def _gather_elements(node: Node, feeds: Mapping[str, Array]) -> Array:
    data = feeds[node.inputs[0]]
    indices = feeds[node.inputs[1]]
    axis = node.attributes.get("axis", 0) % data.ndim
    # The data may be longer than the indices along the other axes.
    part = [slice(size) for size in indices.shape]
    part[axis] = slice(None)
    return np.take_along_axis(data[tuple(part)], indices, axis)
