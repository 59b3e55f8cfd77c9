"""Sum up the runs of an entry: how fast it trained apart from how soon it converged, and what is
odd about them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from ipu_results.mlperf.interval import COVERAGE, DIGITS, MIN_RUNS, compute_t_quantile
from ipu_results.mlperf.rules import BETWEEN_FINDINGS, summarise_findings

Record = Mapping[str, Any]
Key = tuple[str, str]
"""Round and path, which name an entry."""


class LoggedRun(NamedTuple):
    """The columns of a row of `mlperf_runs` by which its entry is completed."""

    round: str
    path: str
    document_id: str
    sha256: str | None
    counted: bool
    minutes: float
    samples: float | None
    tokens: float | None
    epochs: float | None
    findings: str | None
    minutes_per_sample: float | None
    startup_minutes: float
    wait_minutes: float | None
    no_speed_reason: str | None


RunsByEntry = Mapping[Key, Sequence[LoggedRun]]
"""The runs of each entry that has one."""


def get_key(record: Record) -> Key:
    """Return round and path, which name an entry."""
    return record["round"], record["path"]


def group_runs(runs: pd.DataFrame) -> dict[Key, list[LoggedRun]]:
    """Return the runs of each entry; a column that the frame lacks is None in each."""
    named = pa.Table.from_pandas(
        runs.reindex(columns=list(LoggedRun._fields)), preserve_index=False
    )
    by_entry: dict[Key, list[LoggedRun]] = defaultdict(list)
    for run in map(LoggedRun, *(column.to_pylist() for column in named.columns)):
        by_entry[run.round, run.path].append(run)
    return dict(by_entry)


def keep_counted(runs: Iterable[LoggedRun]) -> list[LoggedRun]:
    """Return the counted runs; a log that is in the folder twice is one run."""
    return list(
        {run.sha256 or number: run for number, run in enumerate(runs) if run.counted}.values()
    )


def add_speeds(entries: Iterable[dict[str, Any]], runs: RunsByEntry) -> None:
    """Add speed and findings to each entry."""
    for entry in entries:
        of_entry = runs.get(get_key(entry), ())
        findings = (run.findings.split(BETWEEN_FINDINGS) for run in of_entry if run.findings)
        entry["findings"] = summarise_findings(entry["scaling_factor"], findings)
        entry.update(summarise_speed(keep_counted(of_entry)))


def summarise_speed(runs: Sequence[LoggedRun]) -> dict[str, Any]:
    """Return the columns of speed of an entry with these counted runs."""
    measured = [
        (speed, run.startup_minutes)
        for run in runs
        if (speed := run.minutes_per_sample) is not None
    ]
    waits = [run.wait_minutes for run in runs if run.wait_minutes is not None]
    columns = {"speed_runs": len(measured), "wait_minutes": fmean(waits) if waits else None}
    if not measured:
        reasons = Counter(run.no_speed_reason for run in runs)
        return columns | {
            "no_speed_reason": max(
                reasons, key=reasons.__getitem__, default="it has no counted run"
            )
        }
    speeds, startups = zip(*measured, strict=True)
    mean = fmean(speeds)
    columns |= {"minutes_per_sample": mean, "startup_minutes": fmean(startups)}
    if len(speeds) >= MIN_RUNS:
        # statistics.stdev sums fractions; the digits kept of an end do not need them.
        error = math.sqrt(
            math.fsum((speed - mean) ** 2 for speed in speeds) / (len(speeds) - 1) / len(speeds)
        )
        half = compute_t_quantile(COVERAGE, len(speeds) - 1) * error / mean
        columns |= {
            "minutes_per_sample_low": mean * max(round(1 - half, DIGITS), 0.0),
            "minutes_per_sample_high": mean * round(1 + half, DIGITS),
        }
    return columns
