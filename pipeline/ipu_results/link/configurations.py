"""Link public configurations to the published rows that they produced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import pandas as pd

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument, PassthroughRow, Result
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

Record = Mapping[str, Any]
Bases = Mapping[str, str | None]
Place = tuple[str, str, int]

NEAR = ("exact", "likely")
NAMED = ("repository", "tag", "path", "benchmark", "match_confidence")
UNNAMED = ("result_document", "result_table", "result_row", "note", "document_id")
FACTORS = ("micro_batch_size", "replicas", "gradient_accumulation")


def link_configurations(documents: Sequence[NormalisedDocument], bases: Bases) -> list[NormalisedDocument]:
    """Return the documents with results that cite their configurations for micro-batch and latency basis.

    `bases` maps a definition of latency to what it times. Raises DamagedDocumentError for a configuration of a row that
    does not exist, for one that contradicts that row or itself, and for an unknown definition of latency.
    """
    known = _find_results(documents)
    linked: dict[str, Result] = {}
    for document, row in _list_configurations(documents):
        place = _get_place(row.values)
        result = known.get(place)
        if message := _find_fault(row.values, place in known, result, bases):
            message = f"{' '.join(map(str, place))}: {message}"
            raise DamagedDocumentError(message, document=document.document.document_id, place=row.locator)
        if result is not None:
            current = linked.get(result.result_id, result)
            linked[result.result_id] = _add_configuration(current, document.document.document_id, row, bases)
    return [
        replace(document, results=[linked.get(result.result_id, result) for result in document.results])
        for document in documents
    ]


def build_configuration_frame(documents: Sequence[NormalisedDocument], bases: Bases) -> pd.DataFrame:
    """Build the table `configurations`; a configuration whose row was quarantined has no result."""
    known = _find_results(documents)
    records = []
    for _, row in _list_configurations(documents):
        result = known.get(_get_place(row.values))
        basis = bases.get(row.values["latency_definition"])
        records.append({**row.values, "latency_basis": basis, "result_id": result.result_id if result else None})
    return build_frame(table("configurations"), sorted(records, key=_get_place))


def _list_configurations(
    documents: Sequence[NormalisedDocument],
) -> Iterator[tuple[NormalisedDocument, PassthroughRow]]:
    for document in documents:
        yield from ((document, row) for row in document.passthrough if row.table == "configurations")


def _get_place(values: Record) -> Place:
    return values["result_document"], values["result_table"], values["result_row"]


def _find_results(documents: Sequence[NormalisedDocument]) -> dict[Place, Result | None]:
    """Map the source rows of configured documents to their results, a quarantined row to None."""
    configured = {row.values["result_document"] for _, row in _list_configurations(documents)}
    results: dict[Place, Result | None] = {}
    for document in documents:
        name = document.document.document_id
        if name in configured:
            results |= {(name, row.table_name, row.row_number): None for row in document.rejected}
            results |= {(name, *place[:2]): result for result in document.results for place in result.places}
    return results


def _find_fault(values: Record, exists: bool, result: Result | None, bases: Bases) -> str | None:
    if not exists:
        return "there is no such row"
    definition = values["latency_definition"]
    unknown = f"unknown definition of latency {definition!r}" if definition not in (None, *bases) else None
    return _find_missing(values) or _find_miscount(values) or _find_disagreement(values, result) or unknown


def _find_missing(values: Record) -> str | None:
    """Require a row to name its configuration completely, or to hold only a note."""
    missing = [name for name in NAMED if values[name] is None]
    present = [name for name, value in values.items() if name not in UNNAMED and value is not None]
    return f"{', '.join(missing)} missing" if missing and present else None


def _find_miscount(values: Record) -> str | None:
    """Require the batch to be the product of its factors, as far as they are known."""
    factors = [values[name] for name in FACTORS if values[name] is not None]
    total = values["global_batch_from_config"]
    if total is None or not factors or prod(factors) == total:
        return None
    return f"{' × '.join(map(str, factors))} is not {total}"


def _find_disagreement(values: Record, result: Result | None) -> str | None:
    """Compute again whether the batch agrees with the printed one, and compare with what the row says."""
    if result is None:
        return None
    total, printed = values["global_batch_from_config"], result.values.get("batch_size")
    agrees = None if total is None or printed is None else total == printed
    if agrees is values["batch_agrees"]:
        return None
    return (
        f"batch_agrees is {values['batch_agrees']}, but the configuration gives {total} and the page prints {printed}"
    )


def _add_configuration(result: Result, document_id: str, row: PassthroughRow, bases: Bases) -> Result:
    """Add a micro-batch from an exact match with the printed batch, a latency basis from any but a weak match.

    A micro-batch that the result's own document gives stays.
    """
    values, cited = dict(result.values), list(result.cited)
    micro, basis = row.values["micro_batch_size"], bases.get(row.values["latency_definition"])
    match, own = row.values["match_confidence"], values.get("micro_batch_size")
    if match == "exact" and row.values["batch_agrees"] and micro is not None and own is None:
        values["micro_batch_size"] = micro
        cited.append((document_id, row.cite("micro_batch_size", "micro_batch_size", "item")))
    if match in NEAR and basis is not None and values.get("latency_ms") is not None:
        values["latency_basis"] = basis
        cited.append((document_id, row.cite("latency_definition", "latency_basis")))
    return replace(result, values=values, cited=cited)
