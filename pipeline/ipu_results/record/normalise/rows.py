"""Convert the rows of a table: to a table of their own with the columns of their headers, or column by
column to results.

A header that is not a column of the table of their own fills a column of `results` only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.errors import DamagedDocumentError
from ipu_results.record.normalise.decimal_mark import DecimalMark
from ipu_results.record.normalise.fields import (
    NO_VALUE,
    CellContext,
    CellValues,
    check_field,
    convert_cell,
)
from ipu_results.record.normalise.values import (
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    parse_double,
)
from ipu_results.record.read.document import ParsedDocument, SourceTable, TextColumn
from ipu_results.record.sources.catalogue import SUBMISSION, Document
from ipu_results.schema import Kind, Table
from ipu_results.schema import table as published_table
from ipu_results.schema.frames import Integers, arrow_schema, build_array
from ipu_results.schema.vocabulary import (
    KINDS,
    TableHeader,
    Vocabulary,
    normalise_header,
    parse_unit,
)

RESULTS = published_table("results").as_filled()
RESULT_SCHEMA = arrow_schema(RESULTS)
# Python alone would accept other forms and time zones: one moment has one text.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
INTEGER = re.compile("-?[0-9]{1,18}")
BOOLEANS = {"True": True, "False": False}


PLACE = pa.schema(
    [("table_name", pa.string()), ("row_number", pa.int64()), ("locator", pa.string())]
)
"""Where a row is in its document."""
NO_ROWS = PLACE.empty_table()


@cache
def passthrough_schema(name: str) -> pa.Schema:
    """Return the columns of a table whose rows are published as they are, and the place of each
    row; what a link fills is null.
    """
    columns = [
        field for field in arrow_schema(published_table(name)) if field.name not in PLACE.names
    ]
    return pa.schema([*(pa.field(field.name, field.type) for field in columns), *PLACE])


def type_passthrough_rows(document: Document, parsed: ParsedDocument) -> pa.Table:
    """Return the rows of a document with a table of its own, typed and with their places.

    Raises DamagedDocumentError for a text that is not of its column's type, naming the cell.
    """
    name = KINDS[document.reader].table
    if name is None:
        return NO_ROWS
    parts = [_type_columns(document, read, name) for read in parsed.tables]
    for read in parsed.columnar:
        numbers = range(1, len(read.rows) + 1)
        columns = dict(zip(read.rows.column_names, read.rows.columns, strict=True))
        parts.append(columns | place_rows(read.name, numbers, map(read.locator, numbers)))
    schema = passthrough_schema(name)
    tables = [schema.empty_table()]
    for columns in parts:
        count = len(columns["locator"])
        columns["document_id"] = pa.repeat(document.document_id, count)
        tables.append(
            pa.table(
                [columns.get(field.name, pa.nulls(count, field.type)) for field in schema],
                schema=schema,
            )
        )
    return pa.concat_tables(tables)


def place_rows(name: str, numbers: Sequence[int], locators: Iterable[str]) -> dict[str, pa.Array]:
    """Return the columns of PLACE."""
    names = pa.repeat(name, len(numbers))
    columns = (names, pa.array(numbers, pa.int64()), pa.array(locators, pa.string()))
    return dict(zip(PLACE.names, columns, strict=True))


def _type_columns(document: Document, table: SourceTable, name: str) -> dict[str, pa.Array]:
    """Return the columns of the published table that a printed one fills, and the places."""
    published = published_table(name)
    known = {normalise_header(column.header or column.name): column for column in published.columns}
    columns = {
        index: known[normalise_header(header)]
        for index, header in enumerate(table.columns)
        if normalise_header(header) in known
    }
    cells = [
        convert_texts(table.texts[index], partial(parse_text, column.kind))
        for index, column in columns.items()
    ]
    if errors := find_errors(table, cells, columns):
        [(index, error), *_] = errors[first := min(errors)]
        place = table.cell_locator(table.row(first), index)
        raise DamagedDocumentError(
            str(error), document=document.document_id, place=place
        ) from error
    values = {}
    for (index, column), typed in zip(columns.items(), cells, strict=True):
        field = arrow_schema(published).field(column.name)
        codes = pa.array(get_codes(table, index))
        values[column.name] = build_array(published, field, typed).take(codes)
    return values | place_rows(table.name, table.numbers, table.locators)


def parse_text(kind: Kind, text: str) -> Any:
    """Parse a cell of a published column, None where it is blank. Raises UnreadableCellError."""
    try:
        return PARSERS[kind](text) if text else None
    except (ValueError, KeyError) as error:
        raise UnreadableCellError("unreadable-cell", f"{text!r} is not of type {kind}") from error


def _parse_integer(text: str) -> int:
    if not INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _parse_moment(text: str) -> datetime:
    """Parse a UTC time, without a time zone in the result."""
    if MOMENT.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.fromisoformat(text.removesuffix("Z"))


PARSERS: dict[Kind, Callable[[str], Any]] = {
    "text": str,
    "integer": _parse_integer,
    "double": parse_double,
    "boolean": BOOLEANS.__getitem__,
    "timestamp": _parse_moment,
}


FIGURE_FIELDS = frozenset(
    """
    throughput latency_ms efficiency time_to_train_s time_to_result_s latency_p90_ms latency_p99_ms latency_min_ms
    latency_median_ms latency_max_ms latency_std_ms energy_per_item_j run_energy_j power_w quality_value ranking metric
    """.split()
)
"""Fields of measured figures: the others identify a row."""
BRACKETED = re.compile(r"\(([^()]+)\)")  # the unit in a caption


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A source row that could not be normalised."""

    table_name: str
    row_number: int
    locator: str
    reason: str
    message: str
    raw: Mapping[str, str] | Sequence[str]
    words: Sequence[UnknownWord] = ()


