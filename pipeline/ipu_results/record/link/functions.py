"""What the statements of `schema/links` call that is not relational: names of the vocabulary, the
rules of MLPerf scores, their intervals, and the tests of pairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ipu_results.kit.sql import Connection
from ipu_results.mlperf.interval import Runs, estimate_intervals, make_runs
from ipu_results.mlperf.reference import ReferencePoint, find_reference, prune_points
from ipu_results.mlperf.rules import (
    BETWEEN_FINDINGS,
    format_attribution,
    load_rules,
    olympic_mean,
    summarise_findings,
)
from ipu_results.mlperf.separation import compare_pairs
from ipu_results.mlperf.summary import describe_mean
from ipu_results.record.link.machines import parse_machine
from ipu_results.schema.vocabulary import Vocabulary

Struct = dict[str, Any]
"""A structure of SQL, as Python reads and returns it."""
Caller = Callable[..., Any]
"""Calls a function with arguments, or returns what such a call returned before."""
MACHINE = "STRUCT(platform VARCHAR, processor VARCHAR, virtual_cpus BIGINT, evidence VARCHAR)"
POINT = "STRUCT(batch BIGINT, mean DOUBLE)"
REFERENCE = "STRUCT(mean DOUBLE, method VARCHAR)"
INTERVAL = "STRUCT(mean DOUBLE, low DOUBLE, high DOUBLE)"
ATTRIBUTED = (
    "STRUCT(round VARCHAR, division VARCHAR, benchmark VARCHAR, submitter VARCHAR, path VARCHAR)"
)


def define_functions(connection: Connection, vocabulary: Vocabulary) -> None:
    """Define what the statements call of the vocabulary and of the rules of scores."""
    functions: dict[str, tuple[Callable[..., Any], Any, str]] = {
        "name_platform": (vocabulary.name_platform, ["VARCHAR"], "VARCHAR"),
        "refine_chip": (vocabulary.refine_chip, ["VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR"),
        "parse_machine": (_parse_machine, ["VARCHAR"], MACHINE),
        "find_drop": (_find_drop, ["VARCHAR"], "BIGINT"),
        "olympic_mean": (olympic_mean, ["DOUBLE[]", "BIGINT", "BIGINT"], "DOUBLE"),
        "prune_points": (_prune_points, [f"{POINT}[]"], f"{POINT}[]"),
        "find_reference": (_find_reference, [f"{POINT}[]", "BIGINT"], REFERENCE),
        "describe_mean": (_describe_mean, ["DOUBLE[]"], INTERVAL),
        "summarise_findings": (
            _summarise_findings,
            ["DOUBLE", "DOUBLE", "VARCHAR[]", "VARCHAR[]", "DOUBLE[]"],
            "VARCHAR",
        ),
        "format_attribution": (format_attribution, [ATTRIBUTED, "VARCHAR", "DATE"], "VARCHAR"),
    }
    takes_null: Any = "special"  # else a function may not return one
    for name, (function, parameters, result) in functions.items():
        connection.create_function(name, function, parameters, result, null_handling=takes_null)


def _parse_machine(environment: str) -> Struct | None:
    machine = parse_machine(json.loads(environment))
    return None if machine is None else asdict(machine)


def _find_drop(benchmark: str) -> int:
    return load_rules().benchmark(benchmark).drop


def _prune_points(points: Sequence[Struct] | None) -> list[Struct]:
    if not points:
        return []
    kept = prune_points([ReferencePoint(**point) for point in points])
    return [point._asdict() for point in kept]


def _find_reference(points: Sequence[Struct] | None, batch: int | None) -> Struct | None:
    if points is None or batch is None:
        return None
    found = find_reference([ReferencePoint(**point) for point in points], batch)
    if found is None:
        return None
    mean, method = found
    return {"mean": mean, "method": method}


def _describe_mean(values: Sequence[float] | None) -> dict[str, float | None] | None:
    if not values:
        return None
    mean, low, high = describe_mean(values)
    return {"mean": mean, "low": low, "high": high}


def _summarise_findings(
    factor: float | None,
    expected: float | None,
    findings: Sequence[str] | None,
    seeds: Sequence[str | None] | None,
    minutes: Sequence[float],
) -> str | None:
    of_runs = [text.split(BETWEEN_FINDINGS) for text in findings or ()]
    return summarise_findings(factor, expected, of_runs, seeds or (), minutes)


class Entries(NamedTuple):
    """Entries that have runs, in the order of their places."""

    places: npt.NDArray[np.int64]
    runs: Runs
    alike: list[Any]
    """The group of each: the entries of a group are alike."""


def _fetch_entries(connection: Connection, name: str) -> Entries:
    """Return the entries of a relation that have runs."""
    rows = connection.sql(f"FROM {name} WHERE run_minutes IS NOT NULL ORDER BY place")
    entries = rows.to_arrow_table()
    columns = ("run_minutes", "counts", "dropped", "reference")
    runs = make_runs(*(entries[column].to_pylist() for column in columns))
    return Entries(entries["place"].to_numpy(), runs, entries["alike"].to_pylist())


def call_directly(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function: what a cache may do in its place."""
    return function(*arguments)


def _estimate_intervals(connection: Connection, call: Caller) -> dict[str, Any]:
    """Return the interval of each entry with runs, relative to its score."""
    entries = _fetch_entries(connection, "scored")
    intervals = call(estimate_intervals, entries.runs, entries.alike)
    return {
        "place": entries.places,
        "low": intervals.low,
        "high": intervals.high,
        "method": pa.array(intervals.methods, pa.string()),
    }


def _compare_pairs(
    connection: Connection,
    call: Caller,
    entries: str,
    condition: str,
    one_batch: str,
) -> dict[str, Any]:
    """Return what the runs of `entries` say of the pairs with a condition: p of equal means, the
    probability that their order is wrong, and which test it is.

    `one_batch` is the expression for pairs whose runs may be dealt out again.
    """
    fetched = _fetch_entries(connection, entries)
    pairs = connection.sql(
        f"SELECT first, second, {one_batch} AS one_batch FROM pairs WHERE {condition} ORDER BY ALL"
    ).fetchnumpy()
    first = np.searchsorted(fetched.places, pairs["first"])
    second = np.searchsorted(fetched.places, pairs["second"])
    tested = call(compare_pairs, fetched.runs, first, second, fetched.alike, pairs["one_batch"])
    return {
        "first": pairs["first"],
        "second": pairs["second"],
        "p": tested.p,
        "wrong_order": tested.wrong_order,
        "test": pa.array(tested.tests, pa.string()),
    }


COMPUTED: Mapping[str, Callable[[Connection, Caller], dict[str, Any]]] = {
    "intervals": _estimate_intervals,
    "p_values": partial(
        _compare_pairs, entries="scored", condition="is_tested", one_batch="one_batch"
    ),
    "speed_p_values": partial(
        _compare_pairs, entries="paced", condition="is_tested AND has_speeds", one_batch="TRUE"
    ),
}
"""The columns of relations that are computed from those before them, by the name of the relation in
`schema/order.toml`.
"""
