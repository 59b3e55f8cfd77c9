"""The score of an entry by the official rule, from what its logs say. Pure arithmetic, nothing is read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean, stdev

from ipu_results.mlperf.layout import Entry, Finding
from ipu_results.mlperf.log import Evaluation, Log
from ipu_results.mlperf.rules import Benchmark, Rules
from ipu_results.mlperf.systems import System

SUCCESS = "success"
MAX_FACTOR = 1_000


@dataclass(frozen=True, slots=True)
class Run:
    """One log file of an entry. `reason` tells why it does not count, None where it does."""

    file: str
    log: Log
    sha256: str | None = None
    reason: str | None = None
    epochs: float | None = None
    samples: float | None = None

    @property
    def counted(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry with its score: minutes unrounded, None where there is none, and `reason` then tells why."""

    entry: Entry
    benchmark: str
    system: System
    runs: tuple[Run, ...]
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


def score(entry: Entry, read: Iterable[Run], system: System, scaling: bytes | None, rules: Rules) -> Scored:
    """Judge each run and fold them into the entry's score."""
    benchmark = rules.benchmark(entry.folder)
    limit = rules.init_limit(system.division)
    runs = tuple(_judged(run, benchmark, limit) for run in read)
    counted = [run for run in runs if run.counted]
    minutes = [run.log.minutes for run in counted if run.log.minutes is not None]
    factor, scaling_finding = scaling_factor(scaling)
    missing = len(runs) - len(counted)
    mean = olympic_mean(minutes, missing, benchmark.drop)
    sizes = sorted({size for run in runs if (size := run.log.global_batch_size) is not None})
    return Scored(
        entry=entry,
        benchmark=benchmark.name,
        system=system,
        runs=runs,
        scaling_factor=factor,
        scaling_sha256=None if scaling is None else hashlib.sha256(scaling).hexdigest(),
        minutes=None if mean is None or factor is None else mean * factor,
        reason=_no_score(runs, missing, mean, factor, benchmark),
        run_minutes_min=min(minutes, default=None),
        run_minutes_max=max(minutes, default=None),
        run_minutes_cv=_variation(minutes),
        global_batch_size=sizes[0] if len(sizes) == 1 else None,
        epochs_to_converge=_over_runs([run.epochs for run in counted], missing, benchmark.drop),
        samples_to_converge=_over_runs([run.samples for run in counted], missing, benchmark.drop),
        findings=tuple(_findings(entry, runs, system, scaling_finding, benchmark, sizes)),
    )


def olympic_mean(values: Sequence[float], missing: int, drop: int) -> float | None:
    """Mean without the `drop` smallest and largest; `missing` values stand in for largest ones.

    None where more are missing than are dropped, or nothing is left.
    """
    if missing > drop:
        return None
    kept = sorted(values)[drop : len(values) - (drop - missing)]
    return fsum(kept) / len(kept) if kept else None


def _variation(values: Sequence[float]) -> float | None:
    """Standard deviation over mean."""
    return stdev(values) / fmean(values) if len(values) > 1 and fmean(values) else None


def scaling_factor(data: bytes | None) -> tuple[float | None, str | None]:
    """The factor of a `scaling.json`, 1 where there is none, None and a finding where it cannot be read."""
    if data is None:
        return 1.0, None
    try:
        factor = json.loads(data)["scaling_factor"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, "holds no scaling_factor: the entry has no score"
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < MAX_FACTOR:
        return None, f"scaling_factor is no factor: {factor!r}: the entry has no score"
    return float(factor), None


def _judged(run: Run, benchmark: Benchmark, limit: float) -> Run:
    epochs, samples = _convergence(run.log, benchmark)
    return Run(run.file, run.log, run.sha256, why_not_counted(run.log, limit), epochs, samples)


def why_not_counted(log: Log, limit: float) -> str | None:
    """Why a run stands in for a slowest one; None where it counts."""
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


def _convergence(log: Log, benchmark: Benchmark) -> tuple[float | None, float | None]:
    """Epochs and samples at convergence, each as logged; samples of epochs only where an epoch's size is known."""
    reached = _reached(log.evaluations, benchmark)
    if reached is None:
        return None, None
    if reached.unit == "samples":
        return None, reached.count
    if reached.unit == "epochs" and benchmark.epochs_are_samples:
        return None, _samples(reached.count, log)
    if reached.unit != "epochs":
        return None, None
    per_epoch = log.train_samples if benchmark.epochs_of_train_samples else None
    return reached.count, None if per_epoch is None else reached.count * per_epoch


def _samples(count: float, log: Log) -> float | None:
    """Samples where the log calls them epochs; some logs count evaluations there and tell the samples at their end."""
    batch = log.global_batch_size or 1
    told = next((value for value in (count, log.train_samples) if value is not None and value > max(batch, 1)), None)
    return None if told is None else float(told)


def _reached(evaluations: Sequence[Evaluation], benchmark: Benchmark) -> Evaluation | None:
    """The last evaluation; of a benchmark with bounds, the first at which every metric is within its own."""
    if not benchmark.converged:
        return evaluations[-1] if evaluations else None
    within = Counter(
        count for count, _ in {(one.count, one.metric) for one in evaluations if _is_within(one, benchmark)}
    )
    passed = [count for count, metrics in within.items() if metrics == len(benchmark.converged)]
    return next((one for one in evaluations if passed and one.count == min(passed)), None)


def _is_within(one: Evaluation, benchmark: Benchmark) -> bool:
    bound = benchmark.converged.get(one.metric or "")
    return bound is not None and isinstance(one.value, (int, float)) and bound.low <= one.value <= bound.high


def _over_runs(values: Sequence[float | None], missing: int, drop: int) -> float | None:
    """Averaged as the minutes are; None where a run does not say."""
    known = [value for value in values if value is not None]
    return olympic_mean(known, missing, drop) if len(known) == len(values) else None


def _no_score(
    runs: Sequence[Run], missing: int, mean: float | None, factor: float | None, benchmark: Benchmark
) -> str | None:
    if not runs:
        return "its logs are missing"
    if missing > benchmark.drop:
        return f"{missing} of {len(runs)} runs do not count, at most {benchmark.drop} may"
    if mean is None:
        return f"{len(runs)} runs are too few for {benchmark.drop} to be left out at each end"
    return None if factor is not None else "its scaling factor cannot be read"


def _findings(
    entry: Entry, runs: Sequence[Run], system: System, scaling: str | None, benchmark: Benchmark, sizes: Sequence[int]
) -> Iterable[Finding]:
    yield from (Finding(entry.system_path, told) for told in system.findings)
    if scaling:
        yield Finding(entry.scaling_path, scaling)
    if not runs:
        yield Finding(entry.full_path, "is a hole: its logs are missing")
    elif benchmark.runs is not None and len(runs) != benchmark.runs:
        yield Finding(entry.full_path, f"holds {len(runs)} logs, the rules ask for {benchmark.runs}")
    elif benchmark.runs is None:
        yield Finding(entry.full_path, "is no benchmark of the known rounds; scored by the common rule")
    for run in runs:
        path = f"{entry.full_path}/{run.file}"
        yield from (Finding(path, told) for told in run.log.findings)
        if run.reason:
            yield Finding(path, f"does not count: {run.reason}")
    if len(sizes) > 1:
        yield Finding(entry.full_path, f"its runs differ in global batch size: {', '.join(map(str, sizes))}")
