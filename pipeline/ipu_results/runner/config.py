"""What a sweep visits: the devices and defaults of a configuration, and rounds over all batch sizes
in random order.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, DEFAULT_NETWORK
from ipu_results.errors import BackendError, RunnerError, SweepConfigError
from ipu_results.kit.text import find_nearest_words, split_settings
from ipu_results.runner.backends import NAMES, Device, Kind, load_backend
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

AUTO = "auto"
# an interpreter starts and imports PopART in it
PROBE_TIMEOUT_S = 60.0

ListDevices = Callable[[str], Sequence[Device]]


@dataclass(frozen=True)
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
        with closing(Subprocess(0, python)) as transport:
            transport.send("probe", backend=name)
            return [Device(**device) for device in transport.recv(PROBE_TIMEOUT_S)["devices"]]
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
    if name != AUTO:
        selected = [_select_named(name, device, target, probe)]
    elif device:
        raise BackendError(
            "--device needs --backend, which names the backend of the device", place=device
        )
    else:
        selected = _select_automatically(target, probe)
    if precision is None:
        return selected
    able = []
    for choice in selected:
        if precision in load_backend(choice.device.backend).TRAITS.precisions:
            able.append(choice)
    if not able:
        first = selected[0].device
        raise BackendError(
            f"does not compute in {precision}", document=first.backend, place=first.name
        )
    return able


def _select_named(name: str, device: str | None, target: str, probe: ListDevices) -> SelectedDevice:
    # its devices are the targets, so both options name one
    if name == "emulator":
        device = device or target
    devices = probe(name)
    if device:
        matches = [each for each in devices if each.name == device]
    else:
        # a simulated device is no stand-in for a real one
        real = [each for each in devices if each.kind != "simulated"]
        matches = real or list(devices)
    for match in matches:
        if match.usable:
            return SelectedDevice(match, "requested")
    if matches:
        first = matches[0]
        raise BackendError(first.reason or "cannot be used", document=name, place=first.name)
    names = ", ".join(each.name for each in devices) or "none"
    raise BackendError(f"is not a device of {name}, which has: {names}", place=device or name)


def _select_automatically(target: str, probe: ListDevices) -> list[SelectedDevice]:
    usable: list[Device] = []
    for name in NAMES:
        usable += [device for device in probe(name) if device.usable]
    for kind, reason in (("ipu", "an IPU is here"), ("gpu", "no IPU is here, a GPU is")):
        for device in usable:
            if device.kind == kind:
                return [SelectedDevice(device, reason)]
    reason = "neither an IPU nor a GPU is here"
    emulated = []
    measured = []
    for device in usable:
        if device.kind == "emulated" and device.name == target:
            emulated.append(SelectedDevice(device, f"{reason}: emulated"))
        if device.kind == "cpu" and device.backend == "onnxruntime":
            measured.append(SelectedDevice(device, f"{reason}: measured"))
    return emulated + measured


BUDGET_S = 90.0
LEAST_ROUNDS = 6  # fewer give no interval of 95 % for a median
MOST_ROUNDS = 1000  # however long the budget is
ISOLATED_EVERY = 2  # rounds


RUNS = Path("raw/runs")  # where runs are appended by default


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        kinds: list[Kind] = ["amortised"]
        # half as often: they take time from the rounds that the interval is over
        if number % ISOLATED_EVERY == 0:
            kinds.append("isolated")
        visits = []
        for batch in self.batch_sizes:
            for kind in kinds:
                visits.append(Visit(number, batch, kind))
        # a seed of its own for each round: a resumed sweep finds the order again
        random.Random(f"{self.seed} {number}").shuffle(visits)
        return visits

    def needs_round(self, spent_s: float, done: int) -> bool:
        """Decide whether another round is due after `done` of them."""
        if done < self.least_rounds:
            return True
        return done < self.most_rounds and spent_s < self.budget_s

    def estimate_round_s(self, batch_s: Mapping[int, float]) -> float:
        """Return the seconds of a mean round from those of one batch by batch size."""
        blocks_s = [max(self.block_s, self.iterations * seconds) for seconds in batch_s.values()]
        blocks_each = 1 + 1 / ISOLATED_EVERY
        return blocks_each * sum(blocks_s)


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
QUICK_SIZES = 2  # batch sizes of a quick sweep: the first ones


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepConfig:
    """What to sweep, and how long.

    Every field has a default; None lets the device or the backend decide.

    backend: `auto`, `popart`, `onnxruntime`, `openvino` or `emulator`. `auto` prefers an IPU, then
        a GPU, then runs the emulated machine and the CPU, one after the other.
    device: the backend's own name of a device, as `ipu-results sweep --list-devices` prints it.
    target: the machine to emulate, `c2`, `m2000` or `bow-2000`.
    batch_sizes: images of a batch over all sessions. Default: the paper's, or the vendor's for four
        sessions.
    model: a built-in network or an ONNX file, of images or of text.
    network: what an ONNX file holds, by a name of the record. Default: the file's name.
    sequence_length: tokens of a sequence. Default: the model's own, 128 for a built-in one.
    precision: `fp32`, `fp16`, `bf16` or `int8`.
    images: a folder of JPEG and PNG files; None generates seeded ones.
    sessions, threads: processes that share each batch (default 2, or one per emulated chip), and
        threads of each (default on a CPU: an even share of the cores).
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


