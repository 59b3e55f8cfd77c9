"""Search how a convolution is split over the tiles: the split of its dimensions that costs the
fewest cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ipu_results.emulator import codelets
from ipu_results.emulator.codelets import Array, ceil_div, ceil_shares
from ipu_results.emulator.target import Target

DIMENSIONS = ("rows", "columns", "batch", "groups", "ins", "outs", "taps")
REDUCED = ("ins", "taps")  # their parts are sets of partials
SHARED = "outs"  # its parts receive the same inputs, faster where the number is even
FP16_BYTES = 2
SLIC_WIDTH = 4  # kernel columns that a SLIC window covers
AMP_HEIGHTS = (1, 2, 4)  # kernel rows that AMP may take as input channels
# channels of a group and groups of one call, for fp16 partials
SLIC_KINDS = (
    (1, 4),
    (1, 8),
    (1, 16),
    (2, 2),
    (4, 1),
)
WIDEST_SLIC = 4
TOO_LARGE = 1e6  # cost per byte where no split fits: the smallest is chosen


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """A convolution by its sizes alone. A matrix product has kernel 1 over a field of m × 1."""

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
    def macs(self) -> int:
        results = self.batch * self.groups * self.outs * self.rows * self.columns
        return results * self.ins * self.kernel_rows * self.kernel_columns


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The chosen split and its cost: cycles, supersteps, and temporary bytes of the fullest tile.

    `split` holds the parts of each of DIMENSIONS.
    """

    vertex: str
    split: tuple[int, ...]
    compute: float
    reduce: float
    exchange: float
    supersteps: int
    temporary: float

    @property
    def cycles(self) -> float:
        return self.compute + self.reduce + self.exchange


@dataclass(frozen=True, slots=True)
class Candidate:
    """The best split of one vertex type."""

    rank: float
    plan: SplitPlan


@dataclass(frozen=True, slots=True)
class Grid:
    """An array for each dimension, over all splits that are tried."""

    rows: Array
    columns: Array
    batch: Array
    ins: Array
    outs: Array
    groups: Array
    taps: Array

    @property
    def field(self) -> Array:
        """The product over rows, columns and batch."""
        return self.rows * self.columns * self.batch


@dataclass(frozen=True, slots=True)
class Vertex:
    """How much of a convolution one call of a vertex takes, and what a tile's share costs.

    `ins` and `outs` are channels of a group, `groups` those of a call, `rows` and `columns` the
    part of the kernel. A `padded` vertex receives whole blocks of input channels.
    """

    name: str
    estimate: Callable[[Grid], Array]
    ins: int = 1
    outs: int = 1
    groups: int = 1
    rows: int = 1
    columns: int = 1
    padded: bool = False


