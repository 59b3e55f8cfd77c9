"""What the runs say about the order of MLPerf entries: intervals of scores, tests of pairs, and
rankings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, compress, pairwise, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.link.mlperf_speed import Key, LoggedRun, Record, RunsByEntry, get_key, keep_counted
from ipu_results.mlperf.interval import (
    MIN_RUNS,
    Integers,
    Intervals,
    Numbers,
    Runs,
    adjust_for_many,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.rules import Rules, round_key
from ipu_results.mlperf.separation import ALPHA, compare_pairs

Size = tuple[int, int | None]
"""Accelerators, and nodes where there are none."""
# Entries whose runs converge alike, the closest first: of one batch size, else of any.
GROUPS = (
    ("round", "division", "benchmark", "global_batch_size"),
    ("round", "division", "benchmark"),
)
FAMILY = ("round", "benchmark", "division")
SUCCESSION = ("company", "benchmark", "division", "size", "model", "comparable_rounds")
COUNTS = ("samples", "tokens", "epochs")  # units of the work up to convergence
STEPS = "steps"
ALL_SIZES, SAME_SIZE = "all-sizes", "same-size"
NONE = np.array(None)  # of an array of objects
P_DIGITS = 3  # significant: the rest is arithmetic


@dataclass(frozen=True, slots=True)
class EntryRuns:
    """The counted runs of one entry, each distinct log once: minutes, and counts at convergence
    where all have them.
    """

    minutes: Sequence[float]
    counts: Sequence[float]


NO_UNITS: Mapping[tuple[str, str], str] = {}


@dataclass(frozen=True, slots=True)
class Family:
    """The measurements of one round, benchmark and division in the order of their scores.

    `p` has a row and a column for each, NaN where a pair was not tested.
    """

    keys: Sequence[Key]
    shares_logs: npt.NDArray[np.bool_]
    p: Numbers

    @property
    def is_tied(self) -> npt.NDArray[np.bool_]:
        return self.shares_logs | (self.p >= ALPHA)


@dataclass(frozen=True, slots=True)
class PairTests:
    """Tested pairs of entries, by their position in `keys`, the lower score first.

    `corrected` is NaN for two of different rounds, `speed_p` unless both are of one size and have
    minutes per sample.
    """

    keys: Sequence[Key]
    first: Integers
    second: Integers
    p: Numbers
    corrected: Numbers
    wrong_order: Numbers
    speed_p: Numbers


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """What follows from the runs: the row of each entry that has an interval, the intervals, and
    tests of pairs.
    """

    rows: Mapping[Key, int]
    runs: Runs
    intervals: Intervals
    families: Mapping[tuple[Any, ...], Family]
    pairs: PairTests


def get_size(record: Record) -> Size | None:
    """Return the chips of an entry, with the nodes of one without any; None where they are not
    known.
    """
    chip_count = record["chip_count"]
    if chip_count is None:
        return None
    return chip_count, None if chip_count else record.get("nodes")


def _choose_unit(runs: Sequence[LoggedRun]) -> EntryRuns:
    """Use the first unit that every run has; counts of zero say nothing."""
    units = ([getattr(run, name) for run in runs] for name in COUNTS)
    counts = next(
        (unit for unit in units if all(count is not None and count > 0 for count in unit)), ()
    )
    return EntryRuns([run.minutes for run in runs], counts)


def assess_runs(
    entries: Sequence[Record],
    runs: RunsByEntry,
    known: Rules,
    units: Mapping[tuple[str, str], str] = NO_UNITS,
) -> RunEvidence:
    """Estimate the interval of every scored entry and test pairs: all of one ranking, and a
    submitter's progress.

    `units` are those of the reference, by round and benchmark.
    """
    counted = {
        key: kept
        for key, of_entry in runs.items()
        if len(kept := keep_counted(of_entry)) >= MIN_RUNS
    }
    scored = sorted(
        ({**entry, "size": get_size(entry)} for entry in entries if entry["minutes"] is not None),
        key=lambda entry: (entry["minutes"], *get_key(entry)),
    )
    families = {
        name: list(_list_measurements(of_family))
        for name, of_family in _group(scored, FAMILY).items()
    }
    usable = [entry for entry in scored if get_key(entry) in counted]
    rows = {get_key(entry): row for row, entry in enumerate(usable)}
    arrays = _make_arrays(usable, [_choose_unit(counted[key]) for key in rows], known, units)
    groups: list[list[Hashable]] = [
        [tuple(entry.get(name) for name in names) for names in GROUPS] for entry in usable
    ]
    tested, pairs = _test_families(
        families, _list_successions(usable), rows, arrays, list_shared_logs(runs)
    )
    pairs = replace(
        pairs, speed_p=_test_speeds(pairs, [entry["size"] for entry in usable], counted)
    )
    return RunEvidence(rows, arrays, estimate_intervals(arrays, groups), tested, pairs)


def _list_measurements(entries: Sequence[Record]) -> Iterator[Record]:
    """Yield the entries of a ranking without those that repeat the measurement of another; the
    first path is kept.
    """
    first: dict[Any, Key] = {}
    for entry in sorted(entries, key=get_key):
        first.setdefault(_get_measurement(entry), get_key(entry))
    kept = set(first.values())
    return (entry for entry in entries if get_key(entry) in kept)


def _get_measurement(entry: Record) -> Any:
    return entry.get("same_as") or entry.get("result_id") or get_key(entry)


def _group(entries: Iterable[Record], names: Sequence[str]) -> dict[tuple[Any, ...], list[Record]]:
    """Group entries by columns of which none is null."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for entry in entries:
        values = tuple(entry.get(name) for name in names)
        if None not in values:
            groups[values].append(entry)
    return groups


