"""Intervals of official scores, what they tell apart, and how far a ranking is resolved."""

from __future__ import annotations

import math
from statistics import stdev
from typing import Any

import pandas as pd
import pytest
from ipu_results.link.mlperf import (
    ALL_SIZES,
    SAME_SIZE,
    Intervals,
    describe_interval,
    estimate_intervals,
    resolve_rankings,
)
from ipu_results.mlperf.interval import (
    ALONE,
    GROUP,
    OWN,
    are_separable,
    compute_t_quantile,
    compute_two_sided_p,
    estimate_interval,
    pool_convergence,
)

FIVE = (10.0, 10.2, 9.9, 10.1, 10.3)
COLUMNS = ("round", "path", "sha256", "minutes", "counted", "samples", "epochs")


@pytest.mark.parametrize(
    ("coverage", "df", "expected"),
    # From the table of Student's t in NIST/SEMATECH e-Handbook, section 1.3.6.7.2.
    [(0.95, 2, 4.303), (0.95, 4, 2.776), (0.95, 9, 2.262), (0.95, 39, 2.023), (0.99, 4, 4.604), (0.998, 2, 22.327)],
)
def test_t_quantile_is_that_of_the_tables(coverage: float, df: int, expected: float) -> None:
    assert compute_t_quantile(coverage, df) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("df", [1, 2, 5, 30, 400])
@pytest.mark.parametrize("coverage", [0.5, 0.95, 0.9999, 1 - 1e-9])
def test_t_quantile_inverts_the_distribution(coverage: float, df: int) -> None:
    assert compute_two_sided_p(compute_t_quantile(coverage, df), df) == pytest.approx(1 - coverage, rel=1e-6)


def test_interval_of_its_own_runs_is_students() -> None:
    interval = estimate_interval(10.1, FIVE, 1.0, None)
    assert interval is not None
    assert interval.method == ALONE
    assert interval.half_width() == pytest.approx(2.776445 * stdev(FIVE) / math.sqrt(5), rel=1e-6)


def test_scaling_factor_scales_the_spread() -> None:
    plain, scaled = (estimate_interval(10.1 * factor, FIVE, factor, None) for factor in (1.0, 1.5))
    assert plain is not None
    assert scaled is not None
    assert scaled.half_width() == pytest.approx(1.5 * plain.half_width())


def test_group_widens_an_interval_and_never_narrows_it() -> None:
    """Five runs that stopped at one evaluation say nothing of the later ones that others needed."""
    steps = pool_convergence([(10, 10, 10, 10, 11)] * 6)
    same = pool_convergence([(10, 10, 10, 10, 10)] * 6)
    assert steps is not None
    assert same is not None
    assert steps.df == 24
    alike = (20.0, 20.01, 20.0, 20.02, 20.01)
    wide, narrow = (estimate_interval(20.0, alike, 1.0, group) for group in (steps, same))
    assert wide is not None
    assert narrow is not None
    assert (wide.method, narrow.method) == (GROUP, OWN)
    assert wide.half_width() == pytest.approx(compute_t_quantile(0.95, 24) * 20 * math.sqrt(steps.variance / 5))
    assert steps.variance == pytest.approx((4 * (0.2 / 10.2) ** 2 + (0.8 / 10.2) ** 2) / 4)


def test_few_runs_make_no_interval_and_no_group() -> None:
    assert estimate_interval(10.0, (9.0, 11.0), 1.0, None) is None
    assert pool_convergence([(10, 11, 12, 10, 11)] * 4) is None


def test_two_scores_are_separated_by_the_interval_of_their_difference() -> None:
    """Intervals that overlap a little may still exclude a difference of zero."""
    faster = estimate_interval(10.0, FIVE, 1.0, None)
    assert faster is not None
    half = faster.half_width()
    for distance, expected in ((1.35 * half, False), (1.45 * half, True)):
        slower = estimate_interval(10.0 + distance, FIVE, 1.0, None)
        assert slower is not None
        assert are_separable(faster, slower) is expected


def make_entry(path: str, minutes: float | None, **values: Any) -> dict[str, Any]:
    base = {"round": "2.0", "division": "closed", "benchmark": "resnet", "accelerators": 8, "global_batch_size": 64}
    return {**base, "path": path, "minutes": minutes, "scaling_factor": 1.0, **values}


