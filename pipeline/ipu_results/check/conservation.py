"""Prove that no source row is lost: each is accepted, quarantined or a duplicate, and keeps all its cells.

The tables that record this are built here, with those that follow from documents and vocabulary.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ipu_results.errors import CatalogueError, ConservationError
from ipu_results.link.platforms import NOT_IN_VOCABULARY
from ipu_results.normalise import NormalisedDocument, Result
from ipu_results.normalise.rows import Place
from ipu_results.read.document import ParsedDocument, SourceRow, SourceTable
from ipu_results.schema import TABLES, VIEWS, dictionary_rows, table
from ipu_results.schema.frames import build_frame, build_frame_from_columns, build_frame_from_tuples
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

SourceKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many source rows of one document met which fate."""

    extracted: int
    accepted: int
    quarantined: int
    duplicates: int


def list_fates(document: NormalisedDocument) -> Iterator[tuple[Place, str, str | None]]:
    """Yield place, status and result id of every source row."""
    for result in document.results:
        yield from ((fragment.place, "accepted", result.result_id) for fragment in result.accepted)
        yield from ((fragment.place, "duplicate", result.result_id) for fragment in result.duplicates)
    for row in document.passthrough_only:
        yield (row.table_name, row.row_number, row.locator), "accepted", None
    for rejected in document.rejected:
        yield (rejected.table_name, rejected.row_number, rejected.locator), "quarantined", None


def list_source_keys(parsed: ParsedDocument) -> list[SourceKey]:
    """Return (table, row number) of every source row that the reader saw."""
    keys = [(table.name, row.number) for table in parsed.tables for row in table.rows]
    keys += [(row.table_name, row.row_number) for row in parsed.problems if row.row_number is not None]
    return keys


def count_rows(parsed: ParsedDocument) -> Counter[str]:
    """Return the number of source rows that the reader saw, by table."""
    counts = Counter(table for table, _ in list_source_keys(parsed))
    counts.update({table.name: table.rows.num_rows for table in parsed.columnar})
    return counts


def check_expected_tables(document: Document, parsed: ParsedDocument) -> None:
    """Compare the tables with the sidecar's. Raises CatalogueError for a lost table or another number of rows."""
    counts = count_rows(parsed)
    for name, expected in document.tables.items():
        if counts[name] != expected.rows:
            actual = f"has {counts[name]} rows" if counts[name] else "is missing"
            message = f"{actual}, the sidecar expects {expected.rows}"
            raise CatalogueError(message, document=document.document_id, place=name)
    if document.tables and (unknown := sorted(set(counts) - set(document.tables))):
        raise CatalogueError(f"the sidecar expects no table {', '.join(unknown)}", document=document.document_id)


def check_conservation(parsed: ParsedDocument, document: NormalisedDocument) -> RowCounts:
    """Compare what was read with its fates, row by row and cell by cell. Raises ConservationError."""
    document_id = document.document.document_id
    read = Counter(list_source_keys(parsed))
    fates = [((table, number), status) for (table, number, _), status, _ in list_fates(document)]
    actual = Counter(key for key, _ in fates)
    if read != actual:
        lost, added = sorted((read - actual).elements()), sorted((actual - read).elements())
        raise ConservationError(f"source rows lost {lost[:3]}, without source {added[:3]}", document=document_id)
    _check_cells(parsed, document, fates)
    columnar = sum(table.rows.num_rows for table in parsed.columnar)
    if columnar != sum(table.rows.num_rows for table in document.columnar):
        raise ConservationError(
            f"{columnar} rows read by column are not those that are published", document=document_id
        )
    status = Counter(status for _, status in fates)
    return RowCounts(read.total() + columnar, status["accepted"] + columnar, status["quarantined"], status["duplicate"])


def _check_cells(parsed: ParsedDocument, document: NormalisedDocument, fates: list[tuple[SourceKey, str]]) -> None:
    """Require every cell of an accepted row to be cited by its result."""
    uncited = {key for key, status in fates if status != "accepted"}
    uncited |= {(row.table_name, row.row_number) for row in document.passthrough_only}
    expected = sum(
        len(table.columns) for table in parsed.tables for row in table.rows if (table.name, row.number) not in uncited
    )
    cited = sum(len(fragment.converted) for result in document.results for fragment in result.accepted)
    if expected != cited:
        message = f"{expected} cells in accepted rows, {cited} of them cited"
        raise ConservationError(message, document=document.document.document_id)


PLACE = "place"  # the field of a row that locates it in the source


