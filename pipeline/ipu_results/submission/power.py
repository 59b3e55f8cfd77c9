"""Hold power and energy of a row against the rating of its chips and against each other: W for kW, J for mJ."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import duckdb

from ipu_results.comparison.comparable import Row
from ipu_results.comparison.measurement import KnownWords
from ipu_results.ground.physics import (
    EFFICIENCY_TOLERANCE,
    PER_ITEM,
    SECONDS_PER_HOUR,
    compute_highest_rate,
    compute_power_w,
    compute_rate,
    count_passes,
    find_energy_j,
)
from ipu_results.ground.sql import run_query
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.submission.fault import Fault, Reason
from ipu_results.submission.refusals import count_digits

THOUSAND = 1000.0
HALF_OF_THOUSAND = math.sqrt(THOUSAND)
"""Factor from which a figure is nearer to a thousandfold than to what it is held against. Rows of the record without an
error flag draw 0.55 to 0.99 times the rating of their chips (view `energy_per_item`); none is idle."""
FIT = 10.0  # by which the thousandth of a wrong figure may itself be off
OF_CHIPS = ("device", "board", "package")
HOUR = re.compile(r"\b(?:one|an|1|per) hour\b", re.I)  # of `conditions`: what the energy of a run covers
# The most that a machine with an official energy draws for each of its chips.
HIGHEST_DRAW = """
    SELECT max(e.energy_j / (60 * r.minutes * r.chips)) AS watts FROM mlperf_entries e JOIN results r USING (result_id)
"""


Bound = Literal["exact", "least", "most"]


@dataclass(frozen=True, slots=True)
class Power:
    """Power that figures of a row state or imply, in W, or the least or the most of it that they imply."""

    watts: float
    text: str
    digits: int  # of the least precise figure
    bound: Bound = "exact"


@dataclass(frozen=True, slots=True)
class Rating:
    """Power that a chip is rated for, in W, as a range where no source states it; `low` is None for a new chip."""

    low: float | None
    high: float
    source: str


class PowerEvidence:
    """What the record knows about the power of machines."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, words: KnownWords) -> None:
        self._machines = words.machines
        vocabulary = load_vocabulary()
        self._chips, self._gmacs = vocabulary.chip_ratings, vocabulary.gmacs
        self._peaks = frozenset(vocabulary.peaks.values())
        [drawn] = run_query(connection, HIGHEST_DRAW).to_pylist()
        cards = [_rate_card(machine) for machine in words.machines.values()]
        ratings = [*self._chips.values(), *(watts for watts in cards if watts)]
        self._range = (min(ratings), max(*ratings, drawn["watts"] or 0.0))
        self._known = {machine["chip"] for machine in words.machines.values()} - {None}

    def find_rating(self, row: Row) -> Rating:
        """Return the rating of one chip of a row; of a new chip only the most that any chip of the record draws."""
        machine = self._machines.get(row["platform"], {})
        chip = row["chip"] or machine.get("chip")
        if watts := _rate_card(machine) or self._chips.get(chip or ""):
            return Rating(watts, watts, f"{chip or row['platform']} is rated {watts:g} W a chip")
        low, high = self._range
        if chip in self._known:
            return Rating(low, high, f"chips of the record are rated or draw {low:g} to {high:.4g} W")
        return Rating(None, high, f"no chip of the record draws more than {high:.4g} W")

    def find_highest_rate(self, row: Row) -> float | None:
        """Return the items per second at the highest peak of the chips, None without operations, chips or a peak."""
        machine = self._machines.get(row["platform"], {})
        peak = max((machine[name] for name in self._peaks if machine.get(name)), default=None)
        gmacs = self._gmacs.get((row["network"], row["variant"] or ""))
        if not (peak and gmacs and row["chips"]):
            return None
        return compute_highest_rate(peak * row["chips"], gmacs, count_passes(row["task"]))


def find_wrong_power(row: Row, evidence: PowerEvidence, place: str) -> Iterator[Fault]:
    """Yield a fault for power or energy that the chips cannot draw, or that the figures of the row contradict."""
    powers = list(_list_powers(row))
    rating = evidence.find_rating(row)
    for own in (*powers, *_list_bounds(row, evidence.find_highest_rate(row))):
        if fault := _check_rating(own, row, rating, place):
            yield fault
            return
    if not row["throughput"] and row["energy_per_item_j"] and row["efficiency"]:  # at any rate, so at one item a second
        powers.append(_build_power("energy per item", row, row["energy_per_item_j"], "energy_per_item_j"))
        powers.append(_build_power("1 / efficiency", row, 1 / row["efficiency"], "efficiency"))
    for first, second in combinations(powers, 2):
        ratio = max(first.watts / second.watts, second.watts / first.watts)
        rounding = sum(10.0 ** (1 - own.digits) / 2 for own in (first, second))
        if ratio - 1 > EFFICIENCY_TOLERANCE + rounding:
            reason: Reason = "unit" if ratio >= HALF_OF_THOUSAND else "implausible"
            message = f"{first.text} and {second.text} differ by a factor of {ratio:.4g}; are the units right?"
            hint = "Power of different scopes or of other runs belongs in rows of their own, with conditions"
            yield Fault(reason, f"{message} {hint}", place)
            return


