"""Build typed pandas frames and Arrow tables from records, without any conversion of a value.

The schema itself is in the package, which must not load pandas: `ipu-results --help` reads the
kinds of documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ipu_results.errors import GateError
from ipu_results.kit.physics import round_derived
from ipu_results.schema import Column, Kind, Table

if TYPE_CHECKING:

    class DataFrame(pd.DataFrame):  # type: ignore[misc]
        """A frame of pandas.

        Without pandas-stubs, `pd.DataFrame` is Any to a type checker; a class made from it is not.
        """

else:
    DataFrame = pd.DataFrame

ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}
PANDAS: dict[Kind, Any] = {
    # as pandas reads texts by itself
    "text": pd.StringDtype("pyarrow", na_value=float("nan")),
    "integer": pd.Int64Dtype(),
    "double": "float64",
    "date": pd.ArrowDtype(pa.date32()),
    "timestamp": pd.ArrowDtype(pa.timestamp("us")),
    "boolean": pd.BooleanDtype(),
}
PANDAS_METADATA = b"pandas"
# all but doubles, whose own conversion makes NaN of a null
DTYPES = {ARROW[kind]: PANDAS[kind] for kind in ARROW if kind != "double"}

Values: TypeAlias = Iterable[Any] | pa.Array | pa.ChunkedArray
Integers = npt.NDArray[np.integer[Any]]


def frame_dtypes(table: Table) -> dict[str, Any]:
    """Map column names to pandas dtypes; a missing value is a null of its dtype, never an object."""
    return {column.name: PANDAS[column.kind] for column in table.columns}


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """Return the table's Arrow schema, with unit and description in the metadata of each field."""
    fields = []
    for column in table.columns:
        metadata = {"description": column.description}
        if column.unit:
            metadata["unit"] = column.unit
        nullable = not column.required
        fields.append(pa.field(column.name, ARROW[column.kind], nullable, metadata))
    return pa.schema(fields, metadata={"description": table.description})


def build_frame(table: Table, records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Build a frame with the table's dtypes and a unique integer index; absent values are null."""
    columns = {}
    for name in table.names:
        columns[name] = [record.get(name) for record in records]
    return build_frame_from_columns(table, columns)


def build_frame_from_columns(table: Table, columns: Mapping[str, Values]) -> pd.DataFrame:
    """Build the same from one sequence of values or array a column."""
    arrays = {}
    for field in arrow_schema(table):
        arrays[field.name] = build_array(table, field, columns[field.name])
    return to_pandas(pa.table(arrays))


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Convert Arrow to a frame with the dtypes of `frame_dtypes`, texts not encoded."""
    return rows.cast(decode_schema(rows.schema)).to_pandas(types_mapper=DTYPES.get)


def build_array(table: Table, field: pa.Field, values: Values) -> pa.Array:
    """Build an array of exactly the type of a field.

    Arrow infers the type of numbers and the result is compared: with the type given, it would turn
    1.5 into 1. Raises GateError.
    """
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        stated = field.type if pa.types.is_string(field.type) else None
        try:
            values = pa.array(values, stated)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            message = f"{table.name}.{field.name} mixes values of several types: {error}"
            raise GateError(message) from error
    # nulls alone have no type; whole numbers become decimals, which the cast below checks
    fits = values.type in (field.type, pa.null())
    is_widened = values.type == pa.int64() and field.type == pa.float64()
    if not (fits or is_widened):
        raise GateError(
            f"{table.name}.{field.name} has a value of type {values.type}, not {field.type}"
        )
    return values.cast(field.type)


def to_arrow(table: Table, frame: pd.DataFrame | pa.Table) -> pa.Table:
    """Convert a frame to an Arrow table of exactly the table's schema; texts that are encoded stay
    so.

    The pandas metadata stays: without it a nullable integer reads back as a float. Raises GateError
    for a null in a required column and for any value that would have to change.
    """
    schema = arrow_schema(table)
    try:
        if isinstance(frame, pa.Table):
            fields = map(_encode_field, schema, frame.schema)
            return frame.cast(pa.schema(fields, file_schema(table).metadata))
        arrow = pa.Table.from_pandas(frame, schema=schema, preserve_index=False, safe=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, KeyError) as error:
        raise GateError(f"{table.name}: {error}") from error
    return arrow.replace_schema_metadata(file_schema(table).metadata)


def round_derived_columns(table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows with the doubles that are computed here in DERIVED_DIGITS."""
    for position, column in enumerate(table.columns):
        if column.is_rounded:
            values = []
            for value in rows.column(position).to_pylist():
                values.append(None if value is None else round_derived(value))
            rounded = pa.array(values, pa.float64())
            rows = rows.set_column(position, rows.schema.field(position), rounded)
    return rows


def _encode_field(field: pa.Field, actual: pa.Field) -> pa.Field:
    is_encoded = pa.types.is_dictionary(actual.type) and actual.type.value_type == field.type
    return field.with_type(actual.type) if is_encoded else field


def encode_texts(rows: pa.Table) -> pa.Table:
    """Dictionary-encode the text columns."""
    for position, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            encoded = rows.column(position).dictionary_encode()
            rows = rows.set_column(position, field.with_type(encoded.type), encoded)
    return rows


def join_encoded(tables: Sequence[pa.Table]) -> pa.Table:
    """Join tables with encoded texts, each distinct text once and in one piece: Arrow compares
    pieces at each take.
    """
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def decode_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionary-encoded texts."""
    fields = []
    for field in schema:
        is_encoded = pa.types.is_dictionary(field.type)
        fields.append(field.with_type(field.type.value_type) if is_encoded else field)
    return pa.schema(fields, schema.metadata)


@cache
def file_schema(table: Table) -> pa.Schema:
    """Return the schema of a table's Parquet file, with the metadata that tell pandas its dtypes.

    They are copied from a column of the same kind: a frame of its own for each table takes many
    times as long.
    """
    pandas, kinds = _describe_kinds()
    columns = []
    for column in table.columns:
        columns.append({**kinds[column.kind], "name": column.name, "field_name": column.name})
    described = json.dumps({**pandas, "columns": columns}).encode()
    schema = arrow_schema(table)
    return schema.with_metadata({PANDAS_METADATA: described, **schema.metadata})


@cache
def _describe_kinds() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what Arrow writes to tell pandas of a frame, and of a column of each kind."""
    sample = Table("", "", tuple(Column(kind, kind, "") for kind in ARROW), ())
    rows = pa.Table.from_pandas(build_frame(sample, []), arrow_schema(sample), preserve_index=False)
    described = json.loads(rows.schema.metadata[PANDAS_METADATA])
    kinds = {column["name"]: column for column in described["columns"]}
    # pandas can compare, resample and join times of Arrow by what it knows of times, but not dates
    kinds["date"]["numpy_type"] = kinds["timestamp"]["numpy_type"]
    return described, kinds