def _list_successions(entries: Sequence[Record]) -> Iterator[tuple[Key, Key]]:
    """Yield a submitter's measurements of one size in two successive rounds, the lower score first."""
    for of_system in _group(entries, SUCCESSION).values():
        rounds = sorted({entry["round"] for entry in of_system}, key=round_key)
        following = dict(pairwise(rounds))
        for a, b in combinations(of_system, 2):
            follows = b["round"] == following.get(a["round"]) or a["round"] == following.get(
                b["round"]
            )
            if follows and _get_measurement(a) != _get_measurement(b):
                yield get_key(a), get_key(b)


def _make_arrays(
    entries: Sequence[Record],
    runs: Sequence[EntryRuns],
    known: Rules,
    units: Mapping[tuple[str, str], str],
) -> Runs:
    drops = [known.benchmark(entry["benchmark"]).drop for entry in entries]
    missing = [entry["n_runs"] - entry["n_success"] for entry in entries]
    return make_runs(
        [each.minutes for each in runs],
        [each.counts or [float("nan")] * len(each.minutes) for each in runs],
        [(drop, drop - absent) for drop, absent in zip(drops, missing, strict=True)],
        [
            _find_reference(entry, units.get((entry["round"], entry["benchmark"])))
            for entry in entries
        ],
    )


def _find_reference(entry: Record, unit: str | None) -> float:
    """Return what the reference needs over what the entry needed, 0 where nothing is normalised or
    none is known.

    A scaling factor above 1 is that ratio. Without one, the reference needs at most as much as the
    entry.
    """
    if entry["scaling_factor"] > 1:
        return float(entry["scaling_factor"])
    if not entry.get("normalised") or entry.get("reference_to_converge") is None:
        return 0.0
    own = entry["samples_to_converge" if unit == STEPS else f"{unit}_to_converge"]
    own = own / entry["global_batch_size"] if own and unit == STEPS else own
    return min(entry["reference_to_converge"] / own, 1.0) if own else 0.0


def list_shared_logs(runs: RunsByEntry) -> Iterator[tuple[Key, Key]]:
    """Yield the pairs of entries that have a log in common, byte for byte, in both orders."""
    holders: dict[str, set[Key]] = defaultdict(set)
    for key, of_entry in runs.items():
        for digest in {run.sha256 for run in of_entry if run.sha256 is not None}:
            holders[digest].add(key)
    for keys in holders.values():
        yield from permutations(keys, 2)


