"""Rows that are published as they are, in a table whose columns bear the names of their headers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pipeline.catalogue import Document
from pipeline.errors import DocumentDamaged
from pipeline.read.reading import Reading, Row, Table
from schema import table as published
from schema.columns import Kind

TABLES = {"mlperf-entries": "mlperf_entries", "mlperf-runs": "mlperf_runs", "mlperf-ids": "mlperf_ids"}
BOOLEANS = {"True": True, "False": False}


class CarriedRow(NamedTuple):
    """One row of `table`, without the columns that a join fills."""

    table: str
    row_number: int
    locator: str
    values: dict[str, Any]


def carried_rows(document: Document, reading: Reading) -> Iterator[CarriedRow]:
    """The typed rows of a document that has a table of its own; none for other documents.

    Raises DocumentDamaged for a text that is not of its column's type, naming the cell.
    """
    name = TABLES.get(document.reader)
    for table in reading.tables if name else ():
        kinds = [published(str(name)).column(header).kind for header in table.columns]
        for row in table.rows:
            yield CarriedRow(str(name), row.number, row.locator, _values(document, table, row, kinds))


def _values(document: Document, table: Table, row: Row, kinds: Sequence[Kind]) -> dict[str, Any]:
    values: dict[str, Any] = {"document_id": document.document_id}
    for index, (header, text, kind) in enumerate(zip(table.columns, row.cells, kinds, strict=True)):
        try:
            values[header] = PARSERS[kind](text) if text else None
        except (ValueError, KeyError) as error:
            place = table.cell_locator(row, index)
            raise DocumentDamaged(f"{text!r} is no {kind}", document=document.document_id, place=place) from error
    return values


def _double(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


PARSERS: dict[Kind, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "double": _double,
    "boolean": BOOLEANS.__getitem__,
}
