"""Local runs: each record meets its points, and the two tables that are published of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ipu_results.check.gate import build_frame
from ipu_results.errors import CatalogueError, DamagedDocumentError
from ipu_results.normalise import NormalisedDocument
from ipu_results.normalise.by_source import run_of
from ipu_results.schema import table

Record = Mapping[str, Any]
SHARED = ("backend", "device")


def run_frames(documents: Sequence[NormalisedDocument]) -> dict[str, pd.DataFrame]:
    """The tables of local runs. A point that was quarantined is in neither.

    Raises CatalogueError where a record has no points or points have no record, DamagedDocumentError where the two speak of
    different runs or a run mixes origins.
    """
    records = {run_of(one.document): one for one in documents if one.document.reader == "sweep-record"}
    points = {run_of(one.document): one for one in documents if one.document.reader == "sweep-points"}
    for have, lack, what in ((records, points, "points"), (points, records, "record")):
        if alone := sorted(have.keys() - lack.keys()):
            document = have[alone[0]].document.document_id
            raise CatalogueError(f"the run {alone[0]} has no {what} document", document=document)
    runs = [_run(run_id, records[run_id], points[run_id]) for run_id in sorted(records)]
    of_points = [point for run_id in sorted(points) for point in _accepted(points[run_id])]
    return {
        "runs": build_frame(table("runs"), runs),
        "run_points": build_frame(
            table("run_points"), sorted(of_points, key=lambda one: (one["run_id"], one["batch_size"]))
        ),
    }


def _run(run_id: str, record: NormalisedDocument, points: NormalisedDocument) -> Record:
    [row] = record.carried
    name = record.document.document_id
    if row.values["run_id"] != run_id:
        raise DamagedDocumentError(
            f"is the record of another run, {row.values['run_id']}", document=name, place="$.run_id"
        )
    for column in SHARED:
        for point in points.carried:
            if point.values[column] != row.values[column]:
                message = f"{point.values[column]!r} is not the {column} of the run, {row.values[column]!r}"
                raise DamagedDocumentError(message, document=points.document.document_id, place=point.locator)
    origins = {result.values["origin"] for result in points.results}
    if len(origins) > 1:
        raise DamagedDocumentError(f"mixes origins: {', '.join(sorted(origins))}", document=points.document.document_id)
    return {**row.values, "origin": next(iter(origins), None)}


def _accepted(points: NormalisedDocument) -> Iterator[Record]:
    results = {result.values["row_number"]: result.result_id for result in points.results}
    for row in points.carried:
        if row.row_number in results:
            yield {**row.values, "run_id": run_of(points.document), "result_id": results[row.row_number]}
