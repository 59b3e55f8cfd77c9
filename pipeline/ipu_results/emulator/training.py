"""Predict a training step: passes of a micro-batch, pipeline, accumulation, sum over replicas and update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.operators import Convolution, Gemm, Operator, Program, Rearrangement
from ipu_results.emulator.pipeline import (
    Recompute,
    Stage,
    count_activations,
    count_chips,
    count_rounds,
    cut_evenly,
    estimate_all_reduce,
    is_computed_again,
    list_inputs,
)
from ipu_results.emulator.prediction import CODE_BAND, MS, SERIAL_PROPORTION, Verdict
from ipu_results.emulator.schedule import Gradients, OperatorCost, Planner, cost_gradient, derive_gradients, schedule
from ipu_results.emulator.split import plan_split
from ipu_results.emulator.target import Calibration, Constant, Target, load_calibration, load_target, read_toml
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

TRAINING_FILE = "training.toml"
TRAINED = ("m2000", "bow-2000")  # machines with links to others and a memory of their own
NORM = "batchnorm"
BYTE_BITS = 8
MOMENT_BYTES = 8  # of a parameter: two moments in fp32
CutStages = Callable[[Program], tuple[Stage, ...]]


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """How a training step is run.

    `accumulation` micro-batches of each replica make a step. `recompute` computes activations again in the backward
    pass, from the inputs of each layer or stage, but for the last stage. `proportions` are availableMemoryProportion,
    one for all chips or one each, none for the machine's default. `offchip` keeps the optimizer's state outside the
    chip. `items` are in one sample, more than one where sequences are packed. `input_bits` is the size of an input
    element. `io_tiles` move data while the others compute.
    """

    micro_batch: int
    replicas: int = 1
    accumulation: int = 1
    recompute: Recompute | None = None
    proportions: tuple[float, ...] = ()
    offchip: bool = False
    instances: int | None = None
    items: float = 1.0
    input_bits: int = 16
    io_tiles: int = 0


@dataclass(frozen=True, slots=True)
class ChipLoad:
    """What one chip does with one micro-batch, in seconds, and what it holds, in bytes of its fullest tile."""

    forward: float
    recompute: float
    backward: float
    accumulate: float
    transfer: float
    memory: float
    memory_high: float
    parameters: int

    @property
    def seconds(self) -> float:
        return self.forward + self.recompute + self.backward + self.accumulate + self.transfer


@dataclass(frozen=True, slots=True)
class TrainingPrediction:
    """One training step, always `emulated`, never measured. Times in seconds, throughput in items per second.

    `round_s` is the micro-batch of the slowest chip, or what the host needs to send one. A step is `rounds` of them,
    then `all_reduce_s`, `update_s` and `offload_s`. `bubble_share` is the part of the rounds that fills and drains.
    """

    target: str
    chips: int
    stages: int
    batch_size: int
    throughput: float
    step_s: float
    round_s: float
    rounds: int
    bubble_share: float
    all_reduce_s: float
    update_s: float
    offload_s: float
    host_bound: bool
    memory_verdict: Verdict
    memory_share: float
    calibration_id: str
    loads: tuple[ChipLoad, ...]
    settings: str | None = None

    @property
    def origin(self) -> Literal["emulated"]:
        return "emulated"


@cache
def load_training_constants() -> tuple[tuple[str, Constant], ...]:
    entries = read_toml(TRAINING_FILE)["constants"]
    return tuple(
        (name, Constant(**{**entry, "range": tuple(entry["range"]) if "range" in entry else None}))
        for name, entry in entries.items()
    )


def extend_target(target: Target) -> Target:
    """Add the constants of training to a machine; those it has already are kept.

    Raises UnrecognisedModelError for a machine without links to others.
    """
    if target.base not in TRAINED:
        message = f"training is predicted for {' and '.join(TRAINED)}, not for {target.name}"
        raise UnrecognisedModelError(message, document=target.name)
    new = tuple((name, constant) for name, constant in load_training_constants() if name not in target)
    return replace(target, constants=(*target.constants, *new))


def load_training_target(name: str) -> Target:
    """Load a machine with the constants of training."""
    return extend_target(load_target(name))


def predict_training(
    programs: Callable[[int], Program],
    target: Target,
    setup: TrainingSetup,
    cut: CutStages | None = None,
    calibration: Calibration | None = None,
    planner: Planner = plan_split,
    superstep: float | None = None,
) -> TrainingPrediction:
    """Predict a step. `cut` returns the stages, by default one chip. `superstep` replaces the cycles of one.

    Raises InconsistentModelError for a setup that does not fit the network.
    """
    known = calibration or load_calibration()
    machine = extend_target(target)
    program = programs(setup.micro_batch)
    stages = cut(program) if cut else cut_evenly(program, 1)
    chips = count_chips(stages)
    if len(setup.proportions) not in (0, 1, chips):
        message = f"{len(setup.proportions)} proportions of memory do not suit {chips} chips"
        raise InconsistentModelError(message, document=program.name)
    cost = _Costs(program, machine, planner, machine["superstep.cycles"] if superstep is None else superstep)
    loads = tuple(_load_chip(chip, stages, setup, cost) for chip in range(chips))
    rounds = count_rounds(stages, setup.accumulation)
    slowest, fed = max(load.seconds for load in loads), _feed(program, setup, machine)
    parameters = max(load.parameters for load in loads)
    gradients = parameters * machine["element.bytes"]
    reduced = estimate_all_reduce(gradients, setup.replicas, chips, machine)
    update = _estimate_update(program, stages, parameters, machine, cost.superstep)
    # Each replica keeps its share of the optimiser's state, which is read and written once.
    moved = 2 * parameters * MOMENT_BYTES / setup.replicas / machine["host.prefetch"] if setup.offchip else 0.0
    computed = rounds * slowest
    step = max(computed, setup.accumulation * fed) + reduced + update + moved
    batch = setup.micro_batch * setup.replicas * setup.accumulation
    share = max(load.memory for load in loads) / machine["sram"]
    return TrainingPrediction(
        target=target.name,
        chips=chips * setup.replicas,
        stages=len(stages),
        batch_size=batch,
        throughput=batch * setup.items / step,
        step_s=step,
        round_s=max(slowest, fed),
        rounds=rounds,
        bubble_share=1 - setup.accumulation / rounds,
        all_reduce_s=reduced,
        update_s=update,
        offload_s=moved,
        host_bound=setup.accumulation * fed > computed,
        memory_verdict=_judge(loads, machine),
        memory_share=share,
        calibration_id=known.id,
        loads=loads,
        settings=target.settings or None,
    )


def _feed(program: Program, setup: TrainingSetup, target: Target) -> float:
    """Return the seconds in which a host process can send a micro-batch to each of its chips."""
    machines = ceil_div(setup.replicas, target.chips)
    instances = setup.instances or min(setup.replicas, machines * int(target["host.processes"]))
    return setup.replicas / instances * _count_input_bytes(program, setup) / target["host.process"]


def _count_input_bytes(program: Program, setup: TrainingSetup) -> float:
    # Token numbers have their own size; images are sent as the setup says.
    sizes = (
        tensor.bytes if tensor.bits > 32 else tensor.elements * setup.input_bits / BYTE_BITS
        for tensor in program.inputs
    )
    return sum(sizes)


class _Costs:
    """The costs of every operator's passes, computed once for each proportion of memory."""

    def __init__(self, program: Program, target: Target, planner: Planner, superstep: float) -> None:
        self.program, self.target, self.superstep = program, target, superstep
        self._planner = planner
        self.gradients: Gradients = derive_gradients(program)
        self.parameters = count_operator_parameters(program)
        self._forward: dict[Target, Sequence[OperatorCost]] = {}

    def adapt(self, proportion: float | None, io_tiles: int = 0) -> Target:
        """Return the target while training: batch-norms compute statistics, products have their share of memory."""
        new = {f"{NORM}.{part}": self.target[f"training.{name}"] for part, name in _NORM_PARTS}
        if proportion is not None:
            new["plan.memory"] = proportion
        new["tiles"] = self.target.tiles - io_tiles
        return self.target.with_constants(new)

    def get_forward(self, stage: Stage, target: Target) -> Sequence[OperatorCost]:
        if target not in self._forward:
            self._forward[target] = schedule(self.program, target, self._planner).steps
        return self._forward[target][stage.start : stage.stop]

    def get_backward(self, stage: Stage, target: Target) -> list[OperatorCost]:
        steps = (step for each in self.gradients[stage.start : stage.stop] for step in each)
        return [cost_gradient(step, target, self._planner) for step in steps]

    def sum_seconds(self, steps: Sequence[OperatorCost]) -> float:
        cycles = sum(step.cycles + step.supersteps * self.superstep for step in steps)
        return cycles / self.target["clock"]


