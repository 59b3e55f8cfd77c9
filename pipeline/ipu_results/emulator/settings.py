"""Describe the host path of a batch: what it takes beyond the chip.

It is described by its settings, as a public configuration states them. Named protocols are common
settings. `--set KEY=VALUE` changes them or the constants of the machine. A TOML file describes
another machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ipu_results.emulator.operators import Program
from ipu_results.emulator.target import TARGETS, Constant, Fit, Target, load_target, read_toml
from ipu_results.errors import HostBoundError, InconsistentModelError, UnrecognisedModelError
from ipu_results.kit.files import open_regular_file
from ipu_results.kit.limits import MAX_TOML_CHARACTERS
from ipu_results.kit.text import find_nearest_words, parse_toml, split_settings

BYTE_BITS = 8


@dataclass(frozen=True, slots=True)
class Protocol:
    """The settings of a host path.

    `input_bits` is the size of one input element.
    `instances` host processes feed `replicas` chips: None is the target's usual number.
    `io_tiles` move data and compute nothing.
    `prefetch` stages the next batch near the chips.
    `threads` keep as many batches in flight: see `in_flight` for None.
    `per_image` adds the calibrated host time of each image.
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
        """Return how many batches a published latency spans, by the published rows."""
        if self.threads:
            return self.threads
        depths = read_toml("protocols.toml")["in_flight"]
        if self.overlapped:
            return float(depths["io_tiles"])
        if self.prefetch:
            return float(depths["prefetch"])
        return float(depths["neither"])


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one batch.

    `device` is on the chip and `protocol` beyond it. `period` is between two batches of a full
    pipeline. `latency` spans the batches in flight.
    """

    device: float
    protocol: float
    period: float
    latency: float


def select_protocol(name: str | None, target: Target) -> Protocol:
    """Return the named protocol, or the target's default.

    Raises UnrecognisedModelError where the target lacks it, and HostBoundError where the host alone
    decides.
    """
    data = read_toml("protocols.toml")
    chosen = name or str(data["defaults"][target.base])
    if chosen in data["host_bound"]:
        reason = data["host_bound"][chosen]
        raise HostBoundError(f"host-bound: not predicted, as {reason}", document=chosen)
    if chosen not in data["protocols"]:
        names = ", ".join(data["protocols"])
        raise UnrecognisedModelError(f"is not a protocol: choose one of {names}", document=chosen)
    protocol = Protocol(chosen, **data["protocols"][chosen])
    lacks_memory = protocol.prefetch and "host.prefetch" not in target
    # The host's time of an image is fitted on rows of C2.
    lacks_fit = protocol.per_image and target.base != "c2"
    if lacks_memory or lacks_fit:
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
        raise InconsistentModelError(
            f"{protocol.io_tiles} I/O tiles leave none of the {target.tiles} tiles of {target.name}"
            " to compute"
        )
    return replicas


def compute_timing(
    device: float, program: Program, target: Target, protocol: Protocol, fit: Fit
) -> Timing:
    """Add to `device` seconds the transfers of one micro-batch and the fitted host times."""
    received = sum(tensor.elements for tensor in program.inputs) * protocol.input_bits / BYTE_BITS
    sent = sum(tensor.elements for tensor in program.outputs) * target["element.bytes"]
    moved = received + sent
    replicas = count_replicas(protocol, target)
    chips_fed = count_fed_chips(replicas, protocol.instances, target)
    waiting = 0.0
    if protocol.prefetch:
        # A host process sends the batches of its chips one after another.
        sending = chips_fed * received / target["host.process"]
        if protocol.overlapped:
            computing = device
        else:
            computing = device + moved / target["host.prefetch"] + max(0.0, fit.per_batch)
        period = max(computing, sending)
    else:
        host = fit.per_batch
        if protocol.per_image:
            host += fit.per_image * program.inputs[0].shape[0]
        transfer = moved / target["host.link"]
        # A fit without one row may have a negative `per_batch`: the host takes no less than 0 s.
        period = device + transfer + max(0.0, host)
        # A process times one call for all of its chips, whose transfers follow one another.
        waiting = (chips_fed - 1) * transfer
    return Timing(
        device,
        protocol=period - device,
        period=period,
        latency=period * protocol.in_flight + waiting,
    )


def count_fed_chips(replicas: int, instances: int | None, target: Target) -> float:
    """Count the chips that one host process feeds.

    Without `instances`, each machine that has replicas runs its usual number of processes.
    """
    if not instances:
        machines = math.ceil(replicas / target.chips)
        instances = min(replicas, machines * int(target["host.processes"]))
    return replicas / instances


Value = str | int | float | bool
KEYS = read_toml("settings.toml")
LIMITS = KEYS["constants"]
MAX_TILES = 10_000
MAX_CHIPS = 1024
MAX_COUNT = 100_000


@dataclass(frozen=True, slots=True)
class Key:
    """What the values of a setting may be: numbers of a range, one of `words`, or `names`."""

    low: float = 1
    high: float = MAX_COUNT
    whole: bool = True
    words: Mapping[str, Any] = field(default_factory=dict)
    names: bool = False
    several: bool = False
    """Whether a text may hold several values, with commas between them."""

    def read(self, name: str, value: Any) -> Any:
        """Return a value, or a tuple where there may be several.

        Raises UnrecognisedModelError, naming the key.
        """
        texts = str(value).split(",") if self.several else [str(value)]
        values = [self._read_text(text.strip()) for text in texts]
        if None in values:
            raise refuse(name, f"must be {self._describe()}, not {value}")
        return tuple(values) if self.several else values[0]

    def _read_text(self, text: str) -> Any:
        """Return one value, None for a text that is none."""
        if self.words:
            return self.words.get(text.lower())
        if self.names:
            return text or None
        parse = int if self.whole else float
        try:
            number = parse(text)
        except ValueError:
            return None
        return number if self.low <= number <= self.high else None

    def _describe(self) -> str:
        if self.words:
            return f"one of {', '.join(self.words)}"
        if self.names:
            return "names of operators"
        kind = "whole number" if self.whole else "number"
        article = f"{kind}s" if self.several else f"a {kind}"
        return f"{article} from {self.low:g} to {self.high:g}"


def read_keys(kind: str) -> Mapping[str, Key]:
    """Return the keys of the host path, `host`, or of a training step, `training`."""
    return {name: Key(**entry) for name, entry in KEYS[kind].items()}


def limit_constant(key: str, constant: Constant) -> Key:
    """Return what a constant may be set to: a machine that could be built."""
    if key == "tiles":
        return Key(high=MAX_TILES)
    unit = constant.unit
    usual = constant.value or 1.0
    low = usual / LIMITS["span"]
    high = usual * LIMITS["span"]
    if unit.startswith(tuple(LIMITS["zero_units"])):
        low = 0.0
    if unit.startswith("share"):
        high = 1.0
    if unit in LIMITS["whole_units"]:
        return Key(math.ceil(low), math.ceil(high))
    return Key(low, high, whole=False)


HOST_KEYS = read_keys("host")
FILE_KEYS = ("name", "chip", "chips", "extends", "constants")
CHIPS = Key(high=MAX_CHIPS)
# A character of UTF-8 has at most 4 bytes. A longer file is cut here, and refused as too long.
MAX_FILE_BYTES = 4 * MAX_TOML_CHARACTERS + 1


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
    constants: dict[str, float] = {}
    paths: dict[str, Any] = {}
    changed = [target.settings]
    for key, value in settings.items():
        changed.append(f"{key}={value}")
        if key in HOST_KEYS:
            paths[key] = HOST_KEYS[key].read(key, value)
        elif key in target:
            limits = limit_constant(key, target.constants[key])
            constants[key] = float(limits.read(key, value))
        else:
            names = list(dict.fromkeys([*HOST_KEYS, *others]))
            similar = _list_similar(key, [*names, *target.constants])
            message = (
                f"is not a setting of {target.name}{similar}; there are {', '.join(names)} and the"
                " constants of the machine, such as clock"
            )
            raise refuse(key, message)
    machine = replace(target.with_constants(constants), settings=", ".join(filter(None, changed)))
    path = replace(protocol, **paths)
    if path.prefetch and "host.prefetch" not in machine:
        raise refuse("prefetch", f"{machine.name} has no memory to prefetch into")
    count_replicas(path, machine)
    return machine, path


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Read KEY=VALUE texts. Raises UnrecognisedModelError as `split_settings` does ValueError."""
    try:
        return split_settings(pairs, "KEY=VALUE, for example clock=1.5e9")
    except ValueError as error:
        raise UnrecognisedModelError(str(error)) from error


