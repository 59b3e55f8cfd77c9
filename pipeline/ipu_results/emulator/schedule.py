"""Schedule a program on a target: the supersteps and cycles of each operator, one operator after
another.

The backward pass is derived from the sizes of the operators alone: the gradients of each, which are
costed alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Literal

from ipu_results.emulator import operators as ops
from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.split import ConvolutionShape, SplitPlan, plan_split
from ipu_results.emulator.target import Target
from ipu_results.errors import UnsupportedOperatorError

NORMS = frozenset({"batchnorm", "softmax", "layernorm"})  # more than a pass: constants of their own


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
def schedule(program: ops.Program, target: Target) -> Schedule:
    """Cost each operator in turn: the chip does one thing at a time on all tiles.

    Results are spread evenly over the tiles. So no result of a larger network is cheaper.
    """
    steps = []
    for at, (operator, sources) in enumerate(zip(program.operators, program.sources, strict=True)):
        step = _cost(operator, target)
        if isinstance(operator, ops.Convolution):
            edges = _estimate_edges(
                operator, any(source < 0 for source in sources), at in program.results, target
            )
            step = replace(step, compute=step.compute + edges)
        steps.append(step)
    return Schedule(tuple(steps))


def _cost(operator: ops.Operator, target: Target) -> OperatorCost:
    match operator:
        case ops.Convolution() | ops.Gemm():
            return _cost_product(operator, target)
        case ops.Recurrence():
            return _cost_recurrence(operator, target)
        case ops.Rearrangement():
            moved = (
                operator.elements
                / target.tiles
                * target["element.bytes"]
                / target["exchange.bytes"]
            )
            supersteps = int(target["rearrange.supersteps"])
            return OperatorCost(operator.name, operator.kind, 0.0, 0.0, moved, supersteps)
    kind, cycles, supersteps, elements = _describe_vector_work(operator, target)
    compute = estimate_vectors(elements, cycles, target)
    if kind == "softmax":
        compute += estimate_copy(elements, target)
    return OperatorCost(operator.name, kind, compute, 0.0, 0.0, supersteps)


def _cost_product(operator: ops.Convolution | ops.Gemm, target: Target) -> OperatorCost:
    plan = plan_split(to_convolution_shape(operator), target)
    compute = plan.compute
    kind = "convolution"
    if isinstance(operator, ops.Gemm):
        kind = "gemm"
        if not operator.constant:
            left = operator.groups * operator.m * operator.k
            right = operator.groups * operator.k * operator.n
            compute += estimate_copy(left, target) + estimate_copy(right, target)
    return OperatorCost(
        operator.name,
        kind,
        compute,
        plan.reduce,
        plan.exchange,
        plan.supersteps,
        operator.macs,
        plan,
    )


def estimate_vectors(elements: float, cycles: float, target: Target) -> float:
    """Estimate a pass over elements: the start of its vertex and `cycles` for each vector of the
    fullest tile, rounded up to what keeps all of its workers busy.
    """
    vectors = ceil_div(ceil_div(elements, target.tiles), target["vector"])
    rounds = ceil_div(vectors, target["workers"])
    return float(target["elementwise.start"] + target["workers"] * rounds * cycles)


def _estimate_edges(operator: ops.Convolution, first: bool, last: bool, target: Target) -> float:
    """Estimate the copies at the edges of a network, whose inputs and outputs are in the order of
    the host.
    """
    channels = operator.groups * operator.in_channels_per_group
    inputs = operator.batch * operator.in_height * operator.in_width * channels
    copied = estimate_copy(inputs, target) if first else 0.0
    return copied + (estimate_copy(operator.elements, target) if last else 0.0)


def estimate_copy(elements: int, target: Target) -> float:
    """Estimate the cycles in which every tile lays out its share again, for another operator.

    The two sides of a product of activations and the rows of a softmax are laid out differently
    from what made them. Rows that are no whole 8-byte words may take up to 25 times as long in one
    profile of the SDK; the vendor's own programs pad them (`attention_padding` of PopRT).
    """
    return float(ceil_div(elements, target.tiles) * target["element.bytes"] * target["copy.word"])


def _cost_recurrence(operator: ops.Recurrence, target: Target) -> OperatorCost:
    """Cost one step, and repeat it: a step reads the state that the one before left."""
    first = _cost_product(operator.product, target)
    steps = operator.steps
    parts = (first, *(_cost(part, target) for part in operator.passes))
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
        case ops.Elementwise(kind=kind, elements=elements) if kind in NORMS:
            return kind, target[f"{kind}.cycles"], int(target[f"{kind}.supersteps"]), elements
        case ops.Elementwise(kind=kind, elements=elements):
            cycles = target.get(f"elementwise.{kind}", target["elementwise.other"])
            return kind, cycles, 1, elements
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
    copied: int = 0  # elements that are laid out again: see estimate_copy


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
            first = groups * m * k
            second = groups * k * n
            copies = (0, 0) if operator.constant else (elements + second, first + elements)
            other = GradientProduct(name, role, operator.macs, right, first, copies[1])
            steps: list[GradientStep] = [other, *_reduce_bias(operator)]
            if needs_data:
                product = GradientProduct(name, "data", operator.macs, left, second, copies[0])
                steps.insert(0, product)
            return steps
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


def cost_gradient(step: GradientStep, target: Target) -> OperatorCost:
    """Cost one step. A product is split by the same search as in the forward pass."""
    if isinstance(step, GradientProduct):
        plans = [plan_split(shape, target) for shape in step.shapes]
        plan = min(
            plans, key=lambda each: each.cycles + each.supersteps * target["superstep.cycles"]
        )
        exchange = plan.exchange + _exchange_evenly(step.turned, target)
        compute = plan.compute + estimate_copy(step.copied, target)
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
    compute = estimate_vectors(step.elements, cycles, target)
    return OperatorCost(step.name, f"gradient {step.kind}", compute, 0.0, 0.0, supersteps)


def _exchange_evenly(elements: int, target: Target) -> float:
    """Return the cycles in which every tile receives its share."""
    return ceil(elements / target.tiles) * target["element.bytes"] / target["exchange.bytes"]
