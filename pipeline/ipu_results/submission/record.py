"""Hold the rows of a bundle against the record: copied rows, thousandfold figures, plausibility, nearest rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.comparison.candidates import Row, load_candidates
from ipu_results.comparison.compare import compare_with_rows
from ipu_results.comparison.comparison import UNVERIFIED, Comparison
from ipu_results.comparison.measurement import FIELDS, build_measurement
from ipu_results.comparison.words import KnownWords
from ipu_results.schema import table
from ipu_results.submission.fault import Fault

FIGURES = tuple(column.name for column in table("results").columns if column.figure)
# Significant digits of equal figures from which a row counts as copied: on one machine and batch, and elsewhere.
DIGITS_OF_SAME, DIGITS_OF_OTHER = 4, 6
ROWS_OF_TABLE = 3  # rows with figures of one document from which a table counts as copied
THOUSAND = 3.0  # decimal powers that a wrong unit adds
NEAR = 0.5  # decimal powers by which the nearest row may itself be off
COPIED_COLUMNS = ("task", "platform", "batch_size")


def compare_rows(
    connection: duckdb.DuckDBPyConnection, words: KnownWords, rows: Sequence[Row], document_id: str
) -> list[tuple[Row, Comparison | None, list[Fault]]]:
    """Return each row with its comparison, None where it has no figure to compare, and what is wrong with it."""
    candidates: dict[str, list[Row]] = {}
    compared = []
    for row in rows:
        network = row["network"]
        if network not in candidates:
            loaded = load_candidates(connection, network)
            candidates[network] = [other for other in loaded if other["document_id"] != document_id]
        place = f"results.csv, row {row['row_number']}"
        faults = list(_find_copies(row, candidates[network], place))
        comparison = None
        if any(row.get(name) is not None for name in ("throughput", "latency_ms", "efficiency", "power_w", "minutes")):
            values = {name: row.get(name) for name in FIELDS if name not in ("model", "precision", "suspect", "run_id")}
            values |= {"model": network, "precision": row["effective_precision"]}
            ours = build_measurement(values, words, label=place, local=True)
            comparison = compare_with_rows(ours, candidates[network], words)
            faults += _find_impossible(comparison, place)
            faults += _find_thousandfold(comparison, place)
        compared.append((row, comparison, faults))
    _find_copied_table(compared, candidates)
    return compared


def load_publishers(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the names of those whose figures the record has, submitters excluded."""
    sql = "SELECT DISTINCT publisher FROM documents WHERE kind <> 'submission'"
    return frozenset(row["publisher"] for row in run_query(connection, sql).to_pylist())


def count_digits(value: float) -> int:
    """Count the significant digits of a figure, zeros at its end excluded."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def _find_copies(row: Row, others: Sequence[Row], place: str) -> Iterator[Fault]:
    """Yield a fault for a row whose figures are those of a row of the record."""
    for other in others:
        if row["task"] != other["task"]:
            continue
        equal = [name for name in FIGURES if row.get(name) is not None and row[name] == other.get(name)]
        same = all(row[name] == other[name] for name in COPIED_COLUMNS)
        if sum(count_digits(row[name]) for name in equal) >= (DIGITS_OF_SAME if same else DIGITS_OF_OTHER):
            texts = ", ".join(f"{name} {row[name]:.12g}" for name in equal)
            whose = f"{other['publisher']} ({other['document_id']}, result {other['result_id']})"
            if other["origin"] == "emulated":
                message = f"{texts}: the figure of the emulator, {whose}; hand in what was measured"
                yield Fault("emulated", message, place)
            else:
                message = f"{texts}: the record has this figure from {whose}; hand in figures of your own"
                yield Fault("copied", message, place)
            return


def _find_copied_table(
    compared: Sequence[tuple[Row, Comparison | None, list[Fault]]], candidates: Mapping[str, Sequence[Row]]
) -> None:
    """Add a fault to the first row if most rows have the figures of one document, whatever the machine is called."""
    equal_rows: dict[str, set[tuple[float, ...]]] = {}
    for row, _, _ in compared:
        for other in candidates[row["network"]]:
            if all(row[name] == other[name] for name in ("task", "batch_size")):
                equal = tuple(
                    row[name] for name in FIGURES if row.get(name) is not None and row[name] == other.get(name)
                )
                if sum(map(count_digits, equal)) >= DIGITS_OF_SAME:
                    equal_rows.setdefault(f"{other['publisher']} ({other['document_id']})", set()).add(equal)
    for whose, figures in equal_rows.items():
        faults = compared[0][2]
        if len(figures) >= max(ROWS_OF_TABLE, len(compared) / 2) and not any(own.reason == "copied" for own in faults):
            message = f"{len(figures)} of {len(compared)} rows have figures that the record has from {whose}"
            faults.append(Fault("copied", f"{message}, of another machine; hand in figures of your own", "results.csv"))


def _find_impossible(comparison: Comparison, place: str) -> Iterator[Fault]:
    for check in comparison.checks:
        if check.outcome == "impossible":
            yield Fault("implausible", f"{check.name}: {check.message}", place)


def _find_thousandfold(comparison: Comparison, place: str) -> Iterator[Fault]:
    """Yield a fault for a figure that is about 1000 or 1,000,000 times, or such a part of, a row of the same chip."""
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
                message = f"{ratio.figure} is {per_chip or ratio.ratio:.3g} times that of the nearest row ({nearest})"
                yield Fault("unit", f"{message}: is the unit right (ms for s or µs)?", place)
                return


def describe_row(row: Row) -> Mapping[str, Any]:
    """Return the columns of a published row that have a value."""
    return {name: value for name, value in row.items() if value is not None}