def build_source_frames(documents: Sequence[NormalisedDocument]) -> dict[str, pd.DataFrame]:
    """Build `cells`, `source_rows` and `quarantine`."""
    rows, quarantine = [], []
    for document in documents:
        document_id = document.document.document_id
        rows += [(document_id, *place, status, result_id) for place, status, result_id in list_fates(document)]
        for row in document.rejected:
            raw = json.dumps(row.raw, ensure_ascii=False)
            place = (document_id, row.table_name, row.row_number, row.locator)
            quarantine.append((*place, row.reason, row.message, raw))
        for table_ in document.columnar:
            numbers = range(1, table_.rows.num_rows + 1)
            rows += [(document_id, table_.name, number, table_.locator(number), "accepted", None) for number in numbers]
    rows.sort(key=lambda row: row[:3])
    quarantine.sort(key=lambda row: row[:3])
    return {
        "cells": _build_cells(documents),
        "source_rows": build_frame_from_tuples(table("source_rows"), rows),
        "quarantine": build_frame_from_tuples(table("quarantine"), quarantine),
    }


def _build_cells(documents: Sequence[NormalisedDocument]) -> pd.DataFrame:
    """Build `cells` column by column, since it has ten times as many rows as `results`."""
    columns: dict[str, list[Any]] = {name: [] for name in table("cells").names}
    for document in documents:
        for result in document.results:
            count = _add_cells(columns, document.document, result)
            columns["result_id"] += [result.result_id] * count
            columns["cell_number"] += range(1, count + 1)
    return build_frame_from_columns(table("cells"), columns)


def _add_cells(columns: Mapping[str, list[Any]], document: Document, result: Result) -> int:
    """Add the cells of one result and return their number."""
    count, document_id = 0, document.document_id
    for fragment in result.accepted:
        source, row = fragment.table, fragment.row
        size, footnotes = len(row.cells), dict(row.footnotes)
        _, figures, units, factors = zip(*fragment.converted, strict=True)
        columns["column_name"] += fragment.fields
        columns["header"] += source.columns
        columns["raw_text"] += row.cells
        columns["value"] += figures
        columns["unit"] += units
        columns["factor"] += factors
        columns["marks"] += [footnotes.get(index) for index in range(size)] if footnotes else [None] * size
        columns["locator"] += [source.cell_locator(row, index) for index in range(size)]
        columns["source_locator"] += _locate_in_source(document, source, row, fragment.fields)
        columns["document_id"] += [document_id] * size
        count += size
    for where, cell in [*((document_id, cell) for cell in result.setup_cells), *result.cited]:
        for name, value in {**cell._asdict(), "source_locator": None, "document_id": where}.items():
            columns[name].append(value)
        count += 1
    return count


def _locate_in_source(
    document: Document, table_: SourceTable, row: SourceRow, fields: Sequence[str]
) -> list[str | None]:
    """Return the place of each cell in the source, None where neither the row nor the sidecar names it."""
    if PLACE in fields:
        return [row.cells[fields.index(PLACE)] or None] * len(row.cells)
    expected = document.tables.get(table_.name)
    if expected is None or expected.place is None:
        return [None] * len(row.cells)
    return [f"{expected.place}, row {row.number}, {header}" for header in table_.columns]


def build_document_frame(documents: Iterable[Document]) -> pd.DataFrame:
    """Build `documents`."""
    return build_frame(table("documents"), [document.record() for document in documents])


def build_vocabulary_frames(results: pd.DataFrame, vocabulary: Vocabulary) -> dict[str, pd.DataFrame]:
    """Build the tables that vocabulary and schema fill; `columns` is the data dictionary of tables and views."""
    rows = [row for published in TABLES for row in dictionary_rows(published)]
    rows += [row for view in VIEWS for row in dictionary_rows(view)]
    return {
        "models": _build_model_frame(results, vocabulary),
        "comparison_remarks": build_frame(table("comparison_remarks"), vocabulary.remarks),
        "operation_counts": build_frame(table("operation_counts"), vocabulary.operation_counts),
        "columns": build_frame(table("columns"), rows),
    }


def _build_model_frame(results: pd.DataFrame, vocabulary: Vocabulary) -> pd.DataFrame:
    """Build `models`: the vocabulary, and each printed name that has no entry in it."""
    entries = vocabulary.list_entries("model")
    unknown = sorted(set(results["model"].dropna().unique()) - {entry["model"] for entry in entries})
    rows = [{column: entry.get(column) for column in table("models").names} for entry in entries]
    rows += [{"model": word, "source": NOT_IN_VOCABULARY} for word in unknown]
    return build_frame(table("models"), sorted(rows, key=lambda row: str(row["model"])))
