"""Load the claims of a warehouse for display, with their recomputed values and the contradictions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.recompute.margin import measure_sdk_margin

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
    """Rows of `claims` in the order of the documents, each with its `values` (rows of `recomputations`) and `inputs`.

    `inputs` are pairs of table and key. `sdk_margin` is the largest measured slow-down between SDKs, a share.
    """

    claims: Sequence[Record]
    contradictions: Sequence[Record]
    titles: Mapping[str, str]
    sdk_margin: float


def load_claims(connection: duckdb.DuckDBPyConnection) -> Claims:
    """Load all claims. Raises QueryError for a warehouse without them."""
    tables = {
        name: run_query(connection, f"FROM {name}").to_pylist()
        for name in ("claims", "recomputations", "contradictions", "recomputation_inputs", "documents")
    }
    values: dict[str, list[Record]] = {claim["claim_id"]: [] for claim in tables["claims"]}
    for row in sorted(tables["recomputations"], key=lambda row: row["position"]):
        values[row["claim_id"]].append(row)
    inputs: dict[str, dict[tuple[str, str], None]] = {claim["claim_id"]: {} for claim in tables["claims"]}
    for row in sorted(tables["recomputation_inputs"], key=lambda row: (row["table_name"], row["key"])):
        inputs.get(row["claim_id"], {})[row["table_name"], row["key"]] = None
    claims = [
        {**claim, "values": values[claim["claim_id"]], "inputs": list(inputs[claim["claim_id"]])}
        for claim in tables["claims"]
    ]
    titles = {document["document_id"]: document["title"] for document in tables["documents"]}
    return Claims(claims, tables["contradictions"], titles, measure_sdk_margin(connection))


def format_record(claim: Record) -> dict[str, Any]:
    """Return a claim for a program: `recomputed` is a list of value, baseline and arithmetic, values unrounded.

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
    """Return the recomputed values in a few characters: the only one, or the smallest and the largest."""
    values = [row["value"] for row in claim["values"]]
    if not values:
        return ""
    low, high = format_value(min(values), claim), format_value(max(values), claim)
    return low if low == high else f"{low} … {high}"


def format_value(value: float, claim: Record) -> str:
    """Format a recomputed value: four digits, or two decimals more than the claim has; from 1,000 without decimals."""
    tolerance = claim["digits_tolerance"]
    decimals = -round(math.log10(2 * tolerance)) if tolerance else 0
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{decimals + 2}f}" if decimals > 0 else f"{value:.4g}"
