"""Cut a program into the stages of a pipeline, count what they keep, and time the sum of the
gradients.

Sums run over the links of a machine, of a pod and between pods.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal

from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.operators import (
    Elementwise,
    Operator,
    Product,
    Program,
    Rearrangement,
)
from ipu_results.emulator.target import Target
from ipu_results.errors import InconsistentModelError


def estimate_all_reduce(
    gradients: float, replicas: int, replica_chips: int, target: Target
) -> float:
    """Return the seconds in which all replicas sum `gradients` bytes of each chip, and all get the
    sum.

    A ring of n parts sends 2 · (n − 1) / n of the data over each of its links. Rings are one inside
    another: chips of a machine first, then machines of a pod with what each chip has left, then
    pods. Thakur et al. 2005.
    """
    # Replicas fill a machine before the next one begins. A group is as many machines as a replica
    # needs.
    in_machine = min(replicas, max(1, target.chips // replica_chips))
    groups = ceil_div(replicas, in_machine)
    machines = groups * ceil_div(replica_chips, target.chips)
    pods = ceil_div(machines, int(target["pod.machines"]))
    in_pod = ceil_div(groups, pods)
    # The ring within a machine leaves each chip a part of its gradients to sum with other machines.
    used_chips = min(target.chips, replica_chips * in_machine)
    machine_bytes = gradients * used_chips / in_machine
    pod_bytes = machine_bytes / in_pod
    seconds = _time_ring(in_machine, gradients, target["link.chip"], target)
    seconds += _time_ring(in_pod, machine_bytes, target["link.machine"], target)
    seconds += _time_ring(pods, pod_bytes, target["link.pod"], target)
    return seconds


def _time_ring(parts: int, size: float, rate: float, target: Target) -> float:
    """Return the seconds of a ring of `parts` that sum `size` bytes at `rate` bytes per second."""
    turn = size / (parts * rate) + target["link.start"]
    return 2 * (parts - 1) * turn


@dataclass(frozen=True, slots=True)
class Stage:
    """The operators from `start` to before `stop`, and the replica's chip that computes them."""

    start: int
    stop: int
    chip: int

    def select(self, program: Program) -> tuple[Operator, ...]:
        return program.operators[self.start : self.stop]


# what is computed again starts from the inputs of each layer, or of each stage
Recompute = Literal["layer", "stage"]
# the gradient needs no more than the result that follows
IN_PLACE = ("add", "relu", "sub")


def count_activations(
    program: Program, mine: Sequence[Stage], stages: Sequence[Stage], recompute: Recompute | None
) -> int:
    """Count the elements that the stages of one chip keep.

    The last stage, and all without recomputation, keep every result of each micro-batch under way.
    A stage that is computed again keeps the inputs of its layers alone, or its own. Going back, it
    has the results of one layer at a time, or of the whole stage, on top.
    """
    is_pipeline = count_chips(stages) > 1
    kept = 0
    most_again = 0
    for stage in mine:
        # micro-batches between their forward and their backward pass
        under_way = 1
        if is_pipeline:
            later = len(stages) - 1 - stages.index(stage)
            under_way = 2 * later + 1
        if recompute is None or not is_computed_again(stage, stages):
            kept += under_way * _count_results(program, stage)
            continue
        starts = [stage.start]
        if recompute == "layer":
            starts = list_layer_starts(program, stage)
        # The chips of these do not matter.
        for part in _list_stages(starts, stage.stop):
            kept += under_way * _count_inputs(program, part)
            most_again = max(most_again, _count_results(program, part))
    return kept + most_again


def _count_inputs(program: Program, part: Stage) -> int:
    read = list_inputs(program, part)
    count = sum(program.operators[at].elements for at in read)
    if part.start == 0:
        count += sum(tensor.elements for tensor in program.inputs)
    return count


def _count_results(program: Program, part: Stage) -> int:
    """Count what the gradients need. Data that were only moved can be moved again."""
    count = 0
    for operator in part.select(program):
        in_place = isinstance(operator, Elementwise) and operator.kind in IN_PLACE
        if not in_place and not isinstance(operator, Rearrangement):
            count += operator.elements
    return count


# the chip of what follows the last layer: a stage of its own on the first, or the last
Head = Literal["first", "last"]
LAYER = re.compile(r"layer(\d+)\b")  # in the names of the operators of the built-in transformers
# a layer of these, or a block of the built-in convolutional networks
PART = re.compile(r"layer\d+\b|stage\d+\.\d+\b")


