"""Whether a program fits the chip's memory, with room for what the estimate does not know."""

from __future__ import annotations

from typing import Literal

from ipu_results.emulator.operators import Program, live_elements, peak_live_elements
from ipu_results.emulator.schedule import Schedule
from ipu_results.emulator.split import HALF
from ipu_results.emulator.target import Target

Verdict = Literal["FITS", "UNCERTAIN", "DOES-NOT-FIT"]
CODE_BAND = 0.1  # code and exchange state are "about" 110 bytes a superstep and tile: 100 to 120
DEFAULT_PROPORTION = 0.6
SERIAL_PROPORTION = 0.05  # assumed: what temporaries come down to where a product is computed in parts


def verdict(program: Program, plan: Schedule, target: Target) -> Verdict:
    """UNCERTAIN where the answer depends on how much code a superstep is, or on splits in time.

    On Mk2 the vendor's planner may compute a product in parts, one after another, which this search does not do: a
    program that fits only so is UNCERTAIN, and would take longer. On C2 the paper's recipe fixes what it may use.
    """
    code = code_bytes(plan, target)
    data = data_bytes(program, plan, target)
    if data + code * (1 + CODE_BAND) <= target["sram"]:
        return "FITS"
    if target["plan.memory"] >= DEFAULT_PROPORTION:
        held = (program.constants + peak_live_elements(program)) * HALF / target.tiles
        data = min(data, held + SERIAL_PROPORTION * target["sram"])
    return "UNCERTAIN" if data + code * (1 - CODE_BAND) <= target["sram"] else "DOES-NOT-FIT"


def bytes_per_tile(program: Program, plan: Schedule, target: Target) -> float:
    return data_bytes(program, plan, target) + code_bytes(plan, target)


def data_bytes(program: Program, plan: Schedule, target: Target) -> float:
    """Bytes of the fullest tile: weights always, and the worst operator's live activations and temporaries.

    Weights and activations are spread evenly. Activations and temporaries are those of the same operator: its slices
    and partials are gone when the next one runs, so the most of one is not added to the most of the other.
    """
    live = live_elements(program)
    each = (elements * HALF / target.tiles + step.temporary for elements, step in zip(live, plan.steps, strict=True))
    return program.constants * HALF / target.tiles + max(each, default=0.0)


def code_bytes(plan: Schedule, target: Target) -> float:
    """Code and exchange state, which every tile holds for every superstep."""
    return target["memory.superstep"] * plan.supersteps
