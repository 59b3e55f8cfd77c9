"""Turn ONNX nodes into operators: one node by the table LOWERINGS, or several that are one
activation by patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import isclose, pi, prod, sqrt
from typing import Any

from ipu_results.emulator import products
from ipu_results.emulator.graph import Node, TensorInfos
from ipu_results.emulator.operators import (
    Elementwise,
    Operator,
    Rearrangement,
    Reduction,
    SlidingWindow,
)
from ipu_results.emulator.target import read_toml
from ipu_results.errors import InconsistentModelError

KINDS = read_toml("operators.toml")  # what each kind of node becomes
VIEWS, VARIADIC, SEARCHES = (
    frozenset(KINDS[name].split()) for name in ("views", "variadic", "searches")
)
REDUCTIONS, GLOBAL_WINDOWS = (
    frozenset(KINDS[name].split()) for name in ("reductions", "global_windows")
)
REARRANGEMENTS, WINDOWS = KINDS["rearrangements"], KINDS["windows"]
ELEMENTWISE = {kind: kind.lower() for kind in KINDS["elementwise"]["own_name"].split()} | KINDS[
    "elementwise"
]["renamed"]
NORMS = frozenset(kind for kind in ELEMENTWISE if kind.endswith("Normalization"))
SPATIAL = (2, 3)  # height and width of NCHW
TAPS = KINDS["taps"]  # along each axis that is resized


def lower_node(typed: products.TypedNode) -> list[Operator]:
    """Return the operators of a node in `SUPPORTED`: none where the result is the first input
    unchanged.

    The last of several makes the result and reads the others, which read what the node reads.
    """
    if typed.kind not in VIEWS:
        return LOWERINGS[typed.kind](typed)
    if typed.kind == "Dropout" and _is_training(typed):
        raise typed.unsupported("a dropout in training mode")
    return []


def _is_training(typed: products.TypedNode) -> bool:
    if len(typed.node.proto.input) < 3 or not typed.node.proto.input[2]:
        return False
    mode = typed.inputs[-1].array
    return mode is None or bool(mode)


def _lower_elementwise(typed: products.TypedNode) -> list[Operator]:
    kind = typed.kind
    elements = typed.outputs[0].elements
    if kind in VARIADIC and len(typed.inputs) != 2:
        # n inputs are combined in n − 1 operators, each of two.
        names = [
            *(f"{typed.name}/{number}" for number in range(1, len(typed.inputs) - 1)),
            typed.name,
        ]
        return [
            Elementwise(name, ELEMENTWISE[kind], elements)
            for name in names[: len(typed.inputs) - 1]
        ]
    if kind in NORMS and not all(tensor.constant for tensor in typed.inputs[1:]):
        raise typed.unsupported("a norm whose scale or shift is computed")
    if kind == "BatchNormalization" and (
        typed.attributes.get("training_mode") or len(typed.outputs) > 1
    ):
        raise typed.unsupported("a batch-norm in training mode")
    return [Elementwise(typed.name, ELEMENTWISE[kind], elements)]


def _lower_pool(typed: products.TypedNode) -> list[Operator]:
    """Lower a window over one, two or three dimensions, or over all of them."""
    if not 3 <= (rank := len(typed.inputs[0].shape)) <= 5:
        raise typed.unsupported(f"a pool over {rank - 2} dimensions")
    elements = typed.outputs[0].elements
    if typed.kind in GLOBAL_WINDOWS:
        return [Reduction(typed.name, "global pool", typed.inputs[0].elements, elements)]
    return [
        SlidingWindow(
            typed.name, WINDOWS[typed.kind], elements, prod(typed.attributes["kernel_shape"])
        )
    ]


def _lower_local_norm(typed: products.TypedNode) -> list[Operator]:
    """Lower the norm over `size` neighbouring channels: a window of squares, then the division."""
    window = SlidingWindow(
        f"{typed.name}/window", "sum pool", typed.inputs[0].elements, int(typed.attributes["size"])
    )
    return [window, Elementwise(typed.name, "pow", window.elements)]


def _lower_resize(typed: products.TypedNode) -> list[Operator]:
    source = typed.inputs[0].shape
    result = typed.outputs[0].shape
    if source == result:
        return []
    resized = sum(before != after for before, after in zip(source, result, strict=True))
    return _lower_interpolation(
        typed, products.read_text(typed, "mode", "nearest"), "resize", resized
    )


def _lower_grid_sample(typed: products.TypedNode) -> list[Operator]:
    return _lower_interpolation(
        typed,
        products.read_text(typed, "mode", "linear"),
        "gather",
        len(typed.outputs[0].shape) - 2,
    )


def _lower_interpolation(
    typed: products.TypedNode, mode: str, nearest: str, axes: int
) -> list[Operator]:
    """Lower to moved data where each result is one element, otherwise to weighted sums along the
    axes.
    """
    elements = typed.outputs[0].elements
    if mode == "nearest":
        return [Rearrangement(typed.name, nearest, elements)]
    if mode not in TAPS:
        raise typed.unsupported(f"the mode {mode}")
    kind = "cubic resize" if TAPS[mode] == TAPS["cubic"] else "linear resize"
    return [SlidingWindow(typed.name, kind, elements, TAPS[mode] ** axes)]


def _lower_reduction(typed: products.TypedNode) -> list[Operator]:
    source = typed.inputs[0]
    axes = _read_axes(typed)
    if not axes:
        return []
    pool = axes == SPATIAL and len(source.shape) == 4 and typed.kind in {"ReduceMean", "ReduceMax"}
    kind = "global pool" if pool else "reduction"
    return [Reduction(typed.name, kind, source.elements, typed.outputs[0].elements)]


def _lower_search(typed: products.TypedNode) -> list[Operator]:
    """Lower a search for the k largest elements: k passes, or those of a bitonic sort where these
    are fewer.
    """
    source = typed.inputs[0]
    result = typed.outputs[0]
    passes = 1
    if typed.kind == "TopK":
        axis = typed.attributes.get("axis", -1)
        depth = (source.shape[axis] - 1).bit_length()
        passes = max(1, min(result.shape[axis], depth * (depth + 1) // 2))
    elements = sum(tensor.elements for tensor in typed.outputs)
    return [Reduction(typed.name, "reduction", passes * source.elements, elements)]


def _read_axes(typed: products.TypedNode) -> tuple[int, ...]:
    """Return the reduced axes in order, none negative: an attribute until opset 13 or 18, then an
    input.
    """
    rank = len(typed.inputs[0].shape)
    axes = typed.attributes.get("axes")
    if len(typed.inputs) > 1:
        array = typed.inputs[1].array
        if array is None:
            raise typed.unsupported("a reduction whose axes are computed")
        axes = [int(axis) for axis in array.flat]
    if not axes:
        return () if typed.attributes.get("noop_with_empty_axes") else tuple(range(rank))
    return tuple(sorted(axis % rank for axis in axes))


def _lower_rearrangement(typed: products.TypedNode) -> list[Operator]:
    if typed.kind == "Transpose":
        shape = typed.inputs[0].shape
        order = typed.attributes.get("perm") or range(len(shape))[::-1]
        if sorted(order) != list(range(len(shape))):
            raise InconsistentModelError(
                "perm does not name every axis once", place=typed.node.place
            )
        long = [axis for axis in order if shape[axis] > 1]
        if long == sorted(long):  # axes of size 1 alone are moved, so that the data stay in place
            return []
    return [
        Rearrangement(
            typed.name, REARRANGEMENTS[typed.kind], sum(tensor.elements for tensor in typed.outputs)
        )
    ]


LOWERINGS: Mapping[str, Callable[[products.TypedNode], list[Operator]]] = {
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
    **dict.fromkeys((*WINDOWS, *GLOBAL_WINDOWS), _lower_pool),
    **dict.fromkeys(REDUCTIONS, _lower_reduction),
    **dict.fromkeys(SEARCHES, _lower_search),
    **dict.fromkeys(REARRANGEMENTS, _lower_rearrangement),
}
SUPPORTED = frozenset(LOWERINGS) | VIEWS
SEVERAL_OUTPUTS = frozenset(KINDS["several_outputs"].split())  # each output may be read


# Activations that most exporters write out in parts, as expressions of the tensor X. Factors may be
# in any order.
X = "X"
TOLERANCE = 1e-3  # relative, on a constant: fp16 files round √2 to 1.4141
CUBIC = 0.044715  # of the GELU by tanh, which GPT-2 uses
COMMUTATIVE = frozenset({"Add", "Mul"})
# X, a constant, or a kind of node and the patterns of its inputs
Pattern = str | float | tuple[Any, ...]
RAISED: tuple[Pattern, ...] = (
    ("Add", ("Erf", ("Div", X, sqrt(2))), 1.0),
    ("Add", ("Erf", ("Mul", X, 1 / sqrt(2))), 1.0),
    ("Add", ("Tanh", ("Mul", ("Add", ("Mul", ("Pow", X, 3.0), CUBIC), X), sqrt(2 / pi))), 1.0),
)
ACTIVATIONS: tuple[tuple[str, Pattern], ...] = (
    ("swish", ("Mul", ("Sigmoid", X), X)),
    # x · (1 + erf(x / √2)) / 2, halved at any place, and its approximation by tanh.
    *(("gelu", ("Mul", ("Mul", raised, X), 0.5)) for raised in RAISED),
    *(("gelu", ("Mul", ("Mul", raised, 0.5), X)) for raised in RAISED),
    *(("gelu", ("Mul", ("Mul", X, 0.5), raised)) for raised in RAISED),
)


@dataclass(frozen=True, slots=True)
class FusedActivation:
    """An activation of the tensor `source`, computed by all `parts`; `last` of them makes the
    result.
    """

    kind: str
    source: str
    last: Node
    parts: tuple[Node, ...]


def find_activations(
    nodes: Sequence[Node], tensors: TensorInfos, results: Iterable[str]
) -> tuple[FusedActivation, ...]:
    """Find nodes that together are one operator.

    A result that anything else reads has to exist: it is not fused.
    """
    makers = {output: node for node in nodes for output in node.outputs}
    readers = Counter(tensor for node in nodes for tensor in set(node.inputs))
    readers.update(results)

    def match(
        pattern: Pattern, tensor: str, source: str | None, *, last: bool = False
    ) -> Iterator[_Match]:
        """Yield every way in which the tensor is computed as the pattern says: the tensor X is, and
        the nodes.
        """
        if pattern == X:
            yield from [(tensor, ())] if source in (None, tensor) else []
        elif isinstance(pattern, float):
            array = tensors[tensor].array
            if (
                array is not None
                and array.size == 1
                and isclose(float(array.item()), pattern, rel_tol=TOLERANCE)
            ):
                yield source, ()
        else:
            node = makers.get(tensor)
            if node is None or node.kind != pattern[0] or not (last or readers[tensor] == 1):
                return
            for inputs in permutations(node.inputs) if node.kind in COMMUTATIVE else (node.inputs,):
                ways: list[_Match] = [(source, (node,))] if len(inputs) == len(pattern) - 1 else []
                for part, name in zip(pattern[1:], inputs, strict=False):
                    ways = [
                        (x, nodes + more)
                        for known, nodes in ways
                        for x, more in match(part, name, known)
                    ]
                yield from ways

    matches = (
        FusedActivation(kind, source, node, parts)
        for node in nodes
        if node.kind == "Mul"
        for kind, pattern in ACTIVATIONS
        for source, parts in match(pattern, node.outputs[0], None, last=True)
        if source is not None
    )
    return tuple({match.last.name: match for match in matches}.values())


_Match = tuple[str | None, tuple[Node, ...]]
