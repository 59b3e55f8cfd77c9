"""Load the claims of a warehouse with their recomputed values, and write one as Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import duckdb

from ipu_results.kit.sql import run_query
from ipu_results.kit.text import format_code
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
    "reason",
)


def load_claims(connection: duckdb.DuckDBPyConnection) -> list[Record]:
    """Load all claims in the order of the documents, each with its `values` and `inputs`.

    `values` are rows of `recomputations`, `inputs` are pairs of table and key. Raises QueryError
    for a warehouse without claims.
    """
    names = ("claims", "recomputations", "recomputation_inputs")
    tables = {
        name: run_query(connection, f"FROM {table(name).sql_name}").to_pylist() for name in names
    }
    values: dict[str, list[Record]] = {claim["claim_id"]: [] for claim in tables["claims"]}
    for row in sorted(tables["recomputations"], key=lambda row: row["position"]):
        values[row["claim_id"]].append(row)
    inputs: dict[str, dict[tuple[str, str], None]] = {name: {} for name in values}
    for row in sorted(
        tables["recomputation_inputs"], key=lambda row: (row["table_name"], row["key"])
    ):
        inputs.get(row["claim_id"], {})[row["table_name"], row["key"]] = None
    return [
        {**claim, "values": values[claim["claim_id"]], "inputs": list(inputs[claim["claim_id"]])}
        for claim in tables["claims"]
    ]


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
    kind = claim["gap_kind"]
    percent = claim["gap_percent"]
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
    low = format_value(min(values), claim)
    high = format_value(max(values), claim)
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


def format_claim(claim: Record) -> Iterator[str]:
    """Yield the lines of one claim: figure, verdict, reason, conditions, interpretation, gap,
    arithmetic, inputs.
    """
    yield f"### `{claim['claim_id']}`: {claim['figure']}: **{claim['verdict']}**"
    yield ""
    yield f"{claim['claim']} ({claim['place']})."
    yield f"Reason: {claim['reason'].removesuffix('.')}."
    if conditions := ", ".join(
        f"{word}{claim[name]}" for name, word in CONDITIONS.items() if claim[name]
    ):
        yield f"Conditions: {conditions}."
    if claim["interpretation"]:
        yield f"Interpretation: {claim['interpretation']}."
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
