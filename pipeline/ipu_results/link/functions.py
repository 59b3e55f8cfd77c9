"""What the statements of `schema/links` call that is not relational: names of the vocabulary, the
rules of MLPerf scores, their intervals, and the tests of pairs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ipu_results.link.machines import parse_machine
from ipu_results.mlperf.interval import (
    COVERAGE,
    DIGITS,
    MIN_RUNS,
    Integers,
    Numbers,
    Runs,
    compute_t_quantile,
    estimate_intervals,
    make_runs,
)
from ipu_results.mlperf.reference import ReferencePoint, find_reference, prune_points
from ipu_results.mlperf.rules import (
    BETWEEN_FINDINGS,
    format_attribution,
    load_rules,
    olympic_mean,
    summarise_findings,
)
from ipu_results.mlperf.separation import compare_pairs
from ipu_results.schema.vocabulary import Vocabulary

MACHINE = "STRUCT(platform VARCHAR, processor VARCHAR, virtual_cpus BIGINT, evidence VARCHAR)"
POINT = "STRUCT(batch BIGINT, mean DOUBLE)"
REFERENCE = "STRUCT(mean DOUBLE, method VARCHAR)"
INTERVAL = "STRUCT(mean DOUBLE, low DOUBLE, high DOUBLE)"
PAIR = ["first", "second"]
ATTRIBUTED = (
    "STRUCT(round VARCHAR, division VARCHAR, benchmark VARCHAR, submitter VARCHAR, path VARCHAR)"
)


def define_functions(connection: duckdb.DuckDBPyConnection, vocabulary: Vocabulary) -> None:
    """Define what the statements call of the vocabulary and of the rules of scores."""
    functions: dict[str, tuple[Callable[..., Any], Any, str]] = {
        "name_platform": (vocabulary.name_platform, ["VARCHAR"], "VARCHAR"),
        "name_chip": (vocabulary.name_chip, ["VARCHAR"], "VARCHAR"),
        "parse_machine": (_parse_machine, ["VARCHAR"], MACHINE),
        "find_drop": (_find_drop, ["VARCHAR"], "BIGINT"),
        "olympic_mean": (olympic_mean, ["DOUBLE[]", "BIGINT", "BIGINT"], "DOUBLE"),
        "prune_points": (_prune_points, [f"{POINT}[]"], f"{POINT}[]"),
        "find_reference": (_find_reference, [f"{POINT}[]", "BIGINT"], REFERENCE),
        "describe_mean": (_describe_mean, ["DOUBLE[]"], INTERVAL),
        "summarise_findings": (_summarise_findings, ["DOUBLE", "VARCHAR[]"], "VARCHAR"),
        "format_attribution": (format_attribution, [ATTRIBUTED, "VARCHAR", "DATE"], "VARCHAR"),
    }
    takes_null: Any = "special"  # else a function may not return one
    for name, (function, parameters, result) in functions.items():
        connection.create_function(name, function, parameters, result, null_handling=takes_null)


def _parse_machine(environment: str) -> dict[str, Any] | None:
    machine = parse_machine(json.loads(environment))
    return None if machine is None else asdict(machine)


def _find_drop(benchmark: str) -> int:
    return load_rules().benchmark(benchmark).drop


def _prune_points(points: Sequence[dict[str, Any]] | None) -> list[dict[str, Any]]:
    if points is None:
        return []
    return [point._asdict() for point in prune_points([ReferencePoint(**own) for own in points])]


def _find_reference(
    points: Sequence[dict[str, Any]] | None, batch: int | None
) -> dict[str, Any] | None:
    if points is None or batch is None:
        return None
    found = find_reference([ReferencePoint(**point) for point in points], batch)
    return None if found is None else dict(zip(("mean", "method"), found, strict=True))


def _describe_mean(values: Sequence[float] | None) -> dict[str, float | None] | None:
    """Return the mean with its interval by Student's t, which two values do not give."""
    if not values:
        return None
    mean = fmean(values)
    n = len(values)
    if n < MIN_RUNS:
        return {"mean": mean, "low": None, "high": None}
    # statistics.stdev sums fractions; the digits kept of an end do not need them
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = compute_t_quantile(COVERAGE, n - 1) * error / mean
    low = mean * max(round(1 - half, DIGITS), 0.0)
    return {"mean": mean, "low": low, "high": mean * round(1 + half, DIGITS)}


def _summarise_findings(factor: float | None, findings: Sequence[str] | None) -> str | None:
    return summarise_findings(factor, [text.split(BETWEEN_FINDINGS) for text in findings or ()])


def estimate_score_intervals(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the interval of each entry of `scored` that has enough runs, relative to its score."""
    scored = _fetch_scored(connection)
    intervals = estimate_intervals(_make_runs(scored), scored["alike"].to_pylist())
    methods = pa.array(intervals.methods, pa.string())
    columns = [scored["place"], pa.array(intervals.low), pa.array(intervals.high), methods]
    return pa.table(columns, names=["place", "low", "high", "method"])


def compute_p_values(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return for each tested pair of `pairs` p of equal scores, the probability that their order is
    wrong, and p of equal speeds.
    """
    scored = _fetch_scored(connection)
    pairs = connection.sql("FROM pairs WHERE is_tested ORDER BY first, second").to_arrow_table()
    places = scored["place"].to_numpy()
    first, second = (np.searchsorted(places, pairs[name].to_numpy()) for name in PAIR)
    tested = compare_pairs(_make_runs(scored), first, second)
    has_speeds = pairs["has_speeds"].to_numpy()
    speed_p = np.full(len(first), np.nan)
    speed_p[has_speeds] = _test_speeds(scored, first[has_speeds], second[has_speeds])
    figures = [
        pa.array(tested.p),
        pa.array(tested.wrong_order),
        pa.array(speed_p, from_pandas=True),
    ]
    return pa.table(
        [*pairs.select(PAIR).columns, *figures], names=[*PAIR, "p", "wrong_order", "speed_p"]
    )


def _fetch_scored(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    return connection.sql(
        "FROM scored WHERE run_minutes IS NOT NULL ORDER BY place"
    ).to_arrow_table()


def _make_runs(scored: pa.Table) -> Runs:
    minutes = scored["run_minutes"].to_pylist()
    counts = [
        known or [math.nan] * len(own)
        for known, own in zip(scored["counts"].to_pylist(), minutes, strict=True)
    ]
    dropped = zip(scored["fastest"].to_pylist(), scored["slowest"].to_pylist(), strict=True)
    return make_runs(minutes, counts, list(dropped), scored["reference"].to_pylist())


def _test_speeds(scored: pa.Table, first: Integers, second: Integers) -> Numbers:
    """Return p of equal minutes per sample of the runs of two entries, which have enough of them."""
    speeds = scored["speeds"]
    known = speeds.drop_null().to_pylist()
    rows = np.cumsum(speeds.is_valid().to_numpy()) - 1
    runs = make_runs(known, known, [(0, 0)] * len(known), [0.0] * len(known))
    return compare_pairs(runs, rows[first], rows[second]).p


COMPUTED = {"intervals": estimate_score_intervals, "p_values": compute_p_values}
"""Relations that are computed from those before them, by their name in `schema/order.toml`."""
