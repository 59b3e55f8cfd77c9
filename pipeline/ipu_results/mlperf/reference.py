"""Find what the official reference needs to converge at a batch size, and the factor that follows
for an entry.

The rule is that of mlperf-logging's RCP checker since May 2024, whose factors the earlier rounds
have as well: points that converge slower than their neighbours say are pruned, and between two
points the mean is interpolated.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ipu_results.kit.files import find_folder

FILE = find_folder("_reference", "raw/mlperf") / "rcp.csv"
# how a reference was had at a batch size
EXACT = "exact"
INTERPOLATED = "interpolated"
SMALLEST = "smallest"


class ReferencePoint(NamedTuple):
    """The mean that the reference needs to converge at a batch size."""

    batch: int
    mean: float


@cache
def load_references() -> Mapping[tuple[str, str], tuple[str, Sequence[ReferencePoint]]]:
    """Return what the reference of each round and benchmark counts, and its points that serve."""
    points = defaultdict(list)
    units = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row["round"], row["benchmark"])
            units[key] = row["rcp_unit"]
            # points that were added later were no reference when the round was scored
            if row["at_round"] == "True":
                point = ReferencePoint(int(row["global_batch_size"]), float(row["rcp_mean"]))
                points[key].append(point)
    return {key: (units[key], prune_points(points[key])) for key in points}


def prune_points(points: Sequence[ReferencePoint]) -> list[ReferencePoint]:
    """Return the points that serve as a reference, in order of batch size.

    Those with smaller batches than the fastest one are pruned, then each that is slower than the
    line between its neighbours. As in the checker, one that was passed is not looked at again.
    """
    ordered = sorted(points)
    fastest = min(ordered, key=lambda point: point.mean)
    kept = [point for point in ordered if point.batch >= fastest.batch]
    index = 1
    while index < len(kept) - 1:
        before, point, after = kept[index - 1 : index + 2]
        if point.mean > interpolate(point.batch, before, after):
            del kept[index]
        else:
            index += 1
    return kept


def interpolate(batch: int, low: ReferencePoint, high: ReferencePoint) -> float:
    """Return the mean at a batch size on the line between two points."""
    slope = (high.mean - low.mean) / (high.batch - low.batch)
    return low.mean + slope * (batch - low.batch)


def find_reference(kept: Sequence[ReferencePoint], batch: int) -> tuple[float, str] | None:
    """Return the mean at a batch size and how it was had; None above the largest batch of the
    pruned points.

    Below the smallest batch its mean is the reference.
    """
    below = None
    for point in kept:
        if point.batch == batch:
            return point.mean, EXACT
        if point.batch > batch:
            if below is None:
                return point.mean, SMALLEST
            return interpolate(batch, below, point), INTERPOLATED
        below = point
    return None
