"""Predict what a batch takes on a machine: time with a band, its parts, power and memory.

Nothing is run.

Predictions, also those of training, become flat records: the fields of the contract first, then
what they rest on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from ipu_results.emulator.codelets import compute_mac_rate
from ipu_results.emulator.operators import Program, count_live_elements
from ipu_results.emulator.schedule import Schedule, schedule
from ipu_results.emulator.settings import (
    Protocol,
    Timing,
    compute_timing,
    count_replicas,
    select_protocol,
)
from ipu_results.emulator.split import DIMENSIONS, SplitPlan
from ipu_results.emulator.target import Calibration, Target, load_band, load_calibration, read_toml
from ipu_results.errors import InconsistentModelError
from ipu_results.kit import physics
from ipu_results.kit.text import format_records

MS = physics.MS_PER_S
US_PER_MS = 1000
KIB = 1024
Record = Mapping[str, Any]
Verdict = Literal["FITS", "UNCERTAIN", "DOES-NOT-FIT"]
DEFAULT_PROPORTION = 0.6  # of availableMemoryProportion in poplibs
SERIAL_PROPORTION = 0.05  # assumed: of SRAM, for a product that is computed in parts
CODE_BAND = 0.1  # code and exchange state are "about" 110 bytes a superstep and tile: 100 to 120


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """What the fullest tile needs while an operator runs and what it has, and whether that
    suffices.
    """

    memory_verdict: Verdict
    memory_needed_bytes: float
    memory_available_bytes: float
    memory_operator: str


def judge_memory(low: float, high: float, available: float) -> Verdict:
    """Judge what a tile needs, `low` to `high` bytes."""
    if high <= available:
        return "FITS"
    if low <= available:
        return "UNCERTAIN"
    return "DOES-NOT-FIT"


def assess_memory(program: Program, plan: Schedule, target: Target) -> MemoryNeed:
    """Return DOES-NOT-FIT where one operator, or what is held, needs more than a tile has.

    UNCERTAIN is what depends on the code of a superstep, or on products being computed in parts,
    one after another. The vendor's compiler may do so, but the search for splits does not. On C2
    nothing depends on it: the paper's recipe fixes what a product may use.
    """
    # Every tile holds code and exchange state of every superstep.
    code = target["memory.superstep"] * plan.code_supersteps
    sram = target["sram"]
    needs = list_data_bytes(program, plan, target)
    most = max(needs)
    least = most
    is_compilers_choice = target["plan.memory"] >= DEFAULT_PROPORTION
    if is_compilers_choice:
        least = min(most, _estimate_in_parts(program, plan, target))
    low = least + code * (1 - CODE_BAND)
    high = most + code * (1 + CODE_BAND)
    return MemoryNeed(
        memory_verdict=judge_memory(low, high, sram),
        memory_needed_bytes=most + code,
        memory_available_bytes=sram,
        memory_operator=plan.steps[needs.index(most)].name,
    )


def _estimate_in_parts(program: Program, plan: Schedule, target: Target) -> float:
    """Return the bytes of the fullest tile where products are computed in parts; infinity where one
    operator alone needs more than a tile has.
    """
    sram = target["sram"]
    # An element is spread over all tiles.
    tile_bytes = target["element.bytes"] / target.tiles
    for step, operator in zip(plan.steps, program.operators, strict=True):
        if step.temporary + operator.elements * tile_bytes > sram:
            return math.inf
    held = (program.parameters + max(count_live_elements(program))) * tile_bytes
    return held + SERIAL_PROPORTION * sram


def list_data_bytes(program: Program, plan: Schedule, target: Target) -> list[float]:
    """Estimate the bytes of the fullest tile while each operator runs: weights, its live
    activations and temporaries.

    Weights and activations are spread evenly. An operator's slices and partials are freed before
    the next one runs.
    """
    needs = []
    for live, step in zip(count_live_elements(program), plan.steps, strict=True):
        held = (program.parameters + live) * target["element.bytes"] / target.tiles
        needs.append(held + step.temporary)
    return needs


# The fields of each kind of record in order, and the columns of its table with their decimals.
RECORDS = read_toml("records.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedFigures(MemoryNeed):
    """What every prediction has, always `emulated`, never measured.

    `settings` is what the user changed on the machine.

    KIND is that of its record.
    """

    KIND: ClassVar[str]

    target: str
    batch_size: int
    throughput: float
    calibration_id: str
    settings: str | None = None

    def describe_memory(self) -> str:
        """Say what does not fit, or return nothing."""
        if self.memory_verdict != "DOES-NOT-FIT":
            return ""
        needed = self.memory_needed_bytes / KIB
        had = self.memory_available_bytes / KIB
        return (
            f"batch size {self.batch_size} does not fit: it needs {needed:.0f} KiB of a tile of"
            f" {self.target}, which has {had:.0f} KiB; most for {self.memory_operator}"
        )

    @property
    def origin(self) -> Literal["emulated"]:
        return "emulated"

    def get_field(self, name: str) -> Any:
        return getattr(self, name)

    def to_record(self, model: str) -> Record:
        """Return the fields in their order, unrounded: ms, items per second, watts, shares."""
        record: dict[str, Any] = {}
        for name in RECORDS[self.KIND]["fields"]:
            if name == "model":
                record[name] = model
            else:
                record[name] = self.get_field(name)
        return record

    def describe(self, model: str) -> tuple[str, str]:
        """Return what was predicted and, where there is one, a caveat: both for the line under a
        table.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(EmulatedFigures):
    """One batch over the whole machine.

    Times are in milliseconds, throughput in items per second, power in watts. `latency_ms_low` and
    `_high` are the band that holds 80 % of measured times, by the errors on other programs: see
    `load_band`. The shares are of the time on the chip. `timing` holds the same times in seconds.
    """

    KIND = "inference"

    protocol: str
    micro_batch_size: int
    latency_ms: float
    latency_ms_low: float
    latency_ms_high: float
    device_ms: float
    protocol_ms: float
    compute_share: float
    exchange_share: float
    superstep_share: float
    power_w: float | None
    schedule: Schedule = field(repr=False)  # of every operator
    timing: Timing

    def describe(self, model: str) -> tuple[str, str]:
        caveat = ""
        if self.target == "c2" and self.settings is None:
            caveat = (
                "on c2 a straight line through the paper's rows does as well, and power is ± 10 %,"
                " not validated"
            )
        return f"{model} on {self.target}, protocol {self.protocol}", caveat


