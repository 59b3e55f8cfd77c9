"""`Emulator`: outputs computed in fp16 by onnxruntime, time predicted, every result marked as
emulated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ipu_results.emulator
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from ipu_results.emulator import Emulator
from ipu_results.emulator.network import insert_fp16_casts, load_network
from ipu_results.emulator.networks import build
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.target import load_calibration, load_target
from ipu_results.errors import InconsistentModelError
from onnx import numpy_helper

from tests.emulator.model_support import model as parse_model

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


def tiny(batch: str = "N", body: str = BODY) -> onnx.ModelProto:
    """Build two convolutions and a classifier with seeded weights."""
    model = parse_model(f"(float[{batch},4,8,8] x) => (float[{batch},10] y)", body)
    draw = np.random.default_rng(3)
    for name, shape in WEIGHTS.items():
        values = draw.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    return model


def images(batch: int, shape: tuple[int, ...] = (4, 8, 8)) -> Array:
    return np.random.default_rng(5).standard_normal((batch, *shape)).astype(np.float32)


def run_session(model: onnx.ModelProto, x: Array) -> list[Array]:
    """Return all outputs, each computed as the graph states it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
    outputs: list[Array] = session.run(None, {model.graph.input[0].name: x})
    return outputs


def cosine(a: Array, b: Array) -> float:
    return float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))


def test_public_names_are_importable() -> None:
    assert all(getattr(ipu_results.emulator, name) for name in ipu_results.emulator.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Simulator'"):
        _ = ipu_results.emulator.Simulator


def test_outputs_are_those_of_fp32_rounded_to_fp16() -> None:
    x = images(4)
    model = tiny()
    outputs = Emulator("c2").compile(model, 4).run(x).outputs["y"]
    assert model == tiny(), "the model of the caller is not modified"
    (expected,) = run_session(model, x)
    assert outputs.shape == expected.shape == (4, 10)
    assert cosine(outputs, expected) > 0.999
    assert not np.array_equal(outputs, expected)
    assert np.array_equal(outputs, outputs.astype(np.float16))


def test_run_carries_the_prediction_and_is_marked_as_emulated() -> None:
    compiled = Emulator("m2000", "lowest-latency").compile(tiny(), 8)
    network = load_network(tiny())
    assert [compiled.timing] == predict(network, load_target("m2000"), [8], "lowest-latency")
    assert len(repr(compiled)) < 1500
    run = compiled.run(images(8))
    assert run.timing == compiled.timing
    assert (run.timing.origin, run.timing.calibration_id) == ("emulated", load_calibration().id)


def test_every_intermediate_result_is_rounded_to_fp16() -> None:
    model = insert_fp16_casts(tiny())
    names = [name for node in model.graph.node for name in node.output if "/" not in name]
    assert names == ["c1", "r1", "c2", "r2", "g", "f", "y"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names[:-1])
    for values in run_session(model, images(2)):
        assert np.array_equal(values, values.astype(np.float16))


def test_batch_is_shared_by_the_chips() -> None:
    """A model that is fixed at the batch of one chip runs on four of them, each image as it would
    alone.
    """
    x = images(8)
    fixed = Emulator("m2000").compile(tiny("2"), 8)
    free = Emulator("m2000").compile(tiny(), 8)
    outputs = fixed.run(x).outputs["y"]
    np.testing.assert_array_equal(outputs, free.run({"x": x}).outputs["y"])
    np.testing.assert_array_equal(outputs[2:4], fixed.run_chip(x[2:4])["y"])


def test_file_with_external_weights(tmp_path: Path) -> None:
    path = tmp_path / "tiny.onnx"
    onnx.save(tiny(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").exists()
    x = images(2)
    outside = Emulator("c2").compile(path, 2).run(x).outputs["y"]
    inside = Emulator("c2").compile(tiny(), 2).run(x).outputs["y"]
    np.testing.assert_array_equal(outside, inside)


@pytest.mark.slow
def test_built_in_network_has_seeded_weights() -> None:
    x = images(2, (3, 224, 224))
    (outputs,) = Emulator("c2").compile("efficientnet-b0", 2).run(x).outputs.values()
    (expected,) = run_session(build("efficientnet-b0", weights=True), x)
    assert outputs.shape == (2, 1000)
    assert cosine(outputs, expected) > 0.999


def test_network_without_weights_is_timed_but_not_run() -> None:
    compiled = Emulator("c2").compile(build("resnet50"), 2)
    assert compiled.timing.latency_ms > 0
    message = r"^resnet50: has no weights \(for example .+\): it can be timed but not run$"
    with pytest.raises(InconsistentModelError, match=message):
        compiled.run(images(2, (3, 224, 224)))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (images(3), r"input x must be \(2, 4, 8, 8\), not \(3, 4, 8, 8\)"),
        ({"z": images(2)}, "has the inputs x, not z"),
        ({}, "has the inputs x, not none"),
        (np.float32(1), r"input x must be \(2, 4, 8, 8\), not \(\)"),
    ],
)
def test_wrong_inputs_are_refused(x: Any, message: str) -> None:
    with pytest.raises(InconsistentModelError, match=message):
        Emulator("c2").compile(tiny(), 2).run(x)


def test_output_without_batch_dimension_is_refused() -> None:
    model = parse_model("(float[N,4] x) => (float[] y)", "y = ReduceMean <keepdims = 0> (x)")
    with pytest.raises(InconsistentModelError, match="output y does not begin with the batch"):
        Emulator("c2").compile(model, 4).run(images(4, (4,)))
