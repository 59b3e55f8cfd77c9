"""Turn one ONNX node into one operator, by the table of kinds at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from ipu_results.emulator.operators import (
    Elementwise,
    GlobalPool,
    Interpolation,
    Operator,
    Pool,
    Rearrangement,
    Reduction,
)
from ipu_results.emulator.products import (
    lower_convolution,
    lower_einsum,
    lower_gemm,
    lower_matmul,
    lower_recurrence,
    lower_transposed_convolution,
)
from ipu_results.emulator.typed import TypedNode, read_pair, read_text, to_pair
from ipu_results.errors import InconsistentModelError

# The result is the first input, seen in another way: nothing is computed or moved.
VIEWS = frozenset({"Cast", "CastLike", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})

ELEMENTWISE = {
    **{
        kind: kind.lower()
        for kind in (
            *("Abs", "Celu", "Clip", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log"),
            *("LogSoftmax", "Mish", "Neg", "PRelu", "Reciprocal", "Relu", "Selu", "Shrink", "Sigmoid", "Softmax"),
            *("Softplus", "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu"),
            *("Acos", "Asin", "Atan", "Ceil", "Cos", "Cosh", "Floor", "IsInf", "IsNaN", "Round", "Sign", "Sin", "Sinh"),
            *("Tan", "Add", "CumSum", "Div", "Max", "Min", "Mod", "Mul", "Pow", "Sub", "Trilu", "Where"),
            *("And", "Not", "Or", "Xor", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitShift"),
            *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
        )
    },
    "BatchNormalization": "batchnorm",
    "GroupNormalization": "groupnorm",
    "InstanceNormalization": "instancenorm",
    "LayerNormalization": "layernorm",
    "Mean": "add",
    "MeanVarianceNormalization": "instancenorm",
    "RMSNormalization": "layernorm",
    "Sum": "add",
}
VARIADIC = frozenset({"Max", "Mean", "Min", "Sum"})  # accept any number of inputs; an operator combines two
NORMS = frozenset(kind for kind in ELEMENTWISE if kind.endswith("Normalization"))

REARRANGEMENTS = {
    "Concat": "concat",
    "DepthToSpace": "transpose",
    "Expand": "expand",
    "Gather": "gather",
    "GatherElements": "gather",
    "GatherND": "gather",
    "OneHot": "expand",
    "Pad": "pad",
    "ReverseSequence": "gather",
    "ScatterElements": "scatter",
    "ScatterND": "scatter",
    "Slice": "slice",
    "SpaceToDepth": "transpose",
    "Split": "split",
    "Tile": "expand",
    "Transpose": "transpose",
}
REDUCTIONS = {
    "ReduceL1": "sum",
    "ReduceL2": "sum",
    "ReduceLogSum": "sum",
    "ReduceLogSumExp": "sum",
    "ReduceMax": "max",
    "ReduceMean": "average",
    "ReduceMin": "min",
    "ReduceProd": "product",
    "ReduceSum": "sum",
    "ReduceSumSquare": "sum",
}
SEARCHES = {"ArgMax": "max", "ArgMin": "min", "TopK": "max"}  # reductions that return places
WINDOWS = {"AveragePool": "average", "LpPool": "sum", "MaxPool": "max"}
GLOBAL_WINDOWS = {"GlobalAveragePool": "average", "GlobalMaxPool": "max"}
SPATIAL = (2, 3)  # height and width of NCHW
TAPS = {"linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}  # along each axis that is resized


def lower_node(typed: TypedNode) -> list[Operator]:
    """Return the operators of a node in `SUPPORTED`: none where the result is the first input unchanged.

    The last of several makes the result and reads the others, which read what the node reads.
    """
    if typed.kind not in VIEWS:
        return LOWERINGS[typed.kind](typed)
    if typed.kind == "Dropout" and _is_training(typed):
        raise typed.unsupported("a dropout in training mode")
    return []


def _is_training(typed: TypedNode) -> bool:
    if len(typed.node.proto.input) < 3 or not typed.node.proto.input[2]:
        return False
    mode = typed.inputs[-1].array
    return mode is None or bool(mode)


def _lower_elementwise(typed: TypedNode) -> list[Operator]:
    kind, elements = typed.kind, typed.outputs[0].elements
    if kind in VARIADIC and len(typed.inputs) != 2:
        return _lower_variadic(typed)
    if kind in NORMS and not all(tensor.constant for tensor in typed.inputs[1:]):
        raise typed.unsupported("a norm whose scale or shift is computed")
    if kind == "BatchNormalization" and (typed.attributes.get("training_mode") or len(typed.outputs) > 1):
        raise typed.unsupported("a batch-norm in training mode")
    return [Elementwise(typed.name, ELEMENTWISE[kind], elements)]


def _lower_variadic(typed: TypedNode) -> list[Operator]:
    """Combine n inputs in n − 1 operators, each of two."""
    kind, elements = ELEMENTWISE[typed.kind], typed.outputs[0].elements
    names = [*(f"{typed.name}/{number}" for number in range(1, len(typed.inputs) - 1)), typed.name]
    return [Elementwise(name, kind, elements) for name in names[: len(typed.inputs) - 1]]


def _lower_pool(typed: TypedNode) -> list[Operator]:
    """Lower a window over height and width. Over three dimensions, depths count as images and the kernel's as rows."""
    batch, channels, *field = typed.outputs[0].shape
    kind, kernel, strides = WINDOWS[typed.kind], typed.attributes["kernel_shape"], typed.attributes.get("strides")
    if len(field) == 3:
        images, field = batch * field[0], field[1:]
        window, steps = (kernel[0] * kernel[1], kernel[2]), to_pair((strides or [1] * 3)[1:], 1)
    else:
        _check_pool(typed, typed.outputs[0].shape)
        images, window, steps = batch, read_pair(typed, "kernel_shape", 1), read_pair(typed, "strides", 1)
    return [Pool(typed.name, kind, images, channels, *to_pair(field, 1), *window, *steps)]