def predict(
    programs: Callable[[int], Program],
    target: Target,
    batch_sizes: Sequence[int],
    protocol: str | Protocol | None = None,
    calibration: Calibration | None = None,
) -> list[Prediction]:
    """Predict each total batch, shared evenly by the chips.

    `programs` returns the network at a micro-batch.

    Raises InconsistentModelError for a batch that the chips cannot share evenly, and
    UnrecognisedModelError for a protocol that the target does not have.
    """
    if not isinstance(protocol, Protocol):
        protocol = select_protocol(protocol, target)
    fitted = calibration or load_calibration()
    return [_predict(programs, target, batch, protocol, fitted) for batch in batch_sizes]


def select_micro_batch(batch: int, target: Target, protocol: Protocol) -> int:
    """Return the batch of each chip. Raises InconsistentModelError where chips cannot share it."""
    chips = count_replicas(protocol, target)
    if batch < 1 or batch % chips:
        raise InconsistentModelError(
            f"batch {batch} is not a multiple of the {chips} chips of {target.name}"
        )
    return batch // chips


def check_computes(program: Program) -> None:
    """Raise InconsistentModelError for a network without operators."""
    if not program.operators:
        message = "has nothing to compute: each output is an input, as it is"
        raise InconsistentModelError(message, document=program.name)


def select_computing(target: Target, protocol: Protocol) -> Target:
    """Return the machine without its I/O tiles, which move data and compute nothing."""
    if not protocol.overlapped:
        return target
    return target.with_constants({"tiles": target.tiles - protocol.io_tiles})


