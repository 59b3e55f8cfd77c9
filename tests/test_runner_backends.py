"""The ONNX Runtime and OpenVINO backends: outputs, what they say of themselves, and that no fall-back is silent."""

from __future__ import annotations

import builtins
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import BackendError
from ipu_results.networks.builder import GraphBuilder, WeightGenerator
from ipu_results.runner import models
from ipu_results.runner.backends import hardware
from ipu_results.runner.backends import onnxruntime as ort
from ipu_results.runner.backends import openvino as ov
from ipu_results.runner.backends.base import Device, Session, Spec
from ipu_results.runner.reference import agreement, reference
from onnx import numpy_helper
from test_runner_models import CLASSES, SIDE, images, network

BACKENDS = [(ort, "cpu"), (ov, "CPU")]
both = pytest.mark.parametrize(("backend", "device"), BACKENDS, ids=["onnxruntime", "openvino"])
Files = dict[str, str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The network in fp32, fp16 and int8, and in fp32 for batches of two alone."""
    folder = tmp_path_factory.mktemp("models")
    onnx.save(network(), folder / "tiny.onnx")
    found = {
        one: models.prepare(str(folder / "tiny.onnx"), one, folder, images(32, 1)) for one in ("fp32", "fp16", "int8")
    }
    return {one: str(value.path) for one, value in found.items()} | {
        "static": str(models.static(found["fp32"], 2, folder))
    }


@pytest.fixture(scope="module")
def opened(files: Files) -> dict[str, Session]:
    return {backend.NAME: backend.open(Spec(device, files["fp32"], "fp32")) for backend, device in BACKENDS}


@both
@pytest.mark.parametrize(
    ("precision", "dtype", "least"),
    [("fp32", "float32", 1 - 1e-9), ("fp16", "float16", 0.9999), ("int8", "float32", 0.99)],
)
def test_outputs_are_those_of_the_reference(
    backend: ModuleType, device: str, files: Files, precision: str, dtype: str, least: float
) -> None:
    session = backend.open(Spec(device, files[precision], precision, threads=1))
    assert session.dtype == dtype
    x = images(6)
    found = session.run(x.astype(dtype))
    assert (found.shape, found.dtype) == ((6, CLASSES), np.float32)
    cosine, top1 = agreement(found, reference(Path(files["fp32"]), x))
    assert cosine is not None
    assert cosine > least
    assert top1 >= 5 / 6


@both
def test_outputs_by_hand(backend: ModuleType, device: str, tmp_path: Path) -> None:
    graph = GraphBuilder(WeightGenerator(3))
    x = graph.add_convolution("mix", graph.add_input("image", (3, 4, 6)), (3, 8))
    x = graph.add_node(
        "Flatten", "flat", graph.add_node("GlobalAveragePool", "pool", graph.add_node("Relu", "relu", x))
    )
    onnx.save(model := graph.build_model("hand", graph.add_dense("classes", x, (8, 5)), (5,)), tmp_path / "hand.onnx")
    weights = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    x = np.random.default_rng(0).normal(size=(3, 3, 4, 6)).astype(np.float32)
    mixed = np.maximum(np.einsum("oi,nihw->nohw", weights["mix.weight"][:, :, 0, 0], x), 0).mean(axis=(2, 3))
    found = backend.open(Spec(device, str(tmp_path / "hand.onnx"), "fp32")).run(x)
    assert np.allclose(found, mixed @ weights["classes.weight"].T, rtol=1e-4, atol=1e-5)


@settings(max_examples=12)
@given(st.integers(1, 9), st.integers(0, 5))
def test_an_image_has_the_same_outputs_in_every_batch(opened: dict[str, Session], count: int, seed: int) -> None:
    x = images(count, seed)
    for session in opened.values():
        singly = np.concatenate([session.run(x[i : i + 1]) for i in range(count)])
        assert np.allclose(session.run(x), singly, rtol=1e-4, atol=1e-5)


def test_what_is_returned_is_not_overwritten(opened: dict[str, Session]) -> None:
    for session in opened.values():
        first = session.run(images(2, 1))
        kept = first.copy()
        session.run(images(2, 2))
        assert np.array_equal(first, kept)


@both
def test_facts(backend: ModuleType, device: str, files: Files) -> None:
    facts = backend.open(Spec(device, files["fp32"], threads=2)).facts
    package = {"onnxruntime": onnxruntime, "openvino": openvino}[backend.NAME]
    assert package.__version__.startswith(facts.backend_version)
    assert facts.versions[backend.NAME] == package.__version__
    assert facts.framework == {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}[backend.NAME]
    assert facts.provider == {"onnxruntime": "CPUExecutionProvider", "openvino": "CPU"}[backend.NAME]
    assert facts.threads == 2
    assert facts.load_s > 0
    assert facts.platform


def test_openvino_compiles_apart_and_onnxruntime_with_the_load(opened: dict[str, Session]) -> None:
    assert opened["onnxruntime"].facts.compile_s is None
    assert opened["openvino"].facts.compile_s > 0


@both
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_compute_precision(backend: ModuleType, device: str, files: Files, precision: str) -> None:
    assert backend.open(Spec(device, files[precision], precision)).facts.compute_precision == precision


def test_an_fp16_model_is_computed_as_its_kernels_say(files: Files) -> None:
    """Neither library has half-precision convolutions for an x86 CPU of before AVX512-FP16: they cast."""
    facts = ort.open(Spec("cpu", files["fp16"], "fp16")).facts
    session = ort._create(Spec("cpu", files["fp16"]), ort.PROVIDERS["cpu"], {})
    kinds = ort._kernels(Spec("cpu", files["fp16"]), ort.PROVIDERS["cpu"], session.get_inputs()[0], "float16")
    assert kinds == Counter({facts.compute_precision: 3})
    hint = openvino.Core().compile_model(files["fp16"], "CPU").get_property("INFERENCE_PRECISION_HINT")
    found = ov.open(Spec("CPU", files["fp16"])).facts
    assert found.compute_precision == ov.TYPES[hint.get_type_name()]
    assert f"precision hint {hint.get_type_name()}" in found.notes


def test_only_the_first_session_is_asked(files: Files) -> None:
    assert ort.open(Spec("cpu", files["fp32"], sessions=2, session=1)).facts.compute_precision == ""


def node(kind: str, precision: str) -> SimpleNamespace:
    info = {"layerType": SimpleNamespace(value=kind), "runtimePrecision": SimpleNamespace(value=precision)}
    return SimpleNamespace(get_rt_info=lambda: info)


@pytest.mark.parametrize(
    ("nodes", "precision", "notes"),
    [
        ([node("Convolution", "bf16")] * 3 + [node("Reorder", "f32")] * 9, "bf16", []),
        ([node("Convolution", "u8")] * 3 + [node("GroupConvolution", "i8")] + [node("MatMul", "f32")] * 9, "int8", []),
        ([node("Convolution", "u8")] * 3 + [node("Convolution", "f32")], "int8",
         ["3 of 4 convolutions or products are int8"]),
        ([node("FullyConnected", "f16"), node("Relu", "f32")], "fp16", []),
        ([node("Convolution", "f64")], "f64", []),
        ([SimpleNamespace(get_rt_info=dict)], "", ["the compiled model does not say in what precision it computes"]),
    ],
)  # fmt: skip
def test_openvino_precision_is_that_of_most_convolutions(nodes: list[Any], precision: str, notes: list[str]) -> None:
    runtime = SimpleNamespace(get_ops=lambda: nodes)
    assert ov._precision(SimpleNamespace(get_runtime_model=lambda: runtime)) == (precision, notes)


@pytest.mark.parametrize(
    ("found", "option", "capability", "precision"),
    [("fp32", "1", 8.0, "tf32"), ("fp32", "0", 9.0, "fp32"), ("fp32", "1", 7.5, "fp32"), ("fp16", "1", 8.0, "fp16")],
)
def test_fp32_on_cuda_is_tf32_where_allowed_and_able(
    monkeypatch: pytest.MonkeyPatch, found: str, option: str, capability: float, precision: str
) -> None:
    monkeypatch.setattr(ort, "gpus", lambda: [("T4", 7.5), ("GPU", capability)])
    session = SimpleNamespace(get_provider_options=lambda: {"CUDAExecutionProvider": {"use_tf32": option}})
    assert ort._tensor_cores(found, session, "cuda:1") == precision
    assert ort._tensor_cores(found, session, "cpu") == found


def test_tf32_is_off_when_fp32_is_asked_for() -> None:
    assert ort._asked(Spec("cuda:1", "m", "fp32"))[1] == {"device_id": "1", "use_tf32": "0"}
    assert ort._asked(Spec("cuda", "m"))[1] == {"device_id": "0"}
    options = {"gpu_mem_limit": 1}
    assert ort._asked(Spec("cuda", "m", options=options))[1] == {"device_id": "0", "gpu_mem_limit": "1"}
    with pytest.raises(BackendError, match="names another device than --device"):
        ort._asked(Spec("cuda", "m", options={"device_id": 3}))
    assert ort._asked(Spec("openvino", "m", threads=2))[1] == {"device_type": "CPU", "num_of_threads": "2"}


@both
def test_bf16_is_computed_or_refused(backend: ModuleType, device: str, files: Files) -> None:
    able = backend is ov and "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if able:
        assert backend.open(Spec(device, files["fp32"], "bf16")).facts.compute_precision == "bf16"
    else:
        with pytest.raises(BackendError, match=r"^(cpu|CPU): .*bf16"):
            backend.open(Spec(device, files["fp32"], "bf16"))


def test_a_silently_lowered_bf16_is_refused(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    monkeypatch.setattr(ov, "_precision", lambda _: ("fp32", []))
    with pytest.raises(BackendError, match="CPU: computes in fp32 where bf16 was asked for"):
        ov.open(Spec("CPU", files["fp32"], "bf16"))


WRONG = [
    (images(2)[:, :, 1:], r"\(2, 3, 15, 16\)"),
    (images(2)[:, :1], r"\(2, 1, 16, 16\)"),
    (images(2)[0], r"\(3, 16, 16\)"),
    (images(2).astype(np.float64), "float64"),
    (images(2).astype(np.float16), "float16"),
    (images(2).astype(np.uint8), "uint8"),
]


@both
@pytest.mark.parametrize(("x", "message"), WRONG)
def test_wrong_images(
    backend: ModuleType, device: str, opened: dict[str, Session], x: np.ndarray, message: str
) -> None:
    with pytest.raises(BackendError, match=f"^{device}: takes float32 images of shape .*, not .*{message}"):
        opened[backend.NAME].run(x)


@both
def test_a_static_model_takes_its_batch_alone(backend: ModuleType, device: str, files: Files) -> None:
    session = backend.open(Spec(device, files["static"], "fp32", micro_batches=(2,)))
    assert session.facts.compute_precision == "fp32"
    assert session.run(images(2)).shape == (2, CLASSES)
    with pytest.raises(BackendError, match=rf"of shape \(2, 3, {SIDE}, {SIDE}\), not float32 \(3, 3, {SIDE}, {SIDE}\)"):
        session.run(images(3))


@both
def test_a_closed_session_does_not_run(backend: ModuleType, device: str, files: Files) -> None:
    session = backend.open(Spec(device, files["fp32"]))
    session.close()
    session.close()
    with pytest.raises(BackendError, match=f"^{device}: is closed$"):
        session.run(images(1))


@both
def test_no_model(backend: ModuleType, device: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.onnx").write_text("no protobuf\n")
    for name in ("text.onnx", "absent.onnx"):
        with pytest.raises(BackendError, match=f"^{device}: [^\n]+$"):
            backend.open(Spec(device, str(tmp_path / name)))
    assert "onnxruntime:" not in capfd.readouterr().err


@both
def test_a_model_of_integers(backend: ModuleType, device: str, tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> odd (int32[N,3] x) => (int32[N,3] y) { y = Add(x, x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "odd.onnx")
    with pytest.raises(BackendError, match=r"the model takes .*int32.*, not float images"):
        backend.open(Spec(device, str(tmp_path / "odd.onnx")))


def test_onnxruntime_lists_what_other_wheels_have() -> None:
    devices = {one.name: one for one in ort.probe()}
    assert devices["cpu"].usable
    assert devices["cpu"].description == hardware.processor() != ""
    wheels = {"cuda:0": "-gpu", "tensorrt:0": "-gpu", "migraphx:0": "-migraphx", "openvino:CPU": "-openvino"}
    for name, wheel in wheels.items():
        family = ort.PROVIDERS[name.partition(":")[0]]
        if family.name not in onnxruntime.get_available_providers():
            assert f"it comes in the wheel onnxruntime{wheel}, in place of onnxruntime" in str(devices[name].reason)
    assert all(one.backend == "onnxruntime" for one in devices.values())


def smi(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[:2] == ["nvidia-smi", "--query-gpu=index,uuid,name,compute_cap"]
        return subprocess.CompletedProcess(command, 0, printed, "")

    monkeypatch.setattr(hardware.subprocess, "run", run)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


TWO = "0, GPU-aa, NVIDIA A100-SXM4-40GB, 8.0\n1, GPU-bb, Tesla T4, 7.5\n"


def test_gpus_are_listed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    smi(monkeypatch, TWO)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    found = [one for one in ort.probe() if one.usable]
    assert found == [
        Device("onnxruntime", "cuda:0", "gpu", "NVIDIA A100-SXM4-40GB"),
        Device("onnxruntime", "cuda:1", "gpu", "Tesla T4"),
    ]


@pytest.mark.parametrize(
    ("visible", "names"),
    [("1", ["Tesla T4"]), ("GPU-bb,0", ["Tesla T4", "NVIDIA A100-SXM4-40GB"]), ("", []), ("-1", [])],
)
def test_gpus_are_numbered_as_cuda_does(monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]) -> None:
    smi(monkeypatch, TWO)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [name for name, _ in hardware.gpus()] == names


@pytest.mark.parametrize("printed", ["", "No devices were found\n"])
def test_a_wheel_for_gpus_without_one(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    smi(monkeypatch, printed)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    [cuda] = [one for one in ort.probe() if one.name == "cuda:0"]
    assert cuda.reason == "nvidia-smi names no GPU here"


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:0", "^cuda:0: CUDAExecutionProvider is not in the installed onnxruntime: install onnxruntime-gpu"),
        ("migraphx", "^migraphx: MIGraphXExecutionProvider is not .* install onnxruntime-migraphx"),
        ("cpu:1", "^cpu:1: is no device of onnxruntime: one of cpu, cuda:0, "),
        ("ipu", "^ipu: is no device of onnxruntime"),
    ],
)
def test_a_device_that_onnxruntime_does_not_have(files: Files, device: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        ort.open(Spec(device, files["fp32"]))


def test_a_provider_that_takes_no_node_is_an_error(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's Azure provider runs no local node, so all of them would go to the CPU."""
    assert "AzureExecutionProvider" in onnxruntime.get_available_providers()
    monkeypatch.setitem(ort.PROVIDERS, "azure", ort.Provider("AzureExecutionProvider", "gpu", "onnxruntime"))
    with pytest.raises(BackendError, match=r"^azure: .*fallback to CPU EP has been explicitly disabled"):
        ort.open(Spec("azure", files["fp32"]))


def test_a_provider_that_does_not_start_is_an_error(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CUDA's libraries are missing the wheel logs a line and goes on with the CPU."""
    real: Callable[..., Any] = onnxruntime.InferenceSession
    asked: list[Any] = []

    def on_cpu(path: str, choices: Any, providers: Any, enable_fallback: int) -> Any:
        asked.append((providers, enable_fallback, choices.get_session_config_entry("session.disable_cpu_ep_fallback")))
        return real(path, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", on_cpu)
    with pytest.raises(BackendError, match=r"^cuda:0: CUDAExecutionProvider did not start: CPUExecutionProvider did$"):
        ort.open(Spec("cuda:0", files["fp32"]))
    assert asked == [([("CUDAExecutionProvider", {"device_id": "0"})], 0, "1")]


def test_onnxruntime_does_not_spin_beside_others() -> None:
    alone, beside = (ort._choices(Spec("cpu", "m", threads=3, sessions=n), ort.PROVIDERS["cpu"]) for n in (1, 2))
    assert beside.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError):
        alone.get_session_config_entry("session.intra_op.allow_spinning")
    assert (alone.intra_op_num_threads, alone.inter_op_num_threads) == (3, 1)
    assert ort._choices(Spec("cpu", "m"), ort.PROVIDERS["cpu"]).intra_op_num_threads == 0


def test_openvino_is_told_what_was_asked_and_no_more() -> None:
    assert ov._configuration(Spec("CPU", "m")) == {"PERFORMANCE_HINT": "LATENCY"}
    found = ov._configuration(Spec("CPU", "m", "bf16", threads=1, sessions=2, options={"NUM_STREAMS": 2}))
    assert found == {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 1, "ENABLE_CPU_PINNING": False,
        "INFERENCE_PRECISION_HINT": "bf16", "NUM_STREAMS": 2,
    }  # fmt: skip
    assert "INFERENCE_PRECISION_HINT" not in ov._configuration(Spec("CPU", "m", "int8"))
    assert ov._configuration(Spec("GPU.0", "m", threads=1, sessions=2)) == {"PERFORMANCE_HINT": "LATENCY"}


def test_openvino_takes_the_configuration_of_two_sessions(files: Files) -> None:
    assert ov.open(Spec("CPU", files["fp32"], "fp32", threads=1, sessions=2, session=1)).facts.threads == 1
    with pytest.raises(BackendError, match=r"^CPU: .*NO_SUCH_OPTION"):
        ov.open(Spec("CPU", files["fp32"], options={"NO_SUCH_OPTION": 1}))


@pytest.mark.parametrize("device", ["GPU.7", "AUTO", "HETERO:GPU,CPU"])
def test_a_device_that_openvino_does_not_have(files: Files, device: str) -> None:
    with pytest.raises(BackendError, match=f"^{device}: is no device here: OpenVINO sees CPU"):
        ov.open(Spec(device, files["fp32"]))


@pytest.mark.parametrize(
    ("asked", "found", "good"),
    [("CPU", ["CPU"], True), ("GPU", ["GPU.0"], True), ("GPU.0", ["GPU"], True), ("GPU.1", ["(GPU.1)"], True),
     ("GPU", ["(CPU)"], False), ("GPU.1", ["GPU.0"], False), ("GPU", ["GPU.0", "CPU"], False), ("CPU", [], False)],
)  # fmt: skip
def test_openvino_on_another_device_is_an_error(asked: str, found: list[str], good: bool) -> None:
    if good:
        ov._refuse_elsewhere(asked, found)
    else:
        with pytest.raises(BackendError, match=f"^{asked}: the model was compiled for "):
            ov._refuse_elsewhere(asked, found)


def test_openvino_lists_its_devices() -> None:
    devices = {one.name: one for one in ov.probe()}
    assert devices["CPU"] == Device("openvino", "CPU", "cpu", openvino.Core().get_property("CPU", "FULL_DEVICE_NAME"))


def test_a_missing_library_is_a_reason(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name in ("openvino", "onnxruntime"):
            raise ModuleNotFoundError(f"No module named '{name}'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    [found] = ov.probe()
    assert found.reason is not None
    assert found.reason.endswith("pip install 'ipu-results[openvino]'")
    assert {one.reason for one in ort.probe()} == {"cannot be imported: No module named 'onnxruntime'"}
    with pytest.raises(BackendError, match="OpenVINO is not installed"):
        ov.open(Spec("CPU", files["fp32"]))


def test_a_probe_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no\ndriver")

    monkeypatch.setattr(openvino, "Core", broken)
    assert [one.reason for one in ov.probe()] == ["does not start: no driver"]
