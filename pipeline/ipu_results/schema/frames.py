"""Build typed pandas frames and Arrow tables from records, without any conversion of a value.

The schema itself is in the package, which must not load pandas: `ipu-results --help` reads the
kinds of documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ipu_results.errors import GateError
from ipu_results.kit.physics import round_derived
from ipu_results.schema import Column, Kind, Table

ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}
PANDAS: dict[Kind, Any] = {
    "text": pd.StringDtype("pyarrow", na_value=float("nan")),
    "integer": pd.Int64Dtype(),
    "double": "float64",
    "date": pd.ArrowDtype(pa.date32()),
    "timestamp": pd.ArrowDtype(pa.timestamp("us")),
    "boolean": pd.BooleanDtype(),
}
PANDAS_METADATA = b"pandas"
DTYPES = {ARROW[kind]: PANDAS[kind] for kind in ARROW if kind != "double"}

Integers = npt.NDArray[np.integer[Any]]


def frame_dtypes(table: Table) -> dict[str, Any]:
    """Map column names to pandas dtypes; a missing value is a null of that dtype, never an object."""
    return {column.name: PANDAS[column.kind] for column in table.columns}


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """Return the table's Arrow schema, with unit and description in the metadata of each field."""
    fields = [
        pa.field(
            column.name,
            ARROW[column.kind],
            nullable=not column.required,
            metadata={"description": column.description}
            | ({"unit": column.unit} if column.unit else {}),
        )
        for column in table.columns
    ]
    return pa.schema(fields, metadata={"description": table.description})


def build_frame(table: Table, records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Build a frame with the table's dtypes and a unique integer index; absent values are null."""
    return build_frame_from_columns(
        table, {name: [record.get(name) for record in records] for name in table.names}
    )


def build_frame_from_tuples(table: Table, rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Build the same from tuples in the order of the table's columns."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in table.names)
    return build_frame_from_columns(table, dict(zip(table.names, columns, strict=True)))


def build_frame_from_columns(
    table: Table, columns: Mapping[str, Iterable[Any] | pa.Array | pa.ChunkedArray]
) -> pd.DataFrame:
    """Build the same from one sequence of values or array a column."""
    arrays = {
        field.name: build_array(table, field, columns[field.name]) for field in arrow_schema(table)
    }
    return to_pandas(pa.table(arrays))


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Convert Arrow to a frame with the dtypes of `frame_dtypes`, texts not encoded."""
    return rows.cast(decode_schema(rows.schema)).to_pandas(types_mapper=DTYPES.get)


def build_array(
    table: Table, field: pa.Field, values: Iterable[Any] | pa.Array | pa.ChunkedArray
) -> pa.Array:
    """Build an array of exactly the type of a field.

    Arrow infers the type of numbers and the result is compared: with the type given, it would turn
    1.5 into 1. Raises GateError.
    """
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            inferred = values
        elif pa.types.is_string(field.type):
            return pa.array(values, pa.string())
        else:
            inferred = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise GateError(
            f"{table.name}.{field.name} mixes values of several types: {error}"
        ) from error
    widened = pa.types.is_null(inferred.type) or (inferred.type, field.type) == (
        pa.int64(),
        pa.float64(),
    )
    if inferred.type != field.type and not widened:
        raise GateError(
            f"{table.name}.{field.name} has a value of type {inferred.type}, not {field.type}"
        )
    return inferred.cast(field.type)


def to_arrow(table: Table, frame: pd.DataFrame | pa.Table) -> pa.Table:
    """Convert a frame to an Arrow table of exactly the table's schema; texts that are encoded stay
    so.

    The pandas metadata stays: without it a nullable integer reads back as a float. Raises GateError
    for a null in a required column and for any value that would have to change.
    """
    schema = arrow_schema(table)
    try:
        if isinstance(frame, pa.Table):
            return frame.cast(
                pa.schema(map(_encode_field, schema, frame.schema), file_schema(table).metadata)
            )
        arrow = pa.Table.from_pandas(frame, schema=schema, preserve_index=False, safe=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, KeyError) as error:
        raise GateError(f"{table.name}: {error}") from error
    return arrow.replace_schema_metadata(file_schema(table).metadata)


def round_derived_columns(table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows with the doubles that are computed here in DERIVED_DIGITS."""
    for column in table.columns:
        if column.is_rounded:
            position = rows.column_names.index(column.name)
            values = [
                None if value is None else round_derived(value)
                for value in rows.column(position).to_pylist()
            ]
            rounded = pa.array(values, pa.float64())
            rows = rows.set_column(position, rows.schema.field(position), rounded)
    return rows


def _encode_field(field: pa.Field, actual: pa.Field) -> pa.Field:
    encoded = pa.types.is_dictionary(actual.type) and actual.type.value_type == field.type
    return field.with_type(actual.type) if encoded else field


def encode_texts(rows: pa.Table) -> pa.Table:
    """Dictionary-encode the text columns."""
    columns = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column
        for column in rows.columns
    ]
    fields = [
        field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields, rows.schema.metadata))


def join_encoded(tables: Sequence[pa.Table]) -> pa.Table:
    """Join tables with encoded texts, each distinct text once and in one piece: Arrow compares
    pieces at each take.
    """
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def decode_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionary-encoded texts."""
    types = (
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    )
    return pa.schema(map(pa.Field.with_type, schema, types), schema.metadata)


@cache
def file_schema(table: Table) -> pa.Schema:
    """Return the schema of a table's Parquet file, with the metadata that tell pandas its dtypes.

    They are copied from a column of the same kind: a frame of its own for each table takes many
    times as long.
    """
    pandas, kinds = _describe_kinds()
    columns = [
        {**kinds[column.kind], "name": column.name, "field_name": column.name}
        for column in table.columns
    ]
    metadata = {PANDAS_METADATA: json.dumps({**pandas, "columns": columns}).encode()}
    schema = arrow_schema(table)
    return schema.with_metadata({**metadata, **schema.metadata})


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
