"""A round of MLPerf Training scored by `ipu-results mlperf`, beside the official summarizer on the same files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.child import ROOT, Step, in_child
from benchmarks.mlperf_compare import TOLERANCE, compared
from benchmarks.mlperf_runs import (
    CAT,
    ONE,
    TWO,
    Official,
    Way,
    commands,
    copied,
    our_figures,
    summarised,
    with_mlperf_logging,
)
from benchmarks.mlperf_steps import stepwise
from benchmarks.options import Options, Skipped
from benchmarks.processes import Took, took
from benchmarks.report import Report, Table, Target, Value, shown

ARCHIVE = ROOT.parent / "shared" / "mlperf" / "training_v2.0_results.tar.xz"
BEFORE, AFTER, STEP_REPEATS = 4, 3, 3
ONE_PROCESS, TWO_PROCESSES, WORKER_MB = 120.0, 200.0, 60.0
MEMORY_EVERY_S = 0.005
REST = "start Python, import, end"

Times = dict[str, list[Took]]
Rows = list[tuple[Value, ...]]


def run(options: Options) -> Report:
    source = options.mlperf or ARCHIVE
    if not source.exists():
        raise Skipped(f"{source} is not there; give the archive or the checkout of a round with --mlperf PATH")
    with tempfile.TemporaryDirectory() as folder:
        return _measured(source, Path(folder), options)


def _measured(source: Path, folder: Path, options: Options) -> Report:
    before, after, repeats = (1, 0, 1) if options.quick else (BEFORE, AFTER, STEP_REPEATS)
    checkout, loads = copied(source, folder / "ours", options.quick), [os.getloadavg()[0]]
    logs = checkout.logs
    names = folder / "names"
    names.write_text("".join(f"{path}\0" for path in logs), encoding="utf-8")
    ways = [Way(name, command, folder / f"out{at}") for at, (name, command) in enumerate(commands(checkout, names))]
    if not options.quick:
        _interleaved(ways, names, 1)
    times = _interleaved(ways, names, before)
    loads.append(os.getloadavg()[0])
    official, why_not = _official(source, folder, options)
    loads.append(os.getloadavg()[0])
    for name, more in _interleaved(ways, names, after).items():
        times[name] += more
    memory = {way.name: took(way.command, way.out, names, MEMORY_EVERY_S) for way in ways}
    steps = in_child(stepwise, root=str(checkout.root), repeats=repeats)
    if steps.failure:
        raise RuntimeError(f"{stepwise.__name__}: {steps.failure}")
    loads.append(os.getloadavg()[0])

    megabytes = sum(os.path.getsize(path) for path in logs) / 1e6
    report = Report("mlperf", f"score {checkout.root.name}, {len(logs):,} logs of {megabytes:,.0f} MB")
    peaks = memory[TWO].worker_peaks
    one, two, plain = (way.out.read_bytes() for way in ways[:3])
    if official:
        _compare(report, official, one)
        report.targets += _speed_targets(times, official)
    else:
        report.notes.append(f"NOT COMPARED with the official summarizer: {why_not}.")
    report.targets += [Target("peak MB of the larger worker", max(peaks), WORKER_MB)] if peaks else []
    report.tables += [
        _times(times, official),
        _ratios("medians", {name: _wall(some) for name, some in times.items()}, official),
        _ratios("fastest runs", {name: min(one.wall for one in some) for name, some in times.items()}, official),
        _memory(memory, official),
        _where(steps.steps, min(times[ONE], key=lambda one: one.cpu)),
    ]
    report.notes += [
        f"One process and two workers wrote {'the same bytes' if one == two else 'DIFFERENT BYTES'}.",
        "{lines:,} marked lines in the logs, {broken:,} of them no JSON.".format(**json.loads(plain)),
        f"Load of the machine over the last minute, at four points of the run: {', '.join(map(shown, loads))}.",
    ]
    return report


def _interleaved(ways: Sequence[Way], names: Path, repeats: int) -> Times:
    times: Times = {way.name: [] for way in ways}
    for _ in range(repeats):
        for way in ways:
            times[way.name].append(took(way.command, way.out, names))
    return times


def _official(source: Path, folder: Path, options: Options) -> tuple[Official | None, str]:
    """What the summarizer tells, or why it does not run here."""
    if options.quick and options.official is None:
        return None, "--quick installs nothing; --official PYTHON names an interpreter that has mlperf-logging"
    try:
        interpreter = options.official or with_mlperf_logging(folder / "environment")
        return summarised(interpreter, copied(source, folder / "theirs", options.quick), folder), ""
    except Skipped as error:
        return None, str(error)


def _compare(report: Report, official: Official, told: bytes) -> None:
    pairs = [("minutes", official.minutes), ("scaling_factor", official.factors)]
    found = [compared(name, theirs, our_figures(told, name)) for name, theirs in pairs]
    differences = [difference for one in found for difference in one.differences]
    columns = ("figure", "entries of either", "equal", "of these without one", "largest difference")
    rows = [(one.figure, one.entries, one.equal, one.empty, one.largest) for one in found]
    report.tables.append(Table(f"Entries, equal within {TOLERANCE:g}", columns, rows))
    if differences:
        named = [(one.path, one.figure, one.official, one.ours) for one in differences]
        report.tables.append(Table("Every difference", ("entry", "figure", "mlperf-logging", "ipu-results"), named))
    else:
        report.notes.append("No figure of any entry differs, and neither side lacks an entry.")
    scaled = [path for path, factor in official.factors.items() if factor != 1]
    report.notes.append(f"Scaled: {', '.join(scaled) or 'no entry'}.")
    report.notes.append(f"The summarizer changed {official.rewritten} scaling.json in its copy of the input.")
    report.targets.append(Target("figures that differ, or that one side lacks", len(differences), 0))


def _speed_targets(times: Times, official: Official) -> list[Target]:
    taken = official.process
    return [
        Target("mlperf-logging CPU s / ipu-results s, one process", taken.cpu / _wall(times[ONE]), ONE_PROCESS, True),
        Target("mlperf-logging s / ipu-results s, two workers", taken.wall / _wall(times[TWO]), TWO_PROCESSES, True),
    ]


def _times(times: Times, official: Official | None) -> Table:
    rows: Rows = [
        (
            *(name, len(some), _wall(some), min(one.wall for one in some), max(one.wall for one in some)),
            *(median(one.user for one in some), median(one.system for one in some)),
        )
        for name, some in {**_theirs(official), **times}.items()
    ]
    columns = ("process", "runs", "median s", "min s", "max s", "user s", "system s")
    return Table("Time from start to end of the process and its workers", columns, rows)


def _ratios(kind: str, seconds: dict[str, float], official: Official | None) -> Table:
    if official:
        process = official.process
        seconds = {"mlperf-logging, CPU": process.cpu, "mlperf-logging, wall": process.wall, **seconds}
    rows: Rows = [(name, *(taken / seconds[way] for way in (ONE, TWO, CAT))) for name, taken in seconds.items()]
    return Table(f"Time as a multiple, {kind}", ("of", "to one process", "to two workers", "to cat"), rows)


def _memory(memory: Mapping[str, Took], official: Official | None) -> Table:
    theirs = {name: some[0] for name, some in _theirs(official).items()}
    rows = [
        (name, one.main_peak, ", ".join(map(shown, one.worker_peaks))) for name, one in {**theirs, **memory}.items()
    ]
    return Table("Peak resident memory", ("process", "MB", "MB of each worker"), rows)


def _where(steps: Sequence[Step], whole: Took) -> Table:
    """Where the processor time of one process goes; the rest is what no step holds."""
    sums = [0.0, *(step["cpu"] for step in steps), whole.cpu]
    names = [*(step["step"] for step in steps), REST]
    systems = [*(step["system"] for step in steps), whole.system]
    rows = [
        (name, up_to - before, (up_to - before) / whole.cpu, up_to, system)
        for name, (before, up_to), system in zip(names, pairwise(sums), systems, strict=True)
    ]
    columns = ("step", "CPU s of the step", "share", "CPU s up to here", "of these in the system")
    return Table("Where the processor time of one process goes", columns, rows)


def _theirs(official: Official | None) -> Times:
    return {f"mlperf-logging {official.version}": [official.process]} if official else {}


def _wall(some: Sequence[Took]) -> float:
    return median(one.wall for one in some)
