"""Define the operators of a network with all their sizes, and count which results live at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """A convolution by its sizes alone, in elements; channels are those of a group.

    `in_rows` and `in_columns` are without padding. A one-dimensional one has one row. A matrix
    product has kernel 1 over a field of m × 1.
    """

    batch: int
    groups: int
    ins: int
    outs: int
    rows: int
    columns: int
    kernel_rows: int = 1
    kernel_columns: int = 1
    stride: int = 1
    in_rows: int = 0
    in_columns: int = 0

    @property
    def has_window(self) -> bool:
        return self.kernel_rows > 1 or self.kernel_columns > 1

    @property
    def weights(self) -> int:
        return self.groups * self.ins * self.outs * self.kernel_rows * self.kernel_columns

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the dense kernel, those on padding too."""
        return self.batch * self.rows * self.columns * self.weights

    @property
    def elements(self) -> int:
        """Elements of the output."""
        return self.batch * self.groups * self.outs * self.rows * self.columns

    @property
    def in_elements(self) -> int:
        return self.batch * self.groups * self.ins * self.in_rows * self.in_columns


def shape_product(groups: int, m: int, k: int, n: int) -> ConvolutionShape:
    """Return the shape of `groups` products of m×k with k×n."""
    return ConvolutionShape(
        batch=1, groups=groups, ins=k, outs=n, rows=m, columns=1, in_rows=m, in_columns=1
    )


@dataclass(frozen=True, slots=True)
class Product:
    """A `convolution`, or a `gemm` of matrices; `constant` where one side is a weight.

    Where a stack of m×k is multiplied with one k×n, all of its rows count as m, in one group.
    """

    name: str
    kind: str
    shape: ConvolutionShape
    constant: bool = True
    bias: bool = False

    @property
    def parameters(self) -> int:
        """Elements of the constant side and the bias."""
        shape = self.shape
        bias = shape.groups * shape.outs if self.bias else 0
        weights = shape.weights if self.constant else 0
        return weights + bias

    @property
    def macs(self) -> int:
        return self.shape.macs

    @property
    def elements(self) -> int:
        return self.shape.elements


def make_gemm(
    name: str, groups: int, m: int, k: int, n: int, *, constant: bool = True, bias: bool = False
) -> Product:
    """Return `groups` products of m×k with k×n."""
    return Product(name, "gemm", shape_product(groups, m, k, n), constant, bias)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One result per element of the output.

    `kind` is one of `lowering.ELEMENTWISE`, `swish` or `gelu`.
    """

    name: str
    kind: str
    elements: int


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Each result is made of `window` elements around its place.

    `kind` is `max pool`, `average pool`, `sum pool`, or such as `linear resize`.
    """

    name: str
    kind: str
    elements: int
    window: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """`in_elements` are reduced to `elements`; `kind` is `global pool` or `reduction`."""

    name: str
    kind: str
    in_elements: int
    elements: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`steps` times one after another: a product of the state with weights, then `passes` vector
    operations.

    `kind` is `lstm`, `gru` or `rnn`. `product` is that of one step, with a group for each direction.
    `elements` are those of all outputs. The operator before multiplies the inputs of all steps.
    """

    name: str
    kind: str
    steps: int
    product: Product
    passes: tuple[Elementwise, ...]
    elements: int

    @property
    def macs(self) -> int:
        return self.steps * self.product.macs


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Data moved and not changed.

    `kind` is one of `rearrangements` in operators.toml, `resize` or `interleave`.
    """

    name: str
    kind: str
    elements: int


Operator = Product | Recurrence | Elementwise | SlidingWindow | Reduction | Rearrangement


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that crosses the host link. `bits` are those of an element."""

    name: str
    shape: tuple[int, ...]
    bits: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Program:
    """Operators in an order in which each result exists before it is read.

    `sources[i]` are what operator i reads: j ≥ 0 for operator j, −1 − j for input j. `results` are
    the operators (or inputs, in the same notation) that the outputs are. `parameters` counts the
    elements of all parameters in use.
    """

    name: str
    operators: tuple[Operator, ...]
    sources: tuple[tuple[int, ...], ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    results: tuple[int, ...]
    parameters: int

    def __hash__(self) -> int:
        """Hash a few fields, for caches. Equality compares all."""
        return hash((self.name, self.inputs, self.parameters, len(self.operators)))

    @property
    def macs(self) -> int:
        products = (part for part in self.operators if isinstance(part, Product | Recurrence))
        return sum(product.macs for product in products)


@lru_cache(maxsize=256)
def count_live_elements(program: Program) -> tuple[int, ...]:
    """Count the activations that exist while each operator runs: its result and all that it or a
    later operator reads.

    An elementwise operator overwrites a source of its size that nothing reads later.
    Outputs live to the end, inputs from the start. Parameters and an operator's temporaries are not
    counted.
    """
    last_reader: dict[int, int] = {}
    for at, sources in enumerate(program.sources):
        last_reader |= dict.fromkeys(sources, at)
    end = len(program.operators)
    last_reader |= dict.fromkeys(program.results, end)
    sizes = {at: operator.elements for at, operator in enumerate(program.operators)}
    live = 0
    for number, tensor in enumerate(program.inputs):
        source = -1 - number
        sizes[source] = tensor.elements
        if source in last_reader:
            live += tensor.elements
    counts = []
    for at, operator in enumerate(program.operators):
        read = set(program.sources[at])
        dying = [sizes[source] for source in read if last_reader[source] == at]
        live += operator.elements
        count = live
        # A source that dies here can hold the result if it has the same size.
        if isinstance(operator, Elementwise) and operator.elements in dying:
            count -= operator.elements
        counts.append(count)
        live -= sum(dying)
    return tuple(counts)
