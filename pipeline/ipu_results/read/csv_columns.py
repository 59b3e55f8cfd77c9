"""Read a CSV file column by column: for tables of many rows that are published as they are and make no results."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read.document import ColumnTable, ParsedDocument
from ipu_results.schema import arrow_schema, table


def read_csv_columns(data: bytes, name: str) -> ParsedDocument:
    """Read the rows of the published table `name`, each on a line of its own, with the types of its columns.

    A blank cell is null. Raises UnrecognisedDocumentError for a header that is not of that table, DamagedDocumentError
    for a row of another width or a cell of another type: such a file is not read in part.
    """
    types = arrow_schema(table(name))
    header = next(iter(data.decode("utf-8", "replace").split("\n", 1))).rstrip("\r").split(",")
    if unknown := sorted(set(header) - set(types.names)) or (len(set(header)) < len(header) and ["a repeated column"]):
        raise UnrecognisedDocumentError(f"{name} has no column {', '.join(unknown)}", place="line 1")
    if not data.endswith(b"\n"):
        raise DamagedDocumentError("does not end with a line break: truncated", place="last line")
    options = pa_csv.ConvertOptions(
        check_utf8=True,
        column_types={column: types.field(column).type for column in header},
        null_values=[""],
        true_values=["True"],
        false_values=["False"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    try:
        rows = pa_csv.read_csv(io.BytesIO(data), convert_options=options)
    except pa.ArrowInvalid as error:
        raise DamagedDocumentError(f"is not CSV of {name}: {str(error).splitlines()[0][:200]}") from error
    if rows.num_rows != data.count(b"\n") - 1:
        raise DamagedDocumentError("has a cell of several lines, or an empty line")
    for column in rows.column_names:
        if pa.types.is_floating(rows[column].type) and not pc.all(pc.is_finite(rows[column]), min_count=0).as_py():
            raise DamagedDocumentError("has a figure that is not finite", place=column)
    return ParsedDocument((), columnar=(ColumnTable(name, rows.combine_chunks()),))
