"""The ONNX Runtime and OpenVINO backends: outputs, what they report of themselves, and that no
fall-back is silent.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from ipu_results.errors import BackendError
from ipu_results.runner.backends import InputShape, LibrarySession, SessionSpec
from ipu_results.runner.backends import onnxruntime as ort
from ipu_results.runner.backends import openvino as ov
from ipu_results.runner.models import prepare_model
from ipu_results.runner.workload import compare_outputs, compute_reference

from tests.runner.runner_support import CLASSES, SIDE, build_tiny_model, draw_images, parse_model

BACKENDS = [(ort, "cpu"), (ov, "CPU")]
both = pytest.mark.parametrize(("backend", "device"), BACKENDS, ids=["onnxruntime", "openvino"])
Files = dict[str, str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Write the network in fp32, fp16 and int8."""
    folder = tmp_path_factory.mktemp("models")
    onnx.save(build_tiny_model(), folder / "tiny.onnx")
    paths = {}
    for precision in ("fp32", "fp16", "int8"):
        model = prepare_model(str(folder / "tiny.onnx"), precision, folder, draw_images(32, 1))
        paths[precision] = str(model.path)
    return paths


# --- outputs


@both
@pytest.mark.parametrize(
    ("precision", "dtype", "min_cosine"),
    [("fp32", "float32", 1 - 1e-9), ("fp16", "float16", 0.9999), ("int8", "float32", 0.99)],
)
def test_outputs_are_those_of_the_reference(
    backend: ModuleType, device: str, files: Files, precision: str, dtype: str, min_cosine: float
) -> None:
    session = backend.open(SessionSpec(device, files[precision], precision, threads=1))
    assert session.dtype == dtype
    if precision != "fp16":
        assert session.facts.compute_precision == precision
    x = draw_images(6)
    outputs = session.run(x.astype(dtype))
    assert (outputs.shape, outputs.dtype) == ((6, CLASSES), np.float32)
    cosine, top1 = compare_outputs(outputs, compute_reference(Path(files["fp32"]), x))
    assert cosine is not None
    assert cosine > min_cosine
    assert top1 >= 5 / 6


# --- what they report of themselves


def test_fp16_model_is_computed_as_its_kernels_report(files: Files) -> None:
    """Neither library has half-precision convolutions for an x86 CPU of before AVX512-FP16: they
    cast.
    """
    spec = SessionSpec("cpu", files["fp16"])
    inputs = {"image": InputShape("float16", (None, 3, SIDE, SIDE))}
    kinds = ort._count_kernels(spec, ort.PROVIDERS["cpu"], inputs)
    assert kinds == {ort.open(spec).facts.compute_precision: 3}
    second = ort.open(SessionSpec("cpu", files["fp32"], sessions=2, session=1))
    assert second.facts.compute_precision == ""
    compiled = openvino.Core().compile_model(files["fp16"], "CPU")
    hint = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    facts = ov.open(SessionSpec("CPU", files["fp16"])).facts
    assert facts.compute_precision == ov.TYPES[hint]
    assert f"precision hint {hint}" in facts.notes


def node(kind: str, precision: str) -> SimpleNamespace:
    info = {
        "layerType": SimpleNamespace(value=kind),
        "runtimePrecision": SimpleNamespace(value=precision),
    }
    return SimpleNamespace(get_rt_info=lambda: info)


MIXED = ["3 of 4 convolutions or products are int8"]
UNKNOWN = ["the compiled model does not say in what precision it computes"]


@pytest.mark.parametrize(
    ("nodes", "precision", "notes"),
    [
        ([node("Convolution", "bf16")] * 3 + [node("Reorder", "f32")] * 9, "bf16", []),
        ([node("Convolution", "u8")] * 3 + [node("Convolution", "f32")], "int8", MIXED),
        ([node("FullyConnected", "f16"), node("Relu", "f32")], "fp16", []),
        ([SimpleNamespace(get_rt_info=dict)], "", UNKNOWN),
    ],
)
def test_openvino_precision_is_that_of_most_convolutions(
    nodes: list[Any], precision: str, notes: list[str]
) -> None:
    runtime = SimpleNamespace(get_ops=lambda: nodes)
    compiled = SimpleNamespace(get_runtime_model=lambda: runtime)
    assert ov._read_precision(compiled) == (precision, notes)