def make_runs(path: str, minutes: tuple[float, ...], digests: str = "", round_: str = "2.0") -> list[tuple[Any, ...]]:
    """Make runs; `digests` has a letter for each log, different for every path unless given."""
    names = digests or [f"{round_}{path}{number}" for number in range(len(minutes))]
    return [
        (round_, path, name, value, True, None, float(40 + number % 2))
        for number, (value, name) in enumerate(zip(minutes, names, strict=True))
    ]


def estimate(*entries: tuple[str, float, tuple[float, ...], str]) -> tuple[list[dict[str, Any]], Intervals]:
    records = [make_entry(path, score) for path, score, _, _ in entries]
    runs = [run for path, _, minutes, digests in entries for run in make_runs(path, minutes, digests)]
    return records, estimate_intervals(records, pd.DataFrame(runs, columns=COLUMNS))


def test_log_that_is_in_the_folder_twice_is_one_run() -> None:
    records, intervals = estimate(("a", 10.0, (9.9, 10.1, 10.1, 10.1, 10.2), "pqqqr"), ("b", 10.0, FIVE, "sssst"))
    assert describe_interval(records[0], intervals)["interval_runs"] == 3
    assert describe_interval(records[1], intervals) == {
        "no_interval_reason": "fewer than 3 counted runs with different logs"
    }


def test_entry_without_score_has_a_reason_and_lower_end_is_never_negative() -> None:
    records, intervals = estimate(("a", 10.0, (0.1, 10.0, 10.0, 10.0, 60.0), ""))
    assert describe_interval(records[0], intervals)["minutes_low"] == 0
    assert describe_interval(make_entry("x", None), intervals) == {"no_interval_reason": "it has no score"}


def shift(distance: float) -> tuple[float, ...]:
    return tuple(minutes + distance for minutes in FIVE)


def test_ranking_counts_pairs_ties_and_shared_logs() -> None:
    """Here a and b share a log, b and c are tied, d is far from c, and e has too few runs."""
    entries, intervals = estimate(
        ("a", 10.0, FIVE, "abcde"),
        ("b", 10.2, shift(0.2), "afghi"),
        ("c", 10.25, shift(0.25), ""),
        ("d", 14.0, shift(4.0), ""),
        ("e", 15.0, (15.0, 15.1), ""),
        ("f", 20.0, shift(10.0), ""),
    )
    entries[5]["accelerators"] = 16
    every, eight, sixteen = resolve_rankings(entries, intervals)
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
    assert (every["scope"], every["accelerators"]) == (ALL_SIZES, None)
    assert (eight["scope"], eight["accelerators"], eight["entries"], eight["untested_pairs"]) == (SAME_SIZE, 8, 5, 1)
    assert (sixteen["accelerators"], sixteen["entries"], sixteen["neighbouring_pairs"]) == (16, 1, 0)


def test_correction_needs_larger_gaps_where_there_are_more_pairs() -> None:
    gap = 0.35
    for number, corrected in ((2, 1), (8, 0)):
        entries, intervals = estimate(*((f"e{i}", 10 + gap * i, shift(gap * i), "") for i in range(number)))
        every = resolve_rankings(entries, intervals)[0]
        assert (every["separable_pairs"], every["separable_pairs_corrected"]) == (number - 1, (number - 1) * corrected)


def test_overlapping_groups_of_ties_are_counted_once_each() -> None:
    """Of four equidistant entries only neighbours are tied: three groups of two."""
    entries, intervals = estimate(*((f"e{i}", 10 + 0.2 * i, shift(0.2 * i), "") for i in range(4)))
    every = resolve_rankings(entries, intervals)[0]
    assert (every["separable_pairs"], every["tied_groups"], every["largest_tied_group"]) == (0, 3, 2)


def test_groups_of_another_batch_size_division_or_round_do_not_widen() -> None:
    steps = tuple(40.0 + 4 * (number == 0) for number in range(5))
    runs = [("2.0", f"g{i}", f"g{i}{n}", 20.0, True, None, steps[n]) for i in range(6) for n in range(5)] + [
        ("2.0", "x", f"x{n}", 20.0 + 0.01 * n, True, None, 40.0) for n in range(5)
    ]
    frame = pd.DataFrame(runs, columns=COLUMNS)
    for values, method in (({}, GROUP), ({"global_batch_size": 128}, GROUP), ({"division": "open"}, ALONE)):
        entries = [make_entry(f"g{i}", 20.0) for i in range(6)] + [make_entry("x", 20.0, **values)]
        assert describe_interval(entries[-1], estimate_intervals(entries, frame))["interval_method"] == method
