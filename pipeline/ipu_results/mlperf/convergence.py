"""Measure how far one run trained until it converged, in samples, tokens and epochs, and the quality it reached.

Logs count progress in different units under one name. What each benchmark counts is in `schema/vocabulary/mlperf.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipu_results.mlperf.log import Evaluation, Log
from ipu_results.mlperf.rules import Benchmark, Target

REACHED, MISSED, NOT_CHECKED = "reached", "missed", "not checked"
SIZE_TOLERANCE = 0.1  # a logged size of the training set that is further off is that of a part, such as one GPU's
MIN_BERT_SAMPLES = 100_000  # no BERT run ends before; smaller counts are steps or evaluations


@dataclass(frozen=True, slots=True)
class Convergence:
    """What one run needed to converge; `unit` is what its log counts, None without an evaluation."""

    unit: str | None = None
    epochs: float | None = None
    samples: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Quality:
    """The values that the targets of a benchmark are about, at convergence; `check` is the verdict."""

    check: str = NOT_CHECKED
    values: tuple[float | None, ...] = ()


Progress = tuple[str, float]  # unit and count
Values = tuple[float | None, ...]


def measure_run(log: Log, benchmark: Benchmark, round_: str | None) -> tuple[Convergence, Quality]:
    """Return what a run needed to converge, and what quality it had then."""
    targets = benchmark.targets_in(round_, log.global_batch_size)
    points = _list_points(log.evaluations, targets)
    passed = [point for point in points if _is_reached(targets, point[1])]
    if not points:
        return Convergence(), Quality()
    # Evaluations of stored models go on after the target was reached; the first that reached it counts.
    names_metrics = log.evaluations[-1].metric is not None
    if names_metrics and not passed:
        return Convergence(), Quality(MISSED, points[-1][1])
    progress, values = passed[0] if names_metrics else points[-1]
    if not targets or all(value is None for value in values):
        check = NOT_CHECKED
    else:
        check = REACHED if passed else MISSED
        values = values if not passed or _is_reached(targets, values) else passed[-1][1]
    return _convert(progress, log, benchmark, round_), Quality(check, values)


def _list_points(evaluations: Sequence[Evaluation], targets: Sequence[Target]) -> list[tuple[Progress, Values]]:
    """Return progress and the targets' values; evaluations that name metrics are joined on progress."""
    if not evaluations or evaluations[-1].metric is None:
        return [
            ((each.unit, each.count), tuple(_pick_value(each.value, target.key) for target in targets))
            for each in evaluations
        ]
    joined: dict[Progress, dict[str, Any]] = {}
    for each in evaluations:
        joined.setdefault((each.unit, each.count), {})[each.metric or ""] = each.value
    return [
        (progress, tuple(_pick_value(values, target.key) for target in targets))
        for progress, values in sorted(joined.items(), key=lambda item: item[0][1])
    ]


def _pick_value(value: Any, key: str | None) -> float | None:
    if key is not None:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_reached(targets: Sequence[Target], values: Sequence[float | None]) -> bool:
    return bool(targets) and all(
        value is not None and target.is_reached(value) for target, value in zip(targets, values, strict=True)
    )


def _convert(progress: Progress, log: Log, benchmark: Benchmark, round_: str | None) -> Convergence:
    """Convert the count of an evaluation; what cannot be converted stays null."""
    unit, count = progress
    if unit == "samples":
        return Convergence(unit, samples=count)
    if unit == "steps":
        return Convergence(unit, samples=_multiply(count, log.global_batch_size))
    if benchmark.counts == "tokens":
        return Convergence("tokens", tokens=count, samples=_divide(count, benchmark.sequence_length))
    if benchmark.counts == "samples":
        return _convert_bert(count, log)
    size = benchmark.epoch_samples_in(round_)
    if benchmark.max_epochs is not None and count > benchmark.max_epochs:
        if benchmark.above_max_epochs == "samples":
            return Convergence("samples", samples=count, epochs=_divide(count, size))
        return Convergence(benchmark.above_max_epochs)
    per_epoch = _choose_epoch_size(log.train_samples, size) if benchmark.logs_epoch_samples else size
    return Convergence("epochs", epochs=count, samples=_multiply(count - benchmark.first_epoch, per_epoch))


def _convert_bert(count: float, log: Log) -> Convergence:
    """Convert a count of BERT: samples, or steps or evaluations with the samples in the last lines of the log."""
    batch, trained = log.global_batch_size or 1, log.train_samples
    if count >= MIN_BERT_SAMPLES:
        return Convergence("samples", samples=count)
    if count > 1 and trained is not None and log.planned_steps is not None and trained == log.planned_steps * batch:
        # What the log calls samples is the length of the schedule, and not how far this run came.
        is_steps = count * batch >= MIN_BERT_SAMPLES
        return Convergence("steps", samples=count * batch) if is_steps else Convergence("evaluations")
    return Convergence("evaluations", samples=trained if trained is not None and trained > batch else None)


def _choose_epoch_size(logged: float | None, size: float | None) -> float | None:
    """Return the logged size of the training set, but its known size where the logged one is that of a part."""
    if logged is None or size is None:
        return logged
    return logged if abs(logged - size) <= SIZE_TOLERANCE * size else size


def _multiply(count: float, factor: float | None) -> float | None:
    return None if factor is None else count * factor


def _divide(count: float, divisor: float | None) -> float | None:
    return None if not divisor else count / divisor
