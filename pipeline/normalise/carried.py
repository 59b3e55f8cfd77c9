"""Rows that are published as they are, in a table whose columns bear the names of their headers.

A header that is no column of that table fills one of `results` alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pipeline.catalogue import Document
from pipeline.errors import DocumentDamaged
from pipeline.read.reading import Reading, Row, Table
from schema import table as published
from schema.columns import Kind

TABLES = {
    "mlperf-entries": "mlperf_entries",
    "mlperf-runs": "mlperf_runs",
    "mlperf-ids": "mlperf_ids",
    "sweep-record": "runs",
    "sweep-points": "run_points",
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
BOOLEANS = {"True": True, "False": False}


class CarriedRow(NamedTuple):
    """One row of `table`, without the columns that a join fills; it stands in `table_name` of its document."""

    table: str
    table_name: str
    row_number: int
    locator: str
    values: dict[str, Any]


def carried_rows(document: Document, reading: Reading) -> Iterator[CarriedRow]:
    """The typed rows of a document that has a table of its own; none for other documents.

    Raises DocumentDamaged for a text that is not of its column's type, naming the cell.
    """
    name = TABLES.get(document.reader)
    for table in reading.tables if name else ():
        known = {column.name: column.kind for column in published(str(name)).columns}
        kinds = [known.get(header) for header in table.columns]
        for row in table.rows:
            values = _values(document, table, row, kinds)
            yield CarriedRow(str(name), table.name, row.number, row.locator, values)


def _values(document: Document, table: Table, row: Row, kinds: Sequence[Kind | None]) -> dict[str, Any]:
    values: dict[str, Any] = {"document_id": document.document_id}
    for index, (header, text, kind) in enumerate(zip(table.columns, row.cells, kinds, strict=True)):
        if kind is None:
            continue
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


def _moment(text: str) -> datetime:
    """UTC, without a time zone."""
    if MOMENT.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.fromisoformat(text.removesuffix("Z"))


PARSERS: dict[Kind, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "double": _double,
    "boolean": BOOLEANS.__getitem__,
    "timestamp": _moment,
}
