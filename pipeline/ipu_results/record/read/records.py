"""Read files that have one record a line, or are one: CSV files, MLPerf training logs and the
records of sweeps.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from functools import cache
from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.kit.sql import get_first_line
from ipu_results.kit.text import collect_unique, refuse_constant
from ipu_results.mlperf.log import MARK, extract_marked, number_marked, parse_object
from ipu_results.record.read.assemble import Assembler, PlacedRow, RawRow
from ipu_results.record.read.document import (
    ColumnTable,
    Headers,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
)
from ipu_results.record.read.text import clean, decode
from ipu_results.schema import table
from ipu_results.schema.frames import arrow_schema
from ipu_results.schema.vocabulary import explain_mismatch, find_headers

COLUMNS = ("time_ms", "namespace", "event_type", "key", "value", "metadata")
NAME = "mlperf_log"

# neither blank nor with a NUL
Text = Annotated[str, msgspec.Meta(pattern=r"^[^\0]*[^\0\s][^\0]*$")]
JsonObject = dict[str, object]
# JSON type of each key; all others are texts.
TYPES: dict[str, object] = {
    "environment": JsonObject,
    "setup": JsonObject,
    "plan": JsonObject,
    "model": JsonObject,
    "images": JsonObject,
    "versions": dict[str, str],
    "notes": list[str],
}
SIGNATURE = '"run_id"'
MAX_MESSAGE = 200  # characters of what a library says


def read_csv_columns(data: bytes, headers: Headers) -> ParsedDocument:
    """Read the rows of a published table, each on a line of its own, with the types of its columns.

    A blank cell is null. Raises UnrecognisedDocumentError for another header, DamagedDocumentError
    for a row of another width or a cell of another type, since such a file is not read in part.
    """
    columns = parse_line(data.split(b"\n", 1)[0].decode("utf-8", "replace"))
    matched = find_headers(columns, headers)
    if not matched:
        raise UnrecognisedDocumentError(
            explain_mismatch(columns, headers) or "has no known header", place="line 1"
        )
    if not data.endswith(b"\n"):
        raise DamagedDocumentError("does not end with a line break: truncated", place="last line")
    name = matched[0].table
    schema = arrow_schema(table(name))
    types = {column: schema.field(column).type for column in columns}
    # Arrow's defaults would also make null of "NA" and "null", and true of "1".
    options = pa_csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        true_values=["True"],
        false_values=["False"],
        strings_can_be_null=True,
    )
    one_by_one = pa_csv.ReadOptions(use_threads=False)  # so that an error names the line
    try:
        rows = pa_csv.read_csv(io.BytesIO(data), one_by_one, convert_options=options)
    except pa.ArrowInvalid as error:
        raise DamagedDocumentError(f"is not CSV: {error}") from error
    # a locator is a line, so each row has one of its own
    if rows.num_rows != data.count(b"\n") - 1:
        raise DamagedDocumentError("has a cell of several lines, or an empty line")
    for column, type_ in types.items():
        if pa.types.is_floating(type_):
            row = pc.index(pc.is_finite(rows[column]), False).as_py()
            if row >= 0:
                place = f"line {row + 2}, column {column}"  # under the header
                raise DamagedDocumentError("is not finite", place=place)
    return ParsedDocument((), columnar=(ColumnTable(name, rows.combine_chunks()),))


def read_csv(data: bytes, headers: Headers) -> ParsedDocument:
    """Read the table of a CSV file whose first line is one of `headers`.

    Raises UnrecognisedDocumentError if the first line resembles none of them, and
    DamagedDocumentError for text that is not CSV, or whose last row is neither whole nor ended by a
    line break, because such a file was cut off.
    """
    text = decode(data)
    columns = parse_line(text.split("\n", 1)[0])
    matched = find_headers(columns, headers)
    if not matched and not explain_mismatch(columns, headers):
        raise UnrecognisedDocumentError("has no known header", place="line 1")
    rows = list(_list_rows(text))
    last_place, last_row = rows[-1]
    if not text.endswith("\n") and len(last_row.texts) != len(columns):
        raise DamagedDocumentError("has half a last row: truncated", place=last_place)
    assembler = Assembler(headers)
    assembler.add_grid("line 1", rows)
    return assembler.finish()


def _list_rows(text: str) -> Iterator[PlacedRow]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    clean_once = cache(clean)  # most texts are in many rows
    try:
        for cells in reader:
            yield f"line {reader.line_num}", RawRow(tuple(map(clean_once, cells)))
    except csv.Error as error:
        place = f"line {reader.line_num}"
        raise DamagedDocumentError(f"is not CSV: {error}", place=place) from error


def parse_line(line: str) -> list[str]:
    try:
        return [clean(cell) for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def read_mlperf_log(data: bytes) -> ParsedDocument:
    """Return one row per log line; text before the mark (a rank, a progress bar) is not part of it.

    A line with broken JSON is a ReadProblem. Raises UnrecognisedDocumentError where no line has the
    mark, DamagedDocumentError for an empty file.
    """
    if not data.strip():
        raise DamagedDocumentError("is empty")
    rows: list[SourceRow] = []
    problems: list[ReadProblem] = []
    block = data + b"\n"
    # of each line with the mark, its number and what follows the mark
    marked = zip(number_marked(block, 1), extract_marked(block), strict=True)
    for number, (line, text) in enumerate(marked, start=1):
        place = f"line {line}"
        try:
            fields = parse_object(text)
            cells = tuple(_format_log_cell(fields.get(column)) for column in COLUMNS)
            rows.append(SourceRow(number, cells, place))
        except (ValueError, RecursionError) as error:
            raw = (MARK + text).decode("utf-8", "backslashreplace").strip()
            reason = "broken-log-line"
            problems.append(ReadProblem(NAME, number, place, reason, str(error), (raw,)))
    if not rows and not problems:
        raise UnrecognisedDocumentError("holds no :::MLLOG line")
    tables = []
    if rows:
        tables.append(SourceTable.from_rows(NAME, COLUMNS, rows, rows[0].locator))
    return ParsedDocument(tuple(tables), tuple(problems))


def _format_log_cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()


def read_sweep_record(data: bytes, headers: Headers) -> ParsedDocument:
    """Read one row: strings as they are, objects and arrays as JSON with sorted keys.

    Raises UnrecognisedDocumentError for anything but a JSON object with a run_id, and
    DamagedDocumentError with a key that is missing, unknown, repeated or of another type.
    """
    [header] = headers
    text = decode(data)
    if text.lstrip()[:1] != "{" or SIGNATURE not in text:
        raise UnrecognisedDocumentError(
            "is not the record of a sweep: not a JSON object with a run_id", place="$"
        )
    types = [(name, TYPES.get(name, Text)) for name in header.names]
    expected = msgspec.defstruct("Record", types, forbid_unknown_fields=True)
    try:
        record = json.loads(text, object_pairs_hook=collect_unique, parse_constant=refuse_constant)
        msgspec.convert(record, expected)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        message = get_first_line(error)[:MAX_MESSAGE]
        raise DamagedDocumentError(f"is not a whole record: {message}", place="$") from error
    cells = tuple(_format_cell(name, record[name]) for name in header.names)
    row = SourceRow(1, cells, "$", tuple(f"$.{name}" for name in header.names))
    return ParsedDocument((SourceTable.from_rows(header.table, header.names, (row,), "$"),))


def _format_cell(name: str, value: object) -> str:
    try:
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
        value.encode()
    except (ValueError, RecursionError) as error:
        raise DamagedDocumentError(
            "has a number beyond doubles or a lone surrogate", place=f"$.{name}"
        ) from error
    return str(value)
