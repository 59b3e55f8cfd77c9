"""Score a round of MLPerf Training with `ipu-results mlperf` and with the official summarizer on
the same files.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.mlperf.rounds import (
    Figures,
    OfficialScores,
    copy_round,
    install_official,
    list_logs,
    run_official,
)
from benchmarks.processes import ROOT, CommandCost, find_program, measure_command, take_turns
from benchmarks.report import (
    Options,
    Report,
    ReportTable,
    ReportTarget,
    SkipBenchmarkError,
    format_value,
)

ARCHIVE = ROOT.parent / "shared" / "mlperf" / "training_v2.0_results.tar.xz"
ROUNDS_BEFORE = 4
ROUNDS_AFTER = 3
MIN_RATIO_ONE = 120.0
MIN_RATIO_TWO = 200.0
MAX_WORKER_MB = 60.0
TOLERANCE = 1e-9
NO_ENTRY = "no such entry"

POLL_S = 0.005
WORKERS = {"ipu-results mlperf --workers 1": "1", "ipu-results mlperf --workers 2": "2"}
ONE_PROCESS, TWO_WORKERS = WORKERS

Costs = dict[str, list[CommandCost]]
"""Of each process, by its name."""


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of every entry of either side; `empty` counts the equal entries that have no
    number.

    `differences` are (entry, figure, official value, our value).
    """

    figure: str
    entries: int
    equal: int
    empty: int
    largest: float
    differences: tuple[tuple[str, str, str, str], ...]


def compare_figures(figure: str, official: Figures, ours: Figures) -> FigureComparison:
    """Compare entry by entry.

    A number differs from a missing number, a missing number from a missing entry.
    """
    differences = []
    largest = 0.0
    empty = 0
    paths = sorted(official.keys() | ours.keys())
    for path in paths:
        theirs = official.get(path, NO_ENTRY)
        own = ours.get(path, NO_ENTRY)
        if isinstance(theirs, (int, float)) and isinstance(own, (int, float)):
            distance = abs(theirs - own)
            is_equal = distance <= TOLERANCE
            largest = max(largest, distance)
        else:
            is_equal = theirs == own
            empty += is_equal
        if not is_equal:
            differences.append((path, figure, _format_figure(theirs), _format_figure(own)))
    equal = len(paths) - len(differences)
    return FigureComparison(figure, len(paths), equal, empty, largest, tuple(differences))


