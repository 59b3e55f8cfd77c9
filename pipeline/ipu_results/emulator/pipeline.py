"""Cut a program into the stages of a pipeline, count what they keep, and time the sum of the
gradients.

Sums run over the links of a machine, of a pod and between pods.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from ipu_results.emulator import operators as ops
from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.target import Target
from ipu_results.errors import InconsistentModelError


@dataclass(frozen=True, slots=True)
class ReplicaLayout:
    """Where the replicas are: how many share a machine, how many groups of machines a pod has, and
    how many pods.

    Replicas fill a machine before the next one begins. A group is as many machines as a replica
    needs.
    """

    in_machine: int
    groups: int
    pods: int


def arrange_replicas(replicas: int, chips_each: int, target: Target) -> ReplicaLayout:
    """Place replicas of `chips_each` chips on machines and pods of the target."""
    in_machine = min(replicas, max(1, target.chips // chips_each))
    machines_each = max(1, ceil_div(chips_each, target.chips))  # of a group
    groups = ceil_div(replicas, in_machine)
    pods = ceil_div(groups * machines_each, int(target["pod.machines"]))
    return ReplicaLayout(in_machine, ceil_div(groups, pods), pods)


def estimate_all_reduce(gradients: float, replicas: int, chips_each: int, target: Target) -> float:
    """Return the seconds in which all replicas sum `gradients` bytes of each chip, and all get the
    sum.

    A ring of n parts sends 2 · (n − 1) / n of the data over each of its links. Rings are one inside
    another: chips of a machine first, then machines of a pod with what each chip has left, then
    pods. Thakur et al. 2005.
    """
    layout = arrange_replicas(replicas, chips_each, target)
    sharing = (
        target.chips
        if chips_each * layout.in_machine >= target.chips
        else chips_each * layout.in_machine
    )
    # after the scatter within the machine, on all of its chips
    of_machine = gradients * sharing / layout.in_machine
    rings = (
        (layout.in_machine, gradients, target["link.chip"]),
        (layout.groups, of_machine, target["link.machine"]),
        (layout.pods, of_machine / layout.groups, target["link.pod"]),
    )
    return sum(
        2 * (parts - 1) * (size / (parts * rate) + target["link.start"])
        for parts, size, rate in rings
    )


# what is computed again starts from the inputs of each layer, or of each stage
Recompute = Literal["layer", "stage"]
# the gradient needs no more than the result that follows
IN_PLACE = frozenset({"add", "relu", "sub"})


def count_activations(
    program: ops.Program,
    mine: Sequence[Stage],
    stages: Sequence[Stage],
    recompute: Recompute | None,
) -> int:
    """Count the elements that the stages of one chip keep.

    A stage that is computed again keeps the inputs of its layers, or its own, for each micro-batch
    under way. While it goes back, the results of one layer at a time exist, or of the whole stage,
    on top. The last stage, and all without recomputation, keep every result.
    """
    kept = 0
    again = [0]
    for stage in mine:
        # micro-batches between their forward and their backward pass
        under_way = (
            2 * (len(stages) - 1 - stages.index(stage)) + 1 if count_chips(stages) > 1 else 1
        )
        if recompute is None or not is_computed_again(stage, stages):
            kept += under_way * _count_results(program, stage)
            continue
        starts = list_layer_starts(program, stage) if recompute == "layer" else [stage.start]
        parts = [Stage(start, stop, stage.chip) for start, stop in pairwise([*starts, stage.stop])]
        kept += under_way * sum(_count_inputs(program, part) for part in parts)
        again += [_count_results(program, part) for part in parts]
    return kept + max(again)


def _count_inputs(program: ops.Program, part: Stage) -> int:
    images = sum(tensor.elements for tensor in program.inputs) if part.start == 0 else 0
    return images + sum(program.operators[at].elements for at in list_inputs(program, part))


def _count_results(program: ops.Program, part: Stage) -> int:
    return sum(_count_kept(operator) for operator in program.operators[part.start : part.stop])


def _count_kept(operator: ops.Operator) -> int:
    """Count what the gradient needs. Data that were only moved can be moved again."""
    moved = isinstance(operator, ops.Rearrangement) or (
        isinstance(operator, ops.Elementwise) and operator.kind in IN_PLACE
    )
    return 0 if moved else operator.elements


# the chip of what follows the last layer: a stage of its own on the first, or the last
Head = Literal["first", "last"]
LAYER = re.compile(r"layer(\d+)\b")  # in the names of the operators of the built-in transformers
# a layer of these, or a block of the built-in convolutional networks
PART = re.compile(r"layer\d+\b|stage\d+\.\d+\b")


@dataclass(frozen=True, slots=True)
class Stage:
    """The operators from `start` to before `stop`, and the chip of the replica that computes them."""

    start: int
    stop: int
    chip: int


def cut_at_layers(program: ops.Program, layers: Sequence[int], head: Head) -> tuple[Stage, ...]:
    """Give each chip as many layers as `layers` says.

    What precedes the first layer is on the first chip.
    """
    matches = [LAYER.match(operator.name) for operator in program.operators]
    numbers = [int(match[1]) if match else None for match in matches]
    count = max((number + 1 for number in numbers if number is not None), default=0)
    if sum(layers) != count:
        message = f"{sum(layers)} layers on chips, but the network has {count}"
        raise InconsistentModelError(message, document=program.name)
    firsts = [0] * len(layers)
    for chip, first in enumerate((0, *accumulate(layers))[:-1]):
        firsts[chip] = (
            next((at for at, number in enumerate(numbers) if number == first), len(numbers))
            if chip
            else 0
        )
    ends = [*firsts[1:], len(numbers)]
    stages = [
        Stage(start, stop, chip)
        for chip, (start, stop) in enumerate(zip(firsts, ends, strict=True))
    ]
    if head == "last":
        return tuple(stages)
    after = 1 + max(at for at, number in enumerate(numbers) if number is not None)
    last = stages[-1]
    return (*stages[:-1], Stage(last.start, after, last.chip), Stage(after, last.stop, 0))


def list_layer_starts(program: ops.Program, stage: Stage) -> list[int]:
    """List where a layer or block begins within a stage, and the stage's own start first."""
    matches = [
        PART.match(operator.name) for operator in program.operators[stage.start : stage.stop]
    ]
    names = [match and match[0] for match in matches]
    changes = (
        at for at in range(1, len(names)) if names[at] is not None and names[at] != names[at - 1]
    )
    return [stage.start, *(stage.start + at for at in changes)]


