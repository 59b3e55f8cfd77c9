"""Define the operators of a network with all their sizes, and count which results live at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Convolution:
    """Sizes in elements; `in_height` and `in_width` without padding.

    One-dimensional ones have height 1.
    """

    name: str
    batch: int
    groups: int
    in_channels_per_group: int
    out_channels_per_group: int
    in_height: int
    in_width: int
    out_height: int
    out_width: int
    kernel_height: int = 1
    kernel_width: int = 1
    stride_h: int = 1
    stride_w: int = 1
    bias: bool = False
    kind: ClassVar[str] = "convolution"

    @property
    def weights(self) -> int:
        """Elements of the kernel, without the bias."""
        channels = self.groups * self.in_channels_per_group * self.out_channels_per_group
        return channels * self.kernel_height * self.kernel_width

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the dense kernel, those on padding too."""
        return self.batch * self.out_height * self.out_width * self.weights

    @property
    def elements(self) -> int:
        """Elements of the output."""
        channels = self.groups * self.out_channels_per_group
        return self.batch * channels * self.out_height * self.out_width

    @property
    def in_elements(self) -> int:
        channels = self.groups * self.in_channels_per_group
        return self.batch * channels * self.in_height * self.in_width


@dataclass(frozen=True, slots=True)
class Gemm:
    """`groups` products of m×k with k×n; `constant` where the k×n side is a weight.

    Leading dimensions that the k×n side does not have are part of m: a product with one matrix has
    one group.
    """

    name: str
    groups: int
    m: int
    k: int
    n: int
    constant: bool = True
    bias: bool = False
    kind: ClassVar[str] = "gemm"

    @property
    def weights(self) -> int:
        """Elements of the constant side, without the bias."""
        return self.groups * self.k * self.n if self.constant else 0

    @property
    def macs(self) -> int:
        return self.groups * self.m * self.k * self.n

    @property
    def elements(self) -> int:
        """Elements of the output."""
        return self.groups * self.m * self.n


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

    `kind` is `max pool`, `average pool`, `sum pool`, `linear resize` or `cubic resize`.
    """

    name: str
    kind: str
    elements: int
    window: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """`in_elements` are reduced to `elements`; `kind` is `global pool` over height and width, else
    `reduction`.
    """

    name: str
    kind: str
    in_elements: int
    elements: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`steps` times one after another: a product of the state with weights, then `passes` vector
    operations.

    `kind` is `lstm`, `gru` or `rnn`. `product` is that of one step, its groups the directions; the
    products with the inputs of all steps are an operator before. `elements` are those of all
    outputs.
    """

    name: str
    kind: str
    steps: int
    product: Gemm
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


Product = Convolution | Gemm | Recurrence
Operator = Product | Elementwise | SlidingWindow | Reduction | Rearrangement


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
        return sum(part.macs for part in self.operators if isinstance(part, Product))


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
    last_reader |= dict.fromkeys(program.results, len(program.operators))
    sizes = {-1 - at: tensor.elements for at, tensor in enumerate(program.inputs)}
    live = sum(size for at, size in sizes.items() if at in last_reader)
    counts = []
    for at, operator in enumerate(program.operators):
        sizes[at] = operator.elements
        dying = []
        for source in set(program.sources[at]):
            if last_reader[source] == at:
                dying.append(sizes[source])
        live += operator.elements
        # A source that dies here can hold the result if it has the same size.
        if isinstance(operator, Elementwise) and operator.elements in dying:
            counts.append(live - operator.elements)
        else:
            counts.append(live)
        live -= sum(dying)
    return tuple(counts)
