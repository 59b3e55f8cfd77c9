"""The record of a local sweep, one JSON object, as a table of one row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.reading import ParsedDocument, SourceRow, SourceTable
from ipu_results.read.text import decode
from ipu_results.schema.layouts import TableHeader

OBJECTS = ("environment", "versions", "setup", "plan", "model", "images")
KINDS: dict[str, tuple[type, str]] = {**dict.fromkeys(OBJECTS, (dict, "object")), "notes": (list, "list")}
OF_TEXTS = frozenset({"versions", "notes"})
MAX_NAMED = 5
SIGN = '"run_id"'


def read_sweep_record(data: bytes, layouts: Sequence[TableHeader]) -> ParsedDocument:
    """One row: texts as they are, objects and the list of notes as JSON with sorted keys.

    Raises UnrecognisedDocumentError for what is no JSON object with a run_id, DamagedDocumentError naming the key that is
    missing, unknown, repeated or of another type.
    """
    [layout] = layouts
    text = decode(data)
    if text.lstrip()[:1] != "{" or SIGN not in text:
        raise UnrecognisedDocumentError("is no record of a sweep: no JSON object with a run_id", place="$")
    record = _parsed(text)
    _assert_keys(record, layout.names)
    cells = tuple(_cell(name, record[name]) for name in layout.names)
    row = SourceRow(1, cells, "$", tuple(f"$.{name}" for name in layout.names))
    return ParsedDocument((SourceTable(layout.table, layout.names, (row,), "$"),))


def _parsed(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_refused)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DamagedDocumentError(f"is not JSON: {error.msg}", place=place) from error
    except (ValueError, RecursionError) as error:
        raise DamagedDocumentError(f"is not JSON: {str(error)[:100]!r}", place="$") from error
    if not isinstance(record, dict):
        raise DamagedDocumentError("is no JSON object", place="$")
    return record


def _unrepeated(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands in one object twice")
    return record


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _assert_keys(record: dict[str, Any], names: Sequence[str]) -> None:
    missing = [name for name in names if name not in record]
    unknown = [repr(name)[:60] for name in record if name not in names]
    for what, keys in (("lacks", missing), ("has unknown", unknown)):
        if keys:
            raise DamagedDocumentError(f"{what} {', '.join(keys[:MAX_NAMED])}", place="$")


def _cell(name: str, value: Any) -> str:
    place = f"$.{name}"
    wanted, what = KINDS.get(name, (str, "text"))
    if not isinstance(value, wanted):
        raise DamagedDocumentError(f"is no {what}", place=place)
    if name in OF_TEXTS:
        _assert_texts(value, place)
    if isinstance(value, str) and not value.strip():
        raise DamagedDocumentError("is blank", place=place)
    if isinstance(value, str) and "\0" in value:
        raise DamagedDocumentError("holds a null character", place=place)
    return _told(value, place)


def _assert_texts(value: Any, place: str) -> None:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if not isinstance(inner, str):
            raise DamagedDocumentError("is no text", place=f"{place}[{repr(key)[:60]}]")


def _told(value: Any, place: str) -> str:
    """The value as text; what UTF-8 cannot hold, or a number beyond doubles, is damage."""
    try:
        text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
        )
        text.encode()
    except (ValueError, RecursionError) as error:
        raise DamagedDocumentError("holds a number or a character that cannot be written", place=place) from error
    return text
