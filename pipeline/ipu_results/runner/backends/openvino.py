"""OpenVINO: CPUs and Intel's GPUs, whose default precision is the fastest one of the device."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from ipu_results.errors import BackendError
from ipu_results.runner.backends import (
    FLOATS,
    INTEGERS,
    BackendTraits,
    Device,
    LibrarySession,
    SessionFacts,
    SessionSpec,
    find_majority,
    format_error,
)

NAME = "openvino"
TRAITS = BackendTraits()
EXTRA = "pip install 'ipu-results[openvino]'"
HINTS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
TYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "u8": "int8", "i8": "int8"}
CONVOLUTIONS = ("convolution", "groupconvolution")
PRODUCTS = ("fullyconnected", "fully_connected", "matmul", "gemm")


def probe() -> list[Device]:
    """List the CPU and GPUs that OpenVINO sees, or the CPU with the extra to install."""
    try:
        core = _open_core()
        names = [name for name in core.available_devices if name.startswith(("CPU", "GPU"))]
        return [
            Device(NAME, name, _detect_kind(name), core.get_property(name, "FULL_DEVICE_NAME"))
            for name in names
        ]
    except BackendError as error:
        return [Device(NAME, "CPU", "cpu", "OpenVINO", error.message)]
    except Exception as error:  # a driver may raise anything; a probe must not
        return [Device(NAME, "CPU", "cpu", "OpenVINO", f"does not start: {format_error(error)}")]


def open(spec: SessionSpec) -> OpenVinoSession:
    """Read and compile the model for the requested device.

    Raises `BackendError` where another device would run it, and where bf16 was requested but
    another precision is used.
    """
    core = _open_core()
    if _strip_name(spec.device) not in map(_strip_name, core.available_devices):
        names = ", ".join(core.available_devices)
        raise BackendError(
            f"is not a device of this machine: OpenVINO sees {names}", place=spec.device
        )
    try:
        start = time.perf_counter()
        model = core.read_model(spec.model)
        read = time.perf_counter()
        compiled = core.compile_model(model, spec.device, _build_configuration(spec))
        end = time.perf_counter()
    except Exception as error:  # openvino raises RuntimeError and TypeError alike
        raise BackendError(format_error(error), place=spec.device) from error
    _refuse_elsewhere(spec.device, compiled.get_property("EXECUTION_DEVICES"))
    return OpenVinoSession(
        spec, compiled, _build_facts(core, spec, compiled, (read - start, end - read))
    )


class OpenVinoSession(LibrarySession):
    """A compiled model; `facts.threads` and the precision hint are its own, not those requested."""

    def __init__(self, spec: SessionSpec, compiled: Any, facts: SessionFacts) -> None:
        inputs = {}
        for port in compiled.inputs:
            shape = tuple(
                int(axis.get_length()) if axis.is_static else None
                for axis in port.get_partial_shape()
            )
            inputs[port.get_any_name()] = str(np.dtype(port.get_element_type().to_dtype())), shape
        if unknown := [kind for kind, _ in inputs.values() if kind not in (*FLOATS, *INTEGERS)]:
            raise BackendError(
                f"the model takes {unknown[0]}, not float images or integer tokens",
                place=spec.device,
            )
        request = compiled.create_infer_request()
        super().__init__(
            spec.device, inputs, lambda feed: request.infer(feed, share_inputs=True)[0]
        )
        self.facts = facts


def _open_core() -> Any:
    try:
        import openvino  # noqa: PLC0415
    except (ImportError, OSError) as error:
        raise BackendError(f"OpenVINO is not installed ({error}): {EXTRA}", place=NAME) from error
    return openvino.Core()


def _detect_kind(device: str) -> str:
    return "gpu" if device.startswith("GPU") else "cpu"


def _strip_name(device: str) -> str:
    """Strip what makes no difference: GPU is GPU.0.

    AUTO, HETERO and MULTI choose devices of their own.
    """
    return device.strip("()").removesuffix(".0")


def _build_configuration(spec: SessionSpec) -> dict[str, Any]:
    configuration: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY"}
    if _detect_kind(spec.device) == "cpu" and spec.threads is not None:
        configuration["INFERENCE_NUM_THREADS"] = spec.threads
    if _detect_kind(spec.device) == "cpu" and spec.sessions > 1:
        configuration["ENABLE_CPU_PINNING"] = (
            False  # or every process pins its threads to the same cores
        )
    if spec.precision in HINTS:
        configuration["INFERENCE_PRECISION_HINT"] = HINTS[spec.precision]
    return configuration | spec.options


def _refuse_elsewhere(device: str, compiled_for: list[str]) -> None:
    if {_strip_name(name) for name in compiled_for} != {_strip_name(device)}:
        raise BackendError(
            f"the model was compiled for {', '.join(compiled_for) or 'no device'}", place=device
        )


def _build_facts(
    core: Any, spec: SessionSpec, compiled: Any, times: tuple[float, float]
) -> SessionFacts:
    import openvino  # noqa: PLC0415

    precision, notes = _read_precision(compiled)
    if spec.precision == "bf16" and precision != "bf16":
        raise BackendError(f"computes in {precision} where bf16 was requested", place=spec.device)
    return SessionFacts(
        platform=core.get_property(spec.device, "FULL_DEVICE_NAME"),
        provider=", ".join(compiled.get_property("EXECUTION_DEVICES")),
        framework="OpenVINO",
        backend_version=openvino.__version__.split("-")[0],
        compute_precision=precision,
        chip_count=1 if _detect_kind(spec.device) == "gpu" else None,
        threads=(
            compiled.get_property("INFERENCE_NUM_THREADS")
            if _detect_kind(spec.device) == "cpu"
            else None
        ),
        load_s=times[0],
        compile_s=times[1],
        versions={"openvino": openvino.__version__},
        notes=[
            *notes,
            f"precision hint {compiled.get_property('INFERENCE_PRECISION_HINT').get_type_name()}",
        ],
    )


def _read_precision(compiled: Any) -> tuple[str, list[str]]:
    """Return that of most convolutions (matrix products, where there are none) as compiled; ""
    where it is unknown.
    """
    nodes = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    counts = _count_precisions(nodes, CONVOLUTIONS) or _count_precisions(nodes, PRODUCTS)
    return (
        find_majority(counts)
        if counts
        else ("", ["the compiled model does not say in what precision it computes"])
    )


def _count_precisions(nodes: list[Any], kinds: tuple[str, ...]) -> Counter[str]:
    chosen = [
        node for node in nodes if "layerType" in node and node["layerType"].value.lower() in kinds
    ]
    values = [node["runtimePrecision"].value for node in chosen if "runtimePrecision" in node]
    return Counter(TYPES.get(value, value) for value in values)
