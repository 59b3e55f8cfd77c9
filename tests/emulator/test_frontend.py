"""ONNX graphs as operators: whole lists by hand, fusion, and the dimensions that a caller sets."""

from __future__ import annotations

from dataclasses import replace
from math import pi, prod, sqrt
from pathlib import Path

import numpy as np
import onnx
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Operator,
    Product,
    Rearrangement,
    Reduction,
    SlidingWindow,
    Tensor,
    make_gemm,
)
from ipu_results.errors import UnknownShapeError
from onnx import helper, numpy_helper

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


def scalars(source: onnx.ModelProto, **values: float) -> onnx.ModelProto:
    for name, value in values.items():
        source.graph.initializer.append(
            numpy_helper.from_array(np.array(value, dtype=np.float32), name)
        )
    return source


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
    inputs = f"float[{','.join(map(str, left))}] x" + (
        "" if weight else f", float[{','.join(map(str, right))}] w"
    )
    source = model(
        f"({inputs}) => (float[] y)", "y = MatMul(x, w)", {"w": right} if weight else None
    )
    (operator,) = operators(source)
    assert operator == make_gemm("y", *expected, constant=weight)
    shape = np.matmul(np.zeros(left), np.zeros(right)).shape
    assert isinstance(operator, Product)
    assert (operator.elements, operator.macs) == (prod(shape), prod(shape) * 7)
    assert operator.parameters == (prod(right) if weight else 0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Transpose<perm=[0,2,3,1]>(x)", [Rearrangement("y", "transpose", 2 * FIELD)]),
        ("y = Concat<axis=1>(x, x)", [Rearrangement("y", "concat", 4 * FIELD)]),
        ("a, y = Split<axis=1, num_outputs=2>(x)", [Rearrangement("a", "split", 2 * FIELD)]),
        ("y = DepthToSpace<blocksize=2>(x)", [Rearrangement("y", "transpose", 2 * FIELD)]),
        ("y = ReduceMean<axes=[2,3]>(x)", [Reduction("y", "reduction", 2 * FIELD, 8)]),
        (
            "y = ReduceMax<axes=[-1,-2], keepdims=0>(x)",
            [Reduction("y", "reduction", 2 * FIELD, 8)],
        ),
        ("y = ReduceMean<axes=[1]>(x)", [Reduction("y", "reduction", 2 * FIELD, 2 * 64)]),
        ("y = ReduceMean(x)", [Reduction("y", "reduction", 2 * FIELD, 1)]),
        ("y = GlobalMaxPool(x)", [Reduction("y", "global pool", 2 * FIELD, 8)]),
        ("y = Sum(x, x)", [Elementwise("y", "add", 2 * FIELD)]),
        (
            "a = Identity(x) b = Flatten(a) c = Cast<to=10>(b) y = Relu(c)",
            [Elementwise("y", "relu", 2 * FIELD)],
        ),
        # a transposition of axes of size 1 moves nothing
        (
            "a = GlobalAveragePool(x) b = Transpose<perm=[0,2,3,1]>(a) y = Relu(b)",
            [Reduction("a", "global pool", 2 * FIELD, 8), Elementwise("y", "relu", 8)],
        ),
        (
            "a = Constant<value = int64[2] {2, 3}>() y = ReduceSum(x, a)",
            [Reduction("y", "reduction", 2 * FIELD, 8)],
        ),
        # parts of a shape are computed and left out
        (
            (
                "m = Constant<value = int64[1] {-1}>() s = Shape<start=1, end=3>(x) z = Size(x) t ="
                " Concat<axis=0>(s, m) r = Reshape(x, t) y = Relu(r)"
            ),
            [Elementwise("y", "relu", 2 * FIELD)],
        ),
        # a node that no output needs is left out
        ("a = Tanh(x) b = Frobnicate(a) y = Relu(x)", [Elementwise("y", "relu", 2 * FIELD)]),
    ],
)
def test_other_operators(body: str, expected: list[object]) -> None:
    assert operators(image(body, opset=18 if "num_outputs" in body else 17)) == expected


CONV1D = convolve("y", 2, 1, 4, 6, 1, 5, 1, 3, 2, 1, 10)


@pytest.mark.parametrize(
    ("inputs", "body", "weights", "expected"),
    [
        (
            "[N,4,10]",
            "y = Conv<pads=[2,1], strides=[2], dilations=[2]>(x, w)",
            {"w": (6, 4, 3)},
            CONV1D,
        ),
        # a weight on the left is constant too
        ("[N,7,5]", "y = MatMul(w, x)", {"w": (3, 7)}, make_gemm("y", 1, 10, 7, 3, constant=True)),
        ("[2,7]", "y = Gemm(x, w)", {"w": (7, 5)}, make_gemm("y", 1, 2, 7, 5)),
        ("[2,7]", "y = Gemm<transB=1>(x, w)", {"w": (5, 7)}, make_gemm("y", 1, 2, 7, 5)),
        ("[2,7]", "y = Gemm<transA=1>(x, w)", {"w": (2, 5)}, make_gemm("y", 1, 7, 2, 5)),
        ("[?,4]", "y = Relu(x)", {}, Elementwise("y", "relu", 8)),
        # what depends on weights alone is left out
        (
            "[N,4,8,8]",
            "a = Transpose<perm=[1,0,2,3]>(w) b = Neg(a) y = Conv(x, b)",
            {"w": (4, 8, 3, 3)},
            conv(),
        ),
    ],
)
def test_one_operator_with_weights(
    inputs: str, body: str, weights: dict[str, tuple[int, ...]], expected: Operator
) -> None:
    assert operators(model(f"(float{inputs} x) => (float[] y)", body, weights)) == [expected]


