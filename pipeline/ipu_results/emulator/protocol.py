"""Model the host path: what a batch takes beyond the chip, and how many batches a published latency spans.

A host path is described by its settings, as a public configuration states them. Named protocols are common settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ipu_results.emulator.data import read_toml
from ipu_results.emulator.operators import Program
from ipu_results.emulator.target import Fit, Target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

BYTE_BITS = 8


@dataclass(frozen=True, slots=True)
class Protocol:
    """The settings of a host path.

    `input_bits` is the size of one input element. `instances` host processes feed `replicas` chips: None is the
    target's usual number. `io_tiles` move data and compute nothing. `prefetch` stages the next batch near the chips.
    `threads` keep as many batches in flight, otherwise their number follows from the other settings. `per_image` adds
    the calibrated host time of each image.
    """

    name: str
    input_bits: int
    prefetch: bool
    source: str
    io_tiles: int = 0
    instances: int | None = None
    replicas: int | None = None
    threads: int | None = None
    per_image: bool = False

    @property
    def overlapped(self) -> bool:
        """Check whether transfers run while the chip computes."""
        return self.prefetch and self.io_tiles > 0

    @property
    def in_flight(self) -> float:
        """Return the batches that a published latency spans, which come from the depths of the published rows."""
        if self.threads:
            return self.threads
        return _load_depths()["io_tiles" if self.overlapped else "prefetch" if self.prefetch else "neither"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one batch: on the chip, in the protocol, between two batches of a full pipeline, and latency."""

    device: float
    protocol: float
    period: float
    latency: float


@cache
def _load_depths() -> Mapping[str, float]:
    depths: dict[str, float] = read_toml("protocols.toml")["in_flight"]
    return depths


@cache
def load_protocols() -> Mapping[str, Protocol]:
    data = read_toml("protocols.toml")
    return {name: Protocol(name, **entry) for name, entry in data["protocols"].items()}


def select_protocol(name: str | None, target: Target) -> Protocol:
    """Return the named protocol, or the target's default. Raises UnrecognisedModelError where the target lacks it."""
    known = load_protocols()
    chosen = name or str(read_toml("protocols.toml")["defaults"][target.base])
    if chosen not in known:
        raise UnrecognisedModelError(f"is not a protocol: choose one of {', '.join(known)}", document=chosen)
    protocol = known[chosen]
    if (protocol.prefetch and "host.prefetch" not in target) or (protocol.per_image and target.base != "c2"):
        raise UnrecognisedModelError(f"is not a protocol of {target.name}", document=chosen)
    return protocol


def count_replicas(protocol: Protocol, target: Target) -> int:
    """Count the chips that share a batch. Raises InconsistentModelError for settings that the machine cannot have."""
    replicas = protocol.replicas or target.chips
    if replicas > target.chips:
        raise InconsistentModelError(f"{replicas} replicas are more than the {target.chips} chips of {target.name}")
    if protocol.instances and replicas % protocol.instances:
        raise InconsistentModelError(f"{protocol.instances} instances cannot share {replicas} replicas evenly")
    if protocol.io_tiles >= target.tiles:
        message = f"{protocol.io_tiles} I/O tiles leave none of the {target.tiles} tiles of {target.name} to compute"
        raise InconsistentModelError(message)
    return replicas


def compute_timing(device: float, program: Program, target: Target, protocol: Protocol, fit: Fit) -> Timing:
    """Add to `device` seconds the transfers of one micro-batch and the fitted host times."""
    images = program.inputs[0].shape[0]
    received = sum(tensor.elements for tensor in program.inputs) * protocol.input_bits / BYTE_BITS
    sent = sum(tensor.elements for tensor in program.outputs) * target["element.bytes"]
    waiting = 0.0
    if protocol.overlapped:
        period = max(device, _feed(received, target, protocol))
    elif protocol.prefetch:
        staged = device + (received + sent) / target["host.prefetch"] + max(0.0, fit.per_batch)
        period = max(staged, _feed(received, target, protocol))
    else:
        # A fit without one row may have a negative time of a batch, which that of the images makes up for.
        host = max(0.0, fit.per_batch + (fit.per_image * images if protocol.per_image else 0.0))
        transfer = (received + sent) / target["host.link"]
        period = device + transfer + host
        # A process times one call for all of its chips, whose transfers follow one another.
        waiting = (_count_fed(target, protocol) - 1) * transfer
    return Timing(device, period - device, period, period * protocol.in_flight + waiting)


def _feed(received: float, target: Target, protocol: Protocol) -> float:
    """Return the seconds in which a host process can send the batches of its chips."""
    return _count_fed(target, protocol) * received / target["host.process"]


def _count_fed(target: Target, protocol: Protocol) -> float:
    """Count the chips that one host process feeds."""
    replicas = count_replicas(protocol, target)
    return replicas / min(protocol.instances or target["host.processes"], replicas)
