"""The built-in networks against published counts, and their weights in onnxruntime."""

from __future__ import annotations

import hashlib
import time
import tracemalloc

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.operators import Convolution, Elementwise, Gemm, GlobalPool, Pool
from ipu_results.errors import UnrecognisedModelError
from ipu_results.networks import DEFAULT, NAMES, build, parameters
from onnx import TensorProto, numpy_helper

Array = npt.NDArray[np.float32]

STEM = "a6151eedafa2e3dc1c39723d4a0915a441596fd80d64f47a370d9c5bf6887900"  # sha256


def weights_of(model: onnx.ModelProto) -> dict[str, Array]:
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def runs(model: onnx.ModelProto, image: Array) -> list[Array]:
    """All outputs, in the order of the graph."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, {"image": image})
    return found


def photo(resolution: int, batch: int = 1) -> Array:
    """Pixels as they are after normalisation: mean 0, variance 1."""
    return np.random.default_rng(7).standard_normal((batch, 3, resolution, resolution)).astype(np.float32)


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every weight as near as fp16 gets."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half.astype(np.float32), tensor.name))
    return copy


@pytest.mark.parametrize(
    ("name", "expected", "convolutions", "megamacs"),
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
def test_counts_are_the_published_ones(name: str, expected: int, convolutions: int, megamacs: int) -> None:
    model = build(name)
    program = read_program(model, 1)
    assert parameters(model) == expected
    assert sum(isinstance(one, Convolution) for one in program.operators) == convolutions
    assert round(program.macs / 1e6) == megamacs


def test_every_network_is_counted() -> None:
    assert NAMES[0] == DEFAULT == "resnext101-32x4d"
    assert len(NAMES) == len(set(NAMES)) == 8


def test_resnext_parameters_by_hand() -> None:
    """The sum over stages, with two batch-norm values for each channel, written out apart from the builder."""
    total, channels = 3 * 64 * 49 + 2 * 64, 64
    for stage, blocks in enumerate((3, 4, 23, 3)):
        inside, outside = 128 * 2**stage, 256 * 2**stage
        for block in range(blocks):
            total += channels * inside + 2 * inside + inside * (inside // 32) * 9 + 2 * inside
            total += inside * outside + 2 * outside
            total += channels * outside + 2 * outside if block == 0 else 0
            channels = outside
    assert total + 2048 * 1000 + 1000 == parameters(build("resnext101-32x4d"))


@pytest.mark.parametrize(("name", "layers", "hidden"), [("bert-base", 12, 768), ("bert-large", 24, 1024)])
@pytest.mark.parametrize("sequence", [128, 384])
def test_bert_products_by_hand(name: str, layers: int, hidden: int, sequence: int) -> None:
    program = read_program(build(name, sequence=sequence), 3)
    dense = 3 * sequence * layers * 12 * hidden**2 + 3 * sequence * hidden * 2
    assert program.macs == dense + 3 * layers * 2 * sequence**2 * hidden
    assert [one.bytes for one in program.inputs] == [3 * sequence * 8, 3 * sequence * 8, 3 * sequence * 4]


def test_the_first_layers_of_resnext() -> None:
    operators = read_program(build(DEFAULT), 4).operators
    one_by_one = {"in_height": 56, "in_width": 56, "kernel_height": 1, "kernel_width": 1}
    pads = {"pad_top": 1, "pad_left": 1, "pad_bottom": 1, "pad_right": 1}
    stem_pads = dict.fromkeys(pads, 3)
    pixels = 4 * 56 * 56
    assert list(operators[:15]) == [
        Convolution("stem", 4, 1, 3, 64, 224, 224, 7, 7, 2, 2, **stem_pads),
        Elementwise("stem.norm", "batchnorm", 4 * 64 * 112 * 112),
        Elementwise("stem.relu", "relu", 4 * 64 * 112 * 112),
        Pool("stem.pool", "max", 4, 64, 56, 56, 3, 3, 2, 2),
        Convolution("stage1.0.reduce", 4, 1, 64, 128, **one_by_one),
        Elementwise("stage1.0.reduce.norm", "batchnorm", 128 * pixels),
        Elementwise("stage1.0.reduce.relu", "relu", 128 * pixels),
        Convolution("stage1.0.conv", 4, 32, 4, 4, 56, 56, 3, 3, **pads),
        Elementwise("stage1.0.conv.norm", "batchnorm", 128 * pixels),
        Elementwise("stage1.0.conv.relu", "relu", 128 * pixels),
        Convolution("stage1.0.expand", 4, 1, 128, 256, **one_by_one),
        Elementwise("stage1.0.expand.norm", "batchnorm", 256 * pixels),
        Convolution("stage1.0.project", 4, 1, 64, 256, **one_by_one),
        Elementwise("stage1.0.project.norm", "batchnorm", 256 * pixels),
        Elementwise("stage1.0.add", "add", 256 * pixels),
    ]
    assert list(operators[-2:]) == [
        GlobalPool("pool", "average", 4, 2048, 7, 7),
        Gemm("classes", 1, 4, 2048, 1000, constant=True, bias=True),
    ]


def test_the_stride_of_resnet50_is_in_the_3x3() -> None:
    strided = [
        one.name
        for one in read_program(build("resnet50"), 1).operators
        if isinstance(one, Convolution) and one.stride_h == 2
    ]
    assert strided == ["stem"] + [f"stage{stage}.0.{part}" for stage in (2, 3, 4) for part in ("conv", "project")]


@pytest.mark.parametrize("name", ["efficientnet-b0", "efficientnet-b4", "efficientnet-b7"])
def test_efficientnet_depthwise_kernels(name: str) -> None:
    program = read_program(build(name), 1)
    convolutions = [one for one in program.operators if isinstance(one, Convolution)]
    depthwise = [one for one in convolutions if one.groups > 1]
    assert all(one.in_channels_per_group == one.out_channels_per_group == 1 for one in depthwise)
    assert {one.kernel_height for one in depthwise} == {3, 5}
    gates = [one for one in program.operators if isinstance(one, GlobalPool)]
    assert len(gates) == len(depthwise) + 1
    assert convolutions[-1].out_height == -(-program.inputs[0].shape[2] // 32)
    kinds = [one.kind for one in program.operators if isinstance(one, Elementwise)]
    assert kinds.count("sigmoid") == len(depthwise)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_by_shape_alone_are_sound_small_and_quick(name: str) -> None:
    build(name)
    tracemalloc.start()
    started = time.process_time()
    model = build(name)
    taken, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 0.3
    assert peak < 4e6
    assert model.ByteSize() < 1e6
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_unique(name: str) -> None:
    graph = build(name).graph
    tensors = [one.name for one in [*graph.input, *graph.initializer]] + [
        out for one in graph.node for out in one.output
    ]
    assert len(tensors) == len(set(tensors))
    assert [one.name for one in graph.node] == [one.output[0] for one in graph.node]
    names = [one.name for one in read_program(build(name), 1).operators]
    assert len(names) == len(set(names))


def test_equal_arguments_give_equal_bytes() -> None:
    first, again, other = (build("efficientnet-b0", weights=seed, batch=2) for seed in (3, 3, 4))
    assert first.SerializeToString() == again.SerializeToString()
    assert first.SerializeToString() != other.SerializeToString()


def test_seed_zero_is_a_seed() -> None:
    assert build("efficientnet-b0", weights=True) == build("efficientnet-b0", weights=0)
    assert not build("efficientnet-b0", weights=False).graph.initializer


def test_the_bytes_are_those_of_every_machine() -> None:
    """PCG64's raw draws are fixed by numpy's policy; a change here changes every recorded hash of a model."""
    stem = weights_of(build("efficientnet-b0", weights=True))["stem.weight"]
    assert hashlib.sha256(stem.astype("<f4").tobytes()).hexdigest() == STEM


def test_weights_are_he_scaled_and_cover_every_parameter() -> None:
    drawn, bare = build("resnet50", weights=True), build("resnet50")
    shapes = {name: one.shape for name, one in weights_of(drawn).items()}
    known = {one.name: tuple(axis.dim_value for axis in one.type.tensor_type.shape.dim) for one in bare.graph.input}
    assert shapes == {name: shape for name, shape in known.items() if name != "image"}
    assert parameters(drawn) == parameters(bare) == 25_557_032
    kernel = weights_of(drawn)["stage3.1.conv.weight"]
    assert kernel.std() == pytest.approx(np.sqrt(2 / (256 * 9)), rel=1e-2)
    assert abs(kernel.mean()) < 1e-3


def test_operators_do_not_depend_on_weights() -> None:
    assert read_program(build("resnet50"), 2) == read_program(build("resnet50", weights=True), 2)


def test_every_activation_of_resnext_stays_within_fp16() -> None:
    model = build(DEFAULT, weights=True, batch=1)
    model = onnx.shape_inference.infer_shapes(model)
    model.graph.output.extend(model.graph.value_info)
    largest = [float(np.abs(one).max()) for one in runs(model, photo(224))]
    assert min(largest) > 1e-3
    assert max(largest) < 1e3


@pytest.mark.parametrize(("name", "resolution"), [("resnet50", 224), ("efficientnet-b0", 224)])
def test_a_network_runs_in_fp32_and_with_fp16_weights(name: str, resolution: int) -> None:
    model = build(name, weights=True)
    onnx.checker.check_model(model)
    image = photo(resolution, batch=2)
    (full,), (half,) = runs(model, image), runs(rounded(model), image)
    assert full.shape == (2, 1000)
    assert np.isfinite(full).all()
    assert full.std() > 0.1
    assert np.abs(full - half).max() < 0.1 * full.std()


@pytest.mark.parametrize("name", ["resnet50", "efficientnet-b0"])
def test_a_folded_network_computes_the_same(name: str) -> None:
    plain, folded = (build(name, weights=5, folded=one) for one in (False, True))
    image = photo(224)
    np.testing.assert_allclose(runs(plain, image)[0], runs(folded, image)[0], rtol=2e-3, atol=2e-3)
    norms = [
        one for one in read_program(folded, 1).operators if isinstance(one, Elementwise) and one.kind == "batchnorm"
    ]
    assert norms == []
    kept = [one for one in read_program(folded, 1).operators if isinstance(one, Convolution)]
    assert all(one.bias for one in kept)


def test_bert_runs() -> None:
    model = build("bert-base", weights=True, sequence=16)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    words = np.random.default_rng(7).integers(0, 30522, (2, 16))
    mask = np.zeros((2, 1, 1, 16), dtype=np.float32)
    (found,) = session.run(None, {"tokens": words, "types": np.zeros_like(words), "mask": mask})
    assert found.shape == (2, 16, 2)
    assert np.isfinite(found).all()
    assert found.std() > 0.1


@pytest.mark.parametrize("batch", [None, 3])
def test_the_batch_is_a_symbol_or_a_number(batch: int | None) -> None:
    axis = build(DEFAULT, batch=batch).graph.input[0].type.tensor_type.shape.dim[0]
    assert (axis.dim_param, axis.dim_value) == (("batch", 0) if batch is None else ("", 3))


def test_popart_takes_the_image_networks() -> None:
    for name in NAMES[:6]:
        model = build(name)
        assert (model.ir_version, [one.version for one in model.opset_import]) == (6, [11])


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(
        UnrecognisedModelError, match=r"^resnet-50: is no built-in network: one of resnext101-32x4d, .*large$"
    ):
        build("resnet-50")


@pytest.mark.parametrize("sequence", [0, 513])
def test_a_sequence_that_bert_has_no_positions_for(sequence: int) -> None:
    with pytest.raises(UnrecognisedModelError, match=f"^bert-base: a sequence is 1 to 512 tokens, not {sequence}$"):
        build("bert-base", sequence=sequence)
