"""Turn nodes that multiply matrices into operators: convolutions, matrix products and recurrent
networks.

Work is counted as the definition of the operator has it: a product that is written in another form
keeps its multiply-accumulates. A lowering receives a TypedNode: a node with the tensors that it
reads and makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ipu_results.emulator.graph import Node, TensorInfo, TensorInfos
from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Operator,
    Product,
    Rearrangement,
    Recurrence,
    make_gemm,
)
from ipu_results.emulator.target import read_toml

Pair = tuple[int, int]  # height and width


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node with the tensors that it reads and makes."""

    node: Node
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    attributes: Mapping[str, Any]

    @classmethod
    def build(cls, node: Node, tensors: TensorInfos) -> TypedNode:
        return cls(
            node,
            inputs=[tensors[name] for name in node.inputs],
            outputs=[tensors[name] for name in node.outputs],
            attributes=node.attributes,
        )

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> str:
        return self.node.kind

    @property
    def elements(self) -> int:
        """Elements of the first result."""
        return self.outputs[0].elements

    def read_text(self, name: str, default: str) -> str:
        """Return an attribute of text."""
        return bytes(self.attributes.get(name, default.encode())).decode()

    def check_constant(self, first: int, what: str) -> None:
        """Refuse a node whose inputs from `first` on are computed."""
        if not all(tensor.constant for tensor in self.inputs[first:]):
            raise self.node.unsupported(what)


def to_pair(sizes: Sequence[int]) -> Pair:
    """Return the last two sizes. A single one is the width; none are 1."""
    height, width = (1, 1, *sizes)[-2:]
    return height, width


def lower_convolution(typed: TypedNode) -> list[Operator]:
    """Lower a convolution. Padding and dilation change the size of the result alone."""
    source = typed.inputs[0].shape
    weights = typed.inputs[1].shape
    result = typed.outputs[0].shape
    typed.check_constant(1, "a convolution whose weights or bias are computed")
    groups = typed.attributes.get("group", 1)
    outs, ins = weights[:2]
    if source[1] != groups * ins or outs % groups:
        raise typed.node.inconsistent(
            f"{groups} groups of {ins} → {outs} channels do not fit an input of {source[1]}"
        )
    dimensions = len(source) - 2
    if dimensions not in (1, 2, 3):
        raise typed.node.unsupported(f"a convolution over {dimensions} dimensions")
    kernel = typed.attributes.get("kernel_shape") or weights[2:]
    if tuple(kernel) != weights[2:]:
        raise typed.node.inconsistent("the kernel does not fit the weights or the padding")
    batch = source[0]
    if dimensions == 3:
        # Each depth of the result is an image, made of as many planes as the kernel is deep.
        batch *= result[2]
        ins *= weights[2]
    in_height, in_width = to_pair(source[2:])
    out_height, out_width = to_pair(result[2:])
    kernel_height, kernel_width = to_pair(kernel)
    shape = ConvolutionShape(
        batch=batch,
        groups=groups,
        ins=ins,
        outs=outs // groups,
        rows=out_height,
        columns=out_width,
        kernel_rows=kernel_height,
        kernel_columns=kernel_width,
        stride=max(to_pair(typed.attributes.get("strides", ()))),
        in_rows=in_height,
        in_columns=in_width,
    )
    return [Product(typed.name, "convolution", shape, bias=len(typed.inputs) > 2)]


def lower_transposed_convolution(typed: TypedNode) -> list[Operator]:
    """Lower to convolutions of the input, one for each kernel size that a place of the result sees.

    At stride s a result sees every s-th tap: the s × s places of a block have kernels of ceil(k/s)
    or floor(k/s) taps. Places of one size share a convolution, as more output channels. Their
    results are interleaved.
    """
    source = typed.inputs[0].shape
    weights = typed.inputs[1].shape
    typed.check_constant(1, "a convolution whose weights or bias are computed")
    dimensions = len(source) - 2
    if dimensions not in (1, 2):
        raise typed.node.unsupported(f"a transposed convolution over {dimensions} dimensions")
    groups = typed.attributes.get("group", 1)
    ins, outs = weights[:2]
    if source[1] != ins or ins % groups:
        raise typed.node.inconsistent(
            f"{groups} groups of {ins} channels do not fit an input of {source[1]}"
        )
    field_height, field_width = to_pair(source[2:])
    kernel_height, kernel_width = to_pair(weights[2:])
    strides = to_pair(typed.attributes.get("strides", ()))
    rows = _count_taps(kernel_height, strides[0])
    columns = _count_taps(kernel_width, strides[1])
    is_single = len(rows) == len(columns) == 1
    parts: list[Operator] = []
    for height, down in rows.items():
        for width, across in columns.items():
            name = typed.name
            if not is_single:
                name = f"{typed.name}/{height}x{width}"
            shape = ConvolutionShape(
                batch=source[0],
                groups=groups,
                ins=ins // groups,
                outs=outs * down * across,
                rows=field_height,
                columns=field_width,
                kernel_rows=height,
                kernel_columns=width,
                in_rows=field_height,
                in_columns=field_width,
            )
            parts.append(Product(name, "convolution", shape, bias=len(typed.inputs) > 2))
    if strides != (1, 1):
        parts.append(Rearrangement(f"{typed.name}/interleave", "interleave", typed.elements))
    return parts


