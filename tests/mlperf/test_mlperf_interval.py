"""Intervals of official scores, which pairs their runs separate, and how far a ranking is resolved."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ipu_results.link.mlperf_ranking import (
    ALL_SIZES,
    SAME_SIZE,
    RunEvidence,
    assess_runs,
    describe_interval,
    list_pair_tests,
    resolve_rankings,
)
from ipu_results.link.mlperf_speed import group_runs
from ipu_results.mlperf.interval import (
    ALONE,
    GROUP,
    OWN,
    Runs,
    adjust_for_many,
    compute_t_quantile,
    compute_two_sided_p,
    estimate_errors,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.rules import load_rules
from ipu_results.mlperf.separation import MIN_P, compare_pairs

Values = tuple[float, ...]
FIVE = (10.0, 10.2, 9.9, 10.1, 10.3)
TEN = (10.0, 10.6, 9.5, 10.1, 10.9, 9.8, 10.3, 9.6, 10.2, 10.4)
COLUMNS = ("round", "path", "sha256", "minutes", "counted", "samples", "epochs")


@pytest.mark.parametrize(
    ("coverage", "df", "expected"),
    # From the table of Student's t in NIST/SEMATECH e-Handbook, section 1.3.6.7.2.
    [
        (0.95, 2, 4.303),
        (0.95, 4, 2.776),
        (0.95, 9, 2.262),
        (0.95, 39, 2.023),
        (0.99, 4, 4.604),
        (0.998, 2, 22.327),
    ],
)
def test_t_quantile_is_that_of_the_tables(coverage: float, df: int, expected: float) -> None:
    assert compute_t_quantile(coverage, df) == pytest.approx(expected, abs=5e-4)


def test_yuens_error_is_that_of_the_winsorised_runs() -> None:
    """Of five runs without the fastest and slowest: the outer two count as their neighbours."""
    runs = make_runs([FIVE], [FIVE], [(1, 1)], [0.0])
    plain, yuen = estimate_errors(runs.minutes, runs)
    assert plain[0] == pytest.approx(stdev(FIVE) / math.sqrt(5))
    winsorised = (10.0, 10.0, 10.1, 10.2, 10.2)
    assert yuen[0] == pytest.approx(math.sqrt(4 * stdev(winsorised) ** 2 / (3 * 2)))


def estimate_one(minutes: Values, counts: Values | None, ratio: float) -> tuple[float, float, str]:
    """Return the relative ends of the interval of one entry without comparable ones, and its
    method.
    """
    known = counts or (math.nan,) * len(minutes)
    result = estimate_intervals(make_runs([minutes], [known], [(1, 1)], [ratio]), [["own"]])
    return float(result.low[0]), float(result.high[0]), result.methods[0]


def test_interval_of_minutes_alone_is_the_larger_of_two_errors() -> None:
    low, high, method = estimate_one(FIVE, None, 0.0)
    runs = make_runs([FIVE], [FIVE], [(1, 1)], [0.0])
    plain, yuen = (float(error[0]) for error in estimate_errors(runs.minutes, runs))
    half = max(compute_t_quantile(0.95, 4) * plain, compute_t_quantile(0.95, 2) * yuen) / 10.1
    assert (high - 1, 1 - low, method) == (pytest.approx(half), pytest.approx(half), OWN)


def test_luck_of_convergence_cancels_far_below_the_reference() -> None:
    """Minutes follow samples, and all that count are those of the reference: the speed of the runs
    hardly differs.
    """
    counts = tuple(minutes * (1 + 1e-5 * number) for number, minutes in enumerate(TEN))
    normalised = estimate_one(TEN, counts, 1.3)
    unnormalised = estimate_one(TEN, counts, 0.0)
    assert normalised[2] == ALONE
    assert normalised[1] - normalised[0] < 1e-4
    assert unnormalised[1] - unnormalised[0] > 0.04


def test_score_at_the_reference_cannot_become_much_lower() -> None:
    low, high, _ = estimate_one(TEN, TEN, 1.0)
    assert 1 - low < 0.01 * (high - 1)


def test_comparable_entries_widen_the_interval_of_runs_that_agree() -> None:
    """Five runs that stopped at one evaluation say nothing of the later ones that others needed."""
    steps, alike = (10.0, 10.0, 10.0, 10.0, 11.0), (10.0,) * 5
    for others, is_wide in ((steps, True), (alike, False)):
        runs = make_runs([others] * 6 + [alike], [others] * 6 + [alike], [(1, 1)] * 7, [0.0] * 7)
        result = estimate_intervals(runs, [["group"]] * 7)
        assert result.methods[-1] == GROUP
        assert (float(result.high[-1]) - 1 > 0.02) is is_wide


def deal_by_hand(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Return p by trying every deal, one by one."""

    def subtract(chosen: tuple[int, ...]) -> float:
        runs = (*first, *second)
        sides = [
            [runs[at] for at in range(len(runs)) if (at in chosen) is own] for own in (True, False)
        ]
        return abs(fmean(sorted(sides[0])[1:-1]) - fmean(sorted(sides[1])[1:-1]))

    deals = list(combinations(range(len(first) + len(second)), len(first)))
    observed = subtract(tuple(range(len(first))))
    return sum(subtract(deal) >= observed - 1e-12 for deal in deals) / len(deals)


