"""An ONNX file as nodes in an order in which they can run, or one line about why there is none."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from ipu_results.errors import InconsistentModelError, UnrecognisedModelError, UnsupportedOperatorError

ONNX_DOMAINS = frozenset({"", "ai.onnx"})
TOLD = 5  # names in one message


@dataclass(frozen=True, slots=True)
class Node:
    """A node with a name that no other node of the graph has; inputs and outputs that are left out are not listed."""

    name: str
    kind: str
    proto: onnx.NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def place(self) -> str:
        """As messages name it."""
        return f"{self.kind} {self.name}"


def load(source: onnx.ModelProto | Path | str) -> onnx.ModelProto:
    """A model of a version that the installed onnx knows; data kept outside the file are not read."""
    model = source if isinstance(source, onnx.ModelProto) else _parsed(Path(source))
    if not model.graph.node:
        raise UnrecognisedModelError("is no ONNX model, or one without nodes")
    if model.ir_version > onnx.IR_VERSION:
        raise UnrecognisedModelError(
            f"IR version {model.ir_version} is later than {onnx.IR_VERSION}, the last one known"
        )
    known = onnx.defs.onnx_opset_version()
    if opset(model) > known:
        raise UnrecognisedModelError(f"opset {opset(model)} is later than {known}, the last one known")
    if not all(isinstance(name, str) and name.isprintable() for name in _names(model.graph)):
        raise UnrecognisedModelError("a name in it is no printable text")
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def _parsed(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load_model_from_string(path.read_bytes())
    except OSError as error:
        raise UnrecognisedModelError(f"cannot be read: {error.strerror or error}") from error
    except DecodeError as error:
        raise UnrecognisedModelError("is no ONNX model") from error


def _names(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    """All that messages may tell; protobuf hands out bytes where they are no UTF-8."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (one.name for one in node.attribute)
    for value in (*graph.input, *graph.output):
        yield from (value.name, *(axis.dim_param for axis in value.type.tensor_type.shape.dim))
    yield from (one.name for one in graph.initializer)


def opset(model: onnx.ModelProto) -> int:
    versions = [one.version for one in model.opset_import if one.domain in ONNX_DOMAINS]
    if not versions:
        raise UnrecognisedModelError("names no version of the ONNX operators")
    return int(max(versions))


def ordered(graph: onnx.GraphProto) -> tuple[Node, ...]:
    """The nodes that the outputs need, each after those it reads from, else in the order of the file."""
    nodes = tuple(_named(graph.node))
    makers = _makers(nodes)
    wanted = _needed(nodes, makers, [one.name for one in graph.output])
    _refuse_missing(wanted, makers, _given(graph))
    waiting = {node.name: {makers[one].name for one in node.inputs if one in makers} for node in wanted}
    order = tuple(_in_order(wanted, waiting))
    if len(order) < len(wanted):
        raise _cycle({name for name in waiting if name not in {node.name for node in order}}, waiting)
    return order


def _named(protos: Iterable[onnx.NodeProto]) -> Iterator[Node]:
    taken: set[str] = set()
    for number, proto in enumerate(protos):
        base = proto.name or next(iter(proto.output), "") or f"node{number}"
        name, copy = base, 2
        while name in taken:
            name, copy = f"{base}#{copy}", copy + 1
        taken.add(name)
        inputs, outputs = (tuple(one for one in names if one) for names in (proto.input, proto.output))
        node = Node(name, proto.op_type, proto, inputs, outputs)
        _refuse_foreign(node)
        yield node


def _refuse_foreign(node: Node) -> None:
    if node.proto.domain not in ONNX_DOMAINS:
        raise UnsupportedOperatorError(f"domain {node.proto.domain} is not supported", place=node.place)
    if any(one.HasField("g") or one.graphs for one in node.proto.attribute):
        raise UnsupportedOperatorError("a node with a graph of its own is not supported", place=node.place)


def _makers(nodes: Sequence[Node]) -> dict[str, Node]:
    makers: dict[str, Node] = {}
    for node in nodes:
        for output in node.outputs:
            if output in makers:
                raise InconsistentModelError(f"{output} already comes from {makers[output].place}", place=node.place)
            makers[output] = node
    return makers


def _needed(nodes: Sequence[Node], makers: Mapping[str, Node], outputs: Sequence[str]) -> tuple[Node, ...]:
    if not outputs:
        raise InconsistentModelError("the graph has no output")
    for output in outputs:
        if output not in makers:
            raise InconsistentModelError(f"no node makes the output {output}")
    reached = {makers[output].name for output in outputs}
    waiting = [makers[output] for output in outputs]
    while waiting:
        for tensor in waiting.pop().inputs:
            maker = makers.get(tensor)
            if maker is not None and maker.name not in reached:
                reached.add(maker.name)
                waiting.append(maker)
    return tuple(node for node in nodes if node.name in reached)


def _given(graph: onnx.GraphProto) -> set[str]:
    if graph.sparse_initializer:
        raise UnsupportedOperatorError("sparse initializers are not supported")
    return {one.name for one in graph.input} | {one.name for one in graph.initializer}


def _refuse_missing(nodes: Iterable[Node], makers: Mapping[str, Node], given: set[str]) -> None:
    for node in nodes:
        for tensor in node.inputs:
            if tensor not in makers and tensor not in given:
                raise InconsistentModelError(
                    f"{tensor} is no input, no initializer and no node's output", place=node.place
                )


def _in_order(nodes: Sequence[Node], waiting: Mapping[str, set[str]]) -> Iterator[Node]:
    left = {name: len(sources) for name, sources in waiting.items()}
    readers: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        for source in waiting[node.name]:
            readers.setdefault(source, []).append(number)
    ready = [number for number, node in enumerate(nodes) if not left[node.name]]
    while ready:
        node = nodes[heapq.heappop(ready)]
        yield node
        for number in readers.get(node.name, ()):
            left[nodes[number].name] -= 1
            if not left[nodes[number].name]:
                heapq.heappush(ready, number)


def _cycle(stuck: set[str], waiting: Mapping[str, set[str]]) -> InconsistentModelError:
    """Follows what waits for what until a node comes round again."""
    path = [min(stuck)]
    while path[-1] not in path[:-1]:
        path.append(min(waiting[path[-1]] & stuck))
    names = path[path.index(path[-1]) : -1][::-1]
    first = names.index(min(names))
    names = names[first:] + names[:first]
    told = ", ".join(names[:TOLD]) + (f" and {len(names) - TOLD} more" if len(names) > TOLD else "")
    return InconsistentModelError(f"nodes form a cycle: {told}")
