"""The rules of MLPerf Training, from `schema/vocabulary/mlperf.toml`, and what one run reached by
them.

Logs count progress in different units under one name. By what each benchmark counts, it is measured
how far a run trained until it converged, in samples, tokens and epochs, and what quality it
reached.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from itertools import chain
from math import fsum
from typing import Any

import msgspec

from ipu_results.kit.files import load_schema_file
from ipu_results.mlperf.log import Evaluation, Log, is_number

DEFAULT_DROP = 1  # runs left out at each end, where the rules state no other number
CLOSED = "closed"
BETWEEN_FINDINGS = " | "  # the messages have semicolons
REPOSITORY = "https://github.com/mlcommons/training_results_v{round}"
NOT_VERIFIED = "computed from the logs by ipu-results, result not verified by MLCommons Association"
# whether a run reached its quality targets
REACHED = "reached"
MISSED = "missed"
NOT_CHECKED = "not checked"
# a logged size of the training set that is further off is that of a part, such as one GPU's
SIZE_TOLERANCE = 0.1
FACTOR_TOLERANCE = 1e-6  # a submitted factor has all digits or is rounded by hand
NO_SEED = {None, "null", "None", "none"}
MIN_BERT_SAMPLES = 100_000  # no BERT run ends before; smaller counts are steps or evaluations

# two numbers, perhaps followed by a third, and not the beginning of a longer version
VERSION = r"([0-9]{1,3}\.[0-9]{1,3})(?:\.[0-9]{1,3})?(?![\d.]*\d)"
ROUND = re.compile(rf"(?<![A-Za-z\d.])v{VERSION}", re.I)
BARE_ROUND = re.compile(rf"(?<![\d.]){VERSION}")


@dataclass(frozen=True, slots=True)
class QualityTarget:
    """The quality at which training may stop in the closed division, from a round and a batch size
    on.

    A value is reached between `target` and `bound`, the latter excluded; without a bound, higher is
    better. `key` is the name of the value among several.
    """

    metric: str
    target: float
    bound: float = float("inf")
    key: str | None = None
    first_round: str = "0.7"
    first_batch: int = 0

    @property
    def is_higher_better(self) -> bool:
        return self.bound > self.target

    def is_reached(self, value: float) -> bool:
        if self.is_higher_better:
            return self.target <= value < self.bound
        return self.bound < value <= self.target


@dataclass(frozen=True, slots=True)
class EpochSize:
    """The samples of one epoch, from a round on; None is from the first one on."""

    samples: float
    first_round: str | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: `runs` is the number of logs that the rules require, None where unknown.

    `drop` fastest and as many slowest runs are excluded from the mean. `counts` is what its logs
    call epochs: epochs, samples or tokens, the latter in sequences of `sequence_length`. An epoch
    has the samples of the last of `epochs` that has begun, or what the log says where
    `logs_epoch_samples`; the count of the first one starts at `first_epoch`. A count above
    `max_epochs` is one of `above_max_epochs`. `targets` are those of quality, and `spellings` other
    names of the benchmark.
    """

    name: str
    runs: int | None = None
    drop: int = DEFAULT_DROP
    counts: str = "epochs"
    sequence_length: int | None = None
    epochs: tuple[EpochSize, ...] = ()
    logs_epoch_samples: bool = False
    first_epoch: int = 0
    max_epochs: float | None = None
    above_max_epochs: str = "samples"
    targets: tuple[QualityTarget, ...] = ()
    spellings: tuple[str, ...] = ()

    def epoch_samples_in(self, round_: str | None) -> float | None:
        """Return the samples of an epoch in a round, None where unknown."""
        samples = None
        for size in self.epochs:
            if _has_begun(size.first_round, round_):
                samples = size.samples
        return samples

    def targets_in(self, round_: str | None, batch: int | None) -> tuple[QualityTarget, ...]:
        """Return the targets of a round at a batch size, one per metric."""
        valid = {}
        for target in self.targets:
            is_large_enough = (batch or 0) >= target.first_batch
            if is_large_enough and _has_begun(target.first_round, round_):
                # of two of one metric, the later one
                valid[target.metric] = target
        return tuple(valid.values())


