"""Score one entry by the official rule from its logs. Pure arithmetic, nothing is read.

The rule is that of mlperf-logging's result summarizer; docs/explanation/mlperf.md has it in words.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, stdev

from ipu_results.mlperf.entries import Entry, Finding
from ipu_results.mlperf.log import Evaluation, Log
from ipu_results.mlperf.rules import Benchmark, Rules
from ipu_results.mlperf.system import System

SUCCESS = "success"
MAX_FACTOR = 1_000


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One log file of an entry. `reason` is why it does not count, None where it counts."""

    file: str
    log: Log
    reason: str | None = None
    epochs: float | None = None
    samples: float | None = None

    @property
    def counted(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class ScoredEntry:
    """An entry with its score: minutes unrounded, None without a score, and `reason` is then why."""

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
    epochs_to_converge: float | None
    samples_to_converge: float | None
    findings: tuple[Finding, ...]

    @property
    def n_success(self) -> int:
        return sum(run.counted for run in self.runs)


def score_entry(
    entry: Entry, logs: Mapping[str, Log], system: System, scaling: bytes | None, rules: Rules
) -> ScoredEntry:
    """Judge each run and compute the entry's score. `logs` are by file name, `scaling` the bytes of a scaling.json."""
    benchmark = rules.benchmark(entry.folder)
    limit = rules.init_limit(system.division)
    runs = tuple(_judge_run(file, log, benchmark, limit) for file, log in logs.items())
    counted = [run for run in runs if run.counted]
    minutes = [run.log.minutes for run in counted if run.log.minutes is not None]
    factor, scaling_finding = read_scaling_factor(scaling)
    missing = len(runs) - len(counted)
    mean = olympic_mean(minutes, missing, benchmark.drop)
    sizes = sorted({size for run in runs if (size := run.log.global_batch_size) is not None})
    return ScoredEntry(
        entry=entry,
        benchmark=benchmark.name,
        system=system,
        runs=runs,
        scaling_factor=factor,
        scaling_sha256=None if scaling is None else hashlib.sha256(scaling).hexdigest(),
        minutes=None if mean is None or factor is None else mean * factor,
        reason=_explain_no_score(runs, missing, mean, factor, benchmark),
        run_minutes_min=min(minutes, default=None),
        run_minutes_max=max(minutes, default=None),
        run_minutes_cv=_variation_of(minutes),
        global_batch_size=sizes[0] if len(sizes) == 1 else None,
        epochs_to_converge=_average_runs([run.epochs for run in counted], missing, benchmark.drop),
        samples_to_converge=_average_runs([run.samples for run in counted], missing, benchmark.drop),
        findings=tuple(_list_findings(entry, runs, system, scaling_finding, benchmark, sizes)),
    )


def olympic_mean(values: Sequence[float], missing: int, drop: int) -> float | None:
    """Return the mean without the `drop` smallest and largest values; each of `missing` counts as one of the largest.

    None where more are missing than are dropped, or nothing is left.
    """
    if missing > drop:
        return None
    kept = sorted(values)[drop : len(values) - (drop - missing)]
    return fsum(kept) / len(kept) if kept else None


def _variation_of(values: Sequence[float]) -> float | None:
    """Return the coefficient of variation: standard deviation (n - 1) over mean."""
    return stdev(values) / fmean(values) if len(values) > 1 and fmean(values) else None


def read_scaling_factor(data: bytes | None) -> tuple[float | None, str | None]:
    """Return the factor of a scaling.json, 1 without such a file, None and a finding where it cannot be read."""
    if data is None:
        return 1.0, None
    try:
        factor = json.loads(data)["scaling_factor"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, "has no scaling_factor; the entry has no score"
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < MAX_FACTOR:
        return None, f"scaling_factor is not a number from 0 to {MAX_FACTOR:,}: {factor!r}; the entry has no score"
    return float(factor), None


def _judge_run(file: str, log: Log, benchmark: Benchmark, limit: float) -> TrainingRun:
    epochs, samples = _measure_convergence(log, benchmark)
    return TrainingRun(file, log, explain_not_counted(log, limit), epochs, samples)


def explain_not_counted(log: Log, limit: float) -> str | None:
    """Return why a run does not count, None where it does. `limit` is that of the initialisation, in minutes."""
    if log.problem is not None:
        return log.problem
    if log.status is None and log.minutes is None:
        return "has no run_start and run_stop after it"
    if log.status != SUCCESS:
        return f"its status is {log.status}" if log.status is not None else "its run_stop has no status"
    if log.minutes is None:
        return "has no run_start before its run_stop"
    if log.minutes < 0:
        return "its run_stop is before its run_start"
    if log.init_minutes is None:
        return "has no init_start and init_stop"
    if log.init_minutes >= limit:
        return f"its initialisation took {log.init_minutes:.1f} minutes, the limit is {limit:g}"
    return None


def _measure_convergence(log: Log, benchmark: Benchmark) -> tuple[float | None, float | None]:
    """Return epochs and samples at convergence as logged; samples of epochs only where an epoch's size is known."""
    converged = _find_convergence(log.evaluations, benchmark)
    if converged is None or converged.unit == "steps":
        return None, None
    if converged.unit == "samples":
        return None, converged.count
    if benchmark.epochs_are_samples:
        return None, _count_samples(converged.count, log)
    per_epoch = log.train_samples if benchmark.epochs_of_train_samples else None
    return converged.count, None if per_epoch is None else converged.count * per_epoch


def _count_samples(count: float, log: Log) -> float | None:
    """Return the samples of a log that calls them epochs.

    Some logs count evaluations there, which is fewer than one batch, and have the samples in their last lines.
    """
    batch = max(log.global_batch_size or 1, 1)
    return next((float(value) for value in (count, log.train_samples) if value is not None and value > batch), None)


def _find_convergence(evaluations: Sequence[Evaluation], benchmark: Benchmark) -> Evaluation | None:
    """Return the last evaluation; for a benchmark with bounds, the first at which every metric is within its own."""
    if not benchmark.converged:
        return evaluations[-1] if evaluations else None
    passed = {(each.count, each.metric) for each in evaluations if _is_within_bound(each, benchmark)}
    metrics = Counter(count for count, _ in passed)
    converged = [count for count, passing in metrics.items() if passing == len(benchmark.converged)]
    return next((each for each in evaluations if converged and each.count == min(converged)), None)


def _is_within_bound(evaluation: Evaluation, benchmark: Benchmark) -> bool:
    bound, value = benchmark.converged.get(evaluation.metric or ""), evaluation.value
    return bound is not None and isinstance(value, (int, float)) and bound.low <= value <= bound.high


def _average_runs(values: Sequence[float | None], missing: int, drop: int) -> float | None:
    """Average as the minutes are; None where a run has no value."""
    known = [value for value in values if value is not None]
    return olympic_mean(known, missing, drop) if len(known) == len(values) else None


def _explain_no_score(
    runs: Sequence[TrainingRun], missing: int, mean: float | None, factor: float | None, benchmark: Benchmark
) -> str | None:
    if not runs:
        return "its logs are missing"
    if missing > benchmark.drop:
        return f"{missing} of {len(runs)} runs do not count, at most {benchmark.drop} may"
    if mean is None:
        return f"{len(runs)} runs are too few for {benchmark.drop} to be left out at each end"
    return None if factor is not None else "its scaling factor cannot be read"


def _list_findings(
    entry: Entry,
    runs: Sequence[TrainingRun],
    system: System,
    scaling: str | None,
    benchmark: Benchmark,
    sizes: Sequence[int],
) -> Iterable[Finding]:
    yield from (Finding(entry.system_path, message) for message in system.findings)
    if scaling:
        yield Finding(entry.scaling_path, scaling)
    if not runs:
        yield Finding(entry.full_path, "has no logs")
    elif benchmark.runs is not None and len(runs) != benchmark.runs:
        yield Finding(entry.full_path, f"has {len(runs)} logs, the rules require {benchmark.runs}")
    elif benchmark.runs is None:
        yield Finding(entry.full_path, "is not a known benchmark; scored by the common rule")
    for run in runs:
        path = f"{entry.full_path}/{run.file}"
        yield from (Finding(path, message) for message in run.log.findings)
        if run.reason:
            yield Finding(path, f"does not count: {run.reason}")
    if len(sizes) > 1:
        yield Finding(entry.full_path, f"its runs differ in global batch size: {', '.join(map(str, sizes))}")
