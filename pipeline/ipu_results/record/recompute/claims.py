"""Load the claims of a warehouse with their recomputed values, and write one as Markdown."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ipu_results.kit.sql import Connection, run_query
from ipu_results.kit.text import format_code
from ipu_results.schema import table
from ipu_results.schema.records import ClaimsRow, RecomputationsRow

RECORD_COLUMNS = (
    "claim_id",
    "document_id",
    "figure",
    "verdict",
    "recomputed",
    "gap_percent",
    "gap_kind",
    "inputs",
    "reason",
)


class Claim(ClaimsRow):
    """A claim with its recomputed values and the rows that they used, pairs of table and key."""

    values: Sequence[RecomputationsRow]
    inputs: Sequence[tuple[str, str]]


def load_claims(connection: Connection) -> list[Claim]:
    """Load all claims in the order of the documents.

    Raises QueryError for a warehouse without claims.
    """
    claims: list[Claim] = run_query(connection, f"FROM {table('claims').sql_name}").to_pylist()
    values = run_query(connection, f"FROM {table('recomputations').sql_name} ORDER BY position")
    inputs = run_query(
        connection,
        f"SELECT DISTINCT claim_id, table_name, key FROM {table('recomputation_inputs').sql_name}"
        " ORDER BY table_name, key",
    )
    values_of: dict[str, list[RecomputationsRow]] = defaultdict(list)
    for row in values.to_pylist():
        values_of[row["claim_id"]].append(row)
    inputs_of: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in inputs.to_pylist():
        inputs_of[row["claim_id"]].append((row["table_name"], row["key"]))
    for claim in claims:
        claim["values"] = values_of[claim["claim_id"]]
        claim["inputs"] = inputs_of[claim["claim_id"]]
    return claims


def format_record(claim: Claim) -> dict[str, Any]:
    """Return a claim for a program: `recomputed` is a list of value, baseline and arithmetic,
    values unrounded.

    `inputs` is a list of 'table:key', the rows that the recomputation used.
    """
    record = {
        **claim,
        "recomputed": json.loads(claim["recomputed"]),
        "inputs": [f"{table_name}:{key}" for table_name, key in claim["inputs"]],
    }
    return {name: record[name] for name in RECORD_COLUMNS}


def format_gap(claim: ClaimsRow) -> str:
    """Return the gap of a claim, such as '-1.7 %, within-run-to-run-spread'; '' without values."""
    percent = claim["gap_percent"]
    if percent is None:
        return claim["gap_kind"] or ""
    return f"{format_percent(percent)}, {claim['gap_kind']}"


def format_percent(percent: float) -> str:
    """Format a percentage with a sign and two significant digits, or more from 100 on."""
    shown = float(f"{percent:.0f}" if abs(percent) >= 10 else f"{percent:.2g}")
    return f"{shown:+g} %" if shown else "0 %"


def format_range(claim: Claim) -> str:
    """Return the recomputed values in a few characters: the only one, or the smallest and the
    largest.
    """
    values = [row["value"] for row in claim["values"]]
    return format_span(claim, values, " … ") if values else ""


def format_span(claim: ClaimsRow, values: Sequence[float], between: str) -> str:
    """Format the smallest and the largest of recomputed values, once if they look the same."""
    low = format_value(min(values), claim)
    high = format_value(max(values), claim)
    return low if low == high else f"{low}{between}{high}"


def format_value(value: float, claim: ClaimsRow) -> str:
    """Format a recomputed value: four digits, or two decimals more than the claim has; from 1,000
    without decimals.
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    decimals = 0  # of the claim
    if claim["digits_tolerance"]:
        unit_of_last_digit = 2 * claim["digits_tolerance"]
        decimals = -round(math.log10(unit_of_last_digit))
    return f"{value:.{decimals + 2}f}" if decimals > 0 else f"{value:.4g}"


MARKS = {
    "agrees": "✓",
    "last-digit": "~",
    "within-spread": "≈",
    "within-sdk-spread": "±",
    "reaches": "≥",
    "exceeds": "↑",
    "differs": "✗",
    "nearly-reaches": "∓",
    "falls-short": "↓",
}
SHOWN_INPUTS = 6
CONDITIONS = {
    "model_printed": "",
    "task": "",
    "sdk_version": "SDK ",
    "precision_printed": "",
    "batch": "batch ",
    "framework": "",
    "dataset_printed": "",
}


def format_claim(claim: Claim) -> Iterator[str]:
    """Yield the lines of one claim: figure, verdict, reason, conditions, interpretation, gap,
    arithmetic, inputs.
    """
    yield f"### `{claim['claim_id']}`: {claim['figure']}: **{claim['verdict']}**"
    yield ""
    yield f"{claim['claim']} ({claim['place']})."
    yield f"Reason: {claim['reason'].removesuffix('.')}."
    printed: Mapping[str, object] = claim
    conditions = [f"{word}{printed[name]}" for name, word in CONDITIONS.items() if printed[name]]
    if conditions:
        yield f"Conditions: {', '.join(conditions)}."
    if claim["interpretation"]:
        yield f"Interpretation: {claim['interpretation']}."
    if not claim["values"]:
        return
    yield f"Gap: {format_gap(claim)}."
    yield ""
    for row in claim["values"]:
        yield f"- {_format_value_line(row)}"
    yield ""
    yield f"Inputs: {_format_inputs(claim['inputs'])}."


def _format_value_line(row: RecomputationsRow) -> str:
    mark = MARKS[row["outcome"]]
    text = f"{row['arithmetic']} · {row['baseline']}"
    if row["not_counted"]:
        return f"({mark}) {text} · does not count: {row['not_counted']}"
    return f"{mark} {text}"


def _format_inputs(inputs: Sequence[tuple[str, str]]) -> str:
    """List the first keys of each table, and how many more there are."""
    keys_of: dict[str, list[str]] = defaultdict(list)
    for table_name, key in inputs:
        keys_of[table_name].append(format_code(key))
    parts = []
    for table_name, keys in keys_of.items():
        part = f"{table_name} {', '.join(keys[:SHOWN_INPUTS])}"
        more = len(keys) - SHOWN_INPUTS
        parts.append(f"{part} and {more} more" if more > 0 else part)
    return "; ".join(parts)
