"""Schedule a program on a target: the supersteps and cycles of each operator, one operator after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.operators import (
    Convolution,
    Elementwise,
    Gemm,
    GlobalPool,
    Interpolation,
    Operator,
    Pool,
    Program,
    Rearrangement,
    Recurrence,
    Reduction,
)
from ipu_results.emulator.split import ConvolutionShape, SplitPlan, plan_split
from ipu_results.emulator.target import Target

Planner = Callable[[ConvolutionShape, Target], SplitPlan]
NORMS = frozenset({"batchnorm", "softmax", "layernorm"})  # more than a pass: constants of their own
UNEVEN = 4  # an elementwise operator keeps a split this uneven; a worse one is spread evenly


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """The cost of one operator on the chip: cycles of compute, reduction and exchange, and supersteps."""

    name: str
    kind: str
    compute: float
    reduce: float
    exchange: float
    supersteps: int
    macs: int = 0
    plan: SplitPlan | None = None
    repeats: int = 1  # times that the same code runs

    @property
    def cycles(self) -> float:
        """Cycles without the cost of the supersteps."""
        return self.compute + self.reduce + self.exchange

    @property
    def temporary(self) -> float:
        """Bytes of the fullest tile."""
        return self.plan.temporary if self.plan else 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """The costs of all operators of a program, in their order."""

    steps: tuple[OperatorCost, ...]

    @property
    def cycles(self) -> float:
        return sum(step.cycles for step in self.steps)

    @property
    def supersteps(self) -> int:
        return sum(step.supersteps for step in self.steps)

    @property
    def code_supersteps(self) -> int:
        """Supersteps that a tile holds the code of: a loop's once."""
        return sum(step.supersteps // step.repeats for step in self.steps)


@lru_cache(maxsize=256)
def schedule(program: Program, target: Target, planner: Planner = plan_split) -> Schedule:
    """Cost each operator in turn: the chip does one thing at a time on all tiles.

    `planner` returns what `plan_split` returns; a PlanCache does.
    """
    steps: list[OperatorCost] = []
    shares: list[float] = []  # output elements of the fullest tile, of each operator
    for operator, sources in zip(program.operators, program.sources, strict=True):
        share = max((shares[at] for at in sources if at >= 0), default=0.0)
        step = _cost(operator, share, target, planner)
        steps.append(step)
        shares.append(step.plan.share if step.plan else _inherit_share(operator, share, target))
    return Schedule(tuple(steps))


def _inherit_share(operator: Operator, share: float, target: Target) -> float:
    """Return the share of the fullest tile: elementwise results lie with their operands, others are spread evenly."""
    even = operator.elements / target.tiles
    return max(share, even) if isinstance(operator, Elementwise) and share <= UNEVEN * even else even


def _cost(operator: Operator, share: float, target: Target, planner: Planner) -> OperatorCost:
    if isinstance(operator, Convolution | Gemm):
        plan = planner(to_convolution_shape(operator), target)
        kind = "convolution" if isinstance(operator, Convolution) else "gemm"
        costs = (plan.compute, plan.reduce, plan.exchange, plan.supersteps)
        return OperatorCost(operator.name, kind, *costs, operator.macs, plan)
    if isinstance(operator, Recurrence):
        return _cost_recurrence(operator, target, planner)
    if isinstance(operator, Rearrangement):
        moved = operator.elements / target.tiles * target["element.bytes"] / target["exchange.bytes"]
        return OperatorCost(operator.name, operator.kind, 0.0, 0.0, moved, int(target["rearrange.supersteps"]))
    # Vector code: the fullest tile deals its vectors of `vector` elements to the workers.
    kind, cycles, supersteps, elements = _describe_vector_work(operator, target)
    even = elements / target.tiles
    held = share if isinstance(operator, Elementwise) and even < share <= UNEVEN * even else even
    vectors = ceil_div(ceil_div(held, 1), target["vector"])
    compute = target["workers"] * ceil_div(vectors, target["workers"]) * cycles
    return OperatorCost(operator.name, kind, compute, 0.0, 0.0, supersteps)


def _cost_recurrence(operator: Recurrence, target: Target, planner: Planner) -> OperatorCost:
    """Cost one step, and repeat it: a step reads the state that the one before left."""
    first, steps = _cost(operator.product, 0.0, target, planner), operator.steps
    parts = (first, *(_cost(part, 0.0, target, planner) for part in operator.passes))
    return OperatorCost(
        operator.name,
        operator.kind,
        steps * sum(part.compute for part in parts),
        steps * first.reduce,
        steps * first.exchange,
        steps * sum(part.supersteps for part in parts),
        operator.macs,
        first.plan,
        repeats=steps,
    )


def _describe_vector_work(operator: Operator, target: Target) -> tuple[str, float, int, int]:
    """Return kind, cycles a vector, supersteps and the number of elements to process."""
    match operator:
        case Elementwise(kind=kind) if kind in NORMS:
            return kind, target[f"{kind}.cycles"], int(target[f"{kind}.supersteps"]), operator.elements
        case Elementwise(kind=kind):
            return kind, target.get(f"elementwise.{kind}", target["elementwise.other"]), 1, operator.elements
        case Pool():
            return f"{operator.kind} pool", target["pool.tap"] * operator.window, 1, operator.elements
        case Interpolation():
            return f"{operator.kind} resize", target["pool.tap"] * operator.window, 1, operator.elements
        case GlobalPool():
            supersteps = int(target["globalpool.supersteps"])
            return "global pool", target["globalpool.cycles"], supersteps, operator.elements * operator.window
        case Reduction():
            supersteps = int(target["globalpool.supersteps"])
            return "reduction", target["globalpool.cycles"], supersteps, operator.in_elements
    raise TypeError(type(operator).__name__)


def to_convolution_shape(operator: Convolution | Gemm) -> ConvolutionShape:
    """Return what the split search needs to know. Dilation widens the window that is read and nothing else."""
    if isinstance(operator, Gemm):
        sizes = (1, operator.groups, operator.k, operator.n, operator.m, 1)
        return ConvolutionShape(*sizes, in_rows=operator.m, in_columns=1)
    return ConvolutionShape(
        operator.batch,
        operator.groups,
        operator.in_channels_per_group,
        operator.out_channels_per_group,
        operator.out_height,
        operator.out_width,
        operator.kernel_height,
        operator.kernel_width,
        max(operator.stride_h, operator.stride_w),
        operator.in_height,
        operator.in_width,
    )
