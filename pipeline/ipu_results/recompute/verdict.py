"""Judge a claim by its recomputed values, by rule alone, and measure the gap between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

AGREES, LAST_DIGIT, WITHIN_SPREAD, WITHIN_SDK_SPREAD, REACHES, EXCEEDS, DIFFERS, FALLS_SHORT = (
    OUTCOMES
) = (
    "agrees",
    "last-digit",
    "within-spread",
    "within-sdk-spread",
    "reaches",
    "exceeds",
    "differs",
    "falls-short",
)
OWN, INTERNAL, LATER_SDK = BASES = ("own", "internal", "later-sdk")
HOLDS: dict[str, Callable[[float, float, float], bool]] = {
    "eq": lambda value, claimed, tolerance: abs(value - claimed) <= tolerance,
    # cut digits: last-digit
    "rounded-or-cut": lambda value, claimed, tolerance: abs(value - claimed) <= tolerance,
    "more-than": lambda value, claimed, _: value > claimed,
    "less-than": lambda value, claimed, _: value < claimed,
    "just-over": lambda value, claimed, tolerance: claimed <= value < claimed + tolerance,
    "at-most": lambda value, claimed, _: value <= claimed,
}
BOUNDED = ("eq", "rounded-or-cut", "more-than")
FIGURES = ("eq", "rounded-or-cut")  # claims of a figure; the others are bounds
MAX_DIGIT_SHARE = (
    0.05  # of the figure: a last digit that is worth more matters, such as one of 6 results
)
MARGIN_OF_FLOATS = 1e-9  # of the unit of the last digit
NONE_AGREES = {
    DIFFERS: "contradicted",
    FALLS_SHORT: "not-supported",
    EXCEEDS: "exceeded-by-later-sdk",
}
REACHED = frozenset({AGREES, LAST_DIGIT, REACHES, WITHIN_SDK_SPREAD})
NOT_RECOMPUTABLE, SWAPPED_BASELINE, DEPENDS_ON_READING = (
    "not-recomputable",
    "swapped-baseline",
    "depends-on-reading",
)
# by the evidence
CONFIRMED = {"own": "confirmed", "internal": "confirmed-internally", "circular": "circular"}
HOLDING = frozenset({*CONFIRMED.values(), "last-digit-differs", "reached-by-later-sdk"})
NO_ROW = "Its recomputation found no row in this build"
GAP_KINDS = ("none", "last-digit", "within-run-to-run-spread", "beyond")


class Gap(NamedTuple):
    """Distance of a recomputed value from the claimed figure; `percent` is null for a claimed zero
    that is missed.
    """

    percent: float | None
    kind: str

    def rank(self) -> tuple[int, float]:
        """Return a key that sorts gaps from none to the widest."""
        return GAP_KINDS.index(self.kind), (
            float("inf") if self.percent is None else abs(self.percent)
        )


def judge_value(
    basis: str,
    relation: str,
    value: float,
    claimed: float,
    tolerance: float,
    within_spread: bool | None = None,
    sdk_margins: tuple[float, float] = (0.0, 0.0),
) -> str:
    """Return the outcome of one recomputed value, one of OUTCOMES.

    A difference of two MLPerf scores that their runs cannot separate is `within-spread`, whatever
    its size. A figure of a later SDK `reaches` a bound, or agrees. Otherwise it is
    `within-sdk-spread` of the claimed figure if two SDKs have differed by as much: by a slow-down
    or a speed-up of at most `sdk_margins`, two shares. Outside it `exceeds` the claim or
    `falls-short` of it, and the one counts as much as the other.
    """
    if within_spread:
        return WITHIN_SPREAD
    holds = HOLDS[relation](value, claimed, tolerance)
    near = _differs_in_last_digit(relation, value, claimed, tolerance)
    if basis != LATER_SDK:
        return AGREES if holds else LAST_DIGIT if near else DIFFERS
    if holds:
        return AGREES if relation in FIGURES else REACHES
    if near:
        return LAST_DIGIT
    slow_down, speed_up = sdk_margins
    # what the claim's SDK may have given
    low = value / (1 + speed_up)
    high = value / (1 - slow_down)
    if low <= claimed + tolerance and high >= claimed - tolerance:
        return WITHIN_SDK_SPREAD
    return EXCEEDS if value > claimed else FALLS_SHORT


def judge_claim(
    outcomes: Sequence[str], evidence: str = "own", readings: Sequence[str | None] = ()
) -> str:
    """Return the verdict over the outcomes that count.

    `evidence` is one of CONFIRMED or `later-sdk`. `readings` names the reading of the claim that
    each outcome rests on: if the claim holds in one reading as a whole and not in another, the
    verdict is `depends-on-reading`.
    """
    distinct = frozenset(outcomes)
    if not distinct:
        return NOT_RECOMPUTABLE
    if distinct == {WITHIN_SPREAD}:
        return "within-run-to-run-spread"
    if distinct == {AGREES} and evidence in CONFIRMED:
        return CONFIRMED[evidence]
    if distinct <= {AGREES, LAST_DIGIT} and evidence in CONFIRMED:
        return "last-digit-differs"
    if distinct <= REACHED:
        return "reached-by-later-sdk"
    if len(distinct) == 1:
        return NONE_AGREES[outcomes[0]]
    if len(set(readings)) > 1:
        parts: dict[str | None, list[str]] = {}
        for outcome, reading in zip(outcomes, readings, strict=True):
            parts.setdefault(reading, []).append(outcome)
        verdicts = {judge_claim(part, evidence) for part in parts.values()}
        if verdicts & HOLDING and verdicts - HOLDING:
            return DEPENDS_ON_READING
    return "depends-on-baseline"


def measure_gap(
    relation: str,
    value: float,
    claimed: float,
    tolerance: float,
    spread: tuple[float, float] | None,
    within: bool,
) -> Gap:
    """Measure the gap between a value and the claimed figure, in percent of the latter.

    `spread` is the 95 % interval of the value, `within` whether the runs behind a difference fail
    to separate it.
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
    """Check whether a value is at most one unit of the last printed digit off; the tolerance is
    half a unit.
    """
    unit = 2 * tolerance
    near = abs(value - claimed) <= unit * (1 + MARGIN_OF_FLOATS)
    return relation in FIGURES and near and unit <= MAX_DIGIT_SHARE * abs(claimed)
