"""Search how a convolution is split over the tiles: the split of its dimensions that costs the
fewest cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ipu_results.emulator import codelets
from ipu_results.emulator.codelets import Array, Grid, ceil_div, ceil_shares
from ipu_results.emulator.operators import ConvolutionShape, shape_product
from ipu_results.emulator.target import Target

DIMENSIONS = ("rows", "columns", "batch", "groups", "ins", "outs", "taps")
REDUCED = ("ins", "taps")  # their parts are sets of partials
# Its parts receive the same inputs. An even number of receivers receives them faster.
SHARED = "outs"
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
class SplitPlan:
    """The chosen split and its cost: cycles, supersteps, and temporary bytes of the fullest tile.

    `split` holds the parts of each of DIMENSIONS. `rank` is what the search compares.
    """

    vertex: str
    split: tuple[int, ...]
    compute: float
    reduce: float
    exchange: float
    supersteps: int
    temporary: float
    rank: float

    @property
    def cycles(self) -> float:
        return self.compute + self.reduce + self.exchange


@dataclass(frozen=True, slots=True)
class Vertex:
    """How much of a convolution one call of a vertex takes, and what a tile's share costs.

    A call takes `groups` groups of `ins` input and `outs` output channels each, and a part of the
    kernel with `rows` and `columns`. A `padded` vertex receives whole blocks of input channels.
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

    Of several numbers of parts that make the same share, the search tries the smallest, and others
    where they may cost less: an even number of receivers is faster, and more sets of partials are
    reduced in smaller pieces.
    """
    return search_splits(shape, target.searched)


@lru_cache(maxsize=65_536)
def search_splits(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Search as `plan_split`, by the `searched` constants alone."""
    if not shape.has_window:
        # Without a window, rows, columns and batch are one dimension.
        field = shape.batch * shape.rows * shape.columns
        shape = shape_product(shape.groups, field, shape.ins, shape.outs)
    plans = [_choose(shape, target, vertex) for vertex in _list_vertices(shape, target)]
    return min(plans, key=lambda plan: plan.rank)


def _list_vertices(shape: ConvolutionShape, target: Target) -> list[Vertex]:
    """List the vertex types that can compute the shape."""
    # SLIC has fp16 inputs alone
    has_slic = "slic.start" in target and target["element.bytes"] == FP16_BYTES
    # Kernel rows are taken as channels where a group has few. The planner of Mk1, which has no
    # SLIC, overrates the padding of such rows, and takes one.
    if not has_slic or not shape.has_window:
        return [_describe_amp(shape, target, height=1)]
    vertices = [_describe_amp(shape, target, height) for height in AMP_HEIGHTS]
    if shape.stride <= 2:
        most = max(shape.ins, shape.outs)
        for channels, groups in SLIC_KINDS:
            # A kind takes groups of fewer channels too, and pads them: so more are never cheaper.
            if most <= channels or channels == WIDEST_SLIC:
                vertices.append(_describe_slic(shape, target, channels, groups))
    if shape.ins == shape.outs == 1:
        vertices.append(_describe_vmac(shape, target))
    return vertices


def _describe_amp(shape: ConvolutionShape, target: Target, height: int) -> Vertex:
    """Describe the vertex that takes `height` rows of the kernel as input channels."""
    across = shape.kernel_columns
    name = "amp 1x1"
    estimate = partial(codelets.estimate_amp_1x1, target)
    if shape.has_window:
        name = f"amp nx1, height {height}"
        estimate = partial(codelets.estimate_amp_nx1, target, across=across, height=height)
    return Vertex(
        name,
        estimate,
        ins=int(target["conv.in_channels"]) // height,
        outs=int(target["conv.units"]),
        rows=height,
        columns=across,
    )


def _describe_vmac(shape: ConvolutionShape, target: Target) -> Vertex:
    height = shape.kernel_rows
    width = shape.kernel_columns
    return Vertex(
        "vmac",
        partial(codelets.estimate_vmac, target, height=height, width=width),
        groups=int(target["vmac.channels"]),
        rows=height,
        columns=width,
    )


