"""Public configurations: each meets the row that it is behind, and tells of its result what no page prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import pandas as pd

from ipu_results.check.gate import build_frame
from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument, PassthroughRow, Result
from ipu_results.schema import table

Record = Mapping[str, Any]
Bases = Mapping[str, str | None]
Place = tuple[str, str, int]

NEAR = ("exact", "likely")
NAMED = ("repository", "tag", "path", "benchmark", "match_confidence")
BESIDE = ("result_document", "result_table", "result_row", "note", "document_id")
FACTORS = ("micro_batch_size", "replicas", "gradient_accumulation")


def join_configurations(documents: Sequence[NormalisedDocument], bases: Bases) -> None:
    """Give results the micro-batch and the latency basis of their configurations, and cite the cells that say so.

    `bases` maps a way of computing a latency to what it times. Raises DamagedDocumentError for a configuration of a row that
    is not there, one that contradicts that row or itself, and a way of computing a latency that is not known.
    """
    known = _places(documents)
    for normalised, row in _configurations(documents):
        result = known.get(_place(row.values))
        wrong = None if _place(row.values) in known else "there is no such row"
        wrong = wrong or _incomplete(row.values) or _miscounted(row.values) or _disagrees(row.values, result)
        if wrong is None and row.values["latency_definition"] not in (None, *bases):
            wrong = f"no known way of computing a latency: {row.values['latency_definition']!r}"
        if wrong:
            message = f"{' '.join(map(str, _place(row.values)))}: {wrong}"
            raise DamagedDocumentError(message, document=normalised.document.document_id, place=row.locator)
        if result is not None:
            _fill(result, normalised.document.document_id, row, bases)


def configuration_frames(documents: Sequence[NormalisedDocument], bases: Bases) -> dict[str, pd.DataFrame]:
    """The table of configurations; one whose row was quarantined has no result."""
    known = _places(documents)
    records = []
    for _, row in _configurations(documents):
        result = known.get(_place(row.values))
        told = {"latency_basis": bases.get(row.values["latency_definition"])}
        records.append({**row.values, **told, "result_id": result.result_id if result else None})
    return {"configurations": build_frame(table("configurations"), sorted(records, key=_place))}


def _configurations(documents: Sequence[NormalisedDocument]) -> Iterator[tuple[NormalisedDocument, PassthroughRow]]:
    for normalised in documents:
        yield from ((normalised, row) for row in normalised.carried if row.table == "configurations")


def _place(values: Record) -> Place:
    return values["result_document"], values["result_table"], values["result_row"]


def _places(documents: Sequence[NormalisedDocument]) -> dict[Place, Result | None]:
    """Source rows of the documents that configurations name, each with its result; None for a quarantined row."""
    wanted = {row.values["result_document"] for _, row in _configurations(documents)}
    known: dict[Place, Result | None] = {}
    for normalised in documents:
        name = normalised.document.document_id
        if name not in wanted:
            continue
        known |= {(name, row.table_name, row.row_number): None for row in normalised.rejected}
        for result in normalised.results:
            known |= {(name, *place[:2]): result for place in [*result.accepted, *result.repeated]}
    return known


def _incomplete(values: Record) -> str | None:
    """A row names its configuration whole, or holds nothing but a note."""
    lacking = [name for name in NAMED if values[name] is None]
    held = [name for name, value in values.items() if name not in BESIDE and value is not None]
    return f"lacks {', '.join(lacking)}" if lacking and held else None


def _miscounted(values: Record) -> str | None:
    """A batch is the product of what it is made of, where that is told."""
    parts = [values[name] for name in FACTORS if values[name] is not None]
    total = values["global_batch_from_config"]
    if total is None or not parts or prod(parts) == total:
        return None
    return f"{' × '.join(map(str, parts))} is not {total}"


def _disagrees(values: Record, result: Result | None) -> str | None:
    """Whether the batch agrees with the printed one is told, and is computed here again."""
    if result is None:
        return None
    total, printed = values["global_batch_from_config"], result.values.get("batch_size")
    agrees = None if total is None or printed is None else total == printed
    if agrees is values["batch_agrees"]:
        return None
    return f"batch_agrees is {values['batch_agrees']}, with {total} here and {printed} printed"


def _fill(result: Result, document_id: str, row: PassthroughRow, bases: Bases) -> None:
    """A micro-batch from an exact match with the printed batch, a latency basis from any but a weak match.

    A micro-batch that the result's own document tells stays.
    """
    micro, basis = row.values["micro_batch_size"], bases.get(row.values["latency_definition"])
    match, own = row.values["match_confidence"], result.values.get("micro_batch_size")
    if match == "exact" and row.values["batch_agrees"] and micro is not None and own is None:
        result.values["micro_batch_size"] = micro
        result.cited.append((document_id, row.cell("micro_batch_size", "micro_batch_size", "item")))
    if match in NEAR and basis is not None and result.values.get("latency_ms") is not None:
        result.values["latency_basis"] = basis
        result.cited.append((document_id, row.cell("latency_definition", "latency_basis")))
