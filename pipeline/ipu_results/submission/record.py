"""Hold the rows of a bundle against the record: copied figures, power that no chip draws, wrong
units, nearest rows.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import duckdb

from ipu_results.comparison.lookups import get_rating
from ipu_results.comparison.measurement import FIELDS, Measurement, build_measurement
from ipu_results.comparison.statements import load_rows
from ipu_results.comparison.verdict import UNVERIFIED, Comparison, compare_with_rows
from ipu_results.comparison.words import KnownWords
from ipu_results.ground import physics
from ipu_results.schema import table
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.submission.refusals import (
    Fault,
    Reason,
    Row,
    count_digits,
    find_inconsistencies,
)

THOUSAND_STEPS = 3.0  # decimal powers that a wrong unit adds
COMPARED = ("throughput", "latency_ms", "efficiency", "power_w", "time_to_train_s")
SECONDS_PER_MINUTE = 60
# the rows that a bundle is held against: not its own, and each measurement once
OTHERS = "document_id <> $document_id AND same_as IS NULL"
NEAR = 0.5  # decimal powers by which the nearest row may itself be off


class ComparedRow(NamedTuple):
    """A row of a bundle, and what is wrong with it."""

    row: Row
    comparison: Comparison | None
    """None where the row has no figure to compare."""
    faults: list[Fault]


def compare_rows(
    connection: duckdb.DuckDBPyConnection, words: KnownWords, rows: Sequence[Row], document_id: str
) -> list[ComparedRow]:
    """Compare the rows of a bundle with those of the record, except those of its own document."""
    others = load_rows(connection, OTHERS, {"document_id": document_id})
    index = FigureIndex(others)
    evidence = PowerEvidence(words)
    comparisons = _compare_all(connection, words, rows, document_id)
    compared: list[ComparedRow] = []
    shared_figures = []
    for row in rows:
        place = _describe_place(row)
        shared = list(index.find(row))
        faults = [
            *find_copies(row, shared, place),
            *find_inconsistencies(row, words, place),
            *find_wrong_power(row, evidence, place),
        ]
        comparison = comparisons.get(place)
        if comparison is not None:
            for check in comparison.checks:
                if check.outcome == "impossible":
                    faults.append(Fault("implausible", f"{check.name}: {check.message}", place))
            faults += _find_thousandfold(comparison, place)
        compared.append(ComparedRow(row, comparison, faults))
        shared_figures.append((row, shared))
    if compared and not any(fault.reason == "copied" for fault in compared[0].faults):
        compared[0].faults.extend(find_copied_table(shared_figures))
    return compared


def _describe_place(row: Row) -> str:
    return f"results.csv, row {row['row_number']}"


def _compare_all(
    connection: duckdb.DuckDBPyConnection, words: KnownWords, rows: Sequence[Row], document_id: str
) -> dict[str, Comparison]:
    """Return the comparisons of the rows that have a figure, by place."""
    stated = [row for row in rows if any(row.get(name) is not None for name in COMPARED)]
    measurements = [_build_measurement(row, words) for row in stated]
    comparisons = compare_with_rows(
        connection,
        measurements,
        f"list_contains($models, model) AND {OTHERS}",
        {"models": sorted({own.model for own in measurements}), "document_id": document_id},
    )
    return {own.measurement.label: own for own in comparisons}


def _build_measurement(row: Row, words: KnownWords) -> Measurement:
    values = {name: row.get(name) for name in FIELDS if name not in ("suspect", "run_id")}
    if row["time_to_train_s"]:
        values["minutes"] = row["time_to_train_s"] / SECONDS_PER_MINUTE
    return build_measurement(values, words, label=_describe_place(row), local=True)


def find_item_latencies(rows: Sequence[Row]) -> set[str]:
    """Return the ids of results whose latency is stated as that of an item, and agrees with at
    least one in flight.
    """
    return {
        row["result_id"]
        for row in rows
        if row["latency_basis"] == physics.PER_ITEM
        and physics.count_items_in_flight(row["throughput"] or 0.0, row["latency_ms"] or 0.0)
        >= physics.MIN_BATCHES_IN_FLIGHT
    }


def _find_thousandfold(comparison: Comparison, place: str) -> Iterator[Fault]:
    """Yield a fault for a figure that is about 1000 or 1,000,000 times, or such a part of, a row of
    the same chip.
    """
    ours = comparison.measurement
    for match in comparison.matches:
        row = match.row
        is_same_chip = ours.chip is not None and ours.chip == row["chip"]
        if match.group in UNVERIFIED or not (is_same_chip or ours.platform == row["platform"]):
            continue
        for ratio in match.ratios:
            factor = ratio.ratio
            if ratio.figure == "throughput" and match.ratio_per_chip:
                factor = match.ratio_per_chip
            power = math.log10(factor)
            steps = round(power / THOUSAND_STEPS)
            if steps and abs(power - steps * THOUSAND_STEPS) <= NEAR:
                nearest = (
                    f"{row['publisher']}, {row['platform']}, batch {row['batch_size']}, result"
                    f" {row['result_id']}"
                )
                message = (
                    f"{ratio.figure} is {factor:.3g} times that of the nearest row ({nearest}): is"
                    " the unit right (ms for s or µs)?"
                )
                yield Fault("unit", message, place)
                return


FIGURES = tuple(own.name for own in table("results").as_filled().columns if own.figure)
TABLE_COLUMNS = ("task", "batch_size")
COPIED_COLUMNS = (*TABLE_COLUMNS, "platform")
# Significant digits of equal figures from which a row counts as copied: on one machine and batch,
# of one model, of any row, and of any row after rounding, a change of unit or a division by the
# chips; and from which it is one of a copied table. By tests/submission/test_submission_evidence.py
# no document of the record has as many in common with another publisher by chance.
DIGITS_OF_SAME = 5
DIGITS_OF_MODEL = 6
DIGITS_OF_ANY = 7
DIGITS_OF_SCALED = 8
DIGITS_OF_TABLE = 4
MIN_DIGITS = 2  # of a figure that counts
MAX_DIGITS = 12  # of a figure; more are not looked up
ROWS_OF_TABLE = 3  # rows with figures of one document from which a table counts as copied
# by which throughput × latency may differ from a batch if one of them was computed from the other
ONE_BATCH = 0.02


class SharedFigures(NamedTuple):
    """Figures that a row has in common with a row of the record; `exact` if none is rounded, scaled
    or per chip.
    """

    other: Row
    names: tuple[str, ...]
    digits: int
    exact: bool


class FigureIndex:
    """The figures of the record by their significant digits, rounded to each number of them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Index rows of `results`, of which none repeats another."""
        self._rows = rows
        self._places: dict[tuple[str, int, str], list[int]] = defaultdict(list)
        for place, row in enumerate(self._rows):
            for name in filter(row.get, FIGURES):
                self._add(name, row[name], count_digits(row[name]), place)
            if row["throughput"] and (row["chip_count"] or 1) > 1:
                per_chip = row["throughput"] / row["chip_count"]
                self._add("throughput", per_chip, count_digits(per_chip), place)

    def _add(self, name: str, value: float, digits: int, place: int) -> None:
        for size in range(MIN_DIGITS, min(digits, MAX_DIGITS) + 1):
            self._places[name, size, _format_digits(value, size)].append(place)

    def find(self, row: Row) -> Iterator[SharedFigures]:
        """Yield the rows of the record that share figures with a row of a bundle, in the order of
        the record.
        """
        names: dict[int, list[str]] = defaultdict(list)
        for name in filter(row.get, FIGURES):
            size = min(count_digits(row[name]), MAX_DIGITS)
            for place in dict.fromkeys(
                self._places.get((name, size, _format_digits(row[name], size)), ())
            ):
                names[place].append(name)
        for place in sorted(names):
            other = self._rows[place]
            shared = tuple(names[place])
            exact = all(row[name] == other[name] for name in shared)
            yield SharedFigures(other, shared, _count_independent_digits(row, shared), exact)


def find_copies(row: Row, shared: Sequence[SharedFigures], place: str) -> Iterator[Fault]:
    """Yield a fault for a row whose figures the record has, of the same model first."""
    of_model = []
    for own in shared:
        if own.other["model"] == row["model"] and own.other["task"] == row["task"]:
            of_model.append(own.other)
    for other in of_model:
        equal = [name for name in FIGURES if row.get(name) and row[name] == other.get(name)]
        is_same = all(row[name] == other[name] for name in COPIED_COLUMNS)
        enough = DIGITS_OF_SAME if is_same else DIGITS_OF_MODEL
        if _count_independent_digits(row, equal) >= enough:
            yield _describe_copy(row, other, equal, place)
            return
    for own in shared:
        if own.digits >= (DIGITS_OF_ANY if own.exact else DIGITS_OF_SCALED):
            yield _describe_copy(row, own.other, own.names, place)
            return


def find_copied_table(rows: Sequence[tuple[Row, Sequence[SharedFigures]]]) -> Iterator[Fault]:
    """Yield a fault if most rows have the figures of one document, whatever machine and model are
    called.
    """
    figures: dict[str, set[tuple[float, ...]]] = defaultdict(set)
    for row, shared in rows:
        for own in shared:
            same = all(row[name] == own.other[name] for name in TABLE_COLUMNS)
            if own.digits >= (DIGITS_OF_TABLE if same else DIGITS_OF_SAME):
                whose = f"{own.other['publisher']} ({own.other['document_id']})"
                figures[whose].add(tuple(row[name] for name in own.names))
    for whose, distinct in figures.items():
        if len(distinct) >= max(ROWS_OF_TABLE, len(rows) / 2):
            message = (
                f"{len(distinct)} of {len(rows)} rows have figures that the record has from {whose}"
            )
            yield Fault(
                "copied",
                f"{message}, under other names; hand in figures of your own",
                "results.csv",
            )
            return


def _format_digits(value: float, size: int) -> str:
    """Return the first digits of a figure, rounded, without its power of ten."""
    return f"{value:.{size - 1}e}".partition("e")[0]


def _count_independent_digits(row: Row, names: Sequence[str]) -> int:
    """Count the digits of figures; of a throughput and a latency that follow from each other, only
    those of one.
    """
    counts = {name: count_digits(row[name]) for name in names}
    digits = {name: count for name, count in counts.items() if count >= MIN_DIGITS}
    if {"throughput", "latency_ms"} <= digits.keys() and row["batch_size"]:
        batches = physics.count_batches_in_flight(
            row["throughput"], row["latency_ms"], row["batch_size"]
        )
        if abs(batches - 1) <= ONE_BATCH:
            return sum(digits.values()) - min(digits["throughput"], digits["latency_ms"])
    return sum(digits.values())


def _describe_copy(row: Row, other: Row, names: Sequence[str], place: str) -> Fault:
    texts = ", ".join(
        f"{name} {row[name]:.12g}"
        + ("" if row[name] == other[name] else f" (there {other[name]:.12g})")
        for name in names
    )
    whose = f"{other['publisher']} ({other['document_id']}, result {other['result_id']})"
    if row["model"] != other["model"]:
        whose += f" for {other['model']} on {other['platform']}"
    if other["origin"] == "emulated":
        return Fault(
            "emulated",
            f"{texts}: the figure of the emulator, {whose}; hand in what was measured",
            place,
        )
    return Fault(
        "copied",
        f"{texts}: the record has this figure from {whose}; hand in figures of your own",
        place,
    )


THOUSAND = 1000.0
HALF_OF_THOUSAND = math.sqrt(THOUSAND)
"""Factor from which a figure is nearer to a thousandfold than to what it is held against. Rows of
the record without an error flag draw 0.55 to 0.99 times the rating of their chips (view
`energy_per_item`); none is idle.
"""
FIT = 10.0  # by which the thousandth of a wrong figure may itself be off
OF_CHIPS = ("device", "board", "package")
# of `conditions`: what the energy of a run covers
HOUR = re.compile(r"\b(?:one|an|1|per) hour\b", re.IGNORECASE)
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class ImpliedPower:
    """Power that figures of a row state or imply, in W."""

    watts: float
    text: str
    digits: int
    """Significant digits of the least precise figure."""


@dataclass(frozen=True, slots=True)
class Rating:
    """Power that a chip is rated for, in W, as a range where no source states it."""

    low: float | None
    """None for a new chip."""
    high: float
    source: str


class PowerEvidence:
    """What the record knows about the power of machines."""

    def __init__(self, words: KnownWords) -> None:
        self._machines = words.machines
        cards = [rated for machine in words.machines.values() if (rated := _rate_card(machine))]
        ratings = [*load_vocabulary().chip_ratings.values(), *cards]
        self._range = (min(ratings), max(ratings))

    def find_rating(self, row: Row) -> Rating:
        """Return the rating of one chip of a row; of a new chip only the highest of the record."""
        machine = self._machines.get(row["platform"], {})
        chip = row["chip"] or machine.get("chip")
        if watts := _rate_card(machine) or (chip and get_rating(chip)):
            return Rating(watts, watts, f"{chip or row['platform']} is rated {watts:g} W a chip")
        low, high = self._range
        if chip and any(chip == other["chip"] for other in self._machines.values()):
            return Rating(low, high, f"chips of the record are rated {low:g} to {high:.4g} W")
        return Rating(None, high, f"no chip of the record is rated more than {high:.4g} W")


def find_wrong_power(row: Row, evidence: PowerEvidence, place: str) -> Iterator[Fault]:
    """Yield a fault for power or energy that the chips cannot draw, or that the figures of the row
    contradict.
    """
    powers = list(_list_powers(row))
    rating = evidence.find_rating(row)
    for own in powers:
        if fault := _check_rating(own, row, rating, place):
            yield fault
            return
    for first, second in combinations(powers, 2):
        ratio = max(first.watts / second.watts, second.watts / first.watts)
        rounding = sum(10.0 ** (1 - own.digits) / 2 for own in (first, second))
        if ratio - 1 > physics.EFFICIENCY_TOLERANCE + rounding:
            reason: Reason = "unit" if ratio >= HALF_OF_THOUSAND else "implausible"
            message = (
                f"{first.text} and {second.text} differ by a factor of {ratio:.4g}; are the units"
                " right?"
            )
            hint = (
                "Power of different scopes or of other runs belongs in rows of their own, with"
                " conditions"
            )
            yield Fault(reason, f"{message} {hint}", place)
            return


def is_energy_unchecked(row: Row) -> bool:
    """Return whether a row has an energy or an efficiency from which no power follows."""
    if row["run_energy_j"] and not _find_time(row):
        return True
    return bool(row["energy_per_item_j"] or row["efficiency"]) and not row["throughput"]


def _find_time(row: Row) -> float | None:
    """Return the time in s in which the energy of a run was drawn, None if it is not stated."""
    time: float | None = row["time_to_train_s"] or row["time_to_result_s"]
    if time is None and HOUR.search(row["conditions"] or ""):
        return SECONDS_PER_HOUR
    return time


def _list_powers(row: Row) -> Iterator[ImpliedPower]:
    """Yield the power that a row states, and that its energy and its efficiency imply."""
    throughput = row["throughput"]
    time = _find_time(row)
    if row["power_w"]:
        yield _build_power("power", row, row["power_w"], "power_w")
    if throughput and row["energy_per_item_j"]:
        watts = throughput * row["energy_per_item_j"]
        yield _build_power(
            "throughput × energy per item", row, watts, "throughput", "energy_per_item_j"
        )
    if throughput and row["efficiency"]:
        watts = physics.compute_power_w(throughput, row["efficiency"])
        yield _build_power("throughput / efficiency", row, watts, "throughput", "efficiency")
    if row["run_energy_j"] and time:
        yield _build_power(
            f"energy / {time:.12g} s", row, row["run_energy_j"] / time, "run_energy_j"
        )


def _build_power(text: str, row: Row, watts: float, *names: str) -> ImpliedPower:
    figures = ", ".join(f"{name} {row[name]:.12g}" for name in names)
    digits = min(count_digits(row[name]) for name in names)
    return ImpliedPower(watts, f"{watts:.4g} W ({text}: {figures})", digits)


def _check_rating(own: ImpliedPower, row: Row, rating: Rating, place: str) -> Fault | None:
    """Return what is wrong with a power, seen from the rating of the chips.

    Power of chips may be that of one of them or of all. A machine draws the power of all its chips,
    but one of many nodes is taken for the machine at times: only a thousandth that fits all chips
    is refused below their rating.
    """
    chips = row["chip_count"] or 0
    if own.watts > HALF_OF_THOUSAND * rating.high * chips > 0:
        return _describe(own, row, rating, place, "more", rating.high * chips)
    if rating.low is None:
        return None
    every = rating.low * (1 if row["power_scope"] in OF_CHIPS else max(chips, 1))
    is_thousandth = own.watts < every / HALF_OF_THOUSAND and _fits(own.watts, every)
    if is_thousandth or own.watts < rating.low / HALF_OF_THOUSAND:
        return _describe(own, row, rating, place, "less", every)
    return None


def _fits(watts: float, expected: float) -> bool:
    """Return whether a power is a thousandth, a thousandfold or such of a plausible one."""
    power = math.log(watts / expected, THOUSAND)
    return bool(round(power)) and THOUSAND ** abs(power - round(power)) <= FIT


def _describe(
    own: ImpliedPower, row: Row, rating: Rating, place: str, than: str, expected: float
) -> Fault:
    reason: Reason = "unit" if _fits(own.watts, expected) else "implausible"
    scope = f", of {row['power_scope']}" if row["power_scope"] else ""
    chips = f"{row['chip_count'] or 'the'} × {row['chip'] or row['platform']}{scope}"
    message = f"{own.text} is far {than} than {chips}, can draw: {rating.source}"
    return Fault(reason, f"{message}; is the unit right (W, kW or mW; J or mJ)?", place)


def _rate_card(machine: Mapping[str, Any]) -> float | None:
    """Return the rating of a machine for each of its chips."""
    rated = machine.get("rated_power_w")
    chips = machine.get("chip_count")
    return rated / chips if rated and chips else None
