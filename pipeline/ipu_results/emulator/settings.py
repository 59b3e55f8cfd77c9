"""Describe the host path of a batch, and change it or the machine: `--set KEY=VALUE`, or a machine
in a TOML file.

A host path is what a batch takes beyond the chip. It is described by its settings, as a public
configuration states them. Named protocols are common settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from ipu_results.emulator.operators import Program
from ipu_results.emulator.target import TARGETS, Constant, Fit, Target, load_target, read_toml
from ipu_results.errors import HostBoundError, InconsistentModelError, UnrecognisedModelError
from ipu_results.kit.files import open_regular_file
from ipu_results.kit.limits import MAX_TOML_CHARACTERS
from ipu_results.kit.text import parse_toml, split_settings

BYTE_BITS = 8


@dataclass(frozen=True, slots=True)
class Protocol:
    """The settings of a host path.

    `input_bits` is the size of one input element. `instances` host processes feed `replicas` chips:
    None is the target's usual number. `io_tiles` move data and compute nothing. `prefetch` stages
    the next batch near the chips. `threads` keep as many batches in flight, otherwise their number
    follows from the other settings. `per_image` adds the calibrated host time of each image.
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
        """Return the batches that a published latency spans, which come from the depths of the
        published rows.
        """
        if self.threads:
            return self.threads
        depth = "io_tiles" if self.overlapped else "prefetch" if self.prefetch else "neither"
        return float(read_toml("protocols.toml")["in_flight"][depth])


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one batch: on the chip, in the protocol, between two batches of a full pipeline,
    and latency.
    """

    device: float
    protocol: float
    period: float
    latency: float


@cache
def load_protocols() -> Mapping[str, Protocol]:
    return {
        name: Protocol(name, **entry)
        for name, entry in read_toml("protocols.toml")["protocols"].items()
    }


def select_protocol(name: str | None, target: Target) -> Protocol:
    """Return the named protocol, or the target's default.

    Raises UnrecognisedModelError where the target lacks it, and HostBoundError where the host alone
    decides.
    """
    known = load_protocols()
    refused = read_toml("protocols.toml")["host_bound"]
    if name in refused:
        raise HostBoundError(f"host-bound: not predicted, as {refused[name]}", document=name)
    chosen = name or str(read_toml("protocols.toml")["defaults"][target.base])
    if chosen not in known:
        raise UnrecognisedModelError(
            f"is not a protocol: choose one of {', '.join(known)}", document=chosen
        )
    protocol = known[chosen]
    if (protocol.prefetch and "host.prefetch" not in target) or (
        protocol.per_image and target.base != "c2"
    ):
        raise UnrecognisedModelError(f"is not a protocol of {target.name}", document=chosen)
    return protocol


def count_replicas(protocol: Protocol, target: Target) -> int:
    """Count the chips that share a batch.

    Raises InconsistentModelError for settings that the machine cannot have.
    """
    replicas = protocol.replicas or target.chips
    if replicas > target.chips:
        raise InconsistentModelError(
            f"{replicas} replicas are more than the {target.chips} chips of {target.name}"
        )
    if protocol.instances and replicas % protocol.instances:
        raise InconsistentModelError(
            f"{protocol.instances} instances cannot share {replicas} replicas evenly"
        )
    if protocol.io_tiles >= target.tiles:
        message = (
            f"{protocol.io_tiles} I/O tiles leave none of the {target.tiles} tiles of {target.name}"
            " to compute"
        )
        raise InconsistentModelError(message)
    return replicas


def compute_timing(
    device: float, program: Program, target: Target, protocol: Protocol, fit: Fit
) -> Timing:
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
        # A fit without one row may have a negative time of a batch, which that of the images makes
        # up for.
        host = max(0.0, fit.per_batch + (fit.per_image * images if protocol.per_image else 0.0))
        transfer = (received + sent) / target["host.link"]
        period = device + transfer + host
        # A process times one call for all of its chips, whose transfers follow one another.
        waiting = (_count_fed(target, protocol) - 1) * transfer
    latency = period * protocol.in_flight + waiting
    return Timing(device, period - device, period, latency)


def _feed(received: float, target: Target, protocol: Protocol) -> float:
    """Return the seconds in which a host process can send the batches of its chips."""
    return _count_fed(target, protocol) * received / target["host.process"]


def _count_fed(target: Target, protocol: Protocol) -> float:
    return count_fed(count_replicas(protocol, target), protocol.instances, target)


def count_fed(replicas: int, instances: int | None, target: Target) -> float:
    """Count the chips that one host process feeds: each machine has processes of its own."""
    processes = -(-replicas // target.chips) * int(target["host.processes"])
    return replicas / (instances or min(replicas, processes))


Value = str | int | float | bool
# of the host path; io_tiles may be none
COUNTS = ("input_bits", "instances", "replicas", "io_tiles", "threads")
SWITCHES: Mapping[str, bool] = {"true": True, "on": True, "false": False, "off": False}
PREFETCH = "prefetch"
WHOLE_UNITS = (
    "tile",
    "worker/tile",
    "unit/tile",
    "channel",
    "element",
    "byte",
    "byte/tile",
    "process",
    "superstep",
)
# a time or an energy; anything else divides
MAY_BE_ZERO = ("cycle", "superstep", "worker cycle", "W", "J/MAC")
MAX_TILES, MAX_CHIPS, MAX_COUNT = 10_000, 1024, 100_000
SPAN = 1000  # times less or more than the machine has: beyond that a value is a mistake
FILE_KEYS = ("name", "chip", "chips", "extends", "constants", "training")


def apply_settings(
    target: Target,
    protocol: Protocol,
    settings: Mapping[str, Value],
    others: Iterable[str] = (),
) -> tuple[Target, Protocol]:
    """Set constants of the machine and settings of its host path by name.

    Values may be text, as from a command line. `others` are keys that the caller knows, for errors.

    Raises UnrecognisedModelError for an unknown key or a value that it cannot have, and
    InconsistentModelError for settings that do not fit together.
    """
    known = dict(target.constants)
    constants: dict[str, float] = {}
    paths: dict[str, Any] = {}
    for key, value in settings.items():
        if key in COUNTS:
            paths[key] = int(
                _parse_number(key, value, (0 if key == "io_tiles" else 1, MAX_COUNT), whole=True)
            )
        elif key == PREFETCH:
            paths[key] = value if isinstance(value, bool) else SWITCHES.get(str(value).lower())
            if paths[key] is None:
                raise refuse(key, f"must be one of {', '.join(SWITCHES)}, not {value}")
        elif key in known:
            constants[key] = _parse_constant(key, value, known[key])
        else:
            raise refuse(key, _explain_unknown(key, target, others))
    changed = ", ".join(
        filter(None, (target.settings, *(f"{key}={value}" for key, value in settings.items())))
    )
    machine = replace(target.with_constants(constants), settings=changed)
    path = replace(protocol, **paths)
    if path.prefetch and "host.prefetch" not in machine:
        raise UnrecognisedModelError(
            f"{machine.name} has no memory to prefetch into", document=PREFETCH
        )
    count_replicas(path, machine)
    return machine, path


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Read KEY=VALUE texts. Raises UnrecognisedModelError as `split_settings` does ValueError."""
    try:
        return split_settings(pairs, "KEY=VALUE, for example clock=1.5e9")
    except ValueError as error:
        raise UnrecognisedModelError(str(error)) from error


