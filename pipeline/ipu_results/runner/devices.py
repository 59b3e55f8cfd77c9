"""Which devices a sweep can run on, which it selects, and why not the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ipu_results.errors import BackendError, RunnerError
from ipu_results.runner.backends import NAMES, Device, list_precisions, load_backend
from ipu_results.runner.sessions import Subprocess

AUTO = "auto"
PROBE_TIMEOUT_S = 60.0
PROBED_APART = ("popart",)  # cannot be imported in a process that has onnx

ListDevices = Callable[[str], Sequence[Device]]


@dataclass(frozen=True, slots=True)
class SelectedDevice:
    device: Device
    reason: str


def list_devices(name: str, python: str = sys.executable) -> Sequence[Device]:
    """List the devices of a backend; those of PopART are probed by an interpreter of their own, `python`."""
    if name not in PROBED_APART:
        devices: Sequence[Device] = load_backend(name).probe()
        return devices
    try:
        transport = Subprocess(0, python)
        try:
            transport.send("probe", backend=name)
            return [Device(**device) for device in transport.recv(PROBE_TIMEOUT_S)["devices"]]
        finally:
            transport.close()
    except RunnerError as error:
        return [Device(name, name, "ipu", "IPU", error.message)]


def select_devices(
    name: str, device: str | None, target: str, probe: ListDevices = list_devices, precision: str | None = None
) -> list[SelectedDevice]:
    """Select the devices to run on, one after the other.

    `device` is a backend's own name, `target` the emulated machine. `auto` selects a real IPU, else a GPU, else the
    emulated machine and the CPU. A simulated device next to real ones is selected by name only. Raises BackendError for
    a device that is not here or cannot be used, or that does not compute in `precision`; no other one replaces it.
    """
    if name == AUTO and device:
        raise BackendError("--device needs --backend, which names the backend of the device", place=device)
    selected = _select_automatically(target, probe) if name == AUTO else [_select_named(name, device, target, probe)]
    able = [choice for choice in selected if precision in (None, *list_precisions(choice.device.backend))]
    if not able:
        first = selected[0].device
        raise BackendError(f"does not compute in {precision}", document=first.backend, place=first.name)
    return able


def _select_named(name: str, device: str | None, target: str, probe: ListDevices) -> SelectedDevice:
    if name == "emulator":
        device = device or target
    devices = probe(name)
    real = [candidate for candidate in devices if candidate.kind != "simulated"] or devices
    matches = [candidate for candidate in devices if candidate.name == device] if device else real
    usable = [candidate for candidate in matches if candidate.usable]
    if usable:
        return SelectedDevice(usable[0], "requested")
    if matches:
        raise BackendError(matches[0].reason or "cannot be used", document=name, place=matches[0].name)
    known = ", ".join(candidate.name for candidate in devices) or "none"
    raise BackendError(f"is not a device of {name}, which has: {known}", place=device or name)


def _select_automatically(target: str, probe: ListDevices) -> list[SelectedDevice]:
    devices = [device for name in NAMES for device in probe(name)]
    for kind, reason in (("ipu", "an IPU is here"), ("gpu", "no IPU is here, a GPU is")):
        usable = [device for device in devices if device.kind == kind and device.usable]
        if usable:
            return [SelectedDevice(usable[0], reason)]
    reason = "neither an IPU nor a GPU is here"
    emulated = [device for device in devices if device.kind == "emulated" and device.name == target]
    cpus = [device for device in devices if device.backend == "onnxruntime" and device.kind == "cpu" and device.usable]
    return [
        *(SelectedDevice(device, f"{reason}: emulated") for device in emulated),
        *(SelectedDevice(device, f"{reason}: measured") for device in cpus),
    ]
