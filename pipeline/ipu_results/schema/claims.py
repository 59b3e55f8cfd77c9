"""The tables of the claims ledger."""

from __future__ import annotations

from ipu_results.schema.columns import Column, Table, double, integer, text

RELATIONS = ("eq", "rounded-or-cut", "more-than", "less-than", "just-over", "at-most")
OWN, INTERNAL, LATER_SDK = BASES = ("own", "internal", "later-sdk")
OUTCOMES = ("agrees", "exceeds", "differs", "falls-short")
VERDICTS = (
    "confirmed",
    "confirmed-internally",
    "depends-on-baseline",
    "not-supported",
    "contradicted",
    "not-recomputable",
)
KINDS = ("contradiction", "tension", "compatible")
NAME = r"[a-z0-9][a-z0-9.-]*"


def _recomputation(what: str) -> tuple[Column, ...]:
    return (
        text("recomputation", f"SQL file under `raw/claims/sql` that recomputes {what}; null where none can."),
        text("recomputation_sql", "Its text, as it ran over this build."),
        text(
            "recomputed",
            "What it gave: a JSON list of objects with value, baseline and arithmetic; the same rows as in "
            "`recomputations`.",
            required=True,
        ),
    )


CLAIMS = Table(
    "claims",
    "One quantitative claim of a document, what it gives when it is computed again, and the verdict that follows.",
    (
        text("claim_id", "Name of the claim, stable across builds.", required=True, pattern=NAME),
        text("document_id", "Document that claims it.", required=True, references="documents.document_id"),
        text("claim", "What is claimed, in our words.", required=True),
        text("figure", "The figure or word as printed.", required=True),
        double("value", "The figure as a number, in `unit`.", required=True),
        text("unit", "Unit of `value`; x is a ratio.", required=True),
        double("digits_tolerance", "Half a unit of the last printed digit; 0 for a bound.", required=True),
        text(
            "relation",
            "When a recomputed value v holds against the claimed c with tolerance t. eq: |v − c| ≤ t. rounded-or-cut: "
            "c − t ≤ v < c + 2t. more-than: v > c. less-than: v < c. just-over: c ≤ v < c + t. at-most: v ≤ c.",
            choices=RELATIONS,
        ),
        text("subject", "What the claim is about, as named there."),
        text("baseline", "What it is compared with, as named there; null where with nothing."),
        text("model", "Model, canonical where it has such a name."),
        text("task", "Task that it speaks of.", choices=("training", "inference")),
        text("metric", "What is compared or counted.", required=True),
        text("direction", "Whether more or less of the metric is better.", choices=("higher", "lower")),
        text("sdk_version", "SDK of the claim."),
        text("precision", "Precision of the claim, of both sides where both are told."),
        text("batch", "Batch sizes of the claim."),
        text("framework", "Frameworks of the claim."),
        text("dataset", "Data of the claim."),
        text("place", "Where in the document.", required=True),
        text("interpretation", "How the claim was read, where that is not plain."),
        text(
            "basis",
            "What the recomputation rests on. own: figures of the claim's own subject and baseline. internal: figures "
            "of the same document, in whole or in part. later-sdk: figures of a later SDK, which bound the claim from "
            "above where they do not agree.",
            choices=BASES,
        ),
        *_recomputation("the claim"),
        text("verdict", "What the recomputation says; a rule gives it, never a hand.", required=True, choices=VERDICTS),
        text("not_recomputable", "Why its verdict is that; null for every other verdict."),
        text("ledger_id", "Document of `raw/` that the row stands in.", references="documents.document_id"),
        text("locator", "Where in that document.", required=True),
    ),
    key=("claim_id",),
)

RECOMPUTATIONS = Table(
    "recomputations",
    "One value that a recomputation of a claim gave, against one baseline.",
    (
        text("claim_id", "The claim.", required=True, references="claims.claim_id"),
        integer("position", "Position among the values of the claim, from 1.", required=True, low=1),
        double("value", "The recomputed value, unrounded, in the unit of the claim.", required=True, low=-1e15),
        text("baseline", "What was compared, and with what.", required=True),
        text("arithmetic", "The computation with its figures.", required=True),
        text(
            "outcome",
            "What the value says of the claim, by its relation. agrees or differs; for figures of a later SDK also "
            "exceeds, which bounds the claim from above and says no more, and falls-short in place of differs.",
            required=True,
            choices=OUTCOMES,
        ),
    ),
    key=("claim_id", "position"),
)

CONTRADICTIONS = Table(
    "contradictions",
    "Claims that contradict each other or the dataset, or seem to.",
    (
        text("contradiction_id", "Name of the contradiction, stable across builds.", required=True, pattern=NAME),
        text(
            "kind",
            "contradiction: both cannot be. tension: both can be, under a condition. compatible: it only seems so.",
            required=True,
            choices=KINDS,
        ),
        text("claim_ids", "Its claims, parted by blanks.", required=True, pattern=rf"{NAME}( {NAME})*"),
        text("what", "What contradicts what.", required=True),
        text("resolution", "What is known about it.", required=True),
        *_recomputation("it"),
        text("document_id", "Document of `raw/` that the row stands in.", references="documents.document_id"),
        text("locator", "Where in that document.", required=True),
    ),
    key=("contradiction_id",),
)
