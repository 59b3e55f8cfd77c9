"""One ONNX node as one operator, by the table of kinds at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from onnx import helper

from ipu_results.emulator.model import Node
from ipu_results.emulator.operators import (
    Convolution,
    Elementwise,
    Gemm,
    GlobalPool,
    Operator,
    Pool,
    Rearrangement,
    Reduction,
)
from ipu_results.emulator.shapes import Value, Values
from ipu_results.errors import InconsistentModelError, UnsupportedOperatorError

FREE = frozenset(
    {"Cast", "CastLike", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
)  # the result is the first input, seen in another way

ELEMENTWISE = {
    **{
        kind: kind.lower()
        for kind in (
            *("Abs", "Clip", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "LogSoftmax"),
            *("Mish", "Neg", "PRelu", "Reciprocal", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "Sqrt", "Swish"),
            *("Tanh", "Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Where"),
        )
    },
    "BatchNormalization": "batchnorm",
    "GroupNormalization": "groupnorm",
    "InstanceNormalization": "instancenorm",
    "LayerNormalization": "layernorm",
    "Sum": "add",
}
MANY = frozenset({"Max", "Min", "Sum"})  # take any number of inputs; one operator combines two
NORMS = frozenset({"BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"})
ELEMENTWISE_KINDS = frozenset({*ELEMENTWISE.values(), "swish", "gelu"})

REARRANGEMENTS = {
    "Concat": "concat",
    "DepthToSpace": "transpose",
    "Expand": "expand",
    "Gather": "gather",
    "Pad": "pad",
    "Slice": "slice",
    "SpaceToDepth": "transpose",
    "Split": "split",
    "Tile": "expand",
    "Transpose": "transpose",
}
REDUCTIONS = {"ReduceMax": "max", "ReduceMean": "average", "ReduceMin": "min", "ReduceSum": "sum"}
WINDOWS = {"AveragePool": "average", "MaxPool": "max"}
GLOBAL_WINDOWS = {"GlobalAveragePool": "average", "GlobalMaxPool": "max"}
SPATIAL = (2, 3)


@dataclass(frozen=True, slots=True)
class Step:
    """A node with the shapes of what it reads and makes."""

    node: Node
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Any]

    def unsupported(self, message: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(message, place=self.node.place)


def step(node: Node, values: Values) -> Step:
    inputs, outputs = (tuple(values[one] for one in names) for names in (node.inputs, node.outputs))
    return Step(node, inputs, outputs, {one.name: helper.get_attribute_value(one) for one in node.proto.attribute})


def lower(one: Step) -> Operator | None:
    """The operator of a node in `SUPPORTED`, or None where the result is the first input as it is."""
    if one.node.kind in FREE:
        if one.node.kind == "Dropout" and _training(one):
            raise one.unsupported("a dropout that drops is for training: not supported")
        return None
    return MAKERS[one.node.kind](one)


def _training(one: Step) -> bool:
    if len(one.node.proto.input) < 3 or not one.node.proto.input[2]:
        return False
    mode = one.inputs[-1].array
    return mode is None or bool(mode)


def _convolution(one: Step) -> Convolution:
    source, weights = one.inputs[:2]
    if not all(other.constant for other in one.inputs[1:]):
        raise one.unsupported("a convolution whose weights or bias are computed is not supported")
    if len(source.shape) not in {3, 4}:
        raise one.unsupported(f"a convolution over {len(source.shape) - 2} dimensions is not supported")
    groups, kernel, field = one.attributes.get("group", 1), _pair(weights.shape[2:], 1), _pair(source.shape[2:], 1)
    out, inside = weights.shape[:2]
    if source.shape[1] != groups * inside or out % groups:
        raise InconsistentModelError(
            f"{groups} groups of {inside} → {out} channels do not fit an input of {source.shape[1]}",
            place=one.node.place,
        )
    strides, dilations = (_spatial(one, name, 1) for name in ("strides", "dilations"))
    found = Convolution(
        one.node.name,
        source.shape[0],
        groups,
        inside,
        out // groups,
        *field,
        *kernel,
        *strides,
        *_pads(one, field, kernel, strides, dilations),
        *dilations,
        bias=len(one.inputs) > 2,
    )
    if (found.out_height, found.out_width) != _pair(one.outputs[0].shape[2:], 1):
        raise InconsistentModelError("the kernel does not fit the weights or the padding", place=one.node.place)
    return found


def _pair(sizes: Sequence[int], missing: int) -> tuple[int, int]:
    """Height and width; of one dimension alone, the width."""
    return (missing, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def _spatial(one: Step, name: str, default: int) -> tuple[int, int]:
    return _pair(one.attributes.get(name) or [default] * (len(one.inputs[0].shape) - 2), default)


def _pads(
    one: Step, field: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    mode = one.attributes.get("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        pads = one.attributes.get("pads") or [0] * 4
        top, left, bottom, right = (0, pads[0], 0, pads[1]) if len(pads) == 2 else pads
        return top, left, bottom, right
    if mode == "VALID":
        return 0, 0, 0, 0
    totals = [
        max(0, (-(-size // stride) - 1) * stride + dilation * (length - 1) + 1 - size)
        for size, length, stride, dilation in zip(field, kernel, strides, dilations, strict=True)
    ]
    before, after = [total // 2 for total in totals], [-(-total // 2) for total in totals]
    first, second = (before, after) if mode == "SAME_UPPER" else (after, before)
    return first[0], first[1], second[0], second[1]


def _gemm(one: Step) -> Gemm:
    (left, right), bias = one.inputs[:2], one.inputs[2:]
    if not all(other.constant for other in bias):
        raise one.unsupported("a Gemm whose bias is computed is not supported")
    m, k = left.shape[::-1] if one.attributes.get("transA") else left.shape
    n = right.shape[0 if one.attributes.get("transB") else 1]
    if left.constant and not right.constant:
        m, n = n, m
    return Gemm(one.node.name, 1, m, k, n, left.constant or right.constant, bool(bias))


def _matmul(one: Step) -> Gemm:
    """A weight on the left is seen transposed, on the right: (W·x)ᵀ = xᵀ·Wᵀ."""
    left, right = one.inputs
    (*a, m, k), (*b, _, n) = _matrix(left.shape, 0), _matrix(right.shape, 1)
    if left.constant and not right.constant:
        (m, n), (a, b) = (n, m), (b, a)
    rank = max(len(a), len(b))
    stack = prod(max(pair) for pair in zip(_padded(a, rank), _padded(b, rank), strict=True))
    groups = prod(b)
    return Gemm(one.node.name, groups, m * stack // groups, k, n, left.constant or right.constant)


def _matrix(shape: tuple[int, ...], vector_axis: int) -> tuple[int, ...]:
    if len(shape) > 1:
        return shape
    return (1, *shape) if vector_axis == 0 else (*shape, 1)


def _padded(shape: Sequence[int], rank: int) -> list[int]:
    return [1] * (rank - len(shape)) + list(shape)


def _elementwise(one: Step) -> Elementwise:
    kind = one.node.kind
    if kind in MANY and len(one.inputs) != 2:
        raise one.unsupported(f"{kind} of {len(one.inputs)} inputs is not supported")
    if kind in NORMS and not all(other.constant for other in one.inputs[1:]):
        raise one.unsupported("a norm whose scale or shift is computed is not supported")
    if kind == "BatchNormalization" and (one.attributes.get("training_mode") or len(one.outputs) > 1):
        raise one.unsupported("a batch-norm that is trained is not supported")
    return Elementwise(one.node.name, ELEMENTWISE[kind], one.outputs[0].elements)


def _pool(one: Step) -> Pool:
    shape = one.outputs[0].shape
    if len(shape) not in {3, 4}:
        raise one.unsupported(f"a pool over {len(shape) - 2} dimensions is not supported")
    field, kernel, strides = _pair(shape[2:], 1), _spatial(one, "kernel_shape", 1), _spatial(one, "strides", 1)
    batch, channels = shape[:2]
    return Pool(one.node.name, WINDOWS[one.node.kind], batch, channels, *field, *kernel, *strides)


def _global_pool(one: Step) -> GlobalPool:
    shape = one.inputs[0].shape
    if len(shape) not in {3, 4}:
        raise one.unsupported(f"a pool over {len(shape) - 2} dimensions is not supported")
    batch, channels = shape[:2]
    return GlobalPool(one.node.name, GLOBAL_WINDOWS[one.node.kind], batch, channels, *_pair(shape[2:], 1))


def _reduction(one: Step) -> Operator | None:
    source, kind = one.inputs[0], REDUCTIONS[one.node.kind]
    axes = _axes(one)
    if not axes:
        return None
    if axes == SPATIAL and len(source.shape) == 4 and kind in {"average", "max"}:
        return GlobalPool(one.node.name, kind, *source.shape)
    return Reduction(one.node.name, kind, source.elements, one.outputs[0].elements)


def _axes(one: Step) -> tuple[int, ...]:
    """The reduced axes in order, none negative; an attribute until opset 13 or 18, then an input."""
    rank, axes = len(one.inputs[0].shape), one.attributes.get("axes")
    if len(one.inputs) > 1:
        given = one.inputs[1].array
        if given is None:
            raise one.unsupported("a reduction whose axes are computed is not supported")
        axes = [int(axis) for axis in given.flat]
    if not axes:
        return () if one.attributes.get("noop_with_empty_axes") else tuple(range(rank))
    return tuple(sorted(axis % rank for axis in axes))


def _rearrangement(one: Step) -> Rearrangement | None:
    if one.node.kind == "Transpose" and _keeps_order(one):
        return None
    return Rearrangement(one.node.name, REARRANGEMENTS[one.node.kind], sum(out.elements for out in one.outputs))


def _keeps_order(one: Step) -> bool:
    """Whether a transposition moves axes of size 1 alone, so that the data stay as they are."""
    shape = one.inputs[0].shape
    order = one.attributes.get("perm") or range(len(shape))[::-1]
    if sorted(order) != list(range(len(shape))):
        raise InconsistentModelError("perm does not name every axis once", place=one.node.place)
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)


def _makers() -> Iterator[tuple[str, Callable[[Step], Operator | None]]]:
    yield from (("Conv", _convolution), ("Gemm", _gemm), ("MatMul", _matmul))
    for kinds, maker in (
        (ELEMENTWISE, _elementwise),
        (WINDOWS, _pool),
        (GLOBAL_WINDOWS, _global_pool),
        (REDUCTIONS, _reduction),
        (REARRANGEMENTS, _rearrangement),
    ):
        yield from ((kind, maker) for kind in kinds)


MAKERS: Mapping[str, Callable[[Step], Operator | None]] = dict(_makers())
SUPPORTED = frozenset(MAKERS) | FREE
