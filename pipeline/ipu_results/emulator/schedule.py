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

from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Operator,
    Product,
    Program,
    Rearrangement,
    Recurrence,
    Reduction,
    SlidingWindow,
    shape_product,
)
from ipu_results.emulator.split import SplitPlan, plan_split
from ipu_results.emulator.target import Target
from ipu_results.errors import UnsupportedOperatorError


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """The cost of one operator on the chip: cycles of compute, reduction and exchange, and
    supersteps.
    """

    name: str
    kind: str
    supersteps: int
    compute: float = 0.0
    reduce: float = 0.0
    exchange: float = 0.0
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
def schedule(program: Program, target: Target) -> Schedule:
    """Cost each operator in turn: the chip does one thing at a time on all tiles.

    Results are spread evenly over the tiles. A larger result is never cheaper.
    """
    steps = []
    for at, operator in enumerate(program.operators):
        step = _cost(operator, target)
        if isinstance(operator, Product) and operator.kind == "convolution":
            # A network's inputs and outputs are in the order of the host.
            edges = 0.0
            if any(source < 0 for source in program.sources[at]):
                edges += estimate_copy(operator.shape.in_elements, target)
            if at in program.results:
                edges += estimate_copy(operator.elements, target)
            step = replace(step, compute=step.compute + edges)
        steps.append(step)
    return Schedule(tuple(steps))


def _cost(operator: Operator, target: Target) -> OperatorCost:
    kind = operator.kind
    elements = operator.elements
    supersteps = 1.0
    match operator:
        case Product():
            return _cost_product(operator, target)
        case Recurrence():
            return _cost_recurrence(operator, target)
        case Rearrangement():
            waits = int(target["rearrange.supersteps"])
            share = elements / target.tiles
            moved = share * target["element.bytes"] / target["exchange.bytes"]
            return OperatorCost(operator.name, kind, waits, exchange=moved)
        case SlidingWindow():
            cycles = target["pool.tap"] * operator.window
        case Reduction():
            cycles = target["globalpool.cycles"]
            supersteps = target["globalpool.supersteps"]
            elements = operator.in_elements
        case _:
            # Norms and softmax are more than a pass, and have constants of their own.
            usual = target.get(f"elementwise.{kind}", target["elementwise.other"])
            cycles = target.get(f"{kind}.cycles", usual)
            supersteps = target.get(f"{kind}.supersteps", 1)
    compute = estimate_vectors(elements, cycles, target)
    if kind == "softmax":
        compute += estimate_copy(elements, target)
    return OperatorCost(operator.name, kind, int(supersteps), compute)


def _cost_product(product: Product, target: Target) -> OperatorCost:
    shape = product.shape
    copied = 0.0
    if not product.constant:
        copied = estimate_copy(shape.in_elements, target) + estimate_copy(shape.weights, target)
    plan = plan_split(shape, target)
    return _cost_plan(product.name, product.kind, plan, product.macs, copied)


def _cost_plan(
    name: str,
    kind: str,
    plan: SplitPlan,
    macs: int,
    copied: float,
    turned: float = 0.0,
    waits: int = 0,
) -> OperatorCost:
    """Add to a plan the cycles of copies and of data turned, and the supersteps of these."""
    return OperatorCost(
        name,
        kind,
        supersteps=plan.supersteps + waits,
        compute=plan.compute + copied,
        reduce=plan.reduce,
        exchange=plan.exchange + turned,
        macs=macs,
        plan=plan,
    )


def estimate_vectors(elements: float, cycles: float, target: Target) -> float:
    """Estimate a pass over elements: the start of its vertex and `cycles` for each vector of the
    fullest tile, rounded up to what keeps all of its workers busy.
    """
    share = ceil_div(elements, target.tiles)
    vectors = ceil_div(share, target["vector"])
    rounds = ceil_div(vectors, target["workers"])
    return float(target["elementwise.start"] + target["workers"] * rounds * cycles)


def estimate_copy(elements: int, target: Target) -> float:
    """Estimate the cycles in which every tile lays out its share again, for another operator.

    The two sides of a product of activations and the rows of a softmax are laid out differently
    from what made them. Rows that are no whole 8-byte words may take up to 25 times as long in one
    profile of the SDK; the vendor's own programs pad them (`attention_padding` of PopRT).
    """
    share = ceil_div(elements, target.tiles)
    return float(share * target["element.bytes"] * target["copy.word"])


def _cost_recurrence(operator: Recurrence, target: Target) -> OperatorCost:
    """Cost one step, and repeat it: a step reads the state that the one before left."""
    first = _cost_product(operator.product, target)
    parts = [first]
    parts += [_cost(part, target) for part in operator.passes]
    steps = operator.steps
    return replace(
        first,
        name=operator.name,
        kind=operator.kind,
        supersteps=steps * sum(part.supersteps for part in parts),
        compute=steps * sum(part.compute for part in parts),
        reduce=steps * first.reduce,
        exchange=steps * first.exchange,
        macs=operator.macs,
        repeats=steps,
    )


Role = Literal["data", "weights"]
# the gradient of a sum is that of its result: nothing is computed
ADDITIONS = ("add", "sub")
# parts of one tensor, whose gradients are joined and not added
JOINS = ("split", "slice")


@dataclass(frozen=True, slots=True)
class GradientProduct:
    """The gradient of a convolution or matrix product with respect to its data or its weights.

    `shapes` are ways to compute it; the cheapest is taken. Before that, `turned` elements are
    rearranged. For the data these are the weights, whose channels are swapped. For the weights they
    are the data, which are summed over.
    """

    name: str
    role: Role
    macs: int
    shapes: tuple[ConvolutionShape, ...]
    turned: int
    copied: int = 0  # elements that are laid out again: see estimate_copy


