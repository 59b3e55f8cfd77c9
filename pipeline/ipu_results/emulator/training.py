"""Predict a training step: passes of a micro-batch, pipeline, accumulation, sum over replicas and
update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

from ipu_results.emulator import pipeline
from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.operators import Product, Program, Rearrangement
from ipu_results.emulator.pipeline import Stage
from ipu_results.emulator.prediction import (
    CODE_BAND,
    MS,
    SERIAL_PROPORTION,
    EmulatedFigures,
    MemoryNeed,
    check_computes,
    judge_memory,
)
from ipu_results.emulator.schedule import (
    Gradients,
    OperatorCost,
    cost_gradient,
    derive_gradients,
    schedule,
)
from ipu_results.emulator.settings import BYTE_BITS, Protocol, count_fed_chips, read_keys
from ipu_results.emulator.target import (
    Constant,
    Target,
    load_band,
    load_calibration,
    read_toml,
)
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

TRAINING_FILE = "training.toml"
TRAINED = ("m2000", "bow-2000")  # machines with links to others and a memory of their own
TOKEN_BITS = 64  # ONNX has token numbers as int64, which are sent as they are
# A process of CARAML spends 0.66 s on the host in each step, and other programs up to that.
SHORT_STEP_S = 1.0
NORM_PASSES = 3  # forward, forward again, and back
MOMENT_BYTES = 8  # of a parameter: two moments in fp32
# Constants of the machine that training replaces: batch-norms compute statistics, not only apply
# them.
TRAINED_CONSTANTS = {
    "batchnorm.cycles": "training.batchnorm",
    "batchnorm.supersteps": "training.batchnorm.supersteps",
}


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """How a training step is run.

    `accumulation` micro-batches of each replica make a step.
    `recompute` computes activations again in the backward pass, from the inputs of each layer or
    stage, but for the last stage.
    `proportions` are availableMemoryProportion: one for all chips, one each, or none for the
    machine's default.
    `offchip` keeps the optimizer's state outside the chip.
    `items` are in one sample: more than one where sequences are packed.
    `input_bits` is the size of an input element.
    `io_tiles` move data while the others compute.
    `layers` are how many each chip of a replica has. Without them a stage ends after each operator
    of `cut_after`, or the replica is cut evenly into `stages`: see `pipeline`.
    `norm_span` replicas share the statistics of a batch-norm.
    """

    micro_batch: int = 1
    replicas: int = 1
    accumulation: int = 1
    recompute: pipeline.Recompute | None = None
    proportions: tuple[float, ...] = ()
    offchip: bool = False
    instances: int | None = None
    items: float = 1.0
    input_bits: int = 16
    io_tiles: int = 0
    layers: tuple[int, ...] = ()
    head: pipeline.Head = "last"
    cut_after: tuple[str, ...] = ()
    one_chip: bool = False
    stages: int = 1
    norm_span: int = 1

    @property
    def chips(self) -> int:
        """Chips of one replica."""
        if self.layers:
            return len(self.layers)
        if self.one_chip:
            return 1
        if self.cut_after:
            return len(self.cut_after) + 1
        return self.stages

    def cut(self, program: Program) -> list[Stage]:
        """Cut the program into stages.

        Raises InconsistentModelError where it has not what the setup names.
        """
        if self.layers:
            return pipeline.cut_at_layers(program, self.layers, self.head)
        if self.cut_after:
            return pipeline.cut_at_operators(program, self.cut_after, one_chip=self.one_chip)
        return pipeline.cut_evenly(program, self.stages)


@dataclass(frozen=True, slots=True)
class ChipLoad:
    """What one chip does with one micro-batch, in seconds, and what it holds, in bytes of its
    fullest tile.

    `parameters` counts elements, and `tensors` the tensors that they are in.
    """

    forward: float
    recompute: float
    backward: float
    accumulate: float
    transfer: float
    memory: float
    memory_high: float
    parameters: int
    tensors: int

    @property
    def seconds(self) -> float:
        return self.forward + self.recompute + self.backward + self.accumulate + self.transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction(EmulatedFigures):
    """One training step.

    Times in seconds, in milliseconds in its record; throughput in items per second.

    `round_s` is the micro-batch of the slowest chip, or what the host needs to send one. A step is
    `rounds` of them, then `all_reduce_s`, `update_s` and `offload_s`. `bubble_share` is the part of
    the rounds that fills and drains.
    """

    KIND = "training"

    micro_batch_size: int
    replicas: int
    accumulation: int
    chips: int
    stages: int
    step_s: float
    step_ms_low: float
    step_ms_high: float
    round_s: float
    rounds: int
    bubble_share: float
    all_reduce_s: float
    update_s: float
    offload_s: float
    host_bound: bool
    memory_share: float
    loads: tuple[ChipLoad, ...]

    def get_field(self, name: str) -> Any:
        """Return a field of the record, where times are in ms: `update_ms` for `update_s`."""
        if name.endswith("_ms"):
            return getattr(self, f"{name.removesuffix('_ms')}_s") * MS
        return getattr(self, name)

    def describe(self, model: str) -> tuple[str, str]:
        caveat = "its error on published rows is larger than that of inference"
        return f"one training step of {model} on {self.chips} chips of {self.target}", caveat


@cache
def load_training_constants() -> Mapping[str, Constant]:
    entries = read_toml(TRAINING_FILE)["constants"]
    return {name: Constant(**entry) for name, entry in entries.items()}


def extend_target(target: Target) -> Target:
    """Add the constants of training to a machine; those it has already are kept.

    Raises UnrecognisedModelError for a machine without links to others.
    """
    if target.base not in TRAINED:
        message = f"training is predicted for {' and '.join(TRAINED)}, not for {target.name}"
        raise UnrecognisedModelError(message, document=target.name)
    return replace(target, constants={**load_training_constants(), **target.constants})


def predict_training(
    programs: Callable[[int], Program],
    target: Target,
    setup: TrainingSetup,
) -> TrainingPrediction:
    """Predict a step. Raises InconsistentModelError for a setup that does not fit the network."""
    machine = extend_target(target)
    program = programs(setup.micro_batch)
    check_computes(program)
    stages = setup.cut(program)
    chips = pipeline.count_chips(stages)
    if len(setup.proportions) not in (0, 1, chips):
        message = f"{len(setup.proportions)} proportions of memory do not suit {chips} chips"
        raise InconsistentModelError(message, document=program.name)
    gradients = derive_gradients(program)
    step = _Step(program, stages, setup, machine, gradients, count_operator_parameters(program))
    loads = tuple(step.load_chip(chip) for chip in range(chips))
    rounds = pipeline.count_rounds(stages, setup.accumulation)
    slowest = sum_slowest(loads)
    parameters = max(load.parameters for load in loads)
    gradient_bytes = parameters * machine["element.bytes"]
    reduced = pipeline.estimate_all_reduce(gradient_bytes, setup.replicas, chips, machine)
    supersteps = max(load.tensors for load in loads) * machine["update.supersteps"]
    update = _time_parameters(parameters, machine["update.cycles"], supersteps, machine)
    offload = 0.0
    if setup.offchip:
        # Each replica keeps its share of the optimiser's state, which is read and written once.
        offload = 2 * parameters * MOMENT_BYTES / setup.replicas / machine["host.prefetch"]
    feed = step.feed_seconds
    all_feeds = setup.accumulation * feed
    computed = rounds * slowest
    seconds = max(computed, all_feeds) + reduced + update + offload
    batch = setup.micro_batch * setup.replicas * setup.accumulation
    low, high = load_band("training")
    memory = _judge_memory(loads, machine["sram"])
    return TrainingPrediction(
        target=target.name,
        chips=chips * setup.replicas,
        stages=len(stages),
        batch_size=batch,
        micro_batch_size=setup.micro_batch,
        replicas=setup.replicas,
        accumulation=setup.accumulation,
        throughput=batch * setup.items / seconds,
        step_s=seconds,
        step_ms_low=seconds * low * MS,
        step_ms_high=seconds * high * MS,
        round_s=max(slowest, feed),
        rounds=rounds,
        bubble_share=1 - setup.accumulation / rounds,
        all_reduce_s=reduced,
        update_s=update,
        offload_s=offload,
        host_bound=all_feeds > computed,
        **asdict(memory),
        memory_share=memory.memory_needed_bytes / machine["sram"],
        calibration_id=load_calibration().id,
        loads=loads,
        settings=target.settings or None,
    )


def _judge_memory(loads: Sequence[ChipLoad], available: float) -> MemoryNeed:
    """Return UNCERTAIN where the verdict depends on the size of the code, or on products being
    computed in parts.
    """
    needs = [load.memory for load in loads]
    low = max(needs)
    high = max(load.memory_high for load in loads)
    return MemoryNeed(
        memory_verdict=judge_memory(low, high, available),
        memory_needed_bytes=low,
        memory_available_bytes=available,
        memory_operator=f"chip {needs.index(low)}",
    )


def is_host_bound(step: TrainingPrediction, setup: TrainingSetup) -> bool:
    """Check whether one process drives short steps, so that a step takes the host's time."""
    return (setup.instances or 1) == 1 and step.step_s < SHORT_STEP_S


