"""Evaluate the claims: each is recomputed, and the two give its verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ipu_results.check.gate import find_failures
from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument, PassthroughRow
from ipu_results.recompute.run import Recomputed, Recomputer, open_recomputer
from ipu_results.recompute.verdict import (
    BASES,
    BOUNDED,
    HOLDS,
    INTERNAL,
    LATER,
    LATER_SDK,
    NO_ROW,
    judge_claim,
    judge_value,
)
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

Record = Mapping[str, Any]
SqlTexts = Mapping[str, Mapping[str, str]]
COMPUTED = ("recomputation_sql", "recomputed", "verdict")
PLACEHOLDERS = {"recomputed": "[]", "verdict": "not-recomputable"}
NOT_RECOMPUTABLE = "not-recomputable"


def evaluate_claims(
    documents: Sequence[NormalisedDocument], sql_texts: SqlTexts, frames: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Build the tables `claims`, `recomputations` and `contradictions`.

    `sql_texts` are the recomputations by document and name, `frames` the tables that they read. Raises
    DamagedDocumentError for a claim with neither a recomputation nor a reason for having none, or with both; for a
    recomputation that fails or that no row names; and for a contradiction of unknown claims.
    """
    claims = [_complete_claim(doc, row) for doc in documents for row in _list_rows(doc, "claims")]
    contradictions = [
        {**row.values, "locator": row.locator} for doc in documents for row in _list_rows(doc, "contradictions")
    ]
    if not claims and not contradictions:
        return {name: build_frame(table(name), []) for name in ("claims", "recomputations", "contradictions")}
    claims.sort(key=lambda claim: (claim["document_id"], claim["ledger_id"], claim["row_number"]))
    _check_rows("claims", claims)
    _check_claims(claims)
    _check_rows("contradictions", contradictions)
    _check_claim_ids(contradictions, {claim["claim_id"] for claim in claims})
    _check_sql_files([*claims, *contradictions], sql_texts)
    columns = [name for name in table("claims").names if name not in COMPUTED]
    with open_recomputer(frames, build_frame(table("claims"), claims)[columns]) as recomputer:
        values = {claim["claim_id"]: _recompute(recomputer, claim, sql_texts, claim["claim_id"]) for claim in claims}
        judged = [_judge(recomputer, claim, values[claim["claim_id"]], sql_texts) for claim in claims]
        resolved = [
            {**row, **_format_values(_recompute(recomputer, row, sql_texts, None), row, sql_texts)}
            for row in contradictions
        ]
    return {
        "claims": build_frame(table("claims"), judged),
        "recomputations": build_frame(table("recomputations"), list(_list_recomputations(claims, values))),
        "contradictions": build_frame(table("contradictions"), resolved),
    }


def _list_rows(document: NormalisedDocument, name: str) -> list[PassthroughRow]:
    return [row for row in document.passthrough if row.table == name]


def _complete_claim(document: NormalisedDocument, row: PassthroughRow) -> dict[str, Any]:
    source = document.document
    ids = {"document_id": source.claims_of or source.document_id, "ledger_id": source.document_id}
    return {**row.values, **ids, "locator": row.locator, "row_number": row.row_number}


def _get_file_id(row: Record) -> str:
    """Return the id of the document of `raw/` that holds the row."""
    return str(row.get("ledger_id", row["document_id"]))


def _check_rows(name: str, rows: Sequence[Record]) -> None:
    """Pass rows through the gate of their table before anything is computed from them."""
    complete = [{**row, **PLACEHOLDERS} for row in rows]
    for failure in find_failures(table(name), build_frame(table(name), complete)):
        if failure.reason != "repeated-key":
            row = rows[failure.row]
            raise DamagedDocumentError(failure.message, document=_get_file_id(row), place=row["locator"])


def _check_claims(claims: Sequence[Record]) -> None:
    first: dict[str, Record] = {}
    for claim in claims:
        if message := _find_fault(claim) or _find_repetition(claim, first):
            place = f"{claim['locator']} ({claim['claim_id']})"
            raise DamagedDocumentError(message, document=_get_file_id(claim), place=place)


