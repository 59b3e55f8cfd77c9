"""Search how a convolution is split over the tiles: the split of its dimensions that costs the
fewest cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ipu_results.emulator import codelets
from ipu_results.emulator.codelets import Array, ceil_div
from ipu_results.emulator.target import Target

REDUCED = frozenset({"ins", "taps"})  # their parts are sets of partials
SHARED = frozenset({"outs"})  # their parts receive the same inputs, faster where the number is even
FP16_BYTES = 2
DIMENSIONS = ("rows", "columns", "batch", "groups", "ins", "outs", "taps")
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


Candidate = tuple[float, SplitPlan]  # cost and plan
Grid = dict[str, Array]  # by dimension, each over all candidates


def plan_split(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Return the cheapest split over all vertex types.

    The same shape and constants give the same plan.

    Of the numbers of parts with equal shares, the search tries the smallest. It also tries what can
    cost less: an even number of users, which receives faster, and more sets of partials, which are
    reduced in smaller pieces.
    """
    return search_splits(shape, target.searched)


@lru_cache(maxsize=65_536)
def search_splits(shape: ConvolutionShape, target: Target, *, every: bool = False) -> SplitPlan:
    """Return the cheapest split, or the cheapest of `every` split that there are tiles for: the
    reference.
    """
    return min(_iterate_candidates(shape, target, every), key=lambda candidate: candidate[0])[1]


def _iterate_candidates(
    shape: ConvolutionShape, target: Target, every: bool
) -> Iterator[Candidate]:
    """Yield the best split of each vertex type that can compute the shape."""
    if shape.kernel_rows == shape.kernel_columns == 1:
        yield _plan_amp_1x1(shape, target, every)
        return
    # SLIC has fp16 inputs alone
    has_slic = "slic.start" in target and target["element.bytes"] == FP16_BYTES
    # Kernel rows taken as channels where a group has few; the Mk1 planner overrates their padding
    # and takes one row.
    for height in (1, 2, 4) if has_slic else (1,):
        yield _plan_amp_nx1(shape, target, height, every)
    if has_slic and shape.stride <= 2:
        for channels, groups in SLIC_KINDS:
            # Fewer channels may be padded, so that more are never cheaper.
            if max(shape.ins, shape.outs) <= channels or channels == WIDEST_SLIC:
                yield _plan_slic(shape, target, channels, groups, every)
    if has_slic and shape.ins == shape.outs == 1:
        yield _plan_vmac(shape, target, every)


@lru_cache(maxsize=65_536)
def _list_parts(dimension: str, size: int, limit: int, every: bool) -> Array:
    """List numbers of parts up to `limit`: the smallest for each share, and the others worth a try."""
    if every or dimension in REDUCED:
        return np.arange(1, min(size, limit) + 1, dtype=np.float64)
    parts = [1]
    while (share := ceil_div(size, parts[-1])) > 1:
        parts.append(ceil_div(size, share - 1))
    if dimension in SHARED:
        parts += [
            count + 1
            for count in parts
            if count % 2 and ceil_div(size, count + 1) == ceil_div(size, count)
        ]
    return np.array(
        sorted(count for count in set(parts) if count <= min(size, limit)), dtype=np.float64
    )


def _build_grid(target: Target, every: bool, **sizes: int) -> tuple[Grid, Grid]:
    """Combine the parts of all dimensions, as far as there is a tile for each, and return the parts
    and the shares.
    """
    tiles = np.ones(1)
    parts = Grid()
    for dimension, size in sizes.items():
        added = _list_parts(dimension, size, target.tiles, every)
        product = tiles[:, None] * added[None, :]
        before, index = np.nonzero(product <= target.tiles)
        tiles = product[before, index]
        parts = {name: column[before] for name, column in parts.items()} | {dimension: added[index]}
    return parts, {dimension: ceil_div(size, parts[dimension]) for dimension, size in sizes.items()}


def _plan_amp_1x1(shape: ConvolutionShape, target: Target, every: bool) -> Candidate:
    field = shape.batch * shape.rows * shape.columns
    width = int(target["conv.in_channels"])
    units = int(target["conv.units"])
    ins = ceil_div(shape.ins, width)
    outs = ceil_div(shape.outs, units)
    parts, shares = _build_grid(target, every, rows=field, ins=ins, outs=outs, groups=shape.groups)
    n, i, o, g = shares.values()
    compute = codelets.estimate_amp_1x1(target, n, g, i, o)
    inputs = n * np.minimum(i * width, shape.ins) * g * target["element.bytes"]
    weights = g * o * units * i * width * target["element.bytes"] * (1 - 1 / parts["rows"])
    return _choose(target, "amp 1x1", parts, compute, n * o * units * g, inputs, weights)


