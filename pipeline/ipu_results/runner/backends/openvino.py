"""OpenVINO: CPUs and Intel's GPUs, whose default precision is the fastest one of the device."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

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

OpenVinoObject = Any  # the library has no types
NAME = "openvino"
TRAITS = BackendTraits()
EXTRA = "pip install 'ipu-results[openvino]'"
# of int8 there is none: the model itself is quantised
HINTS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
TYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "u8": "int8", "i8": "int8"}
# names of the compiled layers, which differ between CPU and GPU
CONVOLUTIONS = ("convolution", "groupconvolution")
PRODUCTS = ("fullyconnected", "fully_connected", "matmul", "gemm")


def probe() -> list[Device]:
    """List the CPU and GPUs that OpenVINO sees, or the CPU with the extra to install."""
    devices = []
    try:
        core = _open_core()
        for name in core.available_devices:
            if name.startswith(("CPU", "GPU")):
                description = core.get_property(name, "FULL_DEVICE_NAME")
                devices.append(Device(NAME, name, _detect_kind(name), description))
    except BackendError as error:
        return [Device(NAME, "CPU", "cpu", "OpenVINO", error.message)]
    except Exception as error:  # a driver may raise anything; a probe must not
        return [Device(NAME, "CPU", "cpu", "OpenVINO", f"does not start: {format_error(error)}")]
    return devices


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
    facts = _build_facts(core, spec, compiled)
    facts.load_s = read - start
    facts.compile_s = end - read
    return OpenVinoSession(spec, compiled, facts)


class OpenVinoSession(LibrarySession):
    """A compiled model; `facts.threads` and the precision hint are its own, not those requested."""

    def __init__(self, spec: SessionSpec, compiled: OpenVinoObject, facts: SessionFacts) -> None:
        inputs = {}
        for port in compiled.inputs:
            dtype = str(np.dtype(port.get_element_type().to_dtype()))
            lengths: list[int | None] = []
            for axis in port.get_partial_shape():
                lengths.append(axis.get_length() if axis.is_static else None)
            inputs[port.get_any_name()] = InputShape(dtype, tuple(lengths))
        request = compiled.create_infer_request()
        super().__init__(
            spec.device, inputs, lambda feed: request.infer(feed, share_inputs=True)[0]
        )
        self.facts = facts


def _open_core() -> OpenVinoObject:
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
    if _detect_kind(spec.device) == "cpu":
        if spec.threads is not None:
            configuration["INFERENCE_NUM_THREADS"] = spec.threads
        if spec.sessions > 1:  # or every process pins its threads to the same cores
            configuration["ENABLE_CPU_PINNING"] = False
    if spec.precision in HINTS:
        configuration["INFERENCE_PRECISION_HINT"] = HINTS[spec.precision]
    return configuration | spec.options


def _refuse_elsewhere(device: str, compiled_for: list[str]) -> None:
    if {_strip_name(name) for name in compiled_for} != {_strip_name(device)}:
        raise BackendError(
            f"the model was compiled for {', '.join(compiled_for) or 'no device'}", place=device
        )


def _build_facts(core: OpenVinoObject, spec: SessionSpec, compiled: OpenVinoObject) -> SessionFacts:
    import openvino  # noqa: PLC0415

    precision, notes = _read_precision(compiled)
    if spec.precision == "bf16" and precision != "bf16":
        raise BackendError(f"computes in {precision} where bf16 was requested", place=spec.device)
    hint = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    facts = SessionFacts(
        platform=core.get_property(spec.device, "FULL_DEVICE_NAME"),
        provider=", ".join(compiled.get_property("EXECUTION_DEVICES")),
        framework="OpenVINO",
        backend_version=openvino.__version__.split("-")[0],
        compute_precision=precision,
        versions={"openvino": openvino.__version__},
        notes=[*notes, f"precision hint {hint}"],
    )
    if _detect_kind(spec.device) == "gpu":
        facts.chip_count = 1
    else:
        facts.threads = compiled.get_property("INFERENCE_NUM_THREADS")
    return facts


def _read_precision(compiled: OpenVinoObject) -> tuple[str, list[str]]:
    """Return that of most convolutions (matrix products, where there are none) as compiled; ""
    where it is unknown.
    """
    nodes = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    for kinds in (CONVOLUTIONS, PRODUCTS):
        counts = Counter[str]()
        for node in nodes:
            if "layerType" not in node or "runtimePrecision" not in node:
                continue
            if node["layerType"].value.lower() in kinds:
                precision = node["runtimePrecision"].value
                counts[TYPES.get(precision, precision)] += 1
        if counts:
            return find_majority(counts)
    return "", ["the compiled model does not say in what precision it computes"]
