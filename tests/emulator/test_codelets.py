"""Cycles of the vertices against the equations of the design, worked out by hand, and the constants
of the machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ipu_results.emulator import codelets
from ipu_results.emulator.operators import (
    Elementwise,
    Operator,
    Program,
    Rearrangement,
    Reduction,
    SlidingWindow,
)
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, TARGETS, Target, load_target
from ipu_results.errors import UnrecognisedModelError

MK1 = load_target("c2")
MK2 = load_target("m2000")


def share(**sizes: Any) -> codelets.Grid:
    """Return what a tile has of a convolution: 1 of what is not stated."""
    names = ("rows", "columns", "batch", "ins", "outs", "groups", "taps")
    return codelets.Grid(**{name: np.atleast_1d(sizes.get(name, 1.0)) for name in names})


# AMP


@pytest.mark.parametrize(("elements", "worker"), [(6, 36), (12, 37), (60, 38 + 4 * 7)])
def test_amp_1x1_on_mk2_keeps_the_state_of_the_workers(elements: int, worker: int) -> None:
    load = 32 * 16 // 8
    block = 3 * (19 + 7 + load + 6 * worker)
    expected = 50 + 6 * (7 + 3 * (2 * 4 - 1)) + 2 * (12 + (4 - 1) * (14 + block) + 12 + block)
    tile = share(rows=elements, groups=2, ins=4, outs=3)
    assert codelets.estimate_amp_1x1(MK2, tile).tolist() == [expected]


# field rows and columns of a tile, cycles of the pieces of the slowest worker
ROWS = [
    (2, 6, 34),
    (1, 5, 30),
    (3, 6, 35),
    (6, 4, 35 + 4),
    (7, 4, 35 + 4 + 30),
    (12, 3, 35 + 35),
    (6, 10, 35 + 4 * 7),
]


@pytest.mark.parametrize(("height", "more"), [(1, 15), (2, 46), (4, 60)])
def test_amp_nx1(height: int, more: int) -> None:
    """Mk1 calls the inner loop for each group of input channels, Mk2 hoists it."""
    rows, columns, pieces = np.array(ROWS, np.float64).T
    w = 6 * (20 + pieces)
    tile = share(rows=rows, columns=columns, groups=2, ins=5, outs=4, taps=2)
    load = 32 * 8 // 8 + more
    expected = 95 + 2 * (16 + 5 * (23 + 4 * (23 + 3 * (15 + 2 * (20 + load + w)))))
    assert codelets.estimate_amp_nx1(MK1, tile, 3, height).tolist() == list(expected)
    load = 32 * 16 // 8 + more
    expected = 109 + 114 + 2 * 5 * 4 * (14 + 3 * (12 + 2 * (load + 3)) + w * 2 * 3)
    assert codelets.estimate_amp_nx1(MK2, tile, 3, height).tolist() == list(expected)


# SLIC, VMAC, reduction


def estimate_slic(
    rows: int, columns: int, blocks: int, windows: int, stride: int, kind: tuple[int, int]
) -> float:
    tile = share(rows=rows, columns=columns, groups=blocks)
    (cycles,) = codelets.estimate_slic(MK2, tile, windows, stride, kind)
    return float(cycles)


@pytest.mark.parametrize(
    ("rows", "columns", "stride", "zero", "later"),
    [
        (12, 8, 1, 2 * (11 + 15 + 3), 2 * (10 + 15 + 3)),  # 16 elements a worker: two whole rows
        (12, 8, 2, 2 * (11 + 15 + 10), 2 * (10 + 15 + 10)),
        # 6 elements: a row of 4 and a part of 2
        (9, 4, 1, 11 + 13 + 4 + 11 + 13 + 2, 10 + 17 + 4 + 10 + 17 + 2),
        (3, 2, 1, 11 + 13, 10 + 13),  # one element a worker
        (6, 2, 2, 11 + 15, 10 + 15),
    ],
)
def test_slic_of_one_stride(rows: int, columns: int, stride: int, zero: int, later: int) -> None:
    """Five blocks of three windows of 4 channels: 28 + B·15 + 6(B−1)+1 + B[W·body + 6(W−1)+1 +
    6·workers].
    """
    workers = 6 * ((17 + zero) + 2 * (17 + later))
    expected = 28 + 5 * 15 + 6 * 4 + 1 + 5 * (3 * (34 + 20) + 6 * 2 + 1 + workers)
    assert estimate_slic(rows, columns, 5, 3, stride, (4, 1)) == expected


@pytest.mark.parametrize(("groups", "strides"), [(8, 2), (16, 4)])
def test_slic_of_many_groups_takes_several_strides(groups: int, strides: int) -> None:
    body = strides * (103 + 21) + 6 * (strides - 1) + 16
    workers = 6 * strides * ((17 + 4 + 2 * (11 + 18)) + 2 * (17 + 4 + 2 * (10 + 18)))
    expected = 28 + 5 * (15 + 8) + 6 * 4 + 1 + 5 * (3 * body + 6 * 2 + 1 + workers)
    assert estimate_slic(12, 8, 5, 3, 1, (1, groups)) == expected


def test_vmac() -> None:
    expected = 76 + 2 * (60 + 2 * 56 + 6 * (13 + 3 * 10 * (25 + 3 * (5 - 1))))
    assert codelets.estimate_vmac(MK2, share(rows=56, groups=2), 3, 5).tolist() == [expected]


def test_reductions_of_one_to_three_stages() -> None:
    """Depth, partials, stages, cycles, received elements; all in one call, as candidates are."""
    cases = [
        (1, 100, 0, 0, 0),
        (8, 100, 1, 192 + 6 * 1 * (3 * 8 + 8), 13 * 8),
        (15, 15, 1, 192 + 6 * 1 * (3 * 15 + 8), 15),
        (16, 240, 2, 2 * 192 + 6 * (2 + 1) * (3 * 4 + 8), 60 * 4 + 15 * 4),
        (124, 24, 2, 2 * (192 + 6 * 1 * (3 * 12 + 8)), 2 * 12 + 1 * 12),
        (125, 1000, 3, 3 * 192 + 6 * (5 + 1 + 1) * (3 * 5 + 8), 200 * 5 + 40 * 5 + 8 * 5),
    ]
    depth, partials, stages, cycles, received = np.array(cases, np.float64).T
    results = codelets.estimate_reduction(MK1, depth, partials)
    for result, expected in zip(results, (cycles, stages, received), strict=True):
        assert result.tolist() == expected.tolist()


# Operators without a split


def cost(target: Target, operator: Operator) -> tuple[float, int]:
    (step,) = schedule(Program("tiny", (operator,), ((-1,),), (), (), (), 0), target).steps
    return step.cycles, step.supersteps


@pytest.mark.parametrize(
    ("kind", "cycles", "supersteps"),
    [("relu", 2, 1), ("add", 3, 1), ("swish", 5, 1), ("batchnorm", 2 + 2, 5), ("unlisted", 5, 1)],
)
def test_elementwise_operators_spread_evenly(kind: str, cycles: int, supersteps: int) -> None:
    elements = 1472 * 50  # 50 a tile: 13 vectors, 3 for the slowest worker
    assert cost(MK2, Elementwise("e", kind, elements)) == (150 + 6 * 3 * cycles, supersteps)


def test_pools_and_rearrangements() -> None:
    # 24 results a tile: 6 vectors, one a worker
    pool = SlidingWindow("p", "max pool", 1216 * 24, 9)
    assert cost(MK1, pool) == (150 + 6 * 1 * 2 * 9, 1)
    # 49 a tile: 13 vectors, 3 for the slowest worker
    mean = Reduction("g", "global pool", 1216 * 49, 1216)
    assert cost(MK1, mean) == (150 + 6 * 3 * 2, 2)
    assert cost(MK1, Rearrangement("t", "transpose", 1216 * 10)) == (10 * 2 / 4, 1)


# The machines


@pytest.mark.parametrize("name", TARGETS)
def test_every_constant_has_unit_and_source_or_is_assumed(name: str) -> None:
    hints = ("as add", "as swish", "as sigmoid", "as batch-norm", "as the AMP", "structure of")
    hints += ("the middle", "6 to 9")
    for key, constant in load_target(name).constants.items():
        assert constant.unit, key
        assert len(constant.source) > 5, key
        if constant.source.startswith(hints) or constant.source.endswith(hints):
            assert constant.assumed, key
        if constant.range is not None:
            low, high = constant.range
            assert low <= constant.value <= high, key


def test_machines_by_their_digests() -> None:
    """Predictions name these digests: a constant that changes by accident is noticed here."""
    digests = ["4eec981fd6b80b4e", "fb0e7d6aa2d0864f", "1b06cc2e50fd068c", "4555d2173857688a"]
    assert [load_target(name).digest for name in TARGETS] == digests
    chips = [(target.chip, target.chips) for target in map(load_target, TARGETS[:3])]
    assert chips == [("GC2", 2), ("GC200", 4), ("Bow", 4)]
    assert tuple(DEFAULT_BATCH_SIZES) == TARGETS
    assert not [name for name in MK1.constants if name.startswith(("slic.", "vmac."))]


def test_unknown_target_is_refused() -> None:
    message = "is not a target: choose one of c2, m2000, bow-2000"
    with pytest.raises(UnrecognisedModelError, match=message):
        load_target("c3")