_NORM_PARTS = (("cycles", NORM), ("supersteps", f"{NORM}.supersteps"))


def count_operator_parameters(program: Program) -> list[int]:
    """Count the trained elements of each operator; tables that are gathered from are with the first gather."""
    counts = [_count_parameters(operator) for operator in program.operators]
    rest = max(0, program.parameters - sum(counts))
    gathers = (at for at, each in enumerate(program.operators) if isinstance(each, Rearrangement))
    if counts:
        counts[next(gathers, 0)] += rest
    return counts


def _count_parameters(operator: Operator) -> int:
    match operator:
        case Convolution():
            bias = operator.groups * operator.out_channels_per_group if operator.bias else 0
            return operator.weights + bias
        case Gemm():
            return operator.weights + (operator.n if operator.bias else 0)
    return 0


def _load_chip(chip: int, stages: Sequence[Stage], setup: TrainingSetup, cost: _Costs) -> ChipLoad:
    """Sum what the stages of one chip do."""
    proportion = setup.proportions[chip if len(setup.proportions) > 1 else 0] if setup.proportions else None
    target, mine = cost.adapt(proportion, setup.io_tiles), [stage for stage in stages if stage.chip == chip]
    forward = [cost.get_forward(stage, target) for stage in mine]
    backward = [cost.get_backward(stage, target) for stage in mine]
    again = [
        steps
        for stage, steps in zip(mine, forward, strict=True)
        if setup.recompute and is_computed_again(stage, stages)
    ]
    parameters = sum(sum(cost.parameters[stage.start : stage.stop]) for stage in mine)
    tensors = sum(1 for stage in mine for count in cost.parameters[stage.start : stage.stop] if count)
    vectors = ceil_div(ceil_div(parameters, target.tiles), target["vector"])
    adding = (vectors * target["accumulate.cycles"] + tensors * cost.superstep) / target["clock"]
    received = _count_input_bytes(cost.program, setup) if mine and mine[0].start == 0 and not setup.io_tiles else 0.0
    crossing = sum(_count_crossing(cost.program, stage, stages) for stage in mine) * target["element.bytes"]
    transfer = received / target["host.prefetch"] + 2 * crossing / target["link.chip"]
    supersteps = sum(step.supersteps for steps in (*forward, *backward) for step in steps)
    low, high = _estimate_memory(mine, stages, parameters, supersteps, setup, cost, target)
    return ChipLoad(
        sum(map(cost.sum_seconds, forward)),
        sum(map(cost.sum_seconds, again)),
        sum(map(cost.sum_seconds, backward)),
        adding if setup.accumulation > 1 else 0.0,
        transfer,
        low,
        high,
        parameters,
    )


