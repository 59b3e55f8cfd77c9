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
# channels of a group and groups of one call, for fp16 partials
SLIC_KINDS = ((1, 4), (1, 8), (1, 16), (2, 2), (4, 1))
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
        kernel = self.kernel_rows * self.kernel_columns
        return self.batch * self.groups * self.ins * self.outs * self.rows * self.columns * kernel


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
        # The elements of a field without a window are alike.
        field = shape.batch * shape.rows * shape.columns
        shape = ConvolutionShape(
            1, shape.groups, shape.ins, shape.outs, field, 1, in_rows=field, in_columns=1
        )
    candidates = [_choose(shape, target, vertex) for vertex in _iterate_vertices(shape, target)]
    return min(candidates, key=lambda candidate: candidate.rank).plan


def _iterate_vertices(shape: ConvolutionShape, target: Target) -> Iterator[Vertex]:
    """Yield each vertex type that can compute the shape."""
    kernel = (shape.kernel_rows, shape.kernel_columns)
    if kernel == (1, 1):
        yield Vertex(
            "amp 1x1",
            lambda share: codelets.estimate_amp_1x1(
                target, share.rows, share.groups, share.ins, share.outs
            ),
            ins=int(target["conv.in_channels"]),
            outs=int(target["conv.units"]),
        )
        return
    # SLIC has fp16 inputs alone
    has_slic = "slic.start" in target and target["element.bytes"] == FP16_BYTES
    # Kernel rows taken as channels where a group has few; the Mk1 planner overrates their padding
    # and takes one row.
    for height in (1, 2, 4) if has_slic else (1,):
        yield _describe_amp(shape, target, height)
    if not has_slic:
        return
    if shape.stride <= 2:
        for channels, groups in SLIC_KINDS:
            # Fewer channels may be padded, so that more are never cheaper.
            if max(shape.ins, shape.outs) <= channels or channels == WIDEST_SLIC:
                yield _describe_slic(shape, target, channels, groups)
    if shape.ins == shape.outs == 1:
        yield Vertex(
            "vmac",
            lambda share: codelets.estimate_vmac(target, share.field, share.groups, kernel),
            groups=int(target["vmac.channels"]),
            rows=shape.kernel_rows,
            columns=shape.kernel_columns,
        )


def _describe_amp(shape: ConvolutionShape, target: Target, height: int) -> Vertex:
    """Describe the vertex that takes `height` rows of the kernel as input channels."""

    def estimate(share: Grid) -> Array:
        taps = (shape.kernel_columns, share.taps, height)
        rows = share.rows * share.batch
        return codelets.estimate_amp_nx1(
            target, rows, share.columns, share.groups, share.ins, share.outs, taps
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
            share.rows * share.batch,
            share.columns,
            share.groups * share.ins * share.outs,
            shape.kernel_rows * across,
            shape.stride,
            (channels, at_once),
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
    """List numbers of parts up to `limit`: the smallest for each share, and the others worth a try."""
    if dimension in REDUCED:
        return np.arange(1, min(size, limit) + 1, dtype=np.float64)
    parts = {1}
    share = size
    while share > 1:
        count = ceil_div(size, share - 1)
        parts.add(count)
        share = ceil_div(size, count)
    if dimension == SHARED:
        for odd in [count for count in parts if count % 2]:
            if ceil_div(size, odd + 1) == ceil_div(size, odd):
                parts.add(odd + 1)
    possible = [count for count in sorted(parts) if count <= min(size, limit)]
    return np.array(possible, dtype=np.float64)


def _combine_parts(sizes: dict[str, int], tiles: int) -> dict[str, Array]:
    """Combine the parts of all dimensions, as far as there is a tile for each."""
    used = np.ones(1)
    parts: dict[str, Array] = {}
    for dimension, size in sizes.items():
        added = list_parts(dimension, size, tiles)
        product = used[:, None] * added[None, :]
        before, index = np.nonzero(product <= tiles)
        used = product[before, index]
        for name in parts:
            parts[name] = parts[name][before]
        parts[dimension] = added[index]
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
    parts = Grid(**_combine_parts(sizes, target.tiles))
    share = Grid(**{name: ceil_shares(size, getattr(parts, name)) for name, size in sizes.items()})
    # What the fullest tile holds and receives, in elements.
    groups = share.groups * vertex.groups
    ins = share.ins * vertex.ins
    outs = share.outs * vertex.outs
    rows = share.taps * vertex.rows
    partials = share.field * outs * groups
    held = ins if vertex.padded else np.minimum(ins, shape.ins)
    inputs = _count_window(shape, vertex, share) * held * groups * target["element.bytes"]
    weights = groups * ins * outs * rows * vertex.columns * target["element.bytes"]
    # Tiles with the same weights: one of them holds them already.
    weights *= 1 - 1 / parts.field
    compute = vertex.estimate(share)
    reduce, stages, received = codelets.estimate_reduction(target, parts.ins * parts.taps, partials)
    even = parts.outs % 2 == 0
    speed = np.where(even, target["exchange.pair_bytes"], target["exchange.bytes"])
    later = (weights + received * target["element.bytes"]) / target["exchange.bytes"]
    exchange = inputs / speed + later
    supersteps = 1 + np.where(stages > 0, stages + 1, 0)
    temporary = inputs + weights + partials * target["element.bytes"]
    cost = compute + reduce + exchange + target["superstep.cycles"] * supersteps
    fits = temporary <= target["plan.memory"] * target["sram"]
    ranked = np.where(fits, cost, np.inf) if fits.any() else temporary * TOO_LARGE
    best = int(np.argmin(ranked))
    plan = SplitPlan(
        vertex.name,
        tuple(int(getattr(parts, name)[best]) for name in DIMENSIONS),
        float(compute[best]),
        float(reduce[best]),
        float(exchange[best]),
        int(supersteps[best]),
        float(temporary[best]),
    )
    return Candidate(float(ranked[best]), plan)


def _count_window(shape: ConvolutionShape, vertex: Vertex, share: Grid) -> Array:
    """Count the input elements of a channel that an output share reads, without those on padding."""
    down = np.minimum(share.taps * vertex.rows, shape.kernel_rows)
    height = np.minimum((share.rows - 1) * shape.stride + down, shape.in_rows)
    across = (share.columns - 1) * shape.stride + vertex.columns
    return share.batch * height * np.minimum(across, shape.in_columns)
