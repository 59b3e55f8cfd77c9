"""What a batch would take on a machine: time with a band, its parts, power and memory. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ipu_results.emulator.calibration import Calibration, Fit, frozen
from ipu_results.emulator.memory import Verdict, verdict
from ipu_results.emulator.operators import Program
from ipu_results.emulator.protocol import Protocol, Timing, protocol_of, timing
from ipu_results.emulator.schedule import Planner, Schedule, schedule
from ipu_results.emulator.split import plan as search
from ipu_results.emulator.target import Target
from ipu_results.errors import InconsistentModelError

MS = 1000.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of one batch over the whole machine; always `emulated`, never measured. `low` and `high`: the jackknife band."""

    target: str
    protocol: str
    batch_size: int
    micro_batch_size: int
    throughput: float
    latency_ms: float
    latency_ms_low: float
    latency_ms_high: float
    device_ms: float
    protocol_ms: float
    compute_share: float
    exchange_share: float
    superstep_share: float
    power_w: float | None
    memory_verdict: Verdict
    calibration_id: str
    schedule: Schedule
    timing: Timing

    @property
    def origin(self) -> Literal["emulated"]:
        return "emulated"


def predict(
    programs: Callable[[int], Program],
    target: Target,
    batch_sizes: Sequence[int],
    protocol: str | Protocol | None = None,
    calibration: Calibration | None = None,
    planner: Planner = search,
) -> list[Prediction]:
    """One prediction per total batch, dealt evenly to the chips. `programs` gives the network at a micro-batch.

    `planner` may be `cache.Plans`, which remembers between processes.
    Raises InconsistentModelError for a batch that the chips cannot share evenly, UnrecognisedModelError for a protocol that the
    target does not have.
    """
    path = protocol if isinstance(protocol, Protocol) else protocol_of(protocol, target)
    known = calibration or frozen()
    return [_predict(programs, target, batch, path, known, planner) for batch in batch_sizes]


def _predict(
    programs: Callable[[int], Program],
    target: Target,
    batch: int,
    protocol: Protocol,
    known: Calibration,
    planner: Planner,
) -> Prediction:
    if batch < 1 or batch % target.chips:
        raise InconsistentModelError(
            f"batch {batch} cannot be dealt evenly to the {target.chips} chips of {target.name}"
        )
    micro = batch // target.chips
    program = programs(micro)
    machine = target.changed(tiles=target.tiles - protocol.io_tiles) if protocol.io_tiles else target
    plan = schedule(program, machine, planner)
    cycles, count = plan.cycles, plan.supersteps

    def timed(numbers: Fit) -> Timing:
        device = (cycles + count * numbers.superstep) / target["clock"]
        return timing(device, program, target, protocol, numbers.per_image)

    found = timed(known.fit)
    latencies = [found.latency, *(timed(one).latency for one in known.jackknife)]
    supersteps = count * known.fit.superstep
    total = cycles + supersteps
    return Prediction(
        target=target.name,
        protocol=protocol.name,
        batch_size=batch,
        micro_batch_size=micro,
        throughput=batch / found.period,
        latency_ms=found.latency * MS,
        latency_ms_low=min(latencies) * MS,
        latency_ms_high=max(latencies) * MS,
        device_ms=found.device * MS,
        protocol_ms=found.protocol * MS,
        compute_share=sum(step.compute + step.reduce for step in plan.steps) / total,
        exchange_share=sum(step.exchange for step in plan.steps) / total,
        superstep_share=supersteps / total,
        power_w=_power(program, target, found),
        memory_verdict=verdict(program, plan, machine),
        calibration_id=known.id,
        schedule=plan,
        timing=found,
    )


def _power(program: Program, target: Target, found: Timing) -> float | None:
    """Watts of the card, ± 10 % and not validated; null where no power row of the machine exists."""
    if "power.idle" not in target:
        return None
    return target["power.idle"] + target["power.mac"] * program.macs * target.chips / found.period
