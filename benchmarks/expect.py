"""Leave parties, rounds, chips and makers out, and count how often the intervals of what a third party
measures contain the pairs that they were made without.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, median
from typing import Any

import numpy as np
from ipu_results.doors.comparison.expect import COVERAGES, LEFT_OUT, PAIRS, measure_coverage
from ipu_results.kit.files import DATASET
from ipu_results.kit.sql import run_query
from ipu_results.record.store.query import open_warehouse

from benchmarks.report import Options, Report, ReportTable, ReportTarget

MACHINES = "other"  # the only kind with enough pairs: official times to train on chips of others
MAX_OFF = 0.02
MAX_WIDTHS = {0.8: 1.15, 0.95: 1.45}
Z = NormalDist().inv_cdf(0.975)
Measured = Sequence[tuple[Any, bool, float]]
"""Pairs, whether the interval of each contains it, and the width of the interval."""


def run(_: Options) -> Report:
    """Print coverage and width of the intervals, and of quantiles of all ratios that know nothing
    else.
    """
    with open_warehouse(DATASET) as connection:
        pairs = run_query(connection, PAIRS).to_pylist()
    pairs = [pair for pair in pairs if pair["machines"] == MACHINES]
    rows: list[tuple[Any, ...]] = []
    groups: list[tuple[Any, ...]] = []
    targets = []
    for left_out in LEFT_OUT:
        everything = list(measure_coverage(pairs, left_out))
        for nominal in COVERAGES:
            measured = [found[1:] for found in everything if found[0] == nominal]
            pooled = measure_quantiles(pairs, left_out, nominal)
            share, width = summarise(measured)
            rows.append(
                (left_out, f"{nominal:.0%}", len(measured), share, width, *summarise(pooled))
            )
            if left_out in ("party", "round"):
                groups += list_groups(measured, left_out, nominal)
            if left_out == "party":
                distance = f"distance from {nominal:.0%}, party left out"
                targets.append(ReportTarget(distance, abs(share - nominal), MAX_OFF))
                what = f"median width at {nominal:.0%}"
                targets.append(ReportTarget(what, width, MAX_WIDTHS[nominal]))
    outside = [row for row in groups if row[-1]]
    columns = (
        "left out",
        "nominal",
        "pairs",
        "covered",
        "median width ×",
        "pooled: covered",
        "pooled: width ×",
    )
    return Report(
        "expect",
        "intervals of what a third party measures, made without the party, round, chip or maker that"
        " they are judged by",
        [
            ReportTable("Coverage and width", columns, rows),
            ReportTable(
                "Parties and rounds whose binomial interval at 95 % does not contain the nominal"
                " coverage",
                ("left out", "nominal", "pairs", "covered", "low", "high"),
                [row[:-1] for row in outside],
            ),
        ],
        targets,
        [
            f"{len(groups) - len(outside)} of {len(groups)} parties and rounds are within their"
            " binomial intervals."
        ],
    )


def measure_quantiles(pairs: Sequence[Any], left_out: str, nominal: float) -> Measured:
    """Judge the quantiles of all other ratios in the same way: the baseline."""
    measured = []
    for value in sorted({pair[left_out] for pair in pairs}):
        rest = [pair["ratio"] for pair in pairs if pair[left_out] != value]
        low, high = np.quantile(rest, [(1 - nominal) / 2, (1 + nominal) / 2])
        for pair in pairs:
            if pair[left_out] == value:
                is_covered = bool(low <= pair["ratio"] <= high)
                measured.append((pair, is_covered, float(high / low)))
    return measured


def summarise(measured: Measured) -> tuple[float, float]:
    """Return the share that was covered, and the median width as the ratio of the ends."""
    covered = sum(is_covered for _, is_covered, _ in measured)
    return covered / len(measured), median(width for _, _, width in measured)


def list_groups(measured: Measured, left_out: str, nominal: float) -> Iterable[tuple[Any, ...]]:
    """Yield each value that was left out with its coverage, and whether nominal is outside its
    binomial interval.
    """
    for value in sorted({pair[left_out] for pair, *_ in measured}):
        of_value = [is_covered for pair, is_covered, _ in measured if pair[left_out] == value]
        covered = sum(of_value)
        count = len(of_value)
        low, high = bound_share(covered, count)
        is_outside = not low <= nominal <= high
        name = f"{left_out} {value}"
        yield name, f"{nominal:.0%}", count, covered / count, low, high, is_outside


def bound_share(count: int, of: int) -> tuple[float, float]:
    """Return Wilson's interval of a share at 95 %."""
    share = count / of
    spread = Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    arm = Z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return middle - arm, middle + arm
