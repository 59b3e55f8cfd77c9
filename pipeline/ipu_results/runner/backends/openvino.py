"""OpenVINO: CPUs and Intel's GPUs, whose default precision depends on what the device is quickest in."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.errors import BackendError
from ipu_results.runner.backends.base import Device, Facts, Session, Spec, fits, one_line

NAME = "openvino"
EXTRA = "pip install 'ipu-results[openvino]'"
HINTS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
TYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "u8": "int8", "i8": "int8"}
DTYPES = ("float32", "float16")
CONVOLUTIONS = ("convolution", "groupconvolution")
PRODUCTS = ("fullyconnected", "fully_connected", "matmul", "gemm")


def probe() -> list[Device]:
    """The CPU and GPUs that OpenVINO sees, or the CPU with the extra to install."""
    try:
        core = _core()
        seen = [one for one in core.available_devices if one.startswith(("CPU", "GPU"))]
        return [Device(NAME, one, _kind(one), core.get_property(one, "FULL_DEVICE_NAME")) for one in seen]
    except BackendError as error:
        return [Device(NAME, "CPU", "cpu", "OpenVINO", error.message)]
    except Exception as error:  # a driver may raise anything; a probe must not
        return [Device(NAME, "CPU", "cpu", "OpenVINO", f"does not start: {one_line(error)}")]


def open(spec: Spec) -> OpenVinoSession:
    """Read and compile the model for the asked device.

    Raises `BackendError` where another device would run it, and where bf16 was asked for and is not computed in.
    """
    core = _core()
    if _plain(spec.device) not in map(_plain, core.available_devices):
        raise BackendError(f"is no device here: OpenVINO sees {', '.join(core.available_devices)}", place=spec.device)
    try:
        start = time.perf_counter()
        model = core.read_model(spec.model)
        read = time.perf_counter()
        compiled = core.compile_model(model, spec.device, _configuration(spec))
        end = time.perf_counter()
    except Exception as error:  # openvino raises RuntimeError and TypeError alike
        raise BackendError(one_line(error), place=spec.device) from error
    _refuse_elsewhere(spec.device, compiled.get_property("EXECUTION_DEVICES"))
    return OpenVinoSession(spec, compiled, _facts(core, spec, compiled, (read - start, end - read)))


class OpenVinoSession(Session):
    """`facts.threads` and the precision hint are those of the compiled model, not those asked for."""

    def __init__(self, spec: Spec, compiled: Any, facts: Facts) -> None:
        self._place, self.facts = spec.device, facts
        self.dtype = str(np.dtype(compiled.inputs[0].get_element_type().to_dtype()))
        if self.dtype not in DTYPES:
            raise BackendError(f"the model takes {self.dtype}, not float images", place=spec.device)
        self._wanted = tuple(_dimension(one) for one in compiled.inputs[0].get_partial_shape())
        self._request = compiled.create_infer_request()
        self._kind = np.dtype(self.dtype)
        self._shape: tuple[int, ...] = ()

    def run(self, images: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if images.shape != self._shape or images.dtype != self._kind:
            self._check(images)
        if self._request is None:
            raise BackendError("is closed", place=self._place)
        try:
            found = self._request.infer([images], share_inputs=True)[0]
        except Exception as error:  # openvino raises RuntimeError and TypeError alike
            raise BackendError(one_line(error), place=self._place) from error
        return np.asarray(found, dtype=np.float32)

    def close(self) -> None:
        self._request = None

    def _check(self, images: npt.NDArray[Any]) -> None:
        """Images that fit are not looked at again until their shape changes."""
        if images.dtype != self._kind or not fits(images.shape, self._wanted):
            found = f"{images.dtype} {images.shape}"
            raise BackendError(f"takes {self.dtype} images of shape {self._wanted}, not {found}", place=self._place)
        self._shape = images.shape


def _core() -> Any:
    try:
        import openvino  # noqa: PLC0415
    except (ImportError, OSError) as error:
        raise BackendError(f"OpenVINO is not installed ({error}): {EXTRA}", place=NAME) from error
    return openvino.Core()


def _kind(device: str) -> str:
    return "gpu" if device.startswith("GPU") else "cpu"


def _plain(device: str) -> str:
    """GPU and GPU.0 are one; AUTO, HETERO and MULTI choose devices of their own and are none."""
    return device.strip("()").removesuffix(".0")


def _configuration(spec: Spec) -> dict[str, Any]:
    chosen: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY"}
    if _kind(spec.device) == "cpu" and spec.threads is not None:
        chosen["INFERENCE_NUM_THREADS"] = spec.threads
    if _kind(spec.device) == "cpu" and spec.sessions > 1:
        chosen["ENABLE_CPU_PINNING"] = False  # or every process pins its threads to the same cores
    if spec.precision in HINTS:
        chosen["INFERENCE_PRECISION_HINT"] = HINTS[spec.precision]
    return chosen | spec.options


def _refuse_elsewhere(asked: str, found: list[str]) -> None:
    if {_plain(one) for one in found} != {_plain(asked)}:
        raise BackendError(f"the model was compiled for {', '.join(found) or 'no device'}", place=asked)


def _facts(core: Any, spec: Spec, compiled: Any, times: tuple[float, float]) -> Facts:
    import openvino  # noqa: PLC0415

    precision, notes = _precision(compiled)
    if spec.precision == "bf16" and precision != "bf16":
        raise BackendError(f"computes in {precision} where bf16 was asked for", place=spec.device)
    version = openvino.__version__.split("-")[0]
    return Facts(
        platform=core.get_property(spec.device, "FULL_DEVICE_NAME"),
        provider=", ".join(compiled.get_property("EXECUTION_DEVICES")),
        framework="OpenVINO",
        backend_version=version,
        compute_precision=precision,
        chip_count=1 if _kind(spec.device) == "gpu" else None,
        threads=compiled.get_property("INFERENCE_NUM_THREADS") if _kind(spec.device) == "cpu" else None,
        load_s=times[0],
        compile_s=times[1],
        versions={"openvino": openvino.__version__},
        notes=[*notes, f"precision hint {compiled.get_property('INFERENCE_PRECISION_HINT').get_type_name()}"],
    )


def _precision(compiled: Any) -> tuple[str, list[str]]:
    """That of most convolutions (matrix products, where there are none) as compiled; "" where it is not said."""
    nodes = [one.get_rt_info() for one in compiled.get_runtime_model().get_ops()]
    found = _precisions(nodes, CONVOLUTIONS) or _precisions(nodes, PRODUCTS)
    if not found:
        return "", ["the compiled model does not say in what precision it computes"]
    precision, count = found.most_common(1)[0]
    mixed = f"{count} of {found.total()} convolutions or products are {precision}"
    return precision, [mixed] if len(found) > 1 else []


def _precisions(nodes: list[Any], kinds: tuple[str, ...]) -> Counter[str]:
    chosen = [one for one in nodes if "layerType" in one and one["layerType"].value.lower() in kinds]
    values = [one["runtimePrecision"].value for one in chosen if "runtimePrecision" in one]
    return Counter(TYPES.get(value, value) for value in values)


def _dimension(one: Any) -> int | None:
    return int(one.get_length()) if one.is_static else None
