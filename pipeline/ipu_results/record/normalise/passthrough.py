"""Type the rows of documents that have a table of their own: a cell whose header is one of its
columns fills that column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import pyarrow as pa

from ipu_results.errors import DamagedDocumentError
from ipu_results.record.normalise.rows import convert_texts, find_errors, get_codes
from ipu_results.record.normalise.values import UnreadableCellError, parse_double
from ipu_results.record.read.document import ParsedDocument, SourceTable
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema import Kind, Table
from ipu_results.schema import table as published_table
from ipu_results.schema.frames import arrow_schema, build_array
from ipu_results.schema.vocabulary import KINDS, normalise_header

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
        (column.name, column.type)
        for column in arrow_schema(published_table(name))
        if column.name not in PLACE.names
    ]
    return pa.schema(columns + list(PLACE))


def type_passthrough_rows(document: Document, parsed: ParsedDocument) -> pa.Table:
    """Return the rows of a document with a table of its own, typed and with their places.

    Raises DamagedDocumentError for a text that is not of its column's type, naming the cell.
    """
    name = KINDS[document.reader].table
    if name is None:
        return NO_ROWS
    parts = []
    for read in parsed.tables:
        columns = _type_columns(document, read, published_table(name))
        parts.append(columns | place_rows(read.name, read.numbers, read.locators))
    for columnar in parsed.columnar:
        numbers = range(1, len(columnar.rows) + 1)
        columns = dict(zip(columnar.rows.column_names, columnar.rows.columns, strict=True))
        locators = map(columnar.locator, numbers)
        parts.append(columns | place_rows(columnar.name, numbers, locators))
    schema = passthrough_schema(name)
    tables = [schema.empty_table()]
    for part in parts:
        count = len(part["locator"])
        columns = {**part, "document_id": pa.repeat(document.document_id, count)}
        filled = [columns.get(column.name, pa.nulls(count, column.type)) for column in schema]
        tables.append(pa.table(filled, schema=schema))
    return pa.concat_tables(tables)


def place_rows(name: str, numbers: Sequence[int], locators: Iterable[str]) -> dict[str, pa.Array]:
    """Return the columns of PLACE."""
    return {
        "table_name": pa.repeat(name, len(numbers)),
        "row_number": pa.array(numbers, pa.int64()),
        "locator": pa.array(locators, pa.string()),
    }


def _type_columns(document: Document, read: SourceTable, published: Table) -> dict[str, pa.Array]:
    """Return the columns of the published table that a printed one fills."""
    columns = {
        normalise_header(column.header or column.name): column for column in published.columns
    }
    found = {}
    cells = {}
    for position, header in enumerate(read.columns):
        column = columns.get(normalise_header(header))
        if column is not None:
            found[position] = column
            cells[position] = convert_texts(read.texts[position], partial(parse_text, column.kind))
    errors = find_errors(read, cells)
    if errors:
        first_row = min(errors)
        position, error = errors[first_row][0]
        place = read.cell_locator(read.row(first_row), position)
        message = str(error)
        raise DamagedDocumentError(message, document=document.document_id, place=place) from error
    schema = arrow_schema(published)
    values = {}
    for position, column in found.items():
        typed = build_array(published, schema.field(column.name), cells[position])
        values[column.name] = typed.take(get_codes(read.texts[position]))
    return values


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
    if not MOMENT.fullmatch(text):
        raise ValueError(text)
    return datetime.fromisoformat(text.removesuffix("Z"))


PARSERS: dict[Kind, Callable[[str], Any]] = {
    "text": str,
    "integer": _parse_integer,
    "double": parse_double,
    "boolean": BOOLEANS.__getitem__,
    "timestamp": _parse_moment,
}