def _count_crossing(program: Program, stage: Stage, stages: Sequence[Stage]) -> int:
    """Count the elements that a stage reads from other chips."""
    near = [other for other in stages if other.chip == stage.chip]
    far = (at for at in list_inputs(program, stage) if not any(each.start <= at < each.stop for each in near))
    return sum(program.operators[at].elements for at in far)


def _estimate_update(
    program: Program, stages: Sequence[Stage], parameters: int, target: Target, superstep: float
) -> float:
    vectors = ceil_div(ceil_div(parameters, target.tiles), target["vector"])
    counts = count_operator_parameters(program)
    tensors = max(
        sum(1 for stage in stages if stage.chip == chip for count in counts[stage.start : stage.stop] if count)
        for chip in range(count_chips(stages))
    )
    cycles: float = vectors * target["update.cycles"] + tensors * target["update.supersteps"] * superstep
    return float(cycles / target["clock"])


def _estimate_memory(
    mine: Sequence[Stage],
    stages: Sequence[Stage],
    parameters: int,
    supersteps: int,
    setup: TrainingSetup,
    cost: _Costs,
    target: Target,
) -> tuple[float, float]:
    """Estimate the bytes of a tile: low with less code and products in parts, high with more code and without."""
    held = parameters * target["element.bytes"] * (1 + (setup.accumulation > 1))
    held += 0.0 if setup.offchip else parameters * MOMENT_BYTES / max(1, setup.replicas)
    activations = count_activations(cost.program, mine, stages, setup.recompute)
    even = (held + activations * target["element.bytes"]) / target.tiles
    code = target["memory.superstep"] * supersteps
    temporary = max(_iterate_temporaries(mine, cost, target), default=0.0)
    in_parts = min(temporary, SERIAL_PROPORTION * target["sram"])  # where products are computed in parts
    return even + in_parts + code * (1 - CODE_BAND), even + temporary + code * (1 + CODE_BAND)


