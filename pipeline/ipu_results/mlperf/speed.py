"""Separate how fast a run trained from how soon it converged, by the evaluations in its log.

A run's minutes are `startup_minutes + minutes_per_sample * samples + wait_minutes`, exactly, where
`samples` are those at convergence. The time between two evaluations is a sum over the samples
between them. If these are alike and independent, its mean and its variance are proportional to
their number, and the best linear unbiased estimate of the slope is the time from the first to the
last evaluation over the samples between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from ipu_results.mlperf.log import MS_PER_MINUTE, Evaluation, Log
from ipu_results.mlperf.rules import Convergence

# by which the last evaluation may be timed after the run_stop that another process writes
MAX_LATE_MS = 1_000
# The slope over the minutes per sample from the start to the last evaluation. In the record it is
# 0.36 to 1.25, apart from runs that evaluate stored models after training (below 0.1) and runs
# whose counts begin before (above 8).
MIN_SHARE = 0.2
MAX_SHARE = 2.0

Point = tuple[float, float]  # samples, and milliseconds since the start


@dataclass(frozen=True, slots=True)
class Speed:
    """The parts of one run's minutes; None where `no_speed_reason` says why.

    `evaluations` are the points at which the run was evaluated. `minutes_per_sample` includes the
    evaluations, and has its standard error with three of them. `startup_minutes` are those up to
    the first one beyond what its samples take, `wait_minutes` those from the last one to the end of
    the run.
    """

    evaluations: int = 0
    minutes_per_sample: float | None = None
    minutes_per_sample_error: float | None = None
    startup_minutes: float | None = None
    wait_minutes: float | None = None
    no_speed_reason: str | None = None


def measure_speed(log: Log, convergence: Convergence, first_epoch: int) -> Speed:
    """Return the parts of a run's minutes, as far as its evaluations give them.

    `first_epoch` is the count at which the first epoch starts.
    """
    if log.minutes is None or log.start_ms is None or log.stop_ms is None:
        return Speed(no_speed_reason="its log has no run_start before a run_stop")
    evaluations = [each for each in log.evaluations if each.time_ms >= log.start_ms]
    if not evaluations:
        return Speed(no_speed_reason="its log holds no readable evaluation")
    # What several processes write about one evaluation is one point.
    times = {each.count: each.time_ms - log.start_ms for each in evaluations}
    wait_ms = log.stop_ms - log.start_ms - max(times.values())
    if evaluations[-1].metric is not None:
        return Speed(len(times), no_speed_reason="its evaluations are of stored models")
    if wait_ms < -MAX_LATE_MS:
        return Speed(len(times), no_speed_reason="its last evaluation is after its run_stop")
    wait = wait_ms / MS_PER_MINUTE
    no_speed = partial(Speed, len(times), wait_minutes=wait)
    if len(evaluations) == 1:
        return no_speed(no_speed_reason="it has a single evaluation")
    points = _list_points(times, evaluations[-1], convergence, first_epoch)
    if points is None or len(times) == 1:
        reason = "its evaluations do not say how many samples were trained"
        return no_speed(no_speed_reason=reason)
    samples = [count for count, _ in points]
    if any(after <= before for before, after in pairwise(samples)):
        reason = "the samples of its evaluations do not grow with time"
        return no_speed(no_speed_reason=reason)
    first, began = points[0]
    last, ended = points[-1]
    slope = (ended - began) / (last - first)
    share = slope * last / ended
    if not MIN_SHARE < share < MAX_SHARE:
        reason = "its evaluations are not spread over its training"
        return no_speed(no_speed_reason=reason)
    error = estimate_error(points)
    if error is not None:
        error /= MS_PER_MINUTE
    return Speed(
        len(times),
        minutes_per_sample=slope / MS_PER_MINUTE,
        minutes_per_sample_error=error,
        startup_minutes=(began - slope * first) / MS_PER_MINUTE,
        wait_minutes=wait,
    )


def _list_points(
    times: dict[float, float], last: Evaluation, convergence: Convergence, first_epoch: int
) -> list[Point] | None:
    """Return the points in samples; None where the count of the last evaluation is not proportional
    to them.
    """
    # the count at which training began
    before = 0
    if convergence.unit == "epochs":
        before = first_epoch
    if convergence.samples is None or convergence.unit == "evaluations" or last.count <= before:
        return None
    scale = convergence.samples / (last.count - before)
    return [((count - before) * scale, time_ms) for count, time_ms in times.items()]


def estimate_error(points: Sequence[Point]) -> float | None:
    """Return the standard error of the slope from the first to the last point; None with fewer than
    three points.
    """
    if len(points) < 3:
        return None
    samples = []
    times_ms = []
    for (samples_before, began), (samples_after, ended) in pairwise(points):
        samples.append(samples_after - samples_before)
        times_ms.append(ended - began)
    trained = math.fsum(samples)
    slope = math.fsum(times_ms) / trained
    squares = []
    for count, time_ms in zip(samples, times_ms, strict=True):
        squares.append((time_ms - slope * count) ** 2 / count)
    variance = math.fsum(squares) / (len(squares) - 1)
    return math.sqrt(variance / trained)
