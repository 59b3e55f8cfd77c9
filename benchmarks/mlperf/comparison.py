"""Score a round of MLPerf Training with `ipu-results mlperf` and with the official summarizer on
the same files.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.mlperf.rounds import (
    CAT,
    MSGSPEC,
    ONE_PROCESS,
    TWO_WORKERS,
    Figures,
    OfficialScores,
    build_readers,
    copy_round,
    install_official,
    list_logs,
    run_official,
)
from benchmarks.processes import ROOT, CommandCost, take_turns
from benchmarks.report import (
    Options,
    Report,
    ReportTable,
    ReportTarget,
    SkipBenchmarkError,
    Value,
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

Costs = dict[str, list[CommandCost]]
Rows = list[tuple[Value, ...]]


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
    readers = build_readers(root, folder)
    ways = {name: reader.measure for name, reader in readers.items()}
    if not options.quick:
        take_turns(ways, 1)
    costs = take_turns(ways, before)
    official, reason = _run_official(source, folder, options)
    for name, more in take_turns(ways, after).items():
        costs[name] += more
    memory = {name: reader.watch_memory() for name, reader in readers.items()}

    logs = list_logs(root)
    megabytes = sum(os.path.getsize(path) for path in logs) / 1e6
    report = Report("mlperf", f"score {root.name}, {len(logs):,} logs of {megabytes:,.0f} MB")
    scores = readers[ONE_PROCESS].out.read_bytes()
    others = readers[TWO_WORKERS].out.read_bytes()
    counts = json.loads(readers[MSGSPEC].out.read_bytes())
    if official:
        _add_comparison(report, official, scores)
        report.targets += _build_speed_targets(costs, official)
    else:
        report.notes.append(f"NOT COMPARED with the official summarizer: {reason}.")
    if peaks := memory[TWO_WORKERS].worker_peaks:
        report.targets.append(
            ReportTarget("peak MB of the larger worker", max(peaks), MAX_WORKER_MB)
        )
    report.tables += [
        _tabulate_times(costs, official),
        _tabulate_ratios(costs, official),
        _tabulate_memory(memory, official),
    ]
    wrote = "the same bytes" if scores == others else "DIFFERENT BYTES"
    report.notes += [
        f"One process and two workers wrote {wrote}.",
        f"{counts['lines']:,} marked lines in the logs, {counts['broken']:,} of them not JSON.",
    ]
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
    report.notes.append(
        f"The summarizer changed {official.rewritten} scaling.json in its copy of the input."
    )
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


def _name_official(official: OfficialScores | None) -> dict[str, CommandCost]:
    if official is None:
        return {}
    return {f"mlperf-logging {official.version}": official.cost}


def _tabulate_times(costs: Costs, official: OfficialScores | None) -> ReportTable:
    theirs = {name: [cost] for name, cost in _name_official(official).items()}
    rows: Rows = []
    for name, of_process in (theirs | costs).items():
        walls = [cost.wall for cost in of_process]
        user = median(cost.user for cost in of_process)
        system = median(cost.system for cost in of_process)
        rows.append((name, len(walls), median(walls), min(walls), max(walls), user, system))
    columns = ("process", "runs", "median s", "min s", "max s", "user s", "system s")
    return ReportTable("Time from start to end of the process and its workers", columns, rows)


def _tabulate_ratios(costs: Costs, official: OfficialScores | None) -> ReportTable:
    seconds = {}
    if official:
        seconds["mlperf-logging, CPU"] = official.cost.cpu
        seconds["mlperf-logging, wall"] = official.cost.wall
    for name, of_process in costs.items():
        seconds[name] = _median_wall(of_process)
    bases = [seconds[name] for name in (ONE_PROCESS, TWO_WORKERS, CAT)]
    rows: Rows = [(name, *(value / base for base in bases)) for name, value in seconds.items()]
    columns = ("of", "to one process", "to two workers", "to cat")
    return ReportTable("Median time as a multiple", columns, rows)


def _tabulate_memory(
    memory: Mapping[str, CommandCost], official: OfficialScores | None
) -> ReportTable:
    rows = [
        (name, cost.main_peak, ", ".join(map(format_value, cost.worker_peaks)))
        for name, cost in {**_name_official(official), **memory}.items()
    ]
    return ReportTable("Peak resident memory", ("process", "MB", "MB of each worker"), rows)


def _median_wall(costs: Sequence[CommandCost]) -> float:
    return median(cost.wall for cost in costs)