def _count_taps(length: int, stride: int) -> dict[int, int]:
    """Return how many of `stride` neighbours see how many of `length` taps.

    Those that see none are left out.
    """
    taps, longer = divmod(length, stride)
    counts = {}
    if longer:
        counts[taps + 1] = longer
    if taps:
        counts[taps] = stride - longer
    return counts


def lower_gemm(typed: TypedNode) -> list[Operator]:
    left, right = typed.inputs[:2]
    m, k = left.shape
    if typed.attributes.get("transA"):
        k, m = left.shape
    n = right.shape[0 if typed.attributes.get("transB") else 1]
    if left.constant and not right.constant:
        m, n = n, m
    bias = typed.inputs[2:]
    is_computed = any(not tensor.constant for tensor in bias)
    product = make_gemm(
        typed.name,
        groups=1,
        m=m,
        k=k,
        n=n,
        constant=left.constant or right.constant,
        bias=bool(bias) and not is_computed,
    )
    if is_computed:
        return [product, Elementwise(f"{typed.name}/bias", "add", product.elements)]
    return [product]


def lower_matmul(typed: TypedNode) -> list[Operator]:
    """Lower a product of stacks of matrices.

    A weight on the left moves to the right: (W·x)ᵀ = xᵀ·Wᵀ.
    """
    left, right = typed.inputs
    # A vector on the left is a row, one on the right a column.
    rows = left.shape if len(left.shape) > 1 else (1, *left.shape)
    columns = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    if left.constant and not right.constant:
        n, k = rows[-2:]
        groups = prod(rows[:-2])
    else:
        k, n = columns[-2:]
        groups = prod(columns[:-2])
    product = make_gemm(
        typed.name,
        groups=groups,
        m=typed.elements // (groups * n),
        k=k,
        n=n,
        constant=left.constant or right.constant,
    )
    return [product]


EQUATION = re.compile(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)")


def lower_einsum(typed: TypedNode) -> list[Operator]:
    """Lower a product of two tensors whose labels are stack, rows, columns or summed over; nothing
    else.
    """
    equation = typed.read_text("equation", "").replace(" ", "")
    match = EQUATION.fullmatch(equation)
    terms = match.groups() if match else ()
    if not terms or any(len(set(term)) < len(term) for term in terms):
        raise typed.node.unsupported(f"the equation {equation}")
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, typed.inputs, strict=False):
        sizes.update(zip(term, tensor.shape, strict=True))
    left, right, kept = map(set, terms)
    if (left ^ right) - kept:
        raise typed.node.unsupported(f"the equation {equation}, which sums over one operand,")
    are_constant = [tensor.constant for tensor in typed.inputs]
    if are_constant == [True, False]:
        left, right = right, left

    def multiply(part: set[str]) -> int:
        return prod(sizes[label] for label in part)

    both = left & right
    product = make_gemm(
        typed.name,
        groups=multiply(both & kept),
        m=multiply(left - right),
        k=multiply(both - kept),
        n=multiply(right - left),
        constant=any(are_constant),
    )
    return [product]


def lower_recurrence(typed: TypedNode) -> list[Operator]:
    """Lower to one product with the inputs of all steps, then the steps.

    Both directions of a pair run at once.

    Raises UnsupportedOperatorError for weights that are computed.
    """
    source, weights, recurrent = typed.inputs[:3]
    if not (weights.constant and recurrent.constant):
        raise typed.node.unsupported(f"{typed.kind} whose weights are computed")
    steps, batch = source.shape[:2]
    if typed.attributes.get("layout", 0):  # the batch is first
        batch, steps = source.shape[:2]
    directions, width, size = weights.shape
    cell = read_toml("operators.toml")["cells"][typed.kind]
    state = recurrent.shape[2]
    gates = cell["gates"]
    if width != gates * state:
        raise typed.node.inconsistent(f"weights of {width} rows are not {gates} gates of {state}")
    name = typed.name
    passes = []
    for kind, states in zip(cell["kinds"].split(), cell["states"], strict=True):
        elements = states * directions * batch * state
        passes.append(Elementwise(f"{name}/{kind}", kind, elements))
    inputs = make_gemm(
        f"{name}/inputs",
        groups=1,
        m=steps * batch,
        k=size,
        n=directions * width,
        bias=len(typed.inputs) > 3,
    )
    recurrence = Recurrence(
        name,
        kind=typed.kind.lower(),
        steps=steps,
        product=make_gemm(f"{name}/state", groups=directions, m=batch, k=state, n=width),
        passes=tuple(passes),
        elements=sum(tensor.elements for tensor in typed.outputs),
    )
    return [inputs, recurrence]
