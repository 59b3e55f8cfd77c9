"""How the runs of MLPerf Training entries vary, as distributions to draw from, taken from the
record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

MIN_RUNS = 9  # of an entry whose runs make up a shape: with fewer, their own mean hides the tails
MIN_ENTRIES = 4
MIN_POOLED = 40
MAX_STEPS = 8
# variance between entries over that within: above it, the entries did not converge alike
MAX_BETWEEN = 2.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Runs to draw from: counts at convergence, minutes per count of the same runs, and the
    entries' number of runs.
    """

    name: str
    counts: Numbers
    speeds: Numbers
    runs: int

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> tuple[Numbers, Numbers]:
        """Draw counts at convergence, and minutes, each about 1."""
        rows = rng.integers(0, len(self.counts), size)
        return self.counts[rows], self.counts[rows] * self.speeds[rows]


def load_shapes(warehouse: Path) -> list[Shape]:
    """Load the shapes of every benchmark with enough runs."""
    columns = ["round", "path", "benchmark", "division", "global_batch_size"]
    entries = pd.read_parquet(warehouse / "mlperf_entries.parquet", columns=columns)
    runs = pd.read_parquet(warehouse / "mlperf_runs.parquet").drop(columns="global_batch_size")
    closed = entries[entries["division"] == "closed"]
    runs = runs[runs["counted"]].merge(closed, on=["round", "path"])
    runs["count"] = runs["samples"].fillna(runs["epochs"])
    lowest = runs.groupby(["round", "path"])["count"].transform("min")
    runs["count"] = runs["count"].where(lowest > 0)
    groups = runs.groupby(["round", "path"])
    runs["n"] = groups["minutes"].transform("size")
    runs["known"] = groups["count"].transform("count") == runs["n"]
    # Without counts, the minutes alone vary.
    runs["count"] = runs["count"].where(runs["known"], runs["minutes"])
    runs["speed"] = runs["minutes"] / runs["count"]
    for name in ("count", "speed"):
        runs[f"relative_{name}"] = runs[name] / groups[name].transform("mean") - 1
    return [*_make_continuous(runs[runs["n"] >= MIN_RUNS]), *_make_steps(runs[runs["known"]])]


def _make_continuous(runs: pd.DataFrame) -> Iterator[Shape]:
    """Pool the deviations of runs from their entry's mean; their variance is that of the runs."""
    for benchmark, every in runs.groupby("benchmark"):
        pooled = every[every["known"]] if every["known"].sum() >= MIN_POOLED else every
        if len(pooled) < MIN_POOLED:
            continue
        widen = np.sqrt(pooled["n"] / (pooled["n"] - 1))
        relative = (pooled["relative_count"] * widen).to_numpy()
        speed = (pooled["relative_speed"] * widen).to_numpy()
        skewness = float(np.mean(relative**3) / np.mean(relative**2) ** 1.5)
        counts = np.maximum(1 + relative, 0.05)
        yield Shape(
            f"{benchmark}, skewness {skewness:.1f}",
            counts,
            1 + speed,
            int(pooled["n"].median()),
        )


def _make_steps(runs: pd.DataFrame) -> Iterator[Shape]:
    """Pool the counts of entries of one round and batch size that converged alike, at few different
    evaluations.
    """
    keys = ["benchmark", "round", "global_batch_size"]
    for (benchmark, round_, batch), pooled in runs.groupby(keys):
        groups = [group["count"].to_numpy() for _, group in pooled.groupby("path")]
        if len(groups) < MIN_ENTRIES or not 2 <= pooled["count"].nunique() <= MAX_STEPS:
            continue
        if _compare_variances(groups) > MAX_BETWEEN:
            continue
        counts = (pooled["count"] / pooled["count"].mean()).to_numpy()
        speeds = 1 + pooled["relative_speed"].to_numpy()
        yield Shape(
            f"{benchmark} v{round_}, batch {batch}",
            counts,
            speeds,
            int(pooled["n"].median()),
        )


def _compare_variances(groups: list[Numbers]) -> float:
    """Return the mean square between groups over that within; infinite without a spread within."""
    everything = np.concatenate(groups)
    between = 0.0
    within = 0.0
    for group in groups:
        between += len(group) * (group.mean() - everything.mean()) ** 2
        within += ((group - group.mean()) ** 2).sum()
    if not within:
        return float("inf")
    return float(between / (len(groups) - 1) / (within / (len(everything) - len(groups))))
