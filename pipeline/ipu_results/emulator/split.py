"""How a convolution is dealt to the tiles: the split of its dimensions that costs the fewest cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ipu_results.emulator import codelets
from ipu_results.emulator.codelets import Array, ceil_div
from ipu_results.emulator.target import Target

HALF = 2
REDUCED = frozenset({"ins", "taps"})  # their parts are sets of partials
SHARED = frozenset({"outs"})  # their parts receive the same inputs, faster where the number is even
DIMENSIONS = ("rows", "columns", "batch", "groups", "ins", "outs", "taps")


@dataclass(frozen=True, slots=True)
class Shape:
    """A convolution by its sizes alone; a matrix product is one of kernel 1 over a field of m × 1."""

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
class Plan:
    """The chosen split and what it costs: cycles, supersteps, and temporary bytes of the fullest tile.

    `share` is the output elements of the fullest tile, `split` the parts of each of DIMENSIONS.
    """

    vertex: str
    split: tuple[int, ...]
    compute: float
    reduce: float
    exchange: float
    supersteps: int
    temporary: float
    share: float

    @property
    def cycles(self) -> float:
        return self.compute + self.reduce + self.exchange


Search = Literal["best", "every"]


@lru_cache(maxsize=65_536)
def plan(shape: Shape, target: Target) -> Plan:
    """The cheapest split over all vertex types. Pure: the same shape and constants give the same plan.

    Of the parts that give a share the fewest are looked at, and besides these what can cost less: an even number of
    users, which receives faster, and more sets of partials, which are reduced in smaller pieces.
    """
    return min(_candidates(shape, target, "best"), key=lambda one: one[0])[1]


def exhaustive(shape: Shape, target: Target) -> Plan:
    """The cheapest of every split that there are tiles for: what a search has to find."""
    return min(_candidates(shape, target, "every"), key=lambda one: one[0])[1]


def _candidates(shape: Shape, target: Target, search: Search) -> Iterator[tuple[float, Plan]]:
    if shape.kernel_rows == shape.kernel_columns == 1:
        yield _amp_1x1(shape, target, search)
        return
    for height in _filter_heights(target):
        yield _amp_nx1(shape, target, height, search)
    if "slic.load" in target and shape.stride <= 2:
        for channels, groups in _slic_kinds(shape):
            yield _slic(shape, target, channels, groups, search)
    if "vmac.row" in target and shape.ins == shape.outs == 1:
        yield _vmac(shape, target, search)


def _filter_heights(target: Target) -> tuple[int, ...]:
    """Kernel rows taken as channels where a group has few; the Mk1 planner overrates their padding and takes one."""
    return (1, 2, 4) if "slic.load" in target else (1,)


def _slic_kinds(shape: Shape) -> tuple[tuple[int, int], ...]:
    """Channels of a group and groups that one call takes, for fp16 partials."""
    if shape.ins == shape.outs == 1:
        return ((1, 4), (1, 8), (1, 16))
    return ((2, 2),) if max(shape.ins, shape.outs) <= 2 else ((4, 1),)


@lru_cache(maxsize=65_536)
def _parts(dimension: str, size: int, most: int, search: Search) -> Array:
    """Numbers of parts up to `most`: the fewest that give each share, and those that a search takes besides."""
    if search == "every" or dimension in REDUCED:
        return np.arange(1, min(size, most) + 1, dtype=np.float64)
    found = [1]
    while (share := ceil_div(size, found[-1])) > 1:
        found.append(ceil_div(size, share - 1))
    if dimension in SHARED:
        found += [parts + 1 for parts in found if parts % 2 and ceil_div(size, parts + 1) == ceil_div(size, parts)]
    return np.array(sorted(parts for parts in set(found) if parts <= min(size, most)), dtype=np.float64)


def _grid(target: Target, search: Search, **sizes: int) -> tuple[Array, ...]:
    """Every combination of parts that has a tile for each, one array per dimension."""
    taken, columns = np.ones(1), list[Array]()
    for dimension, size in sizes.items():
        parts = _parts(dimension, size, target.tiles, search)
        product = taken[:, None] * parts[None, :]
        rows, cols = np.nonzero(product <= target.tiles)
        taken = product[rows, cols]
        columns = [*(column[rows] for column in columns), parts[cols]]
    return tuple(columns)


def _amp_1x1(shape: Shape, target: Target, search: Search) -> tuple[float, Plan]:
    field = shape.batch * shape.rows * shape.columns
    width, units = int(target["conv.in_channels"]), int(target["conv.units"])
    all_ins, all_outs = ceil_div(shape.ins, width), ceil_div(shape.outs, units)
    fields, ins, outs, groups = _grid(target, search, fields=field, ins=all_ins, outs=all_outs, groups=shape.groups)
    n, i = ceil_div(field, fields), ceil_div(all_ins, ins)
    o, g = ceil_div(all_outs, outs), ceil_div(shape.groups, groups)
    compute = codelets.amp_1x1(target, n, g, i, o)
    inputs = n * np.minimum(i * width, shape.ins) * g * HALF
    weights = g * o * units * i * width * HALF * (1 - 1 / fields)
    ones = np.ones_like(fields)
    split = (fields, ones, ones, groups, ins, outs, ones)
    return _cheapest(target, "amp 1x1", split, compute, ins, n * o * units * g, inputs, weights)


def _amp_nx1(shape: Shape, target: Target, height: int, search: Search) -> tuple[float, Plan]:
    width, units = int(target["conv.in_channels"]) // height, int(target["conv.units"])
    all_ins, all_outs = ceil_div(shape.ins, width), ceil_div(shape.outs, units)
    all_taps = ceil_div(shape.kernel_rows, height)
    sizes = {"ins": all_ins, "outs": all_outs, "groups": shape.groups, "taps": all_taps}
    rows, columns, batch, ins, outs, groups, taps = _grid(target, search, **_field(shape), **sizes)
    r, c, b = ceil_div(shape.rows, rows), ceil_div(shape.columns, columns), ceil_div(shape.batch, batch)
    i, o, g = ceil_div(all_ins, ins), ceil_div(all_outs, outs), ceil_div(shape.groups, groups)
    t = ceil_div(all_taps, taps)
    compute = codelets.amp_nx1(target, r * b, c, g, i, o, (shape.kernel_columns, t, height))
    window = _window(shape, r, c, np.minimum(t * height, shape.kernel_rows), shape.kernel_columns)
    inputs = b * window * np.minimum(i * width, shape.ins) * g * HALF
    users = rows * columns * batch
    weights = g * o * units * i * width * t * height * shape.kernel_columns * HALF * (1 - 1 / users)
    split = (rows, columns, batch, groups, ins, outs, taps)
    partials = r * c * b * o * units * g
    return _cheapest(target, f"amp nx1, height {height}", split, compute, ins * taps, partials, inputs, weights)


def _slic(shape: Shape, target: Target, channels: int, at_once: int, search: Search) -> tuple[float, Plan]:
    all_ins, all_outs = ceil_div(shape.ins, channels), ceil_div(shape.outs, channels)
    all_groups = ceil_div(shape.groups, at_once)
    across = ceil_div(shape.kernel_columns, 4)
    sizes = {"ins": all_ins, "outs": all_outs, "groups": all_groups}
    rows, columns, batch, ins, outs, groups = _grid(target, search, **_field(shape), **sizes)
    r, c, b = ceil_div(shape.rows, rows), ceil_div(shape.columns, columns), ceil_div(shape.batch, batch)
    i, o, g = ceil_div(all_ins, ins), ceil_div(all_outs, outs), ceil_div(all_groups, groups)
    compute = codelets.slic(target, r * b, c, g * i * o, shape.kernel_rows * across, shape.stride)
    window = _window(shape, r, c, shape.kernel_rows, 4 * across)
    inputs = b * window * i * channels * g * at_once * HALF
    users = rows * columns * batch
    kernel = shape.kernel_rows * 4 * across
    weights = g * at_once * o * channels * i * channels * kernel * HALF * (1 - 1 / users)
    ones = np.ones_like(rows)
    split = (rows, columns, batch, groups, ins, outs, ones)
    partials = r * c * b * o * channels * g * at_once
    return _cheapest(target, f"slic {channels}x{at_once}", split, compute, ins, partials, inputs, weights)


def _vmac(shape: Shape, target: Target, search: Search) -> tuple[float, Plan]:
    at_once = int(target["vmac.channels"])
    all_groups = ceil_div(shape.groups, at_once)
    rows, columns, batch, groups = _grid(target, search, **_field(shape), groups=all_groups)
    r, c, b = ceil_div(shape.rows, rows), ceil_div(shape.columns, columns), ceil_div(shape.batch, batch)
    g = ceil_div(all_groups, groups)
    compute = codelets.vmac(target, r * c * b, g, (shape.kernel_rows, shape.kernel_columns))
    window = _window(shape, r, c, shape.kernel_rows, shape.kernel_columns)
    inputs = b * window * g * at_once * HALF
    users = rows * columns * batch
    weights = g * at_once * shape.kernel_rows * shape.kernel_columns * HALF * (1 - 1 / users)
    ones = np.ones_like(rows)
    split = (rows, columns, batch, groups, ones, ones, ones)
    return _cheapest(target, "vmac", split, compute, ones, r * c * b * g * at_once, inputs, weights)


def _field(shape: Shape) -> dict[str, int]:
    return {"rows": shape.rows, "columns": shape.columns, "batch": shape.batch}


def _window(shape: Shape, rows: Array, columns: Array, down: Any, across: int) -> Array:
    """Input elements of one channel that an output share reads, those on padding left out."""
    height = np.minimum((rows - 1) * shape.stride + down, shape.in_rows)
    width = np.minimum((columns - 1) * shape.stride + across, shape.in_columns)
    found: Array = height * width
    return found


def _cheapest(
    target: Target,
    vertex: str,
    split: tuple[Array, ...],
    compute: Array,
    depth: Array,
    partials: Array,
    inputs: Array,
    weights: Array,
) -> tuple[float, Plan]:
    """Complete the costs of all candidates and take the best that fits; the smallest one where none does."""
    reduce, stages, received = codelets.reduction(target, depth, partials)
    speed, paired = target["exchange.bytes"], target["exchange.pair_bytes"]
    outs = split[DIMENSIONS.index("outs")]
    exchange = inputs / np.where(outs % 2 == 0, paired, speed) + (weights + received * HALF) / speed
    supersteps = 1 + np.where(stages > 0, stages + 1, 0)
    temporary = inputs + weights + partials * HALF
    cost = compute + reduce + exchange + target["plan.superstep"] * supersteps
    fits = temporary <= target["plan.memory"] * target["sram"]
    ranked = np.where(fits, cost, np.inf) if fits.any() else temporary * 1e6
    best = int(np.argmin(ranked))
    one = Plan(
        vertex,
        tuple(int(parts[best]) for parts in split),
        float(compute[best]),
        float(reduce[best]),
        float(exchange[best]),
        int(supersteps[best]),
        float(temporary[best]),
        float(np.ceil(partials[best] / depth[best])),
    )
    return float(ranked[best]), one