def compute_rate_at_rating(row: Row, evidence: PowerEvidence) -> float | None:
    """Return the items per second at the rated power of the chips, for energy of an item without a rate or time."""
    rating = evidence.find_rating(row)
    efficiency = row["efficiency"] or (1 / row["energy_per_item_j"] if row["energy_per_item_j"] else None)
    if not efficiency or row["throughput"] or row["latency_ms"] or not row["chips"] or rating.low != rating.high:
        return None
    return float(rating.high * row["chips"] * efficiency)


def _list_powers(row: Row) -> Iterator[Power]:
    """Yield the power that a row states, and that its energy and its efficiency imply."""
    throughput, time = row["throughput"], row["time_to_train_s"] or row["time_to_result_s"]
    if row["power_w"]:
        yield _build_power("power", row, row["power_w"], "power_w")
    if throughput and row["energy_per_item_j"]:
        watts = throughput * row["energy_per_item_j"]
        yield _build_power("throughput × energy per item", row, watts, "throughput", "energy_per_item_j")
    if throughput and row["efficiency"]:
        watts = compute_power_w(throughput, row["efficiency"])
        yield _build_power("throughput / efficiency", row, watts, "throughput", "efficiency")
    if row["run_energy_j"] and time:
        yield _build_power(f"energy / {time:.12g} s", row, row["run_energy_j"] / time, "run_energy_j")
    elif row["run_energy_j"] and HOUR.search(row["conditions"] or ""):
        yield _build_power("energy of one hour", row, row["run_energy_j"] / SECONDS_PER_HOUR, "run_energy_j")


def _list_bounds(row: Row, highest_rate: float | None) -> Iterator[Power]:
    """Yield bounds of the power of a row without a throughput, from the energy of an item.

    Batch size over latency is the rate at least, since several batches may be in flight. The peak of the chips over the
    operations of an item is the rate at most.
    """
    name = "energy_per_item_j" if row["energy_per_item_j"] else "efficiency"
    if row["throughput"] or not row[name]:
        return
    energy = find_energy_j(row["energy_per_item_j"], row["efficiency"])
    assert energy
    if row["latency_ms"] and row["batch_size"] and row["latency_basis"] != PER_ITEM:
        watts = compute_rate(row["batch_size"], row["latency_ms"]) * energy
        yield _build_power("at least, at batch size / latency", row, watts, "latency_ms", name, bound="least")
    if highest_rate:
        text = f"at most, at the peak of the chips ({highest_rate:.4g} item/s)"
        yield _build_power(text, row, highest_rate * energy, name, bound="most")


def _build_power(text: str, row: Row, watts: float, *names: str, bound: Bound = "exact") -> Power:
    figures = ", ".join(f"{name} {row[name]:.12g}" for name in names)
    digits = min(count_digits(row[name]) for name in names)
    return Power(watts, f"{watts:.4g} W ({text}: {figures})", digits, bound)


def _check_rating(own: Power, row: Row, rating: Rating, place: str) -> Fault | None:
    """Return what is wrong with a power, seen from the rating of the chips.

    Power of chips may be that of one of them or of all. A machine draws the power of all its chips, but one of many
    nodes is taken for the machine at times: only a thousandth that fits all chips is refused below their rating.
    """
    chips, is_of_chips = row["chips"], row["power_scope"] in OF_CHIPS
    if own.bound != "most" and chips and own.watts > HALF_OF_THOUSAND * rating.high * chips:
        return _describe(own, row, rating, place, "more", rating.high * chips)
    if own.bound == "least" or rating.low is None:
        return None
    every = rating.low * (1 if is_of_chips else chips or 1)
    is_thousandth = own.watts < every / HALF_OF_THOUSAND and _fits(own.watts, every)
    if is_thousandth or own.watts < rating.low / HALF_OF_THOUSAND:
        return _describe(own, row, rating, place, "less", every)
    return None


def _fits(watts: float, expected: float) -> bool:
    """Return whether a power is a thousandth, a thousandfold or such of a plausible one."""
    power = math.log(watts / expected, THOUSAND)
    return bool(round(power)) and THOUSAND ** abs(power - round(power)) <= FIT


def _describe(own: Power, row: Row, rating: Rating, place: str, than: str, expected: float) -> Fault:
    reason: Reason = "unit" if _fits(own.watts, expected) else "implausible"
    scope = f", of {row['power_scope']}" if row["power_scope"] else ""
    chips = f"{row['chips'] or 'the'} × {row['chip'] or row['platform']}{scope}"
    message = f"{own.text} is far {than} than {chips}, can draw: {rating.source}"
    return Fault(reason, f"{message}; is the unit right (W, kW or mW; J or mJ)?", place)


def _rate_card(machine: Mapping[str, Any]) -> float | None:
    """Return the rating of a machine for each of its chips."""
    rated, chips = machine.get("rated_power_w"), machine.get("chip_count")
    return rated / chips if rated and chips else None
