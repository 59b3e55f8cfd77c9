"""Simulate submissions whose true score is known, by the official rule with its normalisation.

An interval should contain the true score, which is the mean of the official score over many
submissions of the same system. A test should call two systems with one true score different in 5 %
of cases, and others as often as it can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from ipu_results.kit.files import DATASET
from ipu_results.mlperf.interval import (
    COVERAGE,
    SESSION,
    Integers,
    Numbers,
    Runs,
    average,
    compute_t_quantile,
    compute_two_sided_p,
    estimate_errors,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.separation import compare_pairs, make_values

from benchmarks.mlperf import pairs
from benchmarks.mlperf.shapes import Shape, load_shapes
from benchmarks.report import Options, Report, ReportTable, ReportTarget, SkipBenchmarkError, Value

SEED = 15
JUDGED = (5, 10, 40)  # runs of an entry for which single shapes have a target
ENDS = 5  # shapes at each end that the report names
# runs of an entry: (dropped at each end, comparable entries)
RUNS = {3: (1, 12), 5: (1, 8), 10: (1, 5), 40: (4, 3)}
# mean samples to convergence, over those of the reference
OFFSETS = (-0.03, -0.01, 0.0, 0.01, 0.03)
ENTRIES, QUICK_ENTRIES = 2400, 48
TRUTH, QUICK_TRUTH = 60_000, 2_000
EFFECT = 3.0  # of the pairs that differ, in standard errors of the difference
MIN_COVERAGE, MAX_COVERAGE, MAX_SIZE = 0.93, 0.985, 0.06
HERE, BEFORE = METHODS = ("here", "factor as a constant")
PERMUTATION, YUEN, WELCH, OVERLAP = TESTS = ("permutation", "Yuen", "Welch", "intervals before")


@dataclass(frozen=True, slots=True)
class Sample:
    """Simulated entries: their runs, official scores, and the score that each has on average."""

    runs: Runs
    scores: Numbers
    truth: float


def run(options: Options, warehouse: Path = DATASET) -> Report:
    """Simulate the entries of every shape of the record."""
    shapes = load_shapes(warehouse)
    if not shapes:
        raise SkipBenchmarkError(f"{warehouse} has no MLPerf runs")
    entries, truth = (QUICK_ENTRIES, QUICK_TRUTH) if options.quick else (ENTRIES, TRUTH)
    cells = [(shape, n, offset) for n in RUNS for offset in OFFSETS for shape in shapes]
    frame = pd.DataFrame([row for cell in cells for row in simulate(*cell, entries, truth)])
    here = frame[(frame["method"] == HERE) & frame["runs"].isin(JUDGED)]
    targets = [
        ReportTarget(
            f"{bound} coverage of a shape, {n} runs",
            float(value),
            limit,
            at_least=bound == "lowest",
        )
        for n, own in here.groupby("runs")["coverage"]
        for bound, value, limit in (
            ("lowest", own.min(), MIN_COVERAGE),
            ("highest", own.max(), MAX_COVERAGE),
        )
    ]
    sizes = (
        frame[(frame["method"] == PERMUTATION) & frame["size"].notna()]
        .groupby(["runs", "offset"])["size"]
        .mean()
    )
    targets.append(ReportTarget("highest mean size of the test", float(sizes.max()), MAX_SIZE))
    pair_tables, pair_targets = pairs.tabulate(quick=options.quick)
    return Report(
        "mlperf_intervals",
        f"{entries:,} simulated entries of each of {len(shapes)} shapes, nominal coverage"
        f" {COVERAGE:.0%}",
        [
            _tabulate_coverage(frame),
            _tabulate_outside(here),
            _tabulate_ends(here),
            _tabulate_tests(frame),
            *pair_tables,
            _tabulate_shapes(frame),
        ],
        [*targets, *pair_targets],
        [
            (
                "Shapes are pairs of samples to convergence and minutes per sample of runs of the"
                " record."
            ),
            (
                "The official rule: olympic mean x max(1, reference / own mean). The reference is"
                " such that the mean samples to convergence are that far from it."
            ),
            f"Each entry is of a session, whose speed has a standard deviation of {SESSION:.1%}.",
            (
                "Size: pairs of equal systems called different at 5 %. Power: the same of pairs"
                f" that are {EFFECT:g} standard errors of their difference apart. All but the last"
                " test the same values of the runs, and only the permutation knows of sessions."
            ),
            "The last table has each shape at the number of runs that its entries have.",
        ],
    )


def simulate(
    shape: Shape, n: int, offset: float, entries: int, truth: int
) -> Iterable[dict[str, Value]]:
    """Simulate comparable entries of `n` runs each from a fixed seed, in groups, and pairs of them."""
    rng = np.random.default_rng([SEED, n, round(1000 + 1000 * offset), *shape.name.encode()])
    sample = _draw(shape, n, offset, rng, entries, truth)
    members = RUNS[n][1]
    groups = [[number // members] for number in range(len(sample.scores))]
    half_spread = float(np.diff(np.percentile(sample.scores, [2.5, 97.5]))[0]) / 2 / sample.truth
    here = estimate_intervals(sample.runs, groups)
    before = _estimate_before(sample, members)
    common: dict[str, Value] = {
        "shape": shape.name,
        "family": shape.family,
        "own_runs": shape.runs,
        "runs": n,
        "offset": offset,
    }
    for method, (low, high) in {
        HERE: (here.low, here.high),
        BEFORE: (1 - before, 1 + before),
    }.items():
        held = (sample.scores * low <= sample.truth) & (sample.truth <= sample.scores * high)
        width = float(np.median((high - low) * sample.scores)) / 2 / sample.truth
        # Comparable entries share a width, so groups of them are the independent draws.
        error = float(held.reshape(-1, members).mean(axis=1).std(ddof=1)) / math.sqrt(
            len(held) / members
        )
        figures = {"coverage": held.mean(), "error": error, "width": width, "spread": half_spread}
        yield {**common, "method": method, **figures}
    apart = EFFECT * math.sqrt(2) * float(sample.scores.std()) / sample.truth
    first = np.arange(0, len(sample.scores) - 1, 2)
    minutes = sample.runs.minutes.copy()
    minutes[first + 1] *= 1 + apart
    different = Sample(
        replace(sample.runs, minutes=minutes),
        np.where(
            np.isin(np.arange(len(minutes)), first + 1), sample.scores * (1 + apart), sample.scores
        ),
        sample.truth,
    )
    sizes, powers = (_test(each, first, before, groups) for each in (sample, different))
    for test in TESTS:
        yield {**common, "method": test, "size": sizes[test], "power": powers[test]}


def _draw(
    shape: Shape, n: int, offset: float, rng: np.random.Generator, entries: int, truth: int
) -> Sample:
    drop, members = RUNS[n]
    counts, minutes = shape.draw(rng, (truth, n))
    reference = float(_score(counts, drop).mean()) / (1 + offset)
    expected = float(
        (_score(minutes, drop) * np.maximum(1, reference / _score(counts, drop))).mean()
    )
    counts, minutes = shape.draw(rng, (math.ceil(entries / members) * members, n))
    minutes *= 1 + SESSION * rng.standard_normal((len(minutes), 1))
    ratios = reference / _score(counts, drop)
    scores = _score(minutes, drop) * np.maximum(1, ratios)
    dropped = [(drop, drop)] * len(counts)
    return Sample(
        make_runs(minutes.tolist(), counts.tolist(), dropped, ratios.tolist()), scores, expected
    )


def _score(values: Numbers, drop: int) -> Numbers:
    """Compute the olympic mean along the last axis."""
    kept = np.sort(values, axis=-1)[..., drop : values.shape[-1] - drop]
    means: Numbers = kept.mean(axis=-1)
    return means


def _estimate_before(sample: Sample, members: int) -> Numbers:
    """Estimate half-widths as before normalisation was drawn: the larger of own minutes and
    comparable samples.
    """
    n = sample.runs.minutes.shape[1]
    minutes, counts = sample.runs.minutes, sample.runs.counts
    own = minutes.std(axis=1, ddof=1) / minutes.mean(axis=1)
    pooled = (
        (counts.var(axis=1, ddof=1) / counts.mean(axis=1) ** 2).reshape(-1, members).mean(axis=1)
    )
    group = np.repeat(np.sqrt(pooled), members) * compute_t_quantile(COVERAGE, members * (n - 1))
    half: Numbers = np.maximum(own * compute_t_quantile(COVERAGE, n - 1), group) / math.sqrt(n)
    return half


def _select(runs: Runs, rows: Integers) -> Runs:
    return Runs(*(getattr(runs, name)[rows] for name in Runs.__slots__))


def _test(
    sample: Sample, first: Integers, before: Numbers, groups: list[list[int]]
) -> dict[str, float]:
    """Return the share of pairs of neighbouring rows that each test calls different."""
    second, n = first + 1, sample.runs.minutes.shape[1]
    values = make_values(sample.runs, first, second, n, n)
    sides = [
        replace(_select(sample.runs, rows), minutes=own)
        for rows, own in zip((first, second), values, strict=True)
    ]
    gaps = np.abs(average(sides[1].minutes, sides[1]) - average(sides[0].minutes, sides[0]))
    (plain, yuen), (other_plain, other_yuen) = (
        estimate_errors(side.minutes, side) for side in sides
    )
    widths = before * sample.scores
    apart = np.abs(np.diff(sample.scores.reshape(-1, 2), axis=1)[:, 0])
    tested = compare_pairs(sample.runs, first, second, groups, np.ones(len(first), dtype=bool))
    return {
        PERMUTATION: float((tested.p < 1 - COVERAGE).mean()),
        YUEN: _reject(gaps, yuen, other_yuen, n - 2 * int(sample.runs.low[0]) - 1),
        WELCH: _reject(gaps, plain, other_plain, n - 1),
        OVERLAP: float((apart > np.hypot(widths[first], widths[second])).mean()),
    }


def _reject(gaps: Numbers, first: Numbers, second: Numbers, df: int) -> float:
    """Return the share with p below 5 % by Student's t with the degrees of freedom of Welch and
    Satterthwaite.
    """
    if df < 1:
        return math.nan
    error = np.maximum(first**2 + second**2, 1e-300)
    freedom = np.floor(error**2 / np.maximum((first**4 + second**4) / df, 1e-300)).astype(int)
    t = gaps / np.sqrt(error)
    p = [compute_two_sided_p(value, max(each, 1)) for value, each in zip(t, freedom, strict=True)]
    return float((np.array(p) < 1 - COVERAGE).mean())


def _tabulate_coverage(frame: pd.DataFrame) -> ReportTable:
    rows: list[list[Value]] = []
    for (n, offset), cell in frame[frame["method"].isin(METHODS)].groupby(["runs", "offset"]):
        row: list[Value] = [f"{n} runs, {100 * offset:+.0f} %"]
        for method in METHODS:
            own = cell[cell["method"] == method]
            shares = (
                own["coverage"].mean(),
                own["coverage"].min(),
                own["coverage"].max(),
                own["width"].median(),
            )
            row += [100 * float(share) for share in shares]
        rows.append([*row, 100 * float(cell["spread"].median())])
    columns = [
        f"{method}: {part}" for method in METHODS for part in ("%", "lowest %", "highest %", "± %")
    ]
    title = "Intervals that contain the true score: mean, lowest and highest shape, and half-width"
    return ReportTable(title, ["entries", *columns, "half-spread of scores, %"], rows)


def _tabulate_outside(here: pd.DataFrame) -> ReportTable:
    """Count shapes outside the bounds, all and those beyond two standard errors of the simulation."""
    below, above = MIN_COVERAGE - here["coverage"], here["coverage"] - MAX_COVERAGE
    gaps = {"below": below, "above": above}
    counts = {
        f"{side}{kind}": gap > far
        for side, gap in gaps.items()
        for kind, far in _list_distances(here)
    }
    table = pd.DataFrame({**counts, "shapes": True}).groupby([here["runs"], here["offset"]]).sum()
    by_runs = here.groupby(["runs", "offset"])
    table["observed"] = 100 * by_runs["coverage"].std()
    table["simulation"] = 100 * by_runs["error"].agg(lambda errors: math.sqrt((errors**2).mean()))
    rows: list[list[Value]] = [
        [f"{n} runs, {100 * offset:+.0f} %", *values]
        for (n, offset), values in zip(table.index, table.to_numpy().tolist(), strict=True)
    ]
    names = [
        f"{side} {100 * limit:g} %"
        for side, limit in (("below", MIN_COVERAGE), ("above", MAX_COVERAGE))
    ]
    columns = [f"{name}{kind}" for name in names for kind in ("", " by 2 errors")]
    return ReportTable(
        "Shapes with another coverage, and the standard deviation of coverage: of shapes, and of"
        " the simulation alone",
        ["entries", *columns, "shapes", "observed, %", "simulation, %"],
        rows,
    )


def _list_distances(here: pd.DataFrame) -> Iterable[tuple[str, pd.Series]]:
    return ("", 0 * here["error"]), (" far", 2 * here["error"])


def _tabulate_ends(here: pd.DataFrame) -> ReportTable:
    """List the shapes with the lowest and the highest coverage."""
    rows: list[list[Value]] = []
    for n, own in here.sort_values("coverage").groupby("runs"):
        for row in pd.concat([own.head(ENDS), own.tail(ENDS)]).itertuples():
            shares = (row.coverage, row.error, row.width, row.spread)
            rows.append(
                [
                    f"{n} runs, {100 * row.offset:+.0f} %, {row.shape}",
                    *(100 * float(each) for each in shares),
                ]
            )
    columns = ["entries", "%", "standard error, %", "± %", "half-spread of scores, %"]
    return ReportTable("Lowest and highest coverage of a shape", columns, rows)


def _tabulate_tests(frame: pd.DataFrame) -> ReportTable:
    rows: list[list[Value]] = []
    for (n, offset), cell in frame[frame["method"].isin(TESTS)].groupby(["runs", "offset"]):
        parts = [cell[cell["method"] == test] for test in TESTS]
        figures = [(own["size"].mean(), own["size"].max(), own["power"].mean()) for own in parts]
        rows.append(
            [
                f"{n} runs, {100 * offset:+.0f} %",
                *(100 * float(value) for part in figures for value in part),
            ]
        )
    columns = [f"{test}: {part}" for test in TESTS for part in ("size %", "worst %", "power %")]
    return ReportTable(
        "Tests of pairs: size, that of the worst shape, and power", ["pairs", *columns], rows
    )


def _tabulate_shapes(frame: pd.DataFrame) -> ReportTable:
    here = frame[frame["method"] == HERE]
    here = here[
        [_find_closest(runs) == n for runs, n in zip(here["own_runs"], here["runs"], strict=True)]
    ]
    table = here.pivot_table(index=["runs", "shape"], columns="offset", values="coverage")
    rows: list[list[Value]] = [
        [f"{n} runs, {name}", *(100 * float(value) for value in values)]
        for (n, name), values in zip(table.index, table.to_numpy(), strict=True)
    ]
    return ReportTable(
        "Coverage of each shape, in %",
        ["shape", *(f"{100 * offset:+.0f} %" for offset in OFFSETS)],
        rows,
    )


def _find_closest(runs: int) -> int:
    return min(RUNS, key=lambda n: abs(math.log(n / runs)))
