"""The digest of a table's rows: the same for the same rows in any order and in any file format."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

FIELD, NULL, RECORD = "\x1f", "\x00", "\x1e"


def rows_digest(table: pa.Table) -> str:
    """sha256 over the table's column names and its rows as text, sorted bytewise."""
    digest = hashlib.sha256(FIELD.join(table.column_names).encode())
    if table.num_rows:
        texts = [pc.cast(column, pa.large_string()) for column in table.columns]
        separator = pa.scalar(FIELD, pa.large_string())
        rows = pc.binary_join_element_wise(*texts, separator, null_handling="replace", null_replacement=NULL)
        rows = pc.cast(rows, pa.large_binary())
        ordered = pc.take(rows, pc.array_sort_indices(rows.combine_chunks()))
        for chunk in ordered.chunks if isinstance(ordered, pa.ChunkedArray) else [ordered]:
            for row in chunk:
                digest.update(row.as_py())
                digest.update(RECORD.encode())
    return digest.hexdigest()
