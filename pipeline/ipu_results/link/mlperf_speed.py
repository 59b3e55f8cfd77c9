"""Sum up the runs of an entry: how fast it trained apart from how soon it converged, and what is odd about them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

import pandas as pd
import pyarrow as pa

from ipu_results.mlperf.interval import COVERAGE, DIGITS, MIN_RUNS, compute_t_quantile
from ipu_results.mlperf.score import BETWEEN_FINDINGS, summarise_findings

COLUMNS = (
    *"round path sha256 counted findings".split(),
    *"minutes_per_sample startup_minutes wait_minutes no_speed_reason".split(),
)
Run = dict[str, Any]


def add_speeds(entries: Iterable[dict[str, Any]], runs: pd.DataFrame) -> None:
    """Add speed and findings to each entry."""
    by_entry: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in pa.Table.from_pandas(runs[list(COLUMNS)], preserve_index=False).to_pylist():
        by_entry[run["round"], run["path"]].append(run)
    for entry in entries:
        of_entry = by_entry[entry["round"], entry["path"]]
        findings = (run["findings"].split(BETWEEN_FINDINGS) if run["findings"] else () for run in of_entry)
        entry["findings"] = summarise_findings(entry["scaling_factor"], findings)
        entry.update(summarise_speed(_keep_counted(of_entry)))


def _keep_counted(runs: Sequence[Run]) -> list[Run]:
    """Return the counted runs; a log that is in the folder twice is one run."""
    return list({run["sha256"] or number: run for number, run in enumerate(runs) if run["counted"]}.values())


def summarise_speed(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the columns of speed of an entry with these counted runs."""
    measured = [run for run in runs if run["minutes_per_sample"] is not None]
    waits = [run["wait_minutes"] for run in runs if run["wait_minutes"] is not None]
    columns = {"speed_runs": len(measured), "wait_minutes": fmean(waits) if waits else None}
    if not measured:
        reasons = Counter(run["no_speed_reason"] for run in runs)
        return columns | {"no_speed_reason": max(reasons, key=reasons.__getitem__, default="it has no counted run")}
    speeds = [run["minutes_per_sample"] for run in measured]
    mean = fmean(speeds)
    columns |= {
        "minutes_per_sample": mean,
        "startup_minutes": fmean(run["startup_minutes"] for run in measured),
    }
    if len(speeds) >= MIN_RUNS:
        half = compute_t_quantile(COVERAGE, len(speeds) - 1) * stdev(speeds) / math.sqrt(len(speeds)) / mean
        columns |= {
            "minutes_per_sample_low": mean * max(round(1 - half, DIGITS), 0.0),
            "minutes_per_sample_high": mean * round(1 + half, DIGITS),
        }
    return columns