def _format_figure(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else str(float(value))


def run(options: Options) -> Report:
    """Measure our processes in turns, before and after one run of the official summarizer."""
    source = options.mlperf or ARCHIVE
    if not source.exists():
        raise SkipBenchmarkError(
            f"{source} does not exist; name an archive or a checkout of a round with --mlperf"
        )
    with tempfile.TemporaryDirectory() as folder:
        return _measure(source, Path(folder), options)


def _measure(source: Path, folder: Path, options: Options) -> Report:
    before = 1 if options.quick else ROUNDS_BEFORE
    after = 0 if options.quick else ROUNDS_AFTER
    root = copy_round(source, folder / "ours", options.quick)
    command = [*find_program(), "mlperf", str(root), "--format", "json", "--workers"]
    written = {name: folder / f"out{workers}" for name, workers in WORKERS.items()}
    ways = {}
    watched = {}
    for name, workers in WORKERS.items():
        ways[name] = partial(measure_command, [*command, workers], written[name])
        watched[name] = partial(ways[name], poll_s=POLL_S)
    if not options.quick:
        take_turns(ways, 1)
    costs = take_turns(ways, before)
    official, reason = _run_official(source, folder, options)
    for name, more in take_turns(ways, after).items():
        costs[name] += more
    memory = take_turns(watched, 1)

    logs = list_logs(root)
    megabytes = sum(os.path.getsize(path) for path in logs) / 1e6
    report = Report("mlperf", f"score {root.name}, {len(logs):,} logs of {megabytes:,.0f} MB")
    scores = written[ONE_PROCESS].read_bytes()
    others = written[TWO_WORKERS].read_bytes()
    if official:
        _add_comparison(report, official, scores)
        report.targets += _build_speed_targets(costs, official)
        name = f"mlperf-logging {official.version}"
        costs[name] = memory[name] = [official.cost]
    else:
        report.notes.append(f"NOT COMPARED with the official summarizer: {reason}.")
    peaks = memory[TWO_WORKERS][0].worker_peaks
    if peaks:
        report.targets.append(
            ReportTarget("peak MB of the larger worker", max(peaks), MAX_WORKER_MB)
        )
    report.tables += [_tabulate_times(costs), _tabulate_memory(memory)]
    wrote = "the same bytes" if scores == others else "DIFFERENT BYTES"
    report.notes.append(f"One process and two workers wrote {wrote}.")
    return report


def _run_official(
    source: Path, folder: Path, options: Options
) -> tuple[OfficialScores | None, str]:
    """Return the official scores, or why the summarizer does not run here."""
    if options.quick and options.official is None:
        reason = "--quick installs nothing; name an interpreter that has mlperf-logging"
        return None, f"{reason} with --official"
    try:
        python = options.official or install_official(folder / "environment")
        root = copy_round(source, folder / "theirs", options.quick)
        return run_official(python, root, folder), ""
    except SkipBenchmarkError as error:
        return None, str(error)


def _add_comparison(report: Report, official: OfficialScores, scores: bytes) -> None:
    entries = json.loads(scores)
    rows = []
    differences: list[tuple[str, ...]] = []
    for name, theirs in (("minutes", official.minutes), ("scaling_factor", official.factors)):
        ours = {entry["path"]: entry[name] for entry in entries}
        compared = compare_figures(name, theirs, ours)
        rows.append((name, compared.entries, compared.equal, compared.empty, compared.largest))
        differences += compared.differences
    columns = (
        "figure",
        "entries of either",
        "equal",
        "of these without a number",
        "largest difference",
    )
    report.tables.append(ReportTable(f"Entries, equal within {TOLERANCE:g}", columns, rows))
    if differences:
        names = ("entry", "figure", "mlperf-logging", "ipu-results")
        report.tables.append(ReportTable("Every difference", names, differences))
    else:
        report.notes.append("No figure of any entry differs, and neither side lacks an entry.")
    scaled = [path for path, factor in official.factors.items() if factor != 1]
    report.notes.append(f"Scaled: {', '.join(scaled) or 'no entry'}.")
    report.targets.append(
        ReportTarget("figures that differ, or that one side lacks", len(differences), 0)
    )


def _build_speed_targets(costs: Costs, official: OfficialScores) -> list[ReportTarget]:
    cpu = official.cost.cpu / _median_wall(costs[ONE_PROCESS])
    wall = official.cost.wall / _median_wall(costs[TWO_WORKERS])
    return [
        ReportTarget(
            "mlperf-logging CPU s / ipu-results s, one process", cpu, MIN_RATIO_ONE, at_least=True
        ),
        ReportTarget(
            "mlperf-logging s / ipu-results s, two workers", wall, MIN_RATIO_TWO, at_least=True
        ),
    ]


def _tabulate_times(costs: Costs) -> ReportTable:
    """Tell the times of each process, and how many times as long one process takes."""
    one_process = _median_wall(costs[ONE_PROCESS])
    rows = []
    for name, runs in costs.items():
        walls = [cost.wall for cost in runs]
        middle = median(walls)
        cpu = median(cost.cpu for cost in runs)
        ratio = middle / one_process
        rows.append((name, len(walls), middle, min(walls), max(walls), cpu, ratio))
    columns = ("process", "runs", "median s", "min s", "max s", "CPU s", "to one process")
    return ReportTable("Time from start to end of the process and its workers", columns, rows)


def _tabulate_memory(memory: Costs) -> ReportTable:
    rows = []
    for name, (cost,) in memory.items():
        rows.append((name, cost.main_peak, ", ".join(map(format_value, cost.worker_peaks))))
    return ReportTable("Peak resident memory", ("process", "MB", "MB of each worker"), rows)


def _median_wall(costs: Sequence[CommandCost]) -> float:
    return median(cost.wall for cost in costs)
