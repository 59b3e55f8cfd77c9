"""Read the lines of one MLPerf training log, `:::MLLOG` and a JSON object, as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.mlperf.log import MARK, extract_marked, number_marked, parse_object
from ipu_results.read.document import ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.read.text import decode
from ipu_results.schema.table_headers import TableHeader

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
            cells = tuple(_format_log_cell(fields.get(column)) for column in COLUMNS)
        except (ValueError, RecursionError) as error:
            raw = ((MARK + text).decode("utf-8", "backslashreplace").strip(),)
            problems.append(ReadProblem(NAME, row_number, place, "broken-log-line", str(error), raw))
        else:
            rows.append(SourceRow(row_number, cells, place))
    if not rows and not problems:
        raise UnrecognisedDocumentError("holds no :::MLLOG line")
    tables = (SourceTable(NAME, COLUMNS, tuple(rows), rows[0].locator),) if rows else ()
    return ParsedDocument(tables, tuple(problems))


def _format_log_cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()


OBJECTS = ("environment", "versions", "setup", "plan", "model", "images")
TYPES: dict[str, tuple[Any, str]] = {**dict.fromkeys(OBJECTS, (dict, "an object")), "notes": (list, "an array")}
"""JSON type of each key; all others are strings."""
CONTAINERS_OF_STRINGS = frozenset({"versions", "notes"})
MAX_NAMED_KEYS = 5
SIGNATURE = '"run_id"'


def read_sweep_record(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read one row: strings as they are, objects and arrays as JSON with sorted keys.

    Raises UnrecognisedDocumentError for anything but a JSON object with a run_id, and DamagedDocumentError with the key
    that is missing, unknown, repeated or of another type.
    """
    [header] = headers
    text = decode(data)
    if text.lstrip()[:1] != "{" or SIGNATURE not in text:
        raise UnrecognisedDocumentError("is not the record of a sweep: not a JSON object with a run_id", place="$")
    record = _parse_json(text)
    for problem, keys in (
        ("lacks", [name for name in header.names if name not in record]),
        ("has unknown", [repr(name)[:60] for name in record if name not in header.names]),
    ):
        if keys:
            raise DamagedDocumentError(f"{problem} {', '.join(keys[:MAX_NAMED_KEYS])}", place="$")
    cells = tuple(_format_cell(name, record[name]) for name in header.names)
    row = SourceRow(1, cells, "$", tuple(f"$.{name}" for name in header.names))
    return ParsedDocument((SourceTable(header.table, header.names, (row,), "$"),))


def _parse_json(text: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(text, object_pairs_hook=_make_object, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DamagedDocumentError(f"is not JSON: {error.msg}", place=place) from error
    except (ValueError, RecursionError) as error:
        raise DamagedDocumentError(f"is not JSON: {str(error)[:100]!r}", place="$") from error
    return record


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("an object has a key twice")
    return record


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _format_cell(name: str, value: Any) -> str:
    """Check the type of a value and return it as text."""
    place = f"$.{name}"
    _check_type(name, value, place)
    if isinstance(value, str) and not value.strip():
        raise DamagedDocumentError("is blank", place=place)
    if isinstance(value, str) and "\0" in value:
        raise DamagedDocumentError("has a null character", place=place)
    try:
        text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
        )
        text.encode()
    except (ValueError, RecursionError) as error:
        raise DamagedDocumentError("has a number beyond doubles or a lone surrogate", place=place) from error
    return text


def _check_type(name: str, value: Any, place: str) -> None:
    expected, what = TYPES.get(name, (str, "a string"))
    if not isinstance(value, expected):
        raise DamagedDocumentError(f"is not {what}", place=place)
    if name not in CONTAINERS_OF_STRINGS:
        return
    for key in value if isinstance(value, dict) else range(len(value)):
        if not isinstance(value[key], str):
            raise DamagedDocumentError("is not a string", place=f"{place}[{repr(key)[:60]}]")
