"""Write the claims as Markdown: every claim with its verdict and its arithmetic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from ipu_results._util.markdown import format_code, format_markdown_table
from ipu_results.recompute.claims import Claims, Record, format_value
from ipu_results.schema import table

VERDICTS = table("claims").choices("verdict")
INTRODUCTION = """# Claims, recomputed

This page lists every quantitative claim of the seven documents, in our words with the printed figure. Next to each
claim is what this dataset gives for it. A rule gives the verdict; no hand types one. The SQL of each recomputation is
in `raw/claims/sql` and in the column `recomputation_sql` of the table `claims`. It ran when the dataset was built.

| verdict | when |
|---|---|
| confirmed | every recomputed value agrees |
| confirmed-internally | every value agrees, but they rest, at least in part, on the same document or another claim |
| depends-on-baseline | some values agree or exceed and some do not: it depends on the baseline, phase or network |
| not-supported | every value falls short, although the figures are of a later SDK, which should be faster |
| contradicted | no value agrees |
| within-run-to-run-spread | a difference between MLPerf scores that their runs cannot separate, in every reading |
| not-recomputable | no table of this dataset has the figures, or only a later SDK reaches the claim |

A value agrees within half a unit of the last printed digit. A multiple such as 17x also agrees if its digits were cut
off (17.6). *Over*, *less than* and the like are bounds. ✓ marks a value that agrees and ✗ one that does not. ≥ marks a
value of a later SDK that exceeds the claim: it is an upper bound and no confirmation. ≈ marks a difference between
two MLPerf scores that is within the spread of their runs, [at 95 %](../explanation/mlperf.md#error-bars).

Figures of MLPerf Training are those of the official logs, [as described here](../explanation/mlperf.md). Ratios per
dollar are not an MLPerf metric.
"""
MARKS = {"agrees": "✓", "within-spread": "≈", "exceeds": "≥", "differs": "✗", "falls-short": "✗"}
FIRST = ("contradicted", "not-supported", "within-run-to-run-spread", "depends-on-baseline")
CONDITIONS = {
    "model": "",
    "task": "",
    "sdk_version": "SDK ",
    "precision": "",
    "batch": "batch ",
    "framework": "",
    "dataset": "",
}


def format_page(claims: Claims) -> str:
    """Return the whole page, in the order of the documents."""
    parts = [INTRODUCTION, _format_counts(claims), _format_first(claims), _format_contradictions(claims.contradictions)]
    for document_id, group in groupby(claims.claims, key=lambda claim: claim["document_id"]):
        parts.append(f"## {claims.titles[document_id]}\n")
        parts += ["\n".join(format_claim(claim)) + "\n" for claim in group]
    return "\n".join(parts)


def format_claim(claim: Record) -> Iterator[str]:
    """Yield the lines of one claim: figure, verdict, conditions, interpretation, arithmetic."""
    yield f"### `{claim['claim_id']}`: {claim['figure']}: **{claim['verdict']}**"
    yield ""
    yield f"{claim['claim']} ({claim['place']})."
    if conditions := ", ".join(f"{word}{claim[name]}" for name, word in CONDITIONS.items() if claim[name]):
        yield f"Conditions: {conditions}."
    if claim["interpretation"]:
        yield f"Interpretation: {claim['interpretation']}."
    if claim["not_recomputable"]:
        yield f"Reason: {claim['not_recomputable'].removesuffix('.')}."
    if claim["values"]:
        yield ""
    for row in claim["values"]:
        yield f"- {MARKS[row['outcome']]} {row['arithmetic']} · {row['baseline']}"


def _format_counts(claims: Claims) -> str:
    """Return a table of documents and verdicts."""
    documents = list(dict.fromkeys(claim["document_id"] for claim in claims.claims))
    counts = Counter((claim["document_id"], claim["verdict"]) for claim in claims.claims)
    rows = {format_code(name): [counts[name, verdict] for verdict in VERDICTS] for name in documents}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    header = ["document", *VERDICTS, "claims"]
    return format_markdown_table(header, ([name, *row, sum(row)] for name, row in rows.items()))


def _format_first(claims: Claims) -> str:
    rows = [
        [
            format_code(claim["claim_id"]),
            claim["figure"],
            verdict,
            "; ".join(format_value(row["value"], claim) for row in claim["values"]),
        ]
        for verdict in FIRST
        for claim in claims.claims
        if claim["verdict"] == verdict
    ]
    header = ["claim", "printed", "verdict", "recomputed"]
    return "## Claims that were not confirmed\n\n" + format_markdown_table(header, rows)


def _format_contradictions(rows: Sequence[Record]) -> str:
    parts = ["## Contradictions between documents\n"]
    for row in rows:
        parts.append(f"### `{row['contradiction_id']}`: {row['kind']}\n\n{row['what']}. {row['resolution']}.")
        parts.append("Claims: " + ", ".join(f"`{name}`" for name in row["claim_ids"].split()) + ".")
        if values := json.loads(row["recomputed"]):
            parts.append("\n" + "\n".join(f"- {value['arithmetic']} · {value['baseline']}" for value in values))
        parts.append("")
    return "\n".join(parts)
