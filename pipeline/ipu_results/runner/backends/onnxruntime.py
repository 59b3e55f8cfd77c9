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
from typing import TYPE_CHECKING, Any

import numpy as np

from ipu_results.errors import BackendError
from ipu_results.runner.backends import (
    BackendTraits,
    Device,
    LibrarySession,
    SessionFacts,
    SessionSpec,
    find_majority,
    format_error,
)
from ipu_results.runner.environment import name_cpu

if TYPE_CHECKING:
    from ipu_results.runner.backends import InputShapes

NAME = "onnxruntime"
TRAITS = BackendTraits(precisions=("fp32", "fp16", "int8"))
INSTEAD = "in place of onnxruntime and never together with it, for they share one module name"
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "uint8": "int8", "int8": "int8"}
DTYPES = {
    **{"tensor(float)": "float32", "tensor(float16)": "float16"},
    # of a text model
    **{"tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"},
}
FATAL = 4  # failures are raised, so the library need not print them too
TF32_SINCE = 8.0  # compute capability


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


PROVIDERS = {
    "cpu": Provider("CPUExecutionProvider", "cpu", "onnxruntime", opaque=False),
    "cuda": Provider(
        "CUDAExecutionProvider", "gpu", "onnxruntime-gpu", numbered=True, opaque=False
    ),
    "tensorrt": Provider("TensorrtExecutionProvider", "gpu", "onnxruntime-gpu", numbered=True),
    "migraphx": Provider("MIGraphXExecutionProvider", "gpu", "onnxruntime-migraphx", numbered=True),
    "coreml": Provider("CoreMLExecutionProvider", "gpu", "onnxruntime of macOS"),
}
DEVICES = {f"{name}:0" if own.numbered else name: own for name, own in PROVIDERS.items()}
DEVICE_ID = "device_id"  # the option of numbered providers


def probe() -> list[Device]:
    """List every device of the providers, with the wheel to install where the provider is not in
    the installed one.
    """
    try:
        import onnxruntime  # noqa: PLC0415

        available = onnxruntime.get_available_providers()
    except (ImportError, OSError) as error:
        reason = f"cannot be imported: {error}"
        return [
            Device(NAME, name, provider.kind, provider.name, reason)
            for name, provider in DEVICES.items()
        ]
    return [
        device
        for name, provider in DEVICES.items()
        for device in _list_devices(name, provider, available)
    ]


def open(spec: SessionSpec) -> OnnxRuntimeSession:
    """Load the model on the requested provider only.

    Raises `BackendError` where any part of it would run elsewhere.
    """
    import onnxruntime  # noqa: PLC0415

    provider, options = _select_provider(spec)
    if provider.name not in onnxruntime.get_available_providers():
        message = (
            f"{provider.name} is not in the installed onnxruntime: install {provider.wheel},"
            f" {INSTEAD}"
        )
        raise BackendError(message, place=spec.device)
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

    def __init__(self, spec: SessionSpec, provider: Provider, session: Any, load_s: float) -> None:
        names = [value.name for value in session.get_outputs()]
        inputs = {
            value.name: (
                DTYPES[value.type],
                tuple(axis if isinstance(axis, int) else None for axis in value.shape),
            )
            for value in session.get_inputs()
        }
        super().__init__(spec.device, inputs, lambda feed: session.run(names, feed)[0])
        self.facts = _build_facts(spec, provider, session, load_s)
        if spec.session == 0:
            self._read_precision(spec, provider, session)

    def _read_precision(self, spec: SessionSpec, provider: Provider, session: Any) -> None:
        kinds = Counter[str]() if provider.opaque else _count_kernels(spec, provider, self._inputs)
        if not kinds:
            self.facts.notes.append(f"{provider.name} does not say in what precision it computes")
            return
        precision, notes = find_majority(kinds)
        self.facts.notes += notes
        self.facts.compute_precision = _resolve_tf32(precision, session, spec.device)


