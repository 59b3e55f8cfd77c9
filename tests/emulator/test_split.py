"""The split search against every split and against a search in plain Python, and what holds for
every split.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, inf, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.emulator import split
from ipu_results.emulator.operators import ConvolutionShape
from ipu_results.emulator.split import DIMENSIONS, SplitPlan, plan_split
from ipu_results.emulator.target import Target, load_target

MK1 = load_target("c2")
MK2 = load_target("m2000")
FEW = 48  # tiles of a machine on which every split can be tried
PARITY = ConvolutionShape(3, 7, 64, 200, 4, 5, in_rows=4, in_columns=5)
DEPTH = ConvolutionShape(2, 1, 333, 64, 6, 6, in_rows=6, in_columns=6)

channels = st.sampled_from([1, 3, 4, 8, 16, 20, 40, 64, 100, 333])
targets = st.sampled_from([MK1, MK2])


@st.composite
def shapes(draw: st.DrawFn) -> ConvolutionShape:
    batch = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 2, 7, 32]))
    ins, outs = draw(st.one_of(st.tuples(channels, channels), st.just((1, 1))))
    rows, columns = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    kernel = draw(st.sampled_from([(1, 1), (1, 1), (3, 3), (5, 5), (1, 3)]))
    stride = draw(st.integers(1, 3))
    field = (rows * stride, columns * stride)
    return ConvolutionShape(batch, groups, ins, outs, rows, columns, *kernel, stride, *field)


def search_every_split(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Search without pruning: every number of parts that there are tiles for."""

    def list_all(_: object, size: int, most: int) -> np.ndarray:
        return np.arange(1.0, min(size, most) + 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "list_parts", list_all)
        return split.search_splits.__wrapped__(shape, target.searched)


def fits(plan: SplitPlan, target: Target) -> bool:
    return plan.temporary <= target["plan.memory"] * target["sram"]


# By hand


def cost_by_hand(field: int, ins: int, outs: int, groups: int, parts: tuple[int, ...]) -> float:
    """Return the cycles of one split of a 1×1 convolution on Mk1, straight from the equations."""
    f, i, o, g = parts
    n = ceil(field / f)
    ni = ceil(ceil(ins / 16) / i)
    no = ceil(ceil(outs / 8) / o)
    ng = ceil(groups / g)
    k = ceil(n / 6)
    worker = {1: 41, 2: 42}.get(k, 43 + 4 * (k - 3)) + 2
    later = 13 + no * (18 + 6 + 32 + 6 * worker)
    first = 10 + no * (18 + 6 + 32 + 6 * (worker + 2 + 2 * k))
    cycles = 50 + ng * (11 + (ni - 1) * later + first)
    inputs = n * min(ni * 16, ins) * ng * 2
    cycles += inputs / 4 if o % 2 else inputs / 8
    cycles += ng * no * 8 * ni * 16 * 2 * (1 - 1 / f) / 4
    left = n * no * 8 * ng
    stages = 2
    each = ceil(i**0.5)
    if i < 16:
        stages = 1
        each = i
    if i == 1:
        return cycles + 600
    for _ in range(stages):
        left = ceil(left / each)
        cycles += 192 + 6 * ceil(ceil(left / 8) / 6) * (3 * each + 8) + left * each * 2 / 4
    return cycles + 600 * (stages + 2)


def search_by_hand(field: int, ins: int, outs: int, groups: int, tiles: int) -> float:
    """Return the cycles of the cheapest split, without a memory limit."""
    best = inf
    most = (field, ceil(ins / 16), ceil(outs / 8), groups)
    for parts in product(*[range(1, size + 1) for size in most]):
        if prod(parts) <= tiles:
            best = min(best, cost_by_hand(field, ins, outs, groups, parts))
    return best


@settings(derandomize=True)
@given(st.integers(1, 24), channels, channels, st.integers(1, 4), st.integers(1, 24))
def test_exhaustive_search_equals_a_search_in_plain_python(
    field: int, ins: int, outs: int, groups: int, tiles: int
) -> None:
    target = MK1.with_constants({"plan.memory": 100, "tiles": tiles})
    shape = ConvolutionShape(1, groups, ins, outs, field, 1, in_rows=field, in_columns=1)
    plan = search_every_split(shape, target)
    cycles = plan.cycles + plan.supersteps * target["superstep.cycles"]
    expected = search_by_hand(field, ins, outs, groups, tiles)
    assert cycles == pytest.approx(expected, rel=1e-12)


# What pruning loses


@settings(derandomize=True)
@given(shape=shapes(), target=targets)
def test_search_equals_exhaustive_search(shape: ConvolutionShape, target: Target) -> None:
    few = target.with_constants({"tiles": FEW})
    assert plan_split(shape, few) == search_every_split(shape, few)


@pytest.mark.parametrize(
    ("shape", "dimension", "best"),
    [(PARITY, "outs", 6), (DEPTH, "ins", 12)],
    ids=["parity", "depth"],
)
def test_more_parts_of_an_equal_share_are_chosen_where_they_cost_less(
    shape: ConvolutionShape, dimension: str, best: int
) -> None:
    """An even number of users receives faster; more sets of partials are reduced in smaller pieces."""
    few = MK2.with_constants({"tiles": FEW})
    plan = plan_split(shape, few)
    assert plan.split[DIMENSIONS.index(dimension)] == best
    assert plan == search_every_split(shape, few)


# What holds for every split


@settings(derandomize=True)
@given(shape=shapes(), target=targets, memory=st.sampled_from([0.3, 0.01, 0.001]))
def test_memory_limit_holds_where_any_split_can_keep_it(
    shape: ConvolutionShape, target: Target, memory: float
) -> None:
    few = target.with_constants({"plan.memory": memory, "tiles": FEW})
    plan = plan_split(shape, few)
    roomy = plan_split(shape, few.with_constants({"plan.memory": 100}))
    if not fits(plan, few):
        every = search_every_split(shape, few)
        assert not fits(every, few)
        assert plan.temporary == every.temporary <= roomy.temporary


def test_depthwise_convolutions_use_slic_or_vmac_on_mk2_alone() -> None:
    depthwise = ConvolutionShape(1, 192, 1, 1, 28, 28, 3, 3, 1, 28, 28)
    assert plan_split(depthwise, MK1).vertex == "amp nx1, height 1"
    assert plan_split(depthwise, MK2).vertex.startswith(("slic 1x", "vmac"))
    assert plan_split(replace(depthwise, stride=2), MK2).vertex == "slic 1x4"
    assert plan_split(replace(depthwise, stride=3), MK2).vertex.startswith(("vmac", "amp"))
