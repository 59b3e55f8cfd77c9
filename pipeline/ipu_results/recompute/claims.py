"""Load the claims of a warehouse for display, with their recomputed values and the contradictions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ipu_results._util.sql import run_query

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claims:
    """Rows of `claims` in the order of the documents, each with its `values` (rows of `recomputations`)."""

    claims: Sequence[Record]
    contradictions: Sequence[Record]
    titles: Mapping[str, str]


def load_claims(connection: duckdb.DuckDBPyConnection) -> Claims:
    """Load all claims. Raises QueryError for a warehouse without them."""
    tables = {
        name: run_query(connection, f"FROM {name}").to_pylist()
        for name in ("claims", "recomputations", "contradictions", "documents")
    }
    values: dict[str, list[Record]] = {claim["claim_id"]: [] for claim in tables["claims"]}
    for row in sorted(tables["recomputations"], key=lambda row: row["position"]):
        values[row["claim_id"]].append(row)
    claims = [{**claim, "values": values[claim["claim_id"]]} for claim in tables["claims"]]
    titles = {document["document_id"]: document["title"] for document in tables["documents"]}
    return Claims(claims, tables["contradictions"], titles)


def format_record(claim: Record) -> dict[str, Any]:
    """Return a claim for a program: `recomputed` is a list of value, baseline and arithmetic, values unrounded."""
    names = ("claim_id", "document_id", "figure", "verdict")
    return {**{name: claim[name] for name in names}, "recomputed": json.loads(claim["recomputed"])}


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
