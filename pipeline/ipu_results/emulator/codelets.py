"""Cycles of one tile in a vertex, from the shares of the work that it holds; arrays over candidate splits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipu_results.emulator.target import Target

Array = np.ndarray[Any, np.dtype[np.float64]]


def ceil_div(one: Any, other: Any) -> Any:
    """Rounded up. In arrays, for whole numbers below 2^26, by a division, which is faster than a floor division."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.ceil(one / other)
    return -(-one // other)


def coefficient_load(target: Target) -> float:
    """Cycles to load the weights of one pass."""
    return 32 * target["conv.units"] / target["conv.load_bytes"]


def amp_1x1(target: Target, field: Array, groups: Array, ins: Array, outs: Array) -> Array:
    """Field elements, conv groups, input and output channel groups of the tile."""
    per_worker = ceil_div(field, target["workers"])
    worker = np.where(
        per_worker == 1,
        target["amp1.worker_one"],
        np.where(
            per_worker == 2,
            target["amp1.worker_two"],
            target["amp1.worker_many"] + target["amp1.worker_more"] * (per_worker - 3),
        ),
    )
    first = worker + target["amp1.zero"] + target["amp1.zero_more"] * per_worker
    load = target["amp1.pass"] + coefficient_load(target)
    one = target["amp1.in"] + outs * (target["amp1.out"] + load + target["workers"] * worker)
    zeroing = target["amp1.in_first"] + outs * (target["amp1.out"] + load + target["workers"] * first)
    start = target["amp1.start"] + target["amp1.start_first"] + target["amp1.start_step"] * (ins * groups - 1)
    cycles: Array = start + groups * (target["amp1.group"] + (ins - 1) * one + zeroing)
    return cycles


def amp_nx1(
    target: Target, rows: Array, columns: Array, groups: Array, ins: Array, outs: Array, taps: tuple[int, Array, int]
) -> Array:
    """As `amp_1x1`, for rows of field elements; `taps` are kernel columns, kernel-row steps and the filter height."""
    across, down, height = taps
    load = coefficient_load(target) + target[f"ampn.load_{height}"]
    worker = target["workers"] * _slowest_worker(target, rows, columns)
    if "ampn.group" in target:
        inner = target["ampn.column"] + down * (target["ampn.row"] + load + worker)
        outer = target["ampn.in"] + outs * (target["ampn.out"] + across * inner)
        return target["ampn.start"] + groups * (target["ampn.group"] + ins * outer)
    calls = target["ampn.column"] + down * (load + target["ampn.row"])
    return target["ampn.start"] + groups * ins * outs * (target["ampn.inner"] + across * calls + worker * down * across)


def _slowest_worker(target: Target, rows: Array, columns: Array) -> Array:
    """Elements are dealt to the workers in whole and broken rows."""
    share = ceil_div(rows * columns, target["workers"])
    whole = share // columns
    cycles: Array = target["ampn.worker"] + whole * _piece(target, columns) + _piece(target, share - whole * columns)
    return cycles


def _piece(target: Target, length: Array) -> Array:
    more = target["ampn.piece_many"] + target["ampn.piece_more"] * (np.maximum(length, 3) - 3)
    short = np.where(length == 1, target["ampn.piece_one"], np.where(length == 2, target["ampn.piece_two"], more))
    found: Array = np.where(length <= 0, 0, short)
    return found


def slic(target: Target, rows: Array, columns: Array, blocks: Array, windows: int, stride: int) -> Array:
    """`blocks` of channel groups on the tile, `windows` of 1×4 taps each."""
    kind = "row" if stride == 1 else "row2"
    row = target[f"slic.{kind}"] + target[f"slic.{kind}_more"] * np.maximum(columns - target[f"slic.{kind}_from"], 0)
    worker = target["slic.worker"] + ceil_div(rows, target["workers"]) * row
    cycles: Array = target["slic.start"] + blocks * windows * (target["slic.load"] + target["workers"] * worker)
    return cycles


def vmac(target: Target, field: Array, blocks: Array, kernel: tuple[int, int]) -> Array:
    """Depthwise: `blocks` of channels on the tile."""
    height, width = kernel
    row = target["vmac.row"] + target["vmac.tap"] * (width - 1)
    share = ceil_div(field, target["workers"])
    cycles: Array = target["vmac.start"] + target["workers"] * blocks * share * height * row
    return cycles


def reduction(target: Target, depth: Array, partials: Array) -> tuple[Array, Array, Array]:
    """Cycles, stages and received elements of adding `depth` sets of partials, `partials` elements a tile."""
    cycles, received = np.zeros_like(partials), np.zeros_like(partials)
    more = np.where(depth < target["reduce.two_stages"], 2, 3)
    stages = np.where(depth <= 1, 0, np.where(depth < target["reduce.one_stage"], 1, more))
    for count in (1, 2, 3):
        mine = stages == count
        each = np.ceil(depth[mine] ** (1 / count))
        left = partials[mine]
        for _ in range(count):
            left = np.ceil(left / each)
            vectors = np.ceil(left / target["reduce.vector"])
            worker = ceil_div(vectors, target["workers"]) * (target["reduce.depth"] * each + target["reduce.rest"])
            cycles[mine] += target["reduce.start"] + target["workers"] * worker
            received[mine] += left * each
    return cycles, stages, received
