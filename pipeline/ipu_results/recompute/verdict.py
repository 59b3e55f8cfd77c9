"""Judge a claim by its recomputed values, by rule alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

WITHIN_SPREAD = "within-spread"
WITHIN_RUN_TO_RUN_SPREAD = "within-run-to-run-spread"
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


def judge_value(
    basis: str, relation: str, value: float, claimed: float, tolerance: float, within_spread: bool | None = None
) -> str:
    """Return `agrees` or `differs` for one recomputed value, or `within-spread`, whatever the value.

    The latter is a difference of two MLPerf scores that their runs cannot separate: it says neither yes nor no.

    A later SDK is assumed to be no slower. Its figures agree if they give the claimed one. Above it they only bound the
    claim from above (`exceeds`), below it they speak against it (`falls-short`).
    """
    if within_spread:
        return WITHIN_SPREAD
    holds = HOLDS[relation](value, claimed, tolerance)
    if basis != LATER_SDK:
        return "agrees" if holds else "differs"
    if holds and relation != "more-than":
        return "agrees"
    return "exceeds" if value > claimed else "falls-short"


def judge_claim(outcomes: Sequence[str], internal: bool) -> str:
    """Return the verdict over the outcomes of one recomputation, at least one; `internal` if it rests on claims."""
    distinct = set(outcomes)
    if distinct == {WITHIN_SPREAD}:
        return WITHIN_RUN_TO_RUN_SPREAD
    if distinct == {"agrees"}:
        return "confirmed-internally" if internal else "confirmed"
    if distinct <= {"agrees", "exceeds"}:
        return "not-recomputable"
    return "depends-on-baseline" if distinct & {"agrees", "exceeds", WITHIN_SPREAD} else NONE_AGREES[outcomes[0]]
