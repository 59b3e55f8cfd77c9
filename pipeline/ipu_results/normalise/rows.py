"""Parse rows that are published as they are, in a table whose columns have the names of their
headers.

A header that is not a column of that table fills a column of `results` only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.decimal_mark import DecimalMark
from ipu_results.normalise.fields import (
    NO_VALUE,
    CellContext,
    CellValues,
    check_field,
    convert_cell,
    get_column,
)
from ipu_results.normalise.values import (
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    parse_double,
)
from ipu_results.read.document import ParsedDocument, SourceRow, SourceTable, TextColumn
from ipu_results.schema import Kind
from ipu_results.schema import table as published_table
from ipu_results.schema.frames import EncodedColumn, Integers
from ipu_results.schema.vocabulary import (
    KINDS,
    TableHeader,
    Vocabulary,
    normalise_header,
    parse_unit,
)
from ipu_results.sources.catalogue import SUBMISSION, Document

# Python alone would accept other forms and time zones: one moment has one text.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
INTEGER = re.compile("-?[0-9]{1,18}")
BOOLEANS = {"True": True, "False": False}


class PassthroughRow(NamedTuple):
    """One row of the published `table`, without the columns that a link fills, and where it is in
    `read`.
    """

    table: str
    read: SourceTable
    position: int
    values: Mapping[str, Any]

    @property
    def table_name(self) -> str:
        return self.read.name

    @property
    def row_number(self) -> int:
        return self.read.numbers[self.position]

    @property
    def locator(self) -> str:
        return self.read.locators[self.position]

    def cite(self, header: str, column: str, unit: str | None = None) -> Cell:
        """Return the cell under a header as the source of a column of `results`; with `unit` it is
        a figure.
        """
        index = [normalise_header(name) for name in self.read.columns].index(
            normalise_header(header)
        )
        figure = None if unit is None else float(self.values[header])
        factor = None if unit is None else 1.0
        source = self.read.row(self.position)
        place = self.read.cell_locator(source, index)
        return Cell(
            column, self.read.columns[index], source.cells[index], figure, unit, factor, None, place
        )


def parse_passthrough_rows(document: Document, parsed: ParsedDocument) -> Iterator[PassthroughRow]:
    """Yield the typed rows of a document with a table of its own, none for another document.

    Raises DamagedDocumentError for a text that is not of its column's type, naming the cell.
    """
    name = KINDS[document.reader].table
    if name is None:
        return
    known = {
        normalise_header(column.header or column.name): column
        for column in published_table(name).columns
    }
    for table in parsed.tables:
        columns = {
            index: known.get(normalise_header(header)) for index, header in enumerate(table.columns)
        }
        kinds = {index: column.kind for index, column in columns.items() if column is not None}
        cells = [
            convert_texts(table.texts[index], partial(parse_text, kind))
            for index, kind in kinds.items()
        ]
        if errors := find_errors(table, cells, kinds):
            [(index, error), *_] = errors[first := min(errors)]
            place = table.cell_locator(table.row(first), index)
            raise DamagedDocumentError(
                str(error), document=document.document_id, place=place
            ) from error
        names = ["document_id", *(column.name for column in columns.values() if column is not None)]
        typed = (
            map(own.__getitem__, table.texts[index].codes)
            for index, own in zip(kinds, cells, strict=True)
        )
        for position, values in zip(
            range(len(table.numbers)), zip(*typed, strict=True), strict=True
        ):
            named = dict(zip(names, (document.document_id, *values), strict=True))
            yield PassthroughRow(name, table, position, named)


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

Place = tuple[str, int, str]
"""Table, row number and locator of a source row."""


class Cell(NamedTuple):
    """One cell of a source row, as the table `cells` holds it."""

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
    words: Sequence[UnknownWord] = ()

    @classmethod
    def from_error(
        cls, table: SourceTable, row: SourceRow, *errors: tuple[int, UnreadableCellError]
    ) -> RejectedRow:
        """Reject a row for its first cell that cannot be read, by its column; the message names all
        of them.
        """
        column, first = errors[0]
        message = "; ".join(str(error) for _, error in errors)
        words = tuple(error.word for _, error in errors if isinstance(error, UnknownWordError))
        raw = dict(zip(table.columns, row.cells, strict=True))
        return cls(
            table.name,
            row.number,
            table.cell_locator(row, column),
            first.reason,
            message,
            raw,
            words,
        )


@dataclass(frozen=True, slots=True)
class RowFragment:
    """What one source row contributes to a result: its cells, each converted for the field of its
    column.
    """

    table: SourceTable
    row: SourceRow
    columns: Sequence[str]
    converted: Sequence[CellValues]

    @property
    def place(self) -> Place:
        return self.table.name, self.row.number, self.row.locator

    @property
    def cells(self) -> Iterator[Cell]:
        footnotes = dict(self.row.footnotes)
        cells = zip(self.columns, self.table.columns, self.row.cells, self.converted, strict=True)
        for number, (column, header, text, converted) in enumerate(cells):
            locator = self.table.cell_locator(self.row, number)
            yield Cell(column, header, text, *converted[1:], footnotes.get(number), locator)

    def reject(self, reason: str, message: str) -> RejectedRow:
        return RejectedRow(
            *self.place, reason, message, dict(zip(self.table.columns, self.row.cells, strict=True))
        )


ConvertedColumn = Sequence[CellValues | UnreadableCellError]
"""What the texts of a column say, by their code."""


@dataclass(frozen=True, slots=True, eq=False)
class Fragments:
    """Rows of one table, at ascending positions `rows`, that were converted in one way, column by
    column.

    `values` are the columns of `results` that they fill. Rows with the same texts in the
    `identifying` columns are about the same result. Only if `joins` is set may several of them make
    it up.
    """

    table: SourceTable
    rows: Integers
    fields: tuple[str, ...]
    converted: Sequence[ConvertedColumn]
    result_table: str
    joins: bool
    identifying: Sequence[int]
    values: Mapping[str, EncodedColumn]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the fields fill, as `cells` names them."""
        return tuple(get_column(field, self.result_table) for field in self.fields)

    def list_codes(self, column: int) -> Integers:
        """Return the code of the text that each row has in a column of the table."""
        return get_codes(self.table, column)[self.rows]

    def find_missing(self, name: str) -> npt.NDArray[np.bool_]:
        """Return which rows do not fill a column of `results`."""
        return (
            self.values[name].codes == 0 if name in self.values else np.ones(len(self.rows), bool)
        )

    def split(self, refused: npt.NDArray[np.bool_]) -> tuple[Fragments, list[int]]:
        """Return the rows that are not refused, and the index of each that is."""
        if not refused.any():
            return self, []
        values = {name: column.take(~refused) for name, column in self.values.items()}
        return (
            replace(self, rows=self.rows[~refused], values=values),
            np.flatnonzero(refused).tolist(),
        )

    def get(self, index: int) -> RowFragment:
        """Return one of the rows."""
        position = int(self.rows[index])
        codes = (texts.codes[position] for texts in self.table.texts)
        converted: Any = [column[code] for column, code in zip(self.converted, codes, strict=True)]
        return RowFragment(self.table, self.table.row(position), self.columns, converted)

    def reject(self, index: int, reason: str, message: str) -> RejectedRow:
        return self.get(index).reject(reason, message)


