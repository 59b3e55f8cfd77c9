"""Estimate the cycles of the vertices that compute a product on a tile, from the constants of the
machine.

Arrays hold a value for each split that is tried.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ipu_results.emulator.target import Target

Array = np.ndarray[Any, np.dtype[np.float64]]

UNIT_BYTES = 32  # of the weights of a convolution unit in a pass
SLIC_CHANNELS = 4  # that one stride of a SLIC call handles
# elements that fill the pipeline of SLIC, at strides 1 and 2
SLIC_PIPELINE = 5
SLIC_PIPELINE_2 = 3


class Grid(NamedTuple):
    """A tile's share of each dimension of a convolution, or the number of parts of each, in all
    splits that are tried.
    """

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


def ceil_div(dividend: Any, divisor: Any) -> Any:
    """Divide and round up. Numbers alone; `ceil_shares` is for arrays."""
    return -(-dividend // divisor)


def ceil_shares(sizes: Array | float, parts: Array | float) -> Array:
    """Divide and round up. In float64 this is exact for whole numbers below 2^26."""
    shares: Array = np.ceil(sizes / parts)
    return shares


def compute_mac_rate(target: Target) -> float:
    """Return fp16 multiply-accumulates per cycle and tile."""
    return target["conv.units"] * target["conv.in_channels"] / target["amp1.worker_more"]


def estimate_coefficient_load(target: Target) -> float:
    """Estimate the cycles to load the weights of a pass."""
    return UNIT_BYTES * target["conv.units"] / target["conv.load_bytes"]


def _estimate_loop(target: Target, loop: str, elements: Array) -> Array:
    """Estimate an inner loop, whose prologue makes one and two elements cost nearly as much as
    three.
    """
    further = np.maximum(elements, 3) - 3
    many = target[f"{loop}_many"] + target[f"{loop}_more"] * further
    several = np.where(elements == 2, target[f"{loop}_two"], many)
    return np.where(elements == 1, target[f"{loop}_one"], several)


def estimate_amp_1x1(target: Target, share: Grid) -> Array:
    """Estimate a 1×1 convolution. `ins` and `outs` of the share are groups of channels."""
    workers = target["workers"]
    per_worker = ceil_shares(share.field, workers)
    load = target["amp1.pass"] + estimate_coefficient_load(target)

    def estimate_outs(worker: Array) -> Array:
        out = target["amp1.out"] + load + workers * worker
        return share.outs * out

    # The first group of input channels zeroes the partials, later groups add to them.
    later_worker = _estimate_loop(target, "amp1.worker", per_worker)
    zeroing = target["amp1.zero"] + target["amp1.zero_more"] * per_worker
    later_in = target["amp1.in"] + estimate_outs(later_worker)
    first_in = target["amp1.in_first"] + estimate_outs(later_worker + zeroing)
    group = target["amp1.group"] + (share.ins - 1) * later_in + first_in
    steps = target["amp1.start_step"] * (share.ins * share.groups - 1)
    start = target["amp1.start"] + target["amp1.start_first"] + steps
    return start + share.groups * group


def estimate_amp_nx1(target: Target, share: Grid, across: int, height: int) -> Array:
    """Estimate a convolution with a kernel of `across` columns, otherwise as `estimate_amp_1x1`.

    Workers go along the rows of the field. A step covers `height` rows of the kernel.
    """
    load = estimate_coefficient_load(target) + target[f"ampn.load_{height}"]
    whole, broken = _deal_rows(target, share)
    pieces = whole * _estimate_loop(target, "ampn.piece", share.columns)
    pieces += np.where(broken > 0, _estimate_loop(target, "ampn.piece", broken), 0)
    workers = target["workers"] * (target["ampn.worker"] + pieces)
    # Mk1 calls the inner loop for each group of input channels.
    if "ampn.group" in target:
        cycles = target["ampn.row"] + load + workers
        loops: dict[str, Any] = {
            "column": share.taps,
            "out": across,
            "in": share.outs,
            "group": share.ins,
            "start": share.groups,
        }
        # from the innermost outwards, each with what it costs beside its passes
        for name, passes in loops.items():
            cycles = target[f"ampn.{name}"] + passes * cycles
        return cycles
    # Mk2 hoists it.
    column = target["ampn.column"] + share.taps * (load + target["ampn.row"])
    inner = target["ampn.inner"] + across * column + workers * share.taps * across
    return target["ampn.start"] + share.groups * share.ins * share.outs * inner


def _deal_rows(target: Target, share: Grid) -> tuple[Array, Array]:
    """Deal the elements of the field to the workers.

    Returns the whole rows of the worker that holds most, and its elements of a broken row.
    """
    most = ceil_shares(share.field, target["workers"])
    whole = most // share.columns
    return whole, most - whole * share.columns


def estimate_slic(
    target: Target, share: Grid, windows: int, stride: int, kind: tuple[int, int]
) -> Array:
    """Estimate a SLIC convolution: blocks of channel groups, `windows` of 1×4 taps each.

    `kind` is the channels of a group and the groups of one call. A call handles 4 groups at a time,
    so 8 and 16 take several strides over the same window.
    """
    channels, at_once = kind
    strides = max(1, channels * at_once // SLIC_CHANNELS)
    loop = target["slic.loop"]
    load = target[f"slic.load_{channels}x{at_once}"]
    block = target["slic.block"] + loop + 1
    started = target["slic.worker"]
    if strides == 1:
        body = load + target["slic.body"]
    else:
        body = strides * (load + target["slic.load_again"])
        body += loop * (strides - 1) + target["slic.body_many"]
        block += target["slic.block_many"]
        started += target["slic.worker_many"]
    whole, broken = _deal_rows(target, share)

    def estimate_worker(zero: bool) -> Array:
        row = _estimate_slic_piece(target, share.columns, stride, zero)
        rest = _estimate_slic_piece(target, broken, stride, zero)
        return started + whole * row + np.where(broken > 0, rest, 0)

    # The first window also zeroes the partials.
    first = estimate_worker(zero=True)
    later = estimate_worker(zero=False)
    workers = first + (windows - 1) * later
    between = loop * (windows - 1)
    work = windows * body + between + target["workers"] * strides * workers
    blocks = share.groups * share.ins * share.outs
    return target["slic.start"] + blocks * (block + work) + 1 - loop


def _estimate_slic_piece(target: Target, length: Array, stride: int, zero: bool) -> Array:
    """Estimate a whole or a broken row in one window."""
    if stride == 1:
        start = target["slic.row_short"]
        if zero:
            start = target["slic.row_one"]
        short = start + length
        long = target["slic.row"] + length - SLIC_PIPELINE
        row = np.where(length < SLIC_PIPELINE, short, long)
    else:
        further = np.maximum(length - SLIC_PIPELINE_2, 0)
        row = target["slic.row2"] + target["slic.row2_more"] * further
    at_most_one = length <= 1
    zeroing = int(zero)  # one cycle
    return target["slic.piece"] + zeroing + np.where(at_most_one, target["slic.row_one"], row)


def estimate_vmac(target: Target, share: Grid, height: int, width: int) -> Array:
    """Estimate a depthwise convolution by vector multiply-accumulates, with this kernel."""
    # a kernel row at one element of the field
    row_cycles = target["vmac.row"] + target["vmac.tap"] * (width - 1)
    rows = height * ceil_shares(share.field, target["workers"])
    worker = target["vmac.worker"] + rows * row_cycles
    zeroing = target["vmac.element"] * share.field
    block = target["vmac.block"] + zeroing + target["workers"] * worker
    return target["vmac.start"] + share.groups * block


class ReductionCost(NamedTuple):
    """Cycles, stages, and the elements that a tile receives."""

    cycles: Array
    stages: Array
    received: Array


def estimate_reduction(target: Target, depth: Array, partials: Array) -> ReductionCost:
    """Estimate the addition of `depth` sets of `partials` elements a tile."""
    cycles = np.zeros_like(partials)
    received = np.zeros_like(partials)
    several = np.where(depth < target["reduce.two_stages"], 2, 3)
    needed = np.where(depth < target["reduce.one_stage"], 1, several)
    stages = np.where(depth > 1, needed, 0)
    for count in (1, 2, 3):
        chosen = stages == count
        # Every stage adds up the same number of sets.
        sets = np.ceil(depth[chosen] ** (1 / count))
        vector_cycles = target["reduce.depth"] * sets + target["reduce.rest"]
        left = partials[chosen]
        for _ in range(count):
            # The tiles that hold the sets share what they make.
            left = np.ceil(left / sets)
            vectors = ceil_shares(left, target["reduce.vector"])
            worker = ceil_shares(vectors, target["workers"]) * vector_cycles
            cycles[chosen] += target["reduce.start"] + target["workers"] * worker
            received[chosen] += left * sets
    return ReductionCost(cycles, stages, received)
