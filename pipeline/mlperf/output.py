"""Scores as a table, CSV, JSON or Parquet, on stdout or in a file that is whole or not there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from uuid import uuid4

from pipeline.errors import IpuResultsError
from pipeline.mlperf.records import TABLE_COLUMNS, Record
from pipeline.present import records_as

FORMATS = ("table", "csv", "json", "parquet")


def as_bytes(kind: str, records: Sequence[Record]) -> bytes:
    """The records in one of FORMATS; a table for the eye leaves out the columns that no line has room for."""
    if kind == "parquet":
        return _parquet(records)
    columns = list(records[0]) if records else []
    if kind == "table" and set(TABLE_COLUMNS) <= set(columns):
        columns = list(TABLE_COLUMNS)
    told = records_as(kind, columns, ([record[name] for name in columns] for record in records))
    return f"{told}\n".encode(errors="backslashreplace")


def _parquet(records: Sequence[Record]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  (a worker must not load it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    out = BytesIO()
    pq.write_table(pa.Table.from_pylist([_utf8(record) for record in records]), out, compression="zstd")
    return out.getvalue()


def _utf8(record: Record) -> Record:
    """Names of files and texts of logs may hold what UTF-8 cannot."""
    return {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in record.items()
    }


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step; a device or pipe is written to. Raises IpuResultsError naming it."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise IpuResultsError(f"cannot be written: {error.strerror}", place=str(path)) from error


def _replace(target: Path, data: bytes) -> None:
    draft = target.with_name(f".{uuid4().hex}.part")
    try:
        draft.write_bytes(data)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