# Vector code over the elements of an Elementwise costs the constant `gradient.<kind>`.
GradientStep = GradientProduct | Elementwise
Gradients = tuple[tuple[GradientStep, ...], ...]  # of each operator of the program, in its order


def derive_gradients(program: Program) -> Gradients:
    """Return the steps of the backward pass by operator of the forward pass.

    Inputs of the network need no gradient.

    Where several operators read a result, their gradients are added.
    """
    readers: Counter[int] = Counter()
    for sources in program.sources:
        readers.update(sources)
    gradients = []
    for at, operator in enumerate(program.operators):
        sources = program.sources[at]
        needs_data = any(source >= 0 for source in sources)
        if isinstance(operator, Product):
            steps = _derive_product(operator, needs_data)
        else:
            steps = _derive_vectors(operator, unary=len(sources) < 2)
        # A split has one reader for each of its parts, which are not the same tensor.
        is_joined = isinstance(operator, Rearrangement) and operator.kind in JOINS
        further = readers[at] - 1
        if further > 0 and not is_joined:
            steps.append(Elementwise(operator.name, "sum", further * operator.elements))
        gradients.append(tuple(steps))
    return tuple(gradients)


def _derive_vectors(operator: Operator, *, unary: bool) -> list[GradientStep]:
    kind = operator.kind
    elements = operator.elements
    match operator:
        case Elementwise() if kind in ADDITIONS:
            # With one source the other term is a bias or a constant: the bias needs the sum over
            # all rows.
            if not unary:
                return []
            kind = "bias"
        case Recurrence():
            message = "the gradient of a recurrent operator is not supported"
            raise UnsupportedOperatorError(message, place=operator.name)
        case SlidingWindow():
            kind = "pool"
            elements *= operator.window
        case Reduction():
            kind = "spread"
            elements = operator.in_elements
        case Rearrangement():
            kind = "scatter" if kind == "gather" else "move"
    return [Elementwise(operator.name, kind, elements)]


def _derive_product(operator: Product, needs_data: bool) -> list[GradientStep]:
    """Derive the gradients of both sides, each of which needs the other side, and of the bias.

    That of the weights sums over batch and field: a matrix product of the windows with the
    gradients of the output. The convolution with channels in place of the batch was never cheaper
    on the networks of the validation.

    That of the data swaps input and output channels. With a stride s, it is s² convolutions over
    the field of the output. Together they have the taps of the forward convolution, so they cost as
    much as one without stride.
    """
    shape = operator.shape
    is_gemm = operator.kind == "gemm"
    taps = shape.kernel_rows * shape.kernel_columns
    summed = shape.batch * shape.rows * shape.columns
    windows = shape.ins * taps
    of_weights = GradientProduct(
        operator.name,
        role="weights",
        macs=operator.macs,
        # A product or its transpose: either side may be held as weights.
        shapes=(
            shape_product(shape.groups, windows, summed, shape.outs),
            shape_product(shape.groups, shape.outs, summed, windows),
        ),
        turned=shape.in_elements,
    )
    swapped = replace(
        shape,
        ins=shape.outs,
        outs=shape.ins,
        stride=1,
        in_rows=shape.rows,
        in_columns=shape.columns,
    )
    shapes = [swapped]
    if is_gemm:
        shapes.append(shape_product(shape.groups, shape.ins, shape.outs, shape.rows))
    of_data = GradientProduct(
        operator.name,
        role="data",
        macs=operator.macs,
        shapes=tuple(shapes),
        turned=shape.weights,
    )
    if not operator.constant:
        # Both sides are activations, so both gradients are of data. What each reads is laid out
        # again, as forward.
        of_data = replace(of_data, copied=shape.elements + shape.weights)
        of_weights = replace(of_weights, role="data", copied=shape.in_elements + shape.elements)
    steps: list[GradientStep] = [of_weights]
    if needs_data:
        steps.append(of_data)
    if is_gemm:
        # This changes the last digits of a sum alone.
        steps.reverse()
    if operator.bias:
        steps.append(Elementwise(operator.name, "bias", operator.elements))
    return steps


def cost_gradient(step: GradientStep, target: Target) -> OperatorCost:
    """Cost one step. A product is split by the same search as in the forward pass."""
    if isinstance(step, GradientProduct):
        return _cost_gradient_product(step, target)
    kind = f"gradient {step.kind}"
    supersteps = int(target.get(f"gradient.{step.kind}.supersteps", 1))
    if step.kind == "move":
        moved = _exchange_evenly(step.elements, target)
        return OperatorCost(step.name, kind, supersteps, exchange=moved)
    cycles = target.get(f"gradient.{step.kind}", target["gradient.other"])
    compute = estimate_vectors(step.elements, cycles, target)
    return OperatorCost(step.name, kind, supersteps, compute)


def _cost_gradient_product(step: GradientProduct, target: Target) -> OperatorCost:
    superstep = target["superstep.cycles"]
    plans = [plan_split(shape, target) for shape in step.shapes]
    plan = min(plans, key=lambda each: each.cycles + each.supersteps * superstep)
    return _cost_plan(
        step.name,
        f"{step.role} gradient",
        plan,
        step.macs,
        copied=estimate_copy(step.copied, target),
        turned=_exchange_evenly(step.turned, target),
        waits=int(target["gradient.turn.supersteps"]),
    )


def _exchange_evenly(elements: int, target: Target) -> float:
    """Return the cycles in which every tile receives its share."""
    share = ceil(elements / target.tiles)
    return share * target["element.bytes"] / target["exchange.bytes"]
