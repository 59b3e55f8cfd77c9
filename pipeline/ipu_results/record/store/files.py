"""The names of the warehouse's files, and the digest of a table in any order and format."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NULL = "-"
SEPARATOR = ":"
MAX_ROWS = 2**12  # joined at once: larger pieces take new memory from the system each time


def digest_rows(table: pa.Table) -> str:
    """Return the sha256 over the column names and the rows as text, sorted bytewise.

    A value is written as its length in bytes, a colon and its text, and a null as a hyphen, so that
    two different rows never read alike.
    """
    header = [f"{len(name)}{SEPARATOR}{name}" for name in table.column_names]
    digest = hashlib.sha256("".join(header).encode())
    if table.num_rows:
        table, cuts = _sort_by_first(table)
        for piece in join_fields(table, _prefix, "", NULL, cuts):
            rows = pc.cast(piece, pa.large_binary())
            ordered = pc.take(rows, pc.array_sort_indices(rows))
            # all texts one after another, in a buffer that may be longer
            _, _, texts = ordered.buffers()
            length = pc.sum(pc.binary_length(ordered)).as_py()
            digest.update(memoryview(texts)[:length])
    return digest.hexdigest()


def _sort_by_first(table: pa.Table) -> tuple[pa.Table, list[int]]:
    """Sort rows by their first value as text, and return where to cut them into pieces that share
    none of its values.

    No such text begins with another one, so that each piece can then be sorted by itself, in little
    memory.
    """
    texts = pa.concat_arrays(join_fields(table.select([0]), _prefix, "", NULL))
    order = pc.array_sort_indices(texts)
    is_sorted = pc.all(pc.less_equal(order[:-1], order[1:])).as_py()
    if not is_sorted:
        table = table.take(order)
        texts = texts.take(order)
    # a piece ends where a value does: at the first such place from each MAX_ROWS rows on
    is_last_of_value = pc.not_equal(texts[:-1], texts[1:])
    ends = np.append(np.flatnonzero(is_last_of_value) + 1, len(texts))
    wanted = np.arange(MAX_ROWS, len(texts), MAX_ROWS)
    cuts = ends[np.searchsorted(ends, wanted)]
    return table, sorted({0, *cuts.tolist(), len(texts)})


def _prefix(values: pa.Array) -> pa.Array:
    texts = pc.cast(values, pa.large_string())
    lengths = pc.cast(pc.binary_length(texts), pa.large_string())
    return pc.binary_join_element_wise(lengths, texts, pa.scalar(SEPARATOR, pa.large_string()))


def join_fields(
    table: pa.Table,
    function: Callable[[pa.Array], pa.Array],
    separator: str,
    null: str,
    cuts: Sequence[int] = (),
) -> Iterator[pa.Array]:
    """Yield MAX_ROWS rows at a time, or those between two of `cuts`, each as one text.

    It joins what `function` makes of the values of the row, and `null` for a null.

    A value that is in many rows is formatted once.
    """
    if not table.num_rows:
        return
    columns = [_format_column(column, function) for column in table.columns]
    if not cuts:
        cuts = [*range(0, table.num_rows, MAX_ROWS), table.num_rows]
    for start, stop in pairwise(cuts):
        cells = [get_cells(start, stop) for get_cells in columns]
        between = pa.scalar(separator, cells[0].type)
        yield pc.binary_join_element_wise(
            *cells, between, null_handling="replace", null_replacement=null
        )


def _format_column(
    column: pa.ChunkedArray, function: Callable[[pa.Array], pa.Array]
) -> Callable[[int, int], pa.Array]:
    """Return a function from the first position and the one after the last to what `function` makes
    of the values.
    """
    if not pa.types.is_dictionary(column.type):
        sample = column[:MAX_ROWS]
        if 2 * len(sample.unique()) > len(sample):
            return lambda start, stop: function(pa.concat_arrays(column[start:stop].chunks))
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries()
    codes = pa.concat_arrays([chunk.indices for chunk in encoded.chunks])
    texts = function(encoded.chunk(0).dictionary)
    return lambda start, stop: texts.take(codes[start:stop])


DATABASE = "ipu_results.duckdb"
BUILD_ID = "build_id"  # key in the metadata of each Parquet file
LOCK = ".lock"
STAGING = ".staging"
COMMIT = "commit.json"


def get_parquet_name(sql_name: str) -> str:
    """Return the path of a table's Parquet file within a warehouse or release.

    `results` is in `results.parquet`, and `detail.facts` in `detail/facts.parquet`.
    """
    return f"{sql_name.replace('.', '/')}.parquet"


def get_csv_name(sql_name: str) -> str:
    """Return the path of a table's CSV file within a release."""
    return f"{sql_name.replace('.', '/')}.csv"


MARK = b"crc32"
"""Before the checksum of a Parquet file's other bytes.

Pages have one of their own, headers and footer have none.
"""
CHECKSUM_BYTES = 4
LENGTH_AND_MAGIC = 8  # bytes at the end of a Parquet file
PIECE_BYTES = 2**24  # read at once for a checksum


def add_checksum(path: Path) -> None:
    """Put the mark and a checksum before the footer, where readers of Parquet look for nothing."""
    checksum = 0
    with path.open("r+b") as file:
        while piece := file.read(PIECE_BYTES):
            checksum = zlib.crc32(piece, checksum)
        file.seek(-LENGTH_AND_MAGIC, os.SEEK_END)
        footer = LENGTH_AND_MAGIC + int.from_bytes(file.read(4), "little")
        start = file.seek(-footer, os.SEEK_END)
        data = file.read()
        file.seek(start)
        file.write(MARK + checksum.to_bytes(CHECKSUM_BYTES) + data)


def is_damaged(data: bytes) -> bool:
    """Return whether a Parquet file contradicts its checksum; one that other programs wrote has
    none.
    """
    footer = len(data) - LENGTH_AND_MAGIC - int.from_bytes(data[-8:-4], "little")
    start = footer - len(MARK) - CHECKSUM_BYTES
    checksum = zlib.crc32(data[footer:], zlib.crc32(data[:start]))
    found = data[start:footer]
    return found.startswith(MARK) and found != MARK + checksum.to_bytes(CHECKSUM_BYTES)


def is_pending(target: Path) -> bool:
    """Return whether a process died here between its commit and its last rename."""
    return os.path.lexists(target / STAGING / COMMIT)
