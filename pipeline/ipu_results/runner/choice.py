"""Which device a sweep runs on, and why not on the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ipu_results.errors import BackendError, RunnerError
from ipu_results.runner.backends import NAMES, backend, precisions
from ipu_results.runner.backends.base import Device
from ipu_results.runner.seats import Apart

AUTO = "auto"
PROBE_S = 60.0

Probe = Callable[[str], Sequence[Device]]


@dataclass(frozen=True, slots=True)
class Choice:
    device: Device
    why: str


APART = ("popart",)  # cannot be imported beside onnx


def probed(name: str, python: str = sys.executable) -> Sequence[Device]:
    """A backend's devices; those of PopART are looked for by an interpreter of their own, `python`."""
    if name not in APART:
        found: Sequence[Device] = backend(name).probe()
        return found
    try:
        return _probed_apart(name, python)
    except RunnerError as error:
        return [Device(name, name, "ipu", "IPU", error.message)]


def _probed_apart(name: str, python: str) -> Sequence[Device]:
    seat = Apart(0, python)
    try:
        seat.ask("probe", backend=name)
        return [Device(**one) for one in seat.reply(PROBE_S)["devices"]]
    finally:
        seat.leave()


def choose(
    name: str, device: str | None, target: str, probe: Probe = probed, precision: str | None = None
) -> list[Choice]:
    """The devices to run on, one after the other. `device` is a backend's own name, `target` the emulated machine.
    A simulated device beside real ones is taken by name alone.

    `auto` takes a real IPU, else a GPU, else the emulated machine and the CPU. Raises BackendError for a device that
    is not here or cannot be used, or that does not compute in `precision`; nothing else is taken in its place.
    """
    if name == AUTO and device:
        raise BackendError("is a device of which backend? --backend names it", place=device)
    found = _automatic(target, probe) if name == AUTO else [_named(name, device, target, probe)]
    able = [one for one in found if precision in (None, *precisions(one.device.backend))]
    if not able:
        one = found[0].device
        raise BackendError(f"does not compute in {precision}", document=one.backend, place=one.name)
    return able


def _named(name: str, device: str | None, target: str, probe: Probe) -> Choice:
    if name == "emulator":
        device = device or target
    found = probe(name)
    real = [one for one in found if one.kind != "simulated"] or found
    wanted = [one for one in found if one.name == device] if device else real
    usable = [one for one in wanted if one.usable]
    if usable:
        return Choice(usable[0], "asked for")
    if wanted:
        raise BackendError(wanted[0].reason or "cannot be used", document=name, place=wanted[0].name)
    known = ", ".join(one.name for one in found) or "none"
    raise BackendError(f"is no device of {name}, which has: {known}", place=device or name)


def _automatic(target: str, probe: Probe) -> list[Choice]:
    found = [one for name in NAMES for one in probe(name)]
    for kind, why in (("ipu", "an IPU is here"), ("gpu", "no IPU is here, a GPU is")):
        usable = [one for one in found if one.kind == kind and one.usable]
        if usable:
            return [Choice(usable[0], why)]
    why = "neither an IPU nor a GPU is here"
    emulated = [one for one in found if one.kind == "emulated" and one.name == target]
    measured = [one for one in found if one.backend == "onnxruntime" and one.kind == "cpu" and one.usable]
    return [
        *(Choice(one, f"{why}: emulated") for one in emulated),
        *(Choice(one, f"{why}: measured") for one in measured),
    ]


def listing(probe: Probe = probed) -> list[tuple[Device, str]]:
    """Every device of every backend, and whether it can be used or why not."""
    return [(one, one.reason or "can be used") for name in NAMES for one in probe(name)]
