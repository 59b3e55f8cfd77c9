"""Find what the columns of one row contradict: the order of its latencies, its batch and micro-batch, its machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from ipu_results.comparison.comparable import Row
from ipu_results.comparison.measurement import KnownWords
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.submission.fault import Fault
from ipu_results.submission.refusals import count_digits

# Columns of which none can be above a later one. A mean can be above a percentile, so it has a line of its own.
ASCENDING = (
    ("latency_min_ms", "latency_median_ms", "latency_p90_ms", "latency_p99_ms", "latency_max_ms"),
    ("latency_min_ms", "latency_ms", "latency_max_ms"),
    ("micro_batch_size", "batch_size"),
)


def find_inconsistencies(row: Row, words: KnownWords, place: str) -> Iterator[Fault]:
    """Yield a fault for each pair of columns that cannot both be right."""
    for names in ASCENDING:
        stated = [name for name in names if row[name] is not None]
        for first, second in combinations(stated, 2):
            if row[first] - row[second] > _get_rounding(row[first]) + _get_rounding(row[second]):
                message = f"{first} {row[first]:.12g} is above {second} {row[second]:.12g}"
                yield Fault("contradiction", message, place)
    yield from _check_machine(row, words.machines.get(row["platform"], {}), place)


def _check_machine(row: Row, machine: Mapping[str, Any], place: str) -> Iterator[Fault]:
    """Yield a fault for more chips than the machine has, and for another chip; a part of a machine has fewer."""
    chips, count = frozenset(load_vocabulary().chips.values()), machine.get("chip_count")
    if row["chip_count"] and count and row["chip_count"] > count:
        message = f"chip_count is {row['chip_count']}, but {row['platform']} has {count} chips; name the larger machine"
        yield Fault("contradiction", message, place)
    if {row["chip"], machine.get("chip")} <= chips and row["chip"] != machine["chip"]:
        message = f"chip is {row['chip']}, but {row['platform']} has {machine['chip']}"
        yield Fault("contradiction", message, place)


def _get_rounding(value: float) -> float:
    """Return half a unit of the last digit of a figure that is not zero."""
    return 10.0 ** (math.floor(math.log10(abs(value))) - count_digits(value) + 1) / 2 if value else 0.0
