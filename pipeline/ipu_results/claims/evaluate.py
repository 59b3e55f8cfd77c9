"""The ledger: each claim meets its recomputation, and the two give its verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ipu_results.check.gate import build_frame, find_failures
from ipu_results.claims.recompute import Recomputed, Recomputer, recomputer
from ipu_results.claims.verdict import BASES, BOUNDED, HOLDS, INTERNAL, LATER, LATER_SDK, NO_ROW, outcome, verdict
from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument, PassthroughRow
from ipu_results.schema import table

Record = Mapping[str, Any]
Texts = Mapping[str, Mapping[str, str]]
DERIVED = ("recomputation_sql", "recomputed", "verdict")
UNJUDGED = {"recomputed": "[]", "verdict": "not-recomputable"}


def claim_frames(
    documents: Sequence[NormalisedDocument], texts: Texts, frames: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """The tables of the ledger; `texts` are the recomputations by document and name, `frames` the tables they read.

    Raises DamagedDocumentError for a claim that has neither a recomputation nor the reason why not, or has both; for a
    recomputation that fails or that nobody names; and for a contradiction of unknown claims.
    """
    if not any(_rows(normalised) for normalised in documents):
        return {name: build_frame(table(name), []) for name in ("claims", "recomputations", "contradictions")}
    claims = [_claim(normalised, row) for normalised in documents for row in _rows(normalised, "claims")]
    claims.sort(key=lambda claim: (claim["document_id"], claim["ledger_id"], claim["row_number"]))
    _assert_gated("claims", claims)
    _assert_whole(claims)
    contradictions = [
        {**row.values, "locator": row.locator}
        for normalised in documents
        for row in _rows(normalised, "contradictions")
    ]
    _assert_gated("contradictions", contradictions)
    _assert_known(contradictions, {claim["claim_id"] for claim in claims})
    _assert_named([*claims, *contradictions], texts)
    columns = [name for name in table("claims").names if name not in DERIVED]
    printed = build_frame(table("claims"), claims)[columns]
    with recomputer(frames, printed) as runner:
        values = {claim["claim_id"]: _values(runner, claim, texts, claim["claim_id"]) for claim in claims}
        told = [{**one, **_told(_values(runner, one, texts, None), one, texts)} for one in contradictions]
        judged = [_judged(runner, claim, values[claim["claim_id"]], texts) for claim in claims]
    return {
        "claims": build_frame(table("claims"), judged),
        "recomputations": build_frame(table("recomputations"), list(_recomputations(claims, values))),
        "contradictions": build_frame(table("contradictions"), told),
    }


def _rows(normalised: NormalisedDocument, name: str | None = None) -> list[PassthroughRow]:
    wanted = ("claims", "contradictions") if name is None else (name,)
    return [row for row in normalised.carried if row.table in wanted]


def _claim(normalised: NormalisedDocument, row: PassthroughRow) -> dict[str, Any]:
    document = normalised.document
    told = {"document_id": document.claims_of or document.document_id, "ledger_id": document.document_id}
    return {**row.values, **told, "locator": row.locator, "row_number": row.row_number}


def _ledger(one: Record) -> str:
    return str(one.get("ledger_id", one["document_id"]))


def _damaged(document: str, place: str, message: str) -> DamagedDocumentError:
    return DamagedDocumentError(message, document=document, place=place)


def _assert_gated(name: str, rows: Sequence[Record]) -> None:
    """The gate of the table, before anything is computed from a row: what is computed is filled in for it."""
    filled = [{**row, **UNJUDGED} for row in rows]
    for failure in find_failures(table(name), build_frame(table(name), filled)):
        if failure.reason != "repeated-key":
            raise _damaged(_ledger(rows[failure.row]), rows[failure.row]["locator"], failure.message)


def _assert_whole(claims: Sequence[Record]) -> None:
    first: dict[str, Record] = {}
    for claim in claims:
        if message := _fault(claim) or _repeated(claim, first):
            raise _damaged(_ledger(claim), f"{claim['locator']} ({claim['claim_id']})", message)


def _fault(claim: Record) -> str | None:
    if (claim["recomputation"] is None) == (claim["not_recomputable"] is None):
        return "a claim has either a recomputation or the reason why it has none"
    if claim["recomputation"] is None:
        return "a basis is that of a recomputation" if claim["basis"] else None
    if claim["basis"] not in BASES:
        return f"no known basis of a recomputation: {claim['basis']!r}"
    known = BOUNDED if claim["basis"] == LATER_SDK else HOLDS
    if claim["relation"] not in known:
        return f"no known relation of a claim to {claim['basis']} figures: {claim['relation']!r}"
    return None


def _repeated(claim: Record, first: dict[str, Record]) -> str | None:
    other = first.setdefault(claim["claim_id"], claim)
    return None if other is claim else f"stands also in {_ledger(other)}, {other['locator']}"


def _assert_known(contradictions: Sequence[Record], known: set[str]) -> None:
    for one in contradictions:
        if missing := [name for name in one["claim_ids"].split() if name not in known]:
            raise _damaged(one["document_id"], one["locator"], f"there is no claim {missing[0]}")


def _assert_named(rows: Sequence[Record], texts: Texts) -> None:
    """Every recomputation that a row names goes with its document, and the other way round."""
    named = {(_ledger(row), row["recomputation"]) for row in rows if row["recomputation"] is not None}
    there = {(document, name) for document, found in texts.items() for name in found}
    for document, name in sorted(named - there):
        raise _damaged(document, f"{name}.sql", "is not among the attachments of the sidecar")
    for document, name in sorted(there - named):
        raise _damaged(document, f"{name}.sql", "no row names this recomputation")


def _values(runner: Recomputer, one: Record, texts: Texts, claim_id: str | None) -> list[Recomputed]:
    name = one["recomputation"]
    return [] if name is None else runner.run(texts[_ledger(one)][name], claim_id, _ledger(one), name)


def _told(values: Sequence[Recomputed], one: Record, texts: Texts) -> dict[str, Any]:
    name = one["recomputation"]
    shown = json.dumps([value._asdict() for value in values], ensure_ascii=False)
    return {"recomputed": shown, "recomputation_sql": None if name is None else texts[_ledger(one)][name]}


def _outcomes(claim: Record, values: Sequence[Recomputed]) -> list[str]:
    claimed, tolerance = float(claim["value"]), float(claim["digits_tolerance"])
    return [outcome(claim["basis"], claim["relation"], one.value, claimed, tolerance) for one in values]


def _judged(runner: Recomputer, claim: Record, values: Sequence[Recomputed], texts: Texts) -> dict[str, Any]:
    told = {**claim, **_told(values, claim, texts)}
    if not values:
        return {**told, "verdict": "not-recomputable", "not_recomputable": claim["not_recomputable"] or NO_ROW}
    internal = claim["basis"] == INTERNAL or runner.reads_claims(told["recomputation_sql"])
    found = verdict(_outcomes(claim, values), internal)
    return {**told, "verdict": found, "not_recomputable": LATER if found == "not-recomputable" else None}


def _recomputations(claims: Sequence[Record], values: Mapping[str, Sequence[Recomputed]]) -> Iterator[Record]:
    for claim in claims:
        own = values[claim["claim_id"]]
        outcomes = _outcomes(claim, own) if own else []
        for position, (one, said) in enumerate(zip(own, outcomes, strict=True), start=1):
            yield {"claim_id": claim["claim_id"], "position": position, **one._asdict(), "outcome": said}