def check_two(runs: Runs) -> tuple[float, float]:
    tested = compare_pairs(runs, np.array([0]), np.array([1]))
    return float(tested.p[0]), float(tested.wrong_order[0])


@pytest.mark.parametrize("shift", [0.05, 0.15, 0.2])
def test_p_is_the_share_of_all_deals_that_differ_as_much(shift: float) -> None:
    slower = tuple(minutes + shift for minutes in FIVE)
    p, wrong = check_two(make_runs([FIVE, slower], [FIVE, slower], [(1, 1)] * 2, [0.0] * 2))
    assert p == pytest.approx(deal_by_hand(FIVE, slower))
    assert wrong == p / 2


def test_order_of_rows_decides_which_order_is_wrong() -> None:
    slower = tuple(minutes + 0.15 for minutes in FIVE)
    p, wrong = check_two(make_runs([slower, FIVE], [slower, FIVE], [(1, 1)] * 2, [0.0] * 2))
    assert wrong == 1 - p / 2 > 0.5


def test_p_beyond_the_last_deal_is_students_and_has_a_floor() -> None:
    for shift in (1.0, 100.0):
        slower = tuple(minutes + shift for minutes in FIVE)
        p, _ = check_two(make_runs([FIVE, slower], [FIVE, slower], [(1, 1)] * 2, [0.0] * 2))
        t = shift / math.sqrt(2 * stdev(FIVE) ** 2 / 5)
        assert p == pytest.approx(max(compute_two_sided_p(t, 8), MIN_P))
        assert p < 1 / 126


def test_equal_scores_of_unequal_speed_are_separable_below_the_reference_only() -> None:
    """The second machine is 3 % slower a sample and converged 3 % sooner by luck."""
    counts = [TEN, tuple(count / 1.03 for count in TEN)]
    noise = [1 + 0.001 * (number % 3) for number in range(10)]
    minutes = [tuple(count * each for count, each in zip(TEN, noise, strict=True))] * 2
    plain, normalised = (
        check_two(make_runs(minutes, counts, [(1, 1)] * 2, ratios))
        for ratios in ([0.0, 0.0], [1.2, 1.2 * 1.03])
    )
    assert plain[0] == 1.0
    assert normalised[0] < 1e-3


def test_correction_is_that_of_benjamini_and_hochberg() -> None:
    adjusted = adjust_for_many([0.04, 0.01, 0.03, 0.9])
    assert adjusted.tolist() == pytest.approx([0.04 * 4 / 3, 0.04, 0.04 * 4 / 3, 0.9])


def make_entry(path: str, minutes: float | None, **values: Any) -> dict[str, Any]:
    base = {
        "round": "2.0",
        "division": "closed",
        "benchmark": "resnet",
        "chip_count": 8,
        "global_batch_size": 64,
    }
    counts = {"n_runs": 5, "n_success": 5, "submitter": path}
    return {**base, **counts, "path": path, "minutes": minutes, "scaling_factor": 1.0, **values}


def make_rows(
    path: str, minutes: tuple[float, ...], digests: str = "", round_: str = "2.0"
) -> list[tuple[Any, ...]]:
    """Make runs; `digests` has a letter for each log, different for every path unless given."""
    names = digests or [f"{round_}{path}{number}" for number in range(len(minutes))]
    return [
        (round_, path, name, value, True, None, float(40 + number % 2))
        for number, (value, name) in enumerate(zip(minutes, names, strict=True))
    ]


def assess(
    *entries: tuple[str, float, tuple[float, ...], str],
) -> tuple[list[dict[str, Any]], RunEvidence]:
    records = [make_entry(path, score) for path, score, _, _ in entries]
    runs = [
        run for path, _, minutes, digests in entries for run in make_rows(path, minutes, digests)
    ]
    return records, assess_runs(
        records, group_runs(pd.DataFrame(runs, columns=COLUMNS)), load_rules()
    )


def test_log_that_is_in_the_folder_twice_is_one_run() -> None:
    records, evidence = assess(
        ("a", 10.0, (9.9, 10.1, 10.1, 10.1, 10.2), "pqqqr"), ("b", 10.0, FIVE, "sssst")
    )
    assert describe_interval(records[0], evidence)["interval_runs"] == 3
    assert describe_interval(records[1], evidence) == {
        "no_interval_reason": "fewer than 3 counted runs with different logs"
    }


def test_entry_without_score_has_a_reason_and_lower_end_is_never_negative() -> None:
    records, evidence = assess(("a", 10.0, (0.1, 10.0, 10.0, 10.0, 60.0), ""))
    assert describe_interval(records[0], evidence)["minutes_low"] == 0
    assert describe_interval(make_entry("x", None), evidence) == {
        "no_interval_reason": "it has no score"
    }


def shift(distance: float) -> tuple[float, ...]:
    return tuple(minutes + distance for minutes in FIVE)


