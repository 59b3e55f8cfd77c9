"""Load the claims of a warehouse with their recomputed values and the contradictions, and write
them as Markdown.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_code, format_markdown_table
from ipu_results.recompute.run import measure_sdk_margins
from ipu_results.recompute.verdict import Gap
from ipu_results.schema import table

Record = Mapping[str, Any]
RECORD_COLUMNS = (
    "claim_id",
    "document_id",
    "figure",
    "verdict",
    "recomputed",
    "gap_percent",
    "gap_kind",
    "inputs",
)


@dataclass(frozen=True, slots=True)
class Claims:
    """Rows of `claims` in the order of the documents, each with its `values` (rows of
    `recomputations`) and `inputs`.

    `inputs` are pairs of table and key. `titles`, `notes` and `publishers` are those of the
    documents. `sdk_margins` are the largest slow-down and speed-up measured between SDKs, shares.
    """

    claims: Sequence[Record]
    contradictions: Sequence[Record]
    titles: Mapping[str, str]
    notes: Mapping[str, str]
    publishers: Mapping[str, str]
    sdk_margins: tuple[float, float]


def load_claims(connection: duckdb.DuckDBPyConnection) -> Claims:
    """Load all claims. Raises QueryError for a warehouse without them."""
    tables = {
        name: run_query(connection, f"FROM {table(name).sql_name}").to_pylist()
        for name in (
            "claims",
            "recomputations",
            "contradictions",
            "recomputation_inputs",
            "documents",
        )
    }
    values: dict[str, list[Record]] = {claim["claim_id"]: [] for claim in tables["claims"]}
    for row in sorted(tables["recomputations"], key=lambda row: row["position"]):
        values[row["claim_id"]].append(row)
    inputs: dict[str, dict[tuple[str, str], None]] = {
        claim["claim_id"]: {} for claim in tables["claims"]
    }
    for row in sorted(
        tables["recomputation_inputs"], key=lambda row: (row["table_name"], row["key"])
    ):
        inputs.get(row["claim_id"], {})[row["table_name"], row["key"]] = None
    claims = [
        {**claim, "values": values[claim["claim_id"]], "inputs": list(inputs[claim["claim_id"]])}
        for claim in tables["claims"]
    ]
    titles = {document["document_id"]: document["title"] for document in tables["documents"]}
    notes = {document["document_id"]: document["note"] for document in tables["documents"]}
    publishers = {
        document["document_id"]: document["publisher"] for document in tables["documents"]
    }
    return Claims(
        claims, tables["contradictions"], titles, notes, publishers, measure_sdk_margins(connection)
    )


def format_record(claim: Record) -> dict[str, Any]:
    """Return a claim for a program: `recomputed` is a list of value, baseline and arithmetic,
    values unrounded.

    `inputs` is a list of 'table:key', the rows that the recomputation used.
    """
    inputs = [f"{table_name}:{key}" for table_name, key in claim["inputs"]]
    lists = {"recomputed": json.loads(claim["recomputed"]), "inputs": inputs}
    return {name: lists.get(name, claim[name]) for name in RECORD_COLUMNS}


def format_gap(claim: Record) -> str:
    """Return the gap of a claim, such as '-1.7 %, within-run-to-run-spread'; blank without values."""
    kind, percent = claim["gap_kind"], claim["gap_percent"]
    if kind is None:
        return ""
    return kind if percent is None else f"{format_percent(percent)}, {kind}"


def format_percent(percent: float) -> str:
    """Format a percentage with a sign and two significant digits, or more from 100 on."""
    digits = f"{percent:+.0f}" if abs(percent) >= 10 else f"{percent:+.2g}"
    return "0 %" if float(digits) == 0 else f"{float(digits):+g} %"


def format_range(claim: Record) -> str:
    """Return the recomputed values in a few characters: the only one, or the smallest and the
    largest.
    """
    values = [row["value"] for row in claim["values"]]
    if not values:
        return ""
    low, high = format_value(min(values), claim), format_value(max(values), claim)
    return low if low == high else f"{low} … {high}"


def format_value(value: float, claim: Record) -> str:
    """Format a recomputed value: four digits, or two decimals more than the claim has; from 1,000
    without decimals.
    """
    tolerance = claim["digits_tolerance"]
    decimals = -round(math.log10(2 * tolerance)) if tolerance else 0
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{decimals + 2}f}" if decimals > 0 else f"{value:.4g}"


VERDICTS = table("claims").choices("verdict")
INTRODUCTION = """# Claims, recomputed

