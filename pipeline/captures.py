"""Captures beside transcriptions: every cell in which a downloaded version differs from ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from pipeline.catalogue import Document
from pipeline.errors import CatalogueError, DocumentError
from pipeline.read import Reading, Table, read
from pipeline.read.layouts import fold
from pipeline.vocabulary import Vocabulary

Difference = dict[str, Any]


def compare_captures(
    captures: Sequence[Document], readings: Mapping[str, Reading], words: Vocabulary, max_bytes: int, max_pages: int
) -> list[Difference]:
    """Rows of `capture_differences`. A capture that cannot be read is one difference; it never stops a build.

    Raises CatalogueError for a capture of a document that is not in the catalogue.
    """
    rows: list[Difference] = []
    for capture in captures:
        original = capture.transcription_of or ""
        if original not in readings:
            message = f"is a capture of {original!r}, which is not here"
            raise CatalogueError(message, document=capture.document_id)
        found = list(_compare_one(capture, readings[original], words, max_bytes, max_pages))
        keys = {"document_id": original, "capture_id": capture.document_id}
        rows += [keys | {"number": number} | difference for number, difference in enumerate(found, start=1)]
    return rows


def _compare_one(
    capture: Document, ours: Reading, words: Vocabulary, max_bytes: int, max_pages: int
) -> Iterator[Difference]:
    try:
        data = capture.bytes(max_bytes)
        reading = read(data, words.layouts, capture.reader, max_bytes=max_bytes, max_pages=max_pages)
    except DocumentError as error:
        yield {"kind": "unreadable", "locator": error.place or "document", "captured": error.message}
        return
    yield from differences(ours, reading)


def differences(ours: Reading, theirs: Reading) -> Iterator[Difference]:
    """Cells, rows and tables in which two readings differ; rows are matched in order, not by position."""
    captured = {table.name: table for table in theirs.tables}
    for table in ours.tables:
        if table.name in captured:
            yield from _tables(table, captured.pop(table.name))
        else:
            yield {"kind": "table", "table_name": table.name, "locator": table.locator, "transcribed": table.name}
    for table in captured.values():
        yield {"kind": "table", "table_name": table.name, "locator": table.locator, "captured": table.name}
    for problem in theirs.problems:
        name = problem.table_name or None
        yield {"kind": "row", "table_name": name, "locator": problem.locator, "captured": problem.message}


def _tables(ours: Table, theirs: Table) -> Iterator[Difference]:
    theirs = _in_order_of(ours, theirs)
    yield from _headers(ours, theirs)
    left, right = [row.cells for row in ours.rows], [row.cells for row in theirs.rows]
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        shared = min(b - a, d - c)
        for offset in range(shared):
            yield from _cells(ours, a + offset, theirs, c + offset)
        for index in range(a + shared, b):
            row = ours.rows[index]
            yield {"kind": "row", "table_name": ours.name, "locator": row.locator, "transcribed": " | ".join(row.cells)}
        for index in range(c + shared, d):
            row = theirs.rows[index]
            yield {"kind": "row", "table_name": ours.name, "locator": row.locator, "captured": " | ".join(row.cells)}


def _headers(ours: Table, theirs: Table) -> Iterator[Difference]:
    """Names of one column that are printed differently; the unit may be what differs."""
    for column, (name, captured) in enumerate(zip(ours.columns, theirs.columns, strict=True), start=1):
        if name != captured:
            place = f"{ours.locator}, header, column {column}"
            yield {
                "kind": "cell",
                "table_name": ours.name,
                "locator": place,
                "transcribed": name,
                "captured": captured,
            }


def _cells(ours: Table, i: int, theirs: Table, j: int) -> Iterator[Difference]:
    one, other = ours.rows[i], theirs.rows[j]
    for column, (text, captured) in enumerate(zip(one.cells, other.cells, strict=False)):
        if text != captured:
            place = ours.cell_locator(one, column)
            yield {"kind": "cell", "table_name": ours.name, "locator": place, "transcribed": text, "captured": captured}


def _in_order_of(ours: Table, theirs: Table) -> Table:
    """The captured table with its columns in the order of ours; both have the same layout."""
    names = [fold(name) for name in theirs.columns]
    order = [names.index(fold(name)) for name in ours.columns]
    rows = tuple(
        replace(
            row,
            cells=tuple(row.cells[i] for i in order),
            cell_locators=tuple(theirs.cell_locator(row, i) for i in order),
        )
        for row in theirs.rows
    )
    return replace(theirs, columns=tuple(theirs.columns[i] for i in order), rows=rows)
