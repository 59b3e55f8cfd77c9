"""A table of our own transcription in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.assemble import Assembler, RawRow
from ipu_results.read.reading import ParsedDocument
from ipu_results.read.text import clean, decode
from ipu_results.schema.layouts import TableHeader, explain_mismatch, find_headers


def read_csv(data: bytes, layouts: Sequence[TableHeader]) -> ParsedDocument:
    """The one table of a CSV file, its header on the first line.

    Raises DamagedDocumentError where the file does not end with a line break: it was cut off.
    """
    text = decode(data)
    header = _header(text.split("\n", 1)[0])
    if not find_headers(header, layouts) and not explain_mismatch(header, layouts):
        raise UnrecognisedDocumentError("has no known header", place="line 1")
    if not text.endswith("\n"):
        raise DamagedDocumentError("does not end with a line break: truncated", place="last line")
    assembler = Assembler(layouts)
    assembler.add("line 1", _rows(text))
    return assembler.reading()


def _header(line: str) -> list[str]:
    try:
        return [clean(cell) for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _rows(text: str) -> Iterator[tuple[str, RawRow]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            yield f"line {reader.line_num}", RawRow(tuple(map(clean, cells)))
    except csv.Error as error:
        raise DamagedDocumentError(f"is not CSV: {error}", place=f"line {reader.line_num}") from error
