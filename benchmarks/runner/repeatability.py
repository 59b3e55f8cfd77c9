"""Simulate many sweeps on quiet, noisy and flipping machines, where the true value is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value
from benchmarks.runner.simulation import (
    MINUTE_S,
    OFF,
    ROUNDS,
    Scenario,
    SimulatedSweep,
    simulate_sweeps,
)

SWEEPS = 2000
QUICK_SWEEPS = 5
Results = Sequence[tuple[Scenario, Sequence[SimulatedSweep]]]
QUIET: Mapping[str, Any] = {"noise": 0.02, "probe_noise": 0.05}


def _flip(factor: float, share: float, slow_s: float) -> dict[str, Any]:
    return {**QUIET, "regimes": (factor, slow_s, slow_s * (1 - share) / share)}


SCENARIOS = (
    Scenario("quiet", QUIET),
    Scenario("noisy, 15 % an iteration", {**QUIET, "noise": 0.15}),
    Scenario("outliers, 0.5 % take 5 times as long", {**QUIET, "outliers": (0.005, 5.0)}),
    Scenario("drift of 3 % in 100 s", {**QUIET, "drift": 0.0003}),
    Scenario("drift of 15 % in 100 s", {**QUIET, "drift": 0.0015}),
    Scenario("1.6 times as long, 10 %, 3 s", _flip(1.6, 0.1, 3)),
    Scenario("1.6 times as long, 25 %, 5 s", _flip(1.6, 0.25, 5)),
    Scenario("1.6 times as long, 50 %, 5 s", _flip(1.6, 0.5, 5)),
    Scenario("the same, no probe sees it", _flip(1.6, 0.5, 5), blind=True),
    Scenario("1.6 times as long, 50 %, 0.3 s", _flip(1.6, 0.5, 0.3)),
    Scenario("1.15 times as long, 50 %, 5 s", _flip(1.15, 0.5, 5)),
    Scenario("1.6 times as long, 50 %, 60 s", _flip(1.6, 0.5, MINUTE_S)),
    Scenario("the same, no probe sees it", _flip(1.6, 0.5, MINUTE_S), blind=True),
    Scenario("the same, the probe's best known", _flip(1.6, 0.5, MINUTE_S), known=True),
)


def run(options: Options) -> Report:
    """Simulate the same number of sweeps for each scenario."""
    count = QUICK_SWEEPS if options.quick else SWEEPS
    results = [(scenario, simulate_sweeps(count, scenario)) for scenario in SCENARIOS]
    misleading = 0.0
    for scenario, sweeps in results:
        if scenario.has_short_spells:
            misleading = max(misleading, _percent(sweep.misleads for sweep in sweeps))
    suspect = _percent(bool(sweep.row.suspect) for sweep in results[0][1])
    return Report(
        "repeatability",
        f"{count} simulated sweeps of {ROUNDS} rounds for each kind of machine",
        [_tabulate_rows(results), _tabulate_blocks(results)],
        [
            ReportTarget("% of a quiet machine's rows that are suspect", suspect, 2.0),
            ReportTarget(
                "% of rows that mislead, worst machine whose slow spells last seconds",
                misleading,
                1.0,
            ),
        ],
        [
            f"A row misleads if it is more than {OFF:.0%} off, not suspect, and its interval"
            " excludes the quiet value.",
            "The last machines are often slow for a whole sweep: only a probe's best from"
            " before can show that.",
            f"A block is truly disturbed if it is more than {OFF:.0%} slower than on the quiet"
            " machine.",
        ],
    )


def _tabulate_rows(results: Results) -> ReportTable:
    rows: list[tuple[Value, ...]] = []
    for scenario, sweeps in results:
        rows.append(
            (
                scenario.name,
                _percent(sweep.holds for sweep in sweeps),
                100 * median(sweep.width for sweep in sweeps),
                _percent(sweep.off for sweep in sweeps),
                _percent(bool(sweep.row.suspect) for sweep in sweeps),
                _percent(sweep.misleads for sweep in sweeps),
            )
        )
    columns = (
        "machine",
        "interval holds, %",
        "width, %",
        f"> {OFF:.0%} off, %",
        "suspect, %",
        "misleads, %",
    )
    return ReportTable("The row of a sweep, relative to the quiet machine's value", columns, rows)


def _tabulate_blocks(results: Results) -> ReportTable:
    rows: list[tuple[Value, ...]] = []
    for scenario, sweeps in results:
        blocks = sum(sweep.row.blocks for sweep in sweeps)
        disturbed = sum(sweep.truly_disturbed for sweep in sweeps)
        caught = sum(sweep.caught for sweep in sweeps)
        accused = sum(sweep.accused for sweep in sweeps)
        caught_share = 100 * caught / disturbed if disturbed else None
        accused_share = 100 * accused / (blocks - disturbed) if disturbed < blocks else None
        rows.append((scenario.name, blocks, 100 * disturbed / blocks, caught_share, accused_share))
    columns = (
        "machine",
        "blocks",
        "truly disturbed, %",
        "of these caught, %",
        "of the others accused, %",
    )
    return ReportTable("Blocks", columns, rows)


def _percent(outcomes: Iterable[bool]) -> float:
    return 100 * fmean(outcomes)
