"""ONNX Runtime: the CPU, and whichever accelerator the installed wheel has an execution provider
for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ipu_results.errors import BackendError
from ipu_results.runner.backends import (
    BackendTraits,
    Device,
    InputShape,
    LibrarySession,
    SessionFacts,
    SessionSpec,
    find_majority,
    format_error,
)
from ipu_results.runner.environment import name_cpu

OrtObject = Any  # the library has no types
NAME = "onnxruntime"
TRAITS = BackendTraits(precisions=("fp32", "fp16", "int8"))
# two wheels in one environment overwrite each other's files
INSTEAD = "in place of onnxruntime and never together with it, for they share one module name"
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "uint8": "int8", "int8": "int8"}
DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    # of a text model
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}
NVIDIA_WHEEL = "onnxruntime-gpu"
FATAL = 4  # failures are raised, so the library need not print them too
TF32_SINCE = 8.0  # compute capability
# what nvidia-smi may take to list the GPUs
QUERY_TIMEOUT_S = 30


@dataclass(frozen=True)
class Provider:
    """An execution provider, and the wheel it comes in.

    `numbered`: there may be several devices, which have numbers. `opaque`: its kernels do not show.
    """

    name: str
    kind: str
    wheel: str
    numbered: bool = False
    opaque: bool = True


class Gpu(NamedTuple):
    """A GPU as nvidia-smi names it."""

    name: str
    capability: float


PROVIDERS = {
    "cpu": Provider("CPUExecutionProvider", "cpu", "onnxruntime", opaque=False),
    "cuda": Provider("CUDAExecutionProvider", "gpu", NVIDIA_WHEEL, numbered=True, opaque=False),
    "tensorrt": Provider("TensorrtExecutionProvider", "gpu", NVIDIA_WHEEL, numbered=True),
    "migraphx": Provider("MIGraphXExecutionProvider", "gpu", "onnxruntime-migraphx", numbered=True),
    "coreml": Provider("CoreMLExecutionProvider", "gpu", "onnxruntime of macOS"),
}


def _name_devices() -> dict[str, Provider]:
    """Return the providers by the name of the first device of each."""
    devices = {}
    for family, provider in PROVIDERS.items():
        name = f"{family}:0" if provider.numbered else family
        devices[name] = provider
    return devices


DEVICES = _name_devices()
DEVICE_ID = "device_id"  # the option of numbered providers


def probe() -> list[Device]:
    """List every device of the providers, with the wheel to install where the provider is not in
    the installed one.
    """
    devices = []
    try:
        import onnxruntime  # noqa: PLC0415

        available = onnxruntime.get_available_providers()
    except (ImportError, OSError) as error:
        for name, provider in DEVICES.items():
            reason = f"cannot be imported: {error}"
            devices.append(Device(NAME, name, provider.kind, provider.name, reason))
        return devices
    for name, provider in DEVICES.items():
        devices += _list_devices(name, provider, available)
    return devices


def open(spec: SessionSpec) -> OnnxRuntimeSession:
    """Load the model on the requested provider only.

    Raises `BackendError` where any part of it would run elsewhere.
    """
    import onnxruntime  # noqa: PLC0415

    provider, options = _select_provider(spec)
    if provider.name not in onnxruntime.get_available_providers():
        raise BackendError(
            f"{provider.name} is not in the installed onnxruntime: install {provider.wheel},"
            f" {INSTEAD}",
            place=spec.device,
        )
    if spec.precision not in (None, *TRAITS.precisions):
        raise BackendError(
            "computes fp32, fp16 and int8 models as they are, and has no bf16", place=spec.device
        )
    start = time.perf_counter()
    session = _create(spec, provider, options)
    return OnnxRuntimeSession(spec, provider, session, time.perf_counter() - start)


class OnnxRuntimeSession(LibrarySession):
    """A loaded model.

    `load_s` includes the compilation, as ONNX Runtime has one step; nothing is compiled later.

    `compute_precision` is read in the first session only, for it costs a second one; it is "" in
    the others, and where a provider compiles the whole graph into one kernel and does not report
    it.
    """

    def __init__(
        self, spec: SessionSpec, provider: Provider, session: OrtObject, load_s: float
    ) -> None:
        names = [value.name for value in session.get_outputs()]
        inputs = {}
        for value in session.get_inputs():
            lengths = tuple(axis if isinstance(axis, int) else None for axis in value.shape)
            inputs[value.name] = InputShape(DTYPES.get(value.type, value.type), lengths)
        super().__init__(spec.device, inputs, lambda feed: session.run(names, feed)[0])
        self.facts = _build_facts(spec, provider, session, load_s)
        if spec.session == 0:
            self._read_precision(spec, provider, session)

    def _read_precision(self, spec: SessionSpec, provider: Provider, session: OrtObject) -> None:
        facts = self.facts
        kinds = Counter[str]()
        if not provider.opaque:
            kinds = _count_kernels(spec, provider, self._inputs)
        if not kinds:
            facts.notes.append(f"{provider.name} does not say in what precision it computes")
            return
        precision, notes = find_majority(kinds)
        facts.notes += notes
        facts.compute_precision = _resolve_tf32(precision, session, spec.device)


def _list_devices(name: str, provider: Provider, available: list[str]) -> list[Device]:
    if provider.name not in available:
        reason = (
            f"the installed onnxruntime has no {provider.name}:"
            f" it comes in the wheel {provider.wheel}, {INSTEAD}"
        )
        return [Device(NAME, name, provider.kind, provider.name, reason)]
    if provider.kind == "cpu":
        return [Device(NAME, name, "cpu", name_cpu())]
    if provider.wheel != NVIDIA_WHEEL:
        return [Device(NAME, name, provider.kind, provider.name)]
    family = name.partition(":")[0]
    devices = []
    for number, gpu in enumerate(list_gpus()):
        devices.append(Device(NAME, f"{family}:{number}", "gpu", gpu.name))
    if devices:
        return devices
    return [Device(NAME, name, "gpu", provider.name, "nvidia-smi names no GPU here")]


def _select_provider(spec: SessionSpec) -> tuple[Provider, dict[str, str]]:
    family, _, number = spec.device.partition(":")
    provider = PROVIDERS.get(family)
    if provider is None or (number and not provider.numbered):
        raise BackendError(
            f"is not a device of onnxruntime; known: {', '.join(DEVICES)}", place=spec.device
        )
    options = {key: str(value) for key, value in spec.options.items()}
    if provider.numbered:
        if DEVICE_ID in options:
            raise BackendError(
                f"the option {DEVICE_ID} names another device than --device", place=spec.device
            )
        options[DEVICE_ID] = number or "0"
    # fp32 that was asked for is not to be TF32
    if family == "cuda" and spec.precision == "fp32":
        options.setdefault("use_tf32", "0")
    return provider, options


def _create(
    spec: SessionSpec, provider: Provider, options: Mapping[str, str], profile: Path | None = None
) -> OrtObject:
    """Create a session on the provider only, without the library's own fall-back to the CPU."""
    import onnxruntime  # noqa: PLC0415

    settings = _build_settings(spec, provider)
    if profile is not None:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile)
    providers = [(provider.name, dict(options))]
    try:
        session = onnxruntime.InferenceSession(
            spec.model, settings, providers=providers, enable_fallback=0
        )
    except Exception as error:  # the library's own classes share no other base
        raise BackendError(format_error(error), place=spec.device) from error
    if session.get_providers()[0] != provider.name:
        started = ", ".join(session.get_providers())
        raise BackendError(f"{provider.name} did not start: {started} did", place=spec.device)
    return session