def sum_slowest(loads: Sequence[ChipLoad]) -> float:
    """Return the seconds of a round: chips exchange together, so it is the longest computation and
    transfer.
    """
    computed = max(load.seconds - load.transfer for load in loads)
    return computed + max(load.transfer for load in loads)


def _time_parameters(parameters: int, cycles: float, supersteps: float, target: Target) -> float:
    """Return the time of vector code over the parameters of a chip."""
    vectors = ceil_div(ceil_div(parameters, target.tiles), target["vector"])
    waited = supersteps * target["superstep.cycles"]
    return float((vectors * cycles + waited) / target["clock"])


@dataclass(frozen=True)
class _Step:
    """What a step is made of. `target` has the constants of training."""

    program: Program
    stages: Sequence[Stage]
    setup: TrainingSetup
    target: Target
    gradients: Gradients
    parameters: Sequence[int]
    """Trained elements of each operator."""

    @cached_property
    def input_bytes(self) -> float:
        total = 0.0
        for tensor in self.program.inputs:
            bits = self.setup.input_bits
            if tensor.bits >= TOKEN_BITS:
                bits = tensor.bits
            total += tensor.elements * bits / BYTE_BITS
        return total

    @property
    def feed_seconds(self) -> float:
        """Return the time in which a host process can send a micro-batch to each of its chips."""
        chips = count_fed_chips(self.setup.replicas, self.setup.instances, self.target)
        return chips * self.input_bytes / self.target["host.process"]

    def load_chip(self, chip: int) -> ChipLoad:
        """Sum what the stages of one chip do."""
        setup = self.setup
        target = self._adapt_target(chip)
        costs = schedule(self.program, target).steps
        mine = [stage for stage in self.stages if stage.chip == chip]
        forward = 0.0
        again = 0.0
        backward = 0.0
        crossing = 0
        norms = 0
        steps: list[OperatorCost] = []
        tensors: list[int] = []  # the elements of each tensor of parameters
        for stage in mine:
            part = slice(stage.start, stage.stop)
            seconds = self._sum_seconds(costs[part])
            forward += seconds
            if setup.recompute and pipeline.is_computed_again(stage, self.stages):
                again += seconds
            back: list[OperatorCost] = []
            for gradients in self.gradients[part]:
                back += [cost_gradient(gradient, target) for gradient in gradients]
            backward += self._sum_seconds(back)
            steps += costs[part]
            steps += back
            tensors += [count for count in self.parameters[part] if count]
            crossing += _count_crossing(self.program, stage, self.stages)
            norms += sum(each.kind == "batchnorm" for each in stage.select(self.program))
        if setup.norm_span > 1:
            # Norms are summed over replicas.
            backward += norms * NORM_PASSES * target["norm.span"]
        parameters = sum(tensors)
        adding = 0.0
        if setup.accumulation > 1:
            cycles = target["accumulate.cycles"]
            adding = _time_parameters(parameters, cycles, len(tensors), target)
        received = 0.0
        has_first = any(stage.start == 0 for stage in mine)
        if has_first and not setup.io_tiles:
            received = self.input_bytes
        # Results cross forward, and their gradients back.
        links = 2 * crossing * target["element.bytes"] / target["link.chip"]
        low, high = self._estimate_memory(mine, parameters, steps, target)
        return ChipLoad(
            forward=forward,
            recompute=again,
            backward=backward,
            accumulate=adding,
            transfer=received / target["host.prefetch"] + links,
            memory=low,
            memory_high=high,
            parameters=parameters,
            tensors=len(tensors),
        )

    def _adapt_target(self, chip: int) -> Target:
        """Return the target while training: without I/O tiles, with the chip's share of memory for
        products.
        """
        new = {name: self.target[source] for name, source in TRAINED_CONSTANTS.items()}
        new["tiles"] = self.target.tiles - self.setup.io_tiles
        proportions = self.setup.proportions
        if len(proportions) == 1:
            new["plan.memory"] = proportions[0]
        elif proportions:
            new["plan.memory"] = proportions[chip]
        return self.target.with_constants(new)

    def _sum_seconds(self, steps: Sequence[OperatorCost]) -> float:
        superstep = self.target["superstep.cycles"]
        cycles = sum(step.cycles + step.supersteps * superstep for step in steps)
        return cycles / self.target["clock"]

    def _estimate_memory(
        self,
        mine: Sequence[Stage],
        parameters: int,
        steps: Sequence[OperatorCost],
        target: Target,
    ) -> tuple[float, float]:
        """Estimate the bytes of a tile: low with less code and products in parts, high with more
        code and without.
        """
        setup = self.setup
        copies = 1
        if setup.accumulation > 1:
            copies = 2  # the sum of the gradients, too
        held = parameters * target["element.bytes"] * copies
        if not setup.offchip:
            held += parameters * MOMENT_BYTES / setup.replicas
        activations = pipeline.count_activations(self.program, mine, self.stages, setup.recompute)
        spread = (held + activations * target["element.bytes"]) / target.tiles
        code = target["memory.superstep"] * sum(step.supersteps for step in steps)
        temporary = max((step.temporary for step in steps), default=0.0)
        # where products are computed in parts
        in_parts = min(temporary, SERIAL_PROPORTION * target["sram"])
        low = spread + in_parts + code * (1 - CODE_BAND)
        high = spread + temporary + code * (1 + CODE_BAND)
        return low, high


