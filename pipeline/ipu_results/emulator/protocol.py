"""Model the host path: what a batch takes beyond the chip, and how many batches a published latency spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ipu_results.emulator.data import read_toml
from ipu_results.emulator.operators import Program
from ipu_results.emulator.target import Target
from ipu_results.errors import UnrecognisedModelError

OUTPUT_BYTES = 2  # outputs leave the chip as fp16


@dataclass(frozen=True, slots=True)
class Protocol:
    """A host path. `link` names the target's bandwidth that transfers run at.

    `in_flight` batches are on their way at once, so a published latency spans that many periods. `per_image` adds the
    calibrated host time of each image. `io_tiles` are taken from the compute tiles.
    """

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
    """Seconds of one batch: on the chip, in the protocol, between two batches of a full pipeline, and latency."""

    device: float
    protocol: float
    period: float
    latency: float


@cache
def load_protocols() -> Mapping[str, Protocol]:
    data = read_toml("protocols.toml")
    return {name: Protocol(name, **entry) for name, entry in data.items() if name != "defaults"}


def select_protocol(name: str | None, target: Target) -> Protocol:
    """Return the named protocol, or the target's default. Raises UnrecognisedModelError where the target lacks it."""
    known = load_protocols()
    chosen = name or str(read_toml("protocols.toml")["defaults"][target.name])
    if chosen not in known:
        raise UnrecognisedModelError(f"is not a protocol: choose one of {', '.join(known)}", document=chosen)
    protocol = known[chosen]
    if protocol.link not in target or (protocol.per_image and target.name != "c2"):
        raise UnrecognisedModelError(f"is not a protocol of {target.name}", document=chosen)
    return protocol


def compute_timing(device: float, program: Program, target: Target, protocol: Protocol, per_image: float) -> Timing:
    """Add the transfers of one micro-batch, and `per_image` host seconds of each image, to `device` seconds."""
    images = program.inputs[0].shape[0]
    received = sum(tensor.elements for tensor in program.inputs) * protocol.pixel_bytes
    sent = sum(tensor.elements for tensor in program.outputs) * OUTPUT_BYTES
    transfer = (received + sent) / target[protocol.link]
    if protocol.overlapped:
        period = max(device, transfer)
    else:
        host = transfer + (per_image * images if protocol.per_image else 0.0)
        # Prefetched images still cross the host link once per batch: it bounds the rate.
        period = max(device + host, received / target["host.link"])
    return Timing(device, period - device, period, period * protocol.in_flight)
