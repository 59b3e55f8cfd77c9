"""Turn one ONNX node into one operator, by the table of kinds at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from ipu_results.emulator.shapes import TensorInfo, TensorInfos
from ipu_results.errors import InconsistentModelError, UnsupportedOperatorError

# The result is the first input, seen in another way: nothing is computed or moved.
VIEWS = frozenset({"Cast", "CastLike", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})

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
VARIADIC = frozenset({"Max", "Min", "Sum"})  # accept any number of inputs; an operator combines two
NORMS = frozenset({"BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"})

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
SPATIAL = (2, 3)  # height and width of NCHW


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node with the tensors that it reads and makes."""

    node: Node
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> str:
        return self.node.kind

    def unsupported(self, what: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(f"{what} is not supported", place=self.node.place)


def attach_types(node: Node, tensors: TensorInfos) -> TypedNode:
    inputs, outputs = (tuple(tensors[name] for name in names) for names in (node.inputs, node.outputs))
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.proto.attribute}
    return TypedNode(node, inputs, outputs, attributes)


def lower_node(typed: TypedNode) -> Operator | None:
    """Return the operator of a node in `SUPPORTED`, or None where the result is the first input unchanged."""
    if typed.kind not in VIEWS:
        return LOWERINGS[typed.kind](typed)
    if typed.kind == "Dropout" and _is_training(typed):
        raise typed.unsupported("a dropout in training mode")
    return None


def _is_training(typed: TypedNode) -> bool:
    if len(typed.node.proto.input) < 3 or not typed.node.proto.input[2]:
        return False
    mode = typed.inputs[-1].array
    return mode is None or bool(mode)


def _lower_convolution(typed: TypedNode) -> Convolution:
    source, weights = typed.inputs[:2]
    if not all(tensor.constant for tensor in typed.inputs[1:]):
        raise typed.unsupported("a convolution whose weights or bias are computed")
    if len(source.shape) not in {3, 4}:
        raise typed.unsupported(f"a convolution over {len(source.shape) - 2} dimensions")
    groups, kernel, field = (
        typed.attributes.get("group", 1),
        _to_pair(weights.shape[2:], 1),
        _to_pair(source.shape[2:], 1),
    )
    out, inside = weights.shape[:2]
    if source.shape[1] != groups * inside or out % groups:
        message = f"{groups} groups of {inside} → {out} channels do not fit an input of {source.shape[1]}"
        raise InconsistentModelError(message, place=typed.node.place)
    strides, dilations = (_read_pair(typed, name, 1) for name in ("strides", "dilations"))
    convolution = Convolution(
        typed.name,
        source.shape[0],
        groups,
        inside,
        out // groups,
        *field,
        *kernel,
        *strides,
        *_read_pads(typed, field, kernel, strides, dilations),
        *dilations,
        bias=len(typed.inputs) > 2,
    )
    if (convolution.out_height, convolution.out_width) != _to_pair(typed.outputs[0].shape[2:], 1):
        raise InconsistentModelError("the kernel does not fit the weights or the padding", place=typed.node.place)
    return convolution


