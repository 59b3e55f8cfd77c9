"""ONNX Runtime: the CPU, and whichever accelerator the installed wheel has an execution provider for."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.errors import BackendError
from ipu_results.runner.backends.base import Device, Facts, Session, Spec, fits, one_line
from ipu_results.runner.backends.hardware import gpus, processor

NAME = "onnxruntime"
PRECISIONS = ("fp32", "fp16", "int8")
ALONE = "in place of onnxruntime and never beside it, for they share one module name"
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "uint8": "int8", "int8": "int8"}
DTYPES = {"tensor(float)": "float32", "tensor(float16)": "float16"}
FATAL = 4  # what fails is raised, so that the library need not print it too
TF32_SINCE = 8.0  # compute capability


@dataclass(frozen=True)
class Provider:
    """An execution provider, the wheel it comes in, how its options name the device, and whether its kernels show."""

    name: str
    kind: str
    wheel: str
    key: str | None = None
    first: str | None = None
    opaque: bool = True


PROVIDERS = {
    "cpu": Provider("CPUExecutionProvider", "cpu", "onnxruntime", opaque=False),
    "cuda": Provider("CUDAExecutionProvider", "gpu", "onnxruntime-gpu", "device_id", "0", opaque=False),
    "tensorrt": Provider("TensorrtExecutionProvider", "gpu", "onnxruntime-gpu", "device_id", "0"),
    "migraphx": Provider("MIGraphXExecutionProvider", "gpu", "onnxruntime-migraphx", "device_id", "0"),
    "openvino": Provider("OpenVINOExecutionProvider", "cpu", "onnxruntime-openvino", "device_type", "CPU"),
    "coreml": Provider("CoreMLExecutionProvider", "gpu", "onnxruntime of macOS"),
}


def probe() -> list[Device]:
    """Every device of the providers above, with the wheel to install where the provider is not in the installed one."""
    try:
        import onnxruntime  # noqa: PLC0415

        available = onnxruntime.get_available_providers()
    except (ImportError, OSError) as error:
        return [Device(NAME, name, one.kind, one.name, f"cannot be imported: {error}") for name, one in _listed()]
    return [device for name, one in _listed() for device in _devices(name, one, available)]


def open(spec: Spec) -> OnnxRuntimeSession:
    """Load the model on the asked provider alone. Raises `BackendError` where any part of it would run elsewhere."""
    import onnxruntime  # noqa: PLC0415

    provider, options = _asked(spec)
    if provider.name not in onnxruntime.get_available_providers():
        wanted = f"{provider.name} is not in the installed onnxruntime: install {provider.wheel}, {ALONE}"
        raise BackendError(wanted, place=spec.device)
    if spec.precision not in (None, *PRECISIONS):
        raise BackendError("computes fp32, fp16 and int8 models as they are, and has no bf16", place=spec.device)
    start = time.perf_counter()
    session = _create(spec, provider, options)
    load = time.perf_counter() - start
    return OnnxRuntimeSession(spec, provider, session, load)


class OnnxRuntimeSession(Session):
    """`load_s` holds the compilation too, as ONNX Runtime has one step; nothing is compiled later.

    `compute_precision` is asked in the first session alone, for it costs a second one; it is "" in the others, and
    where a provider compiles the whole graph into one kernel and does not say.
    """

    def __init__(self, spec: Spec, provider: Provider, session: Any, load: float) -> None:
        self._place, self._session = spec.device, session
        self._input, self._outputs = session.get_inputs()[0], [session.get_outputs()[0].name]
        self.dtype = DTYPES[self._input.type]
        self._kind = np.dtype(self.dtype)
        self._shape: tuple[int, ...] = ()
        self.facts = _facts(spec, provider, session, load)
        if spec.session == 0:
            self._ask_precision(spec, provider)

    def run(self, images: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if images.shape != self._shape or images.dtype != self._kind:
            self._check(images)
        if self._session is None:
            raise BackendError("is closed", place=self._place)
        try:
            found = self._session.run(self._outputs, {self._input.name: images})[0]
        except Exception as error:  # the library's own classes share no other base
            raise BackendError(one_line(error), place=self._place) from error
        return np.asarray(found, dtype=np.float32)

    def _check(self, images: npt.NDArray[Any]) -> None:
        """Images that fit are not looked at again until their shape changes."""
        wanted = tuple(one if isinstance(one, int) else None for one in self._input.shape)
        if images.dtype != self._kind or not fits(images.shape, wanted):
            found = f"{images.dtype} {images.shape}"
            raise BackendError(f"takes {self.dtype} images of shape {wanted}, not {found}", place=self._place)
        self._shape = images.shape

    def close(self) -> None:
        self._session = None

    def _ask_precision(self, spec: Spec, provider: Provider) -> None:
        kinds = Counter[str]() if provider.opaque else _kernels(spec, provider, self._input, self.dtype)
        if not kinds:
            self.facts.notes.append(f"{provider.name} does not say in what precision it computes")
            return
        precision, count = kinds.most_common(1)[0]
        if len(kinds) > 1:
            self.facts.notes.append(f"{count} of {kinds.total()} convolutions or products are {precision}")
        self.facts.compute_precision = _tensor_cores(precision, self._session, spec.device)


def _listed() -> list[tuple[str, Provider]]:
    return [(f"{name}:{one.first}" if one.first else name, one) for name, one in PROVIDERS.items()]


def _devices(name: str, provider: Provider, available: list[str]) -> list[Device]:
    if provider.name not in available:
        reason = f"the installed onnxruntime has no {provider.name}: it comes in the wheel {provider.wheel}, {ALONE}"
        return [Device(NAME, name, provider.kind, provider.name, reason)]
    if provider.wheel != "onnxruntime-gpu":
        described = processor() if provider.kind == "cpu" else provider.name
        return [Device(NAME, name, provider.kind, described)]
    family = name.partition(":")[0]
    found = [Device(NAME, f"{family}:{index}", "gpu", gpu) for index, (gpu, _) in enumerate(gpus())]
    return found or [Device(NAME, name, "gpu", provider.name, "nvidia-smi names no GPU here")]


def _asked(spec: Spec) -> tuple[Provider, dict[str, str]]:
    family, _, which = spec.device.partition(":")
    if family not in PROVIDERS or (which and PROVIDERS[family].key is None):
        raise BackendError(
            f"is no device of onnxruntime: one of {', '.join(n for n, _ in _listed())}", place=spec.device
        )
    provider = PROVIDERS[family]
    options = {} if provider.key is None else {provider.key: which or str(provider.first)}
    if family == "cuda" and spec.precision == "fp32":
        options["use_tf32"] = "0"
    if family == "openvino" and spec.threads:
        options["num_of_threads"] = str(spec.threads)
    if provider.key in spec.options:
        raise BackendError(f"--option {provider.key} names another device than --device", place=spec.device)
    return provider, options | {key: str(value) for key, value in spec.options.items()}


def _create(spec: Spec, provider: Provider, options: Mapping[str, str], profile: Path | None = None) -> Any:
    """A session on the provider alone, without the library's own fall-back."""
    import onnxruntime  # noqa: PLC0415

    choices = _choices(spec, provider)
    if profile is not None:
        choices.enable_profiling, choices.profile_file_prefix = True, str(profile)
    providers = [(provider.name, dict(options))]
    try:
        session = onnxruntime.InferenceSession(spec.model, choices, providers=providers, enable_fallback=0)
    except Exception as error:  # the library's own classes share no other base
        raise BackendError(one_line(error), place=spec.device) from error
    if session.get_providers()[0] != provider.name:
        raise BackendError(
            f"{provider.name} did not start: {', '.join(session.get_providers())} did", place=spec.device
        )
    if session.get_inputs()[0].type not in DTYPES:
        raise BackendError(f"the model takes {session.get_inputs()[0].type}, not float images", place=spec.device)
    return session


