"""Judge a claim by its recomputed values, by rule alone, and measure the gap between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

(
    AGREES,
    LAST_DIGIT,
    WITHIN_SPREAD,
    WITHIN_SDK_SPREAD,
    REACHES,
    EXCEEDS,
    DIFFERS,
    NEARLY_REACHES,
    FALLS_SHORT,
) = OUTCOMES = (
    "agrees",
    "last-digit",
    "within-spread",
    "within-sdk-spread",
    "reaches",
    "exceeds",
    "differs",
    "nearly-reaches",
    "falls-short",
)
# what a claim may leave open; the first that decides gives the verdict its word
AXES = ("division", "system", "source", "reading")
Axes = tuple[str | None, ...]
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
# of a later SDK, each at or above the figure
REACHED = frozenset({AGREES, REACHES, WITHIN_SDK_SPREAD})
HOLDING = REACHED | {LAST_DIGIT, NEARLY_REACHES}
NOT_RECOMPUTABLE, SWAPPED_BASELINE, DEPENDS_ON_BASELINE = (
    "not-recomputable",
    "swapped-baseline",
    "depends-on-baseline",
)
DEPENDS_ON = {axis: f"depends-on-{axis}" for axis in AXES}
# by the evidence
CONFIRMED = {"own": "confirmed", "internal": "confirmed-internally", "circular": "circular"}
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
    direction: str | None = None,
) -> str:
    """Return the outcome of one recomputed value, one of OUTCOMES.

    A difference of two MLPerf scores that their runs cannot separate is `within-spread`, whatever
    its size. A figure of a later SDK is judged by `judge_later`.
    """
    if within_spread:
        return WITHIN_SPREAD
    if basis == LATER_SDK:
        return judge_later(relation, value, claimed, tolerance, sdk_margins, direction)
    if HOLDS[relation](value, claimed, tolerance):
        return AGREES
    return LAST_DIGIT if _differs_in_last_digit(relation, value, claimed, tolerance) else DIFFERS


def judge_later(
    relation: str,
    value: float,
    claimed: float,
    tolerance: float,
    sdk_margins: tuple[float, float],
    direction: str | None,
) -> str:
    """Return the outcome of a figure of a later SDK, which speaks for a claim only at or above it.

    Below the figure it differs in the last digit, or `nearly-reaches` it if two SDKs have differed
    by as much: by a slow-down or a speed-up of at most `sdk_margins`, two shares. Above, it
    `exceeds` the claim if no two have, and the one counts as much as the other. Where less is
    better, below is above.
    """
    if relation not in FIGURES and HOLDS[relation](value, claimed, tolerance):
        return REACHES
    is_reached = value <= claimed if direction == "lower" else value >= claimed
    if is_reached and HOLDS[relation](value, claimed, tolerance):
        return AGREES
    if not is_reached and _differs_in_last_digit(relation, value, claimed, tolerance):
        return LAST_DIGIT
    slow_down, speed_up = sdk_margins
    # what the claim's SDK may have given
    slow, fast = (
        (value * (1 + speed_up), value * (1 - slow_down))
        if direction == "lower"
        else (value / (1 + speed_up), value / (1 - slow_down))
    )
    is_near = min(slow, fast) <= claimed + tolerance and max(slow, fast) >= claimed - tolerance
    if is_near:
        return WITHIN_SDK_SPREAD if is_reached else NEARLY_REACHES
    return EXCEEDS if is_reached else FALLS_SHORT


def judge_claim(
    outcomes: Sequence[str], evidence: str = "own", axes: Sequence[Axes] | None = None
) -> str:
    """Return the verdict over the outcomes that count.

    `evidence` is one of CONFIRMED or `later-sdk`. `axes` has for each outcome what the claim leaves
    open and the value takes as said, in the order of AXES: if values that stand otherwise differ in
    one of them, the verdict is its `depends-on-…`.
    """
    distinct = frozenset(outcomes)
    if not distinct:
        return NOT_RECOMPUTABLE
    if distinct == {WITHIN_SPREAD}:
        return "within-run-to-run-spread"
    if distinct == {AGREES} and evidence in CONFIRMED:
        return CONFIRMED[evidence]
    if distinct <= REACHED:
        return "reached-by-later-sdk"
    if distinct <= REACHED | {LAST_DIGIT}:
        return "last-digit-differs"
    if distinct <= HOLDING:
        return "nearly-reached-by-later-sdk"
    if len(distinct) == 1:
        return NONE_AGREES[outcomes[0]]
    decisive = find_decisive_axes(outcomes, axes or [(None,) * len(AXES)] * len(outcomes))
    return DEPENDS_ON[decisive[0]] if decisive else DEPENDS_ON_BASELINE


def find_decisive_axes(outcomes: Sequence[str], axes: Sequence[Axes]) -> tuple[str, ...]:
    """Return the names of AXES that decide between the outcomes; none if what decides is none.

    Of the pairs of values that stand otherwise, those count that differ in the fewest axes.
    """
    standings = ["holds" if outcome in HOLDING else outcome for outcome in outcomes]
    values = list(zip(standings, axes, strict=True))
    differences = {
        frozenset(name for name, a, b in zip(AXES, one, other, strict=True) if a != b)
        for (standing, one), (other_standing, other) in combinations(values, 2)
        if standing != other_standing
    }
    fewest = min(map(len, differences), default=0)
    decisive = frozenset().union(*(names for names in differences if len(names) == fewest))
    return tuple(name for name in AXES if name in decisive)


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
