"""Check an ONNX model, sort its nodes, and infer the shape of every tensor at one batch size.

What depends on constants and shapes alone is computed here.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.inliner
from onnx import TensorProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from ipu_results.errors import (
    InconsistentModelError,
    UnknownShapeError,
    UnrecognisedModelError,
    UnsupportedOperatorError,
)

ONNX_DOMAINS = frozenset({"", "ai.onnx"})
# Operators that are read as their definition in the standard, made of others.
EXPANDED = frozenset({"AffineGrid", "Attention", "CenterCropPad", "RotaryEmbedding", "SwiGLU"})
MAX_NAMES = 5  # in one message


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
    if read_opset(model) > known:
        raise UnrecognisedModelError(
            f"opset {read_opset(model)} is newer than {known}, the last known"
        )
    if not all(
        isinstance(name, str) and name.isprintable() for name in _iterate_names(model.graph)
    ):
        raise UnrecognisedModelError("a name in it is not printable text")
    if any(node.op_type in EXPANDED and node.domain in ONNX_DOMAINS for node in model.graph.node):
        names = [("", kind) for kind in sorted(EXPANDED)]
        model = onnx.inliner.inline_selected_functions(model, names, inline_schema_functions=True)
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def _iterate_names(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    """Yield all names that messages may show; protobuf returns bytes where they are not UTF-8."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in (*graph.input, *graph.output):
        yield from (value.name, *(axis.dim_param for axis in value.type.tensor_type.shape.dim))
    yield from (tensor.name for tensor in graph.initializer)


def read_opset(model: onnx.ModelProto) -> int:
    versions = [opset.version for opset in model.opset_import if opset.domain in ONNX_DOMAINS]
    if not versions:
        raise UnrecognisedModelError("does not name a version of the ONNX operators")
    return int(max(versions))


def sort_nodes(graph: onnx.GraphProto) -> tuple[Node, ...]:
    """Return the nodes that the outputs need, each after those it reads, otherwise in the order of
    the file.
    """
    nodes = tuple(_name_nodes(graph.node))
    makers = _map_makers(nodes)
    needed = _select_needed(nodes, makers, [value.name for value in graph.output])
    _refuse_missing(needed, makers, graph)
    numbers = {node.name: number for number, node in enumerate(needed)}
    sorter = TopologicalSorter(
        {
            numbers[node.name]: [
                numbers[makers[name].name] for name in node.inputs if name in makers
            ]
            for node in needed
        }
    )
    try:
        sorter.prepare()
    except CycleError as error:
        raise _describe_cycle([needed[number].name for number in error.args[1][1:]]) from error
    order = []
    ready = sorted(sorter.get_ready())  # a sorted list is a heap
    while ready:
        number = heapq.heappop(ready)
        order.append(needed[number])
        sorter.done(number)
        for freed in sorter.get_ready():
            heapq.heappush(ready, freed)
    return tuple(order)


def _name_nodes(protos: Iterable[onnx.NodeProto]) -> Iterator[Node]:
    taken: set[str] = set()
    for number, proto in enumerate(protos):
        base = proto.name or next(iter(proto.output), "") or f"node{number}"
        name = base
        copy = 2
        while name in taken:
            name = f"{base}#{copy}"
            copy += 1
        taken.add(name)
        inputs, outputs = (tuple(filter(None, names)) for names in (proto.input, proto.output))
        node = Node(name, proto.op_type, proto, inputs, outputs)
        if proto.domain not in ONNX_DOMAINS:
            raise UnsupportedOperatorError(
                f"domain {proto.domain} is not supported", place=node.place
            )
        if any(attribute.HasField("g") or attribute.graphs for attribute in proto.attribute):
            raise UnsupportedOperatorError(
                "a node with a subgraph is not supported", place=node.place
            )
        yield node


def _map_makers(nodes: Sequence[Node]) -> dict[str, Node]:
    makers: dict[str, Node] = {}
    for node in nodes:
        for output in node.outputs:
            if output in makers:
                raise InconsistentModelError(
                    f"{output} already comes from {makers[output].place}", place=node.place
                )
            makers[output] = node
    return makers


def _select_needed(
    nodes: Sequence[Node], makers: Mapping[str, Node], outputs: Sequence[str]
) -> tuple[Node, ...]:
    if not outputs:
        raise InconsistentModelError("the graph has no output")
    for output in outputs:
        if output not in makers:
            raise InconsistentModelError(f"no node produces the output {output}")
    reached = {makers[output].name for output in outputs}
    waiting = [makers[output] for output in outputs]
    while waiting:
        for tensor in waiting.pop().inputs:
            maker = makers.get(tensor)
            if maker is not None and maker.name not in reached:
                reached.add(maker.name)
                waiting.append(maker)
    return tuple(node for node in nodes if node.name in reached)