def _explain_unknown(key: str, target: Target, others: Iterable[str]) -> str:
    """Say that a key is none, and which keys there are."""
    host = dict.fromkeys((*COUNTS, PREFETCH, *others))
    near = get_close_matches(key, [*host, *dict(target.constants)], n=3, cutoff=0.5)
    similar = f"; similar: {', '.join(near)}" if near else ""
    return (
        f"is not a setting of {target.name}{similar}; there are {', '.join(host)} and the constants"
        " of the machine, such as clock"
    )


def read_file(path: Path) -> dict[str, Any]:
    """Read the TOML file of a machine. Raises UnrecognisedModelError naming the file."""
    try:
        with open_regular_file(path) as file:
            return parse_toml(file.read(4 * MAX_TOML_CHARACTERS + 1).decode())
    except OSError as error:
        raise UnrecognisedModelError(
            f"cannot be read: {error.strerror or error}", document=str(path)
        ) from error
    except ValueError as error:
        raise UnrecognisedModelError(f"is not TOML: {error}", document=str(path)) from error


def load_target_file(path: Path) -> Target:
    """Load a machine that extends one of TARGETS: `name`, `extends`, optionally `chip` and `chips`,
    and `constants`.

    Each constant is a number, or a table with `value` and where it comes from. The table `training`
    is read by `load_training_table`. Raises UnrecognisedModelError naming the file and the key.
    """
    document = str(path)
    data = read_file(path)
    if unknown := [key for key in data if key not in FILE_KEYS]:
        raise refuse(unknown[0], f"is not a key of a machine: use {', '.join(FILE_KEYS)}", document)
    if data.get("extends") not in TARGETS:
        raise refuse("`extends`", f"must be one of {', '.join(TARGETS)}", document)
    base = load_target(data["extends"])
    name = data.get("name", path.stem)
    chip = data.get("chip", base.chip)
    chips = data.get("chips", base.chips)
    if not (isinstance(name, str) and name.isprintable() and name and isinstance(chip, str)):
        raise refuse("`name`", "and `chip` must be text", document)
    if isinstance(chips, bool) or not isinstance(chips, int) or not 1 <= chips <= MAX_CHIPS:
        raise refuse("`chips`", f"must be 1 to {MAX_CHIPS}", document)
    known = dict(base.constants)
    new = data.get("constants", {})
    if not isinstance(new, dict):
        raise refuse("`constants`", "must be a table", document)
    for key, entry in new.items():
        if key not in known:
            near = ", ".join(get_close_matches(key, known, n=3, cutoff=0.5))
            raise refuse(
                key,
                f"is not a constant of {base.name}{f'; similar: {near}' if near else ''}",
                document,
            )
        value, source = (
            (entry.get("value"), entry.get("source")) if isinstance(entry, dict) else (entry, None)
        )
        number = _parse_constant(key, value, known[key], document)
        known[key] = Constant(number, known[key].unit, str(source or path.name), known[key].assumed)
    return Target(name, chip, chips, tuple(known.items()), base.base, f"machine of {path.name}")


