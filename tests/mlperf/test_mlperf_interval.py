"""Intervals of official scores, which pairs their runs separate, and how far a ranking is resolved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from ipu_results.kit.sql import open_engine
from ipu_results.kit.statements import define_macros, run_statement
from ipu_results.mlperf import separation
from ipu_results.mlperf.interval import (
    ALONE,
    GROUP,
    OWN,
    SESSION,
    SESSION_ARM,
    Runs,
    compute_t_quantile,
    compute_two_sided_p,
    estimate_errors,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.separation import DIFFERENCE, MIN_P, PERMUTATION, compare_pairs

from tests.mlperf.link_support import link_mlperf

Row = dict[str, Any]
Values = tuple[float, ...]
FIVE = (10.0, 10.2, 9.9, 10.1, 10.3)
UNKNOWN = (math.nan,) * 10
TEN = (10.0, 10.6, 9.5, 10.1, 10.9, 9.8, 10.3, 9.6, 10.2, 10.4)


def gather(*minutes: Values, counts: Sequence[Values] = (), ratio: float = 0.0) -> Runs:
    """Gather the runs of entries, which took as many samples as minutes if no counts are given."""
    entries = len(minutes)
    return make_runs(list(minutes), list(counts or minutes), [(1, 1)] * entries, [ratio] * entries)


# From the table of Student's t in NIST/SEMATECH e-Handbook, section 1.3.6.7.2.
@pytest.mark.parametrize(
    ("coverage", "df", "expected"), [(0.95, 4, 2.776), (0.95, 39, 2.023), (0.998, 2, 22.327)]
)
def test_t_quantile_is_that_of_the_tables(coverage: float, df: int, expected: float) -> None:
    assert compute_t_quantile(coverage, df) == pytest.approx(expected, abs=5e-4)


def test_yuens_error_is_that_of_the_winsorised_runs() -> None:
    """Of five runs without the fastest and slowest: the outer two count as their neighbours."""
    runs = gather(FIVE)
    plain, yuen = estimate_errors(runs.minutes, runs)
    assert plain[0] == pytest.approx(stdev(FIVE) / math.sqrt(5))
    winsorised = (10.0, 10.0, 10.1, 10.2, 10.2)
    assert yuen[0] == pytest.approx(math.sqrt(4 * stdev(winsorised) ** 2 / (3 * 2)))


def estimate_one(runs: Runs) -> tuple[float, float, str]:
    """Return how far below and above its score the interval of one entry reaches, relative to it,
    and its method. No other entry is comparable.
    """
    result = estimate_intervals(runs, [["own"]])
    return 1 - float(result.low[0]), float(result.high[0]) - 1, result.methods[0]


def test_interval_of_minutes_alone_is_the_larger_of_two_errors() -> None:
    below, above, method = estimate_one(gather(FIVE, counts=[UNKNOWN[:5]]))
    runs = gather(FIVE)
    plain, yuen = estimate_errors(runs.minutes, runs)
    by_plain = compute_t_quantile(0.95, 4) * plain[0]
    by_yuen = compute_t_quantile(0.95, 2) * yuen[0]
    half = math.hypot(max(by_plain, by_yuen) / 10.1, SESSION_ARM)
    assert above == pytest.approx(half)
    assert below == pytest.approx(half)
    assert method == OWN


def test_luck_of_convergence_cancels_far_below_the_reference() -> None:
    """Minutes follow samples, and all that count are those of the reference: the speed of the runs
    hardly differs, and what is left is that of sessions.
    """
    counts = tuple(minutes * (1 + 1e-5 * number) for number, minutes in enumerate(TEN))
    below, above, method = estimate_one(gather(TEN, counts=[counts], ratio=1.3))
    assert method == ALONE
    assert above + below == pytest.approx(2 * 1.96 * SESSION, rel=1e-3)
    below, above, _ = estimate_one(gather(TEN, counts=[counts]))
    assert above + below > 0.04


def test_score_at_the_reference_cannot_become_much_lower() -> None:
    below, above, _ = estimate_one(gather(TEN, ratio=1.0))
    assert SESSION_ARM <= below < 1.1 * SESSION_ARM < 0.2 * above


def test_comparable_entries_widen_the_interval_of_runs_that_agree() -> None:
    """Five runs that stopped at one evaluation say nothing of the later ones that others needed."""
    steps = (10.0, 10.0, 10.0, 10.0, 11.0)
    alike = (10.0,) * 5
    for others, is_wide in ((steps, True), (alike, False)):
        entries = [others] * 6 + [alike]
        result = estimate_intervals(gather(*entries), [["group"]] * 7)
        assert result.methods[-1] == GROUP
        assert (float(result.high[-1]) - 1 > 0.02) is is_wide


def deal_by_hand(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Return p by trying every deal, one by one."""
    runs = (*first, *second)
    differences = []
    for chosen in combinations(range(len(runs)), len(first)):
        left = sorted(runs[place] for place in chosen)
        right = sorted(run for place, run in enumerate(runs) if place not in chosen)
        differences.append(abs(fmean(left[1:-1]) - fmean(right[1:-1])))
    # the first deal gives each entry its own runs
    reached = [difference >= differences[0] - 1e-12 for difference in differences]
    return fmean(reached)


