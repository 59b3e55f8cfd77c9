"""Turn ONNX nodes into operators: one node by the table LOWERINGS, or several that are one
activation by patterns.

Work is counted as the definition of the operator has it: a product that is written in another form
keeps its multiply-accumulates. A lowering receives a TypedNode: a node with the tensors that it
reads and makes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, pi, prod, sqrt
from typing import Any, NamedTuple

from ipu_results.emulator.graph import Node, TensorInfo, TensorInfos
from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Operator,
    Product,
    Rearrangement,
    Recurrence,
    Reduction,
    SlidingWindow,
    make_gemm,
)
from ipu_results.emulator.target import read_toml

KINDS = read_toml("operators.toml")  # what each kind of node becomes
VIEWS = KINDS["views"]
GLOBAL_WINDOWS = KINDS["global_windows"]
ELEMENTWISE: dict[str, str] = dict(KINDS["elementwise"]["renamed"])
for _name in KINDS["elementwise"]["own_name"]:
    ELEMENTWISE[_name] = _name.lower()


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
        if name not in self.attributes:
            return default
        return bytes(self.attributes[name]).decode()

    def check_constant(self, first: int, what: str) -> None:
        """Refuse a node whose inputs from `first` on are computed."""
        if not all(tensor.constant for tensor in self.inputs[first:]):
            raise self.node.unsupported(what)


# Nodes that multiply matrices: convolutions, matrix products and recurrent networks.

Pair = tuple[int, int]  # height and width


def to_pair(sizes: Sequence[int]) -> Pair:
    """Return the last two sizes. A single one is the width; none are 1."""
    padded = (1, 1, *sizes)
    return padded[-2], padded[-1]


def _lower_convolution(typed: TypedNode) -> list[Operator]:
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
        # Each plane of the result is an image of its own. Its input channels are those of all
        # planes of the input that the kernel covers.
        batch *= result[2]
        ins *= weights[2]
    in_height, in_width = to_pair(source[2:])
    out_height, out_width = to_pair(result[2:])
    kernel_height, kernel_width = to_pair(kernel)
    strides = to_pair(typed.attributes.get("strides", ()))
    shape = ConvolutionShape(
        batch=batch,
        groups=groups,
        ins=ins,
        outs=outs // groups,
        rows=out_height,
        columns=out_width,
        kernel_rows=kernel_height,
        kernel_columns=kernel_width,
        stride=max(strides),
        in_rows=in_height,
        in_columns=in_width,
    )
    return [Product(typed.name, "convolution", shape, bias=len(typed.inputs) > 2)]


def _lower_transposed_convolution(typed: TypedNode) -> list[Operator]:
    """Lower to convolutions of the input, whose results are interleaved.

    At stride s, the result has s × s places for each element of the input. A place sees every s-th
    tap of the kernel. Places that see as many taps share a convolution, as more output channels.
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
    heights = _count_places(kernel_height, strides[0])
    widths = _count_places(kernel_width, strides[1])
    is_single = len(heights) == len(widths) == 1
    parts: list[Operator] = []
    for height, places_down in heights.items():
        for width, places_across in widths.items():
            name = typed.name
            if not is_single:
                name = f"{typed.name}/{height}x{width}"
            shape = ConvolutionShape(
                batch=source[0],
                groups=groups,
                ins=ins // groups,
                outs=outs * places_down * places_across,
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


def _count_places(kernel: int, stride: int) -> dict[int, int]:
    """Count the places along one axis by how many taps they see. Those that see none are left
    out.
    """
    taps, left = divmod(kernel, stride)
    places = {}
    # The taps that are left go to one place each.
    if left:
        places[taps + 1] = left
    if taps:
        places[taps] = stride - left
    return places


def _lower_gemm(typed: TypedNode) -> list[Operator]:
    left, right = typed.inputs[:2]
    m, k = left.shape
    if typed.attributes.get("transA"):
        k, m = left.shape
    n = right.shape[1]
    if typed.attributes.get("transB"):
        n = right.shape[0]
    if left.constant and not right.constant:
        # The weight moves to the right, as in `_lower_matmul`.
        m, n = n, m
    bias = typed.inputs[2:]
    bias_is_computed = any(not tensor.constant for tensor in bias)
    product = make_gemm(
        typed.name,
        groups=1,
        m=m,
        k=k,
        n=n,
        constant=left.constant or right.constant,
        bias=bool(bias) and not bias_is_computed,
    )
    if bias_is_computed:
        return [product, Elementwise(f"{typed.name}/bias", "add", product.elements)]
    return [product]


def _lower_matmul(typed: TypedNode) -> list[Operator]:
    """Lower a product of stacks of matrices.

    A weight on the left moves to the right: (W·x)ᵀ = xᵀ·Wᵀ.
    """
    left, right = typed.inputs
    # A vector on the left is a row, one on the right a column.
    if left.constant and not right.constant:
        n, k = to_pair(left.shape)
        groups = prod(left.shape[:-2])
    else:
        columns = right.shape
        if len(columns) == 1:
            columns = (*columns, 1)
        k, n = to_pair(columns)
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


EQUATION = re.compile(r"([A-Za-z]*),([A-Za-z]*)->([A-Za-z]*)")


def _lower_einsum(typed: TypedNode) -> list[Operator]:
    """Lower a product of two tensors whose labels are stack, rows, columns or summed over; nothing
    else.
    """
    equation = typed.read_text("equation", "").replace(" ", "")
    match = EQUATION.fullmatch(equation)
    if match is None or not all(map(_has_distinct_labels, match.groups())):
        raise typed.node.unsupported(f"the equation {equation}")
    left_term, right_term, result = match.groups()
    left_tensor, right_tensor = typed.inputs
    sizes = dict(zip(left_term, left_tensor.shape, strict=True))
    sizes.update(zip(right_term, right_tensor.shape, strict=True))
    left = set(left_term)
    right = set(right_term)
    kept = set(result)
    of_one_side = left ^ right
    if not of_one_side <= kept:
        raise typed.node.unsupported(f"the equation {equation}, which sums over one operand,")
    if left_tensor.constant and not right_tensor.constant:
        # The weight moves to the right, as in `_lower_matmul`.
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
        constant=left_tensor.constant or right_tensor.constant,
    )
    return [product]


