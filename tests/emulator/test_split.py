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

MK1, MK2 = load_target("c2"), load_target("m2000")
FEW = 48  # tiles of a machine on which every split can be tried
PARITY = ConvolutionShape(3, 7, 64, 200, 4, 5, in_rows=4, in_columns=5)
DEPTH = ConvolutionShape(2, 1, 333, 64, 6, 6, in_rows=6, in_columns=6)

channels = st.sampled_from([1, 3, 4, 8, 16, 20, 40, 64, 100, 333])
targets = st.sampled_from([MK1, MK2])


@st.composite
def shapes(draw: st.DrawFn, field: int = 6) -> ConvolutionShape:
    rows, columns = draw(st.integers(1, field)), draw(st.integers(1, field))
    kernel, stride = (
        draw(st.sampled_from([(1, 1), (1, 1), (3, 3), (5, 5), (1, 3)])),
        draw(st.integers(1, 3)),
    )
    depthwise = draw(st.integers(0, 4)) == 0
    groups, ins, outs = draw(st.sampled_from([1, 2, 7, 32])), draw(channels), draw(channels)
    ins, outs = (1, 1) if depthwise else (ins, outs)
    return ConvolutionShape(
        draw(st.integers(1, 3)),
        groups,
        ins,
        outs,
        rows,
        columns,
        *kernel,
        stride,
        rows * stride,
        columns * stride,
    )


def search_every_split(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Search without pruning: every number of parts that there are tiles for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            split, "list_parts", lambda _, size, most: np.arange(1.0, min(size, most) + 1)
        )
        return split.search_splits.__wrapped__(shape, target.searched)


def cost(plan: SplitPlan, target: Target) -> float:
    return plan.cycles + plan.supersteps * target["superstep.cycles"]


def fits(plan: SplitPlan, target: Target) -> bool:
    return plan.temporary <= target["plan.memory"] * target["sram"]


# By hand


def mk1_by_hand(
    field: int, ins: int, outs: int, groups: int, tiles: int
) -> tuple[float, tuple[int, ...]]:
    """Return the cheapest split of a 1×1 convolution, straight from the equations and without a
    memory limit.
    """
    best: tuple[float, tuple[int, ...]] = (inf, ())
    all_ins, all_outs = ceil(ins / 16), ceil(outs / 8)
    for f, i, o, g in product(*(range(1, size + 1) for size in (field, all_ins, all_outs, groups))):
        if f * i * o * g > tiles:
            continue
        n, ni, no, ng = ceil(field / f), ceil(all_ins / i), ceil(all_outs / o), ceil(groups / g)
        k = ceil(n / 6)
        worker = {1: 41, 2: 42}.get(k, 43 + 4 * (k - 3)) + 2
        load, w, w0 = 32, 6 * worker, 6 * (worker + 2 + 2 * k)
        compute = 50 + ng * (
            11 + (ni - 1) * (13 + no * (18 + 6 + load + w)) + 10 + no * (18 + 6 + load + w0)
        )
        inputs, weights = n * min(ni * 16, ins) * ng * 2, ng * no * 8 * ni * 16 * 2 * (1 - 1 / f)
        exchange = inputs / (8 if o % 2 == 0 else 4) + weights / 4
        stages = 0 if i == 1 else 1 if i < 16 else 2
        left, reduce = n * no * 8 * ng, 0
        each = 1 if i == 1 else i if stages == 1 else ceil(i**0.5)
        for _ in range(stages):
            left = ceil(left / each)
            reduce += 192 + 6 * ceil(ceil(left / 8) / 6) * (3 * each + 8)
            exchange += left * each * 2 / 4
        supersteps = 1 + (stages + 1 if stages else 0)
        best = min(best, (compute + reduce + exchange + 600 * supersteps, (f, 1, 1, g, i, o, 1)))
    return best


@settings(derandomize=True)
@given(
    field=st.integers(1, 24),
    ins=channels,
    outs=channels,
    groups=st.integers(1, 4),
    tiles=st.integers(1, 24),
)
def test_exhaustive_search_equals_a_search_in_plain_python(
    field: int, ins: int, outs: int, groups: int, tiles: int
) -> None:
    target = MK1.with_constants({"plan.memory": 100, "tiles": tiles})
    plan = search_every_split(
        ConvolutionShape(1, groups, ins, outs, field, 1, in_rows=field, in_columns=1), target
    )
    expected, parts = mk1_by_hand(field, ins, outs, groups, tiles)
    assert cost(plan, target) == pytest.approx(expected, rel=1e-12)
    assert prod(parts) <= tiles


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
    plan, roomy = (
        plan_split(shape, few),
        plan_split(shape, few.with_constants({"plan.memory": 100})),
    )
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
