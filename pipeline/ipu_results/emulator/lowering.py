"""Turn ONNX nodes into operators: one node by the table LOWERINGS, or several that are one
activation by patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isclose, pi, prod, sqrt
from typing import NamedTuple

from ipu_results.emulator import products
from ipu_results.emulator.graph import Node, TensorInfos
from ipu_results.emulator.operators import (
    Elementwise,
    Operator,
    Rearrangement,
    Reduction,
    SlidingWindow,
)
from ipu_results.emulator.products import TypedNode
from ipu_results.emulator.target import read_toml

KINDS = read_toml("operators.toml")  # what each kind of node becomes
VIEWS = KINDS["views"].split()
GLOBAL_WINDOWS = KINDS["global_windows"].split()
ELEMENTWISE: dict[str, str] = dict(KINDS["elementwise"]["renamed"])
for _name in KINDS["elementwise"]["own_name"].split():
    ELEMENTWISE[_name] = _name.lower()


def lower_node(typed: TypedNode) -> list[Operator]:
    """Return the operators of a node in `SUPPORTED`: none where the result is the first input
    unchanged.

    The last of several makes the result and reads the others, which read what the node reads.
    """
    if typed.kind not in VIEWS:
        return LOWERINGS[typed.kind](typed)
    if typed.kind == "Dropout" and _is_training(typed):
        raise typed.node.unsupported("a dropout in training mode")
    return []


def _is_training(typed: TypedNode) -> bool:
    if not any(typed.node.proto.input[2:]):
        return False
    mode = typed.inputs[-1].array
    return mode is None or bool(mode)


def _lower_elementwise(typed: TypedNode) -> list[Operator]:
    kind = typed.kind
    if kind.endswith("Normalization"):
        typed.check_constant(1, "a norm whose scale or shift is computed")
    if kind == "BatchNormalization":
        has_statistics = len(typed.outputs) > 1
        if has_statistics or typed.attributes.get("training_mode"):
            raise typed.node.unsupported("a batch-norm in training mode")
    names = [typed.name]
    if kind in KINDS["variadic"].split():
        # n inputs are combined in n − 1 operators, each of two: the last has the node's name.
        count = len(typed.inputs) - 1
        names = [f"{typed.name}/{number}" for number in range(1, count)]
        if count:
            names.append(typed.name)
    return [Elementwise(name, ELEMENTWISE[kind], typed.elements) for name in names]


def _lower_pool(typed: TypedNode) -> list[Operator]:
    """Lower a window over one, two or three dimensions, or over all of them."""
    source = typed.inputs[0]
    dimensions = len(source.shape) - 2
    if not 1 <= dimensions <= 3:
        raise typed.node.unsupported(f"a pool over {dimensions} dimensions")
    if typed.kind in GLOBAL_WINDOWS:
        return [Reduction(typed.name, "global pool", source.elements, typed.elements)]
    kind = KINDS["windows"][typed.kind]
    window = prod(typed.attributes["kernel_shape"])
    return [SlidingWindow(typed.name, kind, typed.elements, window)]


def _lower_local_norm(typed: TypedNode) -> list[Operator]:
    """Lower the norm over `size` neighbouring channels: a window of squares, then the division."""
    size = int(typed.attributes["size"])
    return [
        SlidingWindow(f"{typed.name}/window", "sum pool", typed.elements, size),
        Elementwise(typed.name, "pow", typed.elements),
    ]


def _lower_resize(typed: TypedNode) -> list[Operator]:
    before = typed.inputs[0].shape
    after = typed.outputs[0].shape
    resized = sum(size != other for size, other in zip(before, after, strict=True))
    if not resized:
        return []
    mode = typed.read_text("mode", "nearest")
    return _lower_interpolation(typed, mode, "resize", resized)


def _lower_grid_sample(typed: TypedNode) -> list[Operator]:
    axes = len(typed.outputs[0].shape) - 2
    return _lower_interpolation(typed, typed.read_text("mode", "linear"), "gather", axes)


def _lower_interpolation(typed: TypedNode, mode: str, nearest: str, axes: int) -> list[Operator]:
    """Lower to moved data where each result is one element, otherwise to weighted sums along the
    axes.
    """
    if mode == "nearest":
        return [Rearrangement(typed.name, nearest, typed.elements)]
    taps = KINDS["taps"].get(mode)
    if taps is None:
        raise typed.node.unsupported(f"the mode {mode}")
    return [SlidingWindow(typed.name, f"{mode} resize", typed.elements, taps**axes)]


def _lower_reduction(typed: TypedNode) -> list[Operator]:
    source = typed.inputs[0]
    if not _read_axes(typed):
        return []
    return [Reduction(typed.name, "reduction", source.elements, typed.elements)]


def _lower_search(typed: TypedNode) -> list[Operator]:
    """Lower a search for the k largest elements: k passes, or those of a bitonic sort where these
    are fewer.
    """
    source = typed.inputs[0]
    passes = 1
    if typed.kind == "TopK":
        axis = typed.attributes.get("axis", -1)
        depth = (source.shape[axis] - 1).bit_length()
        sorting = depth * (depth + 1) // 2
        wanted = typed.outputs[0].shape[axis]
        passes = max(1, min(wanted, sorting))
    elements = sum(tensor.elements for tensor in typed.outputs)
    return [Reduction(typed.name, "reduction", passes * source.elements, elements)]


def _read_axes(typed: TypedNode) -> Sequence[int]:
    """Return the reduced axes: an attribute until opset 13 or 18, then an input."""
    axes: Sequence[int] = typed.attributes.get("axes", ())
    if len(typed.inputs) > 1:
        array = typed.inputs[1].array
        if array is None:
            raise typed.node.unsupported("a reduction whose axes are computed")
        axes = array.flatten().tolist()
    if not axes and not typed.attributes.get("noop_with_empty_axes"):
        return range(len(typed.inputs[0].shape))
    return axes


def _lower_rearrangement(typed: TypedNode) -> list[Operator]:
    if typed.kind == "Transpose":
        shape = typed.inputs[0].shape
        axes = list(range(len(shape)))
        order = typed.attributes.get("perm") or axes[::-1]
        if sorted(order) != axes:
            raise typed.node.inconsistent("perm does not name every axis once")
        long = [axis for axis in order if shape[axis] > 1]
        if long == sorted(long):  # axes of size 1 alone are moved, so that the data stay in place
            return []
    elements = sum(tensor.elements for tensor in typed.outputs)
    return [Rearrangement(typed.name, KINDS["rearrangements"][typed.kind], elements)]


LOWERINGS: Mapping[str, Callable[[TypedNode], list[Operator]]] = {
    "Conv": products.lower_convolution,
    "ConvTranspose": products.lower_transposed_convolution,
    "Einsum": products.lower_einsum,
    "GRU": products.lower_recurrence,
    "Gemm": products.lower_gemm,
    "GridSample": _lower_grid_sample,
    "LRN": _lower_local_norm,
    "LSTM": products.lower_recurrence,
    "MatMul": products.lower_matmul,
    "RNN": products.lower_recurrence,
    "Resize": _lower_resize,
    "Upsample": _lower_resize,
    **dict.fromkeys(ELEMENTWISE, _lower_elementwise),
    **dict.fromkeys(KINDS["windows"], _lower_pool),
    **dict.fromkeys(GLOBAL_WINDOWS, _lower_pool),
    **dict.fromkeys(KINDS["reductions"].split(), _lower_reduction),
    **dict.fromkeys(KINDS["searches"].split(), _lower_search),
    **dict.fromkeys(KINDS["rearrangements"], _lower_rearrangement),
}
SUPPORTED = frozenset(LOWERINGS).union(VIEWS)
SEVERAL_OUTPUTS = KINDS["several_outputs"].split()  # each output may be read


MAX_PARTS = 9  # of an activation, one more than the GELU by tanh has
# of activations
CONSTANTS = (
    0.044715,
    0.5,
    sqrt(1 / 2),
    sqrt(2 / pi),
    1.0,
    sqrt(2),
    3.0,
)
TOLERANCE = 1e-3  # relative, on a constant: fp16 files round √2 to 1.4141
COMMUTATIVE = ("Add", "Mul")


class FusedActivation(NamedTuple):
    """An activation of the tensor `source`, computed by all `parts`."""

    kind: str
    source: str
    parts: list[Node]


def find_activations(
    nodes: Sequence[Node], tensors: TensorInfos, results: Iterable[str]
) -> dict[str, FusedActivation]:
    """Find nodes that together are one operator, by the name of the last of them.

    A result that anything else reads has to exist: it is not fused.
    """
    makers: dict[str, Node] = {}
    readers = Counter(results)
    for node in nodes:
        makers.update(dict.fromkeys(node.outputs, node))
        readers.update(set(node.inputs))
    hidden = {tensor: maker for tensor, maker in makers.items() if readers[tensor] == 1}
    found = {}
    for node in nodes:
        if node.kind != "Mul":
            continue
        # X is a factor of the last product or of the one before.
        sources = list(node.inputs)
        for tensor in node.inputs:
            if tensor in makers:
                sources += makers[tensor].inputs
        for source in sources:
            parts: list[Node] = []
            text = _write_expression(node, source, tensors, hidden, parts)
            if text in KINDS["activations"]:
                kind = KINDS["activations"][text]
                found[node.name] = FusedActivation(kind, source, parts)
    return found


def _write_expression(
    node: Node, source: str, tensors: TensorInfos, hidden: Mapping[str, Node], parts: list[Node]
) -> str:
    """Write a node as an expression of the tensor `source`, and add the nodes in it to `parts`.

    `hidden` are the makers of tensors that one node alone reads: those may be parts.
    """
    parts.append(node)
    operands = []
    for tensor in node.inputs:
        array = tensors[tensor].array
        text = "?"
        if tensor == source:
            text = "X"
        elif array is not None and array.size == 1:
            text = _write_constant(float(array.item()))
        elif tensor in hidden and len(parts) < MAX_PARTS:
            text = _write_expression(hidden[tensor], source, tensors, hidden, parts)
        operands.append(text)
    if node.kind in COMMUTATIVE:
        operands.sort()
    return f"{node.kind}({', '.join(operands)})"


def _write_constant(value: float) -> str:
    """Write a constant of an activation as the patterns in operators.toml do, and others as ?."""
    for constant in CONSTANTS:
        if isclose(value, constant, rel_tol=TOLERANCE):
            return f"{constant:.3g}"
    return "?"
