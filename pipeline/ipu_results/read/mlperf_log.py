"""Read the lines of one MLPerf training log, `:::MLLOG` and a JSON object, as a table."""

from __future__ import annotations

import json
from typing import Any

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.mlperf.log import MARK, extract_marked, number_marked, parse_object
from ipu_results.read.document import ParsedDocument, ReadProblem, SourceRow, SourceTable

__all__ = ["COLUMNS", "MARK", "read_mlperf_log"]

COLUMNS = ("time_ms", "namespace", "event_type", "key", "value", "metadata")
NAME = "mlperf_log"


def read_mlperf_log(data: bytes) -> ParsedDocument:
    """Return one row per log line; text before the mark (a rank, a progress bar) is not part of it.

    A line with broken JSON is a ReadProblem. Raises UnrecognisedDocumentError where no line has the mark,
    DamagedDocumentError for an empty file.
    """
    if not data.strip():
        raise DamagedDocumentError("is empty")
    rows: list[SourceRow] = []
    problems: list[ReadProblem] = []
    block = data + b"\n"
    for row_number, (line, text) in enumerate(
        zip(number_marked(block, 1), extract_marked(block), strict=True), start=1
    ):
        place = f"line {line}"
        try:
            fields = parse_object(text)
            cells = tuple(_format_cell(fields.get(column)) for column in COLUMNS)
        except (ValueError, RecursionError) as error:
            raw = ((MARK + text).decode("utf-8", "backslashreplace").strip(),)
            problems.append(ReadProblem(NAME, row_number, place, "broken-log-line", str(error), raw))
        else:
            rows.append(SourceRow(row_number, cells, place))
    if not rows and not problems:
        raise UnrecognisedDocumentError("holds no :::MLLOG line")
    tables = (SourceTable(NAME, COLUMNS, tuple(rows), rows[0].locator),) if rows else ()
    return ParsedDocument(tables, tuple(problems))


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()
