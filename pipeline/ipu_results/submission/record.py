"""Hold the rows of a bundle against the record: copied rows, thousandfold figures, plausibility, nearest rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.comparison.candidates import Row, load_rows
from ipu_results.comparison.compare import compare_with_rows
from ipu_results.comparison.comparison import UNVERIFIED, Comparison
from ipu_results.comparison.measurement import FIELDS, build_measurement
from ipu_results.comparison.words import KnownWords
from ipu_results.submission.consistency import find_inconsistencies
from ipu_results.submission.copies import FigureIndex, find_copied_table, find_copies
from ipu_results.submission.fault import Fault
from ipu_results.submission.power import PowerEvidence, compute_rate_at_rating, find_wrong_power

THOUSAND = 3.0  # decimal powers that a wrong unit adds
NEAR = 0.5  # decimal powers by which the nearest row may itself be off


def compare_rows(
    connection: duckdb.DuckDBPyConnection, words: KnownWords, rows: Sequence[Row], document_id: str
) -> list[tuple[Row, Comparison | None, list[Fault]]]:
    """Return each row with its comparison, None where it has no figure to compare, and what is wrong with it."""
    others = [row for row in load_rows(connection) if row["document_id"] != document_id and row["same_as"] is None]
    index, evidence = FigureIndex(others), PowerEvidence(connection, words)
    candidates: dict[str, list[Row]] = defaultdict(list)
    for other in others:
        candidates[other["network"]].append(other)
    compared = []
    shared_figures = []
    for row in rows:
        place = f"results.csv, row {row['row_number']}"
        shared = list(index.find(row))
        faults = list(find_copies(row, candidates[row["network"]], shared, place))
        faults += find_inconsistencies(row, words, place)
        faults += find_wrong_power(row, evidence, place)
        comparison = None
        if any(row.get(name) is not None for name in ("throughput", "latency_ms", "efficiency", "power_w", "minutes")):
            comparison = _compare_row(row, candidates[row["network"]], words, place)
            faults += _find_impossible(comparison, place)
            faults += _find_thousandfold(comparison, place)
        if row["energy_per_item_j"] and not row["efficiency"]:
            implied = {**row, "efficiency": 1 / row["energy_per_item_j"]}
            faults += _find_thousandfold(
                _compare_row(implied, candidates[row["network"]], words, place), place, "1 / energy per item"
            )
        if rate := compute_rate_at_rating(row, evidence):
            implied = {**row, "throughput": rate, "efficiency": None, "power_w": None}
            text = "rated power over energy per item"
            faults += _find_thousandfold(_compare_row(implied, candidates[row["network"]], words, place), place, text)
        compared.append((row, comparison, faults))
        shared_figures.append((row, shared))
    if compared and not any(fault.reason == "copied" for fault in compared[0][2]):
        compared[0][2].extend(find_copied_table(shared_figures))
    return compared


def _compare_row(row: Row, candidates: Sequence[Row], words: KnownWords, place: str) -> Comparison:
    values = {name: row.get(name) for name in FIELDS if name not in ("model", "precision", "suspect", "run_id")}
    values |= {"model": row["network"], "precision": row["effective_precision"]}
    ours = build_measurement(values, words, label=place, local=True)
    return compare_with_rows(ours, candidates, words)


def load_publishers(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the names of those whose figures the record has, submitters excluded."""
    sql = "SELECT DISTINCT publisher FROM documents WHERE kind <> 'submission'"
    return frozenset(row["publisher"] for row in run_query(connection, sql).to_pylist())


def _find_impossible(comparison: Comparison, place: str) -> Iterator[Fault]:
    for check in comparison.checks:
        if check.outcome == "impossible":
            yield Fault("implausible", f"{check.name}: {check.message}", place)


def _find_thousandfold(comparison: Comparison, place: str, computed: str | None = None) -> Iterator[Fault]:
    """Yield a fault for a figure that is about 1000 or 1,000,000 times, or such a part of, a row of the same chip.

    `computed` names how the figure follows from those of the row, None for a stated one.
    """
    ours = comparison.measurement
    for match in comparison.matches:
        same = ours.platform == match.row["platform"] or (ours.chip is not None and ours.chip == match.row["chip"])
        if match.group in UNVERIFIED or not same:
            continue
        for ratio in match.ratios:
            per_chip = match.ratio_per_chip if ratio.figure == "throughput" else None
            power = math.log10(per_chip or ratio.ratio)
            steps = round(power / THOUSAND)
            if steps and abs(power - steps * THOUSAND) <= NEAR:
                row = match.row
                nearest = f"{row['publisher']}, {row['platform']}, batch {row['batch_size']}, result {row['result_id']}"
                name = f"{computed}, a {ratio.figure} of {ratio.ours:.4g}," if computed else ratio.figure
                message = f"{name} is {per_chip or ratio.ratio:.3g} times that of the nearest row ({nearest})"
                hint = "J for mJ" if computed else "ms for s or µs"
                yield Fault("unit", f"{message}: is the unit right ({hint})?", place)
                return


def describe_row(row: Row) -> Mapping[str, Any]:
    """Return the columns of a published row that have a value."""
    return {name: value for name, value in row.items() if value is not None}
