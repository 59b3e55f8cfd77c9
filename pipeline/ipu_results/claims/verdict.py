"""From recomputed values to a verdict, by rule alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
NONE_AGREES = {"differs": "contradicted", "falls-short": "not-supported"}
LATER = "Every figure at hand is of a later SDK than the claim's, and reaches it: no word on the earlier software."
NO_ROW = "Its recomputation found no row in this build"


def outcome(basis: str, relation: str, value: float, claimed: float, tolerance: float) -> str:
    """What one recomputed value says of the claim: `agrees` or `differs`.

    A later SDK is taken to be no slower. Its figures agree where they give the claimed one; beyond it they bound the
    claim from above and say no more (`exceeds`), short of it they speak against it (`falls-short`).
    """
    holds = HOLDS[relation](value, claimed, tolerance)
    if basis != LATER_SDK:
        return "agrees" if holds else "differs"
    if holds and relation != "more-than":
        return "agrees"
    return "exceeds" if value > claimed else "falls-short"


def verdict(outcomes: Sequence[str], internal: bool) -> str:
    """The verdict over the outcomes of one recomputation, at least one; `internal` where it rests on claims."""
    found = set(outcomes)
    if found == {"agrees"}:
        return "confirmed-internally" if internal else "confirmed"
    if found <= {"agrees", "exceeds"}:
        return "not-recomputable"
    return "depends-on-baseline" if found & {"agrees", "exceeds"} else NONE_AGREES[outcomes[0]]
