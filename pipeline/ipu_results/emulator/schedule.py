"""A program on a target: the supersteps and cycles of each operator."""

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
    Operator,
    Pool,
    Program,
    Rearrangement,
    Reduction,
)
from ipu_results.emulator.split import HALF, Plan, Shape, plan
from ipu_results.emulator.target import Target

Planner = Callable[[Shape, Target], Plan]
NORMS = {"batchnorm", "softmax", "layernorm"}


@dataclass(frozen=True, slots=True)
class Step:
    """What one operator costs on the chip: cycles of compute, reduction and exchange, and supersteps."""

    name: str
    kind: str
    compute: float
    reduce: float
    exchange: float
    supersteps: int
    macs: int = 0
    plan: Plan | None = None

    @property
    def cycles(self) -> float:
        """Without the cost of the supersteps."""
        return self.compute + self.reduce + self.exchange

    @property
    def temporary(self) -> float:
        """Bytes of the fullest tile."""
        return self.plan.temporary if self.plan else 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    steps: tuple[Step, ...]

    @property
    def cycles(self) -> float:
        return sum(step.cycles for step in self.steps)

    @property
    def supersteps(self) -> int:
        return sum(step.supersteps for step in self.steps)

    @property
    def temporary(self) -> float:
        """Bytes of the fullest tile in the operator that needs most."""
        return max((step.temporary for step in self.steps), default=0.0)


def schedule(program: Program, target: Target, planner: Planner = plan) -> Schedule:
    """Each operator in turn: the chip does one thing at a time on all tiles. `planner` gives what `plan` gives."""
    return _scheduled(program, target, target.constants, planner)


@lru_cache(maxsize=256)
def _scheduled(
    program: Program,
    target: Target,
    constants: object,  # noqa: ARG001 (part of the memo's key: targets that are equal for plans may differ elsewhere)
    planner: Planner,
) -> Schedule:
    steps: list[Step] = []
    shares: list[float] = []
    for operator, sources in zip(program.operators, program.sources, strict=True):
        share = max((shares[at] for at in sources if at >= 0), default=0.0)
        step = _step(operator, share, target, planner)
        steps.append(step)
        shares.append(step.plan.share if step.plan else _inherited(operator, share, target))
    return Schedule(tuple(steps))


def _inherited(operator: Operator, share: float, target: Target) -> float:
    """Elementwise results lie where their operands do; all others are spread evenly."""
    even = operator.elements / target.tiles
    return max(share, even) if isinstance(operator, Elementwise) and share <= 4 * even else even


def _step(operator: Operator, share: float, target: Target, planner: Planner) -> Step:
    if isinstance(operator, Convolution | Gemm):
        found = planner(shape_of(operator), target)
        return Step(
            operator.name,
            "convolution" if isinstance(operator, Convolution) else "gemm",
            found.compute,
            found.reduce,
            found.exchange,
            found.supersteps,
            operator.macs,
            found,
        )
    if isinstance(operator, Rearrangement):
        moved = operator.elements / target.tiles * HALF / target["exchange.bytes"]
        return Step(operator.name, operator.kind, 0.0, 0.0, moved, int(target["rearrange.supersteps"]))
    kind, cycles, supersteps, elements = _vector_work(operator, target)
    even = elements / target.tiles
    held = share if isinstance(operator, Elementwise) and even < share <= 4 * even else even
    vectors = ceil_div(ceil_div(held, 1), target["vector"])
    compute = target["workers"] * ceil_div(vectors, target["workers"]) * cycles
    return Step(operator.name, kind, compute, 0.0, 0.0, supersteps)


def _vector_work(operator: Operator, target: Target) -> tuple[str, float, int, int]:
    """Kind, cycles a vector, supersteps and elements that are worked through."""
    match operator:
        case Elementwise(kind=kind) if kind in NORMS:
            return kind, target[f"{kind}.cycles"], int(target[f"{kind}.supersteps"]), operator.elements
        case Elementwise(kind=kind):
            return kind, target.get(f"elementwise.{kind}", target["elementwise.other"]), 1, operator.elements
        case Pool():
            return f"{operator.kind} pool", target["pool.tap"] * operator.window, 1, operator.elements
        case GlobalPool():
            supersteps = int(target["globalpool.supersteps"])
            return "global pool", target["globalpool.cycles"], supersteps, operator.elements * operator.window
        case Reduction():
            supersteps = int(target["globalpool.supersteps"])
            return "reduction", target["globalpool.cycles"], supersteps, operator.in_elements
    raise TypeError(type(operator).__name__)


def shape_of(operator: Convolution | Gemm) -> Shape:
    """What the split search needs to know; dilation widens the window that is read and nothing else."""
    if isinstance(operator, Gemm):
        return Shape(1, operator.groups, operator.k, operator.n, operator.m, 1, in_rows=operator.m, in_columns=1)
    return Shape(
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
