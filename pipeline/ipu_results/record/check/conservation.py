"""Prove that no source row is lost: each is accepted, quarantined or a duplicate, and keeps all its
cells.

The tables that record this are built here, with those that follow from documents and vocabulary.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.errors import CatalogueError, ConservationError, UnsignedContextError
from ipu_results.kit.files import load_schema_file
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.normalise.fields import NOT_READ
from ipu_results.record.normalise.join import (
    ACCEPTED,
    DUPLICATE,
    QUARANTINED,
    SOURCE_ROWS,
    list_keys,
)
from ipu_results.record.normalise.passthrough import PLACE
from ipu_results.record.read.context import digest_context
from ipu_results.record.read.document import ParsedDocument
from ipu_results.record.sources.catalogue import SUBMISSION, Document
from ipu_results.schema import (
    TABLES,
    VIEWS,
    Table,
    View,
    describe_relation,
    list_dictionary_rows,
    table,
)
from ipu_results.schema.frames import (
    arrow_schema,
    build_frame,
    decode_schema,
    join_encoded,
    to_pandas,
)
from ipu_results.schema.vocabulary import Vocabulary

MAX_SHOWN = 120  # characters of a text that is not signed
KEY = ("document_id", "table_name", "row_number")  # of a source row


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many source rows of one document met which fate."""

    extracted: int
    accepted: int
    quarantined: int
    duplicates: int


def list_fates(document: NormalisedDocument) -> pa.Table:
    """Return what became of every source row, as `source_rows` has it."""
    refused = [
        {
            "table_name": row.table_name,
            "row_number": row.row_number,
            "locator": row.locator,
            "status": QUARANTINED,
        }
        for row in document.rejected
    ]
    rows = pa.concat_tables([document.source_rows, pa.Table.from_pylist(refused, SOURCE_ROWS)])
    told = set(list_keys(rows))
    # a row with a table of its own may make no result: it is accepted as it is
    passed = document.passthrough.select(PLACE.names)
    is_untold = [key not in told for key in list_keys(passed)]
    passed = passed.filter(pa.array(is_untold, pa.bool_()))
    count = len(passed)
    accepted = [*passed.columns, pa.repeat(ACCEPTED, count), pa.nulls(count, pa.string())]
    rows = pa.concat_tables([rows, pa.table(accepted, schema=SOURCE_ROWS)])
    return rows.add_column(0, "document_id", pa.repeat(document.document_id, len(rows)))


def list_source_keys(parsed: ParsedDocument) -> list[tuple[str, int]]:
    """Return (table, row number) of every source row that the reader saw, but for columnar ones."""
    keys = []
    for read in parsed.tables:
        keys += [(read.name, number) for number in read.numbers]
    for row in parsed.problems:
        if row.row_number is not None:
            keys.append((row.table_name, row.row_number))
    return keys


def check_expected_tables(document: Document, parsed: ParsedDocument) -> None:
    """Compare the tables with the sidecar's.

    Raises CatalogueError for a lost table or another number of rows.
    """
    counts = Counter(name for name, _ in list_source_keys(parsed))
    counts.update({columnar.name: columnar.rows.num_rows for columnar in parsed.columnar})
    for name, expected in document.tables.items():
        if counts[name] != expected.rows:
            actual = f"has {counts[name]} rows" if counts[name] else "is missing"
            message = f"{actual}, the sidecar expects {expected.rows}"
            raise CatalogueError(message, document=document.document_id, place=name)
    unknown = sorted(counts.keys() - document.tables.keys())
    if document.tables and unknown:
        message = f"the sidecar expects no table {', '.join(unknown)}"
        raise CatalogueError(message, document=document.document_id)


def check_signature(document: Document, parsed: ParsedDocument) -> None:
    """Refuse words that may change what figures mean, unless the sidecar has their digest.

    The form of a submission is fixed. Raises UnsignedContextError.
    """
    if document.kind == SUBMISSION or document.context == digest_context(parsed.context):
        return
    first = "none"
    if parsed.context:
        place, text = parsed.context[0]
        first = f"{text[:MAX_SHOWN]!r} ({place})"
    problem = "no longer those that the sidecar signs" if document.context else "not signed"
    message = (
        f"the words that say what its figures mean are {problem}: {first} and"
        f" {max(len(parsed.context) - 1, 0)} more;"
        " `ipu-results add --force FILE` shows them and drafts the signature"
    )
    tables = ", ".join(table.name for table in parsed.tables)
    raise UnsignedContextError(message, document=document.document_id, place=tables)