def _iterate_temporaries(mine: Sequence[Stage], cost: _Costs, target: Target) -> Iterator[float]:
    for stage in mine:
        yield from (step.temporary for step in (*cost.get_forward(stage, target), *cost.get_backward(stage, target)))


def _judge(loads: Sequence[ChipLoad], target: Target) -> Verdict:
    """Return UNCERTAIN where the verdict depends on the size of the code, or on products being computed in parts."""
    if all(load.memory_high <= target["sram"] for load in loads):
        return "FITS"
    return "UNCERTAIN" if all(load.memory <= target["sram"] for load in loads) else "DOES-NOT-FIT"


TRAINING_FIELDS = (
    *("batch_size", "micro_batch_size", "replicas", "accumulation", "chips", "stages", "throughput"),
    *("step_ms", "round_ms", "rounds", "bubble_share", "all_reduce_ms", "update_ms", "offload_ms", "host_bound"),
    *("memory_verdict", "memory_share", "target", "model", "calibration_id", "origin", "settings"),
)
TRAINING_TABLE_DIGITS = {
    **dict.fromkeys(("batch_size", "micro_batch_size", "chips", "stages", "throughput"), 0),
    **dict.fromkeys(("step_ms", "round_ms", "bubble_share", "all_reduce_ms", "update_ms", "offload_ms"), 2),
    "memory_verdict": 0,
}


def to_training_record(prediction: TrainingPrediction, setup: TrainingSetup, model: str) -> Mapping[str, Any]:
    """Return TRAINING_FIELDS in their order, unrounded: ms, items per second, shares."""
    return {
        "batch_size": prediction.batch_size,
        "micro_batch_size": setup.micro_batch,
        "replicas": setup.replicas,
        "accumulation": setup.accumulation,
        "chips": prediction.chips,
        "stages": prediction.stages,
        "throughput": prediction.throughput,
        "step_ms": prediction.step_s * MS,
        "round_ms": prediction.round_s * MS,
        "rounds": prediction.rounds,
        "bubble_share": prediction.bubble_share,
        "all_reduce_ms": prediction.all_reduce_s * MS,
        "update_ms": prediction.update_s * MS,
        "offload_ms": prediction.offload_s * MS,
        "host_bound": prediction.host_bound,
        "memory_verdict": prediction.memory_verdict,
        "memory_share": prediction.memory_share,
        "target": prediction.target,
        "model": model,
        "calibration_id": prediction.calibration_id,
        "origin": prediction.origin,
        "settings": prediction.settings,
    }


def format_training_footer(prediction: TrainingPrediction, model: str) -> str:
    """Return the line under the table."""
    footer = (
        f"emulated, not measured: one training step of {model} on {prediction.chips} chips of {prediction.target}, "
        f"calibration {prediction.calibration_id}; its error on published rows is larger than that of inference"
    )
    return footer if prediction.settings is None else f"{footer}; changed: {prediction.settings}"
