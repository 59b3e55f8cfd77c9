"""The model of a sweep: what is accepted, what it becomes, and how outputs are compared."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ipu_results import networks
from ipu_results.errors import RunnerError
from ipu_results.networks.builder import BatchNorm, GraphBuilder, WeightGenerator
from ipu_results.runner import models
from ipu_results.runner.reference import CHUNK, agreement, reference
from onnx import TensorProto, helper, numpy_helper

SIDE, CLASSES = 16, 10


def network(batch: int | None = None, seed: int = 0) -> onnx.ModelProto:
    """A ResNeXt in small: a stem, a grouped convolution with a shortcut, batch-norms, a pool and a dense layer."""
    graph = GraphBuilder(WeightGenerator(seed), batch=batch)
    x = graph.add_input("image", (3, SIDE, SIDE))
    x = graph.add_node("Relu", "stem.relu", graph.add_convolution("stem", x, (3, 16), 3, stride=2, norm=BatchNorm()))
    y = graph.add_node("Relu", "body.relu", graph.add_convolution("body", x, (16, 16), 3, groups=4, norm=BatchNorm()))
    x = graph.add_node("Add", "add", graph.add_convolution("expand", y, (16, 16), norm=BatchNorm(scale=0.5)), x)
    x = graph.add_node("Flatten", "flatten", graph.add_node("GlobalAveragePool", "pool", x))
    return graph.build_model("tiny", graph.add_dense("classes", x, (16, CLASSES)), (CLASSES,))


def images(count: int, seed: int = 0) -> np.ndarray:
    """Random images of random contrast, so that their outputs differ."""
    random = np.random.default_rng(seed)
    colours = random.normal(size=(count, 3, 1, 1))
    return (colours + random.normal(size=(count, 3, SIDE, SIDE))).astype(np.float32)


def stored(model: onnx.ModelProto, folder: Path, name: str = "tiny.onnx") -> str:
    (folder / "user").mkdir(exist_ok=True)
    path = folder / "user" / name
    onnx.save(model, path)
    return str(path)


def parsed(signature: str, body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> odd {signature} {{ {body} }}')


def test_a_file_is_run_as_it_is(tmp_path: Path) -> None:
    source = stored(network(), tmp_path)
    found = models.prepare(source, None, tmp_path)
    digest = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    assert (found.sha256, found.source_sha256, found.weights) == (digest,) * 3
    assert found.path.read_bytes() == Path(source).read_bytes()
    assert (found.name, found.precision, found.input_name) == ("tiny", "fp32", "image")
    assert (found.channels, found.height, found.width, found.outputs) == (3, SIDE, SIDE, CLASSES)


def test_bf16_leaves_the_file(tmp_path: Path) -> None:
    source = stored(network(), tmp_path)
    assert models.prepare(source, "bf16", tmp_path) == models.prepare(source, "fp32", tmp_path)


def test_a_built_in_network_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    found = models.prepare("efficientnet-b0", None, tmp_path)
    again = hashlib.sha256(networks.build("efficientnet-b0", weights=True).SerializeToString()).hexdigest()
    assert (found.sha256, found.source_sha256) == (again, again)
    assert (found.weights, found.name, found.outputs) == ("random-he-seed0", "efficientnet-b0", 1000)
    model = onnx.load(found.path)
    assert any(node.op_type == "BatchNormalization" for node in model.graph.node)
    assert (model.opset_import[0].version, model.ir_version) == (11, 6)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_a_built_in_network_in_fp16_names_its_source(tmp_path: Path) -> None:
    plain, half = (models.prepare("efficientnet-b0", one, tmp_path) for one in (None, "fp16"))
    assert half.source_sha256 == plain.sha256 != half.sha256
    assert (half.weights, half.precision, half.outputs) == ("random-he-seed0", "fp16", 1000)


def test_fp16_converts_weights_inputs_and_outputs(tmp_path: Path) -> None:
    source = stored(network(), tmp_path)
    plain, half = (models.prepare(source, one, tmp_path) for one in (None, "fp16"))
    model = onnx.load(half.path)
    assert {one.data_type for one in model.graph.initializer} == {TensorProto.FLOAT16}
    ends = [*model.graph.input, *model.graph.output]
    assert {one.type.tensor_type.elem_type for one in ends} == {TensorProto.FLOAT16}
    assert not any(node.op_type == "Cast" for node in model.graph.node)
    assert (half.source_sha256, half.weights) == (plain.sha256, plain.sha256)
    x = images(6)
    cosine, top1 = agreement(reference(half.path, x.astype(np.float16)), reference(plain.path, x))
    assert cosine is not None
    assert 0.9999 < cosine < 1
    assert top1 == 1


def test_int8_quantises_the_convolutions_and_agrees(tmp_path: Path) -> None:
    source = stored(network(), tmp_path)
    plain = models.prepare(source, None, tmp_path)
    small = models.prepare(source, "int8", tmp_path, images(32, seed=1))
    model = onnx.load(small.path)
    kinds = [node.op_type for node in model.graph.node]
    assert (kinds.count("Conv"), kinds.count("BatchNormalization")) == (3, 0)
    weights = [numpy_helper.to_array(one) for one in model.graph.initializer if one.data_type == TensorProto.INT8]
    largest = max(int(np.abs(one.astype(int)).max()) for one in weights if one.ndim == 4)
    assert 60 <= largest <= 64  # seven bits
    cosine, top1 = agreement(reference(small.path, images(20)), reference(plain.path, images(20)))
    assert cosine is not None
    assert 0.99 < cosine < 1
    assert top1 >= 0.9
    assert not list(tmp_path.glob("*folded*"))


def test_int8_gives_the_same_bytes_for_the_same_images_and_others_for_others(tmp_path: Path) -> None:
    source = stored(network(), tmp_path)
    first, again, other = (models.prepare(source, "int8", tmp_path, images(4, seed)).sha256 for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("calibration", [None, images(0)])
def test_int8_wants_images(tmp_path: Path, calibration: np.ndarray | None) -> None:
    with pytest.raises(RunnerError, match="wants images to calibrate int8 with"):
        models.prepare(stored(network(), tmp_path), "int8", tmp_path, calibration)


def test_a_quantised_file_stays_what_it_is(tmp_path: Path) -> None:
    made = models.prepare(stored(network(), tmp_path), "int8", tmp_path, images(4))
    again = models.prepare(str(made.path), None, tmp_path)
    assert (again.precision, again.sha256, again.weights) == ("int8", made.sha256, made.sha256)
    with pytest.raises(RunnerError, match="is int8 already and cannot be made fp16"):
        models.prepare(str(made.path), "fp16", tmp_path)


def test_a_static_batch_that_nothing_depends_on_becomes_symbolic(tmp_path: Path) -> None:
    free = models.prepare(stored(network(), tmp_path), None, tmp_path)
    fixed = models.prepare(stored(network(batch=4), tmp_path, "fixed.onnx"), None, tmp_path)
    assert fixed.sha256 != fixed.weights == fixed.source_sha256
    assert np.array_equal(reference(fixed.path, images(3)), reference(free.path, images(3)))


def test_external_data_are_folded_in_and_hashed(tmp_path: Path) -> None:
    inside = models.prepare(stored(network(), tmp_path), None, tmp_path)
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "big.onnx"
    external = {"save_as_external_data": True, "location": "big.weights", "size_threshold": 0}
    onnx.save(network(), path, **external)
    found = models.prepare(str(path), None, tmp_path)
    assert not any(one.external_data for one in onnx.load(found.path, load_external_data=False).graph.initializer)
    assert np.array_equal(reference(found.path, images(2)), reference(inside.path, images(2)))
    both = path.read_bytes() + path.with_name("big.weights").read_bytes()
    assert found.weights == found.source_sha256 == hashlib.sha256(both).hexdigest()
    path.with_name("big.weights").unlink()
    with pytest.raises(RunnerError, match=r"big\.onnx: cannot be read as an ONNX model"):
        models.prepare(str(path), None, tmp_path)


POOL = "g = GlobalAveragePool(x) y = Flatten(g)"
REFUSED = {
    "two inputs": ("(float[N,3,8,8] x, float[N,3,8,8] z) => (float[N,3] y)", POOL, r"has 2 inputs \('x', 'z'\)"),
    "one channel": ("(float[N,1,8,8] x) => (float[N,1] y)", POOL, r"input 'x' is float \(N, 1, 8, 8\): wanted one"),
    "float64": ("(double[N,3,8,8] x) => (double[N,3] y)", POOL, r"input 'x' is double \(N, 3, 8, 8\): wanted one"),
    "3-D": ("(float[3,8,8] x) => (float[3,8] y)", "y = ReduceMean<axes=[2], keepdims=0>(x)", r"is float \(3, 8, 8\)"),
    "free height": ("(float[N,3,H,8] x) => (float[N,3] y)", POOL, r"input 'x' is float \(N, 3, H, 8\): wanted one"),
    "no height": ("(float[N,3,?,8] x) => (float[N,3] y)", POOL, r"input 'x' is float \(N, 3, \?, 8\): wanted one"),
    "no input": ("() => (float[2] y)", "y = Constant<value = float[2] {1, 2}>()", r"has 0 inputs \(none\)"),
    "two outputs": ("(float[N,3,8,8] x) => (float[N,3] y, float[N,3,1,1] g)", POOL, "has 2 outputs: wanted one"),
    "4-D output": (
        "(float[N,3,8,8] x) => (float[N,3,1,1] y)", "y = GlobalAveragePool(x)",
        r"output is of shape \(2, 3, 1, 1\) for two images: wanted one of shape \(batch, classes\)",
    ),
    "built-in batch": (
        "(float[4,3,8,8] x) => (float[4,3] y)",
        "g = GlobalAveragePool(x) s = Constant<value_ints = [4, 3]>() y = Reshape(g, s)",
        "does not run for a batch of two images: .*Reshape",
    ),
    "flattened batch": (
        "(float[1,3,8,8] x) => (float[1,3] y)",
        "g = GlobalAveragePool(x) s = Constant<value_ints = [1, -1]>() y = Reshape(g, s)",
        r"output is of shape \(1, 6\) for two images",
    ),
    "unknown operator": ("(float[N,3,8,8] x) => (float[N,3] y)", "y = Guess(x)", "does not run for a batch of two"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path: Path, case: str) -> None:
    signature, body, message = REFUSED[case]
    source = stored(parsed(signature, body), tmp_path, "odd.onnx")
    with pytest.raises(RunnerError, match=message) as caught:
        models.prepare(source, None, tmp_path)
    assert caught.value.document == source
    assert "\n" not in str(caught.value)


def test_no_model_at_all(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no protobuf\n")
    with pytest.raises(RunnerError, match=r"text\.onnx: cannot be read as an ONNX model"):
        models.prepare(str(tmp_path / "text.onnx"), None, tmp_path)
    with pytest.raises(RunnerError, match="resnet51: is no file and no built-in network: resnext101-32x4d, "):
        models.prepare("resnet51", None, tmp_path)
    with pytest.raises(RunnerError, match="bert-base: takes tokens, not images"):
        models.prepare("bert-base", None, tmp_path)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_static_fixes_the_batch_and_nothing_else(tmp_path: Path, precision: str) -> None:
    prepared = models.prepare(stored(network(), tmp_path), precision, tmp_path)
    path = models.static(prepared, 4, tmp_path)
    model = onnx.load(path)
    ends = [*model.graph.input, *model.graph.output]
    assert [one.type.tensor_type.shape.dim[0].dim_value for one in ends] == [4, 4]
    onnx.checker.check_model(model, full_check=True)
    x = images(4).astype(np.float32 if precision == "fp32" else np.float16)
    assert np.array_equal(reference(path, x), reference(prepared.path, x))


def test_reference_is_the_same_in_parts(tmp_path: Path) -> None:
    prepared = models.prepare(stored(network(), tmp_path), None, tmp_path)
    x = images(2 * CHUNK + 1)
    whole = reference(prepared.path, x)
    assert (whole.shape, whole.dtype) == ((len(x), CLASSES), np.float32)
    single = np.concatenate([reference(prepared.path, x[i : i + 1]) for i in range(len(x))])
    assert np.allclose(whole, single, rtol=1e-5, atol=1e-6)


def test_agreement_by_hand() -> None:
    wanted = np.array([[3.0, 4.0], [1.0, 0.0]])
    assert agreement(np.array([[4.0, 3.0], [2.0, 0.0]]), wanted) == (pytest.approx(24 / 25), 0.5)
    assert agreement(-wanted, wanted) == (pytest.approx(-1), 0.0)
    assert agreement(wanted, wanted) == (pytest.approx(1), 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_output_that_is_no_number_agrees_with_nothing(bad: float) -> None:
    wanted = np.array([[3.0, 4.0], [1.0, 0.0]])
    found = wanted.copy()
    found[0, 1] = bad
    assert agreement(found, wanted) == (None, 0.5)
    assert agreement(wanted, found) == (None, 0.5)


def test_no_cosine_without_a_direction() -> None:
    wanted = np.ones((2, 3))
    assert agreement(np.zeros((2, 3)), wanted) == (None, 1.0)
    assert agreement(np.ones((2, 4)), wanted) == (None, 0.0)
    assert agreement(np.ones((0, 3)), np.ones((0, 3))) == (None, 0.0)


OUTPUTS = arrays.arrays(np.float32, (3, 4), elements=st.floats(width=32))


@given(OUTPUTS, OUTPUTS)
def test_agreement_never_raises_and_is_in_range(found: np.ndarray, wanted: np.ndarray) -> None:
    cosine, top1 = agreement(found, wanted)
    assert cosine is None or -1 <= cosine <= 1
    assert top1 in (0, 1 / 3, 2 / 3, 1)
    assert (cosine is None) >= (not (np.isfinite(found).all() and np.isfinite(wanted).all()))


@given(arrays.arrays(np.float64, (3, 4), elements=st.floats(0.5, 2)), st.floats(1e-20, 1e20))
def test_agreement_does_not_depend_on_scale(wanted: np.ndarray, scale: float) -> None:
    assert agreement(wanted * scale, wanted)[0] == pytest.approx(1)


def test_a_network_of_another_file_is_another(tmp_path: Path) -> None:
    one, two = (models.prepare(stored(network(seed=s), tmp_path), None, tmp_path) for s in (0, 1))
    assert one.sha256 != two.sha256


def test_a_model_without_weights_is_fp32() -> None:
    graph = helper.make_graph([], "none", [], [])
    assert models._precision(helper.make_model(graph)) == "fp32"
