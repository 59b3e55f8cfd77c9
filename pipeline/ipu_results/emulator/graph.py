"""Check an ONNX model, sort its nodes, and infer the shape of every tensor at one batch size.

What depends on constants and shapes alone is computed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.inliner
from onnx import TensorProto, TypeProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from ipu_results.emulator.target import read_toml
from ipu_results.errors import (
    InconsistentModelError,
    UnknownShapeError,
    UnrecognisedModelError,
    UnsupportedOperatorError,
)

ONNX_DOMAINS = ("", "ai.onnx")
KINDS = read_toml("operators.toml")  # what is done with each kind of node
# Elements up to which a constant's data are kept: enough for shapes and scalars, not for weights.
MAX_KEPT = 4096
MAX_KEPT_FLOATS = 16
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
PREFIX = re.compile(r"^\[\w+\]\s*")
BITS = re.compile(r"\d+")

Array = npt.NDArray[Any]


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
    def is_small(self) -> bool:
        if self.element_type in FLOATS:
            return self.elements <= MAX_KEPT_FLOATS
        return self.elements <= MAX_KEPT

    @property
    def array(self) -> Array | None:
        return None if self.data is None else numpy_helper.to_array(self.data)

    @property
    def proto(self) -> TypeProto:
        return helper.make_tensor_type_proto(self.element_type, self.shape)


TensorInfos = dict[str, TensorInfo]


@dataclass(frozen=True, slots=True)
class Node:
    """A node with a name that is unique in its graph, and the tensors that it reads and makes.

    Inputs and outputs that are left out are not listed. `tensors` are those of the graph so far.
    """

    name: str
    proto: onnx.NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: TensorInfos = field(repr=False)

    @property
    def kind(self) -> str:
        return self.proto.op_type

    @property
    def place(self) -> str:
        """The name in messages."""
        return f"{self.kind} {self.name}"

    @property
    def attributes(self) -> dict[str, Any]:
        return {each.name: helper.get_attribute_value(each) for each in self.proto.attribute}

    @property
    def sources(self) -> list[TensorInfo]:
        """The inputs' tensors."""
        return [self.tensors[name] for name in self.inputs]

    @property
    def results(self) -> list[TensorInfo]:
        """The outputs' tensors, which `infer_outputs` adds."""
        return [self.tensors[name] for name in self.outputs]

    @property
    def elements(self) -> int:
        """Elements of the first result."""
        return self.results[0].elements

    @property
    def decisive(self) -> tuple[str, ...]:
        """The inputs whose data the result depends on. Others give a shape or a type."""
        count = KINDS["decisive_inputs"].get(self.kind, len(self.inputs))
        return self.inputs[:count]

    @property
    def constant(self) -> bool:
        """Whether the outputs are known before any input is: made of constants, or a shape."""
        if self.kind in KINDS["random"]:
            return False
        return all(self.tensors[name].constant for name in self.decisive)

    def read_text(self, name: str, default: str) -> str:
        """Return an attribute of text."""
        value = self.attributes.get(name, default.encode())
        return bytes(value).decode()

    def check_constant(self, first: int, what: str) -> None:
        """Refuse a node whose inputs from `first` on are computed."""
        if not all(tensor.constant for tensor in self.sources[first:]):
            raise self.unsupported(what)

    def unsupported(self, what: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(f"{what} is not supported", place=self.place)

    def inconsistent(self, message: str) -> InconsistentModelError:
        return InconsistentModelError(message, place=self.place)


def prepare_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Refuse a model that the installed onnx does not know.

    Inline its local functions, and operators that are read as the standard defines them by others.
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
    if not kinds.isdisjoint(KINDS["expanded"]):
        names = [("", kind) for kind in KINDS["expanded"]]
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


def select_nodes(graph: onnx.GraphProto, tensors: TensorInfos) -> list[Node]:
    """Return the nodes that the outputs need, in the order of the file.

    Checks that every result comes from one node. `tensors` are those that exist before any node.
    """
    nodes: dict[str, Node] = {}
    makers: dict[str, Node] = {}
    for proto in graph.node:
        node = _name_node(proto, nodes, tensors)
        nodes[node.name] = node
        for output in node.outputs:
            if output in makers:
                raise node.inconsistent(f"{output} already comes from {makers[output].place}")
            makers[output] = node
    if not graph.output:
        raise InconsistentModelError("the graph has no output")
    if graph.sparse_initializer:
        raise UnsupportedOperatorError("sparse initializers are not supported")
    read: set[str] = set()
    for value in graph.output:
        if value.name not in makers:
            raise InconsistentModelError(f"no node produces the output {value.name}")
        read.add(value.name)
    needed: list[Node] = []
    for node in reversed(nodes.values()):
        if not read.isdisjoint(node.outputs):
            read.update(node.inputs)
            needed.append(node)
    needed.reverse()
    return needed


def _name_node(proto: onnx.NodeProto, taken: Mapping[str, Node], tensors: TensorInfos) -> Node:
    """Name a node as the file does, or after its first output; `taken` are those before it."""
    first_output = "".join(proto.output[:1])
    base = proto.name or first_output or f"node{len(taken)}"
    name = base
    copy = 2
    while name in taken:
        name = f"{base}#{copy}"
        copy += 1
    inputs = tuple(filter(None, proto.input))
    outputs = tuple(filter(None, proto.output))
    node = Node(name, proto, inputs, outputs, tensors)
    if proto.domain not in ONNX_DOMAINS:
        raise node.unsupported(f"domain {proto.domain}")
    if any(attribute.HasField("g") or attribute.graphs for attribute in proto.attribute):
        raise node.unsupported("a node with a subgraph")
    return node


def collect_constants(graph: onnx.GraphProto, inputs: TensorInfos) -> TensorInfos:
    """Return the initializers, and the inputs that are parameters known by shape alone.

    These are all but `inputs`. An input that an initializer fills has the shape of the initializer,
    whatever it says itself.
    """
    constants = {tensor.name: _read_initializer(tensor) for tensor in graph.initializer}
    for value in graph.input:
        if value.name in inputs or value.name in constants:
            continue
        parameter = _read_type(value.type, constant=True)
        if parameter is None:
            raise UnknownShapeError(f"parameter {value.name} has a dimension without a size")
        constants[value.name] = parameter
    return constants


def _read_initializer(tensor: TensorProto) -> TensorInfo:
    info = TensorInfo(tuple(tensor.dims), tensor.data_type, constant=True)
    if info.element_type not in helper.get_all_tensor_dtypes() or min(info.shape, default=0) < 0:
        raise InconsistentModelError(
            f"initializer {tensor.name} has an invalid shape or element type"
        )
    if tensor.data_location == TensorProto.EXTERNAL or info.element_type == TensorProto.STRING:
        return info
    message = f"the data of initializer {tensor.name} do not match its shape and type"
    if info.is_small:
        try:
            numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise InconsistentModelError(message) from error
        return replace(info, data=tensor)
    # Large data are not copied: their size alone is checked.
    bits = info.elements * get_element_bits(info.element_type)
    if tensor.HasField("raw_data") and 8 * tensor.ByteSize() < bits:
        raise InconsistentModelError(message)
    return info


def get_element_bits(element_type: int) -> int:
    # The names state them, as UINT4 and FLOAT8E5M2 do, where they are not those of numpy.
    stated = BITS.search(TensorProto.DataType.Name(element_type))
    if stated:
        return int(stated[0])
    return 8 * int(helper.tensor_dtype_to_np_dtype(element_type).itemsize)


def infer_outputs(node: Node, opset: int) -> None:
    """Add the node's outputs to the tensors of its graph."""
    types = _infer_types(node, opset)
    for name, proto in types.items():
        if not proto.HasField("tensor_type"):
            raise UnsupportedOperatorError(f"{name} is not a tensor", place=node.place)
    constant = node.constant
    outputs = {name: _read_type(proto, constant) for name, proto in types.items() if name}
    if constant and all(output is None or output.is_small for output in outputs.values()):
        # A shape may follow from data, as that of NonZero.
        outputs |= _compute_constant(node, types, opset)
    if set(outputs) != set(node.outputs):
        raise UnknownShapeError("the type of an output is not known", place=node.place)
    for name, output in outputs.items():
        node.tensors[name] = _check_output(node, name, output)


def _infer_types(node: Node, opset: int) -> dict[str, TypeProto]:
    try:
        schema = onnx.defs.get_schema(node.kind, opset)
    except onnx.defs.SchemaError:
        schema = None
    if schema is None or schema.deprecated:
        message = f"{node.kind} is not an operator of opset {opset}"
        raise UnsupportedOperatorError(message, place=node.place)
    types = {}
    data = {}
    for name in node.inputs:
        tensor = node.tensors[name]
        types[name] = tensor.proto
        if tensor.data is not None:
            data[name] = tensor.data
    opsets = [helper.make_opsetid("", opset)]
    try:
        return infer_node_outputs(schema, node.proto, types, data, opset_imports=opsets)
    except (InferenceError, ValidationError, RuntimeError, ValueError) as error:
        message = " ".join(PREFIX.sub("", str(error)).split())
        raise node.inconsistent(message) from error


def _read_type(proto: TypeProto, constant: bool) -> TensorInfo | None:
    """Return a tensor by its type, or None where a dimension has no size."""
    tensor = proto.tensor_type
    sizes = [axis.dim_value for axis in tensor.shape.dim if axis.HasField("dim_value")]
    if not tensor.HasField("shape") or len(sizes) < len(tensor.shape.dim):
        return None
    return TensorInfo(tuple(sizes), tensor.elem_type, constant)


def _check_output(node: Node, name: str, output: TensorInfo | None) -> TensorInfo:
    if output is None:
        message = f"the shape of {name} does not follow from the inputs' shapes"
        raise UnknownShapeError(message, place=node.place)
    is_negative = min(output.shape, default=0) < 0
    is_empty = output.elements == 0 and not output.constant
    if is_negative or is_empty:
        shape = "×".join(map(str, output.shape))
        raise node.inconsistent(f"{name} would be empty, as {shape}")
    return output


def _compute_constant(node: Node, types: Mapping[str, TypeProto], opset: int) -> TensorInfos:
    """Compute outputs that follow from the shapes and data of the inputs.

    Returns nothing for an operator that cannot be computed. Its results then have a shape and no
    data, and a node that needs the data names itself.
    """
    arrays = _compute_arrays(node, types, opset)
    if len(arrays) != len(node.outputs):
        return {}
    computed = {}
    for name, array in zip(node.outputs, arrays, strict=True):
        info = TensorInfo(array.shape, types[name].tensor_type.elem_type, constant=True)
        if info.is_small:
            info = replace(info, data=numpy_helper.from_array(array, name))
        computed[name] = info
    return computed


def _compute_arrays(node: Node, types: Mapping[str, TypeProto], opset: int) -> list[Array]:
    """Return the outputs, or none where onnx cannot compute them."""
    # slow to import, and seldom needed
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    feeds: dict[str, Array] = {}
    inputs = []
    for name in dict.fromkeys(node.inputs):
        tensor = node.tensors[name]
        array = tensor.array
        if array is None:
            if name in node.decisive:
                return []
            # Its shape and type are all that is read: zeros that take no memory have both.
            zero = np.zeros((), helper.tensor_dtype_to_np_dtype(tensor.element_type))
            array = np.broadcast_to(zero, tensor.shape)
        feeds[name] = array
        inputs.append(helper.make_value_info(name, tensor.proto))
    results = [helper.make_value_info(name, types[name]) for name in node.outputs]
    graph = helper.make_graph([node.proto], "constants", inputs, results)
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