def _parse_constant(key: str, value: Any, constant: Constant, document: str | None = None) -> float:
    return _parse_number(
        key, value, list_limits(key, constant), constant.unit in WHOLE_UNITS, document
    )


def list_limits(key: str, constant: Constant) -> tuple[float, float]:
    """Return the smallest and the largest value that a constant may be set to: a machine that could
    be built.
    """
    if key == "tiles":
        return 1, MAX_TILES
    usual = constant.value or 1.0
    smallest = 0.0 if constant.unit.startswith(MAY_BE_ZERO) else usual / SPAN
    largest = 1.0 if constant.unit.startswith("share") else usual * SPAN
    return (
        (math.ceil(smallest), math.ceil(largest))
        if constant.unit in WHOLE_UNITS
        else (smallest, largest)
    )


def _parse_number(
    key: str, value: Any, limits: tuple[float, float], whole: bool, document: str | None = None
) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    low, high = limits
    if not low <= number <= high or (whole and not number.is_integer()):
        kind = "whole number" if whole else "number"
        raise refuse(key, f"must be a {kind} from {low:g} to {high:g}, not {value}", document)
    return number


def refuse(key: str, message: str, document: str | Path | None = None) -> UnrecognisedModelError:
    """Return the error of a key of the command line, or of a file."""
    text = message if document is None else f"{key} {message}"
    return UnrecognisedModelError(text, document=key if document is None else str(document))