@pytest.mark.parametrize(
    ("kernels", "option", "capability", "precision"),
    [
        ("fp32", "1", 8.0, "tf32"),
        ("fp32", "0", 8.0, "fp32"),
        ("fp32", "1", 7.5, "fp32"),
        ("fp16", "1", 8.0, "fp16"),
    ],
)
def test_fp32_on_cuda_is_tf32_where_allowed_and_able(
    monkeypatch: pytest.MonkeyPatch, kernels: str, option: str, capability: float, precision: str
) -> None:
    monkeypatch.setattr(ort, "list_gpus", lambda: [ort.Gpu("T4", 7.5), ort.Gpu("GPU", capability)])
    options = {"CUDAExecutionProvider": {"use_tf32": option}}
    session = SimpleNamespace(get_provider_options=lambda: options)
    assert ort._resolve_tf32(kernels, session, "cuda:1") == precision
    assert ort._resolve_tf32(kernels, session, "cpu") == kernels


@both
def test_bf16_is_computed_or_refused(
    backend: ModuleType, device: str, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    capabilities = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    able = backend is ov and "BF16" in capabilities
    spec = SessionSpec(device, files["fp32"], "bf16")
    if able:
        assert backend.open(spec).facts.compute_precision == "bf16"
    else:
        with pytest.raises(BackendError, match=r"^(cpu|CPU): .*bf16"):
            backend.open(spec)
    monkeypatch.setattr(ov, "_read_precision", lambda _: ("fp32", []))
    with pytest.raises(BackendError, match="CPU: computes in fp32 where bf16 was requested"):
        ov.open(SessionSpec("CPU", files["fp32"], "bf16"))


# --- options


def test_onnxruntime_gets_the_options_of_its_provider() -> None:
    spec = SessionSpec("cuda:1", "m", "fp32", options={"gpu_mem_limit": 1})
    expected = {"device_id": "1", "use_tf32": "0", "gpu_mem_limit": "1"}
    assert ort._select_provider(spec)[1] == expected
    assert ort._select_provider(SessionSpec("cuda", "m"))[1] == {"device_id": "0"}
    with pytest.raises(BackendError, match="names another device than --device"):
        ort._select_provider(SessionSpec("cuda", "m", options={"device_id": 3}))


def test_openvino_configuration_holds_what_was_requested() -> None:
    options = {"NUM_STREAMS": 2}
    spec = SessionSpec("CPU", "m", "bf16", threads=1, sessions=2, options=options)
    assert ov._build_configuration(spec) == {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": 1,
        "ENABLE_CPU_PINNING": False,
        "INFERENCE_PRECISION_HINT": "bf16",
        "NUM_STREAMS": 2,
    }
    spec = SessionSpec("GPU.0", "m", "int8", threads=1, sessions=2)
    assert ov._build_configuration(spec) == {"PERFORMANCE_HINT": "LATENCY"}


# --- what is refused


@both
def test_wrong_images_are_refused(backend: ModuleType, device: str, files: Files) -> None:
    session = backend.open(SessionSpec(device, files["fp32"], "fp32"))
    images = draw_images(2)
    session.run(images)  # the shape that was checked last is another one
    message = f"^{device}: takes float32 images of shape .*, not "
    with pytest.raises(BackendError, match=message + r".*\(2, 3, 15, 16\)"):
        session.run(images[:, :, 1:])
    with pytest.raises(BackendError, match=message + "float16"):
        session.run(images.astype(np.float16))


def test_inputs_are_checked_once_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []

    def fits(_: InputShape, array: np.ndarray) -> bool:
        checked.append(len(array))
        return True

    monkeypatch.setattr(InputShape, "fits", fits)
    shapes = {"image": InputShape("float32", (None, 3, SIDE, SIDE))}
    session = LibrarySession("cpu", shapes, lambda feed: feed["image"])
    for count in (2, 2, 3, 3, 2):
        session.run(draw_images(count))
    assert checked == [2, 3, 2]


@both
def test_unusable_model_is_refused_in_one_line(
    backend: ModuleType, device: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.onnx").write_text("no protobuf\n")
    for name in ("text.onnx", "absent.onnx"):
        with pytest.raises(BackendError, match=f"^{device}: [^\n]+$"):
            backend.open(SessionSpec(device, str(tmp_path / name)))
    assert "onnxruntime:" not in capfd.readouterr().err
    text = "(double[N,3] x) => (double[N,3] y) { y = Add(x, x) }"
    onnx.save(parse_model(text), tmp_path / "odd.onnx")
    message = r"the model takes .*(double|float64).*, not float images or integer tokens"
    with pytest.raises(BackendError, match=message):
        backend.open(SessionSpec(device, str(tmp_path / "odd.onnx")))


@pytest.mark.parametrize(
    ("backend", "device", "message"),
    [
        (ort, "cuda:0", "is not in the installed onnxruntime: install onnxruntime-gpu"),
        (ort, "cpu:1", "is not a device of onnxruntime; known: cpu, cuda:0, "),
        (ov, "GPU.7", "is not a device of this machine: OpenVINO sees CPU"),
    ],
)
def test_absent_device_is_refused(
    files: Files, backend: ModuleType, device: str, message: str
) -> None:
    with pytest.raises(BackendError, match=f"^{device}: .*{message}"):
        backend.open(SessionSpec(device, files["fp32"]))


def test_provider_that_takes_no_node_is_an_error(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's Azure provider runs no local node, so all of them would go to the CPU."""
    assert "AzureExecutionProvider" in onnxruntime.get_available_providers()
    azure = ort.Provider("AzureExecutionProvider", "gpu", "onnxruntime")
    monkeypatch.setitem(ort.PROVIDERS, "azure", azure)
    message = "^azure: .*fallback to CPU EP has been explicitly disabled"
    with pytest.raises(BackendError, match=message):
        ort.open(SessionSpec("azure", files["fp32"]))


def test_provider_that_does_not_start_is_an_error(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where CUDA's libraries are missing the wheel logs a line and goes on with the CPU."""
    real: Callable[..., Any] = onnxruntime.InferenceSession

    def create_on_cpu(path: str, settings: Any, providers: Any, enable_fallback: int) -> Any:
        assert providers == [("CUDAExecutionProvider", {"device_id": "0"})]
        assert settings.get_session_config_entry("session.disable_cpu_ep_fallback") == "1"
        assert enable_fallback == 0
        return real(path, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", create_on_cpu)
    message = "^cuda:0: CUDAExecutionProvider did not start: CPUExecutionProvider did$"
    with pytest.raises(BackendError, match=message):
        ort.open(SessionSpec("cuda:0", files["fp32"]))


def test_openvino_on_another_device_is_an_error() -> None:
    for device, compiled_for in (("GPU", "GPU.0"), ("GPU.0", "GPU"), ("GPU.1", "(GPU.1)")):
        ov._refuse_elsewhere(device, [compiled_for])
    for device, others in (("GPU.1", ["GPU.0"]), ("GPU", ["GPU.0", "CPU"]), ("CPU", [])):
        with pytest.raises(BackendError, match=f"^{device}: the model was compiled for "):
            ov._refuse_elsewhere(device, others)


# --- probes


TWO_GPUS = "0, GPU-aa, A100, 8.0\n1, GPU-bb, T4, 7.5\n"


@pytest.mark.parametrize(
    ("printed", "visible", "names"),
    [
        (TWO_GPUS, None, ["A100", "T4"]),
        (TWO_GPUS, "GPU-bb,0", ["T4", "A100"]),
        (TWO_GPUS, "-1", []),
        ("No devices were found\n", None, []),
    ],
)
def test_gpus_are_numbered_as_cuda_does(
    monkeypatch: pytest.MonkeyPatch, printed: str, visible: str | None, names: list[str]
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[0] == "nvidia-smi"
        return subprocess.CompletedProcess(command, 0, printed, "")

    monkeypatch.setattr(ort.subprocess, "run", run)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    cuda = [device for device in ort.probe() if device.name.startswith("cuda")]
    assert [device.name for device in cuda] == [f"cuda:{number}" for number in range(len(cuda))]
    assert {device.kind for device in cuda} == {"gpu"}
    if names:
        assert [device.description for device in cuda] == names
    else:
        assert [device.reason for device in cuda] == ["nvidia-smi names no GPU here"]


def test_missing_library_is_a_reason(monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    def break_core() -> None:
        raise RuntimeError("no\ndriver")

    with monkeypatch.context() as broken:
        broken.setattr(openvino, "Core", break_core)
        assert [device.reason for device in ov.probe()] == ["does not start: no driver"]
    for name in ("openvino", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    [device] = ov.probe()
    assert str(device.reason).endswith("pip install 'ipu-results[openvino]'")
    assert all(str(own.reason).startswith("cannot be imported: ") for own in ort.probe())
    with pytest.raises(BackendError, match="OpenVINO is not installed"):
        ov.open(SessionSpec("CPU", files["fp32"]))
