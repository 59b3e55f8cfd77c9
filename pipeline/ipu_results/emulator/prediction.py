"""Predict what a batch takes on a machine: time with a band, its parts, power and memory. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ipu_results.emulator.operators import Program
from ipu_results.emulator.pipeline import Verdict, assess_memory
from ipu_results.emulator.protocol import Protocol, Timing, compute_timing, count_replicas, select_protocol
from ipu_results.emulator.schedule import Planner, Schedule, schedule
from ipu_results.emulator.split import plan_split
from ipu_results.emulator.target import Calibration, Fit, Target, load_calibration, load_target
from ipu_results.errors import InconsistentModelError
from ipu_results.ground import physics

MS = physics.MS_PER_S


@dataclass(frozen=True, slots=True)
class Prediction:
    """One batch over the whole machine, always `emulated`, never measured.

    Times are in milliseconds, throughput in items per second, power in watts. `latency_ms_low` and `_high` are the band
    of the fits without one row and of those at both ends of the range of κ. The shares are of the time on the chip.
    `timing` holds the same times in seconds. `settings` is what the user changed on the machine.
    """

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
    clock: float
    settings: str | None = None

    @property
    def origin(self) -> Literal["emulated"]:
        return "emulated"


def predict(
    programs: Callable[[int], Program],
    target: Target,
    batch_sizes: Sequence[int],
    protocol: str | Protocol | None = None,
    calibration: Calibration | None = None,
    planner: Planner = plan_split,
) -> list[Prediction]:
    """Predict each total batch, shared evenly by the chips. `programs` returns the network at a micro-batch.

    `planner` may be a PlanCache, which remembers between processes. Raises InconsistentModelError for a batch that the
    chips cannot share evenly, and UnrecognisedModelError for a protocol that the target does not have.
    """
    host_path = protocol if isinstance(protocol, Protocol) else select_protocol(protocol, target)
    known = calibration or load_calibration()
    return [_predict(programs, target, batch, host_path, known, planner) for batch in batch_sizes]


def _predict(
    programs: Callable[[int], Program],
    target: Target,
    batch: int,
    protocol: Protocol,
    known: Calibration,
    planner: Planner,
) -> Prediction:
    chips = count_replicas(protocol, target)
    if batch < 1 or batch % chips:
        raise InconsistentModelError(f"batch {batch} is not a multiple of the {chips} chips of {target.name}")
    micro = batch // chips
    program = programs(micro)
    # I/O tiles move data and compute nothing.
    machine = target.with_constants(tiles=target.tiles - protocol.io_tiles) if protocol.overlapped else target
    plan = schedule(program, machine, planner)
    cycles, count = plan.cycles, plan.supersteps
    # A machine that the user changed is not calibrated again, so its superstep differs from the fit's by as much.
    change = target["superstep.cycles"] - load_target(target.base)["superstep.cycles"] if target.settings else 0.0

    def time_with(fit: Fit) -> Timing:
        device = (cycles + count * (fit.superstep + change)) / target["clock"]
        return compute_timing(device, program, target, protocol, fit)

    # The fit to all rows decides the figure, the other fits its band.
    timing = time_with(known.fit)
    latencies = [timing.latency, *(time_with(fit).latency for fit in (*known.jackknife, *known.ends))]
    supersteps = count * (known.fit.superstep + change)
    total = cycles + supersteps
    return Prediction(
        target=target.name,
        protocol=protocol.name,
        batch_size=batch,
        micro_batch_size=micro,
        throughput=batch / timing.period,
        latency_ms=timing.latency * MS,
        latency_ms_low=min(latencies) * MS,
        latency_ms_high=max(latencies) * MS,
        device_ms=timing.device * MS,
        protocol_ms=timing.protocol * MS,
        compute_share=sum(step.compute + step.reduce for step in plan.steps) / total,
        exchange_share=sum(step.exchange for step in plan.steps) / total,
        superstep_share=supersteps / total,
        power_w=_estimate_power(program, target, chips, timing),
        memory_verdict=assess_memory(program, plan, machine),
        calibration_id=known.id,
        schedule=plan,
        timing=timing,
        clock=target["clock"],
        settings=target.settings or None,
    )


def _estimate_power(program: Program, target: Target, chips: int, timing: Timing) -> float | None:
    """Return watts of the card, ± 10 % and not validated, or None where no power of the machine was published."""
    if "power.idle" not in target:
        return None
    return target["power.idle"] + target["power.mac"] * program.macs * chips / timing.period