@dataclass(frozen=True)
class Rules:
    rounds: Sequence[str]
    normalised_from: str
    init_limit_minutes: Mapping[str, float]
    benchmarks: Mapping[str, Benchmark]
    divisions: Mapping[str, str]
    availabilities: Mapping[str, str]
    other_suites: Mapping[str, set[str]]
    ruleset: str | None = None
    """The round whose rules hold for every entry; None for the entry's own."""

    def benchmark(self, name: str) -> Benchmark:
        """Return the benchmark of a folder; an unknown one is scored by the common rule."""
        return self.benchmarks.get(name) or Benchmark(name)

    def init_limit(self, division: str | None, round_: str | None) -> float:
        """Return the limit in minutes, the closed division's where the division is not known."""
        limits = self.init_limit_minutes
        # v0.5 and v0.6 have one of their own
        of_round = limits.get(round_ or "")
        return of_round or limits[division or CLOSED]

    def find_round(self, names: Iterable[str]) -> str | None:
        """Return the first round that a name has: `cloud_v2.8` has none."""
        last = round_key(self.rounds[-1])
        for name in names:
            version = parse_round(name)
            if version and (version in self.rounds or round_key(version) > last):
                return version
        return None

    def find_other_suite(self, names: Iterable[str]) -> str | None:
        """Return the MLPerf suite that benchmark folders belong to if it is another one than
        Training.
        """
        folders = set(names) - self.shared_names
        if folders & self.benchmarks.keys():
            return None
        for suite, benchmarks in self.other_suites.items():
            if folders & benchmarks:
                return suite
        return None

    def is_normalised(self, round_: str | None, division: str | None) -> bool:
        """Return whether minutes that come from faster convergence than the reference's are
        multiplied.
        """
        if round_ is None or division != CLOSED:
            return False
        return round_key(round_) >= round_key(self.normalised_from)

    @cached_property
    def shared_names(self) -> set[str]:
        """Names of benchmarks that other suites use too."""
        return self.benchmarks.keys() & set().union(*self.other_suites.values())


def parse_round(name: str) -> str | None:
    """Return `2.0` for `training_results_v2.0`, `v2.0.0` or `2.0`; None for no version, or several
    without v.
    """
    versions = set(ROUND.findall(name) or BARE_ROUND.findall(name))
    return versions.pop() if len(versions) == 1 else None


def _has_begun(first: str | None, round_: str | None) -> bool:
    """Return whether what began in a round holds in another one; in an unknown round the newest
    holds.
    """
    return first is None or round_ is None or round_key(first) <= round_key(round_)


@cache
def round_key(round_: str) -> tuple[int, ...]:
    """Return a key that sorts rounds: 2.0 before 2.1 before 10.0."""
    return tuple(int(part) for part in round_.split("."))


@cache
def load_rules(ruleset: str | None = None) -> Rules:
    """Load the rules: of each round for its entries, or of the round `ruleset` for all."""
    data = load_schema_file("vocabulary/mlperf.toml")
    benchmarks = {}
    for name, entry in data["benchmarks"].items():
        benchmark = msgspec.convert({"name": name, **entry}, Benchmark)
        benchmarks[name] = benchmark
        for spelling in benchmark.spellings:
            benchmarks[spelling] = benchmark
    return Rules(
        rounds=data["rounds"],
        normalised_from=data["normalised_from"],
        init_limit_minutes=data["init_limit_minutes"],
        benchmarks=benchmarks,
        divisions=_map_spellings(data["divisions"]),
        availabilities=_map_spellings(data["availabilities"]),
        other_suites={suite: set(names) for suite, names in data["other_suites"].items()},
        ruleset=ruleset,
    )


def _map_spellings(entries: Mapping[str, Iterable[str]]) -> dict[str, str]:
    names = {name: name for name in entries}
    for name, spellings in entries.items():
        names.update(dict.fromkeys(spellings, name))
    return names


@dataclass(frozen=True, slots=True)
class Convergence:
    """What one run needed to converge; `unit` is what its log counts, None without evaluations."""

    unit: str | None = None
    epochs: float | None = None
    samples: float | None = None
    tokens: float | None = None


