"""ONNX graphs as operators. `graphs.toml` has what needs no more than a text; this has the rest."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import (
    Elementwise,
    Product,
    Reduction,
    make_gemm,
)
from onnx import helper

from tests.emulator.model_support import image, model, operators

W = {"w": (8, 4, 3, 3)}
FIELD = 4 * 8 * 8


# Operators


@pytest.mark.parametrize("opset", [7, 11, 13, 17, 25])
def test_opsets(opset: int) -> None:
    weights = {**W, "s": (8,)}
    body = (
        "a = Conv(x, w) b = BatchNormalization(a, s, s, s, s) c = Relu(b) d = GlobalAveragePool(c)"
        " y = Softmax(d)"
    )
    found = operators(image(body, weights, opset=opset))
    assert list(map(type, found)) == [Product, Elementwise, Elementwise, Reduction, Elementwise]


# What is computed on the way


def test_names_are_made_unique() -> None:
    source = image("a = Relu(x) b = Relu(a) y = Relu(b)")
    for node in source.graph.node:
        node.name = "act"
    assert [operator.name for operator in operators(source)] == ["act", "act#2", "act#3"]


def test_shape_of_a_filled_input_is_that_of_its_initializer() -> None:
    source = image("r = Reshape(x, t) y = MatMul(r, w)", {"w": (FIELD, 10)})
    target = helper.make_tensor("t", onnx.TensorProto.INT64, [2], [-1, FIELD])
    source.graph.initializer.append(target)
    source.graph.input.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, None))
    source.graph.input.append(helper.make_tensor_value_info("t", onnx.TensorProto.INT64, ["n"]))
    assert operators(source) == [make_gemm("y", 1, 2, FIELD, 10)]


def test_local_functions_are_inlined() -> None:
    add = helper.make_node("Add", ["a", "a"], ["b"])
    opset = helper.make_opsetid("", 17)
    inner = helper.make_function("own", "Twice", ["a"], ["b"], [add], [opset])
    source = image("y = own.Twice(x)")
    source.opset_import.append(helper.make_opsetid("own", 1))
    source.functions.append(inner)
    (operator,) = operators(source)
    assert isinstance(operator, Elementwise)
    assert operator.elements == 2 * FIELD


# Batch and other dimensions


def test_model_of_a_fixed_batch_needs_no_batch() -> None:
    source = model("(float[3,4] x) => (float[] y)", "y = Relu(x)")
    assert read_program(source) == read_program(source, 3)
    assert read_program(source).operators == (Elementwise("y", "relu", 12),)


def test_inputs_filled_by_initializers_are_not_data_inputs() -> None:
    source = model("(float[N,4,8,8] x, float[8,4,3,3] w) => (float[] y)", "y = Conv(x, w)", W)
    assert operators(source) == operators(image("y = Conv(x, w)", W))
    assert [tensor.name for tensor in read_program(source, 2).inputs] == ["x"]


def test_external_weights_are_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "tiny.onnx"
    source = image("y = Conv(x, w)", {"w": (64, 4, 9, 9), "b": (1,)})
    source.graph.node[0].attribute.append(helper.make_attribute("pads", [4] * 4))
    onnx.save_model(
        source, path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert load_network(path) == load_network(path)  # so that they share programs and sessions
    (tmp_path / "weights.bin").unlink()
    before = path.read_bytes()
    assert load_network(path)(1).macs == 64 * 4 * 81 * 64
    assert path.read_bytes() == before
