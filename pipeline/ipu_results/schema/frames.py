"""Build typed pandas frames and Arrow tables from records, without any conversion of a value.

The schema itself is in the package, which must not load pandas: `ipu-results --help` reads the
kinds of documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ipu_results.errors import GateError
from ipu_results.ground.physics import round_derived
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


@dataclass(frozen=True, slots=True, eq=False)
class EncodedColumn:
    """A column whose row i has the value `values[codes[i]]`, so that work is done once per value
    instead of per row.

    Code 0 is for a row without a value; `values[0]` is None.
    """

    codes: Integers
    values: Sequence[Any]

    @classmethod
    def repeat(cls, value: Any, count: int) -> Self:
        """Return a column with one value in each row, which may be None."""
        return cls(np.ones(count, np.int32), [None, value])

    @classmethod
    def concat(cls, columns: Sequence[Self]) -> Self:
        """Return the rows of all columns, one after the other."""
        if len(columns) < 2:
            return columns[0] if columns else cls(np.zeros(0, np.int32), [None])
        starts = np.cumsum([0, *(len(column.values) for column in columns)])
        codes = [
            np.where(column.codes > 0, column.codes + np.int32(start), 0)
            for column, start in zip(columns, starts, strict=False)
        ]
        return cls(
            np.concatenate(codes), list(chain.from_iterable(column.values for column in columns))
        )

    def take(self, rows: Any) -> EncodedColumn:
        """Return the rows at some positions, or those of a mask."""
        return EncodedColumn(self.codes[rows], self.values)

    def find_nulls(self) -> npt.NDArray[np.bool_]:
        """Return which rows have no value, or the value None."""
        return np.array([value is None for value in self.values])[self.codes]

    def overlay(self, other: EncodedColumn, where: Any = None) -> EncodedColumn:
        """Replace the rows in which `other` has a value, or those of a mask."""
        where = other.codes > 0 if where is None else where
        codes = np.where(where, other.codes + np.int32(len(self.values)), self.codes)
        return EncodedColumn(codes, [*self.values, *other.values])

    def get(self, row: int) -> Any:
        """Return the value of one row."""
        return self.values[self.codes[row]]

    def to_dictionary(self) -> pa.DictionaryArray:
        """Return a column of texts as Arrow, each distinct text once."""
        texts = pa.array(self.values, pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            texts.indices.take(pa.array(self.codes)), texts.dictionary
        )


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
    table: Table, columns: Mapping[str, Iterable[Any] | EncodedColumn | pa.Array | pa.ChunkedArray]
) -> pd.DataFrame:
    """Build the same from one sequence of values, EncodedColumn or array a column."""
    arrays = [_build_array(table, field, columns[field.name]) for field in arrow_schema(table)]
    return to_pandas(pa.Table.from_arrays(arrays, names=list(table.names)))


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Convert Arrow to a frame with the dtypes of `frame_dtypes`, texts not encoded."""
    return rows.cast(decode_schema(rows.schema)).to_pandas(types_mapper=DTYPES.get)


def concat_frames(batches: Sequence[Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """Join the batches of each table, with a fresh integer index."""
    if len(batches) == 1:
        return dict(batches[0])
    return {
        name: pd.concat([batch[name] for batch in batches], ignore_index=True)
        for name in batches[0]
    }


def _build_array(
    table: Table,
    field: pa.Field,
    values: Iterable[Any] | EncodedColumn | pa.Array | pa.ChunkedArray,
) -> pa.Array:
    """Build an array of exactly the field's type.

    Arrow infers the type of numbers and the result is compared: with the type given, it would turn
    1.5 into 1.
    """
    if isinstance(values, EncodedColumn):
        return _build_array(table, field, values.values).take(pa.array(values.codes))
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
