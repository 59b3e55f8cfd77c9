"""The split search against every split, against a search written out in plain Python, and what no split may break."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, inf, prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ipu_results.emulator.split import DIMENSIONS, Plan, Shape, exhaustive, plan
from ipu_results.emulator.target import Target, load_target

MK1, MK2 = load_target("c2"), load_target("m2000")
PEAK = {"c2": 32, "m2000": 64}  # fp16 multiply-accumulates of a tile in a cycle
FEW = 48  # tiles of a machine on which every split can be looked at
PARITY = Shape(3, 7, 64, 200, 4, 5, in_rows=4, in_columns=5)
DEPTH = Shape(3, 1, 333, 20, 3, 4, in_rows=3, in_columns=4)

sizes = st.integers(1, 6)
channels = st.sampled_from([1, 3, 4, 8, 16, 20, 40, 64, 100, 333])
targets = st.sampled_from([MK1, MK2])


@st.composite
def shapes(draw: st.DrawFn, field: int = 6) -> Shape:
    rows, columns = draw(st.integers(1, field)), draw(st.integers(1, field))
    kernel, stride = draw(st.sampled_from([(1, 1), (1, 1), (3, 3), (5, 5), (1, 3)])), draw(st.integers(1, 3))
    depthwise = draw(st.integers(0, 4)) == 0
    groups, ins, outs = draw(st.sampled_from([1, 2, 7, 32])), draw(channels), draw(channels)
    ins, outs = (1, 1) if depthwise else (ins, outs)
    return Shape(
        draw(st.integers(1, 3)), groups, ins, outs, rows, columns, *kernel, stride, rows * stride, columns * stride
    )


def cost(one: Plan, target: Target) -> float:
    return one.cycles + one.supersteps * target["plan.superstep"]


def fits(one: Plan, target: Target) -> bool:
    return one.temporary <= target["plan.memory"] * target["sram"]


# By hand


def test_one_pass_on_one_tile_of_mk1() -> None:
    inputs, partials = 16 * 2, 8 * 2
    compute = 50 + 11 + 10 + 18 + 6 + 32 + 6 * (41 + 2 + 2 + 2)
    expected = Plan("amp 1x1", (1,) * 7, compute, 0.0, inputs / 4, 1, inputs + partials, 8)
    assert plan(Shape(1, 1, 16, 8, 1, 1, in_rows=1, in_columns=1), MK1) == expected


def test_two_tiles_that_receive_the_same_receive_it_twice_as_fast() -> None:
    compute = 50 + 11 + 10 + 18 + 6 + 32 + 6 * (41 + 2 + 2 + 2)
    expected = Plan("amp 1x1", (1, 1, 1, 1, 1, 2, 1), compute, 0.0, 16 * 2 / 8, 1, 16 * 2 + 8 * 2, 8)
    assert plan(Shape(1, 1, 16, 16, 1, 1, in_rows=1, in_columns=1), MK1) == expected


def mk1_by_hand(field: int, ins: int, outs: int, groups: int, tiles: int) -> tuple[float, tuple[int, ...]]:
    """The cheapest split of a 1×1 convolution, straight from the equations and with no memory limit."""
    best: tuple[float, tuple[int, ...]] = (inf, ())
    all_ins, all_outs = ceil(ins / 16), ceil(outs / 8)
    for f, i, o, g in product(*(range(1, size + 1) for size in (field, all_ins, all_outs, groups))):
        if f * i * o * g > tiles:
            continue
        n, ni, no, ng = ceil(field / f), ceil(all_ins / i), ceil(all_outs / o), ceil(groups / g)
        k = ceil(n / 6)
        worker = {1: 41, 2: 42}.get(k, 43 + 4 * (k - 3)) + 2
        load, w, w0 = 32, 6 * worker, 6 * (worker + 2 + 2 * k)
        compute = 50 + ng * (11 + (ni - 1) * (13 + no * (18 + 6 + load + w)) + 10 + no * (18 + 6 + load + w0))
        inputs, weights = n * min(ni * 16, ins) * ng * 2, ng * no * 8 * ni * 16 * 2 * (1 - 1 / f)
        exchange = inputs / (8 if o % 2 == 0 else 4) + weights / 4
        stages = 0 if i == 1 else 1 if i < 16 else 2
        left, reduce = n * no * 8 * ng, 0
        each = 1 if i == 1 else i if stages == 1 else ceil(i**0.5)
        for _ in range(stages):
            left = ceil(left / each)
            reduce += 32 + 6 * ceil(ceil(left / 4) / 6) * (3 * each + 7)
            exchange += left * each * 2 / 4
        supersteps = 1 + (stages + 1 if stages else 0)
        best = min(best, (compute + reduce + exchange + 700 * supersteps, (f, 1, 1, g, i, o, 1)))
    return best


@settings(derandomize=True)
@given(field=st.integers(1, 24), ins=channels, outs=channels, groups=st.integers(1, 4), tiles=st.integers(1, 24))
def test_the_exhaustive_search_is_one_in_plain_python(field: int, ins: int, outs: int, groups: int, tiles: int) -> None:
    target = MK1.changed(tiles=tiles, plan__memory=100)
    found = exhaustive(Shape(1, groups, ins, outs, field, 1, in_rows=field, in_columns=1), target)
    expected, split = mk1_by_hand(field, ins, outs, groups, tiles)
    assert cost(found, target) == pytest.approx(expected, rel=1e-12)
    assert prod(split) <= tiles


# What pruning loses


@settings(derandomize=True)
@given(shape=shapes(), target=targets)
def test_the_search_finds_what_every_split_holds(shape: Shape, target: Target) -> None:
    few = target.changed(tiles=FEW)
    assert plan(shape, few) == exhaustive(shape, few)


@settings(max_examples=25, derandomize=True)
@given(shape=shapes(4), target=targets)
def test_it_does_on_a_whole_machine_too(shape: Shape, target: Target) -> None:
    assume(shape.groups * shape.ins * shape.outs < 100_000)
    assert plan(shape, target) == exhaustive(shape, target)


@pytest.mark.parametrize(
    ("shape", "dimension", "best"), [(PARITY, "outs", 6), (DEPTH, "ins", 12)], ids=["parity", "depth"]
)
def test_more_parts_of_an_equal_share_are_found_where_they_cost_less(shape: Shape, dimension: str, best: int) -> None:
    """An even number of users receives faster; more sets of partials are reduced in smaller pieces."""
    few = MK2.changed(tiles=FEW)
    found = plan(shape, few)
    assert found.split[DIMENSIONS.index(dimension)] == best
    assert found == exhaustive(shape, few)


# What holds for every split


def dealt(shape: Shape, one: Plan, target: Target) -> dict[str, int]:
    """Sizes of the dimensions in what the vertex takes at once."""
    units, width = int(target["conv.units"]), 16
    first, _, second = one.vertex.partition(" ")[2].partition("x")
    found = {"rows": shape.rows, "columns": shape.columns, "batch": shape.batch, "groups": shape.groups, "taps": 1}
    if one.vertex == "vmac":
        return {**found, "groups": ceil(shape.groups / 8), "ins": 1, "outs": 1}
    if one.vertex.startswith("slic"):
        many = {"ins": ceil(shape.ins / int(first)), "outs": ceil(shape.outs / int(first))}
        return {**found, **many, "groups": ceil(shape.groups / int(second))}
    height = int(one.vertex.rpartition(" ")[2]) if one.vertex.startswith("amp nx1") else 1
    amp = {"ins": ceil(shape.ins / (width // height)), "outs": ceil(shape.outs / units)}
    if shape.kernel_rows == shape.kernel_columns == 1:
        return {**found, **amp, "rows": shape.rows * shape.columns * shape.batch, "columns": 1, "batch": 1}
    return {**found, **amp, "taps": ceil(shape.kernel_rows / height)}


@settings(derandomize=True)
@given(shape=shapes(30), target=targets)
def test_a_split_covers_the_work_and_no_tile_holds_more_than_its_share(shape: Shape, target: Target) -> None:
    found = plan(shape, target)
    whole, parts = dealt(shape, found, target), dict(zip(DIMENSIONS, found.split, strict=True))
    assert prod(found.split) <= target.tiles
    for name, size in whole.items():
        share = ceil(size / parts[name])
        assert 1 <= parts[name] <= size
        assert share * parts[name] >= size
    outputs = shape.batch * shape.groups * shape.outs * shape.rows * shape.columns
    assert found.share * prod(found.split) >= outputs


@settings(derandomize=True)
@given(shape=shapes(30), target=targets)
def test_no_split_is_faster_than_the_units(shape: Shape, target: Target) -> None:
    found = plan(shape, target)
    assert found.compute >= shape.macs / (prod(found.split) * PEAK[target.name])
    assert min(found.compute, found.exchange) > 0
    assert found.reduce >= 0


@settings(derandomize=True)
@given(shape=shapes(), target=targets, memory=st.sampled_from([0.3, 0.01, 0.001]))
def test_the_memory_limit_holds_where_any_split_can_keep_it(shape: Shape, target: Target, memory: float) -> None:
    few = target.changed(tiles=FEW, plan__memory=memory)
    found, roomy = plan(shape, few), plan(shape, few.changed(plan__memory=100))
    if not fits(found, few):
        every = exhaustive(shape, few)
        assert not fits(every, few)
        assert found.temporary == every.temporary <= roomy.temporary


@settings(derandomize=True)
@given(shape=shapes(20), target=targets, factor=st.sampled_from([1.1, 2, 8]))
def test_a_better_machine_is_not_slower(shape: Shape, target: Target, factor: float) -> None:
    now = plan(shape, target)
    assume(fits(now, target))
    wider = target.changed(
        exchange__bytes=target["exchange.bytes"] * factor, exchange__pair_bytes=target["exchange.pair_bytes"] * factor
    )
    for better in (
        wider,
        target.changed(sram=target["sram"] * factor),
        target.changed(tiles=int(target.tiles * factor)),
        target.changed(conv__load_bytes=16),
    ):
        assert cost(plan(shape, better), better) <= cost(now, target)


@settings(derandomize=True)
@given(shape=shapes(20), target=targets)
def test_a_larger_batch_does_not_take_less(shape: Shape, target: Target) -> None:
    larger = plan(replace(shape, batch=shape.batch + 1), target)
    assume(fits(larger, target))
    assert cost(plan(shape, target), target) <= cost(larger, target)


def test_depthwise_work_is_for_slic_or_vmac_on_mk2_alone() -> None:
    depthwise = Shape(1, 192, 1, 1, 28, 28, 3, 3, 1, 28, 28)
    assert plan(depthwise, MK1).vertex == "amp nx1, height 1"
    assert plan(depthwise, MK2).vertex.startswith(("slic 1x", "vmac"))
    assert plan(replace(depthwise, stride=3), MK2).vertex.startswith(("vmac", "amp"))


@settings(max_examples=20, derandomize=True)
@given(shape=shapes(12), target=targets)
def test_the_same_shape_gives_the_same_plan(shape: Shape, target: Target) -> None:
    fresh = load_target(target.name).changed(clock=target["clock"])
    assert plan.__wrapped__(shape, fresh) == plan(shape, target)
