"""Say in a sentence why a claim has its verdict, from the values that count and how they stand."""

from __future__ import annotations

from collections.abc import Sequence

from ipu_results.record.recompute.claims import format_span
from ipu_results.record.recompute.verdict import HOLDING, LATER_SDK, WITHIN_SPREAD, Finding
from ipu_results.schema.records import ClaimsRow

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
    "within-run-to-run-spread": (
        "The runs cannot separate the two scores behind “{figure}”: {range}"
    ),
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


def explain(
    claim: ClaimsRow,
    verdict: str,
    findings: Sequence[Finding],
    stand_in: str | None,
    *,
    uses_claims: bool,
) -> str:
    """Return the reason of a verdict over at least one value that counts."""
    if verdict in REASONS:
        count = len(findings)
        reason = REASONS[verdict].format(
            values=COUNTS.get(count, f"All {count} values"),
            agree="agrees" if count == 1 else "agree",
            range=_format_range(claim, [finding.value for finding in findings]),
            figure=claim["figure"],
            stand_in=stand_in,
        )
    else:
        reason = _explain_parts(claim, findings)
    if claim["basis"] == LATER_SDK:
        reason += LATER
    if uses_claims and verdict not in SAYS_SO:
        reason += IN_PART
    return reason


def _explain_parts(claim: ClaimsRow, findings: Sequence[Finding]) -> str:
    """Say for each thing that the claim may mean whether it holds, what holds first."""
    parts: dict[str, dict[str, list[float]]] = {}
    for finding in sorted(findings, key=lambda finding: finding.outcome not in HOLDING):
        named = parts.setdefault(_describe_outcome(finding.outcome, claim["basis"]), {})
        named.setdefault(_name(finding, findings), []).append(finding.value)
    texts = []
    for standing, named in parts.items():
        values = [f"{name} ({_format_range(claim, group)})" for name, group in named.items()]
        texts.append(f"{standing} {', '.join(values)}")
    return f"“{claim['figure']}” " + "; ".join(texts)


def _describe_outcome(outcome: str, basis: str | None) -> str:
    if outcome not in HOLDING:
        return STANDINGS.get(outcome, "fails")
    return "is reached" if basis == LATER_SDK else "holds"


def _name(finding: Finding, findings: Sequence[Finding]) -> str:
    """Name what a value takes as said and others take otherwise, such as the open division."""
    names = []
    for axis, meaning in finding.axes.items():
        if any(other.axes[axis] != meaning for other in findings):
            names.append(NAMES[axis].format(meaning))
    return " ".join(names) or "against other rows of its baseline"


def _format_range(claim: ClaimsRow, values: Sequence[float]) -> str:
    return format_span(claim, values, " to ")
