"""From one source row to its part of a result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ipu_results.normalise.fields import Converted, Source, convert
from ipu_results.normalise.values import Unreadable
from ipu_results.read.document import SourceRow, SourceTable
from ipu_results.schema.layouts import TableHeader, parse_unit
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

FIGURE_FIELDS = frozenset(
    {
        "throughput",
        "latency_ms",
        "efficiency",
        "time_to_train_s",
        "time_to_result_s",
        "quality_value",
        "ranking",
        "metric",
    }
)
BRACKETED = re.compile(r"\(([^()]+)\)")


class Cell(NamedTuple):
    """One cell of a source row, with what `cells` says of it."""

    column_name: str
    header: str
    raw_text: str
    value: float | None
    unit: str | None
    factor: float | None
    marks: str | None
    locator: str


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A source row that could not be normalised."""

    table_name: str
    row_number: int
    locator: str
    reason: str
    message: str
    raw: Mapping[str, str] | Sequence[str]


@dataclass(slots=True)
class RowFragment:
    """What one source row says.

    Rows with the same `identity` (printed texts, no figures) are about one result; only where `joins` holds may several
    of them make it up.
    """

    table_name: str
    result_table: str
    joins: bool
    row_number: int
    locator: str
    identity: tuple[tuple[str, str], ...]
    values: dict[str, Any]
    cells: list[Cell]
    raw: Mapping[str, str] = field(default_factory=dict)

    def reject(self, reason: str, message: str) -> RejectedRow:
        return RejectedRow(self.table_name, self.row_number, self.locator, reason, message, self.raw)


class RowConverter:
    """Converts the cells of one table, remembering each text that it has seen in a column.

    `units` names the unit of a field where neither the header nor the caption prints it.
    """

    def __init__(
        self, table: SourceTable, layout: TableHeader, vocabulary: Vocabulary, units: Mapping[str, str] | None = None
    ) -> None:
        self.table = table
        self.layout = layout
        self.fields = tuple(layout.field_of(header) for header in table.columns)
        known = units or {}
        self.sources = tuple(
            Source(vocabulary, known.get(name) or printed_unit(table, header), layout.strict, layout.derived)
            for name, header in zip(self.fields, table.columns, strict=True)
        )
        known_order = [name for _, name in layout.fields]
        self.order = sorted(range(len(self.fields)), key=lambda column: known_order.index(self.fields[column]))
        self._seen: tuple[dict[str, Converted | Unreadable], ...] = tuple({} for _ in self.fields)

    def cell(self, column: int, text: str) -> Converted:
        seen = self._seen[column]
        if text not in seen:
            try:
                seen[text] = convert(self.fields[column], text, self.sources[column])
            except Unreadable as error:
                seen[text] = error
        found = seen[text]
        if isinstance(found, Unreadable):
            raise found
        return found

    def _identifies(self, name: str) -> bool:
        named = self.layout.identity
        return name not in FIGURE_FIELDS if named is None else name in named

    def row(self, row: SourceRow, constants: Mapping[str, Any]) -> RowFragment | RejectedRow:
        """One row's part of a result; `constants` are the values that hold for the whole table."""
        table, raw = self.table, dict(zip(self.table.columns, row.cells, strict=True))
        said: list[Converted] = []
        cells: list[Cell] = []
        marks = dict(row.footnotes)
        for column, (header, name, text) in enumerate(zip(table.columns, self.fields, row.cells, strict=True)):
            try:
                converted = self.cell(column, text)
            except Unreadable as error:
                place = table.cell_locator(row, column)
                return RejectedRow(table.name, row.number, place, error.reason, str(error), raw)
            said.append(converted)
            locator = table.cell_locator(row, column)
            cells.append(Cell(name, header, text, *converted[1:], marks.get(column), locator))
        values = dict(constants)
        for column in self.order:  # a cell of its own overrides what another implies, wherever it stands
            values.update(said[column].values)
        identity = tuple(
            sorted((name, text) for name, text in zip(self.fields, row.cells, strict=True) if self._identifies(name))
        )
        result_table = self.layout.result_table or table.name
        joins = self.layout.joins
        return RowFragment(table.name, result_table, joins, row.number, row.locator, identity, values, cells, raw)


def printed_unit(table: SourceTable, header: str) -> str | None:
    """The unit that a header prints in brackets, else the one that the table's caption does."""
    found = parse_unit(header)
    if found is None and table.caption:
        bracketed = BRACKETED.search(table.caption)
        found = bracketed.group(1) if bracketed else None
    return found


def constants_of(document: Document, layout: TableHeader) -> dict[str, Any]:
    """Values of `results` that the document and the table give to every row."""
    return {
        "origin": "published",
        "publisher": document.publisher,
        "document_id": document.document_id,
        "table_name": layout.result_table or layout.table,
        "published_on": document.published_on,
        "task": layout.task,
        "benchmark": layout.benchmark,
    }
