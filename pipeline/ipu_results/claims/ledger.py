"""The claims ledger as it is shown: claims with their recomputed values, and contradictions, from the warehouse."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ipu_results._util.sql import run_query

Record = Mapping[str, Any]

__all__ = ["Ledger", "Record", "brief", "flat", "load", "shown"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """Rows of `claims` in the order of the documents, each with its `values` (rows of `recomputations`)."""

    claims: Sequence[Record]
    contradictions: Sequence[Record]
    titles: Mapping[str, str]


def load(connection: duckdb.DuckDBPyConnection) -> Ledger:
    """The whole ledger. Raises QueryError for a warehouse without one."""
    found = {
        name: run_query(connection, f"FROM {name}").to_pylist()
        for name in ("claims", "recomputations", "contradictions", "documents")
    }
    values: dict[str, list[Record]] = {claim["claim_id"]: [] for claim in found["claims"]}
    for one in sorted(found["recomputations"], key=lambda one: one["position"]):
        values[one["claim_id"]].append(one)
    claims = [{**claim, "values": values[claim["claim_id"]]} for claim in found["claims"]]
    titles = {document["document_id"]: document["title"] for document in found["documents"]}
    return Ledger(claims, found["contradictions"], titles)


def flat(claim: Record) -> dict[str, Any]:
    """A claim for a program: `recomputed` is a list of value, baseline and arithmetic, values unrounded."""
    names = ("claim_id", "document_id", "figure", "verdict")
    return {**{name: claim[name] for name in names}, "recomputed": json.loads(claim["recomputed"])}


def brief(claim: Record) -> str:
    """The recomputed values in a few characters: one, or the least and the greatest."""
    values = [one["value"] for one in claim["values"]]
    if not values:
        return ""
    low, high = shown(min(values), claim), shown(max(values), claim)
    return low if low == high else f"{low} … {high}"


def shown(value: float, claim: Record) -> str:
    """Four digits for the eye, or two decimals more than the claim has; whole from a thousand on."""
    tolerance = claim["digits_tolerance"]
    decimals = -round(math.log10(2 * tolerance)) if tolerance else 0
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{decimals + 2}f}" if decimals > 0 else f"{value:.4g}"
