"""Work of every operator by hand, and the frozen list of what is read."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.graph import get_element_bits
from ipu_results.emulator.lowering import SUPPORTED
from ipu_results.emulator.operators import (
    Product,
    Program,
    Recurrence,
    count_live_elements,
    shape_product,
)
from ipu_results.emulator.prediction import assess_memory, predict
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.target import load_target
from ipu_results.errors import InconsistentModelError, UnsupportedOperatorError
from onnx import TensorProto, helper, numpy_helper

from tests.emulator.model_support import image, model

INT, BOOL = TensorProto.INT64, TensorProto.BOOL
FIELD = 4 * 8 * 8
Shape = Sequence[int]


def read(
    kind: str,
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Shape | np.ndarray[Any, Any]] = {},
    *,
    order: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    types: Mapping[str, int] = {},
    opset: int = 18,
    **attributes: Any,
) -> Program:
    """Read the graph of one node.

    A weight is an array, or zeros of a shape; `order` are the node's inputs.
    """
    node = helper.make_node(
        kind, order or [*inputs, *weights], list(outputs), kind.lower(), **attributes
    )
    sources = [
        helper.make_tensor_value_info(name, types.get(name, 1), shape)
        for name, shape in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, types.get(name, 1), None) for name in outputs if name
    ]
    constants = [
        numpy_helper.from_array(
            value if isinstance(value, np.ndarray) else np.zeros(value, np.float32), name
        )
        for name, value in weights.items()
    ]
    graph = helper.make_graph([node], "one", sources, results, constants)
    return read_program(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    )


def count_elements(program: Program) -> list[int]:
    return [operator.elements for operator in program.operators]


def longs(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)


# Work by hand: multiply-accumulates, then elements of each operator


WORK = tomllib.loads(Path(__file__).with_name("work.toml").read_text(encoding="utf-8"))["graph"]


def read_graph(graph: Mapping[str, Any]) -> Program:
    """Read a graph of `work.toml`."""
    stated = {name: value for name, value in graph.items() if name in ("order", "outputs", "opset")}
    weights = {}
    for name, weight in graph.get("weights", {}).items():
        weights[name] = weight
        if isinstance(weight, dict):
            dtype = np.float32 if "is_float" in weight else np.int64
            weights[name] = np.array(weight["values"], dtype)
    types = {
        name: TensorProto.DataType.Value(kind) for name, kind in graph.get("types", {}).items()
    }
    attributes = graph.get("attributes", {})
    return read(graph["kind"], graph["inputs"], weights, types=types, **stated, **attributes)


@pytest.mark.parametrize("graph", WORK, ids=lambda graph: graph["kind"])
def test_work_by_hand(graph: dict[str, Any]) -> None:
    program = read_graph(graph)
    assert (program.macs, count_elements(program)) == (graph["macs"], graph["elements"])
    # every operator can be costed, and only products multiply
    steps = schedule(program, load_target("m2000")).steps
    assert sum(step.macs for step in steps) == graph["macs"]
    assert all(step.cycles > 0 for step in steps)


def test_topk_takes_a_pass_for_each_result_until_sorting_is_cheaper() -> None:
    # 8 elements a row are sorted in 3·4/2 = 6 passes
    counts = [
        read("TopK", {"x": (3, 8)}, {"k": longs(k)}, outputs=("y", "z"), types={"z": INT})
        .operators[0]
        .in_elements  # type: ignore[union-attr]
        for k in (1, 2, 8)
    ]
    assert counts == [24, 48, 144]


def test_recurrence_repeats_one_step() -> None:
    weights = {"w": (1, 12, 7), "r": (1, 12, 3)}
    short, long = (read("LSTM", {"x": (steps, 2, 7)}, weights, hidden_size=3) for steps in (5, 50))
    assert long.sources == ((-1,), (0,))
    first, second = long.operators
    assert isinstance(first, Product)
    assert isinstance(second, Recurrence)
    assert first.shape == shape_product(1, 100, 7, 12)
    assert [part.elements for part in second.passes] == [24, 18, 6, 6, 6, 6, 6, 6]
    target = load_target("m2000")
    plans = [schedule(program, target) for program in (short, long)]
    steps = [plan.steps[1] for plan in plans]
    assert steps[1].cycles == pytest.approx(10 * steps[0].cycles)
    assert steps[1].supersteps == 10 * steps[0].supersteps
    # the code of a step is held once
    assert plans[0].code_supersteps == plans[1].code_supersteps
    assert assess_memory(long, plans[1], target).memory_verdict == "FITS"


def test_operator_of_the_standard_without_a_cost_is_replaced_by_its_definition() -> None:
    attention = read("Attention", dict.fromkeys("qkv", (2, 3, 16, 8)), opset=23)
    assert attention.macs == 2 * (2 * 3 * 16 * 16 * 8)


# Constants


def read_reshape(*nodes: onnx.NodeProto, **weights: np.ndarray[Any, Any]) -> Program:
    """Read a reshape of x, 2 × 6 elements, to what the nodes compute as `shape`."""
    graph = helper.make_graph(
        [
            *nodes,
            helper.make_node("Reshape", ["x", "shape"], ["r"], "reshape"),
            helper.make_node("Relu", ["r"], ["y"]),
        ],
        "one",
        [helper.make_tensor_value_info("x", 1, [2, 6])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return read_program(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    )


@pytest.mark.parametrize(
    ("sizes", "indices", "expected"),
    [
        (longs(3, 4), longs(1, 0), (4, 3)),
        (longs(3, 4, 9), longs(-2, -3), (4, 3)),
        (longs(12, 5), longs(0), (12,)),
    ],
)
def test_gathered_elements_of_a_constant_are_computed(
    sizes: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], expected: tuple[int, ...]
) -> None:
    node = helper.make_node("GatherElements", ["sizes", "indices"], ["shape"])
    assert read_reshape(node, sizes=sizes, indices=indices).outputs[0].shape == expected


def test_shape_from_the_places_of_a_constant_is_computed() -> None:
    nodes = [
        helper.make_node("NonZero", ["mask"], ["places"]),
        helper.make_node("Squeeze", ["places"], ["shape"]),
    ]
    mask = np.zeros(13, dtype=np.int64)
    mask[[1, 12]] = 1
    assert read_reshape(*nodes, mask=mask).outputs[0].shape == (1, 12)


# Coverage


READ = """
Abs Acos Add And ArgMax ArgMin Asin Atan AveragePool BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr
BitwiseXor Cast CastLike Ceil Celu Clip Concat Conv ConvTranspose Cos Cosh CumSum DepthToSpace Div Dropout Einsum Elu
Equal Erf Exp Expand Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool
Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN
LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpPool MatMul Max MaxPool Mean
MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu Pad Pow RMSNormalization RNN Reciprocal ReduceL1
ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape
Resize ReverseSequence Round ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Slice Softmax Softplus
Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze
Upsample Where Xor
"""


def test_coverage_is_frozen() -> None:
    assert sorted(SUPPORTED) == READ.split()
    for kind in SUPPORTED:
        assert onnx.defs.get_schema(kind).name == kind


OFFSETS = {"x": (1, 4, 8, 8), "o": (1, 2, 8, 8)}
BYTES = {"w": np.zeros((8, 4, 1, 1), np.uint8)}


@pytest.mark.parametrize(
    "program",
    [
        lambda: read("NonMaxSuppression", {"b": (1, 9, 4), "s": (1, 2, 9)}, types={"y": INT}),
        lambda: read("DeformConv", OFFSETS, {"w": (8, 4, 1, 1)}, order=["x", "w", "o"], opset=19),
        lambda: read(
            "ConvInteger",
            {"x": (1, 4, 8, 8)},
            BYTES,
            types={"x": TensorProto.UINT8, "y": TensorProto.INT32},
        ),
    ],
)
def test_what_is_not_read_is_named_with_its_node(program: Callable[[], Program]) -> None:
    with pytest.raises(
        UnsupportedOperatorError, match=r"^one: (\w+) (?i:\1): \1 is not supported$"
    ):
        program()


# Liveness


def test_live_elements_by_hand() -> None:
    source = image(
        "a = Conv<pads=[1,1,1,1]>(x, w) r = Relu(a) p = GlobalAveragePool(r) y = Mul(r, p)",
        {"w": (8, 4, 3, 3)},
    )
    program = read_program(source, 1)
    x, field, pooled = FIELD, 8 * 64, 8
    assert count_live_elements(program) == (x + field, field, field + pooled, field + pooled)


@pytest.mark.parametrize(
    ("source", "live"),
    [
        # a source that is read again is not overwritten
        (image("a = Relu(x) b = Tanh(a) y = Add(a, b)"), (FIELD, 2 * FIELD, 2 * FIELD)),
        # outputs live to the end, unread inputs not at all
        (
            model(
                "(float[N,4] x, float[N,9] z) => (float[] a, float[] y)",
                "a = Relu(x) b = Tanh(a) y = Neg(b)",
            ),
            (4, 8, 8),
        ),
        # a view is not held twice
        (image("a = Relu(x) b = Flatten(a) y = Tanh(b)"), (FIELD, FIELD)),
    ],
)
def test_live_elements(source: onnx.ModelProto, live: tuple[int, ...]) -> None:
    assert count_live_elements(read_program(source, 1)) == live


def test_view_of_the_input_takes_no_memory() -> None:
    program = read_program(image("y = Identity(x)"), 1)
    assert (program.results, count_live_elements(program)) == ((-1,), ())
    with pytest.raises(InconsistentModelError, match="has nothing to compute"):
        predict(lambda _: program, load_target("m2000"), [4])


def test_input_type_sets_its_bits() -> None:
    source = model("(float16[N,3] x) => (float16[] y)", "y = Relu(x)")
    program = read_program(source, 2)
    assert program.inputs[0].bits == 16
    assert get_element_bits(TensorProto.INT4) == 4
