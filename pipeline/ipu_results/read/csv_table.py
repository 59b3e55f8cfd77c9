"""Read a CSV file column by column: for tables of many rows that are published as they are and make no results."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.align import Assembler, RawRow
from ipu_results.read.document import ColumnTable, ParsedDocument
from ipu_results.read.text import clean, decode
from ipu_results.schema import table
from ipu_results.schema.frames import arrow_schema
from ipu_results.schema.table_headers import TableHeader, explain_mismatch, find_headers

BOOLEANS = {"True": True, "False": False}


def read_csv_columns(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read the rows of a published table, each on a line of its own, with the types of its columns.

    A blank cell is null. Raises UnrecognisedDocumentError for another header, DamagedDocumentError for a row of another
    width or a cell of another type, since such a file is not read in part.
    """
    columns = data.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r").split(",")
    matched = find_headers(columns, headers)
    if not matched:
        raise UnrecognisedDocumentError(explain_mismatch(columns, headers) or "has no known header", place="line 1")
    if not data.endswith(b"\n"):
        raise DamagedDocumentError("does not end with a line break: truncated", place="last line")
    name = matched[0].table
    types = {column: arrow_schema(table(name)).field(column).type for column in columns}
    options = pa_csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        true_values=["True"],
        false_values=["False"],
        strings_can_be_null=True,
    )
    try:
        rows = pa_csv.read_csv(io.BytesIO(data), convert_options=options)
        is_finite = all(
            pc.all(pc.is_finite(rows[column]), min_count=0).as_py()
            for column, type_ in types.items()
            if pa.types.is_floating(type_)
        )
    except pa.ArrowInvalid as error:
        raise _locate_damage(data, types) or DamagedDocumentError(f"is not CSV: {error}") from error
    if not is_finite or rows.num_rows != data.count(b"\n") - 1:
        raise _locate_damage(data, types) or DamagedDocumentError("has a cell of several lines, or an empty line")
    return ParsedDocument((), columnar=(ColumnTable(name, rows.combine_chunks()),))


def _locate_damage(data: bytes, types: dict[str, pa.DataType]) -> DamagedDocumentError | None:
    """Find the first row or cell that cannot be read."""
    reader = csv.reader(io.StringIO(decode(data), newline=""), strict=True)
    try:
        next(reader)
        for cells in reader:
            place = f"line {reader.line_num}"
            if len(cells) != len(types):
                return DamagedDocumentError(f"{len(cells)} cells under a header of {len(types)}", place=place)
            for number, (text, (column, type_)) in enumerate(zip(cells, types.items(), strict=True), start=1):
                if text and not _is_of_type(text, type_):
                    message = f"{text[:80]!r} is not of type {type_}"
                    return DamagedDocumentError(message, place=f"{place}, column {number} ({column})")
    except csv.Error as error:
        return DamagedDocumentError(f"is not CSV: {error}", place=f"line {reader.line_num}")
    return None


def _is_of_type(text: str, type_: pa.DataType) -> bool:
    if pa.types.is_boolean(type_):
        return text in BOOLEANS
    try:
        value = pa.scalar(text).cast(type_).as_py()
    except pa.ArrowInvalid:
        return False
    return not isinstance(value, float) or abs(value) < float("inf")


def read_csv(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read the table of a CSV file whose first line is one of `headers`.

    Raises UnrecognisedDocumentError if the first line resembles none of them, and DamagedDocumentError for text that is
    not CSV or that does not end with a line break, because such a file was cut off.
    """
    text = decode(data)
    columns = parse_line(text.split("\n", 1)[0])
    if not find_headers(columns, headers) and not explain_mismatch(columns, headers):
        raise UnrecognisedDocumentError("has no known header", place="line 1")
    if not text.endswith("\n"):
        raise DamagedDocumentError("does not end with a line break: truncated", place="last line")
    assembler = Assembler(headers)
    assembler.add_grid("line 1", _iter_rows(text))
    return assembler.finish()


def parse_line(line: str) -> list[str]:
    try:
        return [clean(cell) for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _iter_rows(text: str) -> Iterator[tuple[str, RawRow]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            yield f"line {reader.line_num}", RawRow(tuple(map(clean, cells)))
    except csv.Error as error:
        raise DamagedDocumentError(f"is not CSV: {error}", place=f"line {reader.line_num}") from error
