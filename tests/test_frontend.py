"""ONNX graphs as operators: whole lists by hand, random graphs by other arithmetic, and every refusal in one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import FrozenInstanceError
from itertools import pairwise
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.emulator.frontend import ELEMENTWISE_KINDS, SUPPORTED, read_operators, read_program
from ipu_results.emulator.operators import (
    Convolution,
    Elementwise,
    Gemm,
    GlobalPool,
    Pool,
    Program,
    Rearrangement,
    Reduction,
    Tensor,
    live_elements,
    peak_live_elements,
)
from ipu_results.errors import (
    InconsistentModelError,
    ModelError,
    UnknownShapeError,
    UnrecognisedModelError,
    UnsupportedOperatorError,
)
from model_support import image, model, operators
from onnx import helper, numpy_helper

W = {"w": (8, 4, 3, 3)}
FIELD = 4 * 8 * 8
PADDED = {"pad_top": 1, "pad_left": 1, "pad_bottom": 1, "pad_right": 1}


def conv(name: str = "y", **sizes: Any) -> Convolution:
    """The convolution of the image by `W`, at batch 2, with other sizes."""
    plain: dict[str, Any] = {
        "batch": 2,
        "groups": 1,
        "in_channels_per_group": 4,
        "out_channels_per_group": 8,
        "in_height": 8,
        "in_width": 8,
        "kernel_height": 3,
        "kernel_width": 3,
    }
    return Convolution(name, **(plain | sizes))


def scalars(source: onnx.ModelProto, **values: float) -> onnx.ModelProto:
    for name, value in values.items():
        source.graph.initializer.append(numpy_helper.from_array(np.array(value, dtype=np.float32), name))
    return source


# Operators


def test_a_whole_graph() -> None:
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
        conv("a", batch=3, bias=True, **PADDED),
        Elementwise("n", "batchnorm", 3 * 8 * 64),
        Elementwise("r", "relu", 3 * 8 * 64),
        Pool("p", "max", 3, 8, 4, 4, 3, 3, 2, 2),
        Pool("q", "average", 3, 8, 4, 4, 2, 2, 2, 2),
        Convolution("d", 3, 4, 2, 2, 4, 4, 1, 1),
        Elementwise("e", "add", 3 * 8 * 16),
        GlobalPool("h", "average", 3, 8, 4, 4),
        Gemm("k", 1, 3, 8, 5, constant=True, bias=True),
        Elementwise("y", "softmax", 15),
    ]
    program = read_program(source, 3)
    assert program.sources == ((-1,), (0,), (1,), (2,), (2,), (3,), (5, 4), (6,), (7,), (8,))
    assert program.inputs == (Tensor("x", (3, 4, 8, 8), 32),)
    assert program.outputs == (Tensor("y", (3, 5), 32),)
    assert program.results == (9,)
    assert program.constants == sum(map(prod, weights.values()))
    assert program.weights == 8 * 4 * 9 + 8 * 2 + 40
    assert program.macs == 3 * (64 * 8 * 4 * 9 + 16 * 8 * 2 + 40)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("pads=[1,1,1,1]", conv(**PADDED)),
        ("pads=[0,1,2,3]", conv(pad_left=1, pad_bottom=2, pad_right=3)),
        ("strides=[2,3]", conv(stride_h=2, stride_w=3)),
        ("dilations=[2,1]", conv(dilation_h=2)),
        ('auto_pad="VALID"', conv()),
        ('auto_pad="SAME_UPPER"', conv(**PADDED)),
        ('auto_pad="SAME_UPPER", strides=[2,2]', conv(stride_h=2, stride_w=2, pad_bottom=1, pad_right=1)),
        ('auto_pad="SAME_LOWER", strides=[2,2]', conv(stride_h=2, stride_w=2, pad_top=1, pad_left=1)),
    ],
)
def test_convolution_attributes(attributes: str, expected: Convolution) -> None:
    assert operators(image(f"y = Conv<{attributes}>(x, w)", W)) == [expected]


def test_a_one_dimensional_convolution_has_height_1() -> None:
    source = model(
        "(float[N,4,10] x) => (float[] y)", "y = Conv<pads=[2,1], strides=[2], dilations=[2]>(x, w)", {"w": (6, 4, 3)}
    )
    (found,) = operators(source)
    assert found == Convolution("y", 2, 1, 4, 6, 1, 10, 1, 3, 1, 2, 0, 2, 0, 1, 1, 2)
    assert isinstance(found, Convolution)
    assert (found.out_height, found.out_width, found.elements) == (1, 5, 2 * 6 * 5)


@pytest.mark.parametrize(
    ("left", "right", "weight", "expected"),
    [
        ((2, 7), (7, 5), True, (1, 2, 7, 5)),
        ((2, 3, 7), (7, 5), True, (1, 6, 7, 5)),
        ((2, 7), (7,), True, (1, 2, 7, 1)),
        ((2, 3, 4, 7), (1, 3, 7, 5), True, (3, 8, 7, 5)),
        ((2, 3, 4, 7), (2, 3, 7, 5), False, (6, 4, 7, 5)),
        ((2, 1, 4, 7), (2, 3, 7, 5), False, (6, 4, 7, 5)),
        ((2, 3, 4, 7), (2, 1, 7, 5), False, (2, 12, 7, 5)),
    ],
)
def test_matrix_products(
    left: tuple[int, ...], right: tuple[int, ...], weight: bool, expected: tuple[int, int, int, int]
) -> None:
    inputs = f"float[{','.join(map(str, left))}] x" + ("" if weight else f", float[{','.join(map(str, right))}] w")
    source = model(f"({inputs}) => (float[] y)", "y = MatMul(x, w)", {"w": right} if weight else None)
    (found,) = operators(source)
    assert found == Gemm("y", *expected, constant=weight)
    shape = np.matmul(np.zeros(left), np.zeros(right)).shape
    assert isinstance(found, Gemm)
    assert (found.elements, found.macs) == (prod(shape), prod(shape) * 7)
    assert found.weights == (prod(right) if weight else 0)


def test_a_weight_on_the_left_is_a_constant_too() -> None:
    source = model("(float[N,7,5] x) => (float[] y)", "y = MatMul(w, x)", {"w": (3, 7)})
    assert operators(source) == [Gemm("y", 1, 10, 7, 3, constant=True)]


@pytest.mark.parametrize(
    ("attributes", "shapes", "expected"),
    [
        ("", ((2, 7), (7, 5)), (2, 7, 5)),
        ("<transB=1>", ((2, 7), (5, 7)), (2, 7, 5)),
        ("<transA=1>", ((2, 7), (2, 5)), (7, 2, 5)),
    ],
)
def test_gemm_transpositions(attributes: str, shapes: tuple[tuple[int, int], ...], expected: tuple[int, ...]) -> None:
    (rows, columns), weight = shapes
    source = model(f"(float[{rows},{columns}] x) => (float[] y)", f"y = Gemm{attributes}(x, w)", {"w": weight})
    assert operators(source) == [Gemm("y", 1, *expected)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Transpose<perm=[0,2,3,1]>(x)", [Rearrangement("y", "transpose", 2 * FIELD)]),
        ("y = Concat<axis=1>(x, x)", [Rearrangement("y", "concat", 4 * FIELD)]),
        ("a, y = Split<axis=1, num_outputs=2>(x)", [Rearrangement("a", "split", 2 * FIELD)]),
        ("y = DepthToSpace<blocksize=2>(x)", [Rearrangement("y", "transpose", 2 * FIELD)]),
        ("y = ReduceMean<axes=[2,3]>(x)", [GlobalPool("y", "average", 2, 4, 8, 8)]),
        ("y = ReduceMax<axes=[-1,-2], keepdims=0>(x)", [GlobalPool("y", "max", 2, 4, 8, 8)]),
        ("y = ReduceMean<axes=[1]>(x)", [Reduction("y", "average", 2 * FIELD, 2 * 64)]),
        ("y = ReduceMean(x)", [Reduction("y", "average", 2 * FIELD, 1)]),
        ("y = GlobalMaxPool(x)", [GlobalPool("y", "max", 2, 4, 8, 8)]),
        ("y = Sum(x, x)", [Elementwise("y", "add", 2 * FIELD)]),
        ("a = Identity(x) b = Flatten(a) c = Cast<to=10>(b) y = Relu(c)", [Elementwise("y", "relu", 2 * FIELD)]),
    ],
)
def test_other_operators(body: str, expected: list[object]) -> None:
    assert operators(image(body, opset=18 if "num_outputs" in body else 17)) == expected


def test_a_transposition_of_axes_of_size_1_moves_nothing() -> None:
    source = image("a = GlobalAveragePool(x) b = Transpose<perm=[0,2,3,1]>(a) y = Relu(b)")
    assert operators(source) == [GlobalPool("a", "average", 2, 4, 8, 8), Elementwise("y", "relu", 8)]


def test_a_reduction_over_axes_given_as_input() -> None:
    source = image("a = Constant<value = int64[2] {2, 3}>() y = ReduceSum(x, a)")
    assert operators(source) == [Reduction("y", "sum", 2 * FIELD, 8)]


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13, 15, 17, 21, 25])
def test_opsets(opset: int) -> None:
    weights = {**W, "s": (8,)}
    body = "a = Conv(x, w) b = BatchNormalization(a, s, s, s, s) c = Relu(b) d = GlobalAveragePool(c) y = Softmax(d)"
    assert [type(one).__name__ for one in operators(image(body, weights, opset=opset))] == [
        *("Convolution", "Elementwise", "Elementwise", "GlobalPool", "Elementwise")
    ]


def test_operators_are_values() -> None:
    one = Elementwise("a", "relu", 3)
    assert (one, hash(one)) == (Elementwise("a", "relu", 3), hash(Elementwise("a", "relu", 3)))
    with pytest.raises(FrozenInstanceError):
        one.elements = 4  # type: ignore[misc]
    assert not hasattr(one, "__dict__")


def test_what_is_supported_is_told() -> None:
    assert {"Conv", "Gemm", "MatMul", "Relu", "Reshape", "Softmax"} <= SUPPORTED
    assert {
        "relu",
        "add",
        "mul",
        "swish",
        "gelu",
        "batchnorm",
        "layernorm",
        "softmax",
        "sigmoid",
        "tanh",
    } <= ELEMENTWISE_KINDS


# What is computed on the way


def test_shape_arithmetic_is_computed_and_left_out() -> None:
    body = """
        s = Shape(x)
        zero = Constant<value = int64[1] {0}>()
        rest = Constant<value = int64[1] {-1}>()
        n = Gather(s, zero)
        t = Concat<axis=0>(n, rest)
        r = Reshape(x, t)
        y = MatMul(r, w)
    """
    assert operators(image(body, {"w": (FIELD, 10)}), 5) == [Gemm("y", 1, 5, FIELD, 10)]


def test_parts_of_a_shape() -> None:
    body = "s = Shape<start=1, end=3>(x) z = Size(x) t = Concat<axis=0>(s, m) r = Reshape(x, t) y = Relu(r)"
    source = image(f"m = Constant<value = int64[1] {{-1}}>() {body}")
    assert read_program(source, 2).operators == (Elementwise("y", "relu", 2 * FIELD),)


def test_what_depends_on_weights_alone_is_no_operator() -> None:
    source = image("a = Transpose<perm=[1,0,2,3]>(w) b = Neg(a) y = Conv(x, b)", {"w": (4, 8, 3, 3)})
    assert operators(source) == [conv()]


def test_a_node_that_no_output_needs_is_no_operator() -> None:
    assert operators(image("a = Tanh(x) b = Frobnicate(a) y = Relu(x)")) == [Elementwise("y", "relu", 2 * FIELD)]


def test_nodes_may_stand_in_any_order() -> None:
    source = image("a = Relu(x) b = Tanh(a) y = Add(a, b)")
    turned = onnx.ModelProto()
    turned.CopyFrom(source)
    del turned.graph.node[:]
    turned.graph.node.extend(reversed(source.graph.node))
    assert read_program(turned, 2) == read_program(source, 2)


def test_names_are_made_unique() -> None:
    source = image("a = Relu(x) b = Relu(a) y = Relu(b)")
    source.graph.node[0].name = source.graph.node[1].name = source.graph.node[2].name = "act"
    assert [one.name for one in operators(source)] == ["act", "act#2", "act#3"]


def test_local_functions_are_put_in_their_place() -> None:
    inner = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    source = image("y = own.Twice(x)")
    source.opset_import.append(helper.make_opsetid("own", 1))
    source.functions.append(inner)
    assert [(type(one), one.elements) for one in operators(source)] == [(Elementwise, 2 * FIELD)]


# Fusion


SWISH = "s = Sigmoid(x) y = Mul(x, s)"
GELUS = (
    "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)",
    "a = Mul(shrink, x) b = Erf(a) c = Add(one, b) h = Mul(half, x) y = Mul(h, c)",
    "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(c, half) y = Mul(x, d)",
)


def gelu(body: str, **other: float) -> onnx.ModelProto:
    return scalars(image(body), **({"root": sqrt(2), "shrink": 1 / sqrt(2), "one": 1.0, "half": 0.5} | other))


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (image(SWISH), "swish"),
        (image("s = Sigmoid(x) y = Mul(s, x)"), "swish"),
        (image("y = Gelu(x)", opset=20), "gelu"),
        (image("y = HardSwish(x)"), "hardswish"),
        *((gelu(body), "gelu") for body in GELUS),
    ],
)
def test_an_activation_in_parts_is_one_operator(source: onnx.ModelProto, kind: str) -> None:
    assert operators(source) == [Elementwise("y", kind, 2 * FIELD)]


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (image("s = Sigmoid(x) m = Mul(x, s) y = Add(m, s)"), ["sigmoid", "mul", "add"]),
        (model("(float[N,4] x) => (float[] y, float[] s)", SWISH), ["sigmoid", "mul"]),
        (image("t = Tanh(x) s = Sigmoid(x) y = Mul(t, s)"), ["tanh", "sigmoid", "mul"]),
        (image("s = Sigmoid(x) y = Mul(s, s)"), ["sigmoid", "mul"]),
        (image("s = Sigmoid(x) y = Add(x, s)"), ["sigmoid", "add"]),
        (gelu(GELUS[0], half=0.4), ["div", "erf", "add", "mul", "mul"]),
        (gelu(GELUS[0], root=1.5), ["div", "erf", "add", "mul", "mul"]),
        (gelu(GELUS[1], one=2.0), ["mul", "erf", "add", "mul", "mul"]),
        (gelu(GELUS[0].replace("Div(x, root)", "Div(root, x)")), ["div", "erf", "add", "mul", "mul"]),
        (gelu(GELUS[2].replace("Mul(x, d)", "Mul(a, d)")), ["div", "erf", "add", "mul", "mul"]),
    ],
)
def test_what_looks_like_an_activation_stays_in_parts(source: onnx.ModelProto, kinds: list[str]) -> None:
    found = operators(source)
    assert sorted(one.kind for one in found if isinstance(one, Elementwise)) == sorted(kinds)
    assert len(found) == len(kinds)


def test_a_fused_operator_reads_its_source_alone() -> None:
    program = read_program(gelu("t = Tanh(x) " + GELUS[1].replace("x", "t")), 2)
    assert program.sources == ((-1,), (0,))
    assert program.constants == 0


# Batch and other dimensions


def test_the_batch_multiplies_what_depends_on_it() -> None:
    source = image("a = Conv(x, w) y = Relu(a)", W)
    one, five = (read_program(source, batch) for batch in (1, 5))
    assert (five.macs, five.weights, five.constants) == (5 * one.macs, one.weights, one.constants)
    assert [each.elements for each in five.operators] == [5 * each.elements for each in one.operators]


def test_a_model_that_fixes_its_batch_needs_none() -> None:
    source = model("(float[3,4] x) => (float[] y)", "y = Relu(x)")
    assert read_operators(source) == read_operators(source, 3) == (Elementwise("y", "relu", 12),)


def test_dimensions_are_given_by_name() -> None:
    source = model("(float[N,S,4] x, float[N,S] m) => (float[] y)", "a = Unsqueeze(m, z) y = Mul(x, a)")
    source.graph.initializer.append(numpy_helper.from_array(np.array([2]), "z"))
    assert read_operators(source, 2, dimensions={"S": 6}) == (Elementwise("y", "mul", 48),)
    with pytest.raises(UnknownShapeError, match=r"^tiny: input x: dimension 1 \(S\) has no size$"):
        read_program(source, 2)


def test_an_unnamed_first_dimension_is_the_batch() -> None:
    source = model("(float[?,4] x) => (float[] y)", "y = Relu(x)")
    assert operators(source, 7) == [Elementwise("y", "relu", 28)]


def test_initializers_among_the_inputs_are_no_inputs() -> None:
    source = model("(float[N,4,8,8] x, float[8,4,3,3] w) => (float[] y)", "y = Conv(x, w)", W)
    assert operators(source) == [conv()]
    assert [one.name for one in read_program(source, 2).inputs] == ["x"]


def test_a_given_model_is_left_as_it_is(tmp_path: Path) -> None:
    source = image("a = Conv(x, w) y = Relu(a)", W)
    before = source.SerializeToString()
    path = tmp_path / "tiny.onnx"
    path.write_bytes(before)
    assert read_program(path, 2) == read_program(str(path), 2) == read_program(source, 2)
    assert source.SerializeToString() == before


def test_weights_outside_the_file_are_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "tiny.onnx"
    source = image("y = Conv(x, w)", {"w": (64, 4, 9, 9), "b": (1,)})
    source.graph.node[0].attribute.append(helper.make_attribute("pads", [4] * 4))
    onnx.save_model(source, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    (found,) = read_operators(path, 1)
    assert isinstance(found, Convolution)
    assert found.weights == 64 * 4 * 81


# Refusals


def edited(source: onnx.ModelProto, edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    edit(source)
    return source


BRANCHES = "then_branch = g () => (float a) {a = Relu(x)}, else_branch = h () => (float b) {b = Tanh(x)}"

REFUSED = [
    (image("y = Frobnicate(x)"), UnsupportedOperatorError, "Frobnicate y: Frobnicate is not supported"),
    (image("y = NonZero(x)"), UnsupportedOperatorError, "NonZero y: NonZero is not supported"),
    (
        image("y = ConvTranspose(x, w)", {"w": (4, 4, 3, 3)}),
        UnsupportedOperatorError,
        "ConvTranspose y: ConvTranspose is not supported",
    ),
    (
        image("y = com.microsoft.FusedGelu(x)"),
        UnsupportedOperatorError,
        "FusedGelu y: domain com.microsoft is not supported",
    ),
    (
        image("y = HardSwish(x)", opset=13),
        UnsupportedOperatorError,
        "HardSwish y: HardSwish is no operator of opset 13",
    ),
    (image("y = Sum(x, x, x)"), UnsupportedOperatorError, "Sum y: Sum of 3 inputs is not supported"),
    (
        image("a = Sigmoid(x) y = Conv(x, a)"),
        UnsupportedOperatorError,
        "Conv y: a convolution whose weights or bias are computed is not supported",
    ),
    (
        model("(float[N,4,8,8,8] x) => (float[] y)", "y = Conv(x, w)", {"w": (8, 4, 1, 1, 1)}),
        UnsupportedOperatorError,
        "Conv y: a convolution over 3 dimensions is not supported",
    ),
    (
        model("(float[N,4,8,8,8] x) => (float[] y)", "y = GlobalMaxPool(x)"),
        UnsupportedOperatorError,
        "GlobalMaxPool y: a pool over 3 dimensions is not supported",
    ),
    (
        model("(float[N,4,8,8,8] x) => (float[] y)", "y = MaxPool<kernel_shape=[2,2,2]>(x)"),
        UnsupportedOperatorError,
        "MaxPool y: a pool over 3 dimensions is not supported",
    ),
    (
        image("a, b = MaxPool<kernel_shape=[2,2]>(x) c = Cast<to=1>(b) y = Add(a, c)"),
        UnsupportedOperatorError,
        "MaxPool a: its further output b is read: not supported",
    ),
    (
        image("y, m, v = BatchNormalization<training_mode=1>(x, s, s, s, s)", {"s": (4,)}),
        UnsupportedOperatorError,
        "BatchNormalization y: a batch-norm that is trained is not supported",
    ),
    (
        image("a = Relu(s) y = BatchNormalization(x, s, v, s, s)", {"s": (4,)}),
        InconsistentModelError,
        "BatchNormalization y: v is no input, no initializer and no node's output",
    ),
    (
        image("a = ReduceMean<axes=[0,2,3], keepdims=0>(x) y = BatchNormalization(x, s, s, a, s)", {"s": (4,)}),
        UnsupportedOperatorError,
        "BatchNormalization y: a norm whose scale or shift is computed is not supported",
    ),
    (
        image("t = Constant<value = bool {1}>() y = Dropout(x, , t)"),
        UnsupportedOperatorError,
        "Dropout y: a dropout that drops is for training: not supported",
    ),
    (
        image("t = Constant<value = bool {1}>() r = Constant<value = float {0.5}>() y = Dropout(x, r, t)"),
        UnsupportedOperatorError,
        "Dropout y: a dropout that drops is for training: not supported",
    ),
    (
        model("(float[N,4] x, bool c) => (float[] y)", f"y = If(c) <{BRANCHES}>"),
        UnsupportedOperatorError,
        "If y: a node with a graph of its own is not supported",
    ),
    (image("y = Relu(z)"), InconsistentModelError, "Relu y: z is no input, no initializer and no node's output"),
    (image("y = Conv(x, w)"), InconsistentModelError, "Conv y: w is no input, no initializer and no node's output"),
    (image("a = Add(x, c) b = Relu(a) c = Tanh(b) y = Relu(c)"), InconsistentModelError, "nodes form a cycle: a, b, c"),
    (image("a = Relu(a) y = Add(x, a)"), InconsistentModelError, "nodes form a cycle: a"),
    (image("y = Relu(x) y = Tanh(x)"), InconsistentModelError, "Tanh y#2: y already comes from Relu y"),
    (image("a = Relu(x)"), InconsistentModelError, "no node makes the output y"),
    (image("y = Relu(w)", {"w": (4,)}), InconsistentModelError, "output y does not depend on any input"),
    (
        image("y = Conv(x, w)", {"w": (8, 5, 3, 3)}),
        InconsistentModelError,
        "Conv y: 1 groups of 5 → 8 channels do not fit an input of 4",
    ),
    (
        image("y = Conv<group=2>(x, w)", {"w": (7, 2, 3, 3)}),
        InconsistentModelError,
        "Conv y: 2 groups of 2 → 7 channels do not fit an input of 4",
    ),
    (
        image("y = Conv<kernel_shape=[5,5]>(x, w)", W),
        InconsistentModelError,
        "Conv y: the kernel does not fit the weights or the padding",
    ),
    (image("y = Conv(x, w)", {"w": (8, 4, 9, 9)}), InconsistentModelError, "Conv y: y comes out empty, as 2×8×0×0"),
    (
        image("y = Conv<strides=[0,0]>(x, w)", W),
        InconsistentModelError,
        "Conv y: Attribute strides must only contain positive values",
    ),
    (image("y = Transpose<perm=[0,1]>(x)"), InconsistentModelError, "Transpose y: perm does not name every axis once"),
    (
        image("y = MatMul(x, w)", {"w": (9, 9)}),
        InconsistentModelError,
        "MatMul y: Incompatible dimensions for matrix multiplication",
    ),
    (
        image("y = Relu(x, x)"),
        InconsistentModelError,
        "Relu y: Node with schema(::Relu:14) has input size 2 not in range [min=1, max=1].",
    ),
    (
        model("(float[3,4] x) => (float[] y)", "y = Relu(x)"),
        InconsistentModelError,
        "input x is fixed at a batch of 3, not 2",
    ),
    (
        edited(image("y = Conv(x, w)", W), lambda one: one.graph.initializer[0].dims.__setitem__(0, 10**12)),
        InconsistentModelError,
        "initializer w holds other data than its shape and type say",
    ),
    (
        edited(image("y = Conv(x, w)", W), lambda one: one.graph.initializer[0].dims.__setitem__(0, -8)),
        InconsistentModelError,
        "initializer w has no shape or type that there is",
    ),
    (
        edited(image("y = Add(x, w)", {"w": (8,)}), lambda one: setattr(one.graph.initializer[0], "raw_data", b"1")),
        InconsistentModelError,
        "initializer w holds other data than its shape and type say",
    ),
    (
        edited(image("y = Add(x, w)", {"w": (8,)}), lambda one: setattr(one.graph.initializer[0], "data_type", 77)),
        InconsistentModelError,
        "initializer w has no shape or type that there is",
    ),
    (
        model("(float[N,4,H,8] x) => (float[] y)", "y = Relu(x)"),
        UnknownShapeError,
        "input x: dimension 2 (H) has no size",
    ),
    (model("(float[N,4,?,8] x) => (float[] y)", "y = Relu(x)"), UnknownShapeError, "input x: dimension 2 has no size"),
    (model("(float[] x) => (float[] y)", "y = Relu(x)"), UnknownShapeError, "input x has no shape"),
    (
        model("(float[N,4] x, float[M,4] z) => (float[] y)", "y = Add(x, z)"),
        UnknownShapeError,
        "inputs begin with different dimensions, M and N: which is the batch?",
    ),
    (
        model("(float[N,4] x, int64[2] s) => (float[] y)", "y = Reshape(x, s)"),
        UnknownShapeError,
        "Reshape y: dimension 0 of y does not follow from the inputs' shapes",
    ),
    (
        image("y = Relu(x)", opset=99),
        UnrecognisedModelError,
        f"opset 99 is later than {onnx.defs.onnx_opset_version()}, the last one known",
    ),
    (
        image("y = Relu(x)", ir=99),
        UnrecognisedModelError,
        f"IR version 99 is later than {int(onnx.IR_VERSION)}, the last one known",
    ),
    (
        edited(image("y = Relu(x)"), lambda one: one.ClearField("opset_import")),
        UnrecognisedModelError,
        "names no version of the ONNX operators",
    ),
    (
        edited(image("y = Relu(x)"), lambda one: one.graph.ClearField("node")),
        UnrecognisedModelError,
        "is no ONNX model, or one without nodes",
    ),
]


@pytest.mark.parametrize(("source", "kind", "message"), REFUSED, ids=[one[2][:60] for one in REFUSED])
def test_a_refusal_is_one_line_that_names_the_node(
    source: onnx.ModelProto, kind: type[ModelError], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        read_program(source, 2)
    assert type(caught.value) is kind
    assert str(caught.value) == f"tiny: {message}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\x00", b"no model\n" * 99, bytes(range(256)) * 9], ids=repr)
def test_a_file_that_is_no_model(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "photo.onnx"
    path.write_bytes(data)
    with pytest.raises(UnrecognisedModelError, match=r"^\S+photo\.onnx: is no ONNX model"):
        read_program(path, 1)


def test_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "half.onnx"
    whole = image("y = Conv(x, w)", W).SerializeToString()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnrecognisedModelError, match=r"half\.onnx: is no ONNX model"):
        read_program(path, 1)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnrecognisedModelError, match=r"gone\.onnx: cannot be read: No such file or directory$"):
        read_program(tmp_path / "gone.onnx", 1)
    with pytest.raises(UnrecognisedModelError, match=r"cannot be read: Is a directory$"):
        read_program(tmp_path, 1)


def test_a_batch_that_is_none() -> None:
    with pytest.raises(UnknownShapeError, match=r"^tiny: input x: dimension 0 \(N\) has no size$"):
        read_program(image("y = Relu(x)"))
    with pytest.raises(UnknownShapeError, match=r"^tiny: batch must be at least 1, not 0$"):
        read_program(image("y = Relu(x)"), 0)


@given(st.data())
def test_a_damaged_file_is_refused_or_read(data: st.DataObject) -> None:
    """Whatever a few wrong bytes do, it is a program or a `ModelError`."""
    whole = bytearray(image(SWISH).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        source = onnx.load_model_from_string(bytes(whole))
        with suppress(ModelError):
            assert isinstance(read_program(source, 2), Program)


@pytest.mark.parametrize("name", [b"\xff", b"two\nlines"])
def test_a_name_that_is_no_printable_text(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.onnx"
    source = image(SWISH)
    source.graph.node[0].name = "?" * len(name)
    path.write_bytes(source.SerializeToString().replace(b"?" * len(name), name))
    with pytest.raises(UnrecognisedModelError, match=r"odd\.onnx: a name in it is no printable text$"):
        read_program(path, 2)


# Liveness


def test_live_elements_by_hand() -> None:
    source = image(
        "a = Conv<pads=[1,1,1,1]>(x, w) r = Relu(a) p = GlobalAveragePool(r) y = Mul(r, p)", {"w": (8, 4, 3, 3)}
    )
    program = read_program(source, 1)
    x, field, pooled = FIELD, 8 * 64, 8
    assert live_elements(program, in_place=False) == (x + field, 2 * field, field + pooled, 2 * field + pooled)
    assert live_elements(program) == (x + field, field, field + pooled, field + pooled)
    assert peak_live_elements(program) == x + field


def test_a_source_that_is_read_again_is_not_overwritten() -> None:
    program = read_program(image("a = Relu(x) b = Tanh(a) y = Add(a, b)"), 1)
    assert live_elements(program) == (FIELD, 2 * FIELD, 2 * FIELD)


def test_outputs_live_to_the_end_and_unread_inputs_not_at_all() -> None:
    source = model("(float[N,4] x, float[N,9] unread) => (float[] a, float[] y)", "a = Relu(x) b = Tanh(a) y = Neg(b)")
    assert live_elements(read_program(source, 1)) == (4, 8, 8)


def test_seen_in_another_way_is_not_held_twice() -> None:
    program = read_program(image("a = Relu(x) b = Flatten(a) y = Tanh(b)"), 1)
    assert live_elements(program) == (FIELD, FIELD)
    assert read_program(image("y = Identity(x)"), 1).results == (-1,)
    assert peak_live_elements(read_program(image("y = Identity(x)"), 1)) == 0


# Random chains


@st.composite
def chains(draw: st.DrawFn) -> tuple[onnx.ModelProto, int, list[tuple[str, int, int]]]:
    """A chain of random nodes, its batch, and for each node (type, elements, macs) by the usual formulas."""
    batch, channels = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    size = [draw(st.integers(5, 12)), draw(st.integers(5, 12))]
    header = f"(float[N,{channels},{size[0]},{size[1]}] x) => (float[] y)"
    body, weights, expected, last = [], {}, [], "x"
    for number in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["Conv", "Relu", "Add", "MaxPool", "Sigmoid"]))
        name = f"t{number}"
        macs = 0
        if kind in {"Conv", "MaxPool"}:
            kernel, stride, pad = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(0, 1))
            pad = min(pad, kernel - 1)
            if min(size) + 2 * pad < kernel:
                continue
            attributes = (
                f"kernel_shape=[{kernel},{kernel}], strides=[{stride},{stride}], pads=[{pad},{pad},{pad},{pad}]"
            )
            size = [len(range(0, one + 2 * pad - kernel + 1, stride)) for one in size]
        if kind == "Conv":
            groups = draw(st.sampled_from([one for one in range(1, channels + 1) if channels % one == 0]))
            out = groups * draw(st.integers(1, 3))
            weights[f"w{number}"] = (out, channels // groups, kernel, kernel)
            macs = batch * prod(size) * out * (channels // groups) * kernel**2
            channels = out
            body.append(f"{name} = Conv<group={groups}, {attributes}>({last}, w{number})")
        elif kind == "MaxPool":
            body.append(f"{name} = MaxPool<{attributes}>({last})")
        else:
            body.append(f"{name} = {kind}({last}{f', {last}' if kind == 'Add' else ''})")
        expected.append((kind, batch * channels * prod(size), macs))
        last = name
    body.append(f"y = Neg({last})")
    expected.append(("Neg", batch * channels * prod(size), 0))
    return model(header, " ".join(body), weights), batch, expected


@given(chains())
def test_random_chains(chain: tuple[onnx.ModelProto, int, list[tuple[str, int, int]]]) -> None:
    source, batch, expected = chain
    program = read_program(source, batch)
    types = {"Conv": Convolution, "MaxPool": Pool}
    assert [(type(one), one.elements) for one in program.operators] == [
        (types.get(kind, Elementwise), elements) for kind, elements, _ in expected
    ]
    assert program.macs == sum(macs for _, _, macs in expected)
    assert program.constants == program.weights == sum(prod(one.dims) for one in source.graph.initializer)
    sizes = [program.inputs[0].elements, *(one.elements for one in program.operators)]
    assert live_elements(program, in_place=False) == tuple(map(sum, pairwise(sizes)))
    assert peak_live_elements(program) <= peak_live_elements(program, in_place=False)


@given(chains())
def test_shapes_agree_with_those_of_onnx(chain: tuple[onnx.ModelProto, int, list[tuple[str, int, int]]]) -> None:
    source, batch, _ = chain
    fixed = onnx.ModelProto()
    fixed.CopyFrom(source)
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = batch
    inferred = onnx.shape_inference.infer_shapes(fixed, strict_mode=True).graph
    shapes = {one.name: one.type.tensor_type.shape for one in [*inferred.value_info, *inferred.output]}
    for one in read_program(source, batch).operators:
        assert one.elements == prod(axis.dim_value for axis in shapes[one.name].dim)


def test_the_type_of_an_input_tells_its_bits() -> None:
    source = model("(float16[N,3] x) => (float16[] y)", "y = Relu(x)")
    program = read_program(source, 2)
    assert (program.inputs[0].bits, program.inputs[0].bytes) == (16, 12)
    assert Tensor("nibbles", (3,), 4).bytes == 2
