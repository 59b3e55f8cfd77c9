"""The two gates that every row passes: pandera without coercion, then an explicit Arrow schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from pandera.errors import SchemaErrors

from ipu_results.errors import GateError
from ipu_results.schema import Table, arrow_schema, frame_dtypes
from ipu_results.schema.generate import ARROW, PANDAS
from ipu_results.schema.pandera_model import pandera_model
from ipu_results.schema.row_checks import ROW_CHECKS

REASONS = {
    "not_nullable": "missing-{}",
    "greater_than_or_equal_to": "{}-out-of-range",
    "greater_than": "{}-out-of-range",
    "less_than_or_equal_to": "{}-out-of-range",
    "isin": "{}-not-a-choice",
    "str_matches": "{}-malformed",
}
DTYPES = {ARROW[kind]: PANDAS[kind] for kind in ARROW if kind != "double"}


class Failure(NamedTuple):
    """Why the `row`th record is refused."""

    row: int
    reason: str
    message: str


def build_frame(table: Table, records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Records as a frame with the table's dtypes and a unique integer index; absent values are null."""
    return _frame(table, {name: [record.get(name) for record in records] for name in table.names})


def build_frame_from_tuples(table: Table, rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """The same from tuples in the order of the table's columns."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in table.names)
    return _frame(table, dict(zip(table.names, columns, strict=True)))


def _frame(table: Table, columns: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    arrays = [_array(table, field, columns[field.name]) for field in arrow_schema(table)]
    names = list(table.names)
    return pa.Table.from_arrays(arrays, names=names).to_pandas(types_mapper=DTYPES.get)


def _array(table: Table, field: pa.Field, values: Iterable[Any]) -> pa.Array:
    """Values of exactly the field's type: told the type, Arrow would turn 1.5 into 1, so it infers and is compared."""
    try:
        inferred = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise GateError(f"{table.name}.{field.name} holds values of several types: {error}") from error
    widened = pa.types.is_null(inferred.type) or (inferred.type, field.type) == (pa.int64(), pa.float64())
    if inferred.type != field.type and not widened:
        raise GateError(f"{table.name}.{field.name} holds a value of type {inferred.type}, not {field.type}")
    return inferred.cast(field.type)


def find_failures(table: Table, frame: pd.DataFrame) -> list[Failure]:
    """Rows that pandera refuses, one failure per row and check."""
    if frame.empty:
        return []
    try:
        pandera_model(table).validate(frame, lazy=True)
    except SchemaErrors as errors:
        return _told(table, errors.failure_cases)
    return []


def _told(table: Table, cases: pd.DataFrame) -> list[Failure]:
    told: dict[tuple[int, str], Failure] = {}
    for column, check, value, index in cases[["column", "check", "failure_case", "index"]].itertuples(index=False):
        if pd.isna(index):
            raise GateError(f"{table.name}: column {column} as a whole fails {check}")
        reason = _reason(str(column), str(check))
        told.setdefault((int(index), reason), Failure(int(index), reason, _message(table, str(column), reason, value)))
    return sorted(told.values())


def _message(table: Table, column: str, reason: str, value: Any) -> str:
    if reason.startswith("missing-"):
        return f"{column} is blank or missing"
    if column in table.names and reason.replace("-", "_") not in ROW_CHECKS.get(table.name, {}):
        return f"{column} is {str(value)[:80]!r}, which {reason} refuses"
    return f"the row is refused by the check {reason}"


def _reason(column: str, check: str) -> str:
    name = check.partition("(")[0]
    if name == "multiple_fields_uniqueness":
        return "repeated-key"
    return REASONS.get(name, name).format(column).replace("_", "-")


def to_arrow(table: Table, frame: pd.DataFrame) -> pa.Table:
    """The frame as an Arrow table of exactly the table's schema. Raises GateError where a required value is null.

    The pandas metadata stays: without it a nullable integer reads back as a float.
    """
    schema = arrow_schema(table)
    try:
        arrow = pa.Table.from_pandas(frame, schema=schema, preserve_index=False, safe=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, KeyError) as error:
        raise GateError(f"{table.name}: {error}") from error
    for field in schema:
        if not field.nullable and arrow.column(field.name).null_count:
            raise GateError(f"{table.name}.{field.name} is required and null in a row")
    return arrow.replace_schema_metadata({**arrow.schema.metadata, **schema.metadata})


def check_gate(table: Table, good: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse to trust the gates unless `good` passes and each change of it is refused for its reason.

    Catches validation that was switched off, such as by PANDERA_VALIDATION_ENABLED=False. Raises GateError.
    """
    bad = [{**good, table.key[0]: f"{row:016x}", **change} for row, change in enumerate(changes.values(), start=1)]
    frame = build_frame(table, [good, *bad])
    expected = set(enumerate(changes, start=1))
    if (found := {(failure.row, failure.reason) for failure in find_failures(table, frame)}) != expected:
        missed = ", ".join(reason for _, reason in sorted(expected - found)) or "none"
        raise GateError(f"the gate of {table.name} does not refuse what it must (missed: {missed}): is pandera off?")
    keyless = pd.Series([None] * len(frame), dtype=frame_dtypes(table)[table.key[0]])
    try:
        to_arrow(table, frame.assign(**{table.key[0]: keyless}))
    except GateError:
        return
    raise GateError(f"the Arrow gate of {table.name} accepted a null key")
