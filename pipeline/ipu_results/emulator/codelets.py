"""Estimate the cycles of the vertices that compute a product on a tile, from the constants of the
machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipu_results.emulator.target import Target

Array = np.ndarray[Any, np.dtype[np.float64]]

SLIC_CHANNELS = 4  # that one stride of a SLIC call handles
SLIC_PIPELINE, SLIC_PIPELINE_2 = 5, 3  # elements that fill its pipeline, at strides 1 and 2


def ceil_div(dividend: Any, divisor: Any) -> Any:
    """Divide and round up.

    Arrays hold whole numbers below 2^26 as doubles: there a true division is exact enough and
    faster than a floor one.
    """
    if isinstance(dividend, np.ndarray) or isinstance(divisor, np.ndarray):
        return np.ceil(dividend / divisor)
    return -(-dividend // divisor)


def compute_mac_rate(target: Target) -> float:
    """Return fp16 multiply-accumulates per cycle and tile."""
    return target["conv.units"] * target["conv.in_channels"] / target["amp1.worker_more"]


def estimate_coefficient_load(target: Target) -> float:
    """Estimate the cycles to load the weights of a pass."""
    return 32 * target["conv.units"] / target["conv.load_bytes"]


def estimate_amp_1x1(target: Target, field: Array, groups: Array, ins: Array, outs: Array) -> Array:
    """Estimate a 1×1 convolution: field elements, convolution groups, input and output channel
    groups of the tile.
    """
    per_worker = ceil_div(field, target["workers"])
    # The inner loop has a prologue: one and two elements cost nearly as much as three.
    worker = np.where(
        per_worker == 1,
        target["amp1.worker_one"],
        np.where(
            per_worker == 2,
            target["amp1.worker_two"],
            target["amp1.worker_many"] + target["amp1.worker_more"] * (per_worker - 3),
        ),
    )
    # The first group of input channels zeroes the partials, later groups add to them.
    first = worker + target["amp1.zero"] + target["amp1.zero_more"] * per_worker
    load = target["amp1.pass"] + estimate_coefficient_load(target)
    later = target["amp1.in"] + outs * (target["amp1.out"] + load + target["workers"] * worker)
    zeroing = target["amp1.in_first"] + outs * (
        target["amp1.out"] + load + target["workers"] * first
    )
    start = (
        target["amp1.start"]
        + target["amp1.start_first"]
        + target["amp1.start_step"] * (ins * groups - 1)
    )
    cycles: Array = start + groups * (target["amp1.group"] + (ins - 1) * later + zeroing)
    return cycles


def estimate_amp_nx1(
    target: Target,
    rows: Array,
    columns: Array,
    groups: Array,
    ins: Array,
    outs: Array,
    taps: tuple[int, Array, int],
) -> Array:
    """Estimate a convolution over rows of field elements, otherwise as `estimate_amp_1x1`.

    `taps` are kernel columns, steps over the kernel's rows and the filter height, which is how many
    rows a step covers.
    """
    across, down, height = taps
    load = estimate_coefficient_load(target) + target[f"ampn.load_{height}"]
    worker = target["workers"] * _estimate_worker(target, rows, columns)
    if "ampn.group" in target:  # Mk1 calls the inner loop per input channel group, Mk2 hoists it
        inner = target["ampn.column"] + down * (target["ampn.row"] + load + worker)
        outer = target["ampn.in"] + outs * (target["ampn.out"] + across * inner)
        return target["ampn.start"] + groups * (target["ampn.group"] + ins * outer)
    calls = target["ampn.column"] + down * (load + target["ampn.row"])
    return target["ampn.start"] + groups * ins * outs * (
        target["ampn.inner"] + across * calls + worker * down * across
    )


def _estimate_worker(target: Target, rows: Array, columns: Array) -> Array:
    """Estimate the worker that holds most."""
    whole, broken = _deal_rows(target, rows, columns)
    cycles: Array = (
        target["ampn.worker"]
        + whole * _estimate_piece(target, columns)
        + _estimate_piece(target, broken)
    )
    return cycles


def _deal_rows(target: Target, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Deal the elements to the workers: return the whole rows and the rest of a row of the one that
    holds most.
    """
    share = ceil_div(rows * columns, target["workers"])
    whole = share // columns
    return whole, share - whole * columns


