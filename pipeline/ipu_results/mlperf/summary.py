"""Sum up the runs of scored entries: their speed, the interval of the score, and the factor that
the official reference gives.

Comparable are entries that were scored together, such as those of a round. `schema/links` says the
same in SQL for the warehouse, over all rounds, where entries are rows and not logs that were read;
`test_a_round_alone_has_the_figures_of_the_warehouse` holds the two equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

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
"""Columns of a table by name."""
NO_SUMMARY: Record = {}
EPOCH_DIGITS = 3  # to which the official checker rounds epochs
NO_REFERENCE = ("samples", ())


def summarise_entries(entries: Sequence[ScoredEntry], rules: Rules) -> dict[Entry, Record]:
    """Return the columns of `mlperf_entries` that runs, other entries and the reference give."""
    owners: Counter[str] = Counter()
    for scored in entries:
        owners.update({run.log.sha256 for run in scored.runs if run.log.sha256})
    summed = [_Entry(scored, rules) for scored in entries]
    records = {each.scored.entry: each.summarise(owners) for each in summed}
    chosen = [each for each in summed if each.has_interval]
    # The order of a sum decides its last bits: this is that of the warehouse.
    chosen.sort(key=_Entry.sort_key)
    runs = make_runs(
        [[run.log.minutes or 0.0 for run in each.used] for each in chosen],
        [each.choose_counts() for each in chosen],
        [(each.drop, each.drop - each.uncounted) for each in chosen],
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
        self.minutes = scored.minutes or 0.0  # only used where there is an interval
        self.batch = scored.global_batch_size
        self.drop = rules.benchmark(scored.benchmark).drop
        self.uncounted = len(scored.runs) - scored.n_success
        self.used = select_used(scored.runs)
        self.has_interval = scored.minutes is not None and len(self.used) >= MIN_RUNS
        round_ = rules.ruleset or scored.entry.round
        self.is_normalised = rules.is_normalised(round_, scored.system.division)
        key = (round_ or "", scored.benchmark)
        self.unit, points = load_references().get(key, NO_REFERENCE)
        self.reference: float | None = None
        self.method: str | None = None
        found = find_reference(points, self.batch) if self.batch else None
        if found:
            self.reference, self.method = found

    def sort_key(self) -> tuple[float, str, str]:
        return self.minutes, self.scored.entry.round or "", self.scored.entry.path

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
        if self.unit == "steps":
            return (needed.samples or 0.0) / (self.batch or 1)
        count: float | None = getattr(needed, self.unit)
        return count or 0.0

    def find_ratio(self) -> float:
        """Return what the reference needs over what the entry needed; 0 where nothing is normalised
        or none is known.
        """
        # a submitted factor above 1 is that of the reference, whatever we know of it
        factor = self.scored.scaling_factor or 1.0
        if factor > 1:
            return factor
        needed = self.count(self.scored.convergence)
        if not self.is_normalised or not needed:
            return 0.0
        ratio = (self.reference or 0.0) / needed
        # the score was not raised by more than the factor
        return min(1.0, ratio)

    def expect_factor(self) -> float | None:
        """Return the scaling factor that the logs and the reference give."""
        counts = [self.count(run.convergence) for run in self.scored.runs if run.counted]
        if self.unit == "epochs":
            counts = [round(count, EPOCH_DIGITS) for count in counts]
        needed = olympic_mean(counts, self.uncounted, self.drop)
        if not self.is_normalised or not self.reference or not needed or 0.0 in counts:
            return None
        return max(1.0, self.reference / needed)

    def summarise(self, owners: Counter[str]) -> Record:
        """Return the columns, those of the interval as where there is none."""
        runs = self.scored.runs
        speeds = [run.speed.minutes_per_sample for run in self.used]
        known = [speed for speed in speeds if speed is not None]
        mean, low, high = describe_mean(known)
        no_interval = f"fewer than {MIN_RUNS} counted runs with different logs"
        if self.scored.minutes is None:
            no_interval = "it has no score"
        return {
            "distinct_logs": len({run.log.sha256 or run.file for run in runs}),
            "shared_logs": sum(owners[run.log.sha256 or ""] > 1 for run in runs),
            "distinct_seeds": len({run.log.seed for run in runs} - {None}),
            "normalised": self.is_normalised,
            "reference_to_converge": self.reference,
            "reference_method": self.method,
            "expected_scaling_factor": self.expect_factor(),
            "minutes_per_sample": mean,
            "minutes_per_sample_low": low,
            "minutes_per_sample_high": high,
            "speed_runs": len(known),
            "startup_minutes": _average([run.speed.startup_minutes for run in self.used]),
            "wait_minutes": _average([run.speed.wait_minutes for run in self.used]),
            "no_speed_reason": None if known else self.explain_no_speed(),
            "minutes_low": None,
            "minutes_high": None,
            "interval_method": None,
            "interval_runs": None,
            "no_interval_reason": no_interval,
        }

    def explain_no_speed(self) -> str | None:
        """Return the reason that most runs have."""
        if not self.used:
            return "it has no counted run"
        reasons = Counter(run.speed.no_speed_reason for run in self.used)
        return reasons.most_common(1)[0][0]


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


class MeanInterval(NamedTuple):
    """A mean, and how far that of other runs of the same system may be off."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None


def describe_mean(values: Sequence[float]) -> MeanInterval:
    """Return the mean of speeds with its interval, which two values do not give: Student's t for
    the runs, and that sessions differ.
    """
    mean = _average(values)
    n = len(values)
    if mean is None or n < MIN_RUNS:
        return MeanInterval(mean)
    # statistics.stdev sums fractions; the digits kept of an end do not need them
    squares = math.fsum((value - mean) ** 2 for value in values)
    error = math.sqrt(squares / (n - 1) / n)
    half = math.hypot(compute_t_quantile(COVERAGE, n - 1) * error / mean, SESSION_ARM)
    low = mean * max(round(1 - half, DIGITS), 0.0)
    return MeanInterval(mean, low, mean * round(1 + half, DIGITS))