This page lists the {claims} quantitative claims that were read in {documents} documents, in our words with the printed
figure: those of the vendor, and those of others about its machines and what they are compared with. What was read of a
document, and what was not, is said under its title. Next to each claim is what this dataset gives for it. A rule gives
the verdict; no hand types one.
Of the {performance} claims of performance, {confirmed} are confirmed by figures outside their document. Some claims are
printed twice, in a blog and in its charts, and count twice.

The SQL of each recomputation is in `raw/claims/sql` and in the column `recomputation_sql` of the table `claims`. It ran
when the dataset was built. The rows that it used are in the table `detail.recomputation_inputs`.

| verdict | when |
|---|---|
| confirmed | all values that count agree; those of a count or a specification may be a datasheet's |
| confirmed-internally | the same, but they rest, at least in part, on the same document or another claim |
| circular | the same, but a value is arithmetic over claims and datasheets alone: no measurement |
| last-digit-differs | all values agree or differ by at most one unit of the last printed digit |
| reached-by-later-sdk | the figures are of a later SDK and give or reach the claim: no confirmation |
| exceeded-by-later-sdk | the figures are of a later SDK, and exceed the claim by more than two SDKs have differed |
| not-supported | the same, but they fall short of the claim by more than two SDKs have differed |
| depends-on-reading | the claim holds in one reading of its words and fails in another |
| depends-on-baseline | some values agree and some do not, for another reason: baseline, division, system or source |
| swapped-baseline | all values have another baseline than the claim's, which is not at hand or not named |
| contradicted | no value agrees |
| within-run-to-run-spread | a difference between MLPerf scores that their runs cannot separate, in every reading |
| not-recomputable | no table of this dataset has the figures, or none in the set-up of the claim |

## Which values agree

* A value agrees within half a unit of the last printed digit. *Over*, *less than* and the like are bounds.
* One unit of the last digit, above or below, is a last digit that differs: 3.3 where 3.4 is printed. If the unit is
  worth more than a twentieth of the figure, it is not passed over: 7 results are not 6.
* The view `detail.sdk_effect` has a slow-down between two SDKs of at most {slow_down:.1f} %, and a speed-up of at most
  {speed_up:.1f} %. Within that distance, a figure of a later SDK speaks neither for nor against a claim. Beyond it,
  above counts as much as below.

## Which values count

Every value is shown. These do not count for the verdict:

* one part of a whole, such as a phase of a claim on the whole training
* rows of another framework, precision, card or baseline than the claim names, where one with its own is at hand
* a measure that the claim does not speak of, such as throughput for MLPerf minutes

A value that falls short counts as much as one that exceeds the claim. A sentence that leaves its conditions out is
judged by those of its chart, which the table `detail.claim_conditions` names. Two claims of one figure thus get one
verdict.

## How large the gap is

The gap is that of the nearest value that counts, in percent of the claimed figure.

| gap | when |
|---|---|
| none | the value is exactly the claimed figure, or a bound holds |
| last-digit | it rounds to the printed figure, or differs by at most one unit of the last digit |
| within-run-to-run-spread | the claimed figure is within the 95 % interval of an MLPerf score or of a difference |
| beyond | all else, also a figure of a later SDK that exceeds the claim |

## Marks