def list_inputs(program: ops.Program, stage: Stage) -> set[int]:
    """List the operators of earlier stages, or earlier parts, whose results a stage reads."""
    inside = range(stage.start, stage.stop)
    return {source for at in inside for source in program.sources[at] if 0 <= source < stage.start}


def cut_at_operators(
    program: ops.Program, names: Sequence[str], *, one_chip: bool = False
) -> tuple[Stage, ...]:
    """Begin a stage after each named operator, on the next chip or on the same, where only
    recomputation sees it.

    Raises InconsistentModelError for an unknown name.
    """
    positions = {operator.name: at for at, operator in enumerate(program.operators)}
    for name in names:
        if name not in positions:
            raise InconsistentModelError(
                "is not an operator to cut after", document=program.name, place=name
            )
    cuts = [0, *sorted(positions[name] + 1 for name in names), len(program.operators)]
    return tuple(
        Stage(start, stop, 0 if one_chip else at) for at, (start, stop) in enumerate(pairwise(cuts))
    )


def cut_evenly(program: ops.Program, chips: int) -> tuple[Stage, ...]:
    """Give each chip about the same multiply-accumulates."""
    macs = [
        each.macs if isinstance(each, ops.Convolution | ops.Gemm) else 0
        for each in program.operators
    ]
    done = list(accumulate(macs))
    total = sum(macs)
    if chips > sum(1 for count in macs if count):
        message = f"{chips} stages are more than its {sum(1 for count in macs if count)} products"
        raise InconsistentModelError(message, document=program.name)
    cuts = [0]
    for chip in range(1, chips):
        cuts.append(
            max(
                cuts[-1] + 1,
                next(at for at, sum_ in enumerate(done) if sum_ >= total * chip / chips),
            )
        )
    return tuple(
        Stage(start, stop, chip) for chip, (start, stop) in enumerate(pairwise([*cuts, len(macs)]))
    )


def is_computed_again(stage: Stage, stages: Sequence[Stage]) -> bool:
    """Check whether recomputation concerns a stage.

    The backward pass of a pipeline's last follows at once.

    Stages of one chip run one after another, forward and then back, so all are computed again.

    Source: graphcore/tensorflow, pipeline_recomputation.cc and, for grouped schedules,
    pipeline_recomputation_stage_inserter.cc.
    """
    return count_chips(stages) == 1 or stage is not stages[-1]


def count_chips(stages: Sequence[Stage]) -> int:
    """Count the chips of one replica."""
    return 1 + max(stage.chip for stage in stages)


def count_rounds(stages: Sequence[Stage], accumulation: int) -> int:
    """Count how long the slowest chip's micro-batch is waited for in a step: once a micro-batch,
    and to fill and drain.

    Filling takes a forward pass of each further stage and draining a backward pass, together one
    round each. A single chip fills nothing.
    """
    return accumulation + (len(stages) - 1 if count_chips(stages) > 1 else 0)
