"""Rows that are published as they are, in a table whose columns bear the names of their headers.

A header that is no column of that table fills one of `results` alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.rows import Cell
from ipu_results.read.document import ParsedDocument, SourceRow, SourceTable
from ipu_results.schema import Column
from ipu_results.schema import table as published
from ipu_results.schema.definitions import Kind
from ipu_results.schema.layouts import normalise_header
from ipu_results.sources.catalogue import Document

TABLES = {
    "mlperf-entries": "mlperf_entries",
    "mlperf-runs": "mlperf_runs",
    "mlperf-ids": "mlperf_ids",
    "configurations": "configurations",
    "claims": "claims",
    "contradictions": "contradictions",
    "sweep-record": "runs",
    "sweep-points": "run_points",
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
BOOLEANS = {"True": True, "False": False}


class PassthroughRow(NamedTuple):
    """One row of `table`, without the columns that a join fills; `source` is its row in the table `read`."""

    table: str
    read: SourceTable
    source: SourceRow
    values: dict[str, Any]

    @property
    def table_name(self) -> str:
        return self.read.name

    @property
    def row_number(self) -> int:
        return self.source.number

    @property
    def locator(self) -> str:
        return self.source.locator

    def cell(self, header: str, fills: str, unit: str | None = None) -> Cell:
        """The cell under a header, as the source of a column of a result; with `unit` it holds a figure."""
        index = [normalise_header(name) for name in self.read.columns].index(normalise_header(header))
        figure = None if unit is None else float(self.values[header])
        factor = None if unit is None else 1.0
        place = self.read.cell_locator(self.source, index)
        return Cell(fills, self.read.columns[index], self.source.cells[index], figure, unit, factor, None, place)


def carried_rows(document: Document, reading: ParsedDocument) -> Iterator[PassthroughRow]:
    """The typed rows of a document that has a table of its own; none for other documents.

    Raises DamagedDocumentError for a text that is not of its column's type, naming the cell.
    """
    name = TABLES.get(document.reader)
    for table in reading.tables if name else ():
        known = {normalise_header(column.name): column for column in published(str(name)).columns}
        columns = [known.get(normalise_header(header)) for header in table.columns]
        for row in table.rows:
            yield PassthroughRow(str(name), table, row, _values(document, table, row, columns))


def _values(document: Document, table: SourceTable, row: SourceRow, columns: Sequence[Column | None]) -> dict[str, Any]:
    values: dict[str, Any] = {"document_id": document.document_id}
    for index, (text, column) in enumerate(zip(row.cells, columns, strict=True)):
        if column is None:
            continue
        try:
            values[column.name] = PARSERS[column.kind](text) if text else None
        except (ValueError, KeyError) as error:
            place = table.cell_locator(row, index)
            message = f"{text!r} is no {column.kind}"
            raise DamagedDocumentError(message, document=document.document_id, place=place) from error
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
