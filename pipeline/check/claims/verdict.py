"""From recomputed values to a verdict, by rule alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Holds = Callable[[float, float, float], bool]

HOLDS: dict[str, Holds] = {
    "eq": lambda value, claimed, tolerance: abs(value - claimed) <= tolerance,
    "rounded-or-cut": lambda value, claimed, tolerance: claimed - tolerance <= value < claimed + 2 * tolerance,
    "more-than": lambda value, claimed, _: value > claimed,
    "less-than": lambda value, claimed, _: value < claimed,
    "just-over": lambda value, claimed, tolerance: claimed <= value < claimed + tolerance,
    "at-most": lambda value, claimed, _: value <= claimed,
}
FROM_ABOVE: dict[str, Holds] = {
    "eq": lambda value, claimed, tolerance: value >= claimed - tolerance,
    "rounded-or-cut": lambda value, claimed, tolerance: value >= claimed - tolerance,
    "more-than": HOLDS["more-than"],
}
ALL_HOLD = {"own": "confirmed", "internal": "confirmed-internally", "later-sdk": "not-recomputable"}
NONE_HOLDS = {"own": "contradicted", "internal": "contradicted", "later-sdk": "not-supported"}
LATER = "Every figure at hand is of a later SDK than the claim's, and reaches it: no word on the earlier software."

NO_ROW = "Its recomputation found no row in this build"


def holds(basis: str, relation: str, value: float, claimed: float, tolerance: float) -> bool:
    """Whether a claim holds against one recomputed value.

    Figures of a later SDK bound a claim from above: it holds where they reach it. Raises KeyError for a relation that
    has no such bound.
    """
    known = FROM_ABOVE if basis == "later-sdk" else HOLDS
    return known[relation](value, claimed, tolerance)


def verdict(basis: str, held: Sequence[bool]) -> str:
    """The verdict over the values of one recomputation, at least one."""
    if all(held):
        return ALL_HOLD[basis]
    return "depends-on-baseline" if any(held) else NONE_HOLDS[basis]
