"""Profile a prediction: what each operator takes of the time, the peak rate, the memory and the energy."""

from __future__ import annotations

from dataclasses import dataclass

from ipu_results.emulator.baselines import compute_mac_rate
from ipu_results.emulator.memory import list_data_bytes
from ipu_results.emulator.operators import Program, count_live_elements
from ipu_results.emulator.prediction import Prediction
from ipu_results.emulator.schedule import OperatorCost
from ipu_results.emulator.target import Target


@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """One operator on one chip: seconds from the batch's start, bytes, and joules of all chips.

    `peak_share` is the share of the chip's peak rate of multiply-accumulates that the operator achieves, from 0 to 1;
    None for one that multiplies no matrices. `live_bytes` are the activations of the chip, `tile_bytes` weights,
    activations, temporaries and code of the fullest tile. `energy_j` is None where no power of the machine is known.
    """

    step: OperatorCost
    start: float
    compute: float
    exchange: float
    sync: float
    peak_share: float | None
    live_bytes: float
    tile_bytes: float
    energy_j: float | None

    @property
    def seconds(self) -> float:
        return self.compute + self.exchange + self.sync


def profile_operators(
    prediction: Prediction, program: Program, target: Target, superstep: float, io_tiles: int = 0
) -> list[OperatorProfile]:
    """Profile the operators in the order in which they run. `superstep` is the cost of a superstep in cycles.

    `target` is the machine with all its tiles, `io_tiles` of which hold and compute nothing. The share of peak is that
    of the whole chip.
    """
    clock, plan = target["clock"], prediction.schedule
    peak = compute_mac_rate(target) * target.tiles * clock
    chips = prediction.batch_size // prediction.micro_batch_size
    code = target["memory.superstep"] * plan.code_supersteps
    holding = target.with_constants(tiles=target.tiles - io_tiles) if io_tiles else target
    live, data = count_live_elements(program), list_data_bytes(program, plan, holding)
    profiles: list[OperatorProfile] = []
    start = 0.0
    for step, elements, held in zip(plan.steps, live, data, strict=True):
        compute, exchange = (step.compute + step.reduce) / clock, step.exchange / clock
        sync = step.supersteps * superstep / clock
        seconds = compute + exchange + sync
        profiles.append(
            OperatorProfile(
                step,
                start,
                compute,
                exchange,
                sync,
                step.macs / (seconds * peak) if step.macs and seconds else None,
                elements * target["element.bytes"],
                held + code,
                _estimate_energy(step, seconds, target, chips),
            )
        )
        start += seconds
    return profiles


def _estimate_energy(step: OperatorCost, seconds: float, target: Target, chips: int) -> float | None:
    """Return joules of the card: its idle power while the operator runs, and the multiply-accumulates of all chips."""
    if "power.idle" not in target:
        return None
    return target["power.idle"] * seconds + target["power.mac"] * step.macs * chips
