"""The gates that every row passes: its table's pandera schema, without coercion, then an explicit
Arrow schema.

A gate is trusted only after a valid row has passed it and five changed copies were refused, each
for its own reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandera.errors import SchemaErrors

from ipu_results.errors import GateError
from ipu_results.kit.sql import PIECE_ROWS
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.normalise.join import filled_schema
from ipu_results.record.normalise.rows import reject_row
from ipu_results.schema import Table, table
from ipu_results.schema.frames import build_frame, frame_dtypes, to_arrow, to_pandas
from ipu_results.schema.pandera_schemas import build_gate_schema
from ipu_results.schema.vocabulary import KINDS

# a valid result, which the gate must accept
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

# by the reason that each must be refused for
CHANGES: dict[str, dict[str, Any]] = {
    "throughput-out-of-range": {"throughput": float("inf")},
    "no-figure": {"throughput": None},
    "missing-model-printed": {"model_printed": None},
    "task-not-a-choice": {"task": "Training"},
    "precision-bits": {"weight_bits": 32},
}


UNIQUE = ("field_uniqueness", "multiple_fields_uniqueness")
REASONS = {  # to refuse a cell, by the check of pandera
    "not_nullable": "missing-{}",
    "in_range": "{}-out-of-range",
    "isin": "{}-not-a-choice",
    "str_matches": "{}-malformed",
    **dict.fromkeys(UNIQUE, "repeated-key"),
}


class GateFailure(NamedTuple):
    """Why a record is refused, by its position; `column` is that of its first wrong cell."""

    row: int
    reason: str
    message: str
    column: str


def gate_results(
    documents: Sequence[NormalisedDocument], name: str = "results"
) -> tuple[pd.DataFrame, list[NormalisedDocument]]:
    """Return the frame of the table `name` as far as sources fill it, and the documents with
    refused rows in quarantine.

    Only documents whose kind makes rows of that table are looked at; the others are returned as
    they are. Call `check_gate` first: a gate that was not seen to refuse is not trusted.
    """
    definition = table(name).as_filled()
    key = definition.key[0]
    rows = [document.results for document in documents if _fills(name, document)]
    frame = to_pandas(pa.concat_tables(rows) if rows else filled_schema(name).empty_table())
    refused: dict[str, GateFailure] = {}
    for failure in find_failures(definition, frame):
        refused.setdefault(frame[key][failure.row], failure)
    if not refused:
        return frame, list(documents)
    kept = frame[~frame[key].isin(list(refused))].reset_index(drop=True)
    if find_failures(definition, kept):
        raise GateError(f"rows that passed the gate of {name} fail it without the refused rows")
    accepted = []
    for document in documents:
        if _fills(name, document):
            accepted.append(_quarantine(document, refused, key))
        else:
            accepted.append(document)
    return kept, accepted


def _fills(name: str, document: NormalisedDocument) -> bool:
    """Return whether a document has results, and they are rows of the table `name`."""
    return KINDS[document.document.reader].into == name and len(document.results) > 0


def _quarantine(
    document: NormalisedDocument, refused: Mapping[str, GateFailure], key: str
) -> NormalisedDocument:
    """Move refused results, and all of their source rows, to quarantine."""
    printed = {}
    for read in document.parsed.tables:
        for position, number in enumerate(read.numbers):
            printed[read.name, number] = (read, position)
    rejected = list(document.rejected)
    for row in document.source_rows.to_pylist():
        if failure := refused.get(row["result_id"]):
            read, position = printed[row["table_name"], row["row_number"]]
            rejected.append(reject_row(read, position, failure.reason, failure.message))
    return replace(
        document,
        results=_leave_out(document.results, key, refused),
        source_rows=_leave_out(document.source_rows, "result_id", refused),
        cells=_leave_out(document.cells, "result_id", refused),
        rejected=rejected,
    )


def _leave_out(rows: pa.Table, key: str, refused: Iterable[str]) -> pa.Table:
    ids = rows[key].cast(pa.string())
    is_refused = pc.is_in(ids, pa.array(refused, pa.string()))
    return rows.filter(pc.invert(is_refused))


def check_tables(frames: Mapping[str, pd.DataFrame | pa.Table]) -> None:
    """Refuse the build for a row of the pipeline's own tables that fails its gate.

    Raises GateError.

    A key of an Arrow table that repeats in another of its pieces is for the DuckDB file to refuse.
    """
    for name, rows in frames.items():
        if name == "results":  # they have passed `gate_results`
            continue
        for frame in _divide(rows):
            failures = find_failures(table(name), frame)
            if failures:
                first = failures[0]
                document = frame["document_id"][first.row] if "document_id" in frame else None
                message = f"{name}, row {first.row}: {first.message} ({len(failures)} failures)"
                raise GateError(message, document=document)


def _divide(rows: pd.DataFrame | pa.Table) -> Iterator[pd.DataFrame]:
    """Yield a frame whole, and the rows of an Arrow table PIECE_ROWS at a time, numbered on."""
    if isinstance(rows, pd.DataFrame):
        yield rows
        return
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
    reasons = REASONS | {check.name: check.name for check in table.row_checks}
    failures: dict[tuple[int, str], GateFailure] = {}
    columns = ["column", "check", "failure_case", "index"]
    for column, check, value, index in cases[columns].itertuples(index=False):
        name = str(check).partition("(")[0]  # of in_range(0, 1)
        if pd.isna(index) or name not in reasons:
            raise GateError(f"{table.name}: the frame as a whole fails {check}, in {column}")
        row = int(index)
        reason = reasons[name].format(column).replace("_", "-")
        message = _format_message(table, name, str(column), reason, value)
        failures.setdefault((row, reason), GateFailure(row, reason, message, str(column)))
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
    fault = REASONS[check].removeprefix("{}-").replace("-", " ")
    return f"{cell}, which is {fault}"


def check_gate(
    table: Table, good: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse to trust a gate unless `good` passes and each change of it is refused for its reason.

    Catches validation that was switched off, such as by PANDERA_VALIDATION_ENABLED=False. Raises
    GateError.
    """
    rows = [good]
    for number, change in enumerate(changes.values(), start=1):
        rows.append({**good, table.key[0]: f"r{number:016x}", **change})
    frame = build_frame(table, rows)
    expected = set(enumerate(changes, start=1))
    actual = {(failure.row, failure.reason) for failure in find_failures(table, frame)}
    if actual != expected:
        missed = ", ".join(reason for _, reason in sorted(expected - actual)) or "none"
        message = (
            f"the gate of {table.name} does not refuse invalid rows (missed: {missed}): is pandera"
            " switched off?"
        )
        raise GateError(message)
    key = table.key[0]
    nulls = pd.Series([None] * len(frame), dtype=frame_dtypes(table)[key])
    try:
        to_arrow(table, frame.assign(**{key: nulls}))
    except GateError:
        return
    raise GateError(f"the Arrow gate of {table.name} accepted a null key")
