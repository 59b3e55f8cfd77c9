"""Schedule a program on a target: the supersteps and cycles of each operator, one operator after
another.

The backward pass is derived from the sizes of the operators alone: the gradients of each, which are
costed alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Literal

from ipu_results.emulator import operators as ops
from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.split import ConvolutionShape, SplitPlan, plan_split
from ipu_results.emulator.target import Target
from ipu_results.errors import UnsupportedOperatorError

Planner = Callable[[ConvolutionShape, Target], SplitPlan]
NORMS = frozenset({"batchnorm", "softmax", "layernorm"})  # more than a pass: constants of their own
WORD_BYTES = 8  # the widest load and store of a tile
UNEVEN = 4  # an elementwise operator keeps a split this uneven; a worse one is spread evenly


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """The cost of one operator on the chip: cycles of compute, reduction and exchange, and
    supersteps.
    """

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
def schedule(program: ops.Program, target: Target, planner: Planner = plan_split) -> Schedule:
    """Cost each operator in turn: the chip does one thing at a time on all tiles.

    `planner` returns a plan as `plan_split` does: a simpler model may take its place.
    """
    steps: list[OperatorCost] = []
    shares: list[float] = []  # output elements of the fullest tile, of each operator
    for operator, sources in zip(program.operators, program.sources, strict=True):
        share = max((shares[at] for at in sources if at >= 0), default=0.0)
        step = _cost(operator, share, target, planner)
        if isinstance(operator, ops.Convolution):
            edges = _estimate_edges(
                operator, any(at < 0 for at in sources), len(steps) in program.results, target
            )
            step = replace(step, compute=step.compute + edges)
        steps.append(step)
        # Elementwise results lie with their operands, others are spread evenly.
        even = operator.elements / target.tiles
        inherited = (
            max(share, even)
            if isinstance(operator, ops.Elementwise) and share <= UNEVEN * even
            else even
        )
        shares.append(step.plan.share if step.plan else inherited)
    return Schedule(tuple(steps))


def _cost(operator: ops.Operator, share: float, target: Target, planner: Planner) -> OperatorCost:
    if isinstance(operator, ops.Convolution | ops.Gemm):
        plan = planner(to_convolution_shape(operator), target)
        kind = "convolution" if isinstance(operator, ops.Convolution) else "gemm"
        copied = 0.0
        if isinstance(operator, ops.Gemm) and not operator.constant:
            left = operator.groups * operator.m
            right = operator.groups * operator.k
            copied = estimate_copy(left, operator.k, target) + estimate_copy(
                right, operator.n, target
            )
        costs = (plan.compute + copied, plan.reduce, plan.exchange, plan.supersteps)
        return OperatorCost(operator.name, kind, *costs, operator.macs, plan)
    if isinstance(operator, ops.Recurrence):
        return _cost_recurrence(operator, target, planner)
    if isinstance(operator, ops.Rearrangement):
        moved = (
            operator.elements / target.tiles * target["element.bytes"] / target["exchange.bytes"]
        )
        return OperatorCost(
            operator.name, operator.kind, 0.0, 0.0, moved, int(target["rearrange.supersteps"])
        )
    kind, cycles, supersteps, elements = _describe_vector_work(operator, target)
    even = elements / target.tiles
    held = (
        share if isinstance(operator, ops.Elementwise) and even < share <= UNEVEN * even else even
    )
    compute = count_vectors(held, target) * cycles
    if isinstance(operator, ops.Elementwise) and operator.row:
        compute += estimate_copy(operator.elements // operator.row, operator.row, target)
    return OperatorCost(operator.name, kind, compute, 0.0, 0.0, supersteps)


def count_vectors(held: float, target: Target) -> float:
    """Count vectors of the `held` elements of the fullest tile, rounded up to what keeps all of its
    workers busy.
    """
    vectors = ceil_div(ceil_div(held, 1), target["vector"])
    return float(target["workers"] * ceil_div(vectors, target["workers"]))


def _estimate_edges(operator: ops.Convolution, first: bool, last: bool, target: Target) -> float:
    """Estimate the copies at the edges of a network, whose inputs and outputs are in the order of
    the host.
    """
    inputs = operator.groups * operator.in_channels_per_group
    outputs = operator.groups * operator.out_channels_per_group
    field = operator.batch * operator.in_height * operator.in_width
    copied = estimate_copy(field, inputs, target) if first else 0.0
    return copied + (estimate_copy(operator.elements // outputs, outputs, target) if last else 0.0)


def estimate_copy(rows: int, row: int, target: Target) -> float:
    """Estimate the cycles in which the fullest tile lays out its share of `rows` again, for another
    operator.

    The two sides of a product of activations and the rows of a softmax are laid out differently
    from what made them. Rows of whole 8-byte words are copied as such. Elements of other rows are
    moved one by one.
    """
    held = (
        ceil(rows / target.tiles) * row if rows >= target.tiles else ceil(rows * row / target.tiles)
    )
    aligned = row * target["element.bytes"] % WORD_BYTES == 0
    return held * target["element.bytes"] * target["copy.word" if aligned else "copy.element"]


def _cost_recurrence(operator: ops.Recurrence, target: Target, planner: Planner) -> OperatorCost:
    """Cost one step, and repeat it: a step reads the state that the one before left."""
    first = _cost(operator.product, 0.0, target, planner)
    steps = operator.steps
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


def _describe_vector_work(operator: ops.Operator, target: Target) -> tuple[str, float, int, int]:
    """Return kind, cycles a vector, supersteps and the number of elements to process."""
    match operator:
        case ops.Elementwise(kind=kind) if kind in NORMS:
            return (
                kind,
                target[f"{kind}.cycles"],
                int(target[f"{kind}.supersteps"]),
                operator.elements,
            )
        case ops.Elementwise(kind=kind):
            return (
                kind,
                target.get(f"elementwise.{kind}", target["elementwise.other"]),
                1,
                operator.elements,
            )
        case ops.SlidingWindow():
            return operator.kind, target["pool.tap"] * operator.window, 1, operator.elements
        case ops.Reduction():
            supersteps = int(target["globalpool.supersteps"])
            return operator.kind, target["globalpool.cycles"], supersteps, operator.in_elements
    raise TypeError(type(operator).__name__)


def to_convolution_shape(operator: ops.Convolution | ops.Gemm) -> ConvolutionShape:
    """Return what the split search needs to know.

    Dilation widens the window that is read and nothing else.
    """
    if isinstance(operator, ops.Gemm):
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


Role = Literal["data", "weights"]
# the gradient of a sum is that of its result: nothing is computed
ADDITIONS = frozenset({"add", "sub"})
# parts of one tensor, whose gradients are joined and not added
JOINS = frozenset({"split", "slice"})


@dataclass(frozen=True, slots=True)
class GradientProduct:
    """The gradient of a convolution or matrix product with respect to its data or its weights.

    `shapes` are ways to compute it; the cheapest is taken. `turned` elements are rearranged before:
    the weights, whose channels are swapped for the data, or the data, which are summed over for the
    weights.
    """

    name: str
    role: Role
    macs: int
    shapes: tuple[ConvolutionShape, ...]
    turned: int
    # rows, and their length, that are laid out again: see estimate_copy
    copied: tuple[tuple[int, int], ...] = ()


# Vector code over the elements of an Elementwise costs the constant `gradient.<kind>`.
GradientStep = GradientProduct | ops.Elementwise
Gradients = tuple[tuple[GradientStep, ...], ...]  # of each operator of the program, in its order


def derive_gradients(program: ops.Program) -> Gradients:
    """Return the steps of the backward pass by operator of the forward pass.

    Inputs of the network need no gradient.

    Where several operators read a result, their gradients are added.
    """
    readers = Counter(source for sources in program.sources for source in sources)
    gradients = []
    for at, (operator, sources) in enumerate(zip(program.operators, program.sources, strict=True)):
        steps = list(
            _derive(
                operator, needs_data=any(source >= 0 for source in sources), unary=len(sources) < 2
            )
        )
        # A split has one reader for each of its parts, which are not the same tensor.
        if readers[at] > 1 and not (
            isinstance(operator, ops.Rearrangement) and operator.kind in JOINS
        ):
            steps.append(
                ops.Elementwise(operator.name, "sum", (readers[at] - 1) * operator.elements)
            )
        gradients.append(tuple(steps))
    return tuple(gradients)


def _derive(operator: ops.Operator, *, needs_data: bool, unary: bool) -> list[GradientStep]:
    name = operator.name
    elements = operator.elements
    match operator:
        case ops.Convolution():
            data = [_transpose_convolution(operator)] if needs_data else []
            return [_weigh_convolution(operator), *data, *_reduce_bias(operator)]
        case ops.Gemm(groups=groups, m=m, k=k, n=n):
            role: Role = "weights" if operator.constant else "data"
            left = _multiply(groups, m, n, k)
            right = _multiply(groups, k, m, n)
            # Both sides of a product of activations are laid out again for each of its gradients,
            # as forward.
            result = (groups * m, n)
            first = (groups * m, k)
            second = (groups * k, n)
            copies = ((), ()) if operator.constant else ((result, second), (first, result))
            data = (
                [GradientProduct(name, "data", operator.macs, left, groups * k * n, copies[0])]
                if needs_data
                else []
            )
            other = GradientProduct(name, role, operator.macs, right, groups * m * k, copies[1])
            return [*data, other, *_reduce_bias(operator)]
        case ops.Elementwise(kind=kind) if kind in ADDITIONS:
            # With one source the other term is a bias or a constant: the bias needs the sum over
            # all rows.
            return [ops.Elementwise(name, "bias", elements)] if unary else []
        case ops.Elementwise(kind=kind):
            return [ops.Elementwise(name, kind, elements)]
        case ops.Recurrence():
            raise UnsupportedOperatorError(
                "the gradient of a recurrent operator is not supported", place=name
            )
        case ops.SlidingWindow():
            return [ops.Elementwise(name, "pool", elements * operator.window)]
        case ops.Reduction():
            return [ops.Elementwise(name, "spread", operator.in_elements)]
        case ops.Rearrangement(kind="gather"):
            return [ops.Elementwise(name, "scatter", elements)]
        case ops.Rearrangement():
            return [ops.Elementwise(name, "move", elements)]


def _reduce_bias(operator: ops.Convolution | ops.Gemm) -> list[GradientStep]:
    return [ops.Elementwise(operator.name, "bias", operator.elements)] if operator.bias else []


def _multiply(groups: int, m: int, k: int, n: int) -> tuple[ConvolutionShape, ...]:
    """Return m×k with k×n, and its transpose: either side may be held as weights."""
    sides = ((m, n), (n, m))
    return tuple(
        ConvolutionShape(1, groups, k, outs, rows, 1, in_rows=rows, in_columns=1)
        for rows, outs in sides
    )


def _transpose_convolution(operator: ops.Convolution) -> GradientProduct:
    """Swap input and output channels.

    With a stride s, it is s² convolutions over the field of the output.

    Together they have the taps of the forward convolution, so they cost as much as one without
    stride.
    """
    forward = to_convolution_shape(operator)
    field = {"stride": 1, "in_rows": forward.rows, "in_columns": forward.columns}
    shape = replace(forward, ins=forward.outs, outs=forward.ins, **field)
    return GradientProduct(operator.name, "data", operator.macs, (shape,), operator.weights)


def _weigh_convolution(operator: ops.Convolution) -> GradientProduct:
    """Sum over batch and field: a matrix product of the windows with the gradients of the output.

    The convolution with channels in place of the batch was never cheaper on the networks of the
    validation.
    """
    forward = to_convolution_shape(operator)
    taps = forward.kernel_rows * forward.kernel_columns
    summed = forward.batch * forward.rows * forward.columns
    shapes = _multiply(forward.groups, forward.ins * taps, summed, forward.outs)
    channels = operator.groups * operator.in_channels_per_group
    inputs = operator.batch * channels * operator.in_height * operator.in_width
    return GradientProduct(operator.name, "weights", operator.macs, shapes, inputs)


def cost_gradient(step: GradientStep, target: Target, planner: Planner) -> OperatorCost:
    """Cost one step. A product is split by the same search as in the forward pass."""
    if isinstance(step, GradientProduct):
        plans = [planner(shape, target) for shape in step.shapes]
        plan = min(plans, key=lambda each: each.cycles + each.supersteps * target["plan.superstep"])
        exchange = plan.exchange + _exchange_evenly(step.turned, target)
        compute = plan.compute + sum(estimate_copy(rows, row, target) for rows, row in step.copied)
        costs = (
            compute,
            plan.reduce,
            exchange,
            plan.supersteps + int(target["gradient.turn.supersteps"]),
        )
        return OperatorCost(step.name, f"{step.role} gradient", *costs, step.macs, plan)
    supersteps = int(target.get(f"gradient.{step.kind}.supersteps", 1))
    if step.kind == "move":
        return OperatorCost(
            step.name,
            "gradient move",
            0.0,
            0.0,
            _exchange_evenly(step.elements, target),
            supersteps,
        )
    cycles = target.get(f"gradient.{step.kind}", target["gradient.other"])
    compute = count_vectors(step.elements / target.tiles, target) * cycles
    return OperatorCost(step.name, f"gradient {step.kind}", compute, 0.0, 0.0, supersteps)


def _exchange_evenly(elements: int, target: Target) -> float:
    """Return the cycles in which every tile receives its share."""
    return ceil(elements / target.tiles) * target["element.bytes"] / target["exchange.bytes"]
