"""Turn ONNX nodes into operators: one node by the table LOWERINGS, or several that are one
activation by patterns.

Work is counted as the definition of the operator has it: a product that is written in another form
keeps its multiply-accumulates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isclose, prod
from typing import NamedTuple

from ipu_results.emulator.graph import KINDS, Node
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

VIEWS = KINDS["views"]
GLOBAL_WINDOWS = KINDS["global_windows"]
ELEMENTWISE: dict[str, str] = dict(KINDS["elementwise"]["renamed"])
for _name in KINDS["elementwise"]["own_name"]:
    ELEMENTWISE[_name] = _name.lower()


# Nodes that multiply matrices: convolutions, matrix products and recurrent networks.


def to_pair(sizes: Sequence[int]) -> tuple[int, int]:
    """Return the last two sizes, a height and a width. A single one is the width; none are 1."""
    padded = (1, 1, *sizes)
    return padded[-2], padded[-1]


def _lower_convolution(node: Node) -> list[Operator]:
    """Lower a convolution. Padding and dilation change the size of the result alone."""
    source = node.sources[0].shape
    weights = node.sources[1].shape
    result = node.results[0].shape
    node.check_constant(1, "a convolution whose weights or bias are computed")
    groups = node.attributes.get("group", 1)
    outs, ins = weights[:2]
    if source[1] != groups * ins or outs % groups:
        raise node.inconsistent(
            f"{groups} groups of {ins} → {outs} channels do not fit an input of {source[1]}"
        )
    dimensions = len(source) - 2
    if dimensions not in (1, 2, 3):
        raise node.unsupported(f"a convolution over {dimensions} dimensions")
    kernel = weights[2:]
    if tuple(node.attributes.get("kernel_shape", kernel)) != kernel:
        raise node.inconsistent("the kernel does not fit the weights or the padding")
    batch = source[0]
    if dimensions == 3:
        # Each plane of the result is an image of its own. Its input channels are those of all
        # planes of the input that the kernel covers.
        batch *= result[2]
        ins *= weights[2]
    in_height, in_width = to_pair(source[2:])
    out_height, out_width = to_pair(result[2:])
    kernel_height, kernel_width = to_pair(kernel)
    strides = to_pair(node.attributes.get("strides", ()))
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
    return [Product(node.name, "convolution", shape, bias=len(node.sources) > 2)]


def _lower_transposed_convolution(node: Node) -> list[Operator]:
    """Lower to convolutions of the input, whose results are interleaved.

    At stride s, the result has s × s places for each element of the input. A place sees every s-th
    tap of the kernel. Places that see as many taps share a convolution, as more output channels.
    """
    source = node.sources[0].shape
    weights = node.sources[1].shape
    node.check_constant(1, "a convolution whose weights or bias are computed")
    dimensions = len(source) - 2
    if dimensions not in (1, 2):
        raise node.unsupported(f"a transposed convolution over {dimensions} dimensions")
    groups = node.attributes.get("group", 1)
    ins, outs = weights[:2]
    if source[1] != ins or ins % groups:
        raise node.inconsistent(
            f"{groups} groups of {ins} channels do not fit an input of {source[1]}"
        )
    field_height, field_width = to_pair(source[2:])
    kernel_height, kernel_width = to_pair(weights[2:])
    strides = to_pair(node.attributes.get("strides", ()))
    heights = _count_places(kernel_height, strides[0])
    widths = _count_places(kernel_width, strides[1])
    is_single = len(heights) == len(widths) == 1
    parts: list[Operator] = []
    for height, places_down in heights.items():
        for width, places_across in widths.items():
            name = node.name
            if not is_single:
                name = f"{node.name}/{height}x{width}"
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
            parts.append(Product(name, "convolution", shape, bias=len(node.sources) > 2))
    if strides != (1, 1):
        parts.append(Rearrangement(f"{node.name}/interleave", "interleave", node.elements))
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


def _lower_gemm(node: Node) -> list[Operator]:
    left, right = node.sources[:2]
    m, k = left.shape
    if node.attributes.get("transA"):
        k, m = left.shape
    n = right.shape[1]
    if node.attributes.get("transB"):
        n = right.shape[0]
    bias = node.sources[2:]
    if bias and not bias[0].constant:
        product = _multiply(node, 1, m, k, n)
        return [product, Elementwise(f"{node.name}/bias", "add", product.elements)]
    return [_multiply(node, 1, m, k, n, bias=bool(bias))]


def _multiply(node: Node, groups: int, m: int, k: int, n: int, *, bias: bool = False) -> Product:
    """Return the product of the first two inputs: `groups` of m×k with k×n.

    A weight on the left moves to the right: (W·x)ᵀ = xᵀ·Wᵀ.
    """
    if _has_weight_on_left(node):
        m, n = n, m
    has_weight = any(tensor.constant for tensor in node.sources[:2])
    return make_gemm(node.name, groups, m, k, n, constant=has_weight, bias=bias)


def _has_weight_on_left(node: Node) -> bool:
    left, right = node.sources[:2]
    return left.constant and not right.constant


def _lower_matmul(node: Node) -> list[Operator]:
    """Lower a product of stacks of matrices: all rows of a stack count as m where the other side is
    one matrix.
    """
    left, right = node.sources
    # A vector on the left is a row, one on the right a column.
    if _has_weight_on_left(node):
        m, k = to_pair(left.shape)
        groups = prod(left.shape[:-2])
        n = node.elements // (groups * m)
    else:
        columns = right.shape
        if len(columns) == 1:
            columns = (*columns, 1)
        k, n = to_pair(columns)
        groups = prod(columns[:-2])
        m = node.elements // (groups * n)
    return [_multiply(node, groups, m, k, n)]


EQUATION = re.compile(r"([A-Za-z]*),([A-Za-z]*)->([A-Za-z]*)")


def _lower_einsum(node: Node) -> list[Operator]:
    """Lower a product of two tensors whose labels are stack, rows, columns or summed over; nothing
    else.
    """
    equation = node.read_text("equation", "").replace(" ", "")
    match = EQUATION.fullmatch(equation)
    if match is None or not all(map(_has_distinct_labels, match.groups())):
        raise node.unsupported(f"the equation {equation}")
    left_term, right_term, result = match.groups()
    left_tensor, right_tensor = node.sources
    sizes = dict(zip(left_term, left_tensor.shape, strict=True))
    sizes.update(zip(right_term, right_tensor.shape, strict=True))
    left = set(left_term)
    right = set(right_term)
    kept = set(result)
    of_one_side = left ^ right
    if not of_one_side <= kept:
        raise node.unsupported(f"the equation {equation}, which sums over one operand,")

    def measure(labels: set[str]) -> int:
        return prod(sizes[label] for label in labels)

    both = left & right
    product = _multiply(
        node,
        groups=measure(both & kept),
        m=measure(left - right),
        k=measure(both - kept),
        n=measure(right - left),
    )
    return [product]


def _has_distinct_labels(term: str) -> bool:
    return len(set(term)) == len(term)


def _lower_recurrence(node: Node) -> list[Operator]:
    """Lower to one product with the inputs of all steps, then the steps.

    Both directions of a pair run at once.

    Raises UnsupportedOperatorError for weights that are computed.
    """
    source, weights, recurrent = node.sources[:3]
    if not (weights.constant and recurrent.constant):
        raise node.unsupported(f"{node.kind} whose weights are computed")
    if node.attributes.get("layout"):
        batch, steps = source.shape[:2]
    else:
        steps, batch = source.shape[:2]
    directions, width, size = weights.shape
    cell = KINDS["cells"][node.kind]
    state = recurrent.shape[2]
    gates = cell["gates"]
    if width != gates * state:
        raise node.inconsistent(f"weights of {width} rows are not {gates} gates of {state}")
    name = node.name
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
        bias=len(node.sources) > 3,
    )
    recurrence = Recurrence(
        name,
        kind=node.kind.lower(),
        steps=steps,
        product=make_gemm(f"{name}/state", groups=directions, m=batch, k=state, n=width),
        passes=tuple(passes),
        elements=sum(tensor.elements for tensor in node.results),
    )
    return [inputs, recurrence]


# All other nodes.


def lower_node(node: Node) -> list[Operator]:
    """Return the operators of a node in `SUPPORTED`: none where the result is the first input
    unchanged.

    The last of several makes the result and reads the others, which read what the node reads.
    """
    if node.kind not in VIEWS:
        return LOWERINGS[node.kind](node)
    if node.kind == "Dropout" and _is_training(node):
        raise node.unsupported("a dropout in training mode")
    return []


def _is_training(node: Node) -> bool:
    # An optional input that is left out is an empty name in the file.
    has_mode = any(node.proto.input[2:])
    if not has_mode:
        return False
    mode = node.sources[-1].array
    return mode is None or bool(mode)


def _lower_elementwise(node: Node) -> list[Operator]:
    kind = node.kind
    if kind.endswith("Normalization"):
        node.check_constant(1, "a norm whose scale or shift is computed")
    if kind == "BatchNormalization":
        has_statistics = len(node.results) > 1
        if has_statistics or node.attributes.get("training_mode"):
            raise node.unsupported("a batch-norm in training mode")
    count = 1
    if kind in KINDS["variadic"]:
        # Operators of two inputs combine all of them.
        count = len(node.sources) - 1
    names = [f"{node.name}/{number}" for number in range(1, count)]
    if count:
        names.append(node.name)
    return [Elementwise(name, ELEMENTWISE[kind], node.elements) for name in names]


def _lower_pool(node: Node) -> list[Operator]:
    """Lower a window over one, two or three dimensions, or over all of them."""
    source = node.sources[0]
    dimensions = len(source.shape) - 2
    if not 1 <= dimensions <= 3:
        raise node.unsupported(f"a pool over {dimensions} dimensions")
    if node.kind in GLOBAL_WINDOWS:
        return [Reduction(node.name, "global pool", source.elements, node.elements)]
    kind = KINDS["windows"][node.kind]
    window = prod(node.attributes["kernel_shape"])
    return [SlidingWindow(node.name, kind, node.elements, window)]


def _lower_local_norm(node: Node) -> list[Operator]:
    """Lower the norm over `size` neighbouring channels: a window of squares, then the division."""
    size = int(node.attributes["size"])
    return [
        SlidingWindow(f"{node.name}/window", "sum pool", node.elements, size),
        Elementwise(node.name, "pow", node.elements),
    ]


def _lower_resize(node: Node) -> list[Operator]:
    before = node.sources[0].shape
    after = node.results[0].shape
    resized = sum(size != other for size, other in zip(before, after, strict=True))
    if not resized:
        return []
    return _lower_interpolation(node, "nearest", "resize", resized)


def _lower_grid_sample(node: Node) -> list[Operator]:
    axes = len(node.results[0].shape) - 2
    return _lower_interpolation(node, "linear", "gather", axes)


def _lower_interpolation(node: Node, usual_mode: str, move: str, axes: int) -> list[Operator]:
    """Lower to weighted sums along the axes.

    Where each result is one element, it is a rearrangement of the kind `move`.
    """
    mode = node.read_text("mode", usual_mode)
    if mode == "nearest":
        return [Rearrangement(node.name, move, node.elements)]
    taps = KINDS["taps"].get(mode)
    if taps is None:
        raise node.unsupported(f"the mode {mode}")
    return [SlidingWindow(node.name, f"{mode} resize", node.elements, taps**axes)]


def _lower_reduction(node: Node) -> list[Operator]:
    source = node.sources[0]
    if not _reduces_any_axis(node):
        return []
    return [Reduction(node.name, "reduction", source.elements, node.elements)]


def _reduces_any_axis(node: Node) -> bool:
    """Check the reduced axes: an attribute until opset 13 or 18, then an input; all without one."""
    count = len(node.attributes.get("axes", ()))
    if len(node.sources) > 1:
        array = node.sources[1].array
        if array is None:
            raise node.unsupported("a reduction whose axes are computed")
        count = array.size
    # with this attribute, a reduction without axes returns its input
    if count == 0 and not node.attributes.get("noop_with_empty_axes"):
        count = len(node.sources[0].shape)
    return count > 0


def _lower_search(node: Node) -> list[Operator]:
    """Lower a search for the k largest elements: k passes, or those of a bitonic sort where these
    are fewer.
    """
    source = node.sources[0]
    passes = 1
    if node.kind == "TopK":
        axis = node.attributes.get("axis", -1)
        depth = (source.shape[axis] - 1).bit_length()
        sorting = depth * (depth + 1) // 2
        wanted = node.results[0].shape[axis]
        passes = max(1, min(wanted, sorting))
    elements = sum(tensor.elements for tensor in node.results)
    return [Reduction(node.name, "reduction", passes * source.elements, elements)]


def _lower_rearrangement(node: Node) -> list[Operator]:
    if node.kind == "Transpose":
        shape = node.sources[0].shape
        axes = list(range(len(shape)))
        order = node.attributes.get("perm") or axes[::-1]
        if sorted(order) != axes:
            raise node.inconsistent("perm does not name every axis once")
        # Data stay in place where only axes of size 1 change their order.
        longer_axes = [axis for axis in order if shape[axis] > 1]
        if longer_axes == sorted(longer_axes):
            return []
    elements = sum(tensor.elements for tensor in node.results)
    return [Rearrangement(node.name, KINDS["rearrangements"][node.kind], elements)]


LOWERINGS: Mapping[str, Callable[[Node], list[Operator]]] = {
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
TOLERANCE = 1e-3  # relative, on a constant: fp16 files round √2 to 1.4141
COMMUTATIVE = ("Add", "Mul")


class FusedActivation(NamedTuple):
    """An activation of the tensor `source` that several nodes compute."""

    operator: Elementwise
    source: str


def find_activations(
    nodes: Sequence[Node], results: Iterable[str]
) -> dict[str, FusedActivation | None]:
    """Find nodes that together are one operator, by their names.

    The operator stands where the last of them does; the others have None. A result that anything
    else reads has to exist: it is not fused.
    """
    makers: dict[str, Node] = {}
    readers = Counter(results)
    for node in nodes:
        makers.update(dict.fromkeys(node.outputs, node))
        readers.update(set(node.inputs))
    hidden = {tensor: maker for tensor, maker in makers.items() if readers[tensor] == 1}
    found: dict[str, FusedActivation | None] = {}
    for node in nodes:
        if node.kind != "Mul":
            continue
        # Every pattern ends in a product. X is one of its inputs, or of a node that makes one.
        sources = list(node.inputs)
        for tensor in node.inputs:
            if tensor in makers:
                sources += makers[tensor].inputs
        for source in sources:
            parts: list[str] = []
            text = _write_expression(node, source, hidden, parts)
            if text in KINDS["activations"]:
                operator = Elementwise(node.name, KINDS["activations"][text], node.elements)
                found.update(dict.fromkeys(parts))
                found[node.name] = FusedActivation(operator, source)
    return found


def _write_expression(node: Node, source: str, hidden: Mapping[str, Node], parts: list[str]) -> str:
    """Write a node as an expression of the tensor `source`, and add the names of its nodes to
    `parts`.

    `hidden` are the makers of tensors that one node alone reads. Only these can be parts.
    """
    parts.append(node.name)
    operands = []
    for name, tensor in zip(node.inputs, node.sources, strict=True):
        array = tensor.array
        text = "?"
        if name == source:
            text = "X"
        elif array is not None and array.size == 1:
            text = _write_constant(float(array.item()))
        elif name in hidden and len(parts) < MAX_PARTS:
            text = _write_expression(hidden[name], source, hidden, parts)
        operands.append(text)
    if node.kind in COMMUTATIVE:
        operands.sort()
    return f"{node.kind}({', '.join(operands)})"


def _write_constant(value: float) -> str:
    """Write a constant of an activation as the patterns in operators.toml do, and others as ?."""
    for constant in KINDS["constants"]:
        if isclose(value, constant, rel_tol=TOLERANCE):
            return f"{constant:.3g}"
    return "?"