def get_codes(table: SourceTable, column: int) -> Integers:
    return np.asarray(table.texts[column].codes, np.int32)


def map_texts(texts: TextColumn, convert: Callable[[str], Any]) -> EncodedColumn:
    """Convert each distinct text of a column once, perhaps to None."""
    return EncodedColumn(
        np.asarray(texts.codes, np.int32) + np.int32(1), [None, *map(convert, texts.distinct)]
    )


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


class TableConverter:
    """Converts the rows of one table; each text of a column is converted once.

    `units` gives the unit of a field that neither the header nor the caption prints. `marks` gives
    the decimal mark of a column, by table and printed name, where it is not simply a point.
    """

    def __init__(
        self,
        table: SourceTable,
        header: TableHeader,
        vocabulary: Vocabulary,
        marks: Mapping[tuple[str, str], DecimalMark],
        units: Mapping[str, str] | None = None,
    ) -> None:
        self.table = table
        self.header = header
        self.fields = tuple(header.field_of(name) for name in table.columns)
        for field in self.fields:
            check_field(field, header.table)
        self.contexts = tuple(
            CellContext(
                vocabulary,
                (units or {}).get(field) or find_printed_unit(table, name),
                header.strict,
                header.derived,
                marks.get((table.name, name), DecimalMark.POINT),
            )
            for field, name in zip(self.fields, table.columns, strict=True)
        )
        field_order = [field for _, field in header.fields]
        identity = set(field_order) - FIGURE_FIELDS if header.identity is None else header.identity
        self.identifying = [column for column, field in enumerate(self.fields) if field in identity]
        self.order = sorted(
            range(len(self.fields)), key=lambda column: field_order.index(self.fields[column])
        )

    def convert(
        self, constants: Mapping[str, Any], columns: Mapping[str, EncodedColumn] | None = None
    ) -> tuple[Fragments, list[RejectedRow]]:
        """Convert the rows; `constants` are values of `results` that hold for all of them,
        `columns` those of each.
        """
        table = self.table
        converted = [
            convert_texts(texts, partial(convert_cell, field, context=context))
            for texts, field, context in zip(table.texts, self.fields, self.contexts, strict=True)
        ]
        errors = find_errors(table, converted)
        rejected = [
            RejectedRow.from_error(table, table.row(position), *errors[position])
            for position in sorted(errors)
        ]
        rows = np.delete(np.arange(len(table.numbers)), list(errors))
        values = {name: EncodedColumn.repeat(value, len(rows)) for name, value in constants.items()}
        values |= {name: column.take(rows) for name, column in (columns or {}).items()}
        for (
            column
        ) in self.order:  # a column's own cell overrides what another cell implies, wherever it is
            codes = get_codes(table, column)[rows]
            for name, filled in _list_filled(converted[column]):
                lookup = np.zeros(len(converted[column]), np.int32)
                lookup[list(filled)] = np.arange(1, len(filled) + 1)
                encoded = EncodedColumn(lookup[codes], [None, *filled.values()])
                values[name] = values[name].overlay(encoded) if name in values else encoded
        result_table = self.header.result_table or table.name
        return (
            Fragments(
                table,
                rows,
                self.fields,
                converted,
                result_table,
                self.header.joins,
                self.identifying,
                values,
            ),
            rejected,
        )


def _list_filled(cells: ConvertedColumn) -> Iterable[tuple[str, dict[int, Any]]]:
    """Return the columns of `results` that the texts of a column fill, each with its values by code
    of the text.
    """
    filled: dict[str, dict[int, Any]] = {}
    for code, cell in enumerate(cells):
        if isinstance(cell, CellValues):
            for name, value in cell.values:
                filled.setdefault(name, {})[code] = value
    return filled.items()


def find_printed_unit(table: SourceTable, header: str) -> str | None:
    """Return the unit that a header prints in brackets, else the one in the table's caption."""
    unit = parse_unit(header)
    if unit is None and table.caption:
        match = BRACKETED.search(table.caption)
        unit = match.group(1) if match else None
    return unit


def get_constants(document: Document, header: TableHeader) -> dict[str, Any]:
    """Return the values of `results` that document and table give to every row."""
    return {
        "origin": "measured" if document.kind == SUBMISSION else "published",
        "publisher": document.publisher,
        "document_id": document.document_id,
        "table_name": header.result_table or header.table,
        "published_on": document.published_on,
        "task": header.task,
        "benchmark": header.benchmark,
    }
