"""`Emulator`: outputs by onnxruntime in fp16, time by the model, every result marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from ipu_results.emulator import cache
from ipu_results.emulator.calibration import frozen
from ipu_results.emulator.emulator import Emulator
from ipu_results.emulator.halves import in_halves
from ipu_results.emulator.network import network
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.target import load_target
from ipu_results.errors import InconsistentModelError, ModelError, UnrecognisedModelError, UnsupportedOperatorError
from ipu_results.networks import build
from model_support import model as written
from onnx import numpy_helper

Array = npt.NDArray[np.float32]

BODY = """
c1 = Conv <pads = [1, 1, 1, 1]> (x, w1)
r1 = Relu (c1)
c2 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (r1, w2)
r2 = Relu (c2)
g = GlobalAveragePool (r2)
f = Flatten (g)
y = Gemm <transB = 1> (f, w3)
"""
WEIGHTS = {"w1": (16, 4, 3, 3), "w2": (32, 16, 3, 3), "w3": (10, 32)}


@pytest.fixture(autouse=True)
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "plans"))


def tiny(batch: str = "N", body: str = BODY) -> onnx.ModelProto:
    """Two convolutions and a classifier with seeded weights."""
    model = written(f"(float[{batch},4,8,8] x) => (float[{batch},10] y)", body)
    draw = np.random.default_rng(3)
    for name, shape in WEIGHTS.items():
        sigma = np.sqrt(2 / np.prod(shape[1:]))
        model.graph.initializer.append(
            numpy_helper.from_array((draw.standard_normal(shape) * sigma).astype(np.float32), name)
        )
    return model


def images(batch: int, shape: tuple[int, ...] = (4, 8, 8)) -> Array:
    return np.random.default_rng(5).standard_normal((batch, *shape)).astype(np.float32)


def in_floats(model: onnx.ModelProto, x: Array) -> Array:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: Array = session.run(None, {session.get_inputs()[0].name: x})[0]
    return found


def cosine(one: Array, other: Array) -> float:
    return float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))


def test_outputs_are_near_those_in_floats_but_rounded() -> None:
    x = images(4)
    outputs, timing = Emulator("c2").compile(tiny(), 4).run(x)
    want = in_floats(tiny(), x)
    assert outputs["y"].shape == want.shape == (4, 10)
    assert cosine(outputs["y"], want) > 0.999
    assert not np.array_equal(outputs["y"], want)
    assert np.array_equal(outputs["y"], outputs["y"].astype(np.float16).astype(np.float32))
    assert timing.batch_size == 4


def test_every_result_is_marked() -> None:
    found = Emulator("m2000").compile(tiny(), 8).run(images(8))
    assert (found.origin, found.calibration_id) == ("emulated", frozen().id)
    assert (found.timing.origin, found.timing.calibration_id) == ("emulated", frozen().id)


def test_the_time_is_the_prediction() -> None:
    compiled = Emulator("m2000", "lowest-latency").compile(tiny(), 8)
    assert [compiled.timing] == predict(network(tiny()), load_target("m2000"), [8], "lowest-latency")


def test_every_result_between_goes_through_halves() -> None:
    model = in_halves(tiny())
    named = [name for node in model.graph.node for name in node.output if "/" not in name]
    assert named == ["c1", "r1", "c2", "r2", "g", "f", "y"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in named[:-1])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for values in session.run(None, {"x": images(2)}):
        assert np.array_equal(values, values.astype(np.float16).astype(np.float32))


def test_by_hand() -> None:
    """1/3 in fp16 is 1365/4096; its product with 3 rounds back to 1 only when it was not rounded before."""
    model = written("(float[N,1] x) => (float[N,1] y)", "h = Mul (x, third) y = Sub (h, third)")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1 / 3], dtype=np.float32), "third"))
    outputs, _ = Emulator("c2").compile(model, 2).run(np.array([[1.0], [2048.5]], dtype=np.float32))
    third = np.float16(1365 / 4096)
    wide = np.float16(np.float32(np.float16(2048.5)) * np.float32(third))
    assert outputs["y"].tolist() == [[0.0], [float(np.float16(np.float32(wide) - np.float32(third)))]]


def test_beyond_the_range_of_halves_is_infinite() -> None:
    model = written("(float[N,1] x) => (float[N,1] y)", "y = Mul (x, x)")
    outputs, _ = Emulator("c2").compile(model, 2).run(np.array([[300.0], [3.0]], dtype=np.float32))
    assert outputs["y"].tolist() == [[np.inf], [9.0]]


def test_a_batch_is_dealt_to_the_chips() -> None:
    """A model that is fixed at the batch of one chip runs on four of them, each image as it would alone."""
    x = images(8)
    fixed, _ = Emulator("m2000").compile(tiny("2"), 8).run(x)
    free, _ = Emulator("m2000").compile(tiny(), 8).run({"x": x})
    np.testing.assert_array_equal(fixed["y"], free["y"])


def test_a_file_with_its_data_outside(tmp_path: Path) -> None:
    path = tmp_path / "tiny.onnx"
    onnx.save(tiny(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").exists()
    x = images(2)
    outside, _ = Emulator("c2").compile(path, 2).run(x)
    inside, _ = Emulator("c2").compile(tiny(), 2).run(x)
    np.testing.assert_array_equal(outside["y"], inside["y"])


def test_a_built_in_network_by_name_has_seeded_weights() -> None:
    x = images(2, (3, 224, 224))
    found = Emulator("c2").compile("efficientnet-b0", 2).run(x)
    (name,) = found.outputs
    assert found.outputs[name].shape == (2, 1000)
    assert cosine(found.outputs[name], in_floats(build("efficientnet-b0", weights=True), x)) > 0.999


def test_a_network_by_shape_alone_is_timed_and_not_run() -> None:
    compiled = Emulator("c2").compile(build("resnet50"), 2)
    assert compiled.timing.latency_ms > 0
    with pytest.raises(
        InconsistentModelError, match=r"^resnet50: has no weights, .+ for one: it can be timed and not run$"
    ):
        compiled.run(images(2, (3, 224, 224)))


def test_the_callers_model_is_left_as_it_is() -> None:
    model = tiny()
    before = model.SerializeToString(deterministic=True)
    Emulator("c2").compile(model, 2).run(images(2))
    assert model.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (images(3), "input x must be 2 × 4 × 8 × 8, not 3 × 4 × 8 × 8"),
        ({"z": images(2)}, "takes the inputs x, not z"),
        ({}, "takes the inputs x, not none"),
        (np.float32(1), "input x must be 2 × 4 × 8 × 8, not a number"),
    ],
)
def test_wrong_inputs(x: Any, said: str) -> None:
    with pytest.raises(InconsistentModelError, match=said):
        Emulator("c2").compile(tiny(), 2).run(x)


def test_an_output_without_the_batch_cannot_be_put_together() -> None:
    model = written("(float[N,4] x) => (float[] y)", "y = ReduceMean <keepdims = 0> (x)")
    with pytest.raises(InconsistentModelError, match="output y does not begin with the batch"):
        Emulator("c2").compile(model, 4).run(images(4, (4,)))


@pytest.mark.parametrize(
    ("model", "batch", "error", "said"),
    [
        ("nothing", 2, UnrecognisedModelError, "nothing: is no file and no built-in network"),
        (tiny(), 3, InconsistentModelError, "batch 3 cannot be dealt evenly to the 2 chips of c2"),
        (tiny(body="y = NonZero (x)"), 2, UnsupportedOperatorError, "NonZero y: NonZero is not supported"),
    ],
)
def test_what_cannot_be_compiled(model: Any, batch: int, error: type[ModelError], said: str) -> None:
    with pytest.raises(error, match=said):
        Emulator("c2").compile(model, batch)


def test_unknown_machine() -> None:
    with pytest.raises(UnrecognisedModelError, match="is no target: one of c2, m2000, bow-2000"):
        Emulator("gc3")