def check_conservation(document: NormalisedDocument) -> RowCounts:
    """Compare what was read with its fates, row by row and cell by cell.

    Raises ConservationError.
    """
    read = Counter(list_source_keys(document.parsed))
    for columnar in document.parsed.columnar:
        numbers = range(1, columnar.rows.num_rows + 1)
        read.update((columnar.name, number) for number in numbers)
    fates = list_fates(document)
    told = Counter(list_keys(fates))
    if read != told:
        lost = sorted((read - told).elements())
        added = sorted((told - read).elements())
        message = f"source rows lost {lost[:3]}, without source {added[:3]}"
        raise ConservationError(message, document=document.document_id)
    _check_cells(document)
    status = Counter(fates["status"].to_pylist())
    return RowCounts(read.total(), status[ACCEPTED], status[QUARANTINED], status[DUPLICATE])


def _check_cells(document: NormalisedDocument) -> None:
    """Require every cell of a row that makes a result up to be cited by it."""
    widths = {read.name: len(read.columns) for read in document.parsed.tables}
    accepted = document.source_rows.filter(pc.field("status") == ACCEPTED)
    expected = {(name, number): widths[name] for name, number in list_keys(accepted)}
    encoded = document.cells.select(["table_name", "row_number"])
    keys = encoded.cast(decode_schema(encoded.schema))
    of_rows = keys.filter(pc.field("row_number").is_valid())  # not those of the whole document
    counted = of_rows.group_by(keys.column_names).aggregate([([], "count_all")])
    cited = dict(zip(list_keys(counted), counted["count_all"].to_pylist(), strict=True))
    if expected != cited:
        message = (
            f"{sum(expected.values())} cells in accepted rows, {sum(cited.values())} of them cited"
        )
        raise ConservationError(message, document=document.document_id)


def build_source_frames(documents: Sequence[NormalisedDocument]) -> dict[str, pd.DataFrame]:
    """Build `source_rows` and `quarantine`."""
    quarantine = []
    for document in documents:
        for row in document.rejected:
            record = {
                "document_id": document.document_id,
                "table_name": row.table_name,
                "row_number": row.row_number,
                "locator": row.locator,
                "reason": row.reason,
                "message": row.message,
                "raw": json.dumps(row.raw, ensure_ascii=False),
            }
            quarantine.append(record)
    quarantine.sort(key=itemgetter(*KEY))
    rows = pa.concat_tables([list_fates(document) for document in documents])
    rows = rows.sort_by([(name, "ascending") for name in KEY])
    return {
        "source_rows": to_pandas(rows.select(table("source_rows").names)),
        "quarantine": build_frame(table("quarantine"), quarantine),
    }


def list_source_tables(
    document: NormalisedDocument, vocabulary: Vocabulary
) -> list[dict[str, Any]]:
    """Return the rows of `source_tables` for one document."""
    source = document.document
    rows = []
    for read in document.parsed.tables:
        expected = source.tables.get(read.name)
        section_platform = None if expected is None else expected.platform
        header = vocabulary.header_of(source.reader, read.name)
        unread = []
        unread_cells = 0
        for name, texts in zip(read.columns, read.texts, strict=True):
            if header.field_of(name) == NOT_READ:
                unread.append(name)
                unread_cells += sum(bool(texts.distinct[code]) for code in texts.codes)
        row: dict[str, Any] = {
            "document_id": source.document_id,
            "table_name": read.name,
            "header_printed": header.strict,
            "section_platform": section_platform,
            "not_read": "; ".join(unread) or None,
            "cells_not_read": unread_cells,
        }
        rows.append(row)
    return rows


def join_cells(parts: Sequence[pa.Table]) -> pa.Table:
    """Join the `cells` of documents, none of which may have any."""
    names = table("cells").names
    if not any(map(len, parts)):
        return arrow_schema(table("cells")).empty_table()
    return join_encoded([part.select(names) for part in parts])


def build_document_frame(documents: Iterable[Document]) -> pd.DataFrame:
    """Build `documents`."""
    return build_frame(table("documents"), [document.record() for document in documents])


def build_vocabulary_frames(vocabulary: Vocabulary) -> dict[str, pd.DataFrame]:
    """Build the tables that vocabulary and schema fill.

    `relations` and `columns` are the data dictionary of tables and views.
    """
    relations: tuple[Table | View, ...] = (*TABLES, *VIEWS)
    columns: list[Mapping[str, Any]] = []
    for relation in relations:
        columns += list_dictionary_rows(relation)
    rows: dict[str, Sequence[Mapping[str, Any]]] = {
        "comparison_remarks": vocabulary.remarks,
        "operation_counts": vocabulary.operation_counts,
        "mlperf_comparability": load_schema_file("vocabulary/mlperf.toml")["comparable"],
        "relations": list(map(describe_relation, relations)),
        "columns": columns,
    }
    return {name: build_frame(table(name), records) for name, records in rows.items()}
