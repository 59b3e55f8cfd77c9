"""Write tables as CSV that a spreadsheet can open safely, and read it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ipu_results._util.text import FORMULA, mark_formula, unmark_formula

MAX_BLOCK = 2**31 - 1  # bytes; pyarrow reads no row that is longer than a block
MAX_ROWS = 2**12  # formatted at once: larger pieces take new memory from the system each time
WHOLE = r"^-?\d+$"
FORMULA_START = f"^{FORMULA.pattern}"


def write_csv(table: pa.Table, file: Path | BinaryIO) -> None:
    r"""Write UTF-8 with a line break after each row; a null is empty, an empty text is `""`, figures are exact.

    Readers that guess types from the first rows get the right ones: every text is quoted, and a whole number in a
    column of decimals ends in `.0`. A text that a spreadsheet takes for a formula has an apostrophe in front.
    """
    if isinstance(file, Path):
        with file.open("wb") as opened:
            return write_csv(table, opened)
    rows = _map_texts(table, mark_formula)
    file.write(",".join(_quote(pa.array(rows.column_names, pa.string())).to_pylist()).encode() + b"\n")
    for batch in rows.to_batches(MAX_ROWS) if rows.num_columns else ():
        cells = [_format_cells(column) for column in batch.columns]
        lines = pc.binary_join_element_wise(*cells, ",", null_handling="replace", null_replacement="")
        file.write(pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")[0].as_buffer())
        file.write(b"\n")
    return None


def _format_cells(column: pa.Array) -> pa.Array:
    """Return the texts of a column as CSV has them, null for a null."""
    if pa.types.is_string(column.type):
        return _quote(column)
    texts = column.cast(pa.string())
    if not pa.types.is_floating(column.type):
        return texts
    return pc.if_else(pc.match_substring_regex(texts, WHOLE), pc.binary_join_element_wise(texts, ".0", ""), texts)


def _quote(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")


def read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """Read what `write_csv` wrote, in the given types. Raises pyarrow.ArrowException for anything else."""
    if not schema.names:
        return schema.empty_table()
    rows = csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=min(max(path.stat().st_size, 1), MAX_BLOCK)),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true"],
            false_values=["false"],
        ),
    )
    return _map_texts(rows, unmark_formula)


def count_formulas(table: pa.Table) -> int:
    """Return how many texts `write_csv` marks."""
    texts = (column for column in table.columns if pa.types.is_string(column.type))
    return sum(
        text != mark_formula(text) for column in texts for text in column.filter(_may_be_formula(column)).to_pylist()
    )


def _may_be_formula(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.match_substring_regex(texts, FORMULA_START), False)


def _map_texts(table: pa.Table, function: Callable[[str], str]) -> pa.Table:
    """Apply a function to the texts that may begin a formula, marked or not."""
    for at, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        if indices := pc.indices_nonzero(_may_be_formula(table.column(at))).to_pylist():
            texts = table.column(at).to_pylist()
            for index in indices:
                texts[index] = function(texts[index])
            table = table.set_column(at, field, pa.array(texts, field.type))
    return table
