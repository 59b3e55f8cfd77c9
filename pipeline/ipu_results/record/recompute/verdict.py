"""Judge a claim by its recomputed values, by rule alone, and measure the gap between the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

AGREES = "agrees"
LAST_DIGIT = "last-digit"
WITHIN_SPREAD = "within-spread"
WITHIN_SDK_SPREAD = "within-sdk-spread"
REACHES = "reaches"
EXCEEDS = "exceeds"
DIFFERS = "differs"
NEARLY_REACHES = "nearly-reaches"
FALLS_SHORT = "falls-short"
# what a claim may leave open; the first that decides gives the verdict its word
AXES = ("division", "system", "source", "reading")
INTERNAL = "internal"
LATER_SDK = "later-sdk"
BASES = ("own", INTERNAL, LATER_SDK)
RELATIONS = ("eq", "rounded-or-cut", "more-than", "less-than", "just-over", "at-most")
BOUNDED = ("eq", "rounded-or-cut", "more-than")
FIGURES = ("eq", "rounded-or-cut")  # claims of a figure; the others are bounds
# of the figure: a last digit that is worth more matters, such as one of 6 results
MAX_DIGIT_SHARE = 0.05
MARGIN_OF_FLOATS = 1e-9  # of the unit of the last digit
NONE_AGREES = {
    DIFFERS: "contradicted",
    FALLS_SHORT: "not-supported",
    EXCEEDS: "exceeded-by-later-sdk",
}
# of a later SDK, each at or above the figure
REACHED = frozenset({AGREES, REACHES, WITHIN_SDK_SPREAD})
HOLDING = REACHED | {LAST_DIGIT, NEARLY_REACHES}
NOT_RECOMPUTABLE = "not-recomputable"
SWAPPED_BASELINE = "swapped-baseline"
DEPENDS_ON = "depends-on-"  # before one of AXES
DEPENDS_ON_BASELINE = "depends-on-baseline"  # where none of them decides
# by the evidence
CONFIRMED = {"own": "confirmed", INTERNAL: "confirmed-internally", "circular": "circular"}
NO_ROW = "Its recomputation found no row in this build"
GAP_KINDS = ("none", "last-digit", "within-run-to-run-spread", "beyond")


class Claimed(NamedTuple):
    """A claimed figure, how a value stands to it if the claim is true, and half a unit of its last
    printed digit.
    """

    relation: str
    figure: float
    tolerance: float

    def is_met(self, value: float) -> bool:
        """Check whether a value stands to the figure as the claim says."""
        match self.relation:
            case "more-than":
                return value > self.figure
            case "less-than":
                return value < self.figure
            case "just-over":
                return self.figure <= value < self.figure + self.tolerance
            case "at-most":
                return value <= self.figure
        # of a figure whose digits were cut, a value is off by up to a unit: its last digit differs
        return abs(value - self.figure) <= self.tolerance

    def is_missed_by_a_digit(self, value: float) -> bool:
        """Check whether a value is at most one unit of the last printed digit off a figure."""
        unit = 2 * self.tolerance
        is_near = abs(value - self.figure) <= unit * (1 + MARGIN_OF_FLOATS)
        is_small = unit <= MAX_DIGIT_SHARE * abs(self.figure)
        return self.relation in FIGURES and is_near and is_small


class Gap(NamedTuple):
    """Distance of a recomputed value from the claimed figure; `percent` is null for a claimed zero
    that is missed.
    """

    percent: float | None
    kind: str

    def rank(self) -> tuple[int, float]:
        """Return a key that sorts gaps from none to the widest."""
        size = float("inf") if self.percent is None else abs(self.percent)
        return GAP_KINDS.index(self.kind), size


class Finding(NamedTuple):
    """A value that counts, with its outcome and what it takes as said of each of AXES, null where
    the claim leaves nothing open.
    """

    value: float
    outcome: str
    axes: Mapping[str, str | None]

    @property
    def standing(self) -> str:
        return "holds" if self.outcome in HOLDING else self.outcome


def judge_value(claimed: Claimed, value: float) -> str:
    """Return the outcome of a value under the conditions of the claim."""
    if claimed.is_met(value):
        return AGREES
    return LAST_DIGIT if claimed.is_missed_by_a_digit(value) else DIFFERS


def judge_later(
    claimed: Claimed, value: float, sdk_margins: tuple[float, float], direction: str | None
) -> str:
    """Return the outcome of a figure of a later SDK, which speaks for a claim only at or above it.

    Below the figure it differs in the last digit, or `nearly-reaches` it if two SDKs have differed
    by as much: by a slow-down or a speed-up of at most `sdk_margins`, two shares. Above, it
    `exceeds` the claim if no two have, and the one counts as much as the other. Where less is
    better, below is above.
    """
    is_lower_better = direction == "lower"
    is_met = claimed.is_met(value)
    if is_met and claimed.relation not in FIGURES:
        return REACHES
    is_reached = value <= claimed.figure if is_lower_better else value >= claimed.figure
    if is_reached and is_met:
        return AGREES
    if not is_reached and claimed.is_missed_by_a_digit(value):
        return LAST_DIGIT
    slow_down, speed_up = sdk_margins
    # what the claim's SDK may have given
    if is_lower_better:
        bounds = (value * (1 + speed_up), value * (1 - slow_down))
    else:
        bounds = (value / (1 + speed_up), value / (1 - slow_down))
    is_above = min(bounds) > claimed.figure + claimed.tolerance
    is_below = max(bounds) < claimed.figure - claimed.tolerance
    if is_above or is_below:
        return EXCEEDS if is_reached else FALLS_SHORT
    return WITHIN_SDK_SPREAD if is_reached else NEARLY_REACHES


def judge_claim(findings: Sequence[Finding], evidence: str = "own") -> str:
    """Return the verdict over the values that count; `evidence` is one of CONFIRMED or `later-sdk`.

    If values that stand otherwise differ in one of AXES, the verdict is its `depends-on-…`.
    """
    outcomes = {finding.outcome for finding in findings}
    if not outcomes:
        return NOT_RECOMPUTABLE
    if outcomes == {WITHIN_SPREAD}:
        return "within-run-to-run-spread"
    if outcomes == {AGREES} and evidence in CONFIRMED:
        return CONFIRMED[evidence]
    if outcomes <= REACHED:
        return "reached-by-later-sdk"
    if outcomes <= REACHED | {LAST_DIGIT}:
        return "last-digit-differs"
    if outcomes <= HOLDING:
        return "nearly-reached-by-later-sdk"
    if len(outcomes) == 1:
        return NONE_AGREES[outcomes.pop()]
    decisive = find_decisive_axes(findings)
    return DEPENDS_ON + decisive[0] if decisive else DEPENDS_ON_BASELINE


def find_decisive_axes(findings: Sequence[Finding]) -> list[str]:
    """Return the names of AXES that decide between the outcomes; none if what decides is none.

    Of the pairs of values that stand otherwise, those count that differ in the fewest axes.
    """
    differences = []
    for one, other in combinations(findings, 2):
        if one.standing != other.standing:
            differences.append({axis for axis in AXES if one.axes[axis] != other.axes[axis]})
    fewest = min(map(len, differences), default=0)
    decisive: set[str] = set()
    for axes in differences:
        if len(axes) == fewest:
            decisive |= axes
    return [axis for axis in AXES if axis in decisive]


def measure_gap(
    claimed: Claimed, value: float, spread: tuple[float, float] | None, *, is_tied: bool
) -> Gap:
    """Measure the gap between a value and the claimed figure, in percent of the latter.

    `spread` is the 95 % interval of the value. A difference `is_tied` where the runs behind it fail
    to separate its scores.
    """
    figure = claimed.figure
    percent: float | None = 0.0
    if figure:
        percent = 100 * (value - figure) / figure
    elif value:
        percent = None
    is_met = claimed.is_met(value)
    if value == figure or (is_met and claimed.relation not in FIGURES):
        return Gap(percent, "none")
    if is_met or claimed.is_missed_by_a_digit(value):
        return Gap(percent, "last-digit")
    if is_tied or (spread is not None and spread[0] <= figure <= spread[1]):
        return Gap(percent, "within-run-to-run-spread")
    return Gap(percent, "beyond")
