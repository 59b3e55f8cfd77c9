"""Evaluate the claims: each is recomputed, and the two give its verdict."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from ipu_results.errors import DamagedDocumentError
from ipu_results.kit.files import load_schema_file
from ipu_results.record.check.gate import find_failures
from ipu_results.record.normalise import NormalisedDocument, list_passthrough
from ipu_results.record.recompute.reasons import Finding, explain
from ipu_results.record.recompute.run import Recomputation, Recomputed, Recomputer, open_recomputer
from ipu_results.record.recompute.verdict import (
    AXES,
    BASES,
    BOUNDED,
    DEPENDS_ON,
    HOLDS,
    INTERNAL,
    LATER_SDK,
    NO_ROW,
    NOT_RECOMPUTABLE,
    SWAPPED_BASELINE,
    Gap,
    find_decisive_axes,
    judge_claim,
    judge_value,
    measure_gap,
)
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

Record = Mapping[str, Any]
SqlTexts = Mapping[str, Mapping[str, str]]
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
    engine: duckdb.DuckDBPyConnection,
    documents: Sequence[NormalisedDocument],
    names: Collection[str],
) -> dict[str, pd.DataFrame]:
    """Build the tables of TABLES.

    Recomputations stand next to the claims, and read the tables `names` of the engine, without the
    results that users handed in. Raises DamagedDocumentError for a claim with neither a
    recomputation nor a reason for having none, or with both; for a recomputation that fails or that
    no row names; and for a contradiction or condition of unknown claims.
    """
    sql_texts = {own.document_id: own.document.read_attached_texts(".sql") for own in documents}
    claims = [
        _complete_claim(doc, row) for doc in documents for row in list_passthrough([doc], "claims")
    ]
    contradictions = list_passthrough(documents, "contradictions")
    conditions = list_passthrough(documents, "claim_conditions")
    if not claims and not contradictions:
        return {name: build_frame(table(name), []) for name in TABLES}
    claims.sort(key=lambda claim: (claim["document_id"], claim["ledger_id"], claim["row_number"]))
    _check_rows("claims", claims)
    _check_claims(claims)
    _check_rows("contradictions", contradictions)
    _check_rows("claim_conditions", conditions)
    known = {claim["claim_id"]: claim for claim in claims}
    _check_names(
        "claim", [(row, (row["claim_ids"] or "").split()) for row in contradictions], known
    )
    _check_names(
        "claim", [(row, [row["claim_id"], row["taken_from"]]) for row in conditions], known
    )
    _check_sql_files([*claims, *contradictions], sql_texts)
    printed = build_frame(table("claims"), claims)[
        [name for name in table("claims").names if name not in COMPUTED]
    ]
    with open_recomputer(
        engine, names, printed, _apply_conditions(printed, conditions, known)
    ) as recomputer:
        of_claims = _recompute(recomputer, claims, sql_texts)
        recomputed = {claim["claim_id"]: own for claim, own in zip(claims, of_claims, strict=True)}
        values = _judge_values(recomputer, known, recomputed)
        judged = [
            _judge(recomputer, claim, values[claim["claim_id"]], sql_texts) for claim in claims
        ]
        of_contradictions = _recompute(recomputer, contradictions, sql_texts)
        resolved = list(zip(contradictions, of_contradictions, strict=True))
    used = [
        (claim, [item.recomputed for item in values[claim["claim_id"]]]) for claim in claims
    ] + resolved
    return {
        "claims": build_frame(table("claims"), judged),
        "claim_conditions": build_frame(table("claim_conditions"), conditions),
        "recomputations": build_frame(
            table("recomputations"), list(_list_recomputations(claims, values))
        ),
        "contradictions": build_frame(
            table("contradictions"),
            [{**row, **_format_values(items, row, sql_texts)} for row, items in resolved],
        ),
        "recomputation_inputs": build_frame(
            table("recomputation_inputs"),
            [entry for row, items in used for entry in _list_inputs(row, items)],
        ),
    }


def _complete_claim(document: NormalisedDocument, row: Record) -> dict[str, Any]:
    source = document.document
    ids = {"document_id": source.claims_of or source.document_id, "ledger_id": source.document_id}
    kinds = [
        kind
        for kind, metrics in load_schema_file(KINDS)["kinds"].items()
        if row["metric"] in metrics
    ]
    if len(kinds) != 1:
        message = (
            f"the metric {row['metric']!r} has no kind of claim; give it one in schema/{KINDS}"
        )
        raise DamagedDocumentError(message, document=source.document_id, place=row["locator"])
    return {**row, **ids, "kind": kinds[0]}


def _get_file_id(row: Record) -> str:
    """Return the id of the document of `raw/` that holds the row."""
    return str(row.get("ledger_id", row["document_id"]))


def _check_rows(name: str, rows: Sequence[Record]) -> None:
    """Pass rows through the gate of their table before anything is computed from them."""
    complete = [{**row, **PLACEHOLDERS[name]} for row in rows]
    for failure in find_failures(table(name), build_frame(table(name), complete)):
        if failure.reason != "repeated-key":
            row = rows[failure.row]
            raise DamagedDocumentError(
                failure.message, document=_get_file_id(row), place=row["locator"]
            )


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
    return (
        None
        if other is claim
        else f"is also the id of a claim in {_get_file_id(other)}, {other['locator']}"
    )


def _check_names(
    kind: str, rows: Iterable[tuple[Record, Sequence[str | None]]], known: Container[str]
) -> None:
    """Require the claims or contradictions that a row names to be there."""
    for row, names in rows:
        if unknown := [name for name in names if name is not None and name not in known]:
            message = f"unknown {kind} {unknown[0]!r}"
            raise DamagedDocumentError(message, document=row["document_id"], place=row["locator"])


def _apply_conditions(
    printed: pd.DataFrame, conditions: Sequence[Record], claims: Mapping[str, Record]
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
        if baseline := row["meant_baseline"] or source.get("baseline"):
            current.at[claim_id, "meant_baseline"] = baseline
    return current.reset_index(drop=True)


def _check_sql_files(rows: Sequence[Record], sql_texts: SqlTexts) -> None:
    """Require every recomputation that a row names to be attached to its document, and every file
    to be named.
    """
    named = {
        (_get_file_id(row), row["recomputation"])
        for row in rows
        if row["recomputation"] is not None
    }
    attached = {(document, name) for document, texts in sql_texts.items() for name in texts}
    for document, name in sorted(named - attached):
        message = "is not among the attachments of the sidecar"
        raise DamagedDocumentError(message, document=document, place=f"{name}.sql")
    for document, name in sorted(attached - named):
        raise DamagedDocumentError(
            "no row names this recomputation", document=document, place=f"{name}.sql"
        )


def _recompute(
    recomputer: Recomputer, rows: Sequence[Record], sql_texts: SqlTexts
) -> list[list[Recomputed]]:
    """Return the values of the recomputation of each claim or contradiction, none if it has none."""
    tasks = {}
    for position, row in enumerate(rows):
        name = row["recomputation"]
        document = _get_file_id(row)
        if name is not None:
            sql = sql_texts[document][name]
            tasks[position] = Recomputation(sql, row.get("claim_id"), document, name)
    values = dict(zip(tasks, recomputer.run(list(tasks.values())), strict=True))
    return [values.get(position, []) for position in range(len(rows))]


def _format_values(
    values: Sequence[Recomputed], row: Record, sql_texts: SqlTexts
) -> dict[str, Any]:
    name = row["recomputation"]
    recomputed = json.dumps([value.to_record() for value in values], ensure_ascii=False)
    sql = None if name is None else sql_texts[_get_file_id(row)][name]
    return {"recomputed": recomputed, "recomputation_sql": sql}


def _judge_values(
    recomputer: Recomputer,
    claims: Mapping[str, Record],
    recomputed: Mapping[str, Sequence[Recomputed]],
) -> dict[str, list[JudgedValue]]:
    """Judge the values of each claim, by its id."""
    margins = recomputer.measure_sdk_margins()
    departures = recomputer.find_departures(recomputed)
    values = {}
    for claim_id, items in recomputed.items():
        own = []
        for position, item in enumerate(items, start=1):
            departs = departures.get((claim_id, position))
            own.append(_judge_value(claims[claim_id], item, departs, margins))
        values[claim_id] = _prefer_own_baseline(own)
    return values


def _judge_value(
    claim: Record, item: Recomputed, departs: str | None, sdk_margins: tuple[float, float]
) -> JudgedValue:
    claimed = float(claim["value"])
    tolerance = float(claim["digits_tolerance"])
    relation = item.relation or claim["relation"]
    outcome = judge_value(
        claim["basis"],
        relation,
        item.value,
        claimed,
        tolerance,
        item.within_spread,
        sdk_margins,
        claim["direction"],
    )
    gap = measure_gap(
        relation, item.value, claimed, tolerance, item.spread, bool(item.within_spread)
    )
    reasons = dict.fromkeys(filter(None, (departs, item.shown_only)))
    return JudgedValue(item, outcome, gap, departs, "; ".join(reasons) or None)


def _judge(
    recomputer: Recomputer, claim: Record, values: Sequence[JudgedValue], sql_texts: SqlTexts
) -> dict[str, Any]:
    complete = {**claim, **_format_values([item.recomputed for item in values], claim, sql_texts)}
    if not values:
        reason = claim["not_recomputable"] or NO_ROW
        return {
            **complete,
            "verdict": NOT_RECOMPUTABLE,
            "reason": reason,
            "not_recomputable": reason,
        }
    counted = [item for item in values if item.not_counted is None]
    outcomes = [item.outcome for item in counted]
    axes = [item.recomputed.axes for item in counted]
    stand_ins = dict.fromkeys(
        item.recomputed.stand_in for item in counted if item.recomputed.stand_in
    )
    verdict = judge_claim(outcomes, _get_evidence(recomputer, complete, counted), axes)
    verdict = SWAPPED_BASELINE if stand_ins else verdict
    not_counted = dict.fromkeys(
        reason for item in values if item.not_counted for reason in item.not_counted.split("; ")
    )
    none_counts = (
        NONE_COUNTS + "; ".join(not_counted) + NEEDED if verdict == NOT_RECOMPUTABLE else None
    )
    stand_in = "; ".join(stand_ins) or None
    percent, kind = min((item.gap for item in counted or values), key=Gap.rank)
    findings = [
        Finding(item.recomputed.value, item.outcome, item.recomputed.axes) for item in counted
    ]
    tables = {table_name for item in counted for table_name, _ in item.recomputed.inputs}
    return {
        **complete,
        "verdict": verdict,
        "rests_on": ", ".join(find_decisive_axes(outcomes, axes))
        if verdict in DEPENDS_ON.values()
        else None,
        "reason": none_counts
        or explain(complete, verdict, findings, stand_in, uses_claims="claims" in tables),
        "swapped_baseline": stand_in,
        "not_recomputable": none_counts,
        "gap_percent": percent,
        "gap_kind": kind,
    }


def _prefer_own_baseline(values: Sequence[JudgedValue]) -> list[JudgedValue]:
    """Let a value with another baseline than the claim's not count where one with the claim's own
    does.
    """
    if all(item.not_counted or item.recomputed.stand_in for item in values):
        return list(values)
    return [
        item._replace(not_counted=item.not_counted or item.recomputed.stand_in) for item in values
    ]


def _get_evidence(recomputer: Recomputer, claim: Record, counted: Sequence[JudgedValue]) -> str:
    """Return what the values rest on: `circular` if one of them follows from what documents state,
    claims among it.
    """
    tables = [{table_name for table_name, _ in item.recomputed.inputs} for item in counted]
    if any("claims" in names <= STATED for names in tables):
        return "circular"
    if claim["basis"] == LATER_SDK:
        return LATER_SDK
    return INTERNAL if recomputer.reads_claims(claim["recomputation_sql"]) else str(claim["basis"])


def _list_recomputations(
    claims: Sequence[Record], values: Mapping[str, Sequence[JudgedValue]]
) -> Iterator[Record]:
    for claim in claims:
        for position, item in enumerate(values[claim["claim_id"]], start=1):
            yield {
                "claim_id": claim["claim_id"],
                "position": position,
                **item.recomputed.to_record(),
                "outcome": item.outcome,
                "gap_percent": item.gap.percent,
                "gap_kind": item.gap.kind,
                "not_counted": item.not_counted,
                "stand_in": item.recomputed.stand_in,
                "departs": item.departs,
                **dict(zip(AXES, item.recomputed.axes, strict=True)),
            }


def _list_inputs(row: Record, values: Sequence[Recomputed]) -> Iterator[Record]:
    """Yield the rows that the recomputation of a claim or contradiction used, value by value."""
    owner = {
        "claim_id": row.get("claim_id", ""),
        "contradiction_id": row.get("contradiction_id", ""),
    }
    for position, item in enumerate(values, start=1):
        for table_name, key in item.inputs:
            place = {"position": position, "table_name": table_name, "key": key}
            yield {"recomputation": row["recomputation"], **owner, **place}
