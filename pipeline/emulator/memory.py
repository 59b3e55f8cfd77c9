"""Whether a program fits the chip's memory, with room for what the estimate does not know."""

from __future__ import annotations

from typing import Literal

from pipeline.emulator.operators import Program, live_elements
from pipeline.emulator.schedule import Schedule
from pipeline.emulator.split import HALF
from pipeline.emulator.target import Target

Verdict = Literal["FITS", "UNCERTAIN", "DOES-NOT-FIT"]
CODE_BAND = 0.1  # code and exchange state are "about" 110 bytes a superstep and tile: 100 to 120


def verdict(program: Program, plan: Schedule, target: Target) -> Verdict:
    """UNCERTAIN where the answer depends on how much code a superstep is."""
    data, code = data_bytes(program, plan, target), code_bytes(plan, target)
    if data + code * (1 + CODE_BAND) <= target["sram"]:
        return "FITS"
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
