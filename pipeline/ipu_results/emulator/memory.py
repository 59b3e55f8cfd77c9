"""Estimate whether a program fits the chip's memory, with room for what the estimate does not know."""

from __future__ import annotations

from typing import Literal

from ipu_results.emulator.operators import Program, count_live_elements, count_peak_elements
from ipu_results.emulator.schedule import Schedule
from ipu_results.emulator.target import Target

Verdict = Literal["FITS", "UNCERTAIN", "DOES-NOT-FIT"]
CODE_BAND = 0.1  # code and exchange state are "about" 110 bytes a superstep and tile: 100 to 120
DEFAULT_PROPORTION = 0.6  # of availableMemoryProportion in poplibs
SERIAL_PROPORTION = 0.05  # assumed: what temporaries come down to where a product is computed in parts


def assess_memory(program: Program, plan: Schedule, target: Target) -> Verdict:
    """Return UNCERTAIN where the answer depends on how much code a superstep is, or on splits in time.

    On Mk2 the vendor's planner may compute a product in parts, one after another, which this search does not do: a
    program that fits only that way is UNCERTAIN, and would be slower. On C2 the paper's recipe fixes what it may use.
    """
    # Every tile holds code and exchange state of every superstep.
    code = target["memory.superstep"] * plan.code_supersteps
    weights = program.parameters * target["element.bytes"] / target.tiles
    data = max(list_data_bytes(program, plan, target), default=weights)
    if data + code * (1 + CODE_BAND) <= target["sram"]:
        return "FITS"
    if target["plan.memory"] >= DEFAULT_PROPORTION:
        held = (program.parameters + count_peak_elements(program)) * target["element.bytes"] / target.tiles
        data = min(data, held + SERIAL_PROPORTION * target["sram"])
    return "UNCERTAIN" if data + code * (1 - CODE_BAND) <= target["sram"] else "DOES-NOT-FIT"


def list_data_bytes(program: Program, plan: Schedule, target: Target) -> list[float]:
    """Estimate the bytes of the fullest tile while each operator runs: weights, its live activations and temporaries.

    Weights and activations are spread evenly. An operator's slices and partials are freed before the next one runs.
    """
    live = count_live_elements(program)
    return [
        (program.parameters + elements) * target["element.bytes"] / target.tiles + step.temporary
        for elements, step in zip(live, plan.steps, strict=True)
    ]