def _test_families(
    members: Mapping[tuple[Any, ...], Sequence[Record]],
    successions: Iterable[tuple[Key, Key]],
    rows: Mapping[Key, int],
    runs: Runs,
    sharing: Iterable[tuple[Key, Key]],
) -> tuple[dict[tuple[Any, ...], Family], PairTests]:
    """Test all pairs at once, then take them apart."""
    keys = {name: [get_key(entry) for entry in of_family] for name, of_family in members.items()}
    # Entries without a row of runs come after those with one: they are in no test, but may share a
    # log.
    numbers = {key: number for number, key in enumerate(dict.fromkeys(chain(rows, *keys.values())))}
    families = [np.array([numbers[key] for key in of_family]) for of_family in keys.values()]
    triangles = [of_family[np.stack(np.triu_indices(len(of_family), 1))] for of_family in families]
    following = (
        np.array([[numbers[a], numbers[b]] for a, b in successions], dtype=np.int64)
        .reshape(-1, 2)
        .T
    )
    first, second = np.concatenate([*triangles, following], axis=1)
    shared = [
        numbers[a] * len(numbers) + numbers[b] for a, b in sharing if a in numbers and b in numbers
    ]
    shares = np.isin(first * len(numbers) + second, shared)
    is_tested = (np.maximum(first, second) < len(rows)) & ~shares
    tested = compare_pairs(runs, first[is_tested], second[is_tested])
    p, corrected, wrong_order = (np.full(len(first), np.nan) for _ in range(3))
    p[is_tested] = _round_digits(tested.p)
    wrong_order[is_tested] = _round_digits(tested.wrong_order)
    ends = np.cumsum([len(of_family[0]) for of_family in triangles])
    own_pairs = np.split(np.arange(len(first)), ends)[:-1]
    for own in (pairs[is_tested[pairs]] for pairs in own_pairs):
        corrected[own] = _round_digits(adjust_for_many(p[own]))
    columns = (first, second, p, corrected, wrong_order, np.full(len(first), np.nan))
    tests = PairTests(list(rows), *(values[is_tested] for values in columns))
    return {
        name: Family(of_family, _fill(shares[own], len(of_family)), _fill(p[own], len(of_family)))
        for (name, of_family), own in zip(keys.items(), own_pairs, strict=True)
    }, tests


def _test_speeds(pairs: PairTests, sizes: Sequence[Size | None], runs: RunsByEntry) -> Numbers:
    """Test pairs of one size by the minutes per sample of their runs; NaN for the others."""
    speeds = [
        [run.minutes_per_sample for run in runs[key] if run.minutes_per_sample is not None]
        for key in pairs.keys
    ]
    enough = [
        size is not None and len(own) >= MIN_RUNS for size, own in zip(sizes, speeds, strict=True)
    ]
    is_known = np.array(enough, dtype=bool)
    known = list(compress(speeds, enough))
    arrays = make_runs(known, known, [(0, 0)] * len(known), [0.0] * len(known))
    rows = np.where(is_known, np.cumsum(is_known) - 1, -1)
    numbers = {size: number for number, size in enumerate(dict.fromkeys(sizes))}
    size = np.array([numbers[size] for size in sizes], dtype=np.int64)
    first = rows[pairs.first]
    second = rows[pairs.second]
    is_tested = (size[pairs.first] == size[pairs.second]) & (first >= 0) & (second >= 0)
    p = np.full(len(first), np.nan)
    p[is_tested] = _round_digits(compare_pairs(arrays, first[is_tested], second[is_tested]).p)
    return p


