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


def edit(change: Callable[[onnx.GraphProto, onnx.TensorProto], object]) -> onnx.ModelProto:
    """Return a model after a change of its graph or of its weight."""
    source = image("y = Conv(x, w)", W)
    change(source.graph, source.graph.initializer[0])
    return source


def cut_data(_: object, tensor: onnx.TensorProto) -> None:
    """Leave out the last half of the data, as of a file that was not loaded whole."""
    tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]


def drop_opset() -> onnx.ModelProto:
    source = image("y = Relu(x)")
    source.ClearField("opset_import")
    return source


NO_DATA = "the data of initializer w do not match its shape and type"
NO_SHAPE = "initializer w has an invalid shape or element type"
NO_TYPE = "input x has an unsupported element type"


# What no text can state.
ODD = [
    (
        UnsupportedOperatorError,
        edit(lambda graph, _: setattr(graph.input[0].type.tensor_type, "elem_type", 77)),
        NO_TYPE,
    ),
    (InconsistentModelError, edit(lambda _, w: w.dims.__setitem__(0, 10**12)), NO_DATA),
    (InconsistentModelError, edit(cut_data), NO_DATA),
    (InconsistentModelError, edit(lambda _, w: w.dims.__setitem__(0, -8)), NO_SHAPE),
    (InconsistentModelError, edit(lambda _, w: setattr(w, "data_type", 77)), NO_SHAPE),
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
    (UnrecognisedModelError, drop_opset(), "does not name a version of the ONNX operators"),
    (
        UnrecognisedModelError,
        edit(lambda graph, _: graph.ClearField("node")),
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
    message = r"gone\.onnx: is not a file and not a built-in network"
    with pytest.raises(UnrecognisedModelError, match=message):
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