def check_two(
    runs: Runs, *, one_batch: bool = True, test: str = PERMUTATION
) -> tuple[float, float]:
    """Return p and the probability of the wrong order of two entries, by this test."""
    names = [["first"], ["second"]]
    tested = compare_pairs(runs, np.array([0]), np.array([1]), names, np.array([one_batch]))
    assert tested.tests == [test]
    return float(tested.p[0]), float(tested.wrong_order[0])


@pytest.fixture
def one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs be of one session."""
    monkeypatch.setattr(separation, "SESSION", 0.0)


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("shift", [0.05, 0.15, 0.2])
def test_p_is_the_share_of_all_deals_that_differ_as_much(shift: float) -> None:
    slower = tuple(minutes + shift for minutes in FIVE)
    p, wrong = check_two(gather(FIVE, slower))
    assert p == pytest.approx(deal_by_hand(FIVE, slower))
    assert wrong == p / 2


def test_order_of_rows_decides_which_order_is_wrong() -> None:
    slower = tuple(minutes + 0.15 for minutes in FIVE)
    p, wrong = check_two(gather(slower, FIVE))
    assert wrong == 1 - p / 2 > 0.5


@pytest.mark.usefixtures("one_session")
def test_p_beyond_the_last_deal_is_students_and_has_a_floor() -> None:
    for shift in (1.0, 100.0):
        slower = tuple(minutes + shift for minutes in FIVE)
        p, _ = check_two(gather(FIVE, slower, counts=[FIVE, FIVE]))
        t = shift / math.sqrt(2 * stdev(FIVE) ** 2 / 5)
        assert p == pytest.approx(max(compute_two_sided_p(t, 8), MIN_P), rel=1e-4)
        assert p < 1 / 126


@pytest.mark.parametrize(("one_batch", "test"), [(True, PERMUTATION), (False, DIFFERENCE)])
def test_speeds_of_two_sessions_differ_though_their_runs_agree(one_batch: bool, test: str) -> None:
    """Runs within 0.001 % of each other; the difference of two sessions has a deviation of
    0.14 %.
    """
    runs = tuple(10 + 0.0001 * (number % 3) for number in range(10))
    for percent, is_separable in ((0.1, False), (0.25, False), (0.32, True)):
        slower = tuple(minutes * (1 + percent / 100) for minutes in runs)
        pair = gather(runs, slower, counts=[UNKNOWN, UNKNOWN])
        p, _ = check_two(pair, one_batch=one_batch, test=test)
        assert (p < 0.05) is is_separable


def test_difference_without_a_reference_is_welchs_by_yuens_errors() -> None:
    slower = tuple(minutes + 0.6 for minutes in TEN[:7])
    runs = gather(TEN, slower, counts=[UNKNOWN, UNKNOWN[:7]])
    p, wrong = check_two(runs, one_batch=False, test=DIFFERENCE)
    yuen = estimate_errors(runs.minutes, runs)[1]
    means = (fmean(sorted(TEN)[1:-1]), fmean(sorted(slower)[1:-1]))
    # the errors of the runs of both, and of the sessions of both, with their degrees of freedom
    errors = np.array([yuen[0], yuen[1], SESSION * means[0], SESSION * means[1]])
    square = (errors**2).sum()
    df = square**2 / (errors**4 / [7, 4, 200, 200]).sum()
    t = (means[1] - means[0]) / math.sqrt(square)
    assert compute_two_sided_p(t, math.ceil(df)) < p < compute_two_sided_p(t, math.floor(df))
    assert wrong == p / 2


def test_equal_scores_that_converge_differently_are_seldom_separable() -> None:
    """One 5 % below the reference and one at it: its luck is half cut off."""
    random = np.random.default_rng(48)
    entries = 500
    counts = random.normal(1, 0.02, (2 * entries, 10))
    counts[:entries] *= 0.95
    minutes = counts * random.normal(1, 0.005, counts.shape)
    # by the mean of max(X, 1) for the olympic mean of runs around 1
    minutes[entries:] /= 1.0026
    first = np.arange(entries)
    runs = make_runs(minutes.tolist(), counts.tolist(), [(1, 1)] * len(counts), [0.0] * len(counts))
    runs = replace(runs, reference=np.ones(len(counts)))
    groups = [[row < entries] for row in range(len(counts))]
    tested = compare_pairs(runs, first, first + entries, groups, np.ones(entries, dtype=bool))
    assert tested.tests.count(DIFFERENCE) > 0.9 * entries
    assert 0.02 < (tested.p < 0.05).mean() < 0.09


def test_equal_scores_of_unequal_speed_are_separable_below_the_reference_only() -> None:
    """The second machine is 3 % slower a sample and converged 3 % sooner by luck."""
    counts = [TEN, tuple(count / 1.03 for count in TEN)]
    noise = [1 + 0.001 * (number % 3) for number in range(10)]
    minutes = [tuple(count * each for count, each in zip(TEN, noise, strict=True))] * 2
    pair = make_runs(minutes, counts, [(1, 1)] * 2, [0.0, 0.0])
    plain, _ = check_two(pair)
    assert plain == 1.0
    pair = make_runs(minutes, counts, [(1, 1)] * 2, [1.2, 1.2 * 1.03])
    normalised, _ = check_two(pair)
    assert normalised < 1e-3


def test_correction_is_that_of_benjamini_and_hochberg() -> None:
    """Within one ranking; a pair of none has no correction."""
    tests = [(1, "a", 0.04), (2, "a", 0.01), (3, "a", 0.03), (4, "a", 0.9), (5, None, 0.01)]
    corrected = [0.0533, 0.04, 0.0533, 0.9, None]
    with open_engine() as connection:
        define_macros(connection)
        connection.execute("""
            CREATE TABLE pairs (
                first INTEGER, second INTEGER, family VARCHAR, is_tested BOOLEAN,
                has_speeds BOOLEAN, shares_logs BOOLEAN, one_batch BOOLEAN
            );
            CREATE TABLE p_values (
                first INTEGER, second INTEGER, p DOUBLE, wrong_order DOUBLE, test VARCHAR
            );
            CREATE TABLE speed_p_values (first INTEGER, second INTEGER, p DOUBLE)
        """)
        for first, family, p in tests:
            connection.execute(
                "INSERT INTO pairs (first, second, family) VALUES (?, 0, ?)", [first, family]
            )
            connection.execute(
                "INSERT INTO p_values VALUES (?, 0, ?, 0, 'permutation')", [first, p]
            )
        rows = run_statement(connection, "links/mlperf_pair_tests.sql").sort_by("first")
    assert rows["p_value_corrected"].to_pylist() == corrected


@pytest.mark.parametrize(
    ("values", "method"),
    [({}, GROUP), ({"global_batch_size": 128}, GROUP), ({"division": "open"}, ALONE)],
)
def test_groups_of_another_division_are_not_comparable(values: dict[str, Any], method: str) -> None:
    entries = [{"path": f"g{i}"} for i in range(6)] + [{"path": "x", **values}]
    runs: list[Row] = [{"path": "x", "minutes": 20.0 + 0.01 * n, "epochs": 40.0} for n in range(5)]
    for path in (f"g{i}" for i in range(6)):
        runs += [{"path": path, "minutes": 20.0, "epochs": 40.0 + 4 * (n == 0)} for n in range(5)]
    with link_mlperf(entries, runs) as connection:
        rows = connection.sql("SELECT interval_method FROM mlperf_entries WHERE path = 'x'")
        assert rows.fetchall() == [(method,)]
