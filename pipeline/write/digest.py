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
        field, record, nothing = (pa.scalar(text, pa.large_string()) for text in (FIELD, RECORD, ""))
        texts = [pc.cast(column, pa.large_string()) for column in table.columns]
        rows = pc.binary_join_element_wise(*texts, field, null_handling="replace", null_replacement=NULL)
        rows = pc.cast(pc.binary_join_element_wise(rows, record, nothing), pa.large_binary()).combine_chunks()
        ordered = pc.take(rows, pc.array_sort_indices(rows))
        length = pc.sum(pc.binary_length(ordered)).as_py()
        digest.update(memoryview(ordered.buffers()[2])[:length])
    return digest.hexdigest()