def _list_similar(key: str, names: Iterable[str]) -> str:
    near = find_nearest_words(key, list(names))
    return f"; similar: {', '.join(near)}" if near else ""


def load_target_file(path: Path) -> Target:
    """Load a machine that extends one of TARGETS: `name`, `extends`, optionally `chip` and `chips`,
    and `constants`.

    Each constant is a number, or a table with `value` and where it comes from. Raises
    UnrecognisedModelError naming the file and the key.
    """
    try:
        with open_regular_file(path) as file:
            data = parse_toml(file.read(MAX_FILE_BYTES).decode())
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise UnrecognisedModelError(message, document=str(path)) from error
    except ValueError as error:
        raise UnrecognisedModelError(f"is not TOML: {error}", document=str(path)) from error
    try:
        return _build_target(data, path)
    except UnrecognisedModelError as error:
        # `refuse` names the key alone
        message = f"{error.document} {error.message}"
        raise UnrecognisedModelError(message, document=str(path)) from error


def _build_target(data: Mapping[str, Any], path: Path) -> Target:
    for key in data:
        if key not in FILE_KEYS:
            raise refuse(key, f"is not a key of a machine: use {', '.join(FILE_KEYS)}")
    if data.get("extends") not in TARGETS:
        raise refuse("`extends`", f"must be one of {', '.join(TARGETS)}")
    base = load_target(data["extends"])
    name = data.get("name", path.stem)
    chip = data.get("chip", base.chip)
    for text in (name, chip):
        if not isinstance(text, str) or not text.isprintable() or not text:
            raise refuse("`name` and `chip`", "must be text")
    chips = data.get("chips", base.chips)
    return Target(
        name,
        chip,
        chips=CHIPS.read("`chips`", repr(chips)),  # a text is no number of chips
        constants=_override_constants(base, data.get("constants", {}), path.name),
        base=base.base,
        settings=f"machine of {path.name}",
    )


def _override_constants(base: Target, new: Any, file: str) -> Mapping[str, Constant]:
    """Return the constants of a machine with those of a file in their place."""
    if not isinstance(new, dict):
        raise refuse("`constants`", "must be a table")
    constants = dict(base.constants)
    for key, entry in new.items():
        if key not in constants:
            similar = _list_similar(key, constants)
            raise refuse(key, f"is not a constant of {base.name}{similar}")
        stated = entry if isinstance(entry, dict) else {"value": entry}
        limits = limit_constant(key, constants[key])
        value = float(limits.read(key, stated.get("value")))
        source = str(stated.get("source") or file)
        constants[key] = replace(constants[key], value=value, source=source)
    return constants


def refuse(key: str, message: str) -> UnrecognisedModelError:
    """Return the error of a key."""
    return UnrecognisedModelError(message, document=key)
