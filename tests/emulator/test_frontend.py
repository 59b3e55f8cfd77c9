"""ONNX graphs as operators. `graphs.toml` has what needs no more than a text; this has the rest."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import onnx
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Product,
    Reduction,
    SlidingWindow,
    Tensor,
    make_gemm,
)
from onnx import helper

from tests.emulator.model_support import image, model, operators

W = {"w": (8, 4, 3, 3)}
FIELD = 4 * 8 * 8


def conv(name: str = "y", out: tuple[int, int] = (6, 6), **sizes: int) -> Product:
    """Return the convolution of the image by `W`, at batch 2, with other sizes."""
    plain = {
        "batch": 2,
        "groups": 1,
        "ins": 4,
        "outs": 8,
        "rows": out[0],
        "columns": out[1],
        "kernel_rows": 3,
        "kernel_columns": 3,
        "in_rows": 8,
        "in_columns": 8,
    }
    return convolve(name, **(plain | sizes))


def convolve(name: str, *sizes: int, bias: bool = False, **named: int) -> Product:
    return Product(name, "convolution", ConvolutionShape(*sizes, **named), bias=bias)


# Operators


def test_whole_graph() -> None:
    weights = {"w": (8, 4, 3, 3), "b": (8,), "s": (8,), "v": (8, 2, 1, 1), "f": (5, 8), "g": (5,)}
    source = model(
        "(float[N,4,8,8] x) => (float[N,5] y)",
        """
        a = Conv<pads=[1,1,1,1]>(x, w, b)
        n = BatchNormalization(a, s, s, s, s)
        r = Relu(n)
        p = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r)
        q = AveragePool<kernel_shape=[2,2], strides=[2,2]>(r)
        d = Conv<group=4>(p, v)
        e = Add(d, q)
        h = GlobalAveragePool(e)
        i = Flatten(h)
        j = Dropout(i)
        k = Gemm<transB=1>(j, f, g)
        y = Softmax<axis=1>(k)
        """,
        weights,
    )
    assert operators(source, 3) == [
        replace(conv("a", (8, 8), batch=3), bias=True),
        Elementwise("n", "batchnorm", 3 * 8 * 64),
        Elementwise("r", "relu", 3 * 8 * 64),
        SlidingWindow("p", "max pool", 3 * 8 * 16, 9),
        SlidingWindow("q", "average pool", 3 * 8 * 16, 4),
        convolve("d", 3, 4, 2, 2, 4, 4, in_rows=4, in_columns=4),
        Elementwise("e", "add", 3 * 8 * 16),
        Reduction("h", "global pool", 3 * 8 * 16, 3 * 8),
        make_gemm("k", 1, 3, 8, 5, constant=True, bias=True),
        Elementwise("y", "softmax", 15),
    ]
    program = read_program(source, 3)
    assert program.sources == ((-1,), (0,), (1,), (2,), (2,), (3,), (5, 4), (6,), (7,), (8,))
    assert program.inputs == (Tensor("x", (3, 4, 8, 8), 32),)
    assert program.outputs == (Tensor("y", (3, 5), 32),)
    assert program.results == (9,)
    assert program.parameters == sum(map(prod, weights.values()))
    assert program.macs == 3 * (64 * 8 * 4 * 9 + 16 * 8 * 2 + 40)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("pads=[1,1,1,1]", conv(out=(8, 8))),
        ("pads=[0,1,2,3]", conv(out=(8, 10))),
        ("strides=[2,3]", conv(out=(3, 2), stride=3)),
        ("dilations=[2,1]", conv(out=(4, 6))),
        ('auto_pad="VALID"', conv()),
        ('auto_pad="SAME_UPPER"', conv(out=(8, 8))),
        ('auto_pad="SAME_LOWER", strides=[2,2]', conv(out=(4, 4), stride=2)),
    ],
)
def test_convolution_attributes(attributes: str, expected: Product) -> None:
    assert operators(image(f"y = Conv<{attributes}>(x, w)", W)) == [expected]


def test_convolution_of_one_dimension_has_one_row() -> None:
    body = "y = Conv<pads=[2,1], strides=[2], dilations=[2]>(x, w)"
    source = model("(float[N,4,10] x) => (float[] y)", body, {"w": (6, 4, 3)})
    assert operators(source) == [convolve("y", 2, 1, 4, 6, 1, 5, 1, 3, 2, 1, 10)]


def test_weights_that_follow_from_weights_are_constant() -> None:
    body = "a = Transpose<perm=[1,0,2,3]>(w) b = Neg(a) y = Conv(x, b)"
    assert operators(image(body, {"w": (4, 8, 3, 3)})) == [conv()]


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
    assert operators(source) == [conv()]
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