def _build_settings(spec: SessionSpec, provider: Provider) -> OrtObject:
    import onnxruntime  # noqa: PLC0415

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = FATAL
    settings.intra_op_num_threads = spec.threads or 0
    settings.inter_op_num_threads = 1
    settings.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    if spec.sessions > 1:  # one process must not spin while another measures
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if provider.name != PROVIDERS["cpu"].name:
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return settings


def _build_facts(
    spec: SessionSpec, provider: Provider, session: OrtObject, load_s: float
) -> SessionFacts:
    import onnxruntime  # noqa: PLC0415

    platform = name_cpu() if provider.kind == "cpu" else provider.name
    gpu = _find_gpu(spec.device)
    return SessionFacts(
        platform=gpu.name if gpu else platform,
        provider=provider.name,
        framework="ONNX Runtime",
        backend_version=onnxruntime.__version__,
        compute_precision="",
        chip_count=1 if provider.kind == "gpu" else None,
        threads=spec.threads,
        load_s=load_s,
        versions={
            "onnxruntime": onnxruntime.__version__,
            "providers": ", ".join(session.get_providers()),
        },
    )


def _count_kernels(
    spec: SessionSpec, provider: Provider, inputs: Mapping[str, InputShape]
) -> Counter[str]:
    """Count convolutions (matrix products, where a model has none) by the precision of their
    kernels' operands.
    """
    _, options = _select_provider(spec)
    batch = min(spec.micro_batches)
    zeros = {}
    for name, shape in inputs.items():
        lengths = [length or batch for length in shape.lengths]
        zeros[name] = np.zeros(lengths, shape.dtype)
    with tempfile.TemporaryDirectory() as folder:
        session = _create(spec, provider, options, Path(folder) / "profile")
        session.run(None, zeros)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    kinds = Counter[str]()
    # convolutions first: they take most of the time where there are any
    for operator in (r"Conv(?!ert)", r"Gemm|MatMul"):
        for event in events:
            kernel = event.get("args", {})
            is_run = str(event.get("name", "")).endswith("_kernel_time")
            if is_run and re.search(operator, kernel["op_name"]):
                # of each operand, an object from its type to its shape
                kind = next(iter(kernel["input_type_shape"][0]))
                kinds[TYPES.get(kind, kind)] += 1
        if kinds:
            break
    return kinds


def _resolve_tf32(precision: str, session: OrtObject, device: str) -> str:
    """Return tf32 where CUDA may use it for fp32: on by default, on GPUs that have it."""
    if precision != "fp32":
        return precision
    options = session.get_provider_options().get(PROVIDERS["cuda"].name, {})
    gpu = _find_gpu(device)
    has_tf32 = gpu is not None and gpu.capability >= TF32_SINCE
    if has_tf32 and options.get("use_tf32") == "1":
        return "tf32"
    return precision


def _find_gpu(device: str) -> Gpu | None:
    family, _, number = device.partition(":")
    if PROVIDERS[family].wheel != NVIDIA_WHEEL:
        return None
    gpus = list_gpus()
    index = int(number or 0)
    return gpus[index] if index < len(gpus) else None


def list_gpus() -> list[Gpu]:
    """Return the GPUs in CUDA's numbering, which is then that of nvidia-smi."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    command = ["nvidia-smi", "--query-gpu=index,uuid,name,compute_cap", "--format=csv,noheader"]
    gpus = {}
    numbers = []
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=QUERY_TIMEOUT_S, check=True
        )
        for line in done.stdout.splitlines():
            if line.strip():
                index, uuid, name, capability = (cell.strip() for cell in line.split(","))
                gpu = Gpu(name, float(capability))
                gpus[index] = gpu
                gpus[uuid] = gpu
                numbers.append(index)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(numbers))
    keys = [key.strip() for key in visible.split(",")]
    return [gpus[key] for key in keys if key in gpus]
