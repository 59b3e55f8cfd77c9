"""Prove that no source row is lost: each is accepted, quarantined or a duplicate, and keeps all its
cells.

The tables that record this are built here, with those that follow from documents and vocabulary.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.errors import CatalogueError, ConservationError
from ipu_results.link.platforms import NOT_IN_VOCABULARY
from ipu_results.normalise import Cell, NormalisedDocument
from ipu_results.normalise.fields import CellValues
from ipu_results.normalise.rows import Fragments
from ipu_results.read.document import ParsedDocument, SourceTable
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
    EncodedColumn,
    Integers,
    arrow_schema,
    build_frame,
    build_frame_from_columns,
    build_frame_from_tuples,
    join_encoded,
)
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


class Fates(NamedTuple):
    """What became of the source rows of a document, by column; the columns are those of
    `source_rows`.
    """

    table_name: list[str]
    row_number: list[int]
    locator: list[str]
    status: list[str]
    result_id: list[str | None]

    def add(self, *rows: Iterable[Any]) -> None:
        columns: Iterable[list[Any]] = self
        for column, values in zip(columns, rows, strict=True):
            column.extend(values)


def list_fates(document: NormalisedDocument) -> Fates:
    """List every source row that is not in a columnar table."""
    results = document.results
    fates = Fates([], [], [], [], [])
    for number, part in enumerate(results.parts):
        own = results.sources.take(results.sources.part == number)
        rows = part.rows[own.place].tolist()
        table_ = part.table
        fates.add(
            [table_.name] * len(rows),
            [table_.numbers[row] for row in rows],
            [table_.locators[row] for row in rows],
            ["duplicate" if flag else "accepted" for flag in own.is_duplicate.tolist()],
            [results.ids[owner] for owner in own.owner.tolist()],
        )
    others = ((document.passthrough_only, "accepted"), (document.rejected, "quarantined"))
    for row, status in ((row, status) for rows, status in others for row in rows):
        fates.add([row.table_name], [row.row_number], [row.locator], [status], [None])
    return fates


def list_source_keys(parsed: ParsedDocument) -> list[SourceKey]:
    """Return (table, row number) of every source row that the reader saw."""
    keys = [
        key
        for table in parsed.tables
        for key in zip(repeat(table.name), table.numbers, strict=False)
    ]
    keys += [
        (row.table_name, row.row_number) for row in parsed.problems if row.row_number is not None
    ]
    return keys


def count_rows(parsed: ParsedDocument) -> Counter[str]:
    """Return the number of source rows that the reader saw, by table."""
    counts = Counter(row.table_name for row in parsed.problems if row.row_number is not None)
    counts.update({table.name: len(table.numbers) for table in parsed.tables})
    counts.update({table.name: table.rows.num_rows for table in parsed.columnar})
    return counts


def check_expected_tables(document: Document, parsed: ParsedDocument) -> None:
    """Compare the tables with the sidecar's.

    Raises CatalogueError for a lost table or another number of rows.
    """
    counts = count_rows(parsed)
    for name, expected in document.tables.items():
        if counts[name] != expected.rows:
            actual = f"has {counts[name]} rows" if counts[name] else "is missing"
            message = f"{actual}, the sidecar expects {expected.rows}"
            raise CatalogueError(message, document=document.document_id, place=name)
    if document.tables and (unknown := sorted(set(counts) - set(document.tables))):
        raise CatalogueError(
            f"the sidecar expects no table {', '.join(unknown)}", document=document.document_id
        )


def check_conservation(parsed: ParsedDocument, document: NormalisedDocument) -> RowCounts:
    """Compare what was read with its fates, row by row and cell by cell.

    Raises ConservationError.
    """
    document_id = document.document.document_id
    read = Counter(list_source_keys(parsed))
    fates = list_fates(document)
    actual = Counter(zip(fates.table_name, fates.row_number, strict=True))
    if read != actual:
        lost = sorted((read - actual).elements())
        added = sorted((actual - read).elements())
        raise ConservationError(
            f"source rows lost {lost[:3]}, without source {added[:3]}", document=document_id
        )
    _check_cells(parsed, document, fates)
    columnar = sum(table.rows.num_rows for table in parsed.columnar)
    if columnar != sum(table.rows.num_rows for table in document.columnar):
        raise ConservationError(
            f"{columnar} rows read by column are not those that are published", document=document_id
        )
    status = Counter(fates.status)
    return RowCounts(
        read.total() + columnar,
        status["accepted"] + columnar,
        status["quarantined"],
        status["duplicate"],
    )


def _check_cells(parsed: ParsedDocument, document: NormalisedDocument, fates: Fates) -> None:
    """Require every cell of an accepted row to be cited by its result."""
    widths = {table.name: len(table.columns) for table in parsed.tables}
    expected = sum(widths[table.name] * len(table.numbers) for table in parsed.tables)
    # Rows that the reader could not divide into cells are quarantined, but not in a table.
    unread = {(row.table_name, row.row_number) for row in parsed.problems}
    uncited = Counter(
        name
        for name, number, status, result_id in zip(
            fates.table_name, fates.row_number, fates.status, fates.result_id, strict=True
        )
        if (status != "accepted" or result_id is None) and (name, number) not in unread
    )
    expected -= sum(widths.get(name, 0) * count for name, count in uncited.items())
    sources = document.results.sources
    accepted = np.bincount(
        sources.part[~sources.is_duplicate], minlength=len(document.results.parts)
    ).tolist()
    cited = sum(
        len(part.converted) * count
        for part, count in zip(document.results.parts, accepted, strict=True)
    )
    if expected != cited:
        message = f"{expected} cells in accepted rows, {cited} of them cited"
        raise ConservationError(message, document=document.document.document_id)


NO_ENTRY = (None,) * 6  # of a text that is in quarantined rows only
PLACE = "place"  # the field of a row that locates it in the source


def build_source_frames(documents: Sequence[NormalisedDocument]) -> dict[str, pd.DataFrame]:
    """Build `source_rows` and `quarantine`."""
    quarantine = []
    columns: dict[str, list[Any]] = {name: [] for name in ("document_id", *Fates._fields)}
    for document in documents:
        document_id = document.document.document_id
        fates = list_fates(document)
        for row in document.rejected:
            raw = json.dumps(row.raw, ensure_ascii=False)
            place = (document_id, row.table_name, row.row_number, row.locator)
            quarantine.append((*place, row.reason, row.message, raw))
        for table_ in document.columnar:
            count = table_.rows.num_rows
            numbers = range(1, count + 1)
            places = map(table_.locator, numbers)
            fates.add([table_.name] * count, numbers, places, ["accepted"] * count, [None] * count)
        columns["document_id"] += [document_id] * len(fates.status)
        for name, values in fates._asdict().items():
            columns[name] += values
    quarantine.sort(key=lambda row: row[:3])
    rows = pa.table(
        {
            name: pa.array(values, arrow_schema(table("source_rows")).field(name).type)
            for name, values in columns.items()
        }
    )
    rows = rows.sort_by([(name, "ascending") for name in table("source_rows").names[:3]])
    return {
        "source_rows": build_frame_from_columns(
            table("source_rows"), dict(zip(rows.column_names, rows.columns, strict=True))
        ),
        "quarantine": build_frame_from_tuples(table("quarantine"), quarantine),
    }


def list_source_tables(
    document: Document, parsed: ParsedDocument, vocabulary: Vocabulary
) -> list[dict[str, Any]]:
    """Return the rows of `source_tables` for one document."""
    rows = []
    for read in parsed.tables:
        expected = document.tables.get(read.name)
        row = {
            "document_id": document.document_id,
            "table_name": read.name,
            "header_printed": vocabulary.header_of(document.reader, read.name).strict,
            "section_platform": expected and expected.platform,
        }
        rows.append(row)
    return rows


class CellColumns:
    """The cells of one document by column, filled table by table: each cell is at the place that
    its result gives it.

    What a text of a column says is an entry; a cell has the number of its entry. The place of a
    cell is a text joined of two parts, such as "line 29" and ", column 3 (Batch size)", which are
    numbered as well.
    """

    def __init__(self, document: NormalisedDocument) -> None:
        results = document.results
        sources = results.sources.take(~results.sources.is_duplicate)
        self.document = document.document
        self.entries: list[tuple[Any, ...]] = []
        self.bases: list[list[str | None]] = [[], [None]]  # of `locator` and of `source_locator`
        self.ends: list[list[str]] = [[""], [""]]
        widths = np.array([len(part.fields) for part in results.parts], int)[sources.part]
        own = np.bincount(sources.owner, widths, len(results)).astype(int)
        more = np.array([len(results.cited.get(number, ())) for number in range(len(results))], int)
        sizes = own + len(results.setup_cells) + more
        starts = np.cumsum(sizes) - sizes
        before = np.cumsum(widths) - widths  # cells of all rows before a row
        places = starts[sources.owner] + before - (np.cumsum(own) - own)[sources.owner]
        count = int(sizes.sum())
        self.owner = np.repeat(np.arange(len(results)), sizes)
        self.number = np.arange(count) - starts[self.owner] + 1
        self.entry, *codes = (np.zeros(count, np.int32) for _ in range(5))
        self.base = codes[:2]
        self.end = codes[2:]
        self.elsewhere: dict[int, str] = {}  # cells of other documents
        for number, part in enumerate(results.parts):
            chosen = sources.part == number
            self._add_part(part, part.rows[sources.place[chosen]], places[chosen])
        for offset, cell in enumerate(results.setup_cells):
            self._add_cell(starts + own + offset, cell)
        for position, cited in results.cited.items():
            place = starts[position] + own[position] + len(results.setup_cells)
            for offset, (document_id, cell) in enumerate(cited):
                self._add_cell(place + offset, cell)
                self.elsewhere[int(place + offset)] = document_id

    def _add_cell(self, places: Any, cell: Cell) -> None:
        self.entry[places] = len(self.entries)
        self.base[0][places] = len(self.bases[0])
        self.entries.append((*cell[:-2],))
        self.bases[0].append(cell.locator)

    def _add_part(self, part: Fragments, rows: Integers, places: Integers) -> None:
        """Add the cells of some rows; the first cell of each has its place."""
        table_ = part.table
        expected = self.document.tables.get(table_.name)
        in_source = expected.place if expected else None
        first, second = map(len, self.bases)
        self.bases[0] += table_.locators
        if PLACE in part.fields:
            texts = table_.texts[part.fields.index(PLACE)]
            self.bases[1] += [text or None for text in texts.distinct]
            bases = second + np.asarray(texts.codes)[rows]
        elif in_source is not None:
            self.bases[1] += [f"{in_source}, row {number}" for number in table_.numbers]
            bases = second + rows
        else:
            bases = np.zeros(len(rows), int)
        for column, (name, header, texts) in enumerate(
            zip(part.columns, table_.columns, table_.texts, strict=True)
        ):
            at = places + column
            self.entry[at] = len(self.entries) + np.asarray(texts.codes)[rows]
            self.entries += [
                (name, header, text, *cell[1:]) if isinstance(cell, CellValues) else NO_ENTRY
                for text, cell in zip(texts.distinct, part.converted[column], strict=True)
            ]
            self.base[0][at] = first + rows
            self.end[0][at] = len(self.ends[0])
            self.ends[0].append(f", column {column + 1} ({header})")
            self.base[1][at] = bases
            if PLACE not in part.fields:
                self.end[1][at] = len(self.ends[1])
                self.ends[1].append(f", {header}")
        if table_.cell_locators or table_.footnotes:
            self._add_exceptions(table_, dict(zip(rows.tolist(), places.tolist(), strict=True)))

    def _add_exceptions(self, table_: SourceTable, places: Mapping[int, int]) -> None:
        """Add the places of cells that are in finer places than row and column, and footnotes."""
        for row, place in places.items():
            if table_.cell_locators and (locators := table_.cell_locators[row]):
                at = slice(place, place + len(locators))
                self.base[0][at] = len(self.bases[0]) + np.arange(len(locators))
                self.end[0][at] = 0
                self.bases[0] += locators
        for row, column, mark in table_.footnotes:
            if row in places:
                cell = places[row] + column
                end = f"{self.ends[0][self.end[0][cell]]}, footnote {mark}"
                self.end[0][cell] = len(self.ends[0])
                self.ends[0].append(end)

    def to_table(self, ids: Sequence[str]) -> pa.Table:
        """Return `cells` of this document with encoded texts; `ids` are those of its results."""
        entries = zip(*self.entries, strict=True) if self.entries else ([] for _ in NO_ENTRY)
        own = dict(
            zip(
                ("column_name", "header", "raw_text", "value", "unit", "factor"),
                entries,
                strict=True,
            )
        )
        columns: dict[str, pa.Array] = {
            **{
                name: pa.array(own.pop(name), pa.float64()).take(pa.array(self.entry))
                for name in ("value", "factor")
            },
            **{
                name: EncodedColumn(self.entry, values).to_dictionary()
                for name, values in own.items()
            },
            "result_id": EncodedColumn(self.owner + 1, [None, *ids]).to_dictionary(),
            "cell_number": pa.array(self.number, pa.int64()),
            "document_id": self._get_documents().to_dictionary(),
            "locator": self._join_places(0),  # most differ
            "source_locator": self._join_places(1).dictionary_encode(),
        }
        return pa.table({name: columns[name] for name in table("cells").names})

    def _join_places(self, which: int) -> pa.Array:
        """Return the `locator` (0) or `source_locator` (1) of each cell."""
        bases = pa.array(self.bases[which], pa.string()).take(pa.array(self.base[which]))
        ends = pa.array(self.ends[which], pa.string()).take(pa.array(self.end[which]))
        return pc.binary_join_element_wise(bases, ends, "")

    def _get_documents(self) -> EncodedColumn:
        codes = np.ones(len(self.entry), np.int32)
        codes[list(self.elsewhere)] = np.arange(2, len(self.elsewhere) + 2)
        return EncodedColumn(codes, [None, self.document.document_id, *self.elsewhere.values()])


def build_cells(documents: Iterable[NormalisedDocument]) -> Iterator[pa.Table]:
    """Build `cells` of each document with results, in Arrow: it has ten times as many rows as
    `results`.
    """
    for document in documents:
        if document.results:
            yield CellColumns(document).to_table(document.results.ids)


def join_cells(parts: Sequence[pa.Table]) -> pa.Table:
    """Join the `cells` of documents, none of which may have any."""
    return join_encoded(parts) if parts else arrow_schema(table("cells")).empty_table()


def build_document_frame(documents: Iterable[Document]) -> pd.DataFrame:
    """Build `documents`."""
    return build_frame(table("documents"), [document.record() for document in documents])


def build_vocabulary_frames(
    results: pd.DataFrame, entries: pd.DataFrame, vocabulary: Vocabulary
) -> dict[str, pd.DataFrame]:
    """Build the tables that vocabulary and schema fill; `entries` is `mlperf_entries`.

    `relations` and `columns` are the data dictionary of tables and views.
    """
    relations: tuple[Table | View, ...] = (*TABLES, *VIEWS)
    columns = [row for relation in relations for row in list_dictionary_rows(relation)]
    return {
        "models": _build_model_frame(results, entries, vocabulary),
        "comparison_remarks": build_frame(table("comparison_remarks"), vocabulary.remarks),
        "operation_counts": build_frame(table("operation_counts"), vocabulary.operation_counts),
        "relations": build_frame(
            table("relations"), [describe_relation(relation) for relation in relations]
        ),
        "columns": build_frame(table("columns"), columns),
    }


def _build_model_frame(
    results: pd.DataFrame, entries: pd.DataFrame, vocabulary: Vocabulary
) -> pd.DataFrame:
    """Build `models`: the vocabulary, the networks that `results.model` tells apart under a printed
    name, those of MLPerf's benchmarks, and each printed name that has no entry.
    """
    models = {entry["model"]: entry for entry in vocabulary.list_entries("model")}
    told_apart = [*vocabulary.derived["model"], *map(asdict, vocabulary.identities)]
    for entry in told_apart:
        item = models.get(entry["model_printed"], {}).get("item")
        own = {"model": entry["model"], "item": item, "source": entry["source"]}
        models.setdefault(entry["model"], own)
    for name in entries["model"].dropna().unique():
        models.setdefault(name, {"model": name, "source": "detail.mlperf_comparability"})
    for name in results["model_printed"].unique():
        models.setdefault(name, {"model": name, "source": NOT_IN_VOCABULARY})
    names = table("models").names
    rows = [{name: entry.get(name) for name in names} for entry in models.values()]
    return build_frame(table("models"), sorted(rows, key=lambda row: str(row["model"])))
