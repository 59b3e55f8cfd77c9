"""What a sweep visits: the devices and defaults of a configuration, and rounds over all batch sizes
in random order.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, DEFAULT_NETWORK
from ipu_results.errors import BackendError, RunnerError, SweepConfigError
from ipu_results.kit.text import find_nearest_words, split_settings
from ipu_results.runner.backends import NAMES, Device, Kind, load_backend
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

AUTO = "auto"
PROBE_TIMEOUT_S = 60.0

ListDevices = Callable[[str], Sequence[Device]]


@dataclass(frozen=True, slots=True)
class SelectedDevice:
    device: Device
    reason: str


def list_devices(name: str, python: str = sys.executable) -> Sequence[Device]:
    """List the devices of a backend; those of an IPU are probed by an interpreter of their own,
    `python`.
    """
    backend = load_backend(name)
    if not backend.TRAITS.apart:
        return backend.probe()
    # the command line starts without its libraries
    from ipu_results.runner.sessions import Subprocess  # noqa: PLC0415

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
    name: str,
    device: str | None,
    target: str,
    probe: ListDevices = list_devices,
    precision: str | None = None,
) -> list[SelectedDevice]:
    """Select the devices to run on, one after the other.

    `device` is a backend's own name, `target` the emulated machine. `auto` selects a real IPU, else
    a GPU, else the emulated machine and the CPU. A simulated device next to real ones is selected
    by name only. Raises BackendError for a device that is not here or cannot be used, or that does
    not compute in `precision`; no other one replaces it.
    """
    if name == AUTO and device:
        raise BackendError(
            "--device needs --backend, which names the backend of the device", place=device
        )
    selected = (
        _select_automatically(target, probe)
        if name == AUTO
        else [_select_named(name, device, target, probe)]
    )
    able = [
        choice
        for choice in selected
        if precision in (None, *load_backend(choice.device.backend).TRAITS.precisions)
    ]
    if not able:
        first = selected[0].device
        raise BackendError(
            f"does not compute in {precision}", document=first.backend, place=first.name
        )
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
        raise BackendError(
            matches[0].reason or "cannot be used", document=name, place=matches[0].name
        )
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
    cpus = [
        device
        for device in devices
        if device.backend == "onnxruntime" and device.kind == "cpu" and device.usable
    ]
    return [
        *(SelectedDevice(device, f"{reason}: emulated") for device in emulated),
        *(SelectedDevice(device, f"{reason}: measured") for device in cpus),
    ]


BUDGET_S = 90.0
LEAST_ROUNDS = 6  # fewer give no interval of 95 % for a median
MOST_ROUNDS = 1000
ISOLATED_EVERY = 2  # rounds


RUNS = Path("raw/runs")  # where runs are appended by default


@dataclass(frozen=True, slots=True)
class Visit:
    """One block to measure."""

    round: int
    batch_size: int
    kind: Kind


class Progress:
    """What a sweep reports while it runs. This one is silent; a subclass shows it."""

    def stage(self, what: str) -> None:
        """Report the work that begins."""

    def visit(self, visit: Visit, done: int, total: int, left_s: float) -> None:
        """Report the block that begins: `done` of about `total` are measured, about `left_s`
        seconds are left.
        """

    def warn(self, what: str) -> None:
        """Report what the user should know of the run."""


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The rounds of a sweep.

    `block_s` and `iterations` are minimums of a block, `iterations` those of each session.

    Warm-up goes on until the medians of two sets of `warm_runs` agree. Rounds go on while
    `budget_s` lasts, at least `least_rounds`, at most `most_rounds`.
    """

    batch_sizes: tuple[int, ...]
    sessions: int
    seed: int = 0
    budget_s: float = BUDGET_S
    least_rounds: int = LEAST_ROUNDS
    most_rounds: int = MOST_ROUNDS
    block_s: float = 2.0
    iterations: int = 8
    warm_runs: int = 5
    overlap: bool = True

    def list_visits(self, number: int) -> list[Visit]:
        """Return a round: every batch size in a stream, every other round also with nothing else in
        flight.
        """
        kinds: Sequence[Kind] = (
            ("amortised", "isolated") if number % ISOLATED_EVERY == 0 else ("amortised",)
        )
        visits = [Visit(number, batch, kind) for batch in self.batch_sizes for kind in kinds]
        random.Random(f"{self.seed} {number}").shuffle(visits)
        return visits

    def needs_round(self, spent_s: float, done: int) -> bool:
        """Decide whether another round is due after `done` of them."""
        return done < self.least_rounds or (done < self.most_rounds and spent_s < self.budget_s)

    def estimate_round_s(self, batch_s: Mapping[int, float]) -> float:
        """Return the seconds of a mean round from those of one batch by batch size."""
        kinds = 1 + 1 / ISOLATED_EVERY
        return kinds * sum(
            max(self.block_s, self.iterations * seconds) for seconds in batch_s.values()
        )


