"""The host path: what a batch takes beyond the chip, and how many batches a published latency spans."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ipu_results.emulator.operators import Program
from ipu_results.emulator.target import Target
from ipu_results.errors import UnrecognisedModelError

OUTPUT_BYTES = 2


@dataclass(frozen=True, slots=True)
class Protocol:
    """`link` is the target's constant that transfers run at; `per_image` adds the calibrated host time per image."""

    name: str
    link: str
    pixel_bytes: int
    in_flight: int
    source: str
    per_image: bool = False
    io_tiles: int = 0
    overlapped: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one batch: on the chip, in the protocol, and between two batches of a full ipu_results."""

    device: float
    protocol: float
    period: float
    latency: float


@cache
def protocols() -> Mapping[str, Protocol]:
    return {name: Protocol(name, **entry) for name, entry in _data().items() if name != "defaults"}


def protocol_of(name: str | None, target: Target) -> Protocol:
    """The named protocol, or the target's usual one. Raises UnrecognisedModelError where the target has no such path."""
    told = name or str(_data()["defaults"][target.name])
    found = protocols().get(told)
    if found is None:
        raise UnrecognisedModelError(f"is no protocol: one of {', '.join(protocols())}", document=told)
    if found.link not in target or (found.per_image and target.name != "c2"):
        raise UnrecognisedModelError(f"is no protocol of {target.name}", document=told)
    return found


def timing(device: float, program: Program, target: Target, protocol: Protocol, per_image: float) -> Timing:
    """`device` seconds on the chip and the transfers of one micro-batch; `per_image` seconds of the host."""
    images = program.inputs[0].shape[0]
    received = sum(one.elements for one in program.inputs) * protocol.pixel_bytes
    sent = sum(one.elements for one in program.outputs) * OUTPUT_BYTES
    transfer = (received + sent) / target[protocol.link]
    if protocol.overlapped:
        period = max(device, transfer)
        return Timing(device, period - device, period, period * protocol.in_flight)
    host = transfer + (per_image * images if protocol.per_image else 0.0)
    period = max(device + host, received / target["host.link"])
    return Timing(device, period - device, period, period * protocol.in_flight)


@cache
def _data() -> Mapping[str, Any]:
    text = (files("ipu_results.emulator") / "protocols.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