def _to_pair(sizes: Sequence[int], missing: int) -> tuple[int, int]:
    """Return height and width. A single dimension is the width."""
    return (missing, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def _read_pair(typed: TypedNode, name: str, default: int) -> tuple[int, int]:
    return _to_pair(typed.attributes.get(name) or [default] * (len(typed.inputs[0].shape) - 2), default)


def _read_pads(
    typed: TypedNode,
    field: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> tuple[int, int, int, int]:
    """Return top, left, bottom and right."""
    mode = typed.attributes.get("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        pads = typed.attributes.get("pads") or [0] * 4
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


def _lower_gemm(typed: TypedNode) -> Gemm:
    (left, right), bias = typed.inputs[:2], typed.inputs[2:]
    if not all(tensor.constant for tensor in bias):
        raise typed.unsupported("a Gemm whose bias is computed")
    m, k = left.shape[::-1] if typed.attributes.get("transA") else left.shape
    n = right.shape[0 if typed.attributes.get("transB") else 1]
    if left.constant and not right.constant:
        m, n = n, m
    return Gemm(typed.name, 1, m, k, n, left.constant or right.constant, bool(bias))


def _lower_matmul(typed: TypedNode) -> Gemm:
    """Lower a product of stacks of matrices. A weight on the left moves to the right: (W·x)ᵀ = xᵀ·Wᵀ."""
    left, right = typed.inputs
    a_shape = left.shape if len(left.shape) > 1 else (1, *left.shape)
    b_shape = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    (*a, m, k), (*b, _, n) = a_shape, b_shape
    if left.constant and not right.constant:
        (m, n), (a, b) = (n, m), (b, a)
    rank = max(len(a), len(b))
    stack = prod(max(pair) for pair in zip(_pad_left(a, rank), _pad_left(b, rank), strict=True))
    groups = prod(b)
    return Gemm(typed.name, groups, m * stack // groups, k, n, left.constant or right.constant)


def _pad_left(shape: Sequence[int], rank: int) -> list[int]:
    return [1] * (rank - len(shape)) + list(shape)


def _lower_elementwise(typed: TypedNode) -> Elementwise:
    kind = typed.kind
    if kind in VARIADIC and len(typed.inputs) != 2:
        raise typed.unsupported(f"{kind} of {len(typed.inputs)} inputs")
    if kind in NORMS and not all(tensor.constant for tensor in typed.inputs[1:]):
        raise typed.unsupported("a norm whose scale or shift is computed")
    if kind == "BatchNormalization" and (typed.attributes.get("training_mode") or len(typed.outputs) > 1):
        raise typed.unsupported("a batch-norm in training mode")
    return Elementwise(typed.name, ELEMENTWISE[kind], typed.outputs[0].elements)


def _lower_pool(typed: TypedNode) -> Pool:
    batch, channels, *field = _check_pool(typed, typed.outputs[0].shape)
    kernel, strides = _read_pair(typed, "kernel_shape", 1), _read_pair(typed, "strides", 1)
    return Pool(typed.name, WINDOWS[typed.kind], batch, channels, *_to_pair(field, 1), *kernel, *strides)


def _lower_global_pool(typed: TypedNode) -> GlobalPool:
    batch, channels, *field = _check_pool(typed, typed.inputs[0].shape)
    return GlobalPool(typed.name, GLOBAL_WINDOWS[typed.kind], batch, channels, *_to_pair(field, 1))


def _check_pool(typed: TypedNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in {3, 4}:
        raise typed.unsupported(f"a pool over {len(shape) - 2} dimensions")
    return shape


def _lower_reduction(typed: TypedNode) -> Operator | None:
    source, kind = typed.inputs[0], REDUCTIONS[typed.kind]
    axes = _read_axes(typed)
    if not axes:
        return None
    if axes == SPATIAL and len(source.shape) == 4 and kind in {"average", "max"}:
        return GlobalPool(typed.name, kind, *source.shape)
    return Reduction(typed.name, kind, source.elements, typed.outputs[0].elements)


def _read_axes(typed: TypedNode) -> tuple[int, ...]:
    """Return the reduced axes in order, none negative: an attribute until opset 13 or 18, then an input."""
    rank, axes = len(typed.inputs[0].shape), typed.attributes.get("axes")
    if len(typed.inputs) > 1:
        array = typed.inputs[1].array
        if array is None:
            raise typed.unsupported("a reduction whose axes are computed")
        axes = [int(axis) for axis in array.flat]
    if not axes:
        return () if typed.attributes.get("noop_with_empty_axes") else tuple(range(rank))
    return tuple(sorted(axis % rank for axis in axes))


def _lower_rearrangement(typed: TypedNode) -> Rearrangement | None:
    if typed.kind == "Transpose" and _keeps_order(typed):
        return None
    return Rearrangement(typed.name, REARRANGEMENTS[typed.kind], sum(tensor.elements for tensor in typed.outputs))


def _keeps_order(typed: TypedNode) -> bool:
    """Check whether a transposition moves axes of size 1 alone, so that the data stay in place."""
    shape = typed.inputs[0].shape
    order = typed.attributes.get("perm") or range(len(shape))[::-1]
    if sorted(order) != list(range(len(shape))):
        raise InconsistentModelError("perm does not name every axis once", place=typed.node.place)
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)


LOWERINGS: Mapping[str, Callable[[TypedNode], Operator | None]] = {
    "Conv": _lower_convolution,
    "Gemm": _lower_gemm,
    "MatMul": _lower_matmul,
    **dict.fromkeys(ELEMENTWISE, _lower_elementwise),
    **dict.fromkeys(WINDOWS, _lower_pool),
    **dict.fromkeys(GLOBAL_WINDOWS, _lower_global_pool),
    **dict.fromkeys(REDUCTIONS, _lower_reduction),
    **dict.fromkeys(REARRANGEMENTS, _lower_rearrangement),
}
SUPPORTED = frozenset(LOWERINGS) | VIEWS