Values = tuple[float | None, ...]  # of the targets, in their order


@dataclass(frozen=True, slots=True)
class Quality:
    """The values that `targets` are about, at convergence; `check` is the verdict."""

    targets: tuple[QualityTarget, ...] = ()
    check: str = NOT_CHECKED
    values: Values = ()


def measure_run(log: Log, benchmark: Benchmark, round_: str | None) -> tuple[Convergence, Quality]:
    """Return what a run needed to converge, and what quality it had then."""
    targets = benchmark.targets_in(round_, log.global_batch_size)
    points = _list_points(log.evaluations, targets)
    if not points:
        return Convergence(), Quality(targets)
    last = points[-1]
    passed = [point for point in points if _is_reached(targets, point.values)]
    if log.evaluations[-1].metric is not None:
        # Evaluations of stored models go on after the target was reached; the first that reached it
        # counts.
        if not passed:
            return Convergence(), Quality(targets, MISSED, last.values)
        first = passed[0]
        converged = _convert(first, log, benchmark, round_)
        return converged, Quality(targets, REACHED, first.values)
    if all(value is None for value in last.values):
        quality = Quality(targets, NOT_CHECKED, last.values)
    elif passed:
        # The last evaluation may be worse than one before it.
        quality = Quality(targets, REACHED, passed[-1].values)
    else:
        quality = Quality(targets, MISSED, last.values)
    return _convert(last, log, benchmark, round_), quality


@dataclass(frozen=True, slots=True)
class _Point:
    """How far training had come at an evaluation, and the values of the targets then."""

    unit: str
    count: float
    values: Values


def _list_points(
    evaluations: Sequence[Evaluation], targets: Sequence[QualityTarget]
) -> list[_Point]:
    """Return the points of a run; evaluations that name metrics are joined on progress."""
    if not evaluations or evaluations[-1].metric is None:
        return [_make_point(each.unit, each.count, each.value, targets) for each in evaluations]
    joined: dict[tuple[str, float], dict[str | None, Any]] = {}
    for each in evaluations:
        metrics = joined.setdefault((each.unit, each.count), {})
        metrics[each.metric] = each.value
    points = []
    for (unit, count), metrics in joined.items():
        points.append(_make_point(unit, count, metrics, targets))
    return sorted(points, key=lambda point: point.count)


def _make_point(unit: str, count: float, value: Any, targets: Sequence[QualityTarget]) -> _Point:
    """Make a point of the value of an evaluation in a log: a number, or several by name."""
    values = [_pick_number(value, target.key) for target in targets]
    return _Point(unit, count, tuple(values))


def _pick_number(value: Any, key: str | None) -> float | None:
    if key is not None:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if is_number(value) else None


def _is_reached(targets: Sequence[QualityTarget], values: Values) -> bool:
    for target, value in zip(targets, values, strict=True):
        if value is None or not target.is_reached(value):
            return False
    return bool(targets)


def _convert(point: _Point, log: Log, benchmark: Benchmark, round_: str | None) -> Convergence:
    """Convert the count of an evaluation; what cannot be converted stays null."""
    count = point.count
    if point.unit == "samples":
        return Convergence("samples", samples=count)
    if point.unit == "steps":
        return Convergence("steps", samples=_multiply(count, log.global_batch_size))
    if benchmark.counts == "tokens":
        samples = _divide(count, benchmark.sequence_length)
        return Convergence("tokens", tokens=count, samples=samples)
    if benchmark.counts == "samples":
        return _convert_bert(count, log)
    size = benchmark.epoch_samples_in(round_)
    if benchmark.max_epochs is not None and count > benchmark.max_epochs:
        if benchmark.above_max_epochs == "samples":
            return Convergence("samples", samples=count, epochs=_divide(count, size))
        return Convergence(benchmark.above_max_epochs)
    if benchmark.logs_epoch_samples:
        size = _choose_epoch_size(log.train_samples, size)
    samples = _multiply(count - benchmark.first_epoch, size)
    return Convergence("epochs", epochs=count, samples=samples)


