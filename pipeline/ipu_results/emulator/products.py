"""Turn nodes that multiply matrices into operators: convolutions, matrix products and recurrent
networks.

Work is counted as the definition of the operator has it: a product that is written in another form
keeps its multiply-accumulates. A lowering receives a TypedNode: a node with the tensors that it
reads and makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from onnx import helper

from ipu_results.emulator.graph import Node, TensorInfo, TensorInfos
from ipu_results.emulator.operators import (
    Convolution,
    Elementwise,
    Gemm,
    Operator,
    Rearrangement,
    Recurrence,
)
from ipu_results.emulator.target import read_toml
from ipu_results.errors import InconsistentModelError, UnsupportedOperatorError


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
    inputs, outputs = (
        tuple(tensors[name] for name in names) for names in (node.inputs, node.outputs)
    )
    attributes = {
        attribute.name: helper.get_attribute_value(attribute) for attribute in node.proto.attribute
    }
    return TypedNode(node, inputs, outputs, attributes)


def read_text(typed: TypedNode, name: str, default: str) -> str:
    """Return an attribute of text."""
    value = typed.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else value


def to_pair(sizes: Sequence[int], missing: int) -> tuple[int, int]:
    """Return height and width. A single dimension is the width."""
    return (missing, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def read_pair(typed: TypedNode, name: str, default: int) -> tuple[int, int]:
    return to_pair(
        typed.attributes.get(name) or [default] * (len(typed.inputs[0].shape) - 2), default
    )


def lower_convolution(typed: TypedNode) -> list[Operator]:
    source, weights = typed.inputs[:2]
    if not all(tensor.constant for tensor in typed.inputs[1:]):
        raise typed.unsupported("a convolution whose weights or bias are computed")
    groups = typed.attributes.get("group", 1)
    out, inside = weights.shape[:2]
    if source.shape[1] != groups * inside or out % groups:
        message = (
            f"{groups} groups of {inside} → {out} channels do not fit an input of {source.shape[1]}"
        )
        raise InconsistentModelError(message, place=typed.node.place)
    if len(source.shape) == 5:
        return [_fold_depth(typed, groups)]
    if len(source.shape) not in {3, 4}:
        raise typed.unsupported(f"a convolution over {len(source.shape) - 2} dimensions")
    kernel = to_pair(weights.shape[2:], 1)
    field = to_pair(source.shape[2:], 1)
    strides, dilations = (read_pair(typed, name, 1) for name in ("strides", "dilations"))
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
    if (convolution.out_height, convolution.out_width) != to_pair(typed.outputs[0].shape[2:], 1):
        raise InconsistentModelError(
            "the kernel does not fit the weights or the padding", place=typed.node.place
        )
    return [convolution]


def _fold_depth(typed: TypedNode, groups: int) -> Convolution:
    """Lower a convolution over three dimensions to one over two.

    Each depth of the result is an image, made of as many planes as the kernel is deep, which count
    as channels.
    """
    source, weights = (tensor.shape for tensor in typed.inputs[:2])
    result = typed.outputs[0].shape
    strides = (typed.attributes.get("strides") or [1] * 3)[1:]
    dilations = (typed.attributes.get("dilations") or [1] * 3)[1:]
    # Pads follow from the sizes, whichever way the file states them.
    high, wide = (
        max(0, (size - 1) * stride + dilation * (length - 1) + 1 - field)
        for size, stride, dilation, length, field in zip(
            result[3:], strides, dilations, weights[3:], source[3:], strict=True
        )
    )
    return Convolution(
        typed.name,
        source[0] * result[2],
        groups,
        weights[1] * weights[2],
        weights[0] // groups,
        *to_pair(source[3:], 1),
        *to_pair(weights[3:], 1),
        *to_pair(strides, 1),
        *(high // 2, wide // 2, high - high // 2, wide - wide // 2),
        *to_pair(dilations, 1),
        bias=len(typed.inputs) > 2,
    )


def _read_pads(
    typed: TypedNode,
    field: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> tuple[int, int, int, int]:
    """Return top, left, bottom and right."""
    mode = read_text(typed, "auto_pad", "NOTSET")
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
    before = [total // 2 for total in totals]
    after = [-(-total // 2) for total in totals]
    first, second = (before, after) if mode == "SAME_UPPER" else (after, before)
    return first[0], first[1], second[0], second[1]


def lower_transposed_convolution(typed: TypedNode) -> list[Operator]:
    """Lower to convolutions of the input, one for each kernel size that a place of the result sees.

    At stride s a result sees every s-th tap: the s × s places of a block have kernels of ceil(k/s)
    or floor(k/s) taps. Places of one size share a convolution, as more output channels. Their
    results are interleaved.
    """
    source, weights = typed.inputs[:2]
    if not all(tensor.constant for tensor in typed.inputs[1:]):
        raise typed.unsupported("a convolution whose weights or bias are computed")
    if len(source.shape) not in {3, 4}:
        raise typed.unsupported(f"a transposed convolution over {len(source.shape) - 2} dimensions")
    groups = typed.attributes.get("group", 1)
    inside, outs = weights.shape[:2]
    if source.shape[1] != inside or inside % groups:
        message = f"{groups} groups of {inside} channels do not fit an input of {source.shape[1]}"
        raise InconsistentModelError(message, place=typed.node.place)
    field = to_pair(source.shape[2:], 1)
    strides = read_pair(typed, "strides", 1)
    rows, columns = (
        _count_taps(length, stride)
        for length, stride in zip(to_pair(weights.shape[2:], 1), strides, strict=True)
    )
    parts: list[Operator] = [
        Convolution(
            typed.name if len(rows) * len(columns) == 1 else f"{typed.name}/{height}x{width}",
            source.shape[0],
            groups,
            inside // groups,
            outs * high * wide,
            field[0],
            field[1],
            height,
            width,
            pad_top=(height - 1) // 2,
            pad_left=(width - 1) // 2,
            pad_bottom=height // 2,
            pad_right=width // 2,
            bias=len(typed.inputs) > 2,
        )
        for height, high in rows.items()
        for width, wide in columns.items()
    ]
    if strides == (1, 1):
        return parts
    return [
        *parts,
        Rearrangement(f"{typed.name}/interleave", "interleave", typed.outputs[0].elements),
    ]


def _count_taps(length: int, stride: int) -> dict[int, int]:
    """Return how many of `stride` neighbours see how many of `length` taps.

    Those that see none are left out.
    """
    low, longer = divmod(length, stride)
    return {
        taps: count for taps, count in ((low + 1, longer), (low, stride - longer)) if taps and count
    }


def lower_gemm(typed: TypedNode) -> list[Operator]:
    left, right = typed.inputs[:2]
    bias = typed.inputs[2:]
    m, k = left.shape[::-1] if typed.attributes.get("transA") else left.shape
    n = right.shape[0 if typed.attributes.get("transB") else 1]
    if left.constant and not right.constant:
        m, n = n, m
    constant = left.constant or right.constant
    computed = not all(tensor.constant for tensor in bias)
    product = Gemm(typed.name, 1, m, k, n, constant, bool(bias) and not computed)
    return (
        [product, Elementwise(f"{typed.name}/bias", "add", product.elements)]
        if computed
        else [product]
    )


def lower_matmul(typed: TypedNode) -> list[Operator]:
    """Lower a product of stacks of matrices.

    A weight on the left moves to the right: (W·x)ᵀ = xᵀ·Wᵀ.
    """
    left, right = typed.inputs
    a_shape = left.shape if len(left.shape) > 1 else (1, *left.shape)
    b_shape = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    *a, m, k = a_shape
    *b, _, n = b_shape
    if left.constant and not right.constant:
        m, n = (n, m)
        a, b = (b, a)
    rank = max(len(a), len(b))
    stack = prod(max(pair) for pair in zip(_pad_left(a, rank), _pad_left(b, rank), strict=True))
    groups = prod(b)
    return [Gemm(typed.name, groups, m * stack // groups, k, n, left.constant or right.constant)]


def _pad_left(shape: Sequence[int], rank: int) -> list[int]:
    return [1] * (rank - len(shape)) + list(shape)


def lower_einsum(typed: TypedNode) -> list[Operator]:
    """Lower a product of two tensors whose labels are stack, rows, columns or summed over; nothing
    else.
    """
    equation = read_text(typed, "equation", "").replace(" ", "")
    terms, _, result = equation.partition("->")
    labels = terms.split(",")
    simple = "." not in equation and "->" in equation and len(labels) == len(typed.inputs) == 2
    if not simple or any(len(set(term)) != len(term) for term in labels):
        raise typed.unsupported(f"the equation {equation}")
    sizes = {
        label: size
        for term, tensor in zip(labels, typed.inputs, strict=True)
        for label, size in zip(term, tensor.shape, strict=True)
    }
    left = set(labels[0])
    right = set(labels[1])
    kept = set(result)
    if (left ^ right) - kept:
        raise typed.unsupported(f"the equation {equation}, which sums over one operand,")
    constant = [tensor.constant for tensor in typed.inputs]
    if constant[0] and not constant[1]:
        left, right = right, left
    parts = (left & right & kept, left - right, (left & right) - kept, right - left)
    groups, m, k, n = (prod(sizes[label] for label in part) for part in parts)
    return [Gemm(typed.name, groups, m, k, n, any(constant))]


def lower_recurrence(typed: TypedNode) -> list[Operator]:
    """Lower to one product with the inputs of all steps, then the steps.

    Both directions of a pair run at once.

    Raises UnsupportedOperatorError for weights that are computed.
    """
    source, weights, recurrent = typed.inputs[:3]
    if not (weights.constant and recurrent.constant):
        raise typed.unsupported(f"{typed.kind} whose weights are computed")
    batch_first = typed.attributes.get("layout", 0)
    steps, batch = (source.shape[1], source.shape[0]) if batch_first else source.shape[:2]
    directions, width, size = weights.shape
    cell = read_toml("operators.toml")["cells"][typed.kind]
    state = recurrent.shape[2]
    gates = cell["gates"]
    kinds = cell["kinds"].split()
    if width != gates * state:
        raise InconsistentModelError(
            f"weights of {width} rows are not {gates} gates of {state}", place=typed.node.place
        )
    held = directions * batch * state
    name = typed.name
    counts = (*cell["states"], *[1] * (len(kinds) - len(cell["states"])))
    passes = tuple(
        Elementwise(f"{name}/{kind}", kind, count * held)
        for kind, count in zip(kinds, counts, strict=True)
    )
    return [
        Gemm(
            f"{name}/inputs", 1, steps * batch, size, directions * width, bias=len(typed.inputs) > 3
        ),
        Recurrence(
            name,
            typed.kind.lower(),
            steps,
            Gemm(f"{name}/state", directions, batch, state, width),
            passes,
            sum(tensor.elements for tensor in typed.outputs),
        ),
    ]