def _predict(
    programs: Callable[[int], Program],
    target: Target,
    batch: int,
    protocol: Protocol,
    calibration: Calibration,
) -> Prediction:
    micro = select_micro_batch(batch, target, protocol)
    program = programs(micro)
    check_computes(program)
    machine = select_computing(target, protocol)
    plan = schedule(program, machine)
    # in cycles
    waited = plan.supersteps * target["superstep.cycles"]
    total = plan.cycles + waited
    computed = sum(step.compute + step.reduce for step in plan.steps)
    exchanged = sum(step.exchange for step in plan.steps)
    timing = compute_timing(total / target["clock"], program, target, protocol, calibration.fit)
    low, high = load_band("inference")
    memory = assess_memory(program, plan, machine)
    power = None
    if "power.idle" in target:
        # Watts of the card, ± 10 % and not validated. No power of the other machines was published.
        multiplied = target["power.mac"] * program.macs * (batch // micro) / timing.period
        power = target["power.idle"] + multiplied
    return Prediction(
        target=target.name,
        protocol=protocol.name,
        batch_size=batch,
        micro_batch_size=micro,
        throughput=batch / timing.period,
        latency_ms=timing.latency * MS,
        latency_ms_low=timing.latency * low * MS,
        latency_ms_high=timing.latency * high * MS,
        device_ms=timing.device * MS,
        protocol_ms=timing.protocol * MS,
        compute_share=computed / total,
        exchange_share=exchanged / total,
        superstep_share=waited / total,
        power_w=power,
        **asdict(memory),
        calibration_id=calibration.id,
        schedule=plan,
        timing=timing,
        settings=target.settings or None,
    )


def list_layers(
    prediction: Prediction, model: str, program: Program, target: Target, protocol: Protocol
) -> list[Record]:
    """Return a record of each operator, in the order in which they run: µs, bytes of a chip or
    of its fullest tile, and joules of all chips.

    `peak_share` is the share of the chip's peak rate of multiply-accumulates that the operator
    achieves, from 0 to 1; None for one that multiplies no matrices. I/O tiles count in that peak.
    `energy_j` is None where no power of the machine is known.
    """
    whole = prediction.to_record(model)
    plan = prediction.schedule
    clock = target["clock"]
    peak = compute_mac_rate(target) * target.tiles * clock
    chips = prediction.batch_size // prediction.micro_batch_size
    code = target["memory.superstep"] * plan.code_supersteps
    live = count_live_elements(program)
    held = list_data_bytes(program, plan, select_computing(target, protocol))
    fields = RECORDS["layers"]["fields"]
    records: list[Record] = []
    for at, step in enumerate(plan.steps):
        seconds = (step.cycles + step.supersteps * target["superstep.cycles"]) / clock
        values = {
            **whole,
            "operator": step.name,
            "kind": step.kind,
            "compute_cycles": step.compute,
            "reduce_cycles": step.reduce,
            "exchange_cycles": step.exchange,
            "supersteps": step.supersteps,
            "us": seconds * MS * US_PER_MS,
            "macs": step.macs,
            "live_bytes": live[at] * target["element.bytes"],
            "tile_bytes": held[at] + code,
        }
        if step.plan:
            values["vertex"] = step.plan.vertex
            values["split"] = _describe_split(step.plan)
        if step.macs and seconds:
            values["peak_share"] = step.macs / (seconds * peak)
        if "power.idle" in target:
            # The idle power of the card while the operator runs, and the multiply-accumulates of
            # all chips.
            multiplied = target["power.mac"] * step.macs * chips
            values["energy_j"] = target["power.idle"] * seconds + multiplied
        records.append({name: values.get(name) for name in fields})
    return records


def _describe_split(plan: SplitPlan) -> str:
    parts = []
    for name, count in zip(DIMENSIONS, plan.split, strict=True):
        if count > 1:
            parts.append(f"{name} {count}")
    return " × ".join(parts) or "none"


def format_predictions(
    predictions: Sequence[EmulatedFigures],
    model: str,
    output: str,
    layers: Sequence[Record] | None = None,
) -> str:
    """Format a record for each prediction, or the `layers` of the first of them.

    `output` is table, csv or json. A table has a line under it that says what was predicted.
    """
    first = predictions[0]
    records = layers or [prediction.to_record(model) for prediction in predictions]
    if output != "table":
        values = [list(record.values()) for record in records]
        return f"{format_records(output, list(records[0]), values)}\n"
    kind = "layers" if layers else first.KIND
    digits = RECORDS[kind]["digits"]
    rows = []
    for record in records:
        rows.append([_round_value(record[name], places) for name, places in digits.items()])
    subject, caveat = first.describe(model)
    notes = [f"emulated, not measured: {subject}, calibration {first.calibration_id}"]
    if caveat:
        notes.append(caveat)
    if first.settings is not None:
        notes.append(f"changed: {first.settings}")
    return f"{format_records(output, list(digits), rows)}\n{'; '.join(notes)}\n"


def _round_value(value: Any, places: int) -> Any:
    if value is None:
        return ""
    if isinstance(value, float):
        # With None it becomes an int: 1, not 1.0.
        return round(value, places or None)
    return value
