"""Read a table from CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.assemble import Assembler, RawRow
from ipu_results.read.document import ParsedDocument
from ipu_results.read.text import clean, decode
from ipu_results.schema.table_headers import TableHeader, explain_mismatch, find_headers


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
