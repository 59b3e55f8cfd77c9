"""Work of graphs by hand, and the frozen list of what is read."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import onnx
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.graph import get_element_bits
from ipu_results.emulator.lowering import SUPPORTED
from ipu_results.emulator.operators import (
    Operator,
    Product,
    Program,
    Recurrence,
    Reduction,
    count_live_elements,
    shape_product,
)
from ipu_results.emulator.prediction import assess_memory, predict
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.target import load_target
from ipu_results.errors import InconsistentModelError
from onnx import TensorProto

from tests.cases import read_cases
from tests.emulator.model_support import image, model

M2000 = load_target("m2000")
FIXED_IMAGE = "(float[2,4,8,8] x) => (float[] y)"
GIVEN = ("signature", "body", "weights", "opset", "batch")
GRAPHS = read_cases(__file__, "graphs.toml")["graph"]


def describe(operator: Operator) -> str:
    """Return the text by which `graphs.toml` states an operator."""
    if not isinstance(operator, Product):
        return " ".join(map(str, astuple(operator)))
    shape = operator.shape
    sizes = astuple(shape)
    if operator.kind == "gemm":
        sizes = (shape.groups, shape.rows, shape.ins, shape.outs)
    text = " ".join(map(str, (operator.name, operator.kind, *sizes)))
    text += " constant" if operator.constant else ""
    return f"{text} bias" if operator.bias else text


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph["body"][:40])
def test_work_by_hand(graph: dict[str, Any]) -> None:
    source = model(
        graph.get("signature", FIXED_IMAGE),
        graph["body"],
        graph.get("weights"),
        opset=graph.get("opset", 17),
    )
    program = read_program(source, graph.get("batch"))
    found = {
        "macs": program.macs,
        "elements": [operator.elements for operator in program.operators],
        "operators": list(map(describe, program.operators)),
        "sources": list(map(list, program.sources)),
        "shape": list(program.outputs[0].shape),
        "parameters": program.parameters,
        "live": list(count_live_elements(program)),
    }
    for name in graph.keys() - GIVEN:
        assert found[name] == graph[name]
    # every operator can be costed, and only products multiply
    steps = schedule(program, M2000).steps
    assert sum(step.macs for step in steps) == program.macs
    assert all(step.cycles > 0 for step in steps)


def test_topk_takes_a_pass_for_each_result_until_sorting_is_cheaper() -> None:
    # 8 elements a row are sorted in 3·4/2 = 6 passes
    for count, elements in ((1, 24), (2, 48), (8, 144)):
        body = f"k = Constant<value = int64[1] {{{count}}}>() y, z = TopK(x, k)"
        program = read_program(model("(float[3,8] x) => (float[] y, int64[] z)", body))
        (operator,) = program.operators
        assert isinstance(operator, Reduction)
        assert operator.in_elements == elements


def read_lstm(steps: int) -> Program:
    weights = {"w": (1, 12, 7), "r": (1, 12, 3)}
    signature = f"(float[{steps},2,7] x) => (float[] y)"
    return read_program(model(signature, "y = LSTM<hidden_size = 3>(x, w, r)", weights))


def test_recurrence_repeats_one_step() -> None:
    long = read_lstm(50)
    assert long.sources == ((-1,), (0,))
    first, second = long.operators
    assert isinstance(first, Product)
    assert isinstance(second, Recurrence)
    assert first.shape == shape_product(1, 100, 7, 12)
    assert [part.elements for part in second.passes] == [24, 18, 6, 6, 6, 6, 6, 6]
    few = schedule(read_lstm(5), M2000)
    many = schedule(long, M2000)
    assert many.steps[1].cycles == pytest.approx(10 * few.steps[1].cycles)
    assert many.steps[1].supersteps == 10 * few.steps[1].supersteps
    # the code of a step is held once
    assert many.code_supersteps == few.code_supersteps
    assert assess_memory(long, many, M2000).memory_verdict == "FITS"


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


def test_view_of_the_input_takes_no_memory() -> None:
    program = read_program(image("y = Identity(x)"), 1)
    assert (program.results, count_live_elements(program)) == ((-1,), ())
    with pytest.raises(InconsistentModelError, match="has nothing to compute"):
        predict(lambda _: program, M2000, [4])


def test_input_type_sets_its_bits() -> None:
    source = model("(float16[N,3] x) => (float16[] y)", "y = Relu(x)")
    assert read_program(source, 2).inputs[0].bits == 16
    assert get_element_bits(TensorProto.INT4) == 4
