"""Evaluate the claims: each is recomputed, and the two give its verdict."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, cast

import pandas as pd

from ipu_results.errors import DamagedDocumentError
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.sql import Connection
from ipu_results.record.check.gate import find_failures
from ipu_results.record.normalise import NormalisedDocument, list_passthrough
from ipu_results.record.recompute.reasons import explain
from ipu_results.record.recompute.run import (
    Recomputation,
    Recomputed,
    Recomputer,
    measure_sdk_margins,
    open_recomputer,
)
from ipu_results.record.recompute.verdict import (
    BASES,
    BOUNDED,
    DEPENDS_ON,
    INTERNAL,
    LATER_SDK,
    NO_ROW,
    NOT_RECOMPUTABLE,
    RELATIONS,
    SWAPPED_BASELINE,
    WITHIN_SPREAD,
    Claimed,
    Finding,
    Gap,
    find_decisive_axes,
    judge_claim,
    judge_later,
    judge_value,
    measure_gap,
)
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.records import ClaimsRow, ContradictionsRow

Row = Mapping[str, Any]
"""A row of `claims`, `contradictions` or `claim_conditions`, as far as it is filled."""
TABLES = ("claims", "claim_conditions", "recomputations", "contradictions", "recomputation_inputs")
COMPUTED = (
    "kind",
    "recomputation_sql",
    "recomputed",
    "verdict",
    "rests_on",
    "reason",
    "swapped_baseline",
    "gap_percent",
    "gap_kind",
)
KINDS = "vocabulary/claims.toml"
METRICS_OF: Mapping[str, Sequence[str]] = load_schema_file(KINDS)["kinds"]
"""The metrics of each kind of claim."""
# of the columns that are computed and required
PLACEHOLDERS = {
    "claims": {"recomputed": "[]", "verdict": NOT_RECOMPUTABLE, "reason": NO_ROW},
    "contradictions": {"recomputed": "[]"},
    "claim_conditions": {},
}
CONDITIONS = ("precision_printed", "batch", "framework", "dataset_printed")
NONE_COUNTS = "No recomputed value counts: "
NEEDED = ". Needed: a figure under the conditions of the claim"
# what documents state; other tables hold measurements and facts
STATED = frozenset({"claims", "platforms", "models"})


class JudgedValue(NamedTuple):
    """A recomputed value with its outcome and gap; `departs` says where its rows depart from the
    claim's conditions, `not_counted` why it does not count for the verdict.
    """

    recomputed: Recomputed
    outcome: str
    gap: Gap
    departs: str | None
    not_counted: str | None


def evaluate_claims(
    engine: Connection,
    documents: Sequence[NormalisedDocument],
    names: Collection[str],
) -> dict[str, pd.DataFrame]:
    """Build the tables of TABLES.

    Recomputations stand next to the claims, and read the tables `names` of the engine, without the
    results that users handed in. Raises DamagedDocumentError for a claim with neither a
    recomputation nor a reason for having none, or with both; for a recomputation that fails or that
    no row names; and for a contradiction or condition of unknown claims.
    """
    attached = _read_attached_sql(documents)
    claims: list[ClaimsRow] = []
    for document in documents:
        rows_of_document = list_passthrough([document], "claims")
        claims += [_complete_claim(document.document, row) for row in rows_of_document]
    contradictions: list[ContradictionsRow] = list_passthrough(documents, "contradictions")
    conditions = list_passthrough(documents, "claim_conditions")
    if not claims and not contradictions:
        return {name: build_frame(table(name), []) for name in TABLES}
    claims.sort(key=itemgetter("document_id", "ledger_id"))  # then as in the file
    _check_rows("claims", claims)
    claims_by_id = _index_claims(claims)
    _check_rows("contradictions", contradictions)
    _check_rows("claim_conditions", conditions)
    for row in contradictions:
        _check_names(row, (row["claim_ids"] or "").split(), claims_by_id)
    for row in conditions:
        _check_names(row, [row["claim_id"], row["taken_from"]], claims_by_id)
    _add_sql([*claims, *contradictions], attached)
    printed = build_frame(table("claims"), claims).drop(columns=list(COMPUTED))
    current = _apply_conditions(printed, conditions, claims_by_id)
    judged: list[Row] = []
    recomputations: list[Row] = []
    inputs: list[Row] = []
    with open_recomputer(engine, names, printed, current) as recomputer:
        values = _judge_values(recomputer, claims_by_id)
        for claim_id, claim in claims_by_id.items():
            judged.append({**claim, **_judge(recomputer, claim, values[claim_id])})
            recomputations += _list_recomputations(claim_id, values[claim_id])
            inputs += _list_inputs(claim, [item.recomputed for item in values[claim_id]])
        resolved = _recompute(recomputer, contradictions)
    for row, of_row in zip(contradictions, resolved, strict=True):
        row["recomputed"] = _format_values(of_row)
        inputs += _list_inputs(row, of_row)
    rows: dict[str, Sequence[Row]] = {
        "claims": judged,
        "claim_conditions": conditions,
        "recomputations": recomputations,
        "contradictions": contradictions,
        "recomputation_inputs": inputs,
    }
    return {name: build_frame(table(name), rows[name]) for name in TABLES}


def _read_attached_sql(documents: Sequence[NormalisedDocument]) -> dict[tuple[str, str], str]:
    """Return the recomputations that are attached to documents, by the ids of the document and of
    the file.
    """
    attached = {}
    for document in documents:
        for name, sql in document.document.read_attached_texts(".sql").items():
            attached[document.document_id, name] = sql
    return attached


def _complete_claim(document: Document, row: Row) -> ClaimsRow:
    metric = row["metric"]
    of_metric = [kind for kind, metrics in METRICS_OF.items() if metric in metrics]
    if len(of_metric) != 1:
        message = f"the metric {metric!r} has no kind of claim; give it one in schema/{KINDS}"
        place = row["locator"]
        raise DamagedDocumentError(message, document=document.document_id, place=place)
    document_id = document.claims_of or document.document_id
    ids = {"document_id": document_id, "ledger_id": document.document_id}
    return cast(ClaimsRow, {**row, **ids, "kind": of_metric[0]})


def _get_file_id(row: Row) -> str:
    """Return the id of the document of `raw/` that holds the row."""
    return str(row.get("ledger_id", row["document_id"]))


def _check_rows(name: str, rows: Sequence[Row]) -> None:
    """Pass rows through the gate of their table before anything is computed from them."""
    complete = [{**row, **PLACEHOLDERS[name]} for row in rows]
    for failure in find_failures(table(name), build_frame(table(name), complete)):
        # of a repeated id `_index_claims` names both lines
        if failure.reason != "repeated-key":
            row = rows[failure.row]
            document = _get_file_id(row)
            raise DamagedDocumentError(failure.message, document=document, place=row["locator"])


def _index_claims(claims: Sequence[ClaimsRow]) -> dict[str, ClaimsRow]:
    """Return the claims by id. Raises DamagedDocumentError for an invalid one."""
    claims_by_id: dict[str, ClaimsRow] = {}
    for claim in claims:
        fault = _find_fault(claim)
        other = claims_by_id.setdefault(claim["claim_id"], claim)
        if fault is None and other is not claim:
            fault = f"is also the id of a claim in {_get_file_id(other)}, {other['locator']}"
        if fault is not None:
            place = f"{claim['locator']} ({claim['claim_id']})"
            raise DamagedDocumentError(fault, document=_get_file_id(claim), place=place)
    return claims_by_id


def _find_fault(claim: ClaimsRow) -> str | None:
    basis = claim["basis"]
    if (claim["recomputation"] is None) == (claim["not_recomputable"] is None):
        return "a claim needs either a recomputation or a reason for having none"
    if claim["recomputation"] is None:
        return "a basis needs a recomputation" if basis else None
    if basis not in BASES:
        return f"unknown basis of a recomputation {basis!r}"
    relations = BOUNDED if basis == LATER_SDK else RELATIONS
    if claim["relation"] not in relations:
        return f"unknown relation of a claim to {basis} figures {claim['relation']!r}"
    return None


def _check_names(row: Row, names: Sequence[str | None], claims: Container[str]) -> None:
    """Require the claims that a row names to be there."""
    for name in names:
        if name is not None and name not in claims:
            message = f"unknown claim {name!r}"
            raise DamagedDocumentError(message, document=row["document_id"], place=row["locator"])


def _apply_conditions(
    printed: pd.DataFrame, conditions: Sequence[Row], claims: Mapping[str, Row]
) -> pd.DataFrame:
    """Return the claims under the conditions that they are judged by, with a column
    `meant_baseline`.
    """
    current = printed.assign(meant_baseline=printed["baseline"]).set_index("claim_id", drop=False)
    for row in conditions:
        claim_id = row["claim_id"]
        source = claims.get(row["taken_from"], {})
        for name in CONDITIONS:
            if source.get(name) is not None:
                current.at[claim_id, name] = source[name]
        baseline = row["meant_baseline"] or source.get("baseline")
        if baseline:
            current.at[claim_id, "meant_baseline"] = baseline
    return current.reset_index(drop=True)


def _add_sql(
    rows: Sequence[ClaimsRow | ContradictionsRow], attached: Mapping[tuple[str, str], str]
) -> None:
    """Give each row the text of its recomputation, by the document and the name of the file.

    Raises DamagedDocumentError for one that is not attached, and for one that no row names.
    """
    named = set()
    for row in rows:
        row["recomputation_sql"] = None
        if row["recomputation"] is not None:
            key = (_get_file_id(row), row["recomputation"])
            named.add(key)
            row["recomputation_sql"] = attached.get(key)
    faults = {
        "is not among the attachments of the sidecar": named - attached.keys(),
        "no row names this recomputation": attached.keys() - named,
    }
    for message, keys in faults.items():
        if keys:
            document_id, name = min(keys)
            raise DamagedDocumentError(message, document=document_id, place=f"{name}.sql")


def _recompute(recomputer: Recomputer, rows: Sequence[Row]) -> list[list[Recomputed]]:
    """Return the values of each claim or contradiction, none where it has no recomputation."""
    tasks = []
    positions = []
    for position, row in enumerate(rows):
        if row["recomputation"] is not None:
            sql = row["recomputation_sql"]
            claim_id = row.get("claim_id")
            tasks.append(Recomputation(sql, claim_id, _get_file_id(row), row["recomputation"]))
            positions.append(position)
    values: list[list[Recomputed]] = [[] for _ in rows]
    for position, of_row in zip(positions, recomputer.run(tasks), strict=True):
        values[position] = of_row
    return values


def _format_values(values: Sequence[Recomputed]) -> str:
    return json.dumps([value.to_record() for value in values], ensure_ascii=False)


def _judge_values(
    recomputer: Recomputer, claims: Mapping[str, ClaimsRow]
) -> dict[str, list[JudgedValue]]:
    """Recompute each claim, and return its values with what each says, by its id."""
    recomputed = dict(zip(claims, _recompute(recomputer, list(claims.values())), strict=True))
    departures = recomputer.find_departures(recomputed)
    margins = measure_sdk_margins(recomputer.connection)
    values = {}
    for claim_id, claim in claims.items():
        judged = []
        for position, value in enumerate(recomputed[claim_id], start=1):
            departs = departures.get((claim_id, position))
            judged.append(_judge_value(claim, value, departs, margins))
        values[claim_id] = prefer_own_baseline(judged)
    return values


def _judge_value(
    claim: ClaimsRow, value: Recomputed, departs: str | None, sdk_margins: tuple[float, float]
) -> JudgedValue:
    relation = str(value.relation or claim["relation"])
    claimed = Claimed(relation, claim["value"], claim["digits_tolerance"])
    is_tied = bool(value.within_spread)
    if is_tied:
        # the runs cannot separate the two scores: whatever the size of their difference
        outcome = WITHIN_SPREAD
    elif claim["basis"] == LATER_SDK:
        outcome = judge_later(claimed, value.value, sdk_margins, claim["direction"])
    else:
        outcome = judge_value(claimed, value.value)
    gap = measure_gap(claimed, value.value, value.spread, is_tied=is_tied)
    not_counted = _join_once([departs, value.shown_only])
    return JudgedValue(value, outcome, gap, departs, not_counted)


def _join_once(texts: Iterable[str | None]) -> str | None:
    """Join texts, each once; None where there is none."""
    return "; ".join(dict.fromkeys(text for text in texts if text)) or None


def _judge(recomputer: Recomputer, claim: ClaimsRow, values: Sequence[JudgedValue]) -> Row:
    """Return the columns of a claim that follow from its values."""
    recomputed = _format_values([item.recomputed for item in values])
    if not values:
        reason = claim["not_recomputable"] or NO_ROW
        return {
            "recomputed": recomputed,
            "verdict": NOT_RECOMPUTABLE,
            "reason": reason,
            "not_recomputable": reason,
        }
    counted = [item for item in values if item.not_counted is None]
    findings = [
        Finding(item.recomputed.value, item.outcome, item.recomputed.axes) for item in counted
    ]
    tables = [item.recomputed.tables for item in counted]
    stand_in = _join_once(item.recomputed.stand_in for item in counted)
    verdict = judge_claim(findings, _get_evidence(recomputer, claim, tables))
    rests_on = None
    none_counts = None
    if stand_in:
        verdict = SWAPPED_BASELINE
    elif verdict.startswith(DEPENDS_ON):
        rests_on = ", ".join(find_decisive_axes(findings)) or None
    if verdict == NOT_RECOMPUTABLE:
        none_counts = NONE_COUNTS + _join_reasons(values) + NEEDED
        reason = none_counts
    else:
        uses_claims = any("claims" in names for names in tables)
        reason = explain(claim, verdict, findings, stand_in, uses_claims=uses_claims)
    nearest = min((item.gap for item in counted or values), key=Gap.rank)
    return {
        "recomputed": recomputed,
        "verdict": verdict,
        "rests_on": rests_on,
        "reason": reason,
        "swapped_baseline": stand_in,
        "not_recomputable": none_counts,
        "gap_percent": nearest.percent,
        "gap_kind": nearest.kind,
    }


def _join_reasons(values: Sequence[JudgedValue]) -> str:
    """Return why none of the values counts, each reason once."""
    reasons: list[str] = []
    for item in values:
        reasons += (item.not_counted or "").split("; ")
    return "; ".join(dict.fromkeys(reasons))


def prefer_own_baseline(values: list[JudgedValue]) -> list[JudgedValue]:
    """Let a value with another baseline than the claim's not count where one with the claim's own
    does.
    """
    if all(item.not_counted or item.recomputed.stand_in for item in values):
        return values
    return [
        item._replace(not_counted=item.not_counted or item.recomputed.stand_in) for item in values
    ]


def _get_evidence(recomputer: Recomputer, claim: ClaimsRow, tables: Sequence[set[str]]) -> str:
    """Return what the values rest on: `circular` if one of them follows from what documents state,
    claims among it.
    """
    for names in tables:
        if "claims" in names and names <= STATED:
            return "circular"
    if claim["basis"] != LATER_SDK and recomputer.reads_claims(str(claim["recomputation_sql"])):
        return INTERNAL
    return str(claim["basis"])


def _list_recomputations(claim_id: str, values: Sequence[JudgedValue]) -> list[Row]:
    return [
        {
            "claim_id": claim_id,
            "position": position,
            **item.recomputed.to_record(),
            "outcome": item.outcome,
            "gap_percent": item.gap.percent,
            "gap_kind": item.gap.kind,
            "not_counted": item.not_counted,
            "stand_in": item.recomputed.stand_in,
            "departs": item.departs,
            **item.recomputed.axes,
        }
        for position, item in enumerate(values, start=1)
    ]


def _list_inputs(row: Row, values: Sequence[Recomputed]) -> list[dict[str, Any]]:
    """Return the rows that the recomputation of a claim or contradiction used, value by value."""
    owner = {
        "recomputation": row["recomputation"],
        "claim_id": row.get("claim_id", ""),
        "contradiction_id": row.get("contradiction_id", ""),
    }
    inputs = []
    for position, value in enumerate(values, start=1):
        for table_name, key in value.inputs:
            inputs.append({**owner, "position": position, "table_name": table_name, "key": key})
    return inputs