@pytest.mark.parametrize("opset", [7, 11, 13, 17, 25])
def test_opsets(opset: int) -> None:
    weights = {**W, "s": (8,)}
    body = (
        "a = Conv(x, w) b = BatchNormalization(a, s, s, s, s) c = Relu(b) d = GlobalAveragePool(c)"
        " y = Softmax(d)"
    )
    assert [
        type(operator).__name__ for operator in operators(image(body, weights, opset=opset))
    ] == [*("Product", "Elementwise", "Elementwise", "Reduction", "Elementwise")]


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
    assert operators(image(body, {"w": (FIELD, 10)}), 5) == [make_gemm("y", 1, 5, FIELD, 10)]


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
    inner = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    source = image("y = own.Twice(x)")
    source.opset_import.append(helper.make_opsetid("own", 1))
    source.functions.append(inner)
    assert [(type(operator), operator.elements) for operator in operators(source)] == [
        (Elementwise, 2 * FIELD)
    ]


# Fusion


SWISH = "s = Sigmoid(x) y = Mul(x, s)"
GELUS = (
    "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)",
    "a = Mul(shrink, x) b = Erf(a) c = Add(one, b) h = Mul(half, x) y = Mul(h, c)",
    "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(c, half) y = Mul(x, d)",
)
# GPT-2's, and with its first three parts in other orders
TANH_GELUS = (
    (
        "p = Pow(x, three) q = Mul(p, cubic) s = Add(x, q) t = Mul(s, slope) b = Tanh(t) c = Add(b,"
        " one) h = Mul(x, half) y = Mul(h, c)"
    ),
    (
        "p = Pow(x, three) q = Mul(cubic, p) s = Add(q, x) t = Mul(slope, s) b = Tanh(t) c ="
        " Add(one, b) d = Mul(x, c) y = Mul(d, half)"
    ),
)
SCALARS = {"root": sqrt(2), "shrink": 1 / sqrt(2), "one": 1.0, "half": 0.5}
TANH_PARTS = ["pow", "mul", "add", "mul", "tanh", "add", "mul", "mul"]
TANH_SCALARS = {"three": 3.0, "cubic": 0.044715, "slope": sqrt(2 / pi)}


def gelu(body: str, **other: float) -> onnx.ModelProto:
    return scalars(image(body), **(SCALARS | (TANH_SCALARS if "Tanh" in body else {}) | other))


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (image(SWISH), "swish"),
        (image("s = Sigmoid(x) y = Mul(s, x)"), "swish"),
        (image("y = Gelu(x)", opset=20), "gelu"),
        (image("y = HardSwish(x)"), "hardswish"),
        *((gelu(body), "gelu") for body in (*GELUS, *TANH_GELUS)),
        # a constant may be off by a thousandth, as in a file in fp16
        (gelu(GELUS[0], root=1.4155), "gelu"),
        (gelu(GELUS[1], shrink=0.7065, half=0.5004), "gelu"),
    ],
)
def test_activation_in_parts_is_fused(source: onnx.ModelProto, kind: str) -> None:
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
        (gelu(GELUS[0], root=1.4125), ["div", "erf", "add", "mul", "mul"]),
        (gelu(GELUS[0], root=1.416), ["div", "erf", "add", "mul", "mul"]),
        (gelu(GELUS[1], one=2.0), ["mul", "erf", "add", "mul", "mul"]),
        (
            gelu(GELUS[0].replace("Div(x, root)", "Div(root, x)")),
            ["div", "erf", "add", "mul", "mul"],
        ),
        (gelu(TANH_GELUS[0], three=2.0), TANH_PARTS),
        (gelu(TANH_GELUS[0], cubic=0.05), TANH_PARTS),
        (gelu(TANH_GELUS[0], slope=0.7), TANH_PARTS),
        (gelu(TANH_GELUS[0].replace("Add(x, q)", "Add(p, q)")), TANH_PARTS),
        (gelu(GELUS[2].replace("Mul(x, d)", "Mul(a, d)")), ["div", "erf", "add", "mul", "mul"]),
    ],
)
def test_what_only_resembles_an_activation_is_not_fused(
    source: onnx.ModelProto, kinds: list[str]
) -> None:
    assert sorted(getattr(operator, "kind", "") for operator in operators(source)) == sorted(kinds)


def test_fused_operator_reads_its_source_alone() -> None:
    program = read_program(gelu("t = Tanh(x) " + GELUS[1].replace("x", "t")), 2)
    assert program.sources == ((-1,), (0,))
    assert program.parameters == 0


# Batch and other dimensions


def test_model_of_a_fixed_batch_needs_no_batch() -> None:
    source = model("(float[3,4] x) => (float[] y)", "y = Relu(x)")
    assert read_program(source) == read_program(source, 3)
    assert read_program(source).operators == (Elementwise("y", "relu", 12),)


def test_other_free_dimension_is_named() -> None:
    source = model("(float[N,S,4] x) => (float[] y)", "y = Relu(x)")
    with pytest.raises(UnknownShapeError, match=r"^tiny: input x: dimension 1 \(S\) has no size$"):
        read_program(source, 2)


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