def reject_row(
    table: SourceTable, position: int, reason: str, message: str, locator: str | None = None
) -> RejectedRow:
    """Reject the row at a position of a table; it is located as a whole if no `locator` is given."""
    row = table.row(position)
    raw = dict(zip(table.columns, row.cells, strict=True))
    return RejectedRow(table.name, row.number, locator or row.locator, reason, message, raw)


def reject_unreadable(
    table: SourceTable, position: int, errors: Sequence[tuple[int, UnreadableCellError]]
) -> RejectedRow:
    """Reject a row for its first cell that cannot be read, by its column; the message names all of
    them.
    """
    column, first = errors[0]
    message = "; ".join(str(error) for _, error in errors)
    words = tuple(error.word for _, error in errors if isinstance(error, UnknownWordError))
    place = table.cell_locator(table.row(position), column)
    rejected = reject_row(table, position, first.reason, message, place)
    return replace(rejected, words=words)


ConvertedColumn = Sequence[CellValues | UnreadableCellError]
"""What the texts of a column say, by their code."""


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedRows:
    """Rows of one table that were converted in one way, column by column."""

    table: SourceTable
    positions: Integers
    """Where the rows are in `table`, ascending."""
    header: TableHeader
    converted: Sequence[ConvertedColumn]
    values: Mapping[str, pa.Array]
    """The columns of the published table that the rows fill."""

    @property
    def result_table(self) -> str:
        return self.header.result_table or self.header.table

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.header.field_of(name) for name in self.table.columns)

    def list_codes(self, column: int) -> Integers:
        """Return the code of the text that each row has in a column of the table."""
        return get_codes(self.table, column)[self.positions]

    @property
    def identifying(self) -> list[int]:
        """The columns, by field: rows with the same texts in them are about the same result."""
        fields = self.fields
        identity = self.header.identity
        return [
            column
            for column in sorted(range(len(fields)), key=fields.__getitem__)
            if (
                fields[column] not in FIGURE_FIELDS
                if identity is None
                else fields[column] in identity
            )
        ]

    def filter(self, kept: npt.NDArray[np.bool_]) -> ConvertedRows:
        """Return the rows of a mask."""
        if kept.all():
            return self
        values = {name: column.filter(pa.array(kept)) for name, column in self.values.items()}
        return replace(self, positions=self.positions[kept], values=values)

    def reject(self, index: int, reason: str, message: str) -> RejectedRow:
        return reject_row(self.table, int(self.positions[index]), reason, message)


def get_codes(table: SourceTable, column: int) -> Integers:
    return np.asarray(table.texts[column].codes, np.int32)


def map_texts(texts: TextColumn, convert: Callable[[str], Any], into: Table, name: str) -> pa.Array:
    """Return the column `name` of a table as the texts fill it, each converted once, perhaps to
    None.
    """
    values = build_array(into, arrow_schema(into).field(name), list(map(convert, texts.distinct)))
    return values.take(pa.array(np.asarray(texts.codes, np.int32)))


def convert_texts(texts: TextColumn, convert: Callable[[str], Any]) -> list[Any]:
    """Return what each distinct text of a column is converted to, or the UnreadableCellError that
    it raises.

    Cells of every kind of document pass here, so that no printed text becomes null: it is a value
    or an error.
    """
    converted = []
    for text in texts.distinct:
        try:
            value = convert(text)
            if text and value is not NO_VALUE and _is_lost(value):
                raise UnreadableCellError("unreadable-cell", f"no value comes of {text!r}")
            converted.append(value)
        except UnreadableCellError as error:
            converted.append(error)
    return converted


def _is_lost(value: Any) -> bool:
    parts = (
        (value.figure, *[own for _, own in value.values])
        if isinstance(value, CellValues)
        else (value,)
    )
    # NaN alone is unequal to itself
    return parts.count(None) == len(parts) or any(map(ne, parts, parts))