def test_ranking_counts_pairs_ties_and_shared_logs() -> None:
    """Here a and b share a log, b and c are tied, d is far from c, and e has too few runs."""
    entries, evidence = assess(
        ("a", 10.0, FIVE, "abcde"),
        ("b", 10.1, shift(0.1), "afghi"),
        ("c", 10.15, shift(0.15), ""),
        ("d", 14.0, shift(4.0), ""),
        ("e", 15.0, (15.0, 15.1), ""),
        ("f", 20.0, shift(10.0), ""),
    )
    sizes = [{**entry, "chip_count": 16 if entry["path"] == "f" else 8} for entry in entries]
    every, eight, sixteen = resolve_rankings(sizes, evidence)
    counts = {
        "entries": 6,
        "neighbouring_pairs": 5,
        "shared_log_pairs": 1,
        "untested_pairs": 2,
        "separable_pairs": 1,
        "separable_pairs_corrected": 1,
        "tied_groups": 1,
        "largest_tied_group": 3,
    }
    assert {name: every[name] for name in counts} == counts
    assert (every["scope"], every["chip_count"]) == (ALL_SIZES, None)
    assert (eight["scope"], eight["chip_count"], eight["entries"], eight["untested_pairs"]) == (
        SAME_SIZE,
        8,
        5,
        1,
    )
    assert (sixteen["chip_count"], sixteen["entries"], sixteen["neighbouring_pairs"]) == (
        16,
        1,
        0,
    )


def test_overlapping_groups_of_ties_are_counted_once_each() -> None:
    """Of four equidistant entries only neighbours are tied: three groups of two."""
    entries, evidence = assess(*((f"e{i}", 10 + 0.2 * i, shift(0.2 * i), "") for i in range(4)))
    every = resolve_rankings(entries, evidence)[0]
    assert (every["separable_pairs"], every["tied_groups"], every["largest_tied_group"]) == (
        0,
        3,
        2,
    )


def test_submitters_entries_of_successive_rounds_are_tested() -> None:
    """Not those of rounds that do not follow each other, of another size or submitter."""
    base = {"model": "ResNet", "comparable_rounds": "1.0-3.0", "company": "S"}
    entries = [
        make_entry("a", 10.0, round="1.0", **base),
        make_entry("b", 10.1, round="1.1", **base),
        make_entry("c", 10.2, round="2.0", **base),
        make_entry("d", 10.3, round="1.1", **{**base, "company": "T"}),
        make_entry("e", 10.4, round="2.0", **{**base, "chip_count": 16}),
    ]
    runs = [
        row for entry in entries for row in make_rows(entry["path"], FIVE, round_=entry["round"])
    ]
    columns = list_pair_tests(
        assess_runs(entries, group_runs(pd.DataFrame(runs, columns=COLUMNS)), load_rules())
    )
    named = list(
        zip(columns["path"], columns["other_path"], columns["p_value_corrected"], strict=True)
    )
    assert [row for row in named if row[2] is None] == [("a", "b", None), ("b", "c", None)]
    assert {row[:2] for row in named} == {("a", "b"), ("b", "c"), ("b", "d"), ("c", "e")}


def test_groups_of_another_division_are_not_comparable() -> None:
    steps = tuple(40.0 + 4 * (number == 0) for number in range(5))
    runs = [
        ("2.0", f"g{i}", f"g{i}{n}", 20.0, True, None, steps[n]) for i in range(6) for n in range(5)
    ] + [("2.0", "x", f"x{n}", 20.0 + 0.01 * n, True, None, 40.0) for n in range(5)]
    runs_by_entry = group_runs(pd.DataFrame(runs, columns=COLUMNS))
    for values, method in (
        ({}, GROUP),
        ({"global_batch_size": 128}, GROUP),
        ({"division": "open"}, ALONE),
    ):
        entries = [make_entry(f"g{i}", 20.0) for i in range(6)] + [make_entry("x", 20.0, **values)]
        evidence = assess_runs(entries, runs_by_entry, load_rules())
        assert describe_interval(entries[-1], evidence)["interval_method"] == method


def test_reference_of_an_entry_is_had_from_its_factor_else_from_the_round() -> None:
    """A reference that would have scaled an entry that was not is at most what it needed."""
    runs_by_entry = group_runs(pd.DataFrame(make_rows("a", FIVE), columns=COLUMNS))
    known = {"normalised": True, "epochs_to_converge": 40.0}
    for values, ratio in (
        ({"scaling_factor": 1.02}, 1.02),
        ({"reference_to_converge": 38.0, **known}, 0.95),
        ({"reference_to_converge": 42.0, **known}, 1.0),
        ({"reference_to_converge": None, **known}, 0.0),
        ({"reference_to_converge": 38.0, **known, "normalised": False}, 0.0),
    ):
        units = {("2.0", "resnet"): "epochs"}
        evidence = assess_runs(
            [make_entry("a", 10.0, **values)], runs_by_entry, load_rules(), units
        )
        assert evidence.runs.reference[0] == pytest.approx(
            ratio * fmean(sorted([40.0, 41.0, 40.0, 41.0, 40.0])[1:-1])
        )
