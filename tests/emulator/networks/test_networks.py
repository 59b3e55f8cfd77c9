"""The built-in networks against published counts, and their weights in onnxruntime."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.networks import NAMES, build
from ipu_results.emulator.target import DEFAULT_NETWORK
from ipu_results.errors import UnrecognisedModelError
from onnx import TensorProto, numpy_helper

from tests.emulator.model_support import count_parameters

Array = npt.NDArray[np.float32]

STEM = "a6151eedafa2e3dc1c39723d4a0915a441596fd80d64f47a370d9c5bf6887900"  # sha256


def load_weights(model: onnx.ModelProto) -> dict[str, Array]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def run(model: onnx.ModelProto, images: Array) -> list[Array]:
    """Return all outputs, in the order of the graph."""
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=providers)
    outputs: list[Array] = session.run(None, {"image": images})
    return outputs


def draw_images(count: int) -> Array:
    """Draw pixels as they are after normalisation: mean 0, variance 1."""
    random = np.random.default_rng(7)
    return random.standard_normal((count, 3, 224, 224), np.float32)


def round_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy with every weight rounded to fp16."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return copy


@pytest.mark.parametrize(
    ("name", "parameters", "convolutions", "megamacs"),
    [
        ("resnext101-32x4d", 44_177_704, 104, 7_970),
        ("resnext101-32x8d", 88_791_336, 104, 16_414),
        ("resnet50", 25_557_032, 53, 4_089),
        ("efficientnet-b0", 5_288_548, 81, 386),
        ("efficientnet-b4", 19_341_616, 160, 4_394),
        ("efficientnet-b7", 66_347_960, 273, 37_746),
        ("bert-base", 108_893_186, 0, 11_174),
        ("bert-large", 334_094_338, 0, 39_460),
    ],
)
def test_counts_are_the_published_ones(
    name: str, parameters: int, convolutions: int, megamacs: int
) -> None:
    model = build(name)
    program = read_program(model, 1)
    assert count_parameters(model) == parameters
    kinds = [operator.kind for operator in program.operators]
    assert kinds.count("convolution") == convolutions
    assert round(program.macs / 1e6) == megamacs


@pytest.mark.parametrize("name", NAMES)
def test_graph_by_shapes_alone_is_valid_and_small_with_unique_names(name: str) -> None:
    model = build(name)
    assert model.ByteSize() < 1e6
    onnx.checker.check_model(model, full_check=True)
    graph = model.graph
    tensors = [value.name for value in (*graph.input, *graph.initializer)]
    tensors += [output for node in graph.node for output in node.output]
    assert len(tensors) == len(set(tensors))
    assert [node.name for node in graph.node] == [node.output[0] for node in graph.node]


def test_seeded_weights_are_the_same_bytes_on_every_machine() -> None:
    """PCG64's raw draws are fixed by numpy's policy; a change here changes every recorded hash of a
    model.
    """
    first = build("efficientnet-b0", weights=True)
    assert first == build("efficientnet-b0", weights=True)
    stem = load_weights(first)["stem.weight"]
    assert hashlib.sha256(stem.astype("<f4").tobytes()).hexdigest() == STEM


@pytest.mark.slow
def test_weights_are_he_scaled_and_fill_every_parameter() -> None:
    drawn = build("resnet50", weights=True)
    bare = build("resnet50")
    assert not bare.graph.initializer
    assert count_parameters(drawn) == 25_557_032
    weights = load_weights(drawn)
    names = {value.name for value in bare.graph.input}
    assert weights.keys() == names - {"image"}
    kernel = weights["stage3.1.conv.weight"]
    assert kernel.std() == pytest.approx(np.sqrt(2 / (256 * 9)), rel=1e-2)
    assert abs(kernel.mean()) < 1e-3
    assert read_program(bare, 2) == read_program(drawn, 2)


@pytest.mark.slow
def test_every_activation_of_resnext_is_within_fp16() -> None:
    model = onnx.shape_inference.infer_shapes(build(DEFAULT_NETWORK, weights=True))
    model.graph.output.extend(model.graph.value_info)
    largest = [float(np.abs(values).max()) for values in run(model, draw_images(1))]
    assert min(largest) > 1e-3
    assert max(largest) < 1e3


@pytest.mark.slow
def test_network_runs_in_fp32_with_fp16_weights_and_folded() -> None:
    plain = build("resnet50", weights=True)
    onnx.checker.check_model(plain)
    images = draw_images(2)
    (full,) = run(plain, images)
    (rounded,) = run(round_weights(plain), images)
    (merged,) = run(build("resnet50-folded", weights=True), images)
    assert full.shape == (2, 1000)
    assert full.std() > 0.1
    assert np.abs(full - rounded).max() < 0.1 * full.std()
    np.testing.assert_allclose(full, merged, rtol=2e-3, atol=2e-3)


def test_folded_network_has_no_norm() -> None:
    kinds = {node.op_type for node in build("resnet50-folded").graph.node}
    assert "BatchNormalization" not in kinds


def test_popart_accepts_the_versions_of_the_image_networks() -> None:
    for name in NAMES[:6]:
        model = build(name)
        assert (model.ir_version, [opset.version for opset in model.opset_import]) == (6, [11])


def test_unknown_name_or_sequence_is_refused() -> None:
    message = "^resnet-50: is not a built-in network: choose one of resnext101-32x4d, .*split$"
    with pytest.raises(UnrecognisedModelError, match=message):
        build("resnet-50")
    for sequence in (0, 513):
        message = f"^bert-base: a sequence has 1 to 512 tokens, not {sequence}$"
        with pytest.raises(UnrecognisedModelError, match=message):
            build("bert-base", sequence=sequence)
