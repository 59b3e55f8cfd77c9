"""The gates that every row passes: its table's pandera schema, without coercion, then an explicit
Arrow schema.

A gate is trusted only after a valid row has passed it and five changed copies were refused, each
for its own reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pandera.errors import SchemaErrors

from ipu_results.errors import GateError
from ipu_results.normalise import NormalisedDocument, Results
from ipu_results.schema import Table, table
from ipu_results.schema.frames import (
    EncodedColumn,
    build_frame,
    build_frame_from_columns,
    frame_dtypes,
    to_arrow,
    to_pandas,
)
from ipu_results.schema.pandera_schemas import build_gate_schema
from ipu_results.schema.vocabulary import KINDS

GOOD: dict[str, Any] = {
    "result_id": "r0123456789abcdef",
    "origin": "published",
    "publisher": "canary",
    "document_id": "canary",
    "task": "training",
    "model_printed": "canary",
    "platform": "canary",
    "precision_printed": "16.16",
    "activation_bits": 16,
    "weight_bits": 16,
    "throughput": 1.0,
}

CHANGES: dict[str, dict[str, Any]] = {
    "throughput-out-of-range": {"throughput": float("inf")},
    "no-figure": {"throughput": None},
    "missing-model-printed": {"model_printed": None},
    "task-not-a-choice": {"task": "Training"},
    "precision-bits": {"weight_bits": 32},
}


PIECE_ROWS = 20_000  # checked at once: 10 MB of `cells` as pandas has them


UNIQUE = ("field_uniqueness", "multiple_fields_uniqueness")
REASONS = {  # to refuse a cell, by the check of pandera
    "not_nullable": "missing-{}",
    "in_range": "{}-out-of-range",
    "isin": "{}-not-a-choice",
    "str_matches": "{}-malformed",
    **dict.fromkeys(UNIQUE, "repeated-key"),
}


class GateFailure(NamedTuple):
    """Why a record is refused, by its position."""

    row: int
    reason: str
    message: str


def gate_results(
    documents: Sequence[NormalisedDocument], name: str = "results"
) -> tuple[pd.DataFrame, list[NormalisedDocument]]:
    """Return the frame of the table `name` as far as sources fill it, and the documents with
    refused rows rejected.

    Only documents whose kind makes rows of that table are looked at; the others are returned as
    they are. Call `check_gate` first: a gate that was not seen to refuse is not trusted.
    """
    gathered = table(name).as_filled()
    key = gathered.key[0]
    results = [document.results for document in documents if makes_rows_of(name, document)]
    ids = [result_id for own in results for result_id in own.ids]
    columns = {
        column: _concat_column(results, column) for column in gathered.names if column != key
    }
    frame = build_frame_from_columns(gathered, {**columns, key: ids})
    refused: dict[str, GateFailure] = {}
    for failure in find_failures(gathered, frame):
        refused.setdefault(ids[failure.row], failure)
    if not refused:
        return frame, list(documents)
    kept = frame[~frame[key].isin(list(refused))].reset_index(drop=True)
    if find_failures(gathered, kept):
        raise GateError(f"rows that passed the gate of {name} fail it without the refused rows")
    return kept, [
        _move_refused(document, refused) if makes_rows_of(name, document) else document
        for document in documents
    ]


def _concat_column(results: Sequence[Results], name: str) -> EncodedColumn:
    absent = [EncodedColumn(np.zeros(len(own), np.int32), [None]) for own in results]
    return EncodedColumn.concat(
        [own.columns.get(name, blank) for own, blank in zip(results, absent, strict=True)]
    )


def makes_rows_of(name: str, document: NormalisedDocument) -> bool:
    """Return whether the results of a document are rows of the table `name`."""
    return KINDS[document.document.reader].into == name


def _move_refused(
    document: NormalisedDocument, refused: Mapping[str, GateFailure]
) -> NormalisedDocument:
    results = document.results
    rejected = [
        fragment.reject(refused[result_id].reason, refused[result_id].message)
        for position, result_id in enumerate(results.ids)
        if result_id in refused
        for fragment in results[position].fragments
    ]
    kept = results.take(
        [position for position, result_id in enumerate(results.ids) if result_id not in refused]
    )
    return replace(document, results=kept, rejected=[*document.rejected, *rejected])


def check_tables(frames: Mapping[str, pd.DataFrame | pa.Table]) -> None:
    """Refuse the build for a row of the pipeline's own tables that fails its gate.

    Raises GateError.

    A key of an Arrow table that repeats in another of its pieces is for the DuckDB file to refuse.
    """
    pieces = (
        (name, piece)
        for name, frame in frames.items()
        if name != "results"
        for piece in _divide(frame)
    )
    for name, frame in pieces:
        if failures := find_failures(table(name), frame):
            document = frame["document_id"][failures[0].row] if "document_id" in frame else None
            message = (
                f"{name}, row {failures[0].row}: {failures[0].message} ({len(failures)} failures)"
            )
            raise GateError(message, document=document)


def _divide(rows: pd.DataFrame | pa.Table) -> Iterator[pd.DataFrame]:
    """Yield a frame whole, and the rows of an Arrow table PIECE_ROWS at a time, numbered on."""
    if isinstance(rows, pd.DataFrame):
        yield rows
    else:
        for start in range(0, rows.num_rows, PIECE_ROWS):
            frame = to_pandas(rows.slice(start, PIECE_ROWS))
            yield frame.set_index(frame.index + start)


def find_failures(table: Table, frame: pd.DataFrame) -> list[GateFailure]:
    """Return the rows that pandera refuses, one failure per row and check."""
    if frame.empty:
        return []
    try:
        # nothing is coerced: a copy is not needed
        build_gate_schema(table).validate(frame, lazy=True, inplace=True)
    except SchemaErrors as errors:
        return _collect(table, errors.failure_cases)
    return []


def _collect(table: Table, cases: pd.DataFrame) -> list[GateFailure]:
    reasons = {**REASONS, **{check.name: check.name for check in table.row_checks}}
    failures: dict[tuple[int, str], GateFailure] = {}
    for column, check, value, index in cases[
        ["column", "check", "failure_case", "index"]
    ].itertuples(index=False):
        name = str(check).partition("(")[0]  # of in_range(0, 1)
        if pd.isna(index) or name not in reasons:
            raise GateError(f"{table.name}: the frame as a whole fails {check}, in {column}")
        row = int(index)
        reason = reasons[name].format(column).replace("_", "-")
        message = _format_message(table, name, str(column), reason, value)
        failures.setdefault((row, reason), GateFailure(row, reason, message))
    return sorted(failures.values())


def _format_message(table: Table, check: str, column: str, reason: str, value: Any) -> str:
    """Say what is wrong with a row: a check of several columns names none of them."""
    if check == "not_nullable":
        return f"{column} is blank or missing"
    if check in UNIQUE:
        return f"{' and '.join(table.key)} are also those of another row"
    if check not in REASONS:
        return f"the row is refused by the check {reason}"
    cell = f"{column} is {str(value)[:80]!r}"
    if check == "isin":
        return f"{cell}, which is not one of {', '.join(table.choices(column))}"
    return f"{cell}, which {reason} refuses"


def check_gate(
    table: Table, good: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse to trust a gate unless `good` passes and each change of it is refused for its reason.

    Catches validation that was switched off, such as by PANDERA_VALIDATION_ENABLED=False. Raises
    GateError.
    """
    bad = [
        {**good, table.key[0]: f"r{row:016x}", **change}
        for row, change in enumerate(changes.values(), start=1)
    ]
    frame = build_frame(table, [good, *bad])
    expected = set(enumerate(changes, start=1))
    if (
        actual := {(failure.row, failure.reason) for failure in find_failures(table, frame)}
    ) != expected:
        missed = ", ".join(reason for _, reason in sorted(expected - actual)) or "none"
        message = (
            f"the gate of {table.name} does not refuse invalid rows (missed: {missed}): is pandera"
            " switched off?"
        )
        raise GateError(message)
    keyless = pd.Series([None] * len(frame), dtype=frame_dtypes(table)[table.key[0]])
    try:
        to_arrow(table, frame.assign(**{table.key[0]: keyless}))
    except GateError:
        return
    raise GateError(f"the Arrow gate of {table.name} accepted a null key")
