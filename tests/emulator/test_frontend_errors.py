"""What the front end cannot read is refused in one line that names the graph and the node."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from ipu_results import errors
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

from tests.emulator.model_support import IMAGE, image, model

W = {"w": (8, 4, 3, 3)}
SWISH = "s = Sigmoid(x) y = Mul(x, s)"


def edit(source: onnx.ModelProto, change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    change(source)
    return source


def edit_weight(change: Callable[[onnx.TensorProto], object]) -> onnx.ModelProto:
    return edit(
        image("y = Add(x, w)", {"w": (8,)}), lambda source: change(source.graph.initializer[0])
    )


def cut_data(tensor: onnx.TensorProto) -> None:
    """Leave out the last half of the data, as of a file that was not loaded whole."""
    tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]


# What no text can state.
ODD = [
    (
        UnsupportedOperatorError,
        edit(
            image("y = Relu(x)"),
            lambda source: setattr(source.graph.input[0].type.tensor_type, "elem_type", 77),
        ),
        "input x has an unsupported element type",
    ),
    (
        InconsistentModelError,
        edit_weight(lambda tensor: tensor.dims.__setitem__(0, 10**12)),
        "the data of initializer w do not match its shape and type",
    ),
    (
        InconsistentModelError,
        edit(image("y = Conv(x, w)", W), lambda source: cut_data(source.graph.initializer[0])),
        "the data of initializer w do not match its shape and type",
    ),
    (
        InconsistentModelError,
        edit_weight(lambda tensor: tensor.dims.__setitem__(0, -8)),
        "initializer w has an invalid shape or element type",
    ),
    (
        InconsistentModelError,
        edit_weight(lambda tensor: setattr(tensor, "data_type", 77)),
        "initializer w has an invalid shape or element type",
    ),
    (
        UnrecognisedModelError,
        image("y = Relu(x)", opset=99),
        f"opset 99 is newer than {onnx.defs.onnx_opset_version()}, the last known",
    ),
    (
        UnrecognisedModelError,
        image("y = Relu(x)", ir=99),
        f"IR version 99 is newer than {int(onnx.IR_VERSION)}, the last known",
    ),
    (
        UnrecognisedModelError,
        edit(image("y = Relu(x)"), lambda source: source.ClearField("opset_import")),
        "does not name a version of the ONNX operators",
    ),
    (
        UnrecognisedModelError,
        edit(image("y = Relu(x)"), lambda source: source.graph.ClearField("node")),
        "is not an ONNX model, or has no nodes",
    ),
]


def load_cases() -> Iterator[tuple[type[ModelError], onnx.ModelProto, str]]:
    """Yield the models of `unreadable.toml` and the odd ones."""
    text = Path(__file__).with_name("unreadable.toml").read_text(encoding="utf-8")
    for error, cases in tomllib.loads(text).items():
        for case in cases:
            says = case.pop("says")
            signature = case.pop("signature", IMAGE)
            yield getattr(errors, error), model(signature, **case), says
    yield from ODD


CASES = list(load_cases())


@pytest.mark.parametrize(("kind", "source", "message"), CASES, ids=[case[2][:60] for case in CASES])
def test_error_is_one_line_that_names_the_node(
    kind: type[ModelError], source: onnx.ModelProto, message: str
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
