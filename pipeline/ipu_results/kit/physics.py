"""Compute physics that hand-ins, runs and predictions share: Little's law, power and energy.

That of rules and comparisons is in their statements.

Functions take numbers or columns of numbers. Units are those of the table `results`: items per
second, milliseconds, watts, joules.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

MS_PER_S = 1000.0
SECONDS_PER_MINUTE = 60
# Units as users write them besides those of sources, with their exact size in seconds, watts and
# joules.
TIMES_S = {
    "us": "1/1000000",
    "µs": "1/1000000",
    "ms": "1/1000",
    "s": "1",
    "sec": "1",
    "min": "60",
    "h": "3600",
}
POWERS_W = {"W": "1", "kW": "1000", "mW": "1/1000"}
ENERGIES_J = {"J": "1", "mJ": "1/1000", "kJ": "1000", "Wh": "3600", "kWh": "3600000"}
GIGA = 10**9
# Statements name these in braces, as {MIN_BATCHES_IN_FLIGHT}.
MIN_BATCHES_IN_FLIGHT = 0.95  # 1 but for the rounding of printed figures
# a convention: twice the most that a row of the record implies (8.04, STC P920)
MAX_BATCHES_IN_FLIGHT = 16
# Less than one batch in flight leaves time outside the batches: so little is a mistake.
DOUBTFUL_BATCHES_IN_FLIGHT = 0.1
WRONG_BATCHES_IN_FLIGHT = 0.01  # and so little a wrong unit
# of throughput over power against the efficiency: each is rounded on its own
EFFICIENCY_TOLERANCE = 0.05

DERIVED_DIGITS = 12
"""Significant digits of a figure that is computed here: a double holds 15, and a computation of a
few steps leaves the last ones to chance.
"""


def round_derived(value: float) -> float:
    """Return a computed figure with DERIVED_DIGITS."""
    return float(f"{value:.{DERIVED_DIGITS}g}")


def convert_unit(stated: str, own: str) -> Fraction | None:
    """Return the factor from a unit of time, power or energy to another of the same; None where
    they are not.
    """
    for sizes in (TIMES_S, POWERS_W, ENERGIES_J):
        if stated in sizes and own in sizes:
            return Fraction(sizes[stated]) / Fraction(sizes[own])
    return None


def count_batches_in_flight(throughput: Any, latency_ms: Any, batch_size: Any) -> Any:
    """Count the batches in flight by Little's law, throughput × latency; less than one is
    impossible for the latency of a batch.
    """
    return throughput * latency_ms / MS_PER_S / batch_size


def compute_rate(batch_size: Any, latency_ms: Any) -> Any:
    """Compute the items per second of batches that follow each other, one in flight."""
    return batch_size * MS_PER_S / latency_ms
