"""Scores as a table, CSV, JSON or Parquet, on stdout or in a file that is whole or not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO

from ipu_results._util.text import format_records
from ipu_results.mlperf.layout import printable
from ipu_results.mlperf.records import CITE, COLUMNS, CONTRACT, Record

FORMATS = ("table", "csv", "json", "parquet")


def as_bytes(kind: str, name: str, records: Sequence[Record]) -> bytes:
    """The records of the table `name` in one of FORMATS; for the eye, the columns of the contract and how to cite."""
    if kind == "parquet":
        return _parquet(name, records)
    columns, cite = COLUMNS[name], ""
    if kind == "table":
        columns = tuple(column for column in columns if name != "mlperf_entries" or column in CONTRACT)
        records, cite = [_with_texts(record, printable) for record in records], f"\n{CITE}"
    told = format_records(kind, columns, ([record[column] for column in columns] for record in records))
    return f"{told}{cite}\n".encode(errors="backslashreplace")


def _parquet(name: str, records: Sequence[Record]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  (a worker must not load it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    from ipu_results.schema import arrow_schema, table  # noqa: PLC0415

    types = arrow_schema(table(name))
    fields = [types.field(column).with_nullable(True) for column in COLUMNS[name]]
    out = BytesIO()
    told = pa.Table.from_pylist([_with_texts(record, _utf8) for record in records], schema=pa.schema(fields))
    pq.write_table(told, out, compression="zstd")
    return out.getvalue()


def _utf8(text: str) -> str:
    """Names of files and texts of logs may hold what UTF-8 cannot."""
    return text.encode(errors="backslashreplace").decode()


def _with_texts(record: Record, told: Callable[[str], str]) -> Record:
    return {name: told(value) if isinstance(value, str) else value for name, value in record.items()}