def _refuse_missing(
    nodes: Iterable[Node], makers: Mapping[str, Node], graph: onnx.GraphProto
) -> None:
    if graph.sparse_initializer:
        raise UnsupportedOperatorError("sparse initializers are not supported")
    known = {
        *makers,
        *(value.name for value in graph.input),
        *(tensor.name for tensor in graph.initializer),
    }
    for node in nodes:
        for tensor in node.inputs:
            if tensor not in known:
                message = f"{tensor} is not an input, an initializer or an output of a node"
                raise InconsistentModelError(message, place=node.place)


def _describe_cycle(names: list[str]) -> InconsistentModelError:
    first = names.index(min(names))
    names = names[first:] + names[:first]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return InconsistentModelError(f"nodes form a cycle: {', '.join(names[:MAX_NAMES])}{more}")


# Elements up to which a constant's data are kept: enough for shapes and scalars, not for weights.
MAX_KEPT, MAX_KEPT_FLOATS = 4096, 16
MAX_MESSAGE = 160  # characters of a message of onnx
FLOATS = frozenset(
    {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
)
RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
SHAPES = frozenset({"Shape", "Size"})  # need a tensor's shape alone
TYPE_ONLY = "CastLike"  # needs the type of its second input alone
PACKED_BITS = {
    getattr(TensorProto, name): bits
    for bits, names in ((4, ("INT4", "UINT4", "FLOAT4E2M1")), (2, ("INT2", "UINT2")))
    for name in names
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
    def array(self) -> npt.NDArray[np.generic] | None:
        return None if self.data is None else numpy_helper.to_array(self.data)

    @property
    def proto(self) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(self.element_type, self.shape)


TensorInfos = dict[str, TensorInfo]


def collect_initial_tensors(
    graph: onnx.GraphProto, data_inputs: Mapping[str, tuple[int, ...]]
) -> TensorInfos:
    """Return inputs at their shapes, initializers, and inputs that are parameters known by shape
    alone.
    """
    tensors = {}
    for value in graph.input:
        constant = value.name not in data_inputs
        dims = value.type.tensor_type.shape.dim
        if constant and any(not axis.HasField("dim_value") for axis in dims):
            raise UnknownShapeError(f"parameter {value.name} has a dimension without a size")
        shape = tuple(axis.dim_value for axis in dims) if constant else data_inputs[value.name]
        tensors[value.name] = TensorInfo(shape, value.type.tensor_type.elem_type, constant)
    return tensors | {tensor.name: _read_initializer(tensor) for tensor in graph.initializer}


def _read_initializer(tensor: TensorProto) -> TensorInfo:
    shape = tuple(tensor.dims)
    if tensor.data_type not in list_element_types() or min(shape, default=0) < 0:
        raise InconsistentModelError(
            f"initializer {tensor.name} has an invalid shape or element type"
        )
    inside = tensor.data_location != TensorProto.EXTERNAL and tensor.data_type != TensorProto.STRING
    small = inside and _is_small(prod(shape), tensor.data_type)
    if inside:
        _check_data(tensor, small)
    return TensorInfo(shape, tensor.data_type, constant=True, data=tensor if small else None)


def _is_small(elements: int, element_type: int) -> bool:
    return elements <= (MAX_KEPT_FLOATS if element_type in FLOATS else MAX_KEPT)


def _check_data(tensor: TensorProto, small: bool) -> None:
    """Read small data. Of large data, which are not copied, check the size alone."""
    wrong = InconsistentModelError(
        f"the data of initializer {tensor.name} do not match its shape and type"
    )
    if small:
        try:
            numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise wrong from error
    elif tensor.HasField("raw_data") and 8 * tensor.ByteSize() < prod(
        tensor.dims
    ) * get_element_bits(tensor.data_type):
        raise wrong


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
    read = node.inputs[:1] if node.kind == TYPE_ONLY else node.inputs
    return node.kind in SHAPES or all(tensors[name].constant for name in read)


def infer_outputs(node: Node, tensors: TensorInfos, opset: int) -> None:
    """Add the node's outputs to `tensors`."""
    try:
        known = not onnx.defs.get_schema(node.kind, opset).deprecated
    except onnx.defs.SchemaError:
        known = False
    if not known:
        raise UnsupportedOperatorError(
            f"{node.kind} is not an operator of opset {opset}", place=node.place
        )
    inputs = {name: tensors[name] for name in node.inputs}
    constant = is_constant(node, tensors)
    types = _infer_types(node, inputs, opset)
    if constant and not all(map(_is_sized, types.values())):
        computed = _compute_constant(node, inputs, types, opset)
        if computed:  # a shape that follows from data, as that of NonZero
            tensors |= computed
            return
    outputs = {
        name: _read_type(node, name, proto, constant) for name, proto in types.items() if name
    }
    if set(outputs) != set(node.outputs):
        raise UnknownShapeError("the type of an output is not known", place=node.place)
    small = constant and all(
        _is_small(tensor.elements, tensor.element_type) for tensor in outputs.values()
    )
    tensors |= (_compute_constant(node, inputs, types, opset) if small else {}) or outputs


def _is_sized(proto: onnx.TypeProto) -> bool:
    shape = proto.tensor_type.shape
    return proto.tensor_type.HasField("shape") and all(
        axis.HasField("dim_value") for axis in shape.dim
    )


def _infer_types(node: Node, inputs: TensorInfos, opset: int) -> dict[str, onnx.TypeProto]:
    schema = onnx.defs.get_schema(node.kind, opset)
    types = {name: tensor.proto for name, tensor in inputs.items()}
    data = {name: tensor.data for name, tensor in inputs.items() if tensor.data is not None}
    try:
        return infer_node_outputs(
            schema, node.proto, types, data, opset_imports=[helper.make_opsetid("", opset)]
        )
    except (InferenceError, ValidationError, RuntimeError, ValueError) as error:
        text = " ".join(PREFIX.sub("", str(error)).split())
        message = text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"
        raise InconsistentModelError(message, place=node.place) from error


def _read_type(node: Node, name: str, proto: onnx.TypeProto, constant: bool) -> TensorInfo:
    if not proto.HasField("tensor_type"):
        raise UnsupportedOperatorError(f"{name} is not a tensor", place=node.place)
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        raise UnknownShapeError(
            f"the shape of {name} does not follow from the inputs' shapes", place=node.place
        )
    for number, axis in enumerate(tensor.shape.dim):
        if not axis.HasField("dim_value"):
            message = f"dimension {number} of {name} does not follow from the inputs' shapes"
            raise UnknownShapeError(message, place=node.place)
    shape = tuple(axis.dim_value for axis in tensor.shape.dim)
    if min(shape, default=1) < (0 if constant else 1):
        raise InconsistentModelError(
            f"{name} would be empty, as {'×'.join(map(str, shape))}", place=node.place
        )
    return TensorInfo(shape, tensor.elem_type, constant)


def _compute_constant(
    node: Node, inputs: TensorInfos, types: Mapping[str, onnx.TypeProto], opset: int
) -> TensorInfos:
    """Compute outputs that follow from the shapes and data of the inputs.

    Returns nothing for an operator that cannot be computed. Its results then have a shape and no
    data, and a node that needs the data names itself.
    """
    if node.kind in SHAPES:
        arrays = [_evaluate_shape(node, inputs[node.inputs[0]])]
    elif node.kind == TYPE_ONLY and (array := inputs[node.inputs[0]].array) is not None:
        arrays = [
            array.astype(
                helper.tensor_dtype_to_np_dtype(types[node.outputs[0]].tensor_type.elem_type)
            )
        ]
    elif all(tensor.data is not None for tensor in inputs.values()):
        arrays = _run_reference(node, inputs, types, opset)
    else:
        return {}
    if len(arrays) != len(node.outputs):
        return {}
    known = {}
    for name, array in zip(node.outputs, arrays, strict=True):
        kind = types[name].tensor_type.elem_type
        data = numpy_helper.from_array(array, name) if _is_small(array.size, kind) else None
        known[name] = TensorInfo(array.shape, kind, constant=True, data=data)
    return known


def _evaluate_shape(node: Node, source: TensorInfo) -> npt.NDArray[np.generic]:
    if node.kind == "Size":
        return np.array(source.elements, dtype=np.int64)
    ends = {attribute.name: attribute.i for attribute in node.proto.attribute}
    return np.array(
        source.shape[ends.get("start", 0) : ends.get("end", len(source.shape))], dtype=np.int64
    )


def _run_reference(
    node: Node, inputs: TensorInfos, types: Mapping[str, onnx.TypeProto], opset: int
) -> list[npt.NDArray[np.generic]]:
    """Return the outputs, or none where onnx cannot compute them."""
    # slow to import, and seldom needed
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    sources = [helper.make_value_info(name, tensor.proto) for name, tensor in inputs.items()]
    results = [helper.make_value_info(name, types[name]) for name in node.outputs]
    graph = helper.make_graph([node.proto], "constants", sources, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    feeds = {name: tensor.array for name, tensor in inputs.items() if tensor.array is not None}
    try:
        if node.kind == "GatherElements":  # the evaluator of onnx 1.23.2 fails on it
            return [_gather_elements(node, feeds[node.inputs[0]], feeds[node.inputs[1]])]
        return [
            np.asarray(array) for array in ReferenceEvaluator(model).run(list(node.outputs), feeds)
        ]
    except Exception:
        return []


def _gather_elements(
    node: Node, data: npt.NDArray[np.generic], indices: npt.NDArray[Any]
) -> npt.NDArray[np.generic]:
    axis = (
        next((attribute.i for attribute in node.proto.attribute if attribute.name == "axis"), 0)
        % data.ndim
    )
    part = tuple(slice(None if at == axis else size) for at, size in enumerate(indices.shape))
    return np.take_along_axis(data[part], indices % data.shape[axis], axis)
