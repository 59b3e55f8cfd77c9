"""The estimator on blocks whose truth is known, and its tail rule beside one that counts outcomes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from fractions import Fraction
from itertools import combinations, pairwise
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import RunnerError
from ipu_results.runner.blocks import Block, Kind, Stamps
from ipu_results.runner.estimate import (
    CONFIDENCE,
    Estimate,
    Limits,
    by_round,
    disturbances,
    estimate,
    interval,
    percent,
    slowest_allowed,
    tail_estimate,
)

from benchmarks import repeatability
from benchmarks.options import Options
from benchmarks.repeatability import QUIET, Scenario, simulated
from benchmarks.report import as_text

MS = 1_000_000
# how many of the slowest LoadGen 6.0.17 says it would discard, run with so many queries; None: it asks for more
LOADGEN = {
    0.90: {63: None, 64: 0, 80: 0, 81: 1, 99: 2, 1000: 77},
    0.99: {661: None, 662: 0, 837: 0, 838: 1, 1001: 2},
}


def block(
    latency_ms: float, number: int = 0, kind: Kind = "amortised", *, runs: int = 8, batch: int = 4, **seen: Any
) -> Block:
    """Two sessions in step, each batch as long as the other: a tenth pre-processing, a tenth retrieval."""
    length = round(latency_ms * MS)
    stamps = tuple(_iteration(at * length, length) for at in range(runs))
    return Block(number, number, batch, kind, "2026-11-21T13:45:01Z", (stamps, stamps), **seen)


def _iteration(start: int, length: int) -> Stamps:
    tenth = length // 10
    return start, start + tenth // 2, start + tenth, start + length - tenth, start + length


def rounds(*latencies_ms: float, **seen: Any) -> list[Block]:
    return [block(latency, number, **seen) for number, latency in enumerate(latencies_ms)]


def quiet(count: int = 6, **seen: Any) -> list[Block]:
    return rounds(*[100.0] * count, **seen)


lengths = st.lists(st.integers(1, 500), min_size=1, max_size=14)


# the figures


def test_constant_clock_gives_its_own_time_and_nothing_to_suspect() -> None:
    found = estimate([*quiet(), *quiet(3, kind="isolated")])
    assert found.throughput == pytest.approx(40)
    assert (found.latency_ms, found.latency_ms_low, found.latency_ms_high) == pytest.approx((100, 100, 100))
    assert (found.interval_confidence, found.latency_isolated_ms) == (0.95, pytest.approx(100))
    assert (found.rounds, found.blocks, found.iterations, found.disturbed_blocks) == (6, 9, 9 * 16, 0)
    assert found.suspect == []


def test_stages_add_up_to_the_iteration() -> None:
    found = estimate(quiet())
    assert (found.preprocess_ms, found.infer_ms, found.retrieve_ms) == pytest.approx((10, 80, 10))
    assert found.preprocess_ms + found.infer_ms + found.retrieve_ms == pytest.approx(found.latency_ms)


def test_median_over_rounds_and_interval_as_latency() -> None:
    found = estimate(rounds(100, 101, 102, 103, 104, 105))
    assert found.throughput == pytest.approx(median(4e3 / one for one in range(100, 106)))
    assert (found.latency_ms_low, found.latency_ms_high) == pytest.approx((100, 105))
    assert found.latency_ms == pytest.approx(4e3 / found.throughput)


def test_round_of_several_blocks_counts_once() -> None:
    several = [block(100, 0), block(100, 0), block(100, 0), block(200, 1), block(300, 2)]
    assert by_round(several) == pytest.approx([40, 20, 4 / 0.3])
    assert estimate(several).latency_ms == pytest.approx(200)


def test_isolated_latency_is_the_median_of_block_medians() -> None:
    isolated = [block(ms, number, "isolated") for number, ms in enumerate((90, 110, 300))]
    assert estimate([*quiet(), *isolated]).latency_isolated_ms == pytest.approx(110)


def test_slow_iteration_does_not_move_its_block() -> None:
    ends = [0, 100, 200, 600, 700, 800]
    stamps = tuple((a * MS, a * MS, a * MS, b * MS, b * MS) for a, b in pairwise(ends))
    isolated = replace(block(100, 0, "isolated"), stamps=(stamps, stamps))
    assert estimate([*quiet(), isolated]).latency_isolated_ms == pytest.approx(100)


def test_what_was_seen_is_told_by_its_median_or_its_worst() -> None:
    seen = [
        {"probe_ms": (5.0, 5.2), "foreign_cpu": 0.01, "steal": 0.0, "power_w": 90.0},
        {"probe_ms": (5.1, 5.3), "foreign_cpu": 0.03, "steal": 0.01, "power_w": None},
        {"probe_ms": (5.1, 5.4), "foreign_cpu": None, "steal": None, "power_w": 94.0},
    ]
    found = estimate([block(100, number, **one) for number, one in enumerate(seen)])
    assert (found.probe_ms, found.foreign_cpu, found.steal, found.power_w) == (pytest.approx(5.15), 0.03, 0.01, 92.0)


def test_power_is_that_of_amortised_blocks() -> None:
    isolated = quiet(3, kind="isolated", power_w=40.0)
    assert estimate([*quiet(power_w=90.0), *isolated]).power_w == 90.0
    assert estimate([*quiet(), *isolated]).power_w is None


def test_what_was_not_seen_is_none() -> None:
    found = estimate(quiet())
    assert (found.probe_ms, found.foreign_cpu, found.steal, found.power_w) == (None,) * 4
    assert (found.latency_isolated_ms, found.latency_p90_ms, found.latency_p99_ms) == (None,) * 3


def test_estimate_has_a_field_for_each_statistic_of_a_point() -> None:
    wanted = (
        "throughput latency_ms latency_ms_low latency_ms_high interval_confidence latency_isolated_ms latency_p90_ms "
        "latency_p99_ms rounds blocks iterations disturbed_blocks preprocess_ms infer_ms retrieve_ms probe_ms "
        "foreign_cpu steal power_w suspect"
    )
    assert [one.name for one in fields(Estimate)] == wanted.split()


# few blocks, and none


def test_one_round_of_one_iteration_has_no_interval() -> None:
    found = estimate([block(100, runs=1)])
    assert (found.latency_ms, found.rounds, found.iterations) == (pytest.approx(100), 1, 2)
    assert (found.latency_ms_low, found.latency_ms_high, found.interval_confidence) == (None, None, None)
    assert found.suspect == ["only 1 round"]


def test_no_blocks_at_all_is_an_error() -> None:
    with pytest.raises(RunnerError, match="no amortised block was measured"):
        estimate([])


def test_isolated_blocks_alone_are_an_error() -> None:
    with pytest.raises(RunnerError, match="no amortised block was measured"):
        estimate(quiet(kind="isolated"))


def test_two_batch_sizes_are_an_error() -> None:
    with pytest.raises(RunnerError, match="several batch sizes: 4, 8"):
        estimate([block(100, 0), block(100, 1, batch=8)])


@pytest.mark.parametrize("stamps", [(), ((),), (block(100).stamps[0], ())])
def test_session_without_iterations_is_an_error(stamps: Any) -> None:
    with pytest.raises(RunnerError, match="block 1 has a session without iterations"):
        estimate([block(100, 0), replace(block(100, 1), stamps=stamps)])


def test_clock_that_stands_still_is_an_error() -> None:
    with pytest.raises(RunnerError, match="clock stood still in block 0"):
        estimate([block(0.0)])


# the interval


@pytest.mark.parametrize(
    ("count", "wanted"),
    [(2, (1, 2, 0.5)), (3, (1, 3, 0.75)), (5, (1, 5, 0.9375)), (6, (1, 6, 0.95)), (8, (1, 8, 0.95)), (9, (2, 8, 0.95))],
)
def test_interval_is_of_order_statistics(count: int, wanted: tuple[float, float, float]) -> None:
    values = list(range(1, count + 1))
    random.Random(count).shuffle(values)
    assert interval(values) == wanted


@given(st.integers(2, 60))
def test_interval_has_the_confidence_it_says_by_counting_heads(count: int) -> None:
    """The median lies between the order statistics l and h unless fewer than l + 1, or more than h, fall below it."""
    low, high, confidence = interval(range(count))
    assert low is not None
    assert high is not None
    inside = sum(Fraction(math.comb(count, below), 2**count) for below in range(int(low) + 1, int(high) + 1))
    assert inside >= Fraction(str(confidence))
    if count >= 6:
        tighter = sum(Fraction(math.comb(count, below), 2**count) for below in range(int(low) + 2, int(high)))
        assert tighter < Fraction(str(CONFIDENCE))


@pytest.mark.parametrize("count", [3, 5, 6, 9, 12])
def test_interval_holds_the_median_as_often_as_it_says(count: int) -> None:
    """500 sweeps of a skewed distribution: the share is at least the nominal one, less 4 standard errors."""
    random_ = np.random.default_rng(count)
    held = 0
    for _ in range(500):
        low, high, confidence = interval(list(random_.lognormal(0.0, 0.3, count)))
        assert low is not None
        assert high is not None
        assert confidence is not None
        held += low <= 1.0 <= high
    assert held / 500 >= confidence - 4 * math.sqrt(confidence * (1 - confidence) / 500)


def test_more_iterations_do_not_narrow_the_interval() -> None:
    few, many = estimate(rounds(100, 110, 120, runs=2)), estimate(rounds(100, 110, 120, runs=200))
    assert (few.latency_ms_low, few.latency_ms_high) == pytest.approx((many.latency_ms_low, many.latency_ms_high))


# the tail


def allowed_by_counting(count: int, share: Fraction) -> int:
    """The t of the rule, by exact sums of binomial probabilities."""
    allowed, sum_ = 0, (share**count)
    for slow in range(1, count + 1):
        sum_ += math.comb(count, slow) * share ** (count - slow) * (1 - share) ** slow
        if sum_ >= Fraction(1, 100):
            break
        allowed = slow
    return allowed


@pytest.mark.parametrize("percentile", [50, 90, 97, 99])
@pytest.mark.parametrize("count", [0, 1, 2, 10, 63, 64, 65, 98, 99, 130, 200, 661, 662, 700])
def test_slowest_allowed_is_what_counting_gives(count: int, percentile: int) -> None:
    assert slowest_allowed(count, percentile / 100) == allowed_by_counting(count, Fraction(percentile, 100))


@pytest.mark.parametrize("share", sorted(LOADGEN))
def test_as_many_are_discarded_as_loadgen_would(share: float) -> None:
    found = {count: slowest_allowed(count, share) for count in LOADGEN[share]}
    assert {count: slow - 1 if slow else None for count, slow in found.items()} == LOADGEN[share]


@pytest.mark.parametrize("count", [1, 6, 10, 11, 12, 14])
def test_rule_for_few_iterations_by_every_outcome(count: int) -> None:
    """At the median every pattern of slow and fast is as likely: count those with t or fewer slow."""
    for slow in range(1, count + 1):
        patterns = sum(1 for some in range(slow + 1) for _ in combinations(range(count), some))
        assert (slow <= slowest_allowed(count, 0.5)) == (patterns / 2**count < 0.01)


@given(st.integers(1, 3000), st.sampled_from([0.9, 0.99]))
def test_another_iteration_never_lowers_how_many_may_be_slow(count: int, share: float) -> None:
    assert slowest_allowed(count, share) <= slowest_allowed(count + 1, share) <= slowest_allowed(count, share) + 1


def test_tail_is_an_iteration_and_not_below_the_percentile() -> None:
    latencies = list(range(1, 1001))
    random.Random(0).shuffle(latencies)
    p90, p99 = tail_estimate(latencies, 0.90), tail_estimate(latencies, 0.99)
    assert p90 == 1001 - slowest_allowed(1000, 0.90)
    assert 900 < p90 <= 940
    assert p99 in (999, 1000)


def test_tail_bounds_the_percentile_in_99_of_100() -> None:
    """Of 400 runs of 300 iterations each, 1 % and 4 standard errors may lie below the true 90th percentile."""
    random_, true = np.random.default_rng(4), -math.log(0.1)
    below = sum((tail_estimate(list(random_.exponential(1.0, 300)), 0.90) or 0) < true for _ in range(400))
    assert below / 400 <= 0.01 + 4 * math.sqrt(0.01 * 0.99 / 400)


def test_tail_of_the_row_is_that_of_isolated_iterations() -> None:
    isolated = [block(ms, number, "isolated", runs=22) for number, ms in enumerate((90, 100, 110))]
    found = estimate([*quiet(runs=500), *isolated])
    assert (found.latency_p90_ms, found.latency_p99_ms) == (pytest.approx(110), None)
    assert estimate([*quiet(runs=500), *isolated[:2]]).latency_p90_ms is None


# what is suspect


def test_wide_interval_is_told_with_its_width() -> None:
    found = estimate(rounds(100, 100, 100, 100, 100, 130, probe_ms=(5.0, 5.0)))
    assert found.suspect == ["interval is 23.1 % wide"]
    assert found.latency_ms == pytest.approx(100), "one slow round does not move the median"
    assert found.disturbed_blocks == 1


def test_drift_is_told_with_its_sign() -> None:
    found = estimate(rounds(100, 100, 100, 106, 106, 106), Limits(disturbed=1.1))
    assert found.suspect == ["drift of -5.7 % from the first half of the rounds to the second"]


def test_middle_round_belongs_to_neither_half() -> None:
    limits = Limits(disturbed=1.1, width=1)
    assert estimate(rounds(100, 100, 100, 150, 150, 100, 100), limits).suspect == []


def test_slow_probe_disturbs_a_block_and_two_of_nine_a_row() -> None:
    slow = {"probe_ms": (5.0, 7.9)}
    normal = quiet(8, probe_ms=(5.0, 5.1))
    one = estimate([*normal, block(100, 8, **slow)])
    assert (one.disturbed_blocks, one.suspect) == (1, [])
    two = estimate([*normal[1:], block(100, 0, **slow), block(100, 8, **slow)])
    assert two.disturbed_blocks == 2
    assert two.suspect == ["2 of 9 blocks disturbed: probe up to 1.58 times its best"]


def test_a_fifth_of_the_blocks_is_enough() -> None:
    found = estimate([*quiet(4), block(100, 4, foreign_cpu=0.06)], Limits(rounds=5))
    assert found.suspect == ["1 of 5 blocks disturbed: foreign processes took up to 6 % of the machine"]


def test_best_probe_of_the_run_unmasks_a_row_that_is_slow_throughout() -> None:
    slow = quiet(probe_ms=(8.0, 8.0))
    assert estimate(slow).suspect == []
    assert estimate(slow, best_probe_ms=5.0).suspect == ["6 of 6 blocks disturbed: probe up to 1.60 times its best"]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ({"foreign_cpu": 0.23}, "6 of 6 blocks disturbed: foreign processes took up to 23 % of the machine"),
        ({"steal": 0.09}, "6 of 6 blocks disturbed: up to 9 % stolen by the hypervisor"),
    ],
)
def test_loads_are_told_with_their_share(seen: dict[str, Any], reason: str) -> None:
    assert estimate(quiet(**seen)).suspect == [reason]


def test_other_sweep_is_told_even_beside_one_block() -> None:
    found = estimate([*quiet(5), block(100, 5, others=2)])
    assert found.suspect == ["another sweep ran beside 1 of 6 blocks"]
    assert found.disturbed_blocks == 1


def test_flips_that_no_probe_sees_show_between_rounds() -> None:
    found = estimate(rounds(160, 100, 160, 160, 160, 100, probe_ms=(5.0, 5.0)))
    assert found.disturbed_blocks == 4
    assert "4 of 6 blocks disturbed: up to 60 % slower than the fastest of its kind" in found.suspect
    assert found.latency_ms == pytest.approx(160), "disturbed blocks count in the median"


def test_isolated_blocks_are_set_against_isolated_ones() -> None:
    isolated = [block(ms, number, "isolated") for number, ms in enumerate((200, 200, 260))]
    assert [bool(one) for one in disturbances([*quiet(3), *isolated], Limits(), None)] == [False] * 5 + [True]


def test_every_reason_is_told_at_once() -> None:
    found = estimate([block(100, 0, others=1), block(160, 1, foreign_cpu=0.2, steal=0.1, probe_ms=(5.0, 9.0))])
    assert [reason.split()[0] for reason in found.suspect] == ["only", "interval", "2", "another"]
    assert all(";" not in reason for reason in found.suspect), "they are joined by semicolons"


@pytest.mark.parametrize("name", [one.name for one in fields(Limits) if one.name != "disturbed"])
def test_each_limit_decides(name: str) -> None:
    """A row that breaks every rule has a reason less when one limit is out of reach."""
    blocks = [
        *rounds(100, 100, 100, 130, foreign_cpu=0.2, steal=0.1, probe_ms=(5.0, 9.0)),
        block(130, 4, probe_ms=(5.0, 5.0)),
    ]
    loose = replace(Limits(), **{name: 0 if name == "rounds" else 99})
    told, less = (" ".join(estimate(blocks, limits).suspect) for limits in (Limits(), loose))
    assert len(less) < len(told)


def test_percent_has_a_decimal_where_it_says_something() -> None:
    assert [percent(one) for one in (0.31, 0.305, 0.02, -0.057, 0.0)] == ["31 %", "30.5 %", "2 %", "-5.7 %", "0 %"]


# what holds for any


@given(lengths, st.randoms(use_true_random=False))
def test_order_of_rounds_changes_nothing_but_drift(drawn: list[int], shuffle: random.Random) -> None:
    blocks = rounds(*drawn, probe_ms=(5.0, 5.0))
    numbers = list(range(len(blocks)))
    shuffle.shuffle(numbers)
    moved = [replace(one, round=number) for one, number in zip(blocks, numbers, strict=True)]
    shuffle.shuffle(moved)
    assert _without_drift(estimate(moved)) == _without_drift(estimate(blocks))


def _without_drift(found: Estimate) -> dict[str, Any]:
    return {**asdict(found), "suspect": [one for one in found.suspect if not one.startswith("drift")]}


@given(lengths, st.integers(2, 1000))
def test_scaling_time_scales_latency_and_leaves_reasons(drawn: list[int], scale: int) -> None:
    blocks = [block(length, number, kind) for kind in _KINDS for number, length in enumerate(drawn)]
    here, there = estimate(blocks), estimate([_scaled(one, scale) for one in blocks])
    for name in (
        "latency_ms",
        "latency_ms_low",
        "latency_ms_high",
        "latency_isolated_ms",
        "infer_ms",
        "latency_p90_ms",
    ):
        sooner, later = getattr(here, name), getattr(there, name)
        assert later == (None if sooner is None else pytest.approx(scale * sooner))
    assert there.throughput == pytest.approx(here.throughput / scale)
    assert there.iterations == here.iterations


_KINDS: tuple[Kind, ...] = ("amortised", "isolated")


def _scaled(one: Block, scale: int) -> Block:
    def longer(stamps: Stamps) -> Stamps:
        first, second, third, fourth, fifth = (scale * stamp for stamp in stamps)
        return first, second, third, fourth, fifth

    return replace(one, stamps=tuple(tuple(map(longer, session)) for session in one.stamps))


@given(lengths)
def test_latency_lies_in_its_interval_and_among_the_rounds(drawn: list[int]) -> None:
    found = estimate(rounds(*drawn))
    near = 1 + 1e-9
    assert min(drawn) / near <= found.latency_ms <= max(drawn) * near
    if found.latency_ms_low is not None and found.latency_ms_high is not None:
        assert found.latency_ms_low / near <= found.latency_ms <= found.latency_ms_high * near


# simulated machines


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def test_quiet_machine_is_measured_within_a_hundredth_and_rarely_suspect() -> None:
    tried = simulated(100, Scenario("quiet", QUIET))
    assert max(abs(one.row.latency_ms / one.quiet_ms - 1) for one in tried) < 0.015
    assert _share([bool(one.row.suspect) for one in tried]) <= 0.05
    assert _share([one.holds for one in tried]) >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 100)


@pytest.mark.parametrize("blind", [False, True])
def test_rows_that_flips_put_off_are_suspect_or_hold_the_quiet_value(blind: bool) -> None:
    tried = simulated(60, Scenario("flips", {**QUIET, "regimes": (1.6, 5.0, 10.0)}, blind))
    assert _share([one.off for one in tried]) > 0.2
    assert _share([one.missed for one in tried]) <= 0.02
    assert _share([one.naive_off for one in tried]) > 0.4
    assert _share([one.naive_holds for one in tried]) < 0.4


def test_drift_is_found() -> None:
    tried = simulated(30, Scenario("drift", {**QUIET, "drift": 0.0015}))
    assert all(any(reason.startswith("drift") for reason in one.row.suspect) for one in tried)


def test_outliers_hardly_move_the_row() -> None:
    tried = simulated(60, Scenario("outliers", {**QUIET, "outliers": (0.005, 5.0)}))
    assert median(abs(one.row.latency_ms / one.quiet_ms - 1) for one in tried) < 0.01
    assert _share([one.missed for one in tried]) == 0.0


def test_disturbed_blocks_are_caught_when_the_probe_sees_them() -> None:
    tried = simulated(40, Scenario("flips", {**QUIET, "regimes": (1.6, 5.0, 15.0)}))
    assert sum(one.truly_disturbed for one in tried) > 60
    assert sum(one.caught for one in tried) >= 0.95 * sum(one.truly_disturbed for one in tried)


def test_simulation_is_the_same_every_time() -> None:
    scenario = Scenario("flips", {**QUIET, "regimes": (1.6, 5.0, 15.0)})
    assert simulated(2, scenario) == simulated(2, scenario)


def test_benchmark_reports_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeatability, "QUICK_SWEEPS", 2)
    report = repeatability.run(Options(quick=True))
    assert [len(table.rows) for table in report.tables] == [len(repeatability.SCENARIOS)] * 2
    assert "naive holds, %" in as_text(report)
