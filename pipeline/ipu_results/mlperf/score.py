"""Score one entry by the official rule from its logs. Pure arithmetic, nothing is read.

The rule is that of mlperf-logging's result summarizer; docs/explanation/mlperf.md has it in words.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, isfinite
from statistics import fmean, stdev

from ipu_results.mlperf.entries import Entry, FileFinding, System
from ipu_results.mlperf.log import Log, is_number
from ipu_results.mlperf.rules import (
    CLOSED,
    MISSED,
    NOT_CHECKED,
    REACHED,
    Benchmark,
    Convergence,
    Quality,
    QualityTarget,
    Rules,
    explain_factor,
    explain_likeness,
    measure_run,
    olympic_mean,
)
from ipu_results.mlperf.speed import Speed, measure_speed

SUCCESS = "success"
MAX_FACTOR = 1_000  # of a scaling.json: the real ones are below 2
MISSING_LOGS = "logs missing in our copy"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One log file of an entry.

    `reason` is why it does not count, None where it counts. `findings` are what is odd about it,
    whether it counts or not.
    """

    file: str
    log: Log
    reason: str | None
    convergence: Convergence
    quality: Quality
    speed: Speed
    findings: tuple[str, ...]

    @property
    def counted(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class ScoredEntry:
    """An entry with its score: minutes unrounded, None without a score, and `reason` is then why.

    `convergence` and `quality` are of the counted runs: the means, as those of the minutes, and the
    worst values.
    """

    entry: Entry
    benchmark: str
    system: System
    runs: tuple[TrainingRun, ...]
    scaling_factor: float | None
    scaling_sha256: str | None
    minutes: float | None
    reason: str | None
    run_minutes_min: float | None
    run_minutes_max: float | None
    run_minutes_cv: float | None
    global_batch_size: int | None
    convergence: Convergence
    quality: Quality
    logs_expected: int | None
    energy_j: float | None
    findings: tuple[FileFinding, ...]

    @property
    def n_success(self) -> int:
        return sum(run.counted for run in self.runs)


def score_entry(
    entry: Entry,
    logs: Mapping[str, Log],
    system: System,
    scaling: bytes | None,
    rules: Rules,
) -> ScoredEntry:
    """Judge each run and compute the entry's score.

    `logs` are by their file names, `scaling` is the content of a scaling.json.
    """
    benchmark = _find_benchmark(entry.folder, logs.values(), rules)
    # v0.5 and v0.6 have rules of their own, which the syntax of a log tells better than a folder
    syntaxes = [log.syntax for log in logs.values() if log.syntax]
    round_ = rules.ruleset
    if not round_:
        round_ = rules.find_round([*syntaxes, entry.round or ""])
    runs = []
    for file, log in logs.items():
        runs.append(_judge_run(file, log, round_, benchmark, system.division, rules))
    counted = [run for run in runs if run.counted]
    uncounted = len(runs) - len(counted)
    minutes = [run.log.minutes for run in counted if run.log.minutes is not None]
    mean = olympic_mean(minutes, uncounted, benchmark.drop)
    factor, scaling_finding = read_scaling_factor(scaling)
    reason = _explain_no_score(entry, runs, uncounted, mean, factor, benchmark)
    score = None
    if reason is None and mean is not None and factor is not None:
        score = mean * factor
    logged_sizes = {run.log.global_batch_size for run in runs}
    sizes = sorted(size for size in logged_sizes if size is not None)
    size = sizes[0] if len(sizes) == 1 else None
    findings = _list_findings(entry, runs, system, scaling_finding, benchmark, sizes, rules)
    return ScoredEntry(
        entry=entry,
        benchmark=benchmark.name,
        system=system,
        runs=tuple(runs),
        scaling_factor=factor,
        scaling_sha256=None if scaling is None else hashlib.sha256(scaling).hexdigest(),
        minutes=score,
        reason=reason,
        run_minutes_min=min(minutes, default=None),
        run_minutes_max=max(minutes, default=None),
        run_minutes_cv=_measure_variation(minutes),
        global_batch_size=size,
        convergence=_average_convergence(counted, uncounted, benchmark.drop),
        quality=_find_worst_quality(counted, benchmark.targets_in(round_, size)),
        logs_expected=benchmark.runs,
        energy_j=_average_energy(counted, uncounted, factor, benchmark.drop),
        findings=tuple(findings),
    )


def _measure_variation(minutes: Sequence[float]) -> float | None:
    """Return the coefficient of variation."""
    if len(minutes) < 2:
        return None
    mean = fmean(minutes)
    return stdev(minutes) / mean if mean else None


def _find_benchmark(folder: str, logs: Iterable[Log], rules: Rules) -> Benchmark:
    """Return the benchmark of a folder; where its name is none, the one that all its logs name."""
    names = {log.benchmark or "" for log in logs}
    if folder not in rules.benchmarks and len(names) == 1:
        named = rules.benchmarks.get(names.pop())
        if named:
            return named
    return rules.benchmark(folder)


def select_used(runs: Iterable[TrainingRun]) -> list[TrainingRun]:
    """Return the counted runs in order of their files, each log once."""
    last = {}
    for run in runs:
        if run.counted:
            # a log that was not read to its end has no hash, and may be any
            last[run.log.sha256 or run.file] = run
    return sorted(last.values(), key=lambda run: run.file)


def _find_worst_quality(
    counted: Sequence[TrainingRun], targets: tuple[QualityTarget, ...]
) -> Quality:
    """Return the worst value of each target over the counted runs, and the worst verdict."""
    checks = {run.quality.check for run in counted}
    # a run that missed outweighs one that was not checked, and this one those that reached
    check = NOT_CHECKED
    if MISSED in checks:
        check = MISSED
    elif checks == {REACHED}:
        check = REACHED
    all_values = [run.quality.values for run in counted]
    worst: list[float | None] = []
    for index, target in enumerate(targets):
        # a run of another batch size may have fewer targets
        reached = [values[index] for values in all_values if index < len(values)]
        known = [value for value in reached if value is not None]
        if not known or len(known) < len(counted):
            worst.append(None)
        elif target.is_higher_better:
            worst.append(min(known))
        else:
            worst.append(max(known))
    return Quality(targets, check, tuple(worst))


def _average_energy(
    counted: Sequence[TrainingRun], uncounted: int, factor: float | None, drop: int
) -> float | None:
    """Return the energy of an entry: the mean over the runs that its minutes are the mean of,
    scaled as these.
    """
    if uncounted > drop or not factor:
        return None
    ordered = sorted(counted, key=lambda run: run.log.minutes or 0)
    # runs that do not count stand in for slowest ones, so as many fewer of these are left out
    slowest = drop - uncounted
    kept = ordered[drop : len(ordered) - slowest]
    energies = [run.log.energy_j for run in kept]
    known = [energy for energy in energies if energy is not None]
    if not kept or len(known) < len(kept):
        return None
    return fsum(known) / len(kept) * factor


def find_shared_logs(entries: Iterable[ScoredEntry]) -> Iterable[FileFinding]:
    """Yield a finding for each entry with a log that was handed in twice."""
    places: dict[str, list[tuple[Entry, str]]] = defaultdict(list)
    for scored in entries:
        for run in scored.runs:
            if run.log.sha256 is not None:
                places[run.log.sha256].append((scored.entry, run.file))
    repeated: dict[Entry, list[str]] = defaultdict(list)
    shared: Counter[tuple[Entry, Entry]] = Counter()
    for copies in places.values():
        first, file = copies[0]
        for entry, name in copies[1:]:
            if entry == first:
                repeated[entry].append(f"{name} has the bytes of {file}")
            else:
                shared[entry, first] += 1
    for entry, names in repeated.items():
        yield FileFinding(entry.full_path, f"has {len(names)} logs twice: {', '.join(names)}")
    for (entry, first), count in shared.items():
        message = f"{count} of its logs are also those of {first.full_path}"
        yield FileFinding(entry.full_path, message)


def read_scaling_factor(data: bytes | None) -> tuple[float | None, str | None]:
    """Return the factor of a scaling.json, 1 without such a file, None and a finding where it
    cannot be read.
    """
    if data is None:
        return 1.0, None
    try:
        factor = json.loads(data)["scaling_factor"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, "has no scaling_factor; the entry has no score"
    if not is_number(factor) or not 0 < factor < MAX_FACTOR:
        message = f"scaling_factor is not a number from 0 to {MAX_FACTOR:,}: {factor!r}"
        return None, f"{message}; the entry has no score"
    return float(factor), explain_factor(factor)


def _judge_run(
    file: str,
    log: Log,
    round_: str | None,
    benchmark: Benchmark,
    division: str | None,
    rules: Rules,
) -> TrainingRun:
    convergence, quality = measure_run(log, benchmark, round_)
    reason = explain_not_counted(log, rules.init_limit(division, round_))
    is_closed = division == CLOSED
    if is_closed and reason is None and quality.check == MISSED:
        reason = _explain_missed(quality)
    findings = list(log.findings)
    if log.benchmark is not None and rules.benchmark(log.benchmark).name != benchmark.name:
        findings.append(f"is a log of {log.benchmark} by its submission_benchmark")
    is_unchecked = quality.check == NOT_CHECKED and quality.targets
    if is_closed and reason is None and is_unchecked:
        lacking = "accuracy" if log.evaluations else "evaluation"
        findings.append(f"holds no readable {lacking}; its quality is not checked")
    is_named = log.division is not None and division is not None
    if is_named and log.division != division:
        findings.append(f"is a log of the {log.division} division by its submission_division")
    return TrainingRun(
        file,
        # The evaluations have served: a whole record of them does not fit in little memory.
        log=replace(log, evaluations=()),
        reason=reason,
        convergence=convergence,
        quality=quality,
        speed=measure_speed(log, convergence, benchmark.first_epoch),
        findings=tuple(findings),
    )


def explain_not_counted(log: Log, limit: float) -> str | None:
    """Return why a run does not count, None where it does.

    `limit` is that of the initialisation, in minutes; infinity where a round logs none.
    """
    if log.problem is not None:
        return log.problem
    if log.status not in (None, SUCCESS):
        return f"its status is {log.status}"
    if log.minutes is None:
        if log.stop_ms is not None:
            return "has no run_start before its run_stop"
        if log.start_ms is not None:
            return "has run_start and no run_stop"
        return "has no run_start and no run_stop"
    if log.status is None:
        return "its run_stop has no status"
    if log.minutes < 0:
        return "its run_stop is before its run_start"
    if log.minutes == 0:
        return "its run_stop is at the time of its run_start"
    if log.init_minutes is None and isfinite(limit):
        return "has no init_start and init_stop"
    if log.init_minutes is not None and log.init_minutes >= limit:
        return f"its initialisation took {log.init_minutes:.1f} minutes, the limit is {limit:g}"
    return None


def _explain_missed(quality: Quality) -> str:
    """Return how a run missed the quality target."""
    shown = []
    for target, value in zip(quality.targets, quality.values, strict=True):
        reached = "none" if value is None else f"{value:g}"
        shown.append(f"{target.metric} {reached}, the target is {target.target:g}")
    return f"did not reach the quality target: {'; '.join(shown)}"


def _average_convergence(counted: Sequence[TrainingRun], uncounted: int, drop: int) -> Convergence:
    """Average what the runs needed as their minutes are; None where one of them has no value."""
    progress = [run.convergence for run in counted]
    units = {each.unit for each in progress}
    unit = units.pop() if len(units) == 1 else None

    def average(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return olympic_mean(known, uncounted, drop)

    return Convergence(
        unit=unit,
        epochs=average([each.epochs for each in progress]),
        samples=average([each.samples for each in progress]),
        tokens=average([each.tokens for each in progress]),
    )


def _explain_no_score(
    entry: Entry,
    runs: Sequence[TrainingRun],
    uncounted: int,
    mean: float | None,
    factor: float | None,
    benchmark: Benchmark,
) -> str | None:
    if entry.missing:
        return MISSING_LOGS
    if not runs:
        return "its logs are missing"
    if uncounted > benchmark.drop:
        return f"{uncounted} of {len(runs)} runs do not count, at most {benchmark.drop} may"
    if mean is None:
        return f"{len(runs)} runs are too few for {benchmark.drop} to be left out at each end"
    if factor is None:
        return "its scaling factor cannot be read"
    return None


def _list_run_findings(entry: Entry, runs: Sequence[TrainingRun]) -> Iterable[FileFinding]:
    for run in runs:
        path = f"{entry.full_path}/{run.file}"
        for message in run.findings:
            yield FileFinding(path, message)
        if run.reason:
            yield FileFinding(path, f"does not count: {run.reason}")
    for run in runs:
        problem = run.log.power.problem
        if problem:
            path = f"{entry.full_path}/{run.file}"
            yield FileFinding(path, f"its energy is unknown: {problem}")


def _list_findings(
    entry: Entry,
    runs: Sequence[TrainingRun],
    system: System,
    scaling: str | None,
    benchmark: Benchmark,
    sizes: Sequence[int],
    rules: Rules,
) -> Iterable[FileFinding]:
    note = partial(FileFinding, entry.full_path)
    for message in system.findings:
        yield FileFinding(entry.system_path, message)
    if scaling:
        yield FileFinding(entry.scaling_path, scaling)
    if entry.missing:
        yield note(f"{MISSING_LOGS}: {len(entry.missing)}; it has no score")
    elif not runs:
        yield note("has no logs")
    elif benchmark.runs is None:
        yield note("is not a known benchmark; scored by the common rule")
    elif len(runs) != benchmark.runs:
        yield note(f"has {len(runs)} logs, the rules require {benchmark.runs}")
    yield from _list_run_findings(entry, runs)
    if len(sizes) > 1:
        yield note(f"its runs differ in global batch size: {', '.join(map(str, sizes))}")
    if rules.benchmark(entry.folder) != benchmark:
        yield note(f"is not named like a benchmark; its logs name {benchmark.name}")
    minutes = [run.log.minutes for run in select_used(runs)]
    for message in explain_likeness([run.log.seed for run in runs], minutes):
        yield note(message)
    if runs and not any(run.log.global_batch_size for run in runs):
        yield note("none of its logs says its global batch size")
