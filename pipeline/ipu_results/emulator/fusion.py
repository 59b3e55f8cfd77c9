"""Find nodes that together are one operator: swish and both forms of GELU, which most exporters write out in parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isclose, pi, sqrt

from ipu_results.emulator.model import Node
from ipu_results.emulator.shapes import TensorInfos

CUBIC = 0.044715  # of the GELU by tanh, which GPT-2 uses
TOLERANCE = 1e-3  # relative, on a constant: fp16 files round √2 to 1.4141


@dataclass(frozen=True, slots=True)
class FusedActivation:
    """An activation of the tensor `source`, computed by all `parts`; `last` of them makes the result."""

    kind: str
    source: str
    last: Node
    parts: tuple[Node, ...]


class GraphLinks:
    """Which node makes and which nodes read each tensor of a graph."""

    def __init__(self, nodes: Iterable[Node], tensors: TensorInfos, results: Iterable[str]) -> None:
        self._tensors, self._results = tensors, frozenset(results)
        self._makers: dict[str, Node] = {}
        self._readers: dict[str, list[Node]] = {}
        for node in nodes:
            self._makers |= dict.fromkeys(node.outputs, node)
            for tensor in set(node.inputs):
                self._readers.setdefault(tensor, []).append(node)

    def find_maker(self, tensor: str, *kinds: str) -> Node | None:
        """Return the node of one of the kinds that makes the tensor for a single reader."""
        node = self._makers.get(tensor)
        return node if node is not None and node.kind in kinds and self.find_reader(node) is not None else None

    def find_reader(self, node: Node, *kinds: str) -> Node | None:
        """Return the single node that reads the node's result, unless the graph returns that result too."""
        # A result that anything else reads has to exist: its node cannot be fused.
        readers = self._readers.get(node.outputs[0], [])
        private = len(readers) == 1 and not self._results.intersection(node.outputs)
        return readers[0] if private and (not kinds or readers[0].kind in kinds) else None

    def find_other_input(self, node: Node, tensor: str) -> str | None:
        """Return the other of two inputs."""
        rest = [name for name in node.inputs if name != tensor]
        return rest[0] if len(rest) == 1 and len(node.inputs) == 2 else None

    def find_scaled(self, node: Node | None, number: float) -> str | None:
        """Return the input that the node combines with a constant of that value."""
        if node is None:
            return None
        for tensor in node.inputs:
            data = self._tensors[tensor].array
            if data is not None and data.size == 1 and isclose(float(data.item()), number, rel_tol=TOLERANCE):
                return self.find_other_input(node, tensor)
        return None


def find_activations(
    nodes: Sequence[Node], tensors: TensorInfos, results: Iterable[str]
) -> tuple[FusedActivation, ...]:
    links = GraphLinks(nodes, tensors, results)
    matchers = {"Sigmoid": _match_swish, "Erf": _match_gelu, "Tanh": _match_tanh_gelu}
    matches = [matchers[node.kind](node, links) for node in nodes if node.kind in matchers]
    return tuple(match for match in matches if match is not None)


def _match_swish(sigmoid: Node, links: GraphLinks) -> FusedActivation | None:
    source, last = sigmoid.inputs[0], links.find_reader(sigmoid, "Mul")
    if last is None or links.find_other_input(last, sigmoid.outputs[0]) != source:
        return None
    return FusedActivation("swish", source, last, (sigmoid, last))


def _match_gelu(erf: Node, links: GraphLinks) -> FusedActivation | None:
    """Match x · (1 + erf(x / √2)) / 2, its three factors in any order."""
    inner, raised = links.find_maker(erf.inputs[0], "Div", "Mul"), links.find_reader(erf, "Add")
    root = sqrt(2) if inner is not None and inner.kind == "Div" else 1 / sqrt(2)
    source = links.find_scaled(inner, root)
    if inner is None or source is None or (inner.kind == "Div" and source != inner.inputs[0]):
        return None
    if raised is None or links.find_scaled(raised, 1.0) != erf.outputs[0]:
        return None
    return _match_half(source, (inner, erf, raised), links)


def _match_tanh_gelu(tanh: Node, links: GraphLinks) -> FusedActivation | None:
    """Match x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) / 2, its three factors in any order."""
    scaled, raised = links.find_maker(tanh.inputs[0], "Mul"), links.find_reader(tanh, "Add")
    inner = links.find_scaled(scaled, sqrt(2 / pi))
    added = None if inner is None else links.find_maker(inner, "Add")
    if scaled is None or added is None or raised is None or links.find_scaled(raised, 1.0) != tanh.outputs[0]:
        return None
    for source in added.inputs:
        other = links.find_other_input(added, source)
        cubic = None if other is None else links.find_maker(other, "Mul")
        cube = links.find_scaled(cubic, CUBIC)
        power = None if cube is None else links.find_maker(cube, "Pow")
        if cubic is not None and power is not None and power.inputs[0] == source == links.find_scaled(power, 3.0):
            return _match_half(source, (power, cubic, added, scaled, tanh, raised), links)
    return None


def _match_half(source: str, parts: tuple[Node, ...], links: GraphLinks) -> FusedActivation | None:
    """Match the two products that follow 1 + erf(…): by x and by ½, or by x/2."""
    raised = parts[-1]
    first = links.find_reader(raised, "Mul")
    if first is None:
        return None
    other = links.find_other_input(first, raised.outputs[0])
    half = None if other is None else links.find_maker(other, "Mul")
    if half is not None and links.find_scaled(half, 0.5) == source:
        return FusedActivation("gelu", source, first, (*parts, half, first))
    last = links.find_reader(first, "Mul")
    if last is None:
        return None
    x_then_half = other == source and links.find_scaled(last, 0.5) == first.outputs[0]
    half_then_x = (
        links.find_scaled(first, 0.5) == raised.outputs[0] and links.find_other_input(last, first.outputs[0]) == source
    )
    return FusedActivation("gelu", source, last, (*parts, first, last)) if x_then_half or half_then_x else None
