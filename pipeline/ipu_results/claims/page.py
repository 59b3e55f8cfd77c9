"""The ledger in Markdown: every claim with its verdict and its arithmetic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from ipu_results._util.markdown import format_code, format_markdown_table
from ipu_results.claims.ledger import Ledger, Record, shown
from ipu_results.schema import table as published_table

VERDICTS = published_table("claims").choices("verdict")
HEAD = """# Claims, recomputed

Every quantitative claim of the five documents, in our words with the printed figure, and what it gives when it is
computed again from this dataset. A rule gives each verdict; no hand types one. The SQL of each stands in
`raw/claims/sql` and in the column `recomputation_sql` of the table `claims`; it ran when the dataset was built. This
page is generated: `UPDATE_DOCS=1 pytest tests/test_claims_command.py`.

| verdict | when |
|---|---|
| confirmed | every recomputed value agrees |
| confirmed-internally | every value agrees, but they rest, in whole or in part, on the same document or another claim |
| depends-on-baseline | some values agree or exceed and some do not: it hangs on the baseline, phase or network meant |
| not-supported | every value falls short, although the figures are of a later SDK, which should be faster |
| contradicted | no value agrees |
| not-recomputable | no table of this dataset has the figures, or only a later SDK reaches the claim |

A value agrees within half a unit of the last printed digit; a multiple such as 17x also where the digits were cut off
(17.6). *Over*, *less than* and the like are bounds. ✓ marks a value that agrees, ✗ one that does not, ≥ one of a later
SDK that exceeds the claim: it bounds it from above and says no more.

Figures of MLPerf Training are those of the official logs, [as described here](mlperf.md); ratios per dollar are no
MLPerf metric.
"""
MARKS = {"agrees": "✓", "exceeds": "≥", "differs": "✗", "falls-short": "✗"}
FIRST = ("contradicted", "not-supported", "depends-on-baseline")
CONDITIONS = {
    "model": "",
    "task": "",
    "sdk_version": "SDK ",
    "precision": "",
    "batch": "batch ",
    "framework": "",
    "dataset": "",
}


def page(ledger: Ledger) -> str:
    """The whole page, in the order of the documents."""
    parts = [HEAD, _counts(ledger), _first(ledger), _contradictions(ledger.contradictions)]
    for document_id, claims in groupby(ledger.claims, key=lambda claim: claim["document_id"]):
        parts.append(f"## {ledger.titles[document_id]}\n")
        parts += ["\n".join(lines(claim)) + "\n" for claim in claims]
    return "\n".join(parts)


def lines(claim: Record) -> Iterator[str]:
    """One claim: figure and verdict, what is claimed, under which conditions, how it was read, its arithmetic."""
    yield f"### `{claim['claim_id']}`: {claim['figure']}: **{claim['verdict']}**"
    yield ""
    yield f"{claim['claim']} ({claim['place']})."
    if conditions := ", ".join(f"{word}{claim[name]}" for name, word in CONDITIONS.items() if claim[name]):
        yield f"Conditions: {conditions}."
    if claim["interpretation"]:
        yield f"Read so: {claim['interpretation']}."
    if claim["not_recomputable"]:
        yield f"Why not: {claim['not_recomputable'].removesuffix('.')}."
    if claim["values"]:
        yield ""
    for one in claim["values"]:
        yield f"- {MARKS[one['outcome']]} {one['arithmetic']} · {one['baseline']}"


def _counts(ledger: Ledger) -> str:
    """A table of documents and verdicts."""
    documents = list(dict.fromkeys(claim["document_id"] for claim in ledger.claims))
    counts = Counter((claim["document_id"], claim["verdict"]) for claim in ledger.claims)
    rows = {format_code(name): [counts[name, verdict] for verdict in VERDICTS] for name in documents}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    head = ["document", *VERDICTS, "claims"]
    return format_markdown_table(head, ([name, *row, sum(row)] for name, row in rows.items()))


def _first(ledger: Ledger) -> str:
    rows = [
        [
            format_code(claim["claim_id"]),
            claim["figure"],
            verdict,
            "; ".join(shown(one["value"], claim) for one in claim["values"]),
        ]
        for verdict in FIRST
        for claim in ledger.claims
        if claim["verdict"] == verdict
    ]
    return "## What does not simply hold\n\n" + format_markdown_table(
        ["claim", "printed", "verdict", "recomputed"], rows
    )


def _contradictions(rows: Sequence[Record]) -> str:
    told = ["## Contradictions between documents\n"]
    for one in rows:
        told.append(f"### `{one['contradiction_id']}`: {one['kind']}\n\n{one['what']}. {one['resolution']}.")
        told.append("Claims: " + ", ".join(f"`{name}`" for name in one["claim_ids"].split()) + ".")
        if values := json.loads(one["recomputed"]):
            told.append("\n" + "\n".join(f"- {value['arithmetic']} · {value['baseline']}" for value in values))
        told.append("")
    return "\n".join(told)
