"""The lines of one MLPerf training log, `:::MLLOG` and a JSON object, as a table."""

from __future__ import annotations

import json
from typing import Any

from pipeline.errors import DocumentDamaged, DocumentUnrecognised
from pipeline.read.reading import Problem, Reading, Row, Table

MARK = b":::MLLOG"
COLUMNS = ("time_ms", "namespace", "event_type", "key", "value", "metadata")
NAME = "mlperf_log"


def read_mlperf_log(data: bytes) -> Reading:
    """One row per log line; text before the mark (a rank, a progress bar) is not part of it.

    A line whose JSON is broken is a Problem. Raises DocumentUnrecognised where no line has the mark, DocumentDamaged
    for an empty file.
    """
    if not data.strip():
        raise DocumentDamaged("is empty")
    rows: list[Row] = []
    problems: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if MARK not in line:
            continue
        place = f"line {number}"
        row_number = len(rows) + len(problems) + 1
        try:
            entry = parse_line(line)
        except ValueError as error:
            raw = (line.decode("utf-8", "backslashreplace").strip(),)
            problems.append(Problem(NAME, row_number, place, "broken-log-line", str(error), raw))
        else:
            rows.append(Row(row_number, tuple(_text(entry.get(column)) for column in COLUMNS), place))
    if not rows and not problems:
        raise DocumentUnrecognised("holds no :::MLLOG line")
    tables = (Table(NAME, COLUMNS, tuple(rows), rows[0].locator),) if rows else ()
    return Reading(tables, tuple(problems))


def parse_line(line: bytes) -> dict[str, Any]:
    """The JSON object behind the last mark of a line. Raises ValueError naming what is wrong."""
    _, _, told = line.rpartition(MARK)
    try:
        entry = json.loads(told.strip())
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise ValueError("is not a JSON object")
    return entry


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
