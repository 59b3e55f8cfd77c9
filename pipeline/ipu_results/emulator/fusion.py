"""Groups of nodes that are one operator: swish and the exact GELU, which most exporters write out in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isclose, sqrt

from ipu_results.emulator.model import Node
from ipu_results.emulator.shapes import Values

TOLERANCE = 1e-3  # relative, on a constant: fp16 files round √2 to 1.4141


@dataclass(frozen=True, slots=True)
class Fused:
    """`last` makes the result of all `parts`, itself among them, from the tensor `source` alone."""

    kind: str
    source: str
    last: Node
    parts: tuple[Node, ...]


class Links:
    """Who makes and who reads each tensor of a graph."""

    def __init__(self, nodes: Iterable[Node], values: Values, results: Iterable[str]) -> None:
        self._values, self._results = values, frozenset(results)
        self._makers: dict[str, Node] = {}
        self._readers: dict[str, list[Node]] = {}
        for node in nodes:
            self._makers |= dict.fromkeys(node.outputs, node)
            for tensor in set(node.inputs):
                self._readers.setdefault(tensor, []).append(node)

    def maker(self, tensor: str, *kinds: str) -> Node | None:
        """The node of one of the kinds that makes the tensor for one reader only."""
        node = self._makers.get(tensor)
        return node if node is not None and node.kind in kinds and self.reader(node) is not None else None

    def reader(self, node: Node, *kinds: str) -> Node | None:
        """The one node that reads the node's result, which is no result of the graph."""
        readers = self._readers.get(node.outputs[0], [])
        private = len(readers) == 1 and not self._results.intersection(node.outputs)
        return readers[0] if private and (not kinds or readers[0].kind in kinds) else None

    def other(self, node: Node, tensor: str) -> str | None:
        """The other one of two inputs."""
        rest = [one for one in node.inputs if one != tensor]
        return rest[0] if len(rest) == 1 and len(node.inputs) == 2 else None

    def scaled(self, node: Node | None, number: float) -> str | None:
        """The input that the node combines with a constant of that one value."""
        for tensor in () if node is None else node.inputs:
            data = self._values[tensor].array
            if data is not None and data.size == 1 and isclose(float(data.item()), number, rel_tol=TOLERANCE):
                return None if node is None else self.other(node, tensor)
        return None


def find(nodes: Sequence[Node], values: Values, results: Iterable[str]) -> tuple[Fused, ...]:
    links = Links(nodes, values, results)
    return tuple(one for node in nodes for one in _candidates(node, links))


def _candidates(node: Node, links: Links) -> Iterator[Fused]:
    found = _swish(node, links) if node.kind == "Sigmoid" else _gelu(node, links) if node.kind == "Erf" else None
    if found is not None:
        yield found


def _swish(sigmoid: Node, links: Links) -> Fused | None:
    source, last = sigmoid.inputs[0], links.reader(sigmoid, "Mul")
    if last is None or links.other(last, sigmoid.outputs[0]) != source:
        return None
    return Fused("swish", source, last, (sigmoid, last))


def _gelu(erf: Node, links: Links) -> Fused | None:
    """X · (1 + erf(x / √2)) / 2, its three factors in any order."""
    inner, raised = links.maker(erf.inputs[0], "Div", "Mul"), links.reader(erf, "Add")
    root = sqrt(2) if inner is not None and inner.kind == "Div" else 1 / sqrt(2)
    source = links.scaled(inner, root)
    if inner is None or source is None or (inner.kind == "Div" and source != inner.inputs[0]):
        return None
    if raised is None or links.scaled(raised, 1.0) != erf.outputs[0]:
        return None
    return _halved(source, (inner, erf, raised), links)


def _halved(source: str, parts: tuple[Node, ...], links: Links) -> Fused | None:
    raised = parts[-1]
    first = links.reader(raised, "Mul")
    if first is None:
        return None
    other = links.other(first, raised.outputs[0])
    half = None if other is None else links.maker(other, "Mul")
    if half is not None and links.scaled(half, 0.5) == source:
        return Fused("gelu", source, first, (*parts, half, first))
    last = links.reader(first, "Mul")
    if last is None:
        return None
    by_source = other == source and links.scaled(last, 0.5) == first.outputs[0]
    by_half = links.scaled(first, 0.5) == raised.outputs[0] and links.other(last, first.outputs[0]) == source
    return Fused("gelu", source, last, (*parts, first, last)) if by_source or by_half else None
