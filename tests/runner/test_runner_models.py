"""The model of a sweep: what is accepted, what it becomes, and how outputs are compared."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest
from ipu_results.emulator import networks
from ipu_results.errors import RunnerError
from ipu_results.runner.models import PreparedModel, fix_batch_size, prepare_model
from ipu_results.runner.workload import Agreement, compare_outputs, compute_reference
from onnx import TensorProto, numpy_helper

from tests.runner.runner_support import CLASSES, SIDE, build_tiny_model, draw_images, parse_model


def store(model: onnx.ModelProto, folder: Path, name: str = "tiny.onnx") -> str:
    (folder / "user").mkdir(exist_ok=True)
    path = folder / "user" / name
    onnx.save(model, path)
    return str(path)


def compare(model: PreparedModel, plain: PreparedModel, images: int) -> Agreement:
    """Compare the outputs of two models, the first of which may take fp16."""
    x = draw_images(images)
    own = x.astype(np.float16) if model.precision == "fp16" else x
    return compare_outputs(compute_reference(model.path, own), compute_reference(plain.path, x))


# --- preparing


def test_file_is_run_unchanged(tmp_path: Path) -> None:
    source = store(build_tiny_model(), tmp_path)
    model = prepare_model(source, None, tmp_path)
    digest = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    assert (model.sha256, model.source_sha256, model.weights) == (digest,) * 3
    assert model.path.read_bytes() == Path(source).read_bytes()
    assert (model.name, model.precision, model.input_name) == ("tiny", "fp32", "image")
    assert (model.channels, model.height, model.width, model.outputs) == (3, SIDE, SIDE, CLASSES)
    for precision in ("bf16", "fp32"):
        assert prepare_model(source, precision, tmp_path) == model


def test_built_in_network_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    plain = prepare_model("efficientnet-b0", None, tmp_path)
    built = networks.build("efficientnet-b0", weights=True)
    assert onnx.load(plain.path) == built
    again = hashlib.sha256(built.SerializeToString()).hexdigest()
    assert (plain.sha256, plain.source_sha256) == (again, again)
    assert (plain.name, plain.outputs) == ("efficientnet-b0", 1000)
    half = prepare_model("efficientnet-b0", "fp16", tmp_path)
    assert half.source_sha256 == plain.sha256 != half.sha256
    assert half.weights == plain.weights == "random-he-seed0"


def test_fp16_converts_weights_inputs_and_outputs(tmp_path: Path) -> None:
    source = store(build_tiny_model(), tmp_path)
    plain = prepare_model(source, None, tmp_path)
    half = prepare_model(source, "fp16", tmp_path)
    graph = onnx.load(half.path).graph
    assert {tensor.data_type for tensor in graph.initializer} == {TensorProto.FLOAT16}
    ends = [*graph.input, *graph.output]
    assert {value.type.tensor_type.elem_type for value in ends} == {TensorProto.FLOAT16}
    assert not any(node.op_type == "Cast" for node in graph.node)
    assert (half.source_sha256, half.weights) == (plain.sha256, plain.sha256)
    cosine, top1 = compare(half, plain, 6)
    assert 0.9999 < cosine < 1
    assert top1 == 1


def test_int8_quantises_the_convolutions_and_agrees(tmp_path: Path) -> None:
    source = store(build_tiny_model(), tmp_path)
    plain = prepare_model(source, None, tmp_path)
    small = prepare_model(source, "int8", tmp_path, draw_images(32, seed=1))
    graph = onnx.load(small.path).graph
    kinds = [node.op_type for node in graph.node]
    assert (kinds.count("Conv"), kinds.count("BatchNormalization")) == (3, 0)
    largest = 0
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.INT8 and len(tensor.dims) == 4:
            largest = max(largest, np.abs(numpy_helper.to_array(tensor)).max())
    assert 60 <= largest <= 64  # seven bits
    cosine, top1 = compare(small, plain, 20)
    assert 0.99 < cosine < 1
    assert top1 >= 0.9
    assert not list(tmp_path.glob("*folded*"))


def test_quantised_file_keeps_its_precision(tmp_path: Path) -> None:
    made = prepare_model(store(build_tiny_model(), tmp_path), "int8", tmp_path, draw_images(4))
    again = prepare_model(str(made.path), None, tmp_path)
    assert (again.precision, again.sha256, again.weights) == ("int8", made.sha256, made.sha256)
    with pytest.raises(RunnerError, match="is int8 already and cannot be converted to fp16"):
        prepare_model(str(made.path), "fp16", tmp_path)


def test_static_batch_becomes_symbolic(tmp_path: Path) -> None:
    free = prepare_model(store(build_tiny_model(), tmp_path), None, tmp_path)
    fixed = prepare_model(store(build_tiny_model(batch=4), tmp_path, "fixed.onnx"), None, tmp_path)
    assert fixed.sha256 != fixed.weights == fixed.source_sha256
    assert compare(fixed, free, 3) == (pytest.approx(1), 1)


def test_external_data_are_included_and_hashed(tmp_path: Path) -> None:
    inside = prepare_model(store(build_tiny_model(), tmp_path), None, tmp_path)
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "big.onnx"
    onnx.save(
        build_tiny_model(),
        path,
        save_as_external_data=True,
        location="big.weights",
        size_threshold=0,
    )
    model = prepare_model(str(path), None, tmp_path)
    tensors = onnx.load(model.path, load_external_data=False).graph.initializer
    assert not any(tensor.external_data for tensor in tensors)
    assert compare(model, inside, 2) == (pytest.approx(1), 1)
    both = path.read_bytes() + path.with_name("big.weights").read_bytes()
    assert model.weights == model.source_sha256 == hashlib.sha256(both).hexdigest()
    path.with_name("big.weights").unlink()
    with pytest.raises(RunnerError, match=r"big\.onnx: cannot be read as an ONNX model"):
        prepare_model(str(path), None, tmp_path)


TEXT = Path(__file__).with_name("refused_models.toml").read_text(encoding="utf-8")
REFUSED = tomllib.loads(TEXT)["refused"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["signature"])
def test_network_that_is_not_an_image_classifier_is_refused(
    tmp_path: Path, case: dict[str, str]
) -> None:
    model = parse_model(f"{case['signature']} {{ {case['body']} }}")
    source = store(model, tmp_path, "odd.onnx")
    with pytest.raises(RunnerError, match=f"^{source}: .*{re.escape(case['says'])}.*$"):
        prepare_model(source, None, tmp_path)


def test_source_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no protobuf\n")
    with pytest.raises(RunnerError, match=r"text\.onnx: cannot be read as an ONNX model"):
        prepare_model(str(tmp_path / "text.onnx"), None, tmp_path)
    message = "resnet51: is neither a file nor a built-in network: resnext101-32x4d, "
    with pytest.raises(RunnerError, match=message):
        prepare_model("resnet51", None, tmp_path)


def test_fixed_batch_changes_nothing_else(tmp_path: Path) -> None:
    prepared = prepare_model(store(build_tiny_model(), tmp_path), "fp16", tmp_path)
    path = fix_batch_size(prepared, 4, tmp_path)
    model = onnx.load(path)
    ends = [*model.graph.input, *model.graph.output]
    assert [value.type.tensor_type.shape.dim[0].dim_value for value in ends] == [4, 4]
    onnx.checker.check_model(model, full_check=True)
    x = draw_images(4).astype(np.float16)
    assert np.array_equal(compute_reference(path, x), compute_reference(prepared.path, x))


# --- comparing


REFERENCE = [[3, 4], [1, 0]]


@pytest.mark.parametrize(
    ("outputs", "reference", "agreement"),
    [
        ([[4, 3], [2, 0]], REFERENCE, (pytest.approx(24 / 25), 0.5)),
        ([[-3, -4], [-1, 0]], REFERENCE, (pytest.approx(-1), 0.0)),
        ([[3, np.nan], [1, 0]], REFERENCE, (None, 0.5)),
        (REFERENCE, [[3, np.inf], [1, 0]], (None, 0.5)),
        ([[0, 0, 0]], [[1, 1, 1]], (None, 1.0)),
        ([[1, 1, 1, 1]], [[1, 1, 1]], (None, 0.0)),
        (np.ones((0, 3)), np.ones((0, 3)), (None, 0.0)),
    ],
)
def test_agreement_by_hand(
    outputs: object, reference: object, agreement: tuple[object, float]
) -> None:
    assert compare_outputs(np.array(outputs, float), np.array(reference, float)) == agreement
