"""Check an ONNX model and sort its nodes so that each comes after those that it reads."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import onnx
import onnx.inliner

from ipu_results.errors import InconsistentModelError, UnrecognisedModelError, UnsupportedOperatorError

ONNX_DOMAINS = frozenset({"", "ai.onnx"})
# Operators that are read as their definition in the standard, made of others.
EXPANDED = frozenset({"AffineGrid", "Attention", "CenterCropPad", "RotaryEmbedding", "SwiGLU"})
MAX_NAMES = 5  # in one message


@dataclass(frozen=True, slots=True)
class Node:
    """A node with a name that is unique in its graph. Inputs and outputs that are left out are not listed."""

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
    """Refuse a model that the installed onnx does not know, and inline its local functions."""
    if not model.graph.node:
        raise UnrecognisedModelError("is not an ONNX model, or has no nodes")
    if model.ir_version > onnx.IR_VERSION:
        raise UnrecognisedModelError(f"IR version {model.ir_version} is newer than {onnx.IR_VERSION}, the last known")
    known = onnx.defs.onnx_opset_version()
    if read_opset(model) > known:
        raise UnrecognisedModelError(f"opset {read_opset(model)} is newer than {known}, the last known")
    if not all(isinstance(name, str) and name.isprintable() for name in _iterate_names(model.graph)):
        raise UnrecognisedModelError("a name in it is not printable text")
    return _inline_functions(model)


def _inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace local functions and operators in EXPANDED by their nodes."""
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
    """Return the nodes that the outputs need, each after those it reads, otherwise in the order of the file."""
    nodes = tuple(_name_nodes(graph.node))
    makers = _map_makers(nodes)
    needed = _select_needed(nodes, makers, [value.name for value in graph.output])
    _refuse_missing(needed, makers, graph)
    numbers = {node.name: number for number, node in enumerate(needed)}
    sorter = TopologicalSorter(
        {numbers[node.name]: [numbers[makers[name].name] for name in node.inputs if name in makers] for node in needed}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        raise _describe_cycle([needed[number].name for number in error.args[1][1:]]) from error
    order, ready = [], sorted(sorter.get_ready())  # a sorted list is a heap
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
        name, copy = base, 2
        while name in taken:
            name, copy = f"{base}#{copy}", copy + 1
        taken.add(name)
        inputs, outputs = (tuple(filter(None, names)) for names in (proto.input, proto.output))
        node = Node(name, proto.op_type, proto, inputs, outputs)
        _refuse_foreign(node)
        yield node


def _refuse_foreign(node: Node) -> None:
    if node.proto.domain not in ONNX_DOMAINS:
        raise UnsupportedOperatorError(f"domain {node.proto.domain} is not supported", place=node.place)
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.proto.attribute):
        raise UnsupportedOperatorError("a node with a subgraph is not supported", place=node.place)


def _map_makers(nodes: Sequence[Node]) -> dict[str, Node]:
    makers: dict[str, Node] = {}
    for node in nodes:
        for output in node.outputs:
            if output in makers:
                raise InconsistentModelError(f"{output} already comes from {makers[output].place}", place=node.place)
            makers[output] = node
    return makers


def _select_needed(nodes: Sequence[Node], makers: Mapping[str, Node], outputs: Sequence[str]) -> tuple[Node, ...]:
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


def _refuse_missing(nodes: Iterable[Node], makers: Mapping[str, Node], graph: onnx.GraphProto) -> None:
    if graph.sparse_initializer:
        raise UnsupportedOperatorError("sparse initializers are not supported")
    known = {*makers, *(value.name for value in graph.input), *(tensor.name for tensor in graph.initializer)}
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
