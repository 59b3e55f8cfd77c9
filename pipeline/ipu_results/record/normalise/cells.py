"""Build `cells`: each cell of the rows that make a result, with its text, its figure and its place.

It has ten times as many rows as `results`, so it is built by column, each distinct text once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.record.normalise.fields import CellValues, get_column
from ipu_results.record.normalise.rows import ConvertedRows
from ipu_results.record.read.document import SourceTable
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema.frames import Integers, decode_schema, encode_texts, join_encoded

PLACE_FIELD = "place"  # the field of a row that locates it in the source
TEXT = pa.dictionary(pa.int32(), pa.string())
ENTRY = pa.schema(
    [
        ("column_name", pa.string()),
        ("header", pa.string()),
        ("raw_text", pa.string()),
        ("value", pa.float64()),
        ("unit", pa.string()),
        ("factor", pa.float64()),
    ]
)
"""What a text says in a column of a document; many cells share it."""
STAGED = pa.schema(
    [
        ("result_id", TEXT),
        ("cell_number", pa.int64()),
        *((field.name, TEXT if field.type == pa.string() else field.type) for field in ENTRY),
        ("document_id", TEXT),
        ("locator", pa.string()),
        ("source_locator", TEXT),
        ("table_name", TEXT),
        ("row_number", pa.int64()),
    ]
)
"""The columns of `cells`, and the source row of each, null for a cell that holds for all rows."""


class CellRows(NamedTuple):
    """Source rows whose cells belong to results: `positions` in `rows`, the number of the result
    of each, and its rank among all rows of the document.
    """

    rows: ConvertedRows
    positions: Integers
    owners: Integers
    ranks: Integers


def build_cells(
    document: Document, parts: Sequence[CellRows], shared: Sequence[dict[str, Any]], ids: pa.Array
) -> pa.Table:
    """Build the cells of a document's results, whose ids are `ids`: those of their rows by rank,
    then the `shared` ones.
    """
    last = 1 + max((int(part.ranks.max()) for part in parts if len(part.ranks)), default=0)
    pieces = [_build_part(document, part) for part in parts]
    keys = []
    for part in parts:
        # Arrow gives 32 bits: too few for the product from 46,341 rows on
        rows = part.owners.astype(np.int64) * (last + 1) + part.ranks
        keys.append(np.repeat(rows, len(part.rows.table.columns)))
    if shared:
        records = [{**cell, "document_id": document.document_id} for cell in shared]
        once = encode_texts(pa.Table.from_pylist(records, decode_schema(STAGED))).cast(STAGED)
        pieces += [once] * len(ids)
        keys.append(np.repeat(np.arange(len(ids)) * (last + 1) + last, len(shared)))
    cells = pa.concat_tables(pieces)
    key = np.concatenate(keys)
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        cells = join_encoded(pieces).take(order)
        key = key[order]
    owners = key // (last + 1)
    numbers = np.arange(len(key)) - np.searchsorted(owners, owners) + 1
    named = pa.DictionaryArray.from_arrays(pa.array(owners, pa.int32()), ids)
    return cells.set_column(0, STAGED.field(0), named).set_column(
        1, STAGED.field(1), pa.array(numbers, pa.int64())
    )


def _build_part(document: Document, part: CellRows) -> pa.Table:
    """Build the cells of some rows of one table, row by row, without results yet."""
    table = part.rows.table
    names = [get_column(field, part.rows.result_table) for field in part.rows.fields]
    entries: list[tuple[Any, ...]] = []
    codes = []
    for column, (name, header) in enumerate(zip(names, table.columns, strict=True)):
        texts = table.texts[column]
        codes.append(np.asarray(texts.codes, np.int32)[part.positions] + len(entries))
        for text, cell in zip(texts.distinct, part.rows.converted[column], strict=True):
            # a text that cannot be read is in rejected rows only
            said = cell[1:] if isinstance(cell, CellValues) else (None, None, None)
            entries.append((name, header, text, *said))
    distinct = encode_texts(pa.table(list(zip(*entries, strict=True)), schema=ENTRY))
    chosen = np.column_stack(codes).ravel()
    cells = distinct.take(chosen)
    count = len(chosen)
    width = len(names)
    rows = np.repeat(part.positions, width)
    columns = {
        **dict(zip(cells.column_names, cells.columns, strict=True)),
        "result_id": pa.nulls(count, TEXT),
        "cell_number": pa.nulls(count, pa.int64()),
        "document_id": _repeat(document.document_id, count),
        "locator": _locate(table, part.positions),
        "source_locator": _locate_in_source(
            document, part.rows, part.positions
        ).dictionary_encode(),
        "table_name": _repeat(table.name, count),
        "row_number": pa.array(np.asarray(table.numbers, int)[rows]),
    }
    return pa.table([columns[name] for name in STAGED.names], schema=STAGED)


def _repeat(text: str, count: int) -> pa.DictionaryArray:
    codes = pa.array(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([text]))


def _locate(table: SourceTable, positions: Integers) -> pa.Array:
    """Return the place of each cell of some rows, row by row."""
    ends = [f", column {number} ({name})" for number, name in enumerate(table.columns, 1)]
    places = _join_places(table.locators, positions, ends)
    if not (table.cell_locators or table.footnotes):
        return places
    special: dict[tuple[int, int], str] = {}
    for row, finer in enumerate(table.cell_locators or ()):
        special |= {(row, column): place for column, place in enumerate(finer or ())}
    for row, column, mark in table.footnotes:
        place = special.get((row, column)) or f"{table.locators[row]}{ends[column]}"
        special[row, column] = f"{place}, footnote {mark}"
    cells = ((row, column) for row in positions.tolist() for column in range(len(ends)))
    return pa.array(
        [special.get(cell, place) for cell, place in zip(cells, places.to_pylist(), strict=True)],
        pa.string(),
    )


def _locate_in_source(document: Document, rows: ConvertedRows, positions: Integers) -> pa.Array:
    """Return where each cell is in what the document was taken from, null if it does not say so."""
    table = rows.table
    expected = document.tables.get(table.name)
    if PLACE_FIELD in rows.fields:
        texts = table.texts[rows.fields.index(PLACE_FIELD)]
        bases = [text or None for text in texts.distinct]
        at = np.asarray(texts.codes, np.int32)[positions]
        return _join_places(bases, at, [""] * len(rows.fields))
    if expected is None or expected.place is None:
        return pa.nulls(len(positions) * len(rows.fields), pa.string())
    bases = [f"{expected.place}, row {number}" for number in table.numbers]
    return _join_places(bases, positions, [f", {header}" for header in table.columns])


def _join_places(bases: Sequence[str | None], positions: Integers, ends: Sequence[str]) -> pa.Array:
    """Return each chosen base with each end, base by base."""
    chosen = pa.array(bases, pa.string()).take(pa.array(np.repeat(positions, len(ends))))
    after = pa.array(ends).take(pa.array(np.tile(np.arange(len(ends)), len(positions))))
    return pc.binary_join_element_wise(chosen, after, "")
