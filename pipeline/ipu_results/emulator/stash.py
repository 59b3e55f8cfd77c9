"""Count the activations that a chip keeps from the forward pass for the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from ipu_results.emulator.operators import Elementwise, Operator, Program, Rearrangement
from ipu_results.emulator.pipeline import Stage, count_chips, is_computed_again, list_inputs, list_layer_starts

Recompute = Literal["layer", "stage"]  # what is computed again starts from the inputs of each layer, or of each stage
IN_PLACE = frozenset({"add", "relu", "sub"})  # the gradient needs no more than the result that follows


def count_activations(
    program: Program, mine: Sequence[Stage], stages: Sequence[Stage], recompute: Recompute | None
) -> int:
    """Count the elements that the stages of one chip keep.

    A stage that is computed again keeps the inputs of its layers, or its own, for each micro-batch under way. While
    it goes back, the results of one layer at a time exist, or of the whole stage, on top. The last stage, and all
    without recomputation, keep every result.
    """
    kept, again = 0, [0]
    for stage in mine:
        under_way = count_under_way(stage, stages)
        if recompute is None or not is_computed_again(stage, stages):
            kept += under_way * _count_results(program, stage)
            continue
        starts = list_layer_starts(program, stage) if recompute == "layer" else [stage.start]
        parts = [Stage(start, stop, stage.chip) for start, stop in pairwise([*starts, stage.stop])]
        kept += under_way * sum(_count_inputs(program, part) for part in parts)
        again += [_count_results(program, part) for part in parts]
    return kept + max(again)


def count_under_way(stage: Stage, stages: Sequence[Stage]) -> int:
    """Count the micro-batches that are between their forward and their backward pass through a stage."""
    return 2 * (len(stages) - 1 - stages.index(stage)) + 1 if count_chips(stages) > 1 else 1


def _count_inputs(program: Program, part: Stage) -> int:
    images = sum(tensor.elements for tensor in program.inputs) if part.start == 0 else 0
    return images + sum(program.operators[at].elements for at in list_inputs(program, part))


def _count_results(program: Program, part: Stage) -> int:
    return sum(_count_kept(operator) for operator in program.operators[part.start : part.stop])


def _count_kept(operator: Operator) -> int:
    """Count what the gradient needs. Data that were only moved can be moved again."""
    moved = isinstance(operator, Rearrangement) or (isinstance(operator, Elementwise) and operator.kind in IN_PLACE)
    return 0 if moved else operator.elements