def check_batch_sizes(batch_sizes: Sequence[int], sessions: int) -> tuple[int, ...]:
    """Return the batch sizes without repetitions.

    Raises RunnerError for one that the sessions cannot share evenly.
    """
    for batch in batch_sizes:
        if batch < 1 or batch % sessions:
            raise RunnerError(
                f"batch {batch} cannot be shared evenly by {sessions} sessions; see --set sessions=N"
            )
    return tuple(dict.fromkeys(batch_sizes))


SESSIONS = {"m2000": 4, "bow-2000": 4}  # one per chip
DEFAULT_SESSIONS = 2  # as in the paper
QUICK = {"least_rounds": 2, "most_rounds": 2, "block_s": 0.5, "iterations": 2, "warm_runs": 1}
QUICK_SIZES = 2  # of the batch sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepConfig:
    """What to sweep, and how long.

    Every field has a default; None lets the device or the backend decide.

    backend: `auto`, `popart`, `onnxruntime`, `openvino` or `emulator`. `auto` prefers an IPU, then a GPU,
        then runs the emulated machine and the CPU, one after the other.
    device: the backend's own name of a device, as `ipu-results sweep --list-devices` prints it.
    target: the machine to emulate, `c2`, `m2000` or `bow-2000`.
    batch_sizes: images of a batch over all sessions. Default: the paper's, or the vendor's for four sessions.
    model: a built-in network or an ONNX file, of images or of text.
    network: what an ONNX file holds, by a name of the record. Default: the file's name.
    sequence_length: tokens of a sequence. Default: the model's own, 128 for a built-in one.
    precision: `fp32`, `fp16`, `bf16` or `int8`.
    images: a folder of JPEG and PNG files; None generates seeded ones.
    sessions, threads: processes that share each batch (default 2, or one per emulated chip), and threads of each
        (default on a CPU: an even share of the cores).
    overlap: prepare images ahead in a thread, as the paper did.
    budget_s: begin no round after this many seconds. Default: 90, after six rounds.
    rounds: exactly this many rounds.
    seed: of the order of the visits.
    quick: two short rounds of two batch sizes, to show that it runs.
    power_command, power_declared: a command that prints watts; watts to state as declared.
    python: an interpreter that has PopART.
    options: passed to the backend.
    command_line: what the record names as the origin of the run.
    """

    backend: str = AUTO
    device: str | None = None
    target: str = "c2"
    batch_sizes: tuple[int, ...] | None = None
    model: str = DEFAULT_NETWORK
    network: str | None = None
    sequence_length: int | None = None
    precision: str | None = None
    images: str | None = None
    sessions: int | None = None
    threads: int | None = None
    overlap: bool = True
    budget_s: float | None = None
    rounds: int | None = None
    seed: int = 0
    quick: bool = False
    power_command: str | None = None
    power_declared: float | None = None
    python: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    command_line: str = "ipu_results.runner.run_sweep"


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One sweep on one device, with every default decided.

    The journal keeps it for a resumed sweep.
    """

    device: Device
    plan: SweepPlan
    config: SweepConfig = field(default_factory=SweepConfig)
    threads: int | None = None
    reason: str = "requested"

    def describe(self) -> str:
        """Return three lines that say what runs where."""
        device = self.device
        plan = self.plan
        config = self.config
        rounds = (
            f"{plan.least_rounds} rounds however long they take, and more until {plan.budget_s:g} s"
            " are measured"
        )
        if plan.least_rounds == plan.most_rounds:
            rounds = f"{plan.least_rounds} {'round' if plan.least_rounds == 1 else 'rounds'}"
        precision = config.precision or "the precision of the backend"
        sizes = ", ".join(map(str, plan.batch_sizes))
        tokens = config.sequence_length
        length = f", sequences of {tokens} tokens" if tokens else ""
        return (
            f"{device.backend} {device.name} ({device.description}): {self.reason}\n"
            f"  {config.network or config.model}{length} in {precision}, {plan.sessions} sessions\n"
            f"  batch sizes {sizes}; {rounds}, seed {plan.seed}"
        )

    def describe_setup(self) -> dict[str, Any]:
        """Return the setup as the record publishes it: without a path of this machine."""
        config = self.config
        return {
            "precision": config.precision,
            "threads": self.threads,
            "power_declared": config.power_declared,
            "model": Path(config.model).name,
            "network": config.network,
            "sequence_length": config.sequence_length,
            "images": None if config.images is None else Path(config.images).name,
            "power_command": config.power_command is not None,
            "options": dict(config.options),
        }


def plan_sweeps(
    config: SweepConfig, out: Path, probe: ListDevices | None = None
) -> list[SweepTask]:
    """Select the devices and decide every default. Nothing runs yet.

    Raises SweepConfigError for options that contradict each other, RunnerError for what this
    machine cannot do.
    """
    python = config.python or sys.executable
    selected = select_devices(
        config.backend,
        config.device,
        config.target,
        probe or (lambda name: list_devices(name, python)),
        config.precision,
    )
    if (
        any(choice.device.kind == "simulated" for choice in selected)
        and out.resolve() == RUNS.resolve()
    ):
        raise SweepConfigError(
            f"a simulated run is not a result and is not appended to {RUNS}; name another folder"
            " (--out)"
        )
    config = replace(config, network=_find_network(config))
    return [_plan_sweep(config, choice) for choice in selected]


def _find_network(config: SweepConfig) -> str | None:
    """Return the record's name of the network that an ONNX file holds, None where none is stated."""
    from ipu_results.emulator import networks  # noqa: PLC0415 (as above)

    if config.network is None:
        return None
    if config.model in networks.NAMES:
        raise SweepConfigError(
            f"the setting network is for an ONNX file: {config.model} is a built-in network"
        )
    models = load_vocabulary().models
    known = models.get(normalise_name(config.network))
    if known is None:
        near = find_nearest_words(
            config.network, {key: entry["model"] for key, entry in models.items()}, 1, 0
        )
        hint = f"; the nearest is {near[0]}" if near else ""
        raise SweepConfigError(f"{config.network} is not a network of the record{hint}")
    return str(known["model"])


