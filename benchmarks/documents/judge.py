"""Judge what a reader returned for a document with known figures: exact, reported, or silently
wrong.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ipu_results.errors import (
    BrowserError,
    DocumentError,
    UnprovenDocumentError,
    UnrecognisedDocumentError,
)
from ipu_results.record.normalise import NormalisedDocument, normalise
from ipu_results.record.normalise.fields import PRINTED_COLUMNS
from ipu_results.record.normalise.rows import RejectedRow
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.dispatch import is_page, read_document
from ipu_results.record.read.text import clean
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema.vocabulary import TableHeader, load_vocabulary

from benchmarks.documents.evidence import find_shown
from benchmarks.documents.tables import FIGURE_FIELDS, UNREADABLE, Cell, Table

SPANNED = "one cell spans the row"
"""The report on a note in a table, which excuses no missing row."""
NOT_SIGNED = re.compile(
    r"thousand|million|kilo|1[,.]?000|1e3|10\^|10[³⁴-⁹]|tausend|tsd|'000|000'?s|in k\b", re.I
)
"""Words that a person who is asked to sign them recognises as a scale: it is enough that they are
shown.
"""
EXACT = "exact"
REPORTED = "reported"
SILENT = "silent"

Value = tuple[float | None, str]
"""A figure with its metric, or a text."""
Row = frozenset[tuple[str, Value]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a document was read; `reason` is the first report, or what is silently wrong."""

    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One document of a kind, what is in it, and how it was read."""

    kind: str
    name: str
    data: bytes
    tables: Sequence[Table]
    verdict: Verdict


def read_and_judge(data: bytes, tables: Sequence[Table]) -> Verdict:
    """Read a document as `ingest` does, and normalise it.

    Every row of the results must be a printed one with each of its texts and figures. A printed row
    may be missing only if a row was quarantined for it, its table is a problem, or the document is
    refused.
    """
    printed = []
    for table in tables:
        printed += [(table.header.table, row) for row in find_printed_rows(table)]
    return judge_rows(data, tables[0].header.reader, printed)


def judge_rows(data: bytes, reader: str, printed: Sequence[tuple[str, Row]]) -> Verdict:
    """Judge a document of a kind by the rows that are printed in it, each with the name of its
    table.
    """
    printed = [(name, _name_columns(row)) for name, row in printed]
    vocabulary = load_vocabulary()
    try:
        parsed = _read(data, vocabulary.table_headers, reader)
    except (DocumentError, BrowserError) as error:
        return Verdict(REPORTED, str(error))
    for words in parsed.context:
        if NOT_SIGNED.search(words.text):
            return Verdict(REPORTED, f"not signed: {words.text}")
    normalised = normalise(_make_document(reader), parsed, vocabulary)
    read = _list_rows(normalised)
    for name, row in read:
        if (name, row) not in printed:
            others = [other for table, other in printed if table == name]
            return Verdict(SILENT, f"{name}: {describe_difference(row, others)}")
    missing = Counter(name for name, row in printed if (name, row) not in read)
    if not missing:
        return Verdict(EXACT)
    # A report on a row excuses one missing row, a report on a table all that are missing of one
    # table.
    rejected = [row for row in normalised.rejected if not _is_note(row)]
    refused = [problem for problem in parsed.problems if problem.row_number is None]
    reports = [f"{row.reason}: {row.message}" for row in rejected]
    reports += [f"{problem.reason}: {problem.message}" for problem in refused]
    excused = sum(count for _, count in missing.most_common(len(refused)))
    if missing.total() > len(rejected) + excused:
        return Verdict(SILENT, f"{missing.total()} rows are missing, reported are {reports}")
    return Verdict(REPORTED, reports[0])


def _read(data: bytes, headers: Sequence[TableHeader], reader: str) -> ParsedDocument:
    """Read a document as `add` does: a page that is not plain with evidence, if that can be had."""
    try:
        return read_document(data, headers, reader)
    except (UnprovenDocumentError, UnrecognisedDocumentError):
        shown = find_shown(data) if is_page(data) else None
        if shown is None:
            raise
    return read_document(data, headers, reader, shown)


def _name_columns(row: Row) -> Row:
    """Call the fields of a printed row as their cells call them."""
    return frozenset((PRINTED_COLUMNS.get(field, field), value) for field, value in row)


def _is_note(row: RejectedRow) -> bool:
    return row.message == SPANNED and any(map(str.isalpha, "".join(row.raw)))


def _make_document(reader: str) -> Document:
    text = "generated"
    return Document(
        document_id=text,
        title=text,
        publisher=text,
        url="https://example.org",
        published_on=date(2023, 7, 4),
        kind=text,
        licence=text,
        sha256="0" * 64,
        reader=reader,
        note=text,
        path=Path(text),
        file=text,
    )


def _list_rows(normalised: NormalisedDocument) -> set[tuple[str, Row]]:
    """Return the rows of the results, each with the name of its table."""
    cells: dict[tuple[str, int], set[tuple[str, Value]]] = defaultdict(set)
    for cell in normalised.cells.to_pylist():
        field = cell["column_name"]
        value: Value = (None, clean(cell["raw_text"]))
        if cell["value"] is not None and field in FIGURE_FIELDS:
            # the unit of other figures is that of their column
            metric = cell["unit"] if field == "quality_value" else None
            value = (cell["value"], metric or "")
        cells[cell["table_name"], cell["row_number"]].add((field, value))
    return {(name, frozenset(row)) for (name, _), row in cells.items()}


def find_printed_rows(table: Table) -> list[Row]:
    """Return what the rows say. A row with an unreadable cell equals no row."""
    rows = []
    for row in table.rows:
        values = map(_print_value, row)
        rows.append(frozenset(zip(table.fields, values, strict=True)))
    return rows


def _print_value(cell: Cell) -> Value:
    if cell.value is not None:
        return float(cell.value), cell.metric
    return None, UNREADABLE if cell.metric == UNREADABLE else clean(cell.text)


def describe_difference(row: Row, others: Sequence[Row]) -> str:
    """Describe how a row differs from the printed row that it resembles most."""
    nearest = max(others, key=lambda other: len(other & row), default=frozenset())
    printed = dict(nearest)
    parts = []
    for name, value in sorted(row - nearest, key=str):
        parts.append(f"{name} reads {value}, printed is {printed.get(name)}")
    return "; ".join(parts)[:300]
