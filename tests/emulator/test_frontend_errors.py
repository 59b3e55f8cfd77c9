"""What the front end cannot read is refused in one line that names the graph and the node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import Program
from ipu_results.errors import (
    InconsistentModelError,
    ModelError,
    UnknownShapeError,
    UnrecognisedModelError,
    UnsupportedOperatorError,
)

from tests.emulator.model_support import image, model

W = {"w": (8, 4, 3, 3)}
SWISH = "s = Sigmoid(x) y = Mul(x, s)"
HYPERVOLUME = "(float[N,4,4,4,4,4] x) => (float[] y)"
BRANCHES = (
    "then_branch = g () => (float a) {a = Relu(x)}, else_branch = h () => (float b) {b = Tanh(x)}"
)


def edit(source: onnx.ModelProto, change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    change(source)
    return source


def edit_weight(change: Callable[[onnx.TensorProto], object]) -> onnx.ModelProto:
    return edit(
        image("y = Add(x, w)", {"w": (8,)}), lambda source: change(source.graph.initializer[0])
    )


UNSUPPORTED = [
    (image("y = Frobnicate(x)"), "Frobnicate y: Frobnicate is not supported"),
    (image("y = NonZero(x)"), "NonZero y: NonZero is not supported"),
    (
        image("a = Sigmoid(x) y = ConvTranspose(x, a)"),
        "ConvTranspose y: a convolution whose weights or bias are computed is not supported",
    ),
    (
        image('y = Einsum<equation = "aacd,aecd->ae">(x, x)'),
        "Einsum y: the equation aacd,aecd->ae is not supported",
    ),
    (
        image('y = Einsum<equation = "abcd,ec->ae">(x, w)', {"w": (8, 8)}),
        "Einsum y: the equation abcd,ec->ae, which sums over one operand, is not supported",
    ),
    (
        image("y = DeformConv(x, w, x)", {"w": (8, 4, 1, 1)}),
        "DeformConv y: DeformConv is not supported",
    ),
    (
        model(
            "(float[N,6,4] x) => (float[] y)",
            "r = Sigmoid(w) y = LSTM<hidden_size=3>(x, w, x)",
            {"w": (1, 12, 4)},
        ),
        "LSTM y: LSTM whose weights are computed is not supported",
    ),
    (image("y = com.microsoft.FusedGelu(x)"), "FusedGelu y: domain com.microsoft is not supported"),
    (image("y = HardSwish(x)", opset=13), "HardSwish y: HardSwish is not an operator of opset 13"),
    (
        image("a = Sigmoid(x) y = Conv(x, a)"),
        "Conv y: a convolution whose weights or bias are computed is not supported",
    ),
    (
        model(HYPERVOLUME, "y = Conv(x, w)", {"w": (8, 4, 1, 1, 1, 1)}),
        "Conv y: a convolution over 4 dimensions is not supported",
    ),
    (
        model(HYPERVOLUME, "y = GlobalMaxPool(x)"),
        "GlobalMaxPool y: a pool over 4 dimensions is not supported",
    ),
    (
        model(HYPERVOLUME, "y = MaxPool<kernel_shape=[2,2,2,2]>(x)"),
        "MaxPool y: a pool over 4 dimensions is not supported",
    ),
    (
        image("a, b = MaxPool<kernel_shape=[2,2]>(x) c = Cast<to=1>(b) y = Add(a, c)"),
        "MaxPool a: reading its further output b is not supported",
    ),
    (
        image("y, m, v = BatchNormalization<training_mode=1>(x, s, s, s, s)", {"s": (4,)}),
        "BatchNormalization y: a batch-norm in training mode is not supported",
    ),
    (
        image(
            "a = ReduceMean<axes=[0,2,3], keepdims=0>(x) y = BatchNormalization(x, s, s, a, s)",
            {"s": (4,)},
        ),
        "BatchNormalization y: a norm whose scale or shift is computed is not supported",
    ),
    (
        image("t = Constant<value = bool {1}>() y = Dropout(x, , t)"),
        "Dropout y: a dropout in training mode is not supported",
    ),
    (
        image(
            "t = Constant<value = bool {1}>() r = Constant<value = float {0.5}>() y = Dropout(x,"
            " r, t)"
        ),
        "Dropout y: a dropout in training mode is not supported",
    ),
    (
        model("(float[N,4] x, bool c) => (float[] y)", f"y = If(c) <{BRANCHES}>"),
        "If y: a node with a subgraph is not supported",
    ),
    (
        edit(
            image("y = Relu(x)"),
            lambda source: setattr(source.graph.input[0].type.tensor_type, "elem_type", 77),
        ),
        "input x has an unsupported element type",
    ),
]
INCONSISTENT = [
    (
        image("y = Relu(z)"),
        "Relu y: z is not an input, an initializer or an output of an earlier node",
    ),
    (
        image("a = Add(x, c) c = Tanh(a) y = Relu(c)"),
        "Add a: c is not an input, an initializer or an output of an earlier node",
    ),
    (image("y = Relu(x) y = Tanh(x)"), "Tanh y#2: y already comes from Relu y"),
    (image("a = Relu(x)"), "no node produces the output y"),
    (image("y = Relu(w)", {"w": (4,)}), "output y does not depend on any input"),
    (
        image("y = Conv(x, w)", {"w": (8, 5, 3, 3)}),
        "Conv y: 1 groups of 5 → 8 channels do not fit an input of 4",
    ),
    (
        image("y = Conv<group=2>(x, w)", {"w": (7, 2, 3, 3)}),
        "Conv y: 2 groups of 2 → 7 channels do not fit an input of 4",
    ),
    (
        image("y = Conv<kernel_shape=[5,5]>(x, w)", W),
        "Conv y: the kernel does not fit the weights or the padding",
    ),
    (image("y = Conv(x, w)", {"w": (8, 4, 9, 9)}), "Conv y: y would be empty, as 2×8×0×0"),
    (
        image("y = Conv<strides=[0,0]>(x, w)", W),
        "Conv y: Attribute strides must only contain positive values",
    ),
    (image("y = Transpose<perm=[0,1]>(x)"), "Transpose y: perm does not name every axis once"),
    (
        image("y = MatMul(x, w)", {"w": (9, 9)}),
        "MatMul y: Incompatible dimensions for matrix multiplication",
    ),
    (
        image("y = Relu(x, x)"),
        "Relu y: Node with schema(::Relu:14) has input size 2 not in range [min=1, max=1].",
    ),
    (
        model("(float[3,4] x) => (float[] y)", "y = Relu(x)"),
        "input x is fixed at a batch of 3, not 2",
    ),
    (
        edit(
            image("y = Conv(x, w)", W),
            lambda source: source.graph.initializer[0].dims.__setitem__(0, 10**12),
        ),
        "the data of initializer w do not match its shape and type",
    ),
    (
        edit_weight(lambda tensor: tensor.dims.__setitem__(0, -8)),
        "initializer w has an invalid shape or element type",
    ),
    (
        edit_weight(lambda tensor: setattr(tensor, "raw_data", b"1")),
        "the data of initializer w do not match its shape and type",
    ),
    (
        edit_weight(lambda tensor: setattr(tensor, "data_type", 77)),
        "initializer w has an invalid shape or element type",
    ),
]
UNKNOWN_SHAPE = [
    (
        model("(float[N,4,H,8] x) => (float[] y)", "y = Relu(x)"),
        "input x: dimension 2 (H) has no size",
    ),
    (model("(float[N,4,?,8] x) => (float[] y)", "y = Relu(x)"), "input x: dimension 2 has no size"),
    (model("(float[] x) => (float[] y)", "y = Relu(x)"), "input x has no shape"),
    (
        model("(float[N,4] x, float[M,4] z) => (float[] y)", "y = Add(x, z)"),
        "inputs begin with different dimensions, M and N: which is the batch?",
    ),
    (
        model("(float[N,4] x, int64[2] s) => (float[] y)", "y = Reshape(x, s)"),
        "Reshape y: dimension 0 of y does not follow from the inputs' shapes",
    ),
]
UNRECOGNISED = [
    (
        image("y = Relu(x)", opset=99),
        f"opset 99 is newer than {onnx.defs.onnx_opset_version()}, the last known",
    ),
    (
        image("y = Relu(x)", ir=99),
        f"IR version 99 is newer than {int(onnx.IR_VERSION)}, the last known",
    ),
    (
        edit(image("y = Relu(x)"), lambda source: source.ClearField("opset_import")),
        "does not name a version of the ONNX operators",
    ),
    (
        edit(image("y = Relu(x)"), lambda source: source.graph.ClearField("node")),
        "is not an ONNX model, or has no nodes",
    ),
]
CASES = [
    (source, kind, message)
    for kind, cases in (
        (UnsupportedOperatorError, UNSUPPORTED),
        (InconsistentModelError, INCONSISTENT),
        (UnknownShapeError, UNKNOWN_SHAPE),
        (UnrecognisedModelError, UNRECOGNISED),
    )
    for source, message in cases
]


@pytest.mark.parametrize(("source", "kind", "message"), CASES, ids=[case[2][:60] for case in CASES])
def test_error_is_one_line_that_names_the_node(
    source: onnx.ModelProto, kind: type[ModelError], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        read_program(source, 2)
    assert type(caught.value) is kind
    assert str(caught.value) == f"tiny: {message}"


def test_missing_or_impossible_batch_is_refused() -> None:
    with pytest.raises(UnknownShapeError, match=r"^tiny: input x: dimension 0 \(N\) has no size$"):
        read_program(image("y = Relu(x)"))
    with pytest.raises(UnknownShapeError, match=r"^tiny: batch must be at least 1, not 0$"):
        read_program(image("y = Relu(x)"), 0)


WHOLE = image("y = Conv(x, w)", W).SerializeToString()


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"no model\n" * 99, bytes(range(256)) * 9, WHOLE[: len(WHOLE) // 2]]
)
def test_file_that_is_not_a_model_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "photo.onnx"
    path.write_bytes(data)
    with pytest.raises(UnrecognisedModelError, match=r"^\S+photo\.onnx: is not an ONNX model"):
        load_network(path)(1)


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UnrecognisedModelError, match=r"gone\.onnx: is not a file and not a built-in network"
    ):
        load_network(tmp_path / "gone.onnx")
    with pytest.raises(UnrecognisedModelError, match=r"cannot be read: Is a directory$"):
        load_network(tmp_path)


@given(st.data())
def test_damaged_file_is_refused_or_read(data: st.DataObject) -> None:
    """Whatever a few wrong bytes do, the result is a program or a `ModelError`."""
    whole = bytearray(image(SWISH).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        source = onnx.load_model_from_string(bytes(whole))
        with suppress(ModelError):
            assert isinstance(read_program(source, 2), Program)


@pytest.mark.parametrize("name", [b"\xff", b"two\nlines"])
def test_name_that_is_not_printable_text_is_refused(name: bytes) -> None:
    source = image(SWISH)
    source.graph.node[0].name = "?" * len(name)
    data = source.SerializeToString().replace(b"?" * len(name), name)
    with pytest.raises(UnrecognisedModelError, match=r"^tiny: a name in it is not printable text$"):
        read_program(onnx.load_model_from_string(data), 2)
