"""The estimator on blocks whose truth is known, and its tail rule compared with LoadGen's."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
from ipu_results.errors import RunnerError
from ipu_results.runner.backends import Kind
from ipu_results.runner.estimate import (
    MS,
    Block,
    Stamps,
    compute_binomial_cdf,
    compute_interval,
    count_allowed_slow,
    estimate,
    find_disturbances,
    group_by_round,
)

from benchmarks.runner.repeatability import QUIET
from benchmarks.runner.simulation import Scenario, simulate_sweeps

# How many of N queries LoadGen 6.0.17 would discard as the slowest, and one more; 0 where it
# requires more queries.
LOADGEN = {
    0.90: {63: 0, 64: 1, 80: 1, 81: 2, 99: 3, 1000: 78},
    0.99: {661: 0, 662: 1, 837: 1, 838: 2, 1001: 3},
}


def block(
    latency_ms: float,
    number: int = 0,
    kind: Kind = "amortised",
    *,
    runs: int = 8,
    batch: int = 4,
    **observed: Any,
) -> Block:
    """Build two sessions in step with batches of one length: a tenth pre-processing, a tenth
    retrieval.
    """
    length = round(latency_ms * MS)
    tenth = length // 10
    stamps: list[Stamps] = []
    for run in range(runs):
        at = run * length
        stamps.append((at, at + tenth // 2, at + tenth, at + length - tenth, at + length))
    sessions = (tuple(stamps), tuple(stamps))
    return Block(number, number, batch, kind, "2026-11-21T13:45:01Z", sessions, **observed)


def rounds(*latencies_ms: float, **observed: Any) -> list[Block]:
    return [block(latency, number, **observed) for number, latency in enumerate(latencies_ms)]


def quiet(count: int = 6, **observed: Any) -> list[Block]:
    return rounds(*[100.0] * count, **observed)


# --- the figures


def test_constant_clock_is_measured_exactly_and_without_suspicion() -> None:
    row = estimate([*quiet(), *quiet(3, kind="isolated")])
    intervals = (row.latency_ms, row.latency_ms_low, row.latency_ms_high, row.latency_isolated_ms)
    assert intervals == pytest.approx((100, 100, 100, 100))
    assert (row.rounds, row.blocks, row.iterations, row.disturbed_blocks) == (6, 9, 9 * 16, 0)
    assert (row.preprocess_ms, row.infer_ms, row.retrieve_ms) == pytest.approx((10, 80, 10))
    assert row.suspect == []


def test_throughput_is_the_median_over_rounds() -> None:
    row = estimate(rounds(100, 101, 102, 103, 104, 105))
    assert row.throughput == pytest.approx((4e3 / 102 + 4e3 / 103) / 2)
    assert (row.latency_ms_low, row.latency_ms_high) == pytest.approx((100, 105))
    assert row.latency_ms == pytest.approx(4e3 / row.throughput)
    several = [block(100, 0), block(100, 0), block(100, 0), block(200, 1), block(300, 2)]
    assert group_by_round(several) == pytest.approx([40, 20, 4 / 0.3])
    assert estimate(several).latency_ms == pytest.approx(200), "a round counts once"


def test_isolated_latency_is_the_median_of_block_medians() -> None:
    isolated = rounds(90, 110, 300, kind="isolated")
    assert estimate([*quiet(), *isolated]).latency_isolated_ms == pytest.approx(110)
    stamps = []
    for start, end in pairwise((0, 100, 200, 600, 700, 800)):
        stamps.append((start * int(MS), 0, 0, 0, end * int(MS)))
    slow_once = replace(block(100, 0, "isolated"), stamps=(tuple(stamps), tuple(stamps)))
    assert estimate([*quiet(), slow_once]).latency_isolated_ms == pytest.approx(100)


def test_observations_are_reported_by_median_or_maximum() -> None:
    first = block(100, 0, probe_ms=(5.0, 5.2), foreign_cpu=0.01, steal=0.0, power_w=90.0)
    second = block(100, 1, probe_ms=(5.1, 5.3), foreign_cpu=0.03, steal=0.01)
    third = block(100, 2, probe_ms=(5.1, 5.4), power_w=94.0)
    row = estimate([first, second, third, block(100, 0, "isolated", power_w=40.0)])
    assert row.probe_ms == pytest.approx(5.15)
    assert (row.foreign_cpu, row.steal) == (0.03, 0.01)
    assert row.power_w == 92.0, "of amortised blocks only"


def test_step_of_several_batches_counts_each_of_them() -> None:
    alone = block(100)
    several = replace(alone, batches_per_step=5)
    row = estimate([several])
    assert row.throughput == pytest.approx(5 * 40)
    assert (row.latency_ms, row.infer_ms, row.preprocess_ms) == pytest.approx((20, 16, 2))
    assert several.iterations == 16 * 5
    assert several.to_json()["batches_per_step"] == 5
    assert "batches_per_step" not in alone.to_json()


# --- few blocks, and none


def test_one_round_has_no_interval() -> None:
    row = estimate([block(100, runs=1)])
    assert (row.latency_ms, row.rounds, row.iterations) == (pytest.approx(100), 1, 2)
    assert (row.latency_ms_low, row.latency_ms_high, row.interval_confidence) == (None, None, None)
    assert row.suspect == ["only 1 round"]


HALF_EMPTY = replace(block(100, 1), stamps=(block(100).stamps[0], ()))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (quiet(kind="isolated"), "no amortised block was measured"),
        ([block(100, 0), block(100, 1, batch=8)], "several batch sizes: 4, 8"),
        ([replace(block(100), stamps=())], "block 0 has a session without iterations"),
        ([block(100, 0), HALF_EMPTY], "block 1 has a session without iterations"),
        ([block(0.0)], "block 0 has zero duration"),
    ],
)
def test_blocks_without_a_figure_are_an_error(blocks: list[Block], message: str) -> None:
    with pytest.raises(RunnerError, match=message):
        estimate(blocks)


# --- the interval and the tail


@pytest.mark.parametrize(
    ("count", "interval"),
    [
        (2, (1, 2, 0.5)),
        (5, (1, 5, 0.9375)),
        (6, (1, 6, 0.95)),
        (8, (1, 8, 0.95)),
        (9, (2, 8, 0.95)),
    ],
)
def test_interval_is_of_order_statistics(count: int, interval: tuple[float, float, float]) -> None:
    values = list(range(1, count + 1))
    random.Random(count).shuffle(values)
    assert compute_interval(values) == interval


def test_binomial_probabilities_of_a_million_trials_neither_vanish_nor_overflow() -> None:
    odds = compute_binomial_cdf(1_000_000, 0.5)
    assert odds[499_999] + odds[500_000] == pytest.approx(1, abs=1e-12)
    middle = 1 / math.sqrt(math.pi * 500_000)
    assert odds[500_000] - odds[499_999] == pytest.approx(middle, rel=1e-6)


@pytest.mark.parametrize("share", sorted(LOADGEN))
def test_as_many_are_discarded_as_by_loadgen(share: float) -> None:
    for count, allowed in LOADGEN[share].items():
        assert (count_allowed_slow(count, share) or 0) == allowed


def test_tail_of_the_row_is_that_of_isolated_iterations() -> None:
    isolated = rounds(90, 100, 110, kind="isolated", runs=22)
    row = estimate([*quiet(runs=500), *isolated])
    assert (row.latency_p90_ms, row.latency_p99_ms) == (pytest.approx(110), None)
    assert estimate([*quiet(runs=500), *isolated[:2]]).latency_p90_ms is None


# --- what is suspect

SLOW_PROBE = {"probe_ms": (5.0, 7.9)}
GOOD_PROBE = {"probe_ms": (5.0, 5.1)}
DRIFT = "drift of -5.7 % from the first half of the rounds to the second"
PROBED = quiet(7, **GOOD_PROBE)
SLOW = [block(100, 7, **SLOW_PROBE), block(100, 8, **SLOW_PROBE)]
FOREIGN = [block(100, 8, foreign_cpu=0.06), block(100, 9, foreign_cpu=0.06)]


@pytest.mark.parametrize(
    ("blocks", "suspect", "disturbed"),
    [
        (rounds(100, 100, 100, 100, 100, 130), "interval is 23.1 % wide", 1),
        # one of eight is not enough
        ([*PROBED, SLOW[0]], None, 1),
        ([*PROBED, *SLOW], "2 of 9 blocks disturbed: probe up to 1.58 times its best", 2),
        (
            [*quiet(8), *FOREIGN],
            "2 of 10 blocks disturbed: foreign processes took up to 6 % of the machine",
            2,
        ),
        (quiet(steal=0.09), "6 of 6 blocks disturbed: up to 9 % stolen by the hypervisor", 6),
        ([*quiet(5), block(100, 5, others=2)], "another sweep ran beside 1 of 6 blocks", 1),
    ],
)
def test_reasons_for_suspicion(blocks: list[Block], suspect: str | None, disturbed: int) -> None:
    row = estimate(blocks)
    assert row.suspect == ([suspect] if suspect else [])
    assert row.disturbed_blocks == disturbed
    assert row.latency_ms == pytest.approx(100), "disturbed blocks do not move the median"


@pytest.mark.parametrize(
    ("latencies_ms", "drifts"),
    [
        ((100, 100, 100, 106, 106, 106), True),
        ((100, 100, 106, 106), True),
        ((100, 106, 106), False),  # too few for two halves
        ((100, 100, 100, 150, 150, 100, 100), False),  # the middle is in neither half
    ],
)
def test_drift_is_between_the_halves_of_the_rounds(
    latencies_ms: tuple[float, ...], drifts: bool
) -> None:
    assert (DRIFT in estimate(rounds(*latencies_ms)).suspect) == drifts


def test_best_probe_of_the_run_reveals_a_row_that_is_slow_throughout() -> None:
    slow = quiet(probe_ms=(8.0, 8.0))
    assert estimate(slow).suspect == []
    reason = "6 of 6 blocks disturbed: probe up to 1.60 times its best"
    assert estimate(slow, best_probe_ms=5.0).suspect == [reason]


def test_flips_that_no_probe_sees_show_between_rounds() -> None:
    row = estimate(rounds(160, 100, 160, 160, 160, 100, **GOOD_PROBE))
    assert row.disturbed_blocks == 4
    assert "4 of 6 blocks disturbed: up to 60 % slower than the fastest of its kind" in row.suspect
    assert row.latency_ms == pytest.approx(160), "disturbed blocks count in the median"
    isolated = rounds(200, 200, 260, kind="isolated")
    causes = find_disturbances([*quiet(3), *isolated], None)
    assert list(map(bool, causes)) == [False] * 5 + [True], "compared with isolated ones"


# --- simulated machines


def test_quiet_machine_is_measured_within_a_hundredth_and_rarely_suspect() -> None:
    sweeps = simulate_sweeps(100, Scenario("quiet", QUIET))
    assert max(abs(sweep.row.latency_ms / sweep.quiet_ms - 1) for sweep in sweeps) < 0.015
    assert fmean(bool(sweep.row.suspect) for sweep in sweeps) <= 0.05
    assert fmean(sweep.holds for sweep in sweeps) >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 100)


@pytest.mark.parametrize("blind", [False, True])
def test_row_put_off_by_flips_is_suspect_or_contains_the_quiet_value(blind: bool) -> None:
    sweeps = simulate_sweeps(60, Scenario("flips", {**QUIET, "regimes": (1.6, 5.0, 10.0)}, blind))
    assert fmean(sweep.off for sweep in sweeps) > 0.2
    assert fmean(sweep.misleads for sweep in sweeps) <= 0.02