def _choices(spec: Spec, provider: Provider) -> Any:
    import onnxruntime  # noqa: PLC0415

    choices = onnxruntime.SessionOptions()
    choices.log_severity_level = FATAL
    choices.intra_op_num_threads, choices.inter_op_num_threads = spec.threads or 0, 1
    choices.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    if spec.sessions > 1:  # one process must not spin while another measures
        choices.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if provider.name != PROVIDERS["cpu"].name:
        choices.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return choices


def _facts(spec: Spec, provider: Provider, session: Any, load: float) -> Facts:
    import onnxruntime  # noqa: PLC0415

    gpu = _gpu(spec.device)
    return Facts(
        platform=gpu[0] if gpu else processor() if provider.kind == "cpu" else provider.name,
        provider=provider.name,
        framework="ONNX Runtime",
        backend_version=onnxruntime.__version__,
        compute_precision="",
        chip_count=1 if provider.kind == "gpu" else None,
        threads=spec.threads,
        load_s=load,
        versions={"onnxruntime": onnxruntime.__version__, "providers": ", ".join(session.get_providers())},
    )


def _kernels(spec: Spec, provider: Provider, image: Any, dtype: str) -> Counter[str]:
    """Convolutions (matrix products, where a model has none) by the precision of the operands their kernels took."""
    options = _asked(spec)[1]
    with tempfile.TemporaryDirectory() as folder:
        session = _create(spec, provider, options, Path(folder) / "profile")
        shape = [image.shape[0] if isinstance(image.shape[0], int) else min(spec.micro_batches), *image.shape[1:]]
        session.run(None, {image.name: np.zeros(shape, dtype=dtype)})
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = [one["args"] for one in events if str(one.get("name", "")).endswith("_kernel_time")]
    return _operands(ran, r"Conv(?!ert)") or _operands(ran, r"Gemm|MatMul")


def _operands(ran: list[dict[str, Any]], operator: str) -> Counter[str]:
    first = [next(iter(one["input_type_shape"][0])) for one in ran if re.search(operator, one["op_name"])]
    return Counter(TYPES.get(kind, kind) for kind in first)


def _tensor_cores(precision: str, session: Any, device: str) -> str:
    """TF32 where CUDA may use it for fp32: on by default, on GPUs that have it."""
    options = session.get_provider_options().get(PROVIDERS["cuda"].name, {})
    gpu = _gpu(device)
    able = gpu is not None and gpu[1] >= TF32_SINCE
    return "tf32" if precision == "fp32" and able and options.get("use_tf32") == "1" else precision


def _gpu(device: str) -> tuple[str, float] | None:
    family, _, which = device.partition(":")
    if PROVIDERS[family].wheel != "onnxruntime-gpu":
        return None
    return dict(enumerate(gpus())).get(int(which or 0))