def _fill(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Fill a symmetric matrix from the values of its pairs; the diagonal is 0 or NaN."""
    matrix = np.full((size, size), np.nan if values.dtype.kind == "f" else 0, dtype=values.dtype)
    first, second = np.triu_indices(size, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def _round_digits(values: Numbers) -> Numbers:
    """Round by decimal text: NumPy's powers and logarithms have other last bits on other
    processors.
    """
    unique, inverse = np.unique(values, return_inverse=True)
    return np.array([float(f"{value:.{P_DIGITS}g}") for value in unique.tolist()])[inverse]


def describe_interval(entry: Record, evidence: RunEvidence) -> dict[str, Any]:
    """Return the columns of an entry that its interval fills."""
    row = evidence.rows.get(get_key(entry))
    if row is None:
        scored = entry["minutes"] is not None
        reason = (
            f"fewer than {MIN_RUNS} counted runs with different logs"
            if scored
            else "it has no score"
        )
        return {"no_interval_reason": reason}
    return {
        "minutes_low": entry["minutes"] * float(evidence.intervals.low[row]),
        "minutes_high": entry["minutes"] * float(evidence.intervals.high[row]),
        "interval_method": evidence.intervals.methods[row],
        "interval_runs": int(evidence.runs.n[row]),
    }


def list_pair_tests(evidence: RunEvidence) -> dict[str, npt.NDArray[np.object_]]:
    """Return the columns of `mlperf_pair_tests` in the order of its key."""
    pairs = evidence.pairs
    ranks = np.argsort(sorted(range(len(pairs.keys)), key=pairs.keys.__getitem__))
    order = np.lexsort((ranks[pairs.second], ranks[pairs.first]))
    rounds, paths = np.array(pairs.keys, dtype=object).reshape(-1, 2).T
    figures = {
        "p_value": pairs.p,
        "p_value_corrected": pairs.corrected,
        "wrong_order_probability": pairs.wrong_order,
    }
    figures["speed_p_value"] = pairs.speed_p
    return {
        "round": rounds[pairs.first[order]],
        "path": paths[pairs.first[order]],
        "other_round": rounds[pairs.second[order]],
        "other_path": paths[pairs.second[order]],
        **{
            name: np.where(np.isnan(values), NONE, values)[order]
            for name, values in figures.items()
        },
    }


def resolve_rankings(entries: Iterable[Record], evidence: RunEvidence) -> list[dict[str, Any]]:
    """Return one row per ranking: a round, division and benchmark, with all sizes and per size of
    the system.
    """
    sizes: dict[Key, Size | None] = {}
    scored: Counter[tuple[Any, ...]] = Counter()
    unscored: Counter[tuple[Any, ...]] = Counter()
    for entry in entries:
        sizes[get_key(entry)] = size = get_size(entry)
        # with all its logs it has no official score
        if entry["minutes"] is not None or entry.get("logs_missing"):
            counts = unscored if entry["minutes"] is None else scored
            counts.update((*(entry[name] for name in FAMILY), of_size) for of_size in {None, size})
    rankings: list[tuple[tuple[Any, ...], list[int]]] = []
    for name, family in evidence.families.items():
        by_size: dict[Size | None, list[int]] = defaultdict(list)
        for place, key in enumerate(family.keys):
            by_size[sizes[key]].append(place)
        rankings.append(((*name, None), list(range(len(family.keys)))))
        rankings += [
            ((*name, size), places) for size, places in by_size.items() if size is not None
        ]
    rankings.sort(
        key=lambda ranking: (round_key(ranking[0][0]), *ranking[0][1:3], _sort_size(ranking[0][3]))
    )
    return [
        _resolve(name, evidence.families[name[:3]], places)
        | {
            "entries": scored[name],
            "measurements": len(places),
            "unscored": unscored[name],
        }
        for name, places in rankings
    ]


def _sort_size(size: Size | None) -> tuple[int, ...]:
    return () if size is None else (size[0], size[1] or 0)


def _resolve(name: tuple[Any, ...], family: Family, places: Sequence[int]) -> dict[str, Any]:
    pairs = places[:-1], places[1:]
    p = family.p[pairs]
    is_tested = ~np.isnan(p)
    shared = int(family.shares_logs[pairs].sum())
    groups = list(_find_tied_groups(family.is_tied[np.ix_(places, places)]))
    round_, benchmark, division, size = name
    chip_count, nodes = size or (None, None)
    of_size = [] if chip_count is None else [chip_count if nodes is None else f"{nodes}-nodes"]
    scope = ALL_SIZES if size is None else SAME_SIZE
    return {
        "ranking": "/".join(map(str, (round_, benchmark, division, scope, *of_size))),
        "round": round_,
        "benchmark": benchmark,
        "division": division,
        "scope": scope,
        "chip_count": chip_count,
        "nodes": nodes,
        "neighbouring_pairs": len(places) - 1,
        "shared_log_pairs": shared,
        "untested_pairs": len(places) - 1 - shared - int(is_tested.sum()),
        "separable_pairs": int((p[is_tested] < ALPHA).sum()),
        "separable_pairs_corrected": int((adjust_for_many(p[is_tested]) < ALPHA).sum()),
        "tied_groups": len(groups),
        "largest_tied_group": max(groups, default=0),
    }


def _find_tied_groups(is_tied: npt.NDArray[np.bool_]) -> Iterator[int]:
    """Yield the size of each group of neighbours of which no two can be separated and that no
    neighbour extends.
    """
    reached = 0
    for first in range(len(is_tied)):
        last = first
        while last + 1 < len(is_tied) and is_tied[first : last + 1, last + 1].all():
            last += 1
        if last > max(first, reached - 1):
            yield last - first + 1
        reached = max(reached, last + 1)