@dataclass(frozen=True)
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
        rounds = f"{plan.least_rounds} rounds"
        if plan.most_rounds == 1:
            rounds = "1 round"
        if plan.most_rounds != plan.least_rounds:
            rounds += f" however long they take, and more until {plan.budget_s:g} s are measured"
        network = config.network or config.model
        if config.sequence_length:
            network += f", sequences of {config.sequence_length} tokens"
        precision = config.precision or "the precision of the backend"
        sizes = ", ".join(map(str, plan.batch_sizes))
        return (
            f"{device.backend} {device.name} ({device.description}): {self.reason}\n"
            f"  {network} in {precision}, {plan.sessions} sessions\n"
            f"  batch sizes {sizes}; {rounds}, seed {plan.seed}"
        )

    def describe_setup(self) -> dict[str, object]:
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
    probe = probe or partial(list_devices, python=config.python or sys.executable)
    selected = select_devices(config.backend, config.device, config.target, probe, config.precision)
    simulated = any(choice.device.kind == "simulated" for choice in selected)
    if simulated and out.resolve() == RUNS.resolve():
        raise SweepConfigError(
            f"a simulated run is not a result and is not appended to {RUNS}; name another folder"
            " (--out)"
        )
    # by the name of the record, so that the rows of two files can be compared
    config = replace(config, network=_find_network(config))
    return [_plan_sweep(config, choice) for choice in selected]


def _find_network(config: SweepConfig) -> str | None:
    """Return the record's name of the network in an ONNX file, None where none is stated."""
    # the command line starts without its libraries
    from ipu_results.emulator import networks  # noqa: PLC0415

    if config.network is None:
        return None
    if config.model in networks.NAMES:
        raise SweepConfigError(
            f"the setting network is for an ONNX file: {config.model} is a built-in network"
        )
    models = load_vocabulary().models
    entry = models.get(normalise_name(config.network))
    if entry is None:
        names = {key: entry["model"] for key, entry in models.items()}
        nearest = find_nearest_words(config.network, names, limit=1, cutoff=0)
        hint = f"; the nearest is {nearest[0]}" if nearest else ""
        raise SweepConfigError(f"{config.network} is not a network of the record{hint}")
    return str(entry["model"])