def _estimate_piece(target: Target, length: Array) -> Array:
    more = target["ampn.piece_many"] + target["ampn.piece_more"] * (np.maximum(length, 3) - 3)
    short = np.where(
        length == 1, target["ampn.piece_one"], np.where(length == 2, target["ampn.piece_two"], more)
    )
    cycles: Array = np.where(length <= 0, 0, short)
    return cycles


def estimate_slic(
    target: Target,
    rows: Array,
    columns: Array,
    blocks: Array,
    windows: int,
    stride: int,
    kind: tuple[int, int],
) -> Array:
    """Estimate a SLIC convolution: `blocks` of channel groups on the tile, `windows` of 1×4 taps
    each.

    `kind` is the channels of a group and the groups of one call. A call handles 4 groups at a time,
    so 8 and 16 take several strides over the same window.
    """
    channels, at_once = kind
    strides = max(1, channels * at_once // SLIC_CHANNELS)
    load = target[f"slic.load_{channels}x{at_once}"]
    if strides == 1:
        body = load + target["slic.body"]
    else:
        loads = strides * (load + target["slic.load_again"])
        body = loads + target["slic.loop"] * (strides - 1) + target["slic.body_many"]
    whole, broken = _deal_rows(target, rows, columns)
    started = target["slic.worker"] + (target["slic.worker_many"] if strides > 1 else 0)
    first, later = (
        started
        + whole * _estimate_slic_piece(target, columns, stride, zero)
        + np.sign(broken) * _estimate_slic_piece(target, broken, stride, zero)
        for zero in (True, False)
    )
    loop = target["slic.loop"]
    work = target["workers"] * strides * (first + (windows - 1) * later)
    block = target["slic.block"] + (target["slic.block_many"] if strides > 1 else 0) + loop + 1
    cycles: Array = (
        target["slic.start"]
        + blocks * (block + windows * body + loop * (windows - 1) + work)
        + 1
        - loop
    )
    return cycles


def _estimate_slic_piece(target: Target, length: Array, stride: int, zero: bool) -> Array:
    """Estimate a whole or a broken row in one window. The first window also zeroes the partials."""
    if stride == 1:
        short = (target["slic.row_one"] if zero else target["slic.row_short"]) + length
        row = np.where(length < SLIC_PIPELINE, short, target["slic.row"] + length - SLIC_PIPELINE)
    else:
        row = target["slic.row2"] + target["slic.row2_more"] * np.maximum(
            length - SLIC_PIPELINE_2, 0
        )
    cycles: Array = (
        target["slic.piece"]
        + (1 if zero else 0)
        + np.where(length <= 1, target["slic.row_one"], row)
    )
    return cycles


def estimate_vmac(target: Target, field: Array, blocks: Array, kernel: tuple[int, int]) -> Array:
    """Estimate a depthwise convolution by vector multiply-accumulates: `blocks` of channels on the
    tile.
    """
    height, width = kernel
    row = target["vmac.row"] + target["vmac.tap"] * (width - 1)
    worker = target["vmac.worker"] + height * ceil_div(field, target["workers"]) * row
    block = target["vmac.block"] + target["vmac.element"] * field + target["workers"] * worker
    cycles: Array = target["vmac.start"] + blocks * block
    return cycles


def estimate_reduction(target: Target, depth: Array, partials: Array) -> tuple[Array, Array, Array]:
    """Estimate the addition of `depth` sets of `partials` elements a tile: cycles, stages and
    received elements.
    """
    cycles = np.zeros_like(partials)
    received = np.zeros_like(partials)
    many = np.where(depth < target["reduce.two_stages"], 2, 3)
    stages = np.where(depth <= 1, 0, np.where(depth < target["reduce.one_stage"], 1, many))
    for count in (1, 2, 3):
        chosen = stages == count
        each = np.ceil(depth[chosen] ** (1 / count))  # sets that a stage adds up
        left = partials[chosen]
        for _ in range(count):
            left = np.ceil(left / each)
            vectors = np.ceil(left / target["reduce.vector"])
            worker = ceil_div(vectors, target["workers"]) * (
                target["reduce.depth"] * each + target["reduce.rest"]
            )
            cycles[chosen] += target["reduce.start"] + target["workers"] * worker
            received[chosen] += left * each
    return cycles, stages, received