def _plan_amp_nx1(shape: ConvolutionShape, target: Target, height: int, every: bool) -> Candidate:
    width = int(target["conv.in_channels"]) // height
    units = int(target["conv.units"])
    ins = ceil_div(shape.ins, width)
    outs = ceil_div(shape.outs, units)
    taps = ceil_div(shape.kernel_rows, height)
    channels = {"ins": ins, "outs": outs, "groups": shape.groups, "taps": taps}
    parts, shares = _build_grid(target, every, **_get_field(shape), **channels)
    r, c, b, i, o, g, t = shares.values()
    compute = codelets.estimate_amp_nx1(
        target, r * b, c, g, i, o, (shape.kernel_columns, t, height)
    )
    window = _count_window(
        shape, r, c, np.minimum(t * height, shape.kernel_rows), shape.kernel_columns
    )
    inputs = b * window * np.minimum(i * width, shape.ins) * g * target["element.bytes"]
    kernel = g * o * units * i * width * t * height * shape.kernel_columns
    weights = kernel * target["element.bytes"] * (1 - 1 / _count_users(parts))
    return _choose(
        target,
        f"amp nx1, height {height}",
        parts,
        compute,
        r * c * b * o * units * g,
        inputs,
        weights,
    )


def _plan_slic(
    shape: ConvolutionShape, target: Target, channels: int, at_once: int, every: bool
) -> Candidate:
    ins = ceil_div(shape.ins, channels)
    outs = ceil_div(shape.outs, channels)
    groups = ceil_div(shape.groups, at_once)
    across = ceil_div(shape.kernel_columns, SLIC_WIDTH)
    parts, shares = _build_grid(
        target, every, **_get_field(shape), ins=ins, outs=outs, groups=groups
    )
    r, c, b, i, o, g = shares.values()
    compute = codelets.estimate_slic(
        target, r * b, c, g * i * o, shape.kernel_rows * across, shape.stride, (channels, at_once)
    )
    window = _count_window(shape, r, c, shape.kernel_rows, SLIC_WIDTH * across)
    inputs = b * window * i * channels * g * at_once * target["element.bytes"]
    kernel = g * at_once * o * channels * i * channels * shape.kernel_rows * SLIC_WIDTH * across
    weights = kernel * target["element.bytes"] * (1 - 1 / _count_users(parts))
    partials = r * c * b * o * channels * g * at_once
    return _choose(target, f"slic {channels}x{at_once}", parts, compute, partials, inputs, weights)


def _plan_vmac(shape: ConvolutionShape, target: Target, every: bool) -> Candidate:
    at_once = int(target["vmac.channels"])
    parts, shares = _build_grid(
        target, every, **_get_field(shape), groups=ceil_div(shape.groups, at_once)
    )
    r, c, b, g = shares.values()
    compute = codelets.estimate_vmac(
        target, r * c * b, g, (shape.kernel_rows, shape.kernel_columns)
    )
    window = _count_window(shape, r, c, shape.kernel_rows, shape.kernel_columns)
    inputs = b * window * g * at_once * target["element.bytes"]
    kernel = g * at_once * shape.kernel_rows * shape.kernel_columns
    weights = kernel * target["element.bytes"] * (1 - 1 / _count_users(parts))
    return _choose(target, "vmac", parts, compute, r * c * b * g * at_once, inputs, weights)


def _get_field(shape: ConvolutionShape) -> dict[str, int]:
    return {"rows": shape.rows, "columns": shape.columns, "batch": shape.batch}


def _count_users(parts: Grid) -> Array:
    """Count the tiles that need the same weights; one of them holds them already."""
    return parts["rows"] * parts["columns"] * parts["batch"]


def _count_window(
    shape: ConvolutionShape, rows: Array, columns: Array, down: Any, across: int
) -> Array:
    """Count the input elements of a channel that an output share reads, without those on padding."""
    height = np.minimum((rows - 1) * shape.stride + down, shape.in_rows)
    width = np.minimum((columns - 1) * shape.stride + across, shape.in_columns)
    window: Array = height * width
    return window


def _choose(
    target: Target,
    vertex: str,
    parts: Grid,
    compute: Array,
    partials: Array,
    inputs: Array,
    weights: Array,
) -> Candidate:
    """Complete the costs of all candidates and choose the best that fits, or the smallest where
    none does.

    `partials` are the output elements of a tile, `inputs` and `weights` the bytes that it receives.
    """
    depth = np.ones_like(compute)
    for name in REDUCED & parts.keys():
        depth *= parts[name]
    reduce, stages, received = codelets.estimate_reduction(target, depth, partials)
    speed = target["exchange.bytes"]
    paired = target["exchange.pair_bytes"]
    even = parts["outs"] % 2 == 0 if "outs" in parts else False
    exchange = (
        inputs / np.where(even, paired, speed)
        + (weights + received * target["element.bytes"]) / speed
    )
    supersteps = 1 + np.where(stages > 0, stages + 1, 0)
    temporary = inputs + weights + partials * target["element.bytes"]
    cost = compute + reduce + exchange + target["superstep.cycles"] * supersteps
    fits = temporary <= target["plan.memory"] * target["sram"]
    ranked = np.where(fits, cost, np.inf) if fits.any() else temporary * TOO_LARGE
    best = int(np.argmin(ranked))
    plan = SplitPlan(
        vertex,
        tuple(int(parts[name][best]) if name in parts else 1 for name in DIMENSIONS),
        float(compute[best]),
        float(reduce[best]),
        float(exchange[best]),
        int(supersteps[best]),
        float(temporary[best]),
    )
    return float(ranked[best]), plan