def _plan_sweep(config: SweepConfig, choice: SelectedDevice) -> SweepTask:
    device = choice.device
    emulated = device.kind == "emulated"
    if config.rounds and emulated and config.backend != AUTO:
        raise SweepConfigError(
            "an emulated sweep has one round: every further one would be the same"
        )
    sessions = config.sessions or SESSIONS.get(device.name, DEFAULT_SESSIONS)
    sizes = config.batch_sizes
    if not sizes:
        sizes = choose_batch_sizes(sessions)
        if config.quick:
            sizes = sizes[:QUICK_SIZES]
    plan = SweepPlan(
        check_batch_sizes(sizes, sessions), sessions, seed=config.seed, overlap=config.overlap
    )
    if config.budget_s is not None:
        plan = replace(plan, budget_s=config.budget_s, least_rounds=1)
    if config.quick:
        plan = replace(
            plan,
            least_rounds=2,
            most_rounds=2,
            block_s=0.5,
            iterations=2,
            warm_runs=1,
        )
    rounds = 1 if emulated else config.rounds
    if rounds:
        plan = replace(plan, least_rounds=rounds, most_rounds=rounds)
    threads = config.threads
    # more threads than cores would make sessions wait for each other
    if not threads and device.kind == "cpu":
        threads = max(1, count_cores() // sessions)
    return SweepTask(device, plan, config, threads, choice.reason)


def choose_batch_sizes(sessions: int) -> tuple[int, ...]:
    """Return the batch sizes of the paper, or of the vendor's page for four, that the sessions can
    share evenly.
    """
    target = "m2000" if sessions == SESSIONS["m2000"] else "c2"
    shared = [size for size in DEFAULT_BATCH_SIZES[target] if size % sessions == 0]
    if not shared:
        shared = [micro_batch * sessions for micro_batch in range(1, 7)]
    return tuple(shared)


def count_cores() -> int:
    """Count the whole cores that this process may use, within the limits of its control groups."""
    # the command line starts without its libraries
    from ipu_results.runner.environment import count_usable_cores, read_cpu_quota  # noqa: PLC0415

    cores = count_usable_cores() or 1
    quota = read_cpu_quota()
    if quota:
        cores = min(cores, int(quota))
    return max(1, cores)


def _parse_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError
    return count


def _parse_switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _parse_seconds(text: str) -> float:
    seconds = float(text)
    # NaN is refused, too
    if not seconds >= 0:
        raise ValueError
    return seconds


WHOLE = (_parse_count, "a whole number from 1")
# The fields of SweepConfig that have no option on the command line: how --set reads each, and what
# it expects.
SETTINGS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "network": (str, "a name"),
    "sequence_length": WHOLE,
    "sessions": WHOLE,
    "threads": WHOLE,
    "overlap": (_parse_switch, "true or false"),
    "budget_s": (_parse_seconds, "a number of seconds from 0"),
    "rounds": WHOLE,
    "seed": (int, "a whole number"),
    "power_declared": (float, "a number of watts"),
    "python": (str, "the path of an interpreter"),
}
OPTION = "options."  # before the name of each option of the backend


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Parse fields of SweepConfig from texts such as `sessions=4` and `options.noise=0.02`.

    Raises SweepConfigError, which names the keys that exist.
    """
    form = f"KEY=VALUE with a key of {', '.join(SETTINGS)}, {OPTION}NAME"
    try:
        pairs = split_settings(texts, form)
    except ValueError as error:
        raise SweepConfigError(f"--set {error}") from error
    settings: dict[str, Any] = {}
    for key, text in pairs.items():
        if key in SETTINGS:
            settings[key] = _parse_setting(key, text, *SETTINGS[key])
        elif key.startswith(OPTION) and key != OPTION:
            options = settings.setdefault("options", {})
            name = key.removeprefix(OPTION)
            options[name] = _parse_setting(key, text, json.loads, "a JSON value")
        else:
            raise SweepConfigError(f"--set {key}={text} is not {form}")
    return settings


def _parse_setting(key: str, text: str, parse: Callable[[str], object], expected: str) -> object:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise SweepConfigError(f"--set {key}={text}: expected {expected}") from error
