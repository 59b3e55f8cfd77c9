"""Parse rows that are published as they are, in a table whose columns have the names of their headers.

A header that is not a column of that table fills a column of `results` only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.rows import Cell
from ipu_results.read.document import ParsedDocument, SourceRow, SourceTable
from ipu_results.schema import Column, Kind
from ipu_results.schema import table as published_table
from ipu_results.schema.table_headers import normalise_header
from ipu_results.sources.catalogue import Document
from ipu_results.sources.kinds import KINDS

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
BOOLEANS = {"True": True, "False": False}


class PassthroughRow(NamedTuple):
    """One row of the published `table`, without the columns that a link fills; `source` is its row in `read`."""

    table: str
    read: SourceTable
    source: SourceRow
    values: Mapping[str, Any]

    @property
    def table_name(self) -> str:
        return self.read.name

    @property
    def row_number(self) -> int:
        return self.source.number

    @property
    def locator(self) -> str:
        return self.source.locator

    def cite(self, header: str, column: str, unit: str | None = None) -> Cell:
        """Return the cell under a header as the source of a column of `results`; with `unit` it is a figure."""
        index = [normalise_header(name) for name in self.read.columns].index(normalise_header(header))
        figure = None if unit is None else float(self.values[header])
        factor = None if unit is None else 1.0
        place = self.read.cell_locator(self.source, index)
        return Cell(column, self.read.columns[index], self.source.cells[index], figure, unit, factor, None, place)


def parse_passthrough_rows(document: Document, parsed: ParsedDocument) -> Iterator[PassthroughRow]:
    """Yield the typed rows of a document with a table of its own, none for another document.

    Raises DamagedDocumentError for a text that is not of its column's type, naming the cell.
    """
    name = KINDS[document.reader].table
    if name is None:
        return
    known = {normalise_header(column.name): column for column in published_table(name).columns}
    for table in parsed.tables:
        columns = [known.get(normalise_header(header)) for header in table.columns]
        for row in table.rows:
            yield PassthroughRow(name, table, row, _parse_row(document, table, row, columns))


def _parse_row(
    document: Document, table: SourceTable, row: SourceRow, columns: Sequence[Column | None]
) -> dict[str, Any]:
    values: dict[str, Any] = {"document_id": document.document_id}
    for index, (text, column) in enumerate(zip(row.cells, columns, strict=True)):
        if column is None:
            continue
        try:
            values[column.name] = PARSERS[column.kind](text) if text else None
        except (ValueError, KeyError) as error:
            place = table.cell_locator(row, index)
            message = f"{text!r} is not of type {column.kind}"
            raise DamagedDocumentError(message, document=document.document_id, place=place) from error
    return values


def _parse_double(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def _parse_moment(text: str) -> datetime:
    """Parse a UTC time, without a time zone in the result."""
    if MOMENT.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.fromisoformat(text.removesuffix("Z"))


PARSERS: dict[Kind, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "double": _parse_double,
    "boolean": BOOLEANS.__getitem__,
    "timestamp": _parse_moment,
}
