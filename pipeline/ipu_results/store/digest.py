"""Digest the rows of a table: the same for the same rows in any order and in any file format."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

NULL = "-"
SEPARATOR = ":"


def digest_rows(table: pa.Table) -> str:
    """Return the sha256 over the column names and the rows as text, sorted bytewise.

    A value is written as its length in bytes, a colon and its text, and a null as a hyphen, so that two different rows
    never read alike.
    """
    digest = hashlib.sha256("".join(f"{len(name)}{SEPARATOR}{name}" for name in table.column_names).encode())
    if table.num_rows:
        first, *rest = table.columns
        fields = [
            _prefix(first),
            *(_text(NULL) if column.null_count == len(column) else _prefix(column) for column in rest),
        ]
        rows = pc.cast(pc.binary_join_element_wise(*fields, _text("")), pa.large_binary()).combine_chunks()
        ordered = pc.take(rows, pc.array_sort_indices(rows))
        length = pc.sum(pc.binary_length(ordered)).as_py()
        digest.update(memoryview(ordered.buffers()[2])[:length])
    return digest.hexdigest()


def _prefix(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = pc.cast(column, pa.large_string())
    lengths = pc.cast(pc.binary_length(texts), pa.large_string())
    return pc.fill_null(pc.binary_join_element_wise(lengths, texts, _text(SEPARATOR)), NULL)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