def _convert_bert(count: float, log: Log) -> Convergence:
    """Convert a count of BERT: samples, or steps or evaluations with the samples in the last lines
    of the log.
    """
    if count >= MIN_BERT_SAMPLES:
        return Convergence("samples", samples=count)
    batch = log.global_batch_size or 1
    trained = log.train_samples or 0.0
    # What the log calls samples may be the length of the schedule, and not how far this run came.
    planned = None if log.planned_steps is None else log.planned_steps * batch
    is_schedule = planned is not None and log.train_samples == planned
    if count > 1 and is_schedule:
        if count * batch >= MIN_BERT_SAMPLES:
            return Convergence("steps", samples=count * batch)
        return Convergence("evaluations")
    if trained > batch:
        return Convergence("evaluations", samples=trained)
    return Convergence("evaluations")


def _choose_epoch_size(logged: float | None, size: float | None) -> float | None:
    """Return the logged size of the training set, but its known size where the logged one is that
    of a part.
    """
    if logged is None or size is None:
        return logged
    is_whole = abs(logged - size) <= SIZE_TOLERANCE * size
    return logged if is_whole else size


def _multiply(count: float, factor: float | None) -> float | None:
    return None if factor is None else count * factor


def _divide(count: float, divisor: float | None) -> float | None:
    return None if not divisor else count / divisor


def olympic_mean(values: Sequence[float], missing: int, drop: int) -> float | None:
    """Return the mean without the `drop` smallest and largest values; each of `missing` counts as
    one of the largest.

    None where more are missing than are dropped, or nothing is left.
    """
    if missing > drop:
        return None
    slowest = drop - missing  # to leave out; those that are missing are left out already
    kept = sorted(values)[drop : len(values) - slowest]
    return fsum(kept) / len(kept) if kept else None


def explain_factor(factor: float | None) -> str | None:
    """Describe what is odd about a scaling factor."""
    if factor is None or factor >= 1:
        return None
    return f"scaling_factor is {factor:g}: the rules have none below 1"


def summarise_findings(
    factor: float | None,
    expected: float | None,
    runs: Iterable[Iterable[str]],
    seeds: Sequence[str | None],
    minutes: Sequence[float | None],
) -> str | None:
    """Describe what is odd about an entry, each message once: its scaling factor and the expected
    one, the findings and seeds of its runs, and the minutes of those that count.
    """
    messages = [explain_factor(factor)]
    for message, count in Counter(chain.from_iterable(runs)).items():
        messages.append(f"{message} ({count} runs)" if count > 1 else message)
    messages += explain_likeness(seeds, minutes)
    if factor and expected and abs(factor / expected - 1) > FACTOR_TOLERANCE:
        messages.append(
            f"scaling_factor is {factor:.6g}; its logs and the reference give {expected:.6g}"
        )
    return BETWEEN_FINDINGS.join(filter(None, messages)) or None


def explain_likeness(seeds: Sequence[str | None], minutes: Sequence[float | None]) -> Iterator[str]:
    """Describe what runs have in common that should differ: the seed, and the minutes of counted
    ones.
    """
    are_alike = len(seeds) > 1 and len(set(seeds)) == 1
    if are_alike and seeds[0] not in NO_SEED:
        yield f"all {len(seeds)} runs have the seed {seeds[0]}"
    known = [each for each in minutes if each is not None]
    repeated = len(known) - len(set(known))
    if repeated:
        yield f"{repeated} of {len(known)} counted runs took the minutes of another one"


def format_attribution(
    entry: Mapping[str, Any], mlperf_id: str | None, retrieved: date | None
) -> str:
    """Describe how to cite an entry with all that MLCommons requires.

    `entry` has the columns of `mlperf_entries`; `mlperf_id` includes its confidence, as `2.0-2047
    (printed)`.
    """
    round_ = entry["round"]
    where = "the official results"
    if round_:
        where = REPOSITORY.format(round=round_)
    day = "day of retrieval not known"
    if retrieved:
        day = f"retrieved {retrieved}"
    return (
        f"MLPerf Training v{round_ or ' unknown'} {entry['division'] or 'division unknown'}"
        f" {entry['benchmark']}, {entry['submitter']}, {where}, {entry['path']};"
        f" MLPerf ID {mlperf_id or 'not known'}; {day}; {NOT_VERIFIED}"
    )