def _lower_global_pool(typed: TypedNode) -> list[Operator]:
    batch, channels, *field = typed.inputs[0].shape
    if len(field) == 3:
        field = [field[0] * field[1], field[2]]
    _check_pool(typed, (batch, channels, *field))
    return [GlobalPool(typed.name, GLOBAL_WINDOWS[typed.kind], batch, channels, *to_pair(field, 1))]


def _lower_local_norm(typed: TypedNode) -> list[Operator]:
    """Lower the norm over `size` neighbouring channels: a window of squares, then the division."""
    batch, channels, *field = typed.inputs[0].shape
    rows, columns = prod(field[:-1]), field[-1]
    window = Pool(f"{typed.name}/window", "sum", batch, channels, rows, columns, int(typed.attributes["size"]), 1)
    return [window, Elementwise(typed.name, "pow", window.elements)]


def _lower_resize(typed: TypedNode) -> list[Operator]:
    """Lower to moved data where each result is one element, otherwise to weighted sums along the resized axes."""
    mode, source, result = read_text(typed, "mode", "nearest"), typed.inputs[0].shape, typed.outputs[0]
    if source == result.shape:
        return []
    if mode == "nearest":
        return [Rearrangement(typed.name, "resize", result.elements)]
    if mode not in TAPS:
        raise typed.unsupported(f"the mode {mode}")
    resized = sum(before != after for before, after in zip(source, result.shape, strict=True))
    kind = "cubic" if TAPS[mode] == TAPS["cubic"] else "linear"
    return [Interpolation(typed.name, kind, result.elements, TAPS[mode] ** resized)]


def _lower_grid_sample(typed: TypedNode) -> list[Operator]:
    mode, result = read_text(typed, "mode", "linear"), typed.outputs[0]
    if mode == "nearest":
        return [Rearrangement(typed.name, "gather", result.elements)]
    kind = "cubic" if TAPS[mode] == TAPS["cubic"] else "linear"
    return [Interpolation(typed.name, kind, result.elements, TAPS[mode] ** (len(result.shape) - 2))]


def _check_pool(typed: TypedNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in {3, 4}:
        raise typed.unsupported(f"a pool over {len(shape) - 2} dimensions")
    return shape


def _lower_reduction(typed: TypedNode) -> list[Operator]:
    source, kind = typed.inputs[0], REDUCTIONS[typed.kind]
    axes = _read_axes(typed)
    if not axes:
        return []
    if axes == SPATIAL and len(source.shape) == 4 and kind in {"average", "max"}:
        return [GlobalPool(typed.name, kind, *source.shape)]
    return [Reduction(typed.name, kind, source.elements, typed.outputs[0].elements)]


def _lower_search(typed: TypedNode) -> list[Operator]:
    """Lower a search for the k largest elements: k passes, or those of a bitonic sort where these are fewer."""
    source, result = typed.inputs[0], typed.outputs[0]
    passes = 1
    if typed.kind == "TopK":
        axis = typed.attributes.get("axis", -1)
        depth = (source.shape[axis] - 1).bit_length()
        passes = max(1, min(result.shape[axis], depth * (depth + 1) // 2))
    elements = sum(tensor.elements for tensor in typed.outputs)
    return [Reduction(typed.name, SEARCHES[typed.kind], passes * source.elements, elements)]


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


def _lower_rearrangement(typed: TypedNode) -> list[Operator]:
    if typed.kind == "Transpose" and _keeps_order(typed):
        return []
    return [Rearrangement(typed.name, REARRANGEMENTS[typed.kind], sum(tensor.elements for tensor in typed.outputs))]


def _keeps_order(typed: TypedNode) -> bool:
    """Check whether a transposition moves axes of size 1 alone, so that the data stay in place."""
    shape = typed.inputs[0].shape
    order = typed.attributes.get("perm") or range(len(shape))[::-1]
    if sorted(order) != list(range(len(shape))):
        raise InconsistentModelError("perm does not name every axis once", place=typed.node.place)
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)


LOWERINGS: Mapping[str, Callable[[TypedNode], list[Operator]]] = {
    "Conv": lower_convolution,
    "ConvTranspose": lower_transposed_convolution,
    "Einsum": lower_einsum,
    "GRU": lower_recurrence,
    "Gemm": lower_gemm,
    "GridSample": _lower_grid_sample,
    "LRN": _lower_local_norm,
    "LSTM": lower_recurrence,
    "MatMul": lower_matmul,
    "RNN": lower_recurrence,
    "Resize": _lower_resize,
    "Upsample": _lower_resize,
    **dict.fromkeys(ELEMENTWISE, _lower_elementwise),
    **dict.fromkeys(WINDOWS, _lower_pool),
    **dict.fromkeys(GLOBAL_WINDOWS, _lower_global_pool),
    **dict.fromkeys(REDUCTIONS, _lower_reduction),
    **dict.fromkeys(SEARCHES, _lower_search),
    **dict.fromkeys(REARRANGEMENTS, _lower_rearrangement),
}
SUPPORTED = frozenset(LOWERINGS) | VIEWS
SEVERAL_OUTPUTS = frozenset({"GRU", "LSTM", "RNN", "Split", "TopK"})  # each output may be read
