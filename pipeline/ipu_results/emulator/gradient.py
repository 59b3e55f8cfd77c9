"""Derive what the backward pass of a program computes: the gradients of each operator, from its sizes alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil
from typing import Literal

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
from ipu_results.emulator.schedule import OperatorCost, Planner, to_convolution_shape
from ipu_results.emulator.split import ConvolutionShape
from ipu_results.emulator.target import Target
from ipu_results.errors import UnsupportedOperatorError

Role = Literal["data", "weights"]
ADDITIONS = frozenset({"add", "sub"})  # the gradient of a sum is that of its result: nothing is computed
JOINS = frozenset({"split", "slice"})  # parts of one tensor, whose gradients are joined and not added


@dataclass(frozen=True, slots=True)
class GradientProduct:
    """The gradient of a convolution or matrix product with respect to its data or its weights.

    `shapes` are ways to compute it; the cheapest is taken. `turned` elements are rearranged before: the weights, whose
    channels are swapped for the data, or the data, which are summed over for the weights.
    """

    name: str
    role: Role
    macs: int
    shapes: tuple[ConvolutionShape, ...]
    turned: int


@dataclass(frozen=True, slots=True)
class GradientPass:
    """Vector code over `elements`; its cycles are the constant `gradient.<kind>`."""

    name: str
    kind: str
    elements: int


GradientStep = GradientProduct | GradientPass
Gradients = tuple[tuple[GradientStep, ...], ...]  # of each operator of the program, in its order


def derive_gradients(program: Program) -> Gradients:
    """Return the steps of the backward pass by operator of the forward pass. Inputs of the network need no gradient.

    Where several operators read a result, their gradients are added.
    """
    readers = Counter(source for sources in program.sources for source in sources)
    gradients = []
    for at, (operator, sources) in enumerate(zip(program.operators, program.sources, strict=True)):
        steps = list(_derive(operator, needs_data=any(source >= 0 for source in sources), unary=len(sources) < 2))
        # A split has one reader for each of its parts, which are not the same tensor.
        if readers[at] > 1 and not (isinstance(operator, Rearrangement) and operator.kind in JOINS):
            steps.append(GradientPass(operator.name, "sum", (readers[at] - 1) * operator.elements))
        gradients.append(tuple(steps))
    return tuple(gradients)


def _derive(operator: Operator, *, needs_data: bool, unary: bool) -> list[GradientStep]:
    name, elements = operator.name, operator.elements
    match operator:
        case Convolution():
            products = [_weigh_convolution(operator)]
            data = [_transpose_convolution(operator)] if needs_data else []
            return [*products, *data, *_reduce_bias(operator)]
        case Gemm(groups=groups, m=m, k=k, n=n):
            role: Role = "weights" if operator.constant else "data"
            left, right = _multiply(groups, m, n, k), _multiply(groups, k, m, n)
            data = [GradientProduct(name, "data", operator.macs, left, groups * k * n)] if needs_data else []
            return [*data, GradientProduct(name, role, operator.macs, right, groups * m * k), *_reduce_bias(operator)]
        case Elementwise(kind=kind) if kind in ADDITIONS:
            # With one source the other term is a bias or a constant: the bias needs the sum over all rows.
            return [GradientPass(name, "bias", elements)] if unary else []
        case Elementwise(kind=kind):
            return [GradientPass(name, kind, elements)]
        case Recurrence():
            raise UnsupportedOperatorError("the gradient of a recurrent operator is not supported", place=name)
        case Interpolation():
            return [GradientPass(name, "pool", elements * operator.window)]
        case Pool():
            return [GradientPass(name, "pool", elements * operator.window)]
        case GlobalPool():
            return [GradientPass(name, "spread", elements * operator.window)]
        case Reduction():
            return [GradientPass(name, "spread", operator.in_elements)]
        case Rearrangement(kind="gather"):
            return [GradientPass(name, "scatter", elements)]
        case Rearrangement():
            return [GradientPass(name, "move", elements)]


def _reduce_bias(operator: Convolution | Gemm) -> list[GradientStep]:
    return [GradientPass(operator.name, "bias", operator.elements)] if operator.bias else []


def _multiply(groups: int, m: int, k: int, n: int) -> tuple[ConvolutionShape, ...]:
    """Return m×k with k×n, and its transpose: either side may be held as weights."""
    plain, turned = ((1, groups, k, columns, rows, 1) for rows, columns in ((m, n), (n, m)))
    return (
        ConvolutionShape(*plain, in_rows=m, in_columns=1),
        ConvolutionShape(*turned, in_rows=n, in_columns=1),
    )


def _transpose_convolution(operator: Convolution) -> GradientProduct:
    """Swap input and output channels. With a stride s, it is s² convolutions over the field of the output.

    Together they have the taps of the forward convolution, so they cost as much as one without stride.
    """
    forward = to_convolution_shape(operator)
    shape = ConvolutionShape(
        forward.batch,
        forward.groups,
        forward.outs,
        forward.ins,
        forward.rows,
        forward.columns,
        forward.kernel_rows,
        forward.kernel_columns,
        in_rows=forward.rows,
        in_columns=forward.columns,
    )
    return GradientProduct(operator.name, "data", operator.macs, (shape,), operator.weights)


def _weigh_convolution(operator: Convolution) -> GradientProduct:
    """Sum over batch and field: a matrix product of the windows with the gradients of the output.

    The convolution with channels in place of the batch was never cheaper on the networks of the validation.
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
        costs = (plan.compute, plan.reduce, exchange, plan.supersteps + int(target["gradient.turn.supersteps"]))
        return OperatorCost(step.name, f"{step.role} gradient", *costs, step.macs, plan)
    supersteps = int(target.get(f"gradient.{step.kind}.supersteps", 1))
    share = ceil(step.elements / target.tiles)
    if step.kind == "move":
        return OperatorCost(step.name, "gradient move", 0.0, 0.0, _exchange_evenly(step.elements, target), supersteps)
    cycles = target.get(f"gradient.{step.kind}", target["gradient.other"])
    vectors = ceil_div(share, target["vector"])
    compute = target["workers"] * ceil_div(vectors, target["workers"]) * cycles
    return OperatorCost(step.name, f"gradient {step.kind}", compute, 0.0, 0.0, supersteps)


def _exchange_evenly(elements: int, target: Target) -> float:
    """Return the cycles in which every tile receives its share."""
    return ceil(elements / target.tiles) * target["element.bytes"] / target["exchange.bytes"]
