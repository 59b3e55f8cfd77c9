"""Convert the rows of a table to results, column by column."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.record.normalise.decimal_mark import DecimalMark
from ipu_results.record.normalise.fields import (
    CONDITION,
    NO_VALUE,
    NOT_READ,
    CellContext,
    CellValues,
    check_field,
    convert_cell,
)
from ipu_results.record.normalise.values import UnknownWord, UnknownWordError, UnreadableCellError
from ipu_results.record.read.document import SourceTable, TextColumn
from ipu_results.record.sources.catalogue import SUBMISSION, Document
from ipu_results.schema import Table
from ipu_results.schema import table as published_table
from ipu_results.schema.frames import Integers, arrow_schema, build_array
from ipu_results.schema.vocabulary import (
    MEASURED,
    TableHeader,
    Vocabulary,
    parse_unit,
    strip_unit,
)

RESULTS = published_table("results").as_filled()
BRACKETED = re.compile(r"\(([^()]+)\)")  # the unit in a caption
FIGURE_FIELDS = frozenset(
    (
        *(column.name for column in RESULTS.columns if column.figure),
        *MEASURED,
        "quality_figure",
        "ranking",
        "metric",
    )
)
"""Fields of measured figures."""
NOT_IDENTIFYING = FIGURE_FIELDS | {NOT_READ, "place", "printed_until"}
"""The other fields identify a row."""


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
    """Reject the row at a position of a table; it is located as a whole without a `locator`."""
    row = table.row(position)
    raw = dict(zip(table.columns, row.cells, strict=True))
    return RejectedRow(table.name, row.number, locator or row.locator, reason, message, raw)


CellError = tuple[int, UnreadableCellError]
"""The column of a cell that cannot be read, and why."""


def reject_unreadable(
    table: SourceTable, position: int, errors: Sequence[CellError]
) -> RejectedRow:
    """Reject a row for its first cell that cannot be read; the message names all of them."""
    column, first = errors[0]
    message = "; ".join(str(error) for _, error in errors)
    place = table.cell_locator(table.row(position), column)
    rejected = reject_row(table, position, first.reason, message, place)
    words = [error.word for _, error in errors if isinstance(error, UnknownWordError)]
    return replace(rejected, words=tuple(words))


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedRows:
    """Rows of one table that were converted in one way, column by column."""

    table: SourceTable
    positions: Integers
    """Where the rows are in `table`, ascending."""
    header: TableHeader
    converted: Sequence[Sequence[CellValues | UnreadableCellError]]
    """What the texts of each column say, by their code."""
    values: Mapping[str, pa.Array]
    """The columns of the published table that the rows fill."""

    @property
    def numbers(self) -> Integers:
        """The printed numbers of the rows."""
        return np.array(self.table.numbers, int)[self.positions]

    @property
    def result_table(self) -> str:
        return self.header.result_table or self.header.table

    @property
    def fields(self) -> list[str]:
        return list(map(self.header.field_of, self.table.columns))

    def list_codes(self, column: int) -> Integers:
        """Return the code of the text that each row has in a column of the table."""
        return get_codes(self.table.texts[column])[self.positions]

    def list_identifying(self) -> list[int]:
        """Return the columns, by field: rows with the same texts in them are about the same
        result.
        """
        identity = self.header.identity
        columns = []
        for column, name in enumerate(self.fields):
            if identity is None:
                is_identifying = name not in NOT_IDENTIFYING
            else:
                is_identifying = name in identity
            if is_identifying:
                columns.append(column)
        return sorted(columns, key=self.name_identity)

    def name_identity(self, column: int) -> str:
        """Return the name of a column in what identifies a row: its field, or its printed name if
        the field is one of several columns.
        """
        if self.is_condition(column):
            return strip_unit(self.table.columns[column])
        return self.fields[column]

    def is_condition(self, column: int) -> bool:
        return self.fields[column] == CONDITION

    def filter(self, kept: npt.NDArray[np.bool_]) -> ConvertedRows:
        """Return the rows of a mask."""
        if kept.all():
            return self
        values = {name: column.filter(kept) for name, column in self.values.items()}
        return replace(self, positions=self.positions[kept], values=values)

    def reject(self, index: int, reason: str, message: str) -> RejectedRow:
        return reject_row(self.table, int(self.positions[index]), reason, message)


def get_codes(texts: TextColumn) -> Integers:
    return np.asarray(texts.codes, np.int32)


def map_texts(texts: TextColumn, convert: Callable[[str], str | None], name: str) -> pa.Array:
    """Return the column `name` of `results` as the texts fill it, each converted once, perhaps to
    None.
    """
    kind = arrow_schema(RESULTS).field(name).type
    values = pa.array(map(convert, texts.distinct), kind)
    return values.take(get_codes(texts))


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
    """Check whether a text became nothing, or a number that is none."""
    parts = [value]
    if isinstance(value, CellValues):
        parts = [value.figure, *value.values.values()]
    is_nan = [isinstance(part, float) and math.isnan(part) for part in parts]
    return any(is_nan) or all(part is None for part in parts)


def find_errors(
    table: SourceTable, converted: Mapping[int, Sequence[Any]]
) -> dict[int, list[CellError]]:
    """Return the errors of each row that has one, by its position; `converted` is by column."""
    errors: dict[int, list[CellError]] = defaultdict(list)
    for column, cells in converted.items():
        if not any(isinstance(cell, UnreadableCellError) for cell in cells):
            continue
        for position, code in enumerate(table.texts[column].codes):
            if isinstance(cells[code], UnreadableCellError):
                errors[position].append((column, cells[code]))
    return errors


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of a document, and what its rows are converted with."""

    document: Document
    table: SourceTable
    header: TableHeader
    vocabulary: Vocabulary
    marks: Mapping[tuple[str, str], DecimalMark]
    """Decimal mark of a column, by table and printed name, where it is not simply a point."""
    rejected: list[RejectedRow] = field(default_factory=list)
    """The rows that could not be converted; the parts of a table share it."""

    def list_fields(self) -> dict[str, int]:
        """Return the number of the column of each field."""
        return {
            self.header.field_of(name): column for column, name in enumerate(self.table.columns)
        }

    def select(self, positions: Sequence[int]) -> TableSource:
        """Return a part of the table."""
        return replace(self, table=self.table.select(positions))

    def group_rows(self, fields: Iterable[str]) -> dict[tuple[str, ...], TableSource]:
        """Return the parts of the table that have the same texts in some fields, by these texts."""
        columns = self.list_fields()
        texts = [self.table.texts[columns[name]] for name in fields]
        groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for position in range(len(self.table.numbers)):
            key = tuple(column.distinct[column.codes[position]] for column in texts)
            groups[key].append(position)
        return {key: self.select(positions) for key, positions in groups.items()}

    def get_constants(self) -> dict[str, Any]:
        """Return the values of `results` that document and table give to every row."""
        document = self.document
        header = self.header
        return {
            "origin": "measured" if document.kind == SUBMISSION else "published",
            "publisher": document.publisher,
            "document_id": document.document_id,
            "table_name": header.result_table or header.table,
            "published_on": document.published_on,
            "task": header.task,
            "benchmark": header.benchmark,
        }

    def get_mark(self, column: str) -> DecimalMark:
        """Return what divides the decimals of a printed column."""
        return self.marks.get((self.table.name, column), DecimalMark.POINT)

    def convert(
        self,
        constants: Mapping[str, Any],
        columns: Mapping[str, pa.Array] = MappingProxyType({}),
        units: Mapping[str, str] = MappingProxyType({}),
    ) -> ConvertedRows:
        """Convert the rows for `results`.

        `constants` are values that hold for all of them, `columns` those of each. `units` gives the
        unit of a field that neither its header nor the caption prints.
        """
        converters = []
        header = self.header
        for name in self.table.columns:
            field = header.field_of(name)
            check_field(field, header.table)
            unit = units.get(field) or header.units.get(name) or find_printed_unit(self.table, name)
            mark = self.get_mark(name)
            item = header.item_of(name)
            context = CellContext(self.vocabulary, unit, header.strict, header.derived, mark, item)
            converters.append(partial(convert_cell, field, context=context))
        stated = self.state_conditions()
        if stated is not None:
            columns = {**columns, "conditions": stated}
        return self.fill(RESULTS, converters, constants, columns)

    def state_conditions(self) -> pa.Array | None:
        """Return `name = text` of each row's conditions, None if no column has any.

        A printed name of a network is one where the vocabulary has another for it, since it may
        have several.
        """
        table = self.table
        fields = list(map(self.header.field_of, table.columns))
        if CONDITION not in fields:
            return None
        statements: list[list[str]] = [[] for _ in table.numbers]
        for name, kind, texts in zip(table.columns, fields, table.texts, strict=True):
            if kind not in (CONDITION, "model"):
                continue
            for row, code in enumerate(texts.codes):
                text = texts.distinct[code]
                is_condition = kind == CONDITION or self.vocabulary.renames_model(text)
                if text and is_condition:
                    statements[row].append(f"{strip_unit(name)} = {text}")
        return pa.array(["; ".join(stated) or None for stated in statements], pa.string())

    def fill(
        self,
        into: Table,
        converters: Sequence[Callable[[str], CellValues]],
        constants: Mapping[str, Any],
        columns: Mapping[str, pa.Array] = MappingProxyType({}),
        choose: Callable[[Sequence[CellError]], Sequence[CellError]] = list,
    ) -> ConvertedRows:
        """Fill a published table with the rows, each text of a column converted once.

        A row with errors is rejected for those that `choose` returns.
        """
        table = self.table
        converted = list(map(convert_texts, table.texts, converters))
        errors = find_errors(table, dict(enumerate(converted)))
        for row in sorted(errors):
            self.rejected.append(reject_unreadable(table, row, choose(errors[row])))
        every_row = np.arange(len(table.numbers))
        kept = np.delete(every_row, list(errors))
        schema = arrow_schema(into)
        values = {}
        for name, value in constants.items():
            constant = pa.scalar(value, schema.field(name).type)
            values[name] = pa.repeat(constant, len(kept))
        for name, column in columns.items():
            values[name] = column.take(kept)
        for place in self.list_in_order():
            codes = get_codes(table.texts[place])[kept]
            _fill_values(values, into, converted[place], codes)
        return ConvertedRows(table, kept, self.header, converted, values)

    def list_in_order(self) -> list[int]:
        """Return the columns of the table in the order of their fields in the header.

        So a column's own cell overrides what another cell implies, wherever the page has it.
        """
        order = [field for _, field in self.header.fields]
        ranks = [order.index(self.header.field_of(name)) for name in self.table.columns]
        return sorted(range(len(ranks)), key=ranks.__getitem__)


def _fill_values(
    values: dict[str, pa.Array],
    into: Table,
    cells: Sequence[CellValues | UnreadableCellError],
    codes: Integers,
) -> None:
    """Fill the columns of a table that the texts of a column fill, by the code of each text."""
    filled: dict[str, dict[int, Any]] = defaultdict(dict)
    for code, cell in enumerate(cells):
        if isinstance(cell, CellValues):
            for name, value in cell.values.items():
                filled[name][code] = value
    every_code = range(len(cells))
    for name, by_code in filled.items():
        texts = list(map(by_code.get, every_code))
        column = build_array(into, arrow_schema(into).field(name), texts).take(codes)
        if name in values:
            is_filled = pa.array([code in by_code for code in every_code]).take(codes)
            column = pc.if_else(is_filled, column, values[name])
        values[name] = column


def find_printed_unit(table: SourceTable, header: str) -> str | None:
    """Return the unit that a header prints in brackets, else the one in the table's caption."""
    unit = parse_unit(header)
    in_caption = BRACKETED.search(table.caption)
    if unit is None and in_caption is not None:
        return in_caption[1]
    return unit