def _find_fault(claim: Record) -> str | None:
    if (claim["recomputation"] is None) == (claim["not_recomputable"] is None):
        return "a claim needs either a recomputation or a reason for having none"
    if claim["recomputation"] is None:
        return "a basis needs a recomputation" if claim["basis"] else None
    if claim["basis"] not in BASES:
        return f"unknown basis of a recomputation {claim['basis']!r}"
    known = BOUNDED if claim["basis"] == LATER_SDK else HOLDS
    if claim["relation"] not in known:
        return f"unknown relation of a claim to {claim['basis']} figures {claim['relation']!r}"
    return None


def _find_repetition(claim: Record, first: dict[str, Record]) -> str | None:
    other = first.setdefault(claim["claim_id"], claim)
    return None if other is claim else f"is also the id of a claim in {_get_file_id(other)}, {other['locator']}"


def _check_claim_ids(contradictions: Sequence[Record], known: set[str]) -> None:
    for row in contradictions:
        if unknown := [name for name in row["claim_ids"].split() if name not in known]:
            message = f"there is no claim {unknown[0]}"
            raise DamagedDocumentError(message, document=row["document_id"], place=row["locator"])


def _check_sql_files(rows: Sequence[Record], sql_texts: SqlTexts) -> None:
    """Require every recomputation that a row names to be attached to its document, and every file to be named."""
    named = {(_get_file_id(row), row["recomputation"]) for row in rows if row["recomputation"] is not None}
    attached = {(document, name) for document, texts in sql_texts.items() for name in texts}
    for document, name in sorted(named - attached):
        message = "is not among the attachments of the sidecar"
        raise DamagedDocumentError(message, document=document, place=f"{name}.sql")
    for document, name in sorted(attached - named):
        raise DamagedDocumentError("no row names this recomputation", document=document, place=f"{name}.sql")


def _recompute(recomputer: Recomputer, row: Record, sql_texts: SqlTexts, claim_id: str | None) -> list[Recomputed]:
    name, document = row["recomputation"], _get_file_id(row)
    return [] if name is None else recomputer.run(sql_texts[document][name], claim_id, document, name)


def _format_values(values: Sequence[Recomputed], row: Record, sql_texts: SqlTexts) -> dict[str, Any]:
    name = row["recomputation"]
    recomputed = json.dumps([value.to_record() for value in values], ensure_ascii=False)
    sql = None if name is None else sql_texts[_get_file_id(row)][name]
    return {"recomputed": recomputed, "recomputation_sql": sql}


def _judge_values(claim: Record, values: Sequence[Recomputed]) -> list[str]:
    claimed, tolerance = float(claim["value"]), float(claim["digits_tolerance"])
    basis, relation = claim["basis"], claim["relation"]
    return [judge_value(basis, relation, item.value, claimed, tolerance, item.within_spread) for item in values]


def _judge(recomputer: Recomputer, claim: Record, values: Sequence[Recomputed], sql_texts: SqlTexts) -> Record:
    complete = {**claim, **_format_values(values, claim, sql_texts)}
    if not values:
        reason = claim["not_recomputable"] or NO_ROW
        return {**complete, "verdict": NOT_RECOMPUTABLE, "not_recomputable": reason}
    internal = claim["basis"] == INTERNAL or recomputer.reads_claims(complete["recomputation_sql"])
    verdict = judge_claim(_judge_values(claim, values), internal)
    return {**complete, "verdict": verdict, "not_recomputable": LATER if verdict == NOT_RECOMPUTABLE else None}


def _list_recomputations(claims: Sequence[Record], values: Mapping[str, Sequence[Recomputed]]) -> Iterator[Record]:
    for claim in claims:
        items = values[claim["claim_id"]]
        outcomes = _judge_values(claim, items) if items else []
        for position, (item, outcome) in enumerate(zip(items, outcomes, strict=True), start=1):
            yield {"claim_id": claim["claim_id"], "position": position, **item.to_record(), "outcome": outcome}
