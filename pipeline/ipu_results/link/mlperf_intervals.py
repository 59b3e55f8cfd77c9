"""Add an interval to each official score, and count what the intervals resolve in each ranking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import pandas as pd
import pyarrow as pa

from ipu_results.mlperf.interval import (
    COVERAGE,
    MIN_RUNS,
    PooledConvergence,
    ScoreInterval,
    are_separable,
    estimate_interval,
    pool_convergence,
)
from ipu_results.mlperf.rules import round_key

Record = Mapping[str, Any]
Key = tuple[str, str]
Pair = frozenset[Key]
GROUPS = (("round", "division", "benchmark", "global_batch_size"), ("round", "division", "benchmark"))
COUNTS = ("samples", "tokens", "epochs")
ALL_SIZES, SAME_SIZE = "all-sizes", "same-size"
CORRECTION = "Bonferroni: each of the m pairs at a coverage of 1 - 0.05 / m"


@dataclass(frozen=True, slots=True)
class EntryRuns:
    """The counted runs of one entry, each distinct log once: minutes, and counts at convergence where all have them."""

    minutes: tuple[float, ...]
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Intervals:
    """The interval of each entry that has one, and the pairs of entries of a round that share logs."""

    by_entry: Mapping[Key, ScoreInterval]
    sharing: frozenset[Pair]


def collect_runs(runs: pd.DataFrame) -> dict[Key, EntryRuns]:
    """Collect the counted runs of each entry; a log that is in the folder twice is one run."""
    counted = runs[runs["counted"].astype(bool)]
    known = [name for name in COUNTS if name in counted]
    columns = _list_columns(counted, "round", "path", "sha256", "minutes", *known)
    grouped: dict[Key, dict[Any, tuple[Any, ...]]] = defaultdict(dict)
    for number, (round_, path, digest, *values) in enumerate(zip(*columns, strict=True)):
        grouped[round_, path].setdefault(number if digest is None else digest, tuple(values))
    return {key: _make_runs(list(rows.values())) for key, rows in grouped.items()}


def _list_columns(frame: pd.DataFrame, *names: str) -> list[list[Any]]:
    """List the values of columns, None for a missing one."""
    return [pa.array(frame[name], from_pandas=True).to_pylist() for name in names]


def _make_runs(rows: Sequence[Sequence[float | None]]) -> EntryRuns:
    """Use the first unit that every run has; counts of zero say nothing."""
    minutes, *units = zip(*rows, strict=True)
    counts = next((unit for unit in units if all(count is not None and count > 0 for count in unit)), ())
    return EntryRuns(tuple(map(float, minutes)), tuple(map(float, counts)))


def estimate_intervals(entries: Sequence[Record], runs: pd.DataFrame) -> Intervals:
    """Estimate the interval of every scored entry."""
    by_entry = collect_runs(runs)
    groups = _pool_groups(entries, by_entry)
    intervals: dict[Key, ScoreInterval] = {}
    for entry in entries:
        key = _get_key(entry)
        if entry["minutes"] is None or key not in by_entry:
            continue
        group = next((groups[name] for name in _name_groups(entry) if groups.get(name)), None)
        interval = estimate_interval(entry["minutes"], by_entry[key].minutes, entry["scaling_factor"], group)
        if interval is not None:
            intervals[key] = interval
    return Intervals(intervals, find_shared_logs(runs))


def _pool_groups(
    entries: Iterable[Record], runs: Mapping[Key, EntryRuns]
) -> dict[tuple[Any, ...], PooledConvergence | None]:
    members: dict[tuple[Any, ...], list[Sequence[float]]] = defaultdict(list)
    for entry in entries:
        known = runs.get(_get_key(entry))
        if known and len(known.counts) > 1:
            for name in _name_groups(entry):
                members[name].append(known.counts)
    return {name: pool_convergence(counts) for name, counts in members.items()}


def _name_groups(entry: Record) -> list[tuple[Any, ...]]:
    """Return the groups of comparable entries, the closest first."""
    return [tuple(entry.get(name) for name in names) for names in GROUPS]


def find_shared_logs(runs: pd.DataFrame) -> frozenset[Pair]:
    """Return the pairs of entries of one round that have a log in common, byte for byte."""
    holders: dict[tuple[str, str], set[Key]] = defaultdict(set)
    for round_, path, digest in zip(*_list_columns(runs, "round", "path", "sha256"), strict=True):
        if digest is not None:
            holders[round_, digest].add((round_, path))
    return frozenset(frozenset(pair) for keys in holders.values() for pair in combinations(sorted(keys), 2))


def describe_interval(entry: Record, intervals: Intervals) -> dict[str, Any]:
    """Return the columns of an entry that its interval fills."""
    interval = intervals.by_entry.get(_get_key(entry))
    if interval is None:
        scored = entry["minutes"] is not None
        reason = f"fewer than {MIN_RUNS} counted runs with different logs" if scored else "it has no score"
        return {"no_interval_reason": reason}
    half = interval.half_width()
    return {
        "minutes_low": max(interval.minutes - half, 0.0),
        "minutes_high": interval.minutes + half,
        "interval_method": interval.method,
        "interval_coverage": COVERAGE,
        "interval_runs": interval.own.df + 1,
    }


def resolve_rankings(entries: Iterable[Record], intervals: Intervals) -> list[dict[str, Any]]:
    """Return one row per ranking: a round, division and benchmark, with all sizes and per number of accelerators."""
    rankings: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for entry in entries:
        if entry["minutes"] is not None and entry["division"] is not None:
            name = entry["round"], entry["benchmark"], entry["division"]
            rankings[*name, ALL_SIZES, None].append(entry)
            if entry["accelerators"] is not None:
                rankings[*name, SAME_SIZE, entry["accelerators"]].append(entry)
    order = sorted(rankings, key=lambda name: (round_key(name[0]), *name[1:4], name[4] or 0))
    return [_resolve(name, rankings[name], intervals) for name in order]


def _resolve(name: tuple[Any, ...], entries: Sequence[Record], intervals: Intervals) -> dict[str, Any]:
    ordered = [_get_key(entry) for entry in sorted(entries, key=lambda entry: (entry["minutes"], entry["path"]))]
    pairs = list(pairwise(ordered))
    independent = [pair for pair in pairs if frozenset(pair) not in intervals.sharing]
    tested = [pair for pair in independent if all(key in intervals.by_entry for key in pair)]
    corrected = 1 - (1 - COVERAGE) / max(len(tested), 1)
    groups = list(_find_tied_groups(ordered, intervals))
    round_, benchmark, division, scope, accelerators = name
    return {
        "ranking": "/".join(map(str, (*name[:4], *([] if accelerators is None else [accelerators])))),
        "round": round_,
        "benchmark": benchmark,
        "division": division,
        "scope": scope,
        "accelerators": accelerators,
        "entries": len(ordered),
        "neighbouring_pairs": len(pairs),
        "shared_log_pairs": len(pairs) - len(independent),
        "untested_pairs": len(independent) - len(tested),
        "separable_pairs": _count_separable(tested, intervals, COVERAGE),
        "separable_pairs_corrected": _count_separable(tested, intervals, corrected),
        "correction": CORRECTION,
        "tied_groups": len(groups),
        "largest_tied_group": max(groups, default=0),
    }


def _count_separable(pairs: Iterable[tuple[Key, Key]], intervals: Intervals, coverage: float) -> int:
    known = intervals.by_entry
    return sum(are_separable(known[faster], known[slower], coverage) for faster, slower in pairs)


def _find_tied_groups(ordered: Sequence[Key], intervals: Intervals) -> Iterator[int]:
    """Yield the size of each group of neighbours of which no two can be separated and that no neighbour extends."""
    reached = 0
    for first in range(len(ordered)):
        last = first
        while last + 1 < len(ordered) and all(
            _are_tied(ordered[other], ordered[last + 1], intervals) for other in range(first, last + 1)
        ):
            last += 1
        if last > max(first, reached - 1):
            yield last - first + 1
        reached = max(reached, last + 1)


def _are_tied(faster: Key, slower: Key, intervals: Intervals) -> bool:
    if frozenset((faster, slower)) in intervals.sharing:
        return True
    known = intervals.by_entry
    return faster in known and slower in known and not are_separable(known[faster], known[slower])


def _get_key(record: Record) -> Key:
    return record["round"], record["path"]