def count_operator_parameters(program: Program) -> list[int]:
    """Count the trained elements of each operator.

    Those that no product has are tables: they are counted for the first rearrangement, a gather.
    """
    counts = []
    first: int | None = None
    for at, operator in enumerate(program.operators):
        counts.append(operator.parameters if isinstance(operator, Product) else 0)
        if first is None and isinstance(operator, Rearrangement):
            first = at
    tables = program.parameters - sum(counts)
    counts[first or 0] += max(0, tables)
    return counts


def _count_crossing(program: Program, stage: Stage, stages: Sequence[Stage]) -> int:
    """Count the elements that a stage receives from other chips, for itself and for later stages.

    Results reach the stages after the next one through each stage between, as PopART's
    ContiguateIpuCopies does.
    """
    near = [other for other in stages if other.chip == stage.chip]
    if stage is near[0]:
        onward = Stage(stage.start, len(program.operators), stage.chip)
        received = pipeline.list_inputs(program, onward)
    else:
        # A further stage of a chip, as the head on the first, receives what the chip lacks.
        received = pipeline.list_inputs(program, stage)
        for other in near:
            received.difference_update(range(other.start, other.stop))
    return sum(program.operators[at].elements for at in received)


KEYS = read_keys("training")
# Keys whose field of TrainingSetup has another name.
RENAMED = {"available_memory": "proportions", "layers_per_ipu": "layers"}


def build_setup(values: Mapping[str, Any], machine: Target, path: Protocol) -> TrainingSetup:
    """Build the setup that values of KEYS describe.

    `path` says what an input element is and which tiles move data. Replicas are as many as the
    machine has room for, unless they are given.
    """
    given = {RENAMED.get(key, key): value for key, value in values.items()}
    given.pop("sequence", None)  # that of the network
    setup = TrainingSetup(
        **given,
        input_bits=path.input_bits,
        io_tiles=path.io_tiles if path.overlapped else 0,
    )
    if "replicas" in given:
        return setup
    return replace(setup, replicas=max(1, machine.chips // setup.chips))
