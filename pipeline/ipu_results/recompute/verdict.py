"""Judge a claim by its recomputed values, by rule alone, and measure the gap between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

AGREES, LAST_DIGIT, WITHIN_SPREAD, WITHIN_SDK_SPREAD, EXCEEDS, DIFFERS, FALLS_SHORT = OUTCOMES = (
    "agrees",
    "last-digit",
    "within-spread",
    "within-sdk-spread",
    "exceeds",
    "differs",
    "falls-short",
)
OWN, INTERNAL, LATER_SDK = BASES = ("own", "internal", "later-sdk")
HOLDS: dict[str, Callable[[float, float, float], bool]] = {
    "eq": lambda value, claimed, tolerance: abs(value - claimed) <= tolerance,
    "rounded-or-cut": lambda value, claimed, tolerance: claimed - tolerance <= value < claimed + 2 * tolerance,
    "more-than": lambda value, claimed, _: value > claimed,
    "less-than": lambda value, claimed, _: value < claimed,
    "just-over": lambda value, claimed, tolerance: claimed <= value < claimed + tolerance,
    "at-most": lambda value, claimed, _: value <= claimed,
}
BOUNDED = ("eq", "rounded-or-cut", "more-than")
FIGURES = ("eq", "rounded-or-cut")  # claims of a figure; the others are bounds
MAX_DIGIT_SHARE = 0.05  # of the figure: a last digit that is worth more matters, such as one of 6 results
MARGIN_OF_FLOATS = 1e-9  # of the unit of the last digit
NONE_AGREES = {DIFFERS: "contradicted", FALLS_SHORT: "not-supported"}
REACHED = frozenset({AGREES, LAST_DIGIT, EXCEEDS, WITHIN_SDK_SPREAD})
NOT_RECOMPUTABLE = "not-recomputable"
NO_ROW = "Its recomputation found no row in this build"
GAP_KINDS = ("none", "last-digit", "within-run-to-run-spread", "beyond")


class Gap(NamedTuple):
    """Distance of a recomputed value from the claimed figure; `percent` is null for a claimed zero that is missed."""

    percent: float | None
    kind: str

    def rank(self) -> tuple[int, float]:
        """Return a key that sorts gaps from none to the widest."""
        return GAP_KINDS.index(self.kind), float("inf") if self.percent is None else abs(self.percent)


def judge_value(
    basis: str,
    relation: str,
    value: float,
    claimed: float,
    tolerance: float,
    within_spread: bool | None = None,
    sdk_margin: float = 0.0,
) -> str:
    """Return the outcome of one recomputed value, one of OUTCOMES.

    A difference of two MLPerf scores that their runs cannot separate is `within-spread`, whatever its size. A figure of
    a later SDK agrees if it gives the claimed one. Above it only bounds the claim from above (`exceeds`). Below it
    speaks against the claim (`falls-short`), unless a slow-down between SDKs of at most `sdk_margin`, a share, explains
    the shortfall (`within-sdk-spread`).
    """
    if within_spread:
        return WITHIN_SPREAD
    holds = HOLDS[relation](value, claimed, tolerance)
    near = _differs_in_last_digit(relation, value, claimed, tolerance)
    if basis != LATER_SDK:
        return AGREES if holds else LAST_DIGIT if near else DIFFERS
    if holds and relation != "more-than":
        return AGREES
    if value > claimed:
        return EXCEEDS
    if near:
        return LAST_DIGIT
    bound = value / (1 - sdk_margin)
    return WITHIN_SDK_SPREAD if bound > claimed or HOLDS[relation](bound, claimed, tolerance) else FALLS_SHORT


def judge_claim(outcomes: Sequence[str], internal: bool) -> str:
    """Return the verdict over the outcomes that count; `internal` if the recomputation rests on claims."""
    distinct = frozenset(outcomes)
    if not distinct:
        return NOT_RECOMPUTABLE
    if distinct == {WITHIN_SPREAD}:
        return "within-run-to-run-spread"
    if distinct == {AGREES}:
        return "confirmed-internally" if internal else "confirmed"
    if distinct <= {AGREES, LAST_DIGIT}:
        return "last-digit-differs"
    if distinct <= REACHED:
        return "reached-by-later-sdk"
    return "depends-on-baseline" if distinct & (REACHED | {WITHIN_SPREAD}) else NONE_AGREES[outcomes[0]]


def measure_gap(
    relation: str, value: float, claimed: float, tolerance: float, spread: tuple[float, float] | None, within: bool
) -> Gap:
    """Measure the gap between a value and the claimed figure, in percent of the latter.

    `spread` is the 95 % interval of the value, `within` whether the runs behind a difference fail to separate it.
    """
    percent = 100 * (value - claimed) / claimed if claimed else None if value else 0.0
    holds = HOLDS[relation](value, claimed, tolerance)
    if value == claimed or (holds and relation not in FIGURES):
        return Gap(percent, "none")
    if holds or _differs_in_last_digit(relation, value, claimed, tolerance):
        return Gap(percent, "last-digit")
    if within or (spread is not None and spread[0] <= claimed <= spread[1]):
        return Gap(percent, "within-run-to-run-spread")
    return Gap(percent, "beyond")


def _differs_in_last_digit(relation: str, value: float, claimed: float, tolerance: float) -> bool:
    """Check whether a value is at most one unit of the last printed digit off; the tolerance is half a unit."""
    unit = 2 * tolerance
    near = abs(value - claimed) <= unit * (1 + MARGIN_OF_FLOATS)
    return relation in FIGURES and near and unit <= MAX_DIGIT_SHARE * abs(claimed)