def plan_split(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Return the cheapest split over all vertex types.

    The same shape and constants give the same plan.

    Of the numbers of parts with equal shares, the search tries the smallest. It also tries what can
    cost less: an even number of users, which receives faster, and more sets of partials, which are
    reduced in smaller pieces.
    """
    return search_splits(shape, target.searched)


@lru_cache(maxsize=65_536)
def search_splits(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Search as `plan_split`, by the constants in SEARCHED alone."""
    if shape.kernel_rows == shape.kernel_columns == 1:
        shape = _join_field(shape)
    candidates = [_choose(shape, target, vertex) for vertex in _iterate_vertices(shape, target)]
    return min(candidates, key=lambda candidate: candidate.rank).plan


def _join_field(shape: ConvolutionShape) -> ConvolutionShape:
    """Return a shape without a window over one column: the elements of its field are alike."""
    field = shape.batch * shape.rows * shape.columns
    return ConvolutionShape(
        batch=1,
        groups=shape.groups,
        ins=shape.ins,
        outs=shape.outs,
        rows=field,
        columns=1,
        in_rows=field,
        in_columns=1,
    )


def _iterate_vertices(shape: ConvolutionShape, target: Target) -> Iterator[Vertex]:
    """Yield each vertex type that can compute the shape."""
    if shape.kernel_rows == shape.kernel_columns == 1:
        yield _describe_amp_1x1(target)
        return
    # SLIC has fp16 inputs alone
    has_slic = "slic.start" in target and target["element.bytes"] == FP16_BYTES
    if not has_slic:
        # The Mk1 planner overrates the padding of rows taken as channels, and takes one row.
        yield _describe_amp_nx1(shape, target, height=1)
        return
    # Kernel rows are taken as channels where a group has few.
    for height in AMP_HEIGHTS:
        yield _describe_amp_nx1(shape, target, height)
    if shape.stride <= 2:
        for channels, groups in SLIC_KINDS:
            # Fewer channels may be padded, so that more are never cheaper.
            if max(shape.ins, shape.outs) <= channels or channels == WIDEST_SLIC:
                yield _describe_slic(shape, target, channels, groups)
    if shape.ins == shape.outs == 1:
        yield _describe_vmac(shape, target)


def _describe_amp_1x1(target: Target) -> Vertex:
    def estimate(share: Grid) -> Array:
        return codelets.estimate_amp_1x1(
            target,
            field=share.rows,
            groups=share.groups,
            ins=share.ins,
            outs=share.outs,
        )

    return Vertex(
        "amp 1x1",
        estimate,
        ins=int(target["conv.in_channels"]),
        outs=int(target["conv.units"]),
    )


def _describe_vmac(shape: ConvolutionShape, target: Target) -> Vertex:
    kernel = (shape.kernel_rows, shape.kernel_columns)

    def estimate(share: Grid) -> Array:
        return codelets.estimate_vmac(target, share.field, share.groups, kernel)

    return Vertex(
        "vmac",
        estimate,
        groups=int(target["vmac.channels"]),
        rows=shape.kernel_rows,
        columns=shape.kernel_columns,
    )


def _describe_amp_nx1(shape: ConvolutionShape, target: Target, height: int) -> Vertex:
    """Describe the vertex that takes `height` rows of the kernel as input channels."""

    def estimate(share: Grid) -> Array:
        return codelets.estimate_amp_nx1(
            target,
            rows=share.rows * share.batch,
            columns=share.columns,
            groups=share.groups,
            ins=share.ins,
            outs=share.outs,
            taps=(shape.kernel_columns, share.taps, height),
        )

    return Vertex(
        f"amp nx1, height {height}",
        estimate,
        ins=int(target["conv.in_channels"]) // height,
        outs=int(target["conv.units"]),
        rows=height,
        columns=shape.kernel_columns,
    )


def _describe_slic(shape: ConvolutionShape, target: Target, channels: int, at_once: int) -> Vertex:
    across = ceil_div(shape.kernel_columns, SLIC_WIDTH)

    def estimate(share: Grid) -> Array:
        return codelets.estimate_slic(
            target,
            rows=share.rows * share.batch,
            columns=share.columns,
            blocks=share.groups * share.ins * share.outs,
            windows=shape.kernel_rows * across,
            stride=shape.stride,
            kind=(channels, at_once),
        )

    return Vertex(
        f"slic {channels}x{at_once}",
        estimate,
        ins=channels,
        outs=channels,
        groups=at_once,
        rows=shape.kernel_rows,
        columns=SLIC_WIDTH * across,
        padded=True,
    )


@lru_cache(maxsize=65_536)
def list_parts(dimension: str, size: int, limit: int) -> Array:
    """List numbers of parts up to `limit`: the smallest of each share, and others worth a try."""
    most = min(size, limit)
    if dimension in REDUCED:
        return np.arange(1, most + 1, dtype=np.float64)
    parts = {1}
    share = size
    while share > 1:
        count = ceil_div(size, share - 1)
        parts.add(count)
        share = ceil_div(size, count)
    if dimension == SHARED:
        for count in sorted(parts):
            is_free = ceil_div(size, count + 1) == ceil_div(size, count)
            if count % 2 and is_free:
                parts.add(count + 1)
    possible = [count for count in sorted(parts) if count <= most]
    return np.array(possible, dtype=np.float64)


def _combine_parts(sizes: dict[str, int], tiles: int) -> dict[str, Array]:
    """Combine the parts of all dimensions, as far as there is a tile for each."""
    used = np.ones(1)  # tiles of each combination so far
    parts: dict[str, Array] = {}
    for dimension, size in sizes.items():
        added = list_parts(dimension, size, tiles)
        product = used[:, None] * added[None, :]
        combination, choice = np.nonzero(product <= tiles)
        used = product[combination, choice]
        for name, counts in parts.items():
            parts[name] = counts[combination]
        parts[dimension] = added[choice]
    return parts


def _choose(shape: ConvolutionShape, target: Target, vertex: Vertex) -> Candidate:
    """Choose the cheapest split that fits, or the smallest where none does."""
    sizes = {
        "rows": shape.rows,
        "columns": shape.columns,
        "batch": shape.batch,
        "ins": ceil_div(shape.ins, vertex.ins),
        "outs": ceil_div(shape.outs, vertex.outs),
        "groups": ceil_div(shape.groups, vertex.groups),
        "taps": ceil_div(shape.kernel_rows, vertex.rows),
    }
    parts = _combine_parts(sizes, target.tiles)
    shares = {name: ceil_shares(size, parts[name]) for name, size in sizes.items()}
    share = Grid(**shares)
    grid = Grid(**parts)
    element_bytes = target["element.bytes"]
    # What the fullest tile holds and receives: elements of partials, else bytes.
    groups = share.groups * vertex.groups
    ins = share.ins * vertex.ins
    outs = share.outs * vertex.outs
    kernel_rows = share.taps * vertex.rows
    partials = share.field * outs * groups
    received_ins = ins
    if not vertex.padded:
        received_ins = np.minimum(ins, shape.ins)
    inputs = _count_window(shape, vertex, share) * received_ins * groups * element_bytes
    weights = groups * ins * outs * kernel_rows * vertex.columns * element_bytes
    # Tiles with the same weights: one of them holds them already.
    weights *= 1 - 1 / grid.field
    temporary = inputs + weights + partials * element_bytes
    compute = vertex.estimate(share)
    sets = grid.ins * grid.taps
    reduction = codelets.estimate_reduction(target, sets, partials)
    is_even = grid.outs % 2 == 0
    input_speed = np.where(is_even, target["exchange.pair_bytes"], target["exchange.bytes"])
    later = weights + reduction.received * element_bytes
    exchange = inputs / input_speed + later / target["exchange.bytes"]
    supersteps = 1 + np.where(reduction.stages > 0, reduction.stages + 1, 0)
    cost = compute + reduction.cycles + exchange + target["superstep.cycles"] * supersteps
    fits = temporary <= target["plan.memory"] * target["sram"]
    ranked = temporary * TOO_LARGE
    if fits.any():
        ranked = np.where(fits, cost, np.inf)
    best = int(np.argmin(ranked))
    plan = SplitPlan(
        vertex=vertex.name,
        split=tuple(int(parts[name][best]) for name in DIMENSIONS),
        compute=float(compute[best]),
        reduce=float(reduction.cycles[best]),
        exchange=float(exchange[best]),
        supersteps=int(supersteps[best]),
        temporary=float(temporary[best]),
    )
    return Candidate(float(ranked[best]), plan)


def _count_window(shape: ConvolutionShape, vertex: Vertex, share: Grid) -> Array:
    """Count the input elements of a channel that an output share reads; padding does not count."""
    kernel_rows = np.minimum(share.taps * vertex.rows, shape.kernel_rows)
    height = (share.rows - 1) * shape.stride + kernel_rows
    width = (share.columns - 1) * shape.stride + vertex.columns
    rows = np.minimum(height, shape.in_rows)
    columns = np.minimum(width, shape.in_columns)
    return share.batch * rows * columns
