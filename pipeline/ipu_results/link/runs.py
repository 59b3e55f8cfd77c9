"""Link the record of each local run to its points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ipu_results.errors import CatalogueError, DamagedDocumentError
from ipu_results.normalise import NormalisedDocument
from ipu_results.normalise.by_source import get_run_id
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

Record = Mapping[str, Any]
Results = Mapping[tuple[str, str, int], str | None]
SHARED = ("backend", "device")


def build_run_frames(
    documents: Sequence[NormalisedDocument], results: Results, origins: Mapping[str, str]
) -> dict[str, pd.DataFrame]:
    """Build the tables `runs` and `run_points`. A quarantined point is in neither.

    `results` maps source rows (document, table, number) to their results, `origins` results to their origin. Raises
    CatalogueError for a record without points or points without a record, DamagedDocumentError if the two describe
    different runs or a run mixes origins.
    """
    records = {get_run_id(doc.document): doc for doc in documents if doc.document.reader == "sweep-record"}
    points = {get_run_id(doc.document): doc for doc in documents if doc.document.reader == "sweep-points"}
    for present, other, missing in ((records, points, "points"), (points, records, "record")):
        if unpaired := sorted(present.keys() - other.keys()):
            document = present[unpaired[0]].document.document_id
            raise CatalogueError(f"the run {unpaired[0]} has no {missing} document", document=document)
    runs, accepted = [], []
    for run_id in sorted(records):
        own = sorted(_list_accepted(run_id, points[run_id], results), key=lambda point: point["batch_size"])
        runs.append(_complete_run(run_id, records[run_id], points[run_id], {origins[row["result_id"]] for row in own}))
        accepted += own
    return {"runs": build_frame(table("runs"), runs), "run_points": build_frame(table("run_points"), accepted)}


def _complete_run(run_id: str, record: NormalisedDocument, points: NormalisedDocument, origins: set[str]) -> Record:
    [row] = record.passthrough
    if row.values["run_id"] != run_id:
        message = f"is the record of another run, {row.values['run_id']}"
        raise DamagedDocumentError(message, document=record.document.document_id, place="$.run_id")
    for column in SHARED:
        for point in points.passthrough:
            if point.values[column] != row.values[column]:
                message = f"{point.values[column]!r} is not the {column} of the run, {row.values[column]!r}"
                raise DamagedDocumentError(message, document=points.document.document_id, place=point.locator)
    if len(origins) > 1:
        raise DamagedDocumentError(f"mixes origins: {', '.join(sorted(origins))}", document=points.document.document_id)
    return {**row.values, "origin": next(iter(origins), None)}


def _list_accepted(run_id: str, points: NormalisedDocument, results: Results) -> Iterator[Record]:
    for row in points.passthrough:
        result_id = results.get((points.document.document_id, row.table_name, row.row_number))
        if result_id is not None:
            yield {**row.values, "run_id": run_id, "result_id": result_id}
