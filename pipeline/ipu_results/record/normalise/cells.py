"""Build `cells`: each cell of the rows that make a result, with its text, its figure and its place.

It has ten times as many rows as `results`, so it is built by column, each distinct text once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.record.normalise.fields import NO_VALUE, CellValues, get_column
from ipu_results.record.normalise.rows import ConvertedRows, get_codes
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
        ("column_name", TEXT),
        ("header", TEXT),
        ("raw_text", TEXT),
        ("value", pa.float64()),
        ("unit", TEXT),
        ("factor", pa.float64()),
        ("document_id", TEXT),
        ("locator", pa.string()),
        ("source_locator", TEXT),
        ("table_name", TEXT),
        ("row_number", pa.int64()),
    ]
)
"""The columns of `cells`, and the source row of each, null for a cell that holds for all rows."""


class SharedCell(TypedDict):
    """A cell that holds for all results of a document, without a row."""

    column_name: str
    header: str
    raw_text: str
    value: float | None
    unit: str | None
    factor: float | None
    locator: str


class CellRows(NamedTuple):
    """Source rows whose cells belong to results: `positions` in `rows`, the number of the result
    of each, and its rank among all rows of the document.
    """

    rows: ConvertedRows
    positions: Integers
    owners: Integers
    ranks: Integers


def build_cells(
    document: Document, parts: Sequence[CellRows], shared: Sequence[SharedCell], ids: pa.Array
) -> pa.Table:
    """Build the cells of a document's results, whose ids are `ids`: those of their rows by rank,
    then the `shared` ones.
    """
    row_count = 0
    for part in parts:
        row_count = max(row_count, 1 + int(part.ranks.max(initial=-1)))
    # The key of a cell is the number of its result times the stride, plus the rank of its row. So
    # the cells of a result follow one another by row, and the shared ones come last.
    stride = row_count + 1
    pieces = []
    keys = []
    for part in parts:
        pieces.append(_build_part(document, part))
        # Arrow gives 32 bits: too few for the product from 46,341 rows on
        of_rows = part.owners.astype(np.int64) * stride + part.ranks
        keys.append(np.repeat(of_rows, len(part.rows.table.columns)))
    if shared:
        records = [{**cell, "document_id": document.document_id} for cell in shared]
        once = encode_texts(pa.Table.from_pylist(records, decode_schema(STAGED))).cast(STAGED)
        pieces += [once] * len(ids)  # for each result
        after_rows = np.arange(len(ids)) * stride + row_count
        keys.append(np.repeat(after_rows, len(shared)))
    cells = pa.concat_tables(pieces)
    key = np.concatenate(keys)
    is_sorted = (key[:-1] <= key[1:]).all()
    if not is_sorted:
        order = np.argsort(key, kind="stable")
        cells = join_encoded(pieces).take(order)
        key = key[order]
    owners = key // stride
    first_of_result = np.searchsorted(owners, owners)
    numbers = np.arange(len(key)) - first_of_result + 1
    result_ids = pa.DictionaryArray.from_arrays(pa.array(owners, pa.int32()), ids)
    cells = cells.set_column(0, STAGED.field(0), result_ids)
    return cells.set_column(1, STAGED.field(1), pa.array(numbers, pa.int64()))


def _build_part(document: Document, part: CellRows) -> pa.Table:
    """Build the cells of some rows of one table, row by row, without results yet."""
    rows = part.rows
    table = rows.table
    positions = part.positions
    numbers = np.asarray(table.numbers, int)[positions]
    entries: list[tuple[Any, ...]] = []
    codes = []
    for column, field in enumerate(rows.fields):
        texts = table.texts[column]
        codes.append(get_codes(texts)[positions] + len(entries))
        name = get_column(field, rows.result_table)
        for text, cell in zip(texts.distinct, rows.converted[column], strict=True):
            # a text that cannot be read is in rejected rows only
            said = cell if isinstance(cell, CellValues) else NO_VALUE
            header = table.columns[column]
            entries.append((name, header, text, said.figure, said.unit, said.factor))
    by_column = list(zip(*entries, strict=True))
    distinct = encode_texts(pa.table(by_column, schema=ENTRY))
    row_by_row = np.column_stack(codes).ravel()
    cells = distinct.take(row_by_row)
    count = len(cells)
    columns = {
        **dict(zip(cells.column_names, cells.columns, strict=True)),
        "result_id": pa.nulls(count, TEXT),
        "cell_number": pa.nulls(count, pa.int64()),
        "document_id": _repeat(document.document_id, count),
        "locator": _locate(table, positions),
        "source_locator": _locate_in_source(document, rows, positions).dictionary_encode(),
        "table_name": _repeat(table.name, count),
        "row_number": pa.array(np.repeat(numbers, len(table.columns))),
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
    for row, cell_places in enumerate(table.cell_locators or ()):
        for column, place in enumerate(cell_places or ()):
            special[row, column] = place
    for row, column, mark in table.footnotes:
        place = special.get((row, column)) or f"{table.locators[row]}{ends[column]}"
        special[row, column] = f"{place}, footnote {mark}"
    located = places.to_pylist()
    cells = product(positions.tolist(), range(len(ends)))
    for index, cell in enumerate(cells):
        if cell in special:
            located[index] = special[cell]
    return pa.array(located, pa.string())


def _locate_in_source(document: Document, rows: ConvertedRows, positions: Integers) -> pa.Array:
    """Return where each cell is in what the document was taken from, null if it does not say so."""
    table = rows.table
    width = len(rows.fields)
    expected = document.tables.get(table.name)
    if PLACE_FIELD in rows.fields:
        texts = table.texts[rows.fields.index(PLACE_FIELD)]
        bases = [text or None for text in texts.distinct]
        return _join_places(bases, get_codes(texts)[positions], [""] * width)
    if expected is None or expected.place is None:
        return pa.nulls(len(positions) * width, pa.string())
    bases = [f"{expected.place}, row {number}" for number in table.numbers]
    return _join_places(bases, positions, [f", {header}" for header in table.columns])


def _join_places(bases: Sequence[str | None], positions: Integers, ends: Sequence[str]) -> pa.Array:
    """Return each chosen base with each end, base by base."""
    base_of = np.repeat(positions, len(ends))
    end_of = np.tile(np.arange(len(ends)), len(positions))
    chosen = pa.array(bases, pa.string()).take(base_of)
    return pc.binary_join_element_wise(chosen, pa.array(ends).take(end_of), "")