def _list_stages(starts: Sequence[int], stop: int) -> list[Stage]:
    """List stages that begin at `starts`, each on the next chip."""
    bounds = pairwise((*starts, stop))
    return [Stage(first, after, chip) for chip, (first, after) in enumerate(bounds)]


def cut_at_layers(program: Program, layers: Sequence[int], head: Head) -> list[Stage]:
    """Give each chip as many layers as `layers` says.

    What precedes the first layer is on the first chip.
    """
    firsts: dict[int, int] = {}  # the first operator of each layer
    after = 0  # the first operator behind all layers
    for at, operator in enumerate(program.operators):
        match = LAYER.match(operator.name)
        if match:
            firsts.setdefault(int(match[1]), at)
            after = at + 1
    count = 1 + max(firsts, default=-1)
    if sum(layers) != count:
        message = f"{sum(layers)} layers on chips, but the network has {count}"
        raise InconsistentModelError(message, document=program.name)
    stop = len(program.operators)
    starts = [0]
    # Each sum is the first layer of the next chip. Chips without layers may be last.
    for layer in accumulate(layers[:-1]):
        starts.append(firsts.get(layer, stop))
    stages = _list_stages(starts, stop)
    if head == "first":
        # The last chip ends with its layers, and the first computes what follows.
        last = stages.pop()
        stages.append(Stage(last.start, after, last.chip))
        stages.append(Stage(after, stop, chip=0))
    return stages


def list_layer_starts(program: Program, stage: Stage) -> list[int]:
    """List where a layer or block begins within a stage, and the stage's own start first."""
    starts = {stage.start}
    before = ""
    for at, operator in enumerate(stage.select(program), stage.start):
        match = PART.match(operator.name)
        name = match[0] if match else ""
        if name not in ("", before):
            starts.add(at)
        before = name
    return sorted(starts)


def list_inputs(program: Program, stage: Stage) -> set[int]:
    """List the operators of earlier stages, or earlier parts, whose results a stage reads."""
    read = set().union(*program.sources[stage.start : stage.stop])
    return {source for source in read if 0 <= source < stage.start}


def cut_at_operators(
    program: Program, names: Sequence[str], *, one_chip: bool = False
) -> list[Stage]:
    """Begin a stage after each named operator, on the next chip.

    With `one_chip` all are on one, and recomputation alone tells them apart.

    Raises InconsistentModelError for an unknown name.
    """
    positions = {operator.name: at for at, operator in enumerate(program.operators)}
    for name in names:
        if name not in positions:
            message = "is not an operator to cut after"
            raise InconsistentModelError(message, document=program.name, place=name)
    cuts = sorted(positions[name] + 1 for name in names)
    stages = _list_stages([0, *cuts], len(program.operators))
    if one_chip:
        return [replace(stage, chip=0) for stage in stages]
    return stages


def cut_evenly(program: Program, chips: int) -> list[Stage]:
    """Give each chip about the same multiply-accumulates."""
    macs = [each.macs if isinstance(each, Product) else 0 for each in program.operators]
    products = len(macs) - macs.count(0)
    if chips > products:
        message = f"{chips} stages are more than its {products} products"
        raise InconsistentModelError(message, document=program.name)
    total = sum(macs)
    starts = [0]
    done = 0
    for at, count in enumerate(macs):
        done += count
        # With this operator the chips so far would have their shares: the next chip begins here.
        while len(starts) < chips and done >= total * len(starts) / chips:
            starts.append(max(starts[-1] + 1, at))
    return _list_stages(starts, len(macs))


def is_computed_again(stage: Stage, stages: Sequence[Stage]) -> bool:
    """Check whether recomputation concerns a stage.

    The last stage of a pipeline goes back at once, so it is not computed again.

    Stages of one chip run one after another, forward and then back, so all are computed again.

    Source: graphcore/tensorflow, pipeline_recomputation.cc and, for grouped schedules,
    pipeline_recomputation_stage_inserter.cc.
    """
    return count_chips(stages) == 1 or stage is not stages[-1]


def count_chips(stages: Sequence[Stage]) -> int:
    """Count the chips of one replica."""
    return 1 + max(stage.chip for stage in stages)


def count_rounds(stages: Sequence[Stage], accumulation: int) -> int:
    """Count the rounds of a step, each as long as the slowest chip's micro-batch: one for each
    micro-batch, and those that fill and drain the pipeline.

    Filling takes a forward pass of each further stage and draining a backward pass, together one
    round each. A single chip fills nothing.
    """
    if count_chips(stages) == 1:
        return accumulation
    return accumulation + len(stages) - 1