def _plan_sweep(config: SweepConfig, choice: SelectedDevice) -> SweepTask:
    device = choice.device
    sessions = config.sessions or SESSIONS.get(device.name, DEFAULT_SESSIONS)
    sizes = (
        config.batch_sizes or choose_batch_sizes(sessions)[: QUICK_SIZES if config.quick else None]
    )
    emulated = device.kind == "emulated"
    if config.rounds and emulated and config.backend != AUTO:
        raise SweepConfigError(
            "an emulated sweep has one round: every further one would be the same"
        )
    exactly = 1 if emulated else config.rounds
    plan: dict[str, Any] = {
        "least_rounds": LEAST_ROUNDS if config.budget_s is None else 1,
        "most_rounds": MOST_ROUNDS,
        **(QUICK if config.quick else {}),
        **({"least_rounds": exactly, "most_rounds": exactly} if exactly else {}),
    }
    return SweepTask(
        device,
        SweepPlan(
            check_batch_sizes(sizes, sessions),
            sessions,
            seed=config.seed,
            budget_s=BUDGET_S if config.budget_s is None else config.budget_s,
            overlap=config.overlap,
            **plan,
        ),
        config,
        config.threads or (max(1, count_cores() // sessions) if device.kind == "cpu" else None),
        choice.reason,
    )


def choose_batch_sizes(sessions: int) -> tuple[int, ...]:
    """Return the batch sizes of the paper, or of the vendor's page for four, that the sessions can
    share evenly.
    """
    sizes = DEFAULT_BATCH_SIZES["m2000" if sessions in SESSIONS.values() else "c2"]
    return tuple(size for size in sizes if size % sessions == 0) or tuple(
        sessions * n for n in range(1, 7)
    )


def count_cores() -> int:
    """Count the whole cores that this process may use, within the limits of its control groups."""
    # as above
    from ipu_results.runner.environment import count_usable_cores, read_cpu_quota  # noqa: PLC0415

    usable = count_usable_cores() or 1
    quota = read_cpu_quota()
    return max(1, min(usable, int(quota) if quota else usable))


def _parse_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError
    return count


def _parse_switch(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _parse_seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise ValueError
    return seconds


# The fields of SweepConfig that have no option on the command line: how --set reads each, and what
# it expects.
SETTINGS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "network": (str, "a name"),
    "sequence_length": (_parse_count, "a whole number from 1"),
    "sessions": (_parse_count, "a whole number from 1"),
    "threads": (_parse_count, "a whole number from 1"),
    "overlap": (_parse_switch, "true or false"),
    "budget_s": (_parse_seconds, "a number of seconds from 0"),
    "rounds": (_parse_count, "a whole number from 1"),
    "seed": (int, "a whole number"),
    "power_declared": (float, "a number of watts"),
    "python": (str, "the path of an interpreter"),
    "options": (json.loads, "a JSON value"),
}
OPTION_PREFIX = "options."  # before the name of each option of the backend


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Parse fields of SweepConfig from texts such as `sessions=4` and `options.noise=0.02`.

    Raises SweepConfigError, which names the keys that exist.
    """
    keys = [*(known for known in SETTINGS if known != "options"), f"{OPTION_PREFIX}NAME"]
    form = f"KEY=VALUE with a key of {', '.join(keys)}"
    try:
        pairs = split_settings(texts, form)
    except ValueError as error:
        raise SweepConfigError(f"--set {error}") from error
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in pairs.items():
        option = key.removeprefix(OPTION_PREFIX)
        is_option = option not in ("", key)
        name = "options" if is_option else key
        if name not in SETTINGS or (name == "options" and not is_option):
            raise SweepConfigError(f"--set {key}={value} is not {form}")
        parse, expected = SETTINGS[name]
        try:
            parsed = parse(value)
        except (ValueError, KeyError, RecursionError) as error:
            raise SweepConfigError(f"--set {key}={value}: expected {expected}") from error
        if is_option:
            options[option] = parsed
        else:
            settings[key] = parsed
    if options:
        settings["options"] = options
    return settings