def find_errors(
    table: SourceTable, converted: Iterable[Sequence[Any]], columns: Iterable[int] | None = None
) -> dict[int, list[tuple[int, UnreadableCellError]]]:
    """Return the errors of each row that has one, by its position, each with its column."""
    errors: dict[int, list[tuple[int, UnreadableCellError]]] = defaultdict(list)
    for column, cells in zip(
        range(len(table.columns)) if columns is None else columns, converted, strict=True
    ):
        if any(isinstance(cell, UnreadableCellError) for cell in cells):
            for position, code in enumerate(table.texts[column].codes):
                if isinstance(error := cells[code], UnreadableCellError):
                    errors[position].append((column, error))
    return errors


class TableSource(NamedTuple):
    """One table of a document, and what its rows are converted with."""

    document: Document
    table: SourceTable
    header: TableHeader
    vocabulary: Vocabulary
    marks: Mapping[tuple[str, str], DecimalMark]
    """Decimal mark of a column, by table and printed name, where it is not simply a point."""

    def list_fields(self) -> dict[str, int]:
        """Return the number of the column of each field."""
        return {
            self.header.field_of(name): column for column, name in enumerate(self.table.columns)
        }

    def group_rows(self, columns: Sequence[int]) -> dict[tuple[str, ...], list[int]]:
        """Return the positions of the rows with the same texts in some columns, by these texts."""
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        texts = [self.table.texts[column] for column in columns]
        for position, codes in enumerate(zip(*(column.codes for column in texts), strict=True)):
            groups[codes].append(position)
        return {
            tuple(column.distinct[code] for column, code in zip(texts, codes, strict=True)): rows
            for codes, rows in groups.items()
        }

    def get_constants(self) -> dict[str, Any]:
        """Return the values of `results` that document and table give to every row."""
        document, header = self.document, self.header
        return {
            "origin": "measured" if document.kind == SUBMISSION else "published",
            "publisher": document.publisher,
            "document_id": document.document_id,
            "table_name": header.result_table or header.table,
            "published_on": document.published_on,
            "task": header.task,
            "benchmark": header.benchmark,
        }

    def list_contexts(self, units: Mapping[str, str]) -> list[CellContext]:
        """Return what each column's cells are converted with.

        `units` gives the unit of a field that neither the header nor the caption prints.
        """
        contexts = []
        for name in self.table.columns:
            unit = units.get(self.header.field_of(name)) or find_printed_unit(self.table, name)
            mark = self.marks.get((self.table.name, name), DecimalMark.POINT)
            header = self.header
            contexts.append(CellContext(self.vocabulary, unit, header.strict, header.derived, mark))
        return contexts

    def convert(
        self,
        constants: Mapping[str, Any],
        columns: Mapping[str, pa.Array] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> tuple[ConvertedRows, list[RejectedRow]]:
        """Convert the rows for `results`, each text of a column once.

        `constants` are values that hold for all of them, `columns` those of each.
        """
        table = self.table
        fields = [self.header.field_of(name) for name in table.columns]
        for field in fields:
            check_field(field, self.header.table)
        converted = [
            convert_texts(texts, partial(convert_cell, field, context=context))
            for field, texts, context in zip(
                fields, table.texts, self.list_contexts(units or {}), strict=True
            )
        ]
        errors = find_errors(table, converted)
        kept = np.delete(np.arange(len(table.numbers)), list(errors))
        values = {name: repeat_value(name, value, len(kept)) for name, value in constants.items()}
        for name, column in (columns or {}).items():
            values[name] = column.take(pa.array(kept))
        # a column's own cell overrides what another cell implies, wherever it is
        order = [field for _, field in self.header.fields]
        for column in sorted(range(len(fields)), key=lambda column: order.index(fields[column])):
            codes = pa.array(get_codes(table, column)[kept])
            _fill_values(values, converted[column], codes)
        return (
            ConvertedRows(table, kept, self.header, converted, values),
            [reject_unreadable(table, row, errors[row]) for row in sorted(errors)],
        )


def repeat_value(name: str, value: Any, count: int) -> pa.Array:
    """Return a column of `results` with one value in each row, which may be None."""
    column = build_array(RESULTS, RESULT_SCHEMA.field(name), [value])
    return column.take(pa.array(np.zeros(count, int)))


def _fill_values(values: dict[str, pa.Array], cells: ConvertedColumn, codes: pa.Array) -> None:
    """Fill the columns of `results` that the texts of a column fill, by the code of each text."""
    filled: dict[str, dict[int, Any]] = {}
    for code, cell in enumerate(cells):
        if isinstance(cell, CellValues):
            for name, value in cell.values:
                filled.setdefault(name, {})[code] = value
    for name, by_code in filled.items():
        texts = [by_code.get(code) for code in range(len(cells))]
        column = build_array(RESULTS, RESULT_SCHEMA.field(name), texts).take(codes)
        if name in values:
            is_filled = pa.array([code in by_code for code in range(len(cells))]).take(codes)
            column = pc.if_else(is_filled, column, values[name])
        values[name] = column


def find_printed_unit(table: SourceTable, header: str) -> str | None:
    """Return the unit that a header prints in brackets, else the one in the table's caption."""
    unit = parse_unit(header)
    if unit is None and table.caption:
        match = BRACKETED.search(table.caption)
        unit = match.group(1) if match else None
    return unit
