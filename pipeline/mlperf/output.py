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
    columns = list(records[0])
    if kind == "table" and set(TABLE_COLUMNS) <= set(columns):
        columns = list(TABLE_COLUMNS)
    return f"{records_as(kind, columns, ([record[name] for name in columns] for record in records))}\n".encode()


def _parquet(records: Sequence[Record]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  (a worker must not load it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    out = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(records)), out, compression="zstd")
    return out.getvalue()


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step. Raises IpuResultsError naming it."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise IpuResultsError(f"cannot be written: {error.strerror}", place=str(path)) from error