✓ marks a value that agrees, ✗ one that does not. ~ marks one that differs in the last digit. Of a later SDK, ≥ marks a
bound that holds, ± a value within what two SDKs have differed by, ↑ and ↓ one above and below that. ≈ marks a
difference between two MLPerf scores that is within the spread of their runs,
[at 95 %](../explanation/mlperf.md#error-bars). Round brackets hold a value that does not count.

Figures of MLPerf Training are those of the official logs, [as described here](../explanation/mlperf.md). Ratios per
dollar are not an MLPerf metric. [How to recompute a claim](../how-to/recompute-a-claim.md) describes the SQL.

## Verdicts by kind and by document
"""
MARKS = {
    "agrees": "✓",
    "last-digit": "~",
    "within-spread": "≈",
    "within-sdk-spread": "±",
    "reaches": "≥",
    "exceeds": "↑",
    "differs": "✗",
    "falls-short": "↓",
}
PERFORMANCE = "performance"
NOT_LISTED = ("confirmed", "confirmed-internally", "circular", "not-recomputable")
SHOWN_INPUTS = 6
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
    documents = len({claim["document_id"] for claim in claims.claims})
    performance = [claim for claim in claims.claims if claim["kind"] == PERFORMANCE]
    introduction = INTRODUCTION.format(
        claims=len(claims.claims),
        documents=documents,
        performance=len(performance),
        confirmed=sum(claim["verdict"] == VERDICTS[0] for claim in performance),
        slow_down=100 * claims.sdk_margins[0],
        speed_up=100 * claims.sdk_margins[1],
    )
    counts = [
        _format_counts(claims, "kind"),
        _format_counts(claims, "document_id", "document"),
        _format_rivals(claims),
    ]
    parts = [
        introduction,
        *counts,
        _format_first(claims),
        _format_contradictions(claims.contradictions),
    ]
    for document_id, group in groupby(claims.claims, key=lambda claim: claim["document_id"]):
        own = list(group)
        parts.append(f"## {claims.titles[document_id]}\n\n{claims.notes[own[0]['ledger_id']]}\n")
        parts += ["\n".join(format_claim(claim)) + "\n" for claim in own]
    return "\n".join(parts)


def format_claim(claim: Record) -> Iterator[str]:
    """Yield the lines of one claim: figure, verdict, conditions, interpretation, gap, arithmetic,
    inputs.
    """
    yield f"### `{claim['claim_id']}`: {claim['figure']}: **{claim['verdict']}**"
    yield ""
    yield f"{claim['claim']} ({claim['place']})."
    if conditions := ", ".join(
        f"{word}{claim[name]}" for name, word in CONDITIONS.items() if claim[name]
    ):
        yield f"Conditions: {conditions}."
    if claim["swapped_baseline"]:
        yield f"Swapped baseline: {claim['swapped_baseline']}."
    if claim["interpretation"]:
        yield f"Interpretation: {claim['interpretation']}."
    if claim["not_recomputable"]:
        yield f"Reason: {claim['not_recomputable'].removesuffix('.')}."
    if not claim["values"]:
        return
    yield f"Gap: {format_gap(claim)}."
    yield ""
    for row in claim["values"]:
        yield f"- {_format_mark(row)} {row['arithmetic']} · {row['baseline']}{_format_reason(row)}"
    yield ""
    yield f"Inputs: {_format_inputs(claim['inputs'])}."


def _format_mark(row: Record) -> str:
    mark = MARKS[row["outcome"]]
    return f"({mark})" if row["not_counted"] else mark


def _format_reason(row: Record) -> str:
    return f" · does not count: {row['not_counted']}" if row["not_counted"] else ""


def _format_inputs(inputs: Sequence[tuple[str, str]]) -> str:
    """List the first keys of each table, and how many more there are."""
    parts = []
    for table_name, group in groupby(inputs, key=lambda item: item[0]):
        keys = [key for _, key in group]
        more = f" and {len(keys) - SHOWN_INPUTS} more" if len(keys) > SHOWN_INPUTS else ""
        parts.append(f"{table_name} {', '.join(map(format_code, keys[:SHOWN_INPUTS]))}{more}")
    return "; ".join(parts)


def _format_counts(claims: Claims, column: str, name: str | None = None) -> str:
    """Return a table of the values of a column and verdicts."""
    values = list(dict.fromkeys(claim[column] for claim in claims.claims))
    counts = Counter((claim[column], claim["verdict"]) for claim in claims.claims)
    rows = {
        format_code(value): [counts[value, verdict] for verdict in VERDICTS] for value in values
    }
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    header = [name or column, *VERDICTS, "claims"]
    return format_markdown_table(header, ([name, *row, sum(row)] for name, row in rows.items()))


def _format_rivals(claims: Claims) -> str:
    """Return the verdicts by the publisher of the claim: the vendor's and those of others, by the
    same rules.
    """
    named = [
        {**claim, "publisher": claims.publishers[claim["document_id"]]} for claim in claims.claims
    ]
    return _format_counts(replace(claims, claims=named), "publisher")


def _format_first(claims: Claims) -> str:
    """Return a table of the claims that were not confirmed, the widest gap first."""
    listed = [claim for claim in claims.claims if claim["verdict"] not in NOT_LISTED]
    listed.sort(key=lambda claim: Gap(claim["gap_percent"], claim["gap_kind"]).rank(), reverse=True)
    rows = [
        [
            format_code(claim["claim_id"]),
            claim["figure"],
            format_range(claim),
            format_gap(claim),
            claim["verdict"],
        ]
        for claim in listed
    ]
    header = ["claim", "printed", "recomputed", "gap", "verdict"]
    return "## Claims that were not confirmed\n\n" + format_markdown_table(header, rows)


def _format_contradictions(rows: Sequence[Record]) -> str:
    parts = ["## Contradictions between documents\n"]
    for row in rows:
        parts.append(
            f"### `{row['contradiction_id']}`: {row['kind']}\n\n{row['what']}. {row['resolution']}."
        )
        if row["claim_ids"]:
            parts.append(
                "Claims: " + ", ".join(f"`{name}`" for name in row["claim_ids"].split()) + "."
            )
        if values := json.loads(row["recomputed"]):
            parts.append(
                "\n"
                + "\n".join(f"- {value['arithmetic']} · {value['baseline']}" for value in values)
            )
        parts.append("")
    return "\n".join(parts)