def _has_distinct_labels(term: str) -> bool:
    return len(set(term)) == len(term)


def _lower_recurrence(typed: TypedNode) -> list[Operator]:
    """Lower to one product with the inputs of all steps, then the steps.

    Both directions of a pair run at once.

    Raises UnsupportedOperatorError for weights that are computed.
    """
    source, weights, recurrent = typed.inputs[:3]
    if not (weights.constant and recurrent.constant):
        raise typed.node.unsupported(f"{typed.kind} whose weights are computed")
    if typed.attributes.get("layout"):
        batch, steps = source.shape[:2]
    else:
        steps, batch = source.shape[:2]
    directions, width, size = weights.shape
    cell = KINDS["cells"][typed.kind]
    state = recurrent.shape[2]
    gates = cell["gates"]
    if width != gates * state:
        raise typed.node.inconsistent(f"weights of {width} rows are not {gates} gates of {state}")
    name = typed.name
    passes = []
    for kind, states in cell["passes"]:
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


# All other nodes.


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
    # An optional input that is left out is an empty name in the file.
    has_mode = any(typed.node.proto.input[2:])
    if not has_mode:
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
    count = 1
    if kind in KINDS["variadic"]:
        # Operators of two inputs combine all of them.
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


def _lower_interpolation(typed: TypedNode, mode: str, move: str, axes: int) -> list[Operator]:
    """Lower to weighted sums along the axes.

    Where each result is one element, it is a rearrangement of the kind `move`.
    """
    if mode == "nearest":
        return [Rearrangement(typed.name, move, typed.elements)]
    taps = KINDS["taps"].get(mode)
    if taps is None:
        raise typed.node.unsupported(f"the mode {mode}")
    return [SlidingWindow(typed.name, f"{mode} resize", typed.elements, taps**axes)]


def _lower_reduction(typed: TypedNode) -> list[Operator]:
    source = typed.inputs[0]
    if not _reduces_any_axis(typed):
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


def _reduces_any_axis(typed: TypedNode) -> bool:
    """Check the reduced axes: an attribute until opset 13 or 18, then an input; all without one."""
    count = len(typed.attributes.get("axes", ()))
    if len(typed.inputs) > 1:
        array = typed.inputs[1].array
        if array is None:
            raise typed.node.unsupported("a reduction whose axes are computed")
        count = array.size
    if count == 0 and not typed.attributes.get("noop_with_empty_axes"):
        count = len(typed.inputs[0].shape)
    return count > 0


def _lower_rearrangement(typed: TypedNode) -> list[Operator]:
    if typed.kind == "Transpose":
        shape = typed.inputs[0].shape
        axes = list(range(len(shape)))
        order = typed.attributes.get("perm") or axes[::-1]
        if sorted(order) != axes:
            raise typed.node.inconsistent("perm does not name every axis once")
        # Data stay in place where only axes of size 1 change their order.
        longer_axes = [axis for axis in order if shape[axis] > 1]
        if longer_axes == sorted(longer_axes):
            return []
    elements = sum(tensor.elements for tensor in typed.outputs)
    return [Rearrangement(typed.name, KINDS["rearrangements"][typed.kind], elements)]


LOWERINGS: Mapping[str, Callable[[TypedNode], list[Operator]]] = {
    "Conv": _lower_convolution,
    "ConvTranspose": _lower_transposed_convolution,
    "Einsum": _lower_einsum,
    "GRU": _lower_recurrence,
    "Gemm": _lower_gemm,
    "GridSample": _lower_grid_sample,
    "LRN": _lower_local_norm,
    "LSTM": _lower_recurrence,
    "MatMul": _lower_matmul,
    "RNN": _lower_recurrence,
    "Resize": _lower_resize,
    "Upsample": _lower_resize,
    **dict.fromkeys(ELEMENTWISE, _lower_elementwise),
    **dict.fromkeys(KINDS["windows"], _lower_pool),
    **dict.fromkeys(GLOBAL_WINDOWS, _lower_pool),
    **dict.fromkeys(KINDS["reductions"], _lower_reduction),
    **dict.fromkeys(KINDS["searches"], _lower_search),
    **dict.fromkeys(KINDS["rearrangements"], _lower_rearrangement),
}
SUPPORTED = frozenset(LOWERINGS).union(VIEWS)
SEVERAL_OUTPUTS = KINDS["several_outputs"]  # each output may be read


MAX_PARTS = 9  # nodes of an activation: the longest, the GELU by tanh, has 8
# Constants that the patterns of activations have.
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
        # Every pattern ends in a product. X is one of its inputs, or of a node that makes one.
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

    `hidden` are the makers of tensors that one node alone reads. Only these can be parts.
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
