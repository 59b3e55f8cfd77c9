"""Sum up the runs of scored entries: their speed, the interval of the score, and the factor that the
official reference gives.

Comparable are entries that were scored together, such as those of a round. `schema/links` has the
same for the warehouse, over all rounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ipu_results.mlperf.entries import Entry
from ipu_results.mlperf.interval import (
    COVERAGE,
    DIGITS,
    MIN_RUNS,
    SESSION_ARM,
    compute_t_quantile,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.reference import find_reference, load_references
from ipu_results.mlperf.rules import Convergence, Rules, olympic_mean
from ipu_results.mlperf.score import ScoredEntry, select_used

Record = dict[str, Any]
EPOCH_DIGITS = 3  # to which the official checker rounds epochs


def summarise_entries(entries: Sequence[ScoredEntry], rules: Rules) -> dict[Entry, Record]:
    """Return the columns of `mlperf_entries` that runs, other entries and the reference give."""
    digests = [{run.log.sha256 for run in scored.runs} for scored in entries]
    owners = Counter(digest for of_entry in digests for digest in of_entry if digest)
    summed = [_Entry(scored, rules) for scored in entries]
    records = {each.scored.entry: each.summarise(owners) for each in summed}
    chosen = [each for each in summed if each.has_interval]
    # The order of a sum decides its last bits: this is that of the warehouse.
    chosen.sort(
        key=lambda each: (each.minutes, each.scored.entry.round or "", each.scored.entry.path)
    )
    runs = make_runs(
        [[run.log.minutes or 0.0 for run in each.used] for each in chosen],
        [each.choose_counts() for each in chosen],
        [(each.drop, each.drop - each.missing) for each in chosen],
        [each.find_ratio() for each in chosen],
    )
    intervals = estimate_intervals(runs, [each.list_groups() for each in chosen])
    for row, each in enumerate(chosen):
        records[each.scored.entry] |= {
            "minutes_low": each.minutes * float(intervals.low[row]),
            "minutes_high": each.minutes * float(intervals.high[row]),
            "interval_method": intervals.methods[row],
            "interval_runs": len(each.used),
            "no_interval_reason": None,
        }
    return records


class _Entry:
    """One entry with its reference; `used` are its counted runs, each log once."""

    def __init__(self, scored: ScoredEntry, rules: Rules) -> None:
        self.scored = scored
        self.minutes = scored.minutes or 0.0
        self.batch = scored.global_batch_size
        self.drop = rules.benchmark(scored.benchmark).drop
        self.missing = len(scored.runs) - scored.n_success
        self.used = select_used(scored.runs)
        self.has_interval = scored.minutes is not None and len(self.used) >= MIN_RUNS
        round_ = rules.ruleset or scored.entry.round
        self.is_normalised = rules.is_normalised(round_, scored.system.division)
        key = round_ or "", scored.benchmark
        self.unit, points = load_references().get(key, ("samples", ()))
        found = find_reference(points, self.batch) if self.batch else None
        self.reference, self.method = found or (0.0, "")

    def list_groups(self) -> list[tuple[Any, ...]]:
        """Return the groups of entries whose runs converge alike, the closest first."""
        scored = self.scored
        group = (scored.entry.round, scored.system.division, scored.benchmark)
        return [(*group, self.batch), group]

    def choose_counts(self) -> list[float]:
        """Return what the runs needed to converge in the first unit that all of them have: a count
        of zero says nothing.
        """
        for unit in ("samples", "tokens", "epochs"):
            counts = [getattr(run.convergence, unit) or 0.0 for run in self.used]
            if min(counts) > 0:
                return counts
        return [math.nan] * len(self.used)

    def count(self, needed: Convergence) -> float:
        """Return what was needed to converge in the unit of the reference, 0 where unknown."""
        if self.unit != "steps":
            count: float | None = getattr(needed, self.unit)
            return count or 0.0
        return (needed.samples or 0.0) / (self.batch or 1)

    def find_ratio(self) -> float:
        """Return what the reference needs over what the entry needed; 0 where nothing is normalised
        or none is known.
        """
        scored = self.scored
        if (factor := scored.scaling_factor or 1.0) > 1:
            return factor
        needed = self.count(scored.convergence)
        return min(1.0, self.reference / needed) if self.is_normalised and needed else 0.0

    def expect_factor(self) -> float | None:
        """Return the scaling factor that the logs and the reference give."""
        counts = [self.count(run.convergence) for run in self.scored.runs if run.counted]
        if self.unit == "epochs":
            counts = [round(count, EPOCH_DIGITS) for count in counts]
        own = olympic_mean(counts, self.missing, self.drop)
        is_known = self.is_normalised and self.reference and 0.0 not in counts
        return max(1.0, self.reference / own) if is_known and own else None

    def summarise(self, owners: Mapping[str, int]) -> Record:
        """Return the columns apart from the interval."""
        runs = self.scored.runs
        speeds = [run.speed for run in self.used if run.speed.minutes_per_sample is not None]
        mean, low, high = describe_mean([speed.minutes_per_sample or 0.0 for speed in speeds])
        waits = [each.speed.wait_minutes for each in self.used]
        reasons = Counter(run.speed.no_speed_reason for run in self.used).most_common(1)
        no_speed = reasons[0][0] if reasons else "it has no counted run"
        few = f"fewer than {MIN_RUNS} counted runs with different logs"
        return {
            "distinct_logs": len({run.log.sha256 or run.file for run in runs}),
            "shared_logs": sum(owners.get(run.log.sha256 or "", 0) > 1 for run in runs),
            "distinct_seeds": len({run.log.seed for run in runs} - {None}),
            "normalised": self.is_normalised,
            "reference_to_converge": self.reference or None,
            "reference_method": self.method or None,
            "expected_scaling_factor": self.expect_factor(),
            "minutes_per_sample": mean,
            "minutes_per_sample_low": low,
            "minutes_per_sample_high": high,
            "speed_runs": len(speeds),
            "startup_minutes": _average([speed.startup_minutes for speed in speeds]),
            "wait_minutes": _average(waits),
            "no_speed_reason": None if speeds else no_speed,
            "no_interval_reason": "it has no score" if self.scored.minutes is None else few,
        }


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def describe_mean(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return the mean of speeds with its interval, which two values do not give: Student's t for
    the runs, and that sessions differ.
    """
    mean = _average(values)
    n = len(values)
    if mean is None or n < MIN_RUNS:
        return mean, None, None
    # statistics.stdev sums fractions; the digits kept of an end do not need them
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = math.hypot(compute_t_quantile(COVERAGE, n - 1) * error / mean, SESSION_ARM)
    return mean, mean * max(round(1 - half, DIGITS), 0.0), mean * round(1 + half, DIGITS)