def _list_devices(name: str, provider: Provider, available: list[str]) -> list[Device]:
    if provider.name not in available:
        wheel = f"it comes in the wheel {provider.wheel}, {INSTEAD}"
        reason = f"the installed onnxruntime has no {provider.name}: {wheel}"
        return [Device(NAME, name, provider.kind, provider.name, reason)]
    if provider.wheel != "onnxruntime-gpu":
        return [
            Device(
                NAME, name, provider.kind, name_cpu() if provider.kind == "cpu" else provider.name
            )
        ]
    family = name.partition(":")[0]
    gpus = [
        Device(NAME, f"{family}:{number}", "gpu", gpu)
        for number, (gpu, _) in enumerate(list_gpus())
    ]
    return gpus or [Device(NAME, name, "gpu", provider.name, "nvidia-smi names no GPU here")]


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
    if family == "cuda" and spec.precision == "fp32":
        options.setdefault("use_tf32", "0")
    return provider, options


def _create(
    spec: SessionSpec, provider: Provider, options: Mapping[str, str], profile: Path | None = None
) -> Any:
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
        message = f"{provider.name} did not start: {', '.join(session.get_providers())} did"
        raise BackendError(message, place=spec.device)
    kinds = [value.type for value in session.get_inputs()]
    if unknown := [kind for kind in kinds if kind not in DTYPES]:
        raise BackendError(
            f"the model takes {unknown[0]}, not float images or integer tokens", place=spec.device
        )
    return session


def _build_settings(spec: SessionSpec, provider: Provider) -> Any:
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
    spec: SessionSpec, provider: Provider, session: Any, load_s: float
) -> SessionFacts:
    import onnxruntime  # noqa: PLC0415

    gpu = _find_gpu(spec.device)
    return SessionFacts(
        platform=gpu[0] if gpu else name_cpu() if provider.kind == "cpu" else provider.name,
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


def _count_kernels(spec: SessionSpec, provider: Provider, inputs: InputShapes) -> Counter[str]:
    """Count convolutions (matrix products, where a model has none) by the precision of their
    kernels' operands.
    """
    options = _select_provider(spec)[1]
    with tempfile.TemporaryDirectory() as folder:
        session = _create(spec, provider, options, Path(folder) / "profile")
        batch = min(spec.micro_batches)
        zeros = {
            name: np.zeros([size or batch for size in shape], kind)
            for name, (kind, shape) in inputs.items()
        }
        session.run(None, zeros)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    kernels = [
        event["args"] for event in events if str(event.get("name", "")).endswith("_kernel_time")
    ]
    for operator in (r"Conv(?!ert)", r"Gemm|MatMul"):
        chosen = [kernel for kernel in kernels if re.search(operator, kernel["op_name"])]
        if chosen:
            break
    types = (next(iter(kernel["input_type_shape"][0])) for kernel in chosen)
    return Counter(TYPES.get(kind, kind) for kind in types)


def _resolve_tf32(precision: str, session: Any, device: str) -> str:
    """Return tf32 where CUDA may use it for fp32: on by default, on GPUs that have it."""
    options = session.get_provider_options().get(PROVIDERS["cuda"].name, {})
    gpu = _find_gpu(device)
    able = gpu is not None and gpu[1] >= TF32_SINCE
    return "tf32" if precision == "fp32" and able and options.get("use_tf32") == "1" else precision


def _find_gpu(device: str) -> tuple[str, float] | None:
    family, _, number = device.partition(":")
    if PROVIDERS[family].wheel != "onnxruntime-gpu":
        return None
    return dict(enumerate(list_gpus())).get(int(number or 0))


def list_gpus() -> list[tuple[str, float]]:
    """Return names and compute capabilities in CUDA's numbering, which is then that of nvidia-smi."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    command = ["nvidia-smi", "--query-gpu=index,uuid,name,compute_cap", "--format=csv,noheader"]
    try:
        text = subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=True
        ).stdout
        rows = [
            [cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()
        ]
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(row[0] for row in rows)).split(
            ","
        )
        known = {
            key: (name, float(able)) for index, uuid, name, able in rows for key in (index, uuid)
        }
        return [known[key.strip()] for key in visible if key.strip() in known]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