def _describe_slic(shape: ConvolutionShape, target: Target, channels: int, at_once: int) -> Vertex:
    across = ceil_div(shape.kernel_columns, SLIC_WIDTH)
    estimate = partial(
        codelets.estimate_slic,
        target,
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
    counts = np.arange(1, min(size, limit) + 1, dtype=np.float64)
    if dimension in REDUCED:
        return counts
    shares = ceil_shares(size, counts)
    is_tried = np.diff(shares, prepend=np.inf) < 0  # one part less makes a larger share
    if dimension == SHARED:
        # An even number is tried too where the one before it is.
        is_even = counts % 2 == 0
        is_next = np.append(False, is_tried[:-1])
        is_tried |= is_next & is_even
    return counts[is_tried]


def _combine_parts(sizes: Sequence[int], tiles: int) -> list[Array]:
    """Combine the parts of the dimensions of Grid, as far as there is a tile for each."""
    used = np.ones(1)  # tiles of each combination so far
    parts: list[Array] = []
    for dimension, size in zip(Grid._fields, sizes, strict=True):
        added = list_parts(dimension, size, tiles)
        product = used[:, None] * added[None, :]
        # Each combination that is kept is one of those so far, with one of the numbers.
        so_far, number = np.nonzero(product <= tiles)
        used = product[so_far, number]
        parts = [counts[so_far] for counts in parts]
        parts.append(added[number])
    return parts


def _choose(shape: ConvolutionShape, target: Target, vertex: Vertex) -> SplitPlan:
    """Choose the cheapest split that fits, or the smallest where none does."""
    sizes = (
        shape.rows,
        shape.columns,
        shape.batch,
        ceil_div(shape.ins, vertex.ins),
        ceil_div(shape.outs, vertex.outs),
        ceil_div(shape.groups, vertex.groups),
        ceil_div(shape.kernel_rows, vertex.rows),
    )
    parts = Grid(*_combine_parts(sizes, target.tiles))
    share = Grid(*map(ceil_shares, sizes, parts))
    tile = _measure_tile(shape, target, vertex, parts, share)
    compute = vertex.estimate(share)
    sets = parts.ins * parts.taps
    reduction = codelets.estimate_reduction(target, sets, tile.partials)
    unshared = tile.weights + reduction.received * target["element.bytes"]
    exchange = tile.inputs / tile.input_speed + unshared / target["exchange.bytes"]
    supersteps = np.where(reduction.stages > 0, reduction.stages + 2, 1)
    cost = compute + reduction.cycles + exchange + target["superstep.cycles"] * supersteps
    fits = tile.temporary <= target["plan.memory"] * target["sram"]
    if fits.any():
        ranks = np.where(fits, cost, np.inf)
    else:
        ranks = tile.temporary * TOO_LARGE
    best = int(np.argmin(ranks))
    return SplitPlan(
        vertex=vertex.name,
        split=tuple(int(getattr(parts, name)[best]) for name in DIMENSIONS),
        compute=float(compute[best]),
        reduce=float(reduction.cycles[best]),
        exchange=float(exchange[best]),
        supersteps=int(supersteps[best]),
        temporary=float(tile.temporary[best]),
        rank=float(ranks[best]),
    )


class TileLoad(NamedTuple):
    """What the fullest tile holds and receives: elements of partials, bytes of its inputs and
    weights, and of all three.
    """

    partials: Array
    inputs: Array
    weights: Array
    temporary: Array
    input_speed: Array
    """Bytes a cycle."""


def _measure_tile(
    shape: ConvolutionShape, target: Target, vertex: Vertex, parts: Grid, share: Grid
) -> TileLoad:
    element_bytes = target["element.bytes"]
    groups = share.groups * vertex.groups
    ins = share.ins * vertex.ins
    outs = share.outs * vertex.outs
    partials = share.field * outs * groups
    received_ins = ins
    if not vertex.padded:
        received_ins = np.minimum(ins, shape.ins)
    inputs = _count_window(shape, vertex, share) * received_ins * groups * element_bytes
    kernel = share.taps * vertex.rows * vertex.columns
    weights = groups * ins * outs * kernel * element_bytes
    # The tiles of all parts of the field need the same weights: one of them holds them already.
    weights *= 1 - 1 / parts.field
    is_even = parts.outs % 2 == 0
    return TileLoad(
        partials,
        inputs,
        weights,
        temporary=inputs + weights + partials * element_bytes,
        input_speed=np.where(is_even, target["exchange.pair_bytes"], target["exchange.bytes"]),
    )


def _count_window(shape: ConvolutionShape, vertex: Vertex, share: Grid) -> Array:
    """Count the input elements of a channel that an output share reads; padding does not count."""
    kernel_rows = np.minimum(share.taps * vertex.rows, shape.kernel_rows)
    height = (share.rows - 1) * shape.stride + kernel_rows
    width = (share.columns - 1) * shape.stride + vertex.columns
    rows = np.minimum(height, shape.in_rows)
    columns = np.minimum(width, shape.in_columns)
    return share.batch * rows * columns
