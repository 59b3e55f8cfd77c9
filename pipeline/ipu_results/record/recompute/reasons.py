"""Say in one sentence why a claim has its verdict, from the values that count and how they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ipu_results.record.recompute.claims import format_value
from ipu_results.record.recompute.verdict import AXES, HOLDING, LATER_SDK, WITHIN_SPREAD, Axes

REASONS = {
    "confirmed": "{values} from outside the document {agree} with “{figure}”: {range}",
    "confirmed-internally": (
        "{values} {agree} with “{figure}”, at least in part from the same document or another"
        " claim: {range}"
    ),
    "circular": "{values} {agree} with “{figure}” by arithmetic over what documents state: {range}",
    "last-digit-differs": "At most one unit of the last digit lies between “{figure}” and {range}",
    "reached-by-later-sdk": "“{figure}” is reached: {range}",
    "nearly-reached-by-later-sdk": (
        "{range} falls short of “{figure}” by no more than two SDKs have differed"
    ),
    "exceeded-by-later-sdk": "{range} exceeds “{figure}” by more than two SDKs have differed",
    "not-supported": "{range} falls short of “{figure}” by more than two SDKs have differed",
    "contradicted": "No value agrees with “{figure}”: {range}",
    "within-run-to-run-spread": "The runs cannot separate the two scores behind “{figure}”: {range}",
    "swapped-baseline": "Compared with {stand_in}: {range} for “{figure}”",
}
LATER = ", with a later SDK"
IN_PART = ", in part by what documents claim"
SAYS_SO = ("confirmed-internally", "circular")  # that claims are among its figures
STANDINGS = {WITHIN_SPREAD: "lies within the spread of the runs", "exceeds": "is exceeded"}
COUNTS = {1: "One value", 2: "Both values"}
# how a sentence names what a value takes the claim to mean
NAMES = {
    "division": "in the {} division",
    "system": "on {}",
    "source": "by {}",
    "reading": "read as {}",
}


class Finding(NamedTuple):
    """A value that counts, with its outcome and what it takes the claim to leave open."""

    value: float
    outcome: str
    axes: Axes


def explain(
    claim: Mapping[str, Any],
    verdict: str,
    findings: Sequence[Finding],
    stand_in: str | None,
    *,
    uses_claims: bool,
) -> str:
    """Return the reason of a verdict over at least one value that counts."""
    reason = (
        _explain_whole(claim, verdict, findings, stand_in)
        if verdict in REASONS
        else _explain_parts(claim, findings)
    )
    later = LATER if claim["basis"] == LATER_SDK else ""
    in_part = IN_PART if uses_claims and verdict not in SAYS_SO else ""
    return reason + later + in_part


def _explain_whole(
    claim: Mapping[str, Any], verdict: str, findings: Sequence[Finding], stand_in: str | None
) -> str:
    count = len(findings)
    return REASONS[verdict].format(
        values=COUNTS.get(count, f"All {count} values"),
        agree="agrees" if count == 1 else "agree",
        range=_format_range(claim, [finding.value for finding in findings]),
        figure=claim["figure"],
        stand_in=stand_in,
    )


def _explain_parts(claim: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    """Say for each thing that the claim may mean whether it holds, what holds first."""
    parts: dict[str, dict[str, list[float]]] = {}
    for finding in sorted(findings, key=lambda finding: finding.outcome not in HOLDING):
        named = parts.setdefault(_stand(finding.outcome, claim["basis"]), {})
        named.setdefault(_name(finding, findings), []).append(finding.value)
    texts = []
    for standing, named in parts.items():
        values = [f"{name} ({_format_range(claim, group)})" for name, group in named.items()]
        texts.append(f"{standing} {', '.join(values)}")
    return f"“{claim['figure']}” " + "; ".join(texts)


def _stand(outcome: str, basis: str) -> str:
    if outcome in HOLDING:
        return "is reached" if basis == LATER_SDK else "holds"
    return STANDINGS.get(outcome, "fails")


def _name(finding: Finding, findings: Sequence[Finding]) -> str:
    """Name what a value takes as said and others take otherwise, such as the open division."""
    names = [
        NAMES[axis].format(value)
        for position, (axis, value) in enumerate(zip(AXES, finding.axes, strict=True))
        if len({other.axes[position] for other in findings}) > 1
    ]
    return " ".join(names) or "against other rows of its baseline"


def _format_range(claim: Mapping[str, Any], values: Sequence[float]) -> str:
    low, high = (format_value(value, claim) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
