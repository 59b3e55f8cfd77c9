"""Captures beside transcriptions: every cell in which a downloaded version differs from ours."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ipu_results.errors import CatalogueError, DocumentError
from ipu_results.read import ParsedDocument, SourceTable, read_document
from ipu_results.schema.layouts import normalise_header
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

Difference = dict[str, Any]
Cells = tuple[str, ...]


def compare_captures(
    captures: Sequence[Document],
    readings: Mapping[str, ParsedDocument],
    words: Vocabulary,
    max_bytes: int,
    max_pages: int,
) -> list[Difference]:
    """Rows of `capture_differences`. A capture that cannot be read, or that is not the file its sidecar
    vouches for, is one difference; it never stops a build.

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
    capture: Document, ours: ParsedDocument, words: Vocabulary, max_bytes: int, max_pages: int
) -> Iterator[Difference]:
    try:
        data = capture.read_bytes(max_bytes)
        reading = read_document(data, words.layouts, capture.reader, max_bytes=max_bytes, max_pages=max_pages)
    except (CatalogueError, DocumentError) as error:
        yield {"kind": "unreadable", "locator": error.place or "document", "captured": error.message}
        return
    yield from differences(ours, reading)


def differences(ours: ParsedDocument, theirs: ParsedDocument) -> Iterator[Difference]:
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


def _tables(ours: SourceTable, theirs: SourceTable) -> Iterator[Difference]:
    theirs = _in_order_of(ours, theirs)
    yield from _headers(ours, theirs)
    left, right = [row.cells for row in ours.rows], [row.cells for row in theirs.rows]
    for a, b, c, d in _gaps(left, right):
        shared = min(b - a, d - c)
        for offset in range(shared):
            yield from _cells(ours, a + offset, theirs, c + offset)
        for index in range(a + shared, b):
            row = ours.rows[index]
            yield {"kind": "row", "table_name": ours.name, "locator": row.locator, "transcribed": " | ".join(row.cells)}
        for index in range(c + shared, d):
            row = theirs.rows[index]
            yield {"kind": "row", "table_name": ours.name, "locator": row.locator, "captured": " | ".join(row.cells)}


def _gaps(left: Sequence[Cells], right: Sequence[Cells]) -> Iterator[tuple[int, int, int, int]]:
    """Where the two lists differ, as left[a:b] and right[c:d]."""
    i = j = 0
    for a, c in [*_matches(left, right), (len(left), len(right))]:
        if (i, j) != (a, c):
            yield i, a, j, c
        i, j = a + 1, c + 1


def _matches(left: Sequence[Cells], right: Sequence[Cells]) -> list[tuple[int, int]]:
    """Pairs of equal rows, both sides rising: common start and end, and between them the longest such choice.

    The n-th of several equal rows is matched with the n-th, so that the time hardly grows faster than the rows.
    """
    start = _alike(left, right)
    end = _alike(left[start:][::-1], right[start:][::-1])
    where = {row: j for j, row in enumerate(_numbered(right[start : len(right) - end]), start)}
    ours = enumerate(_numbered(left[start : len(left) - end]), start)
    between = _rising([(i, where[row]) for i, row in ours if row in where])
    ending = [(len(left) - n, len(right) - n) for n in range(end, 0, -1)]
    return [(n, n) for n in range(start)] + between + ending


def _alike(left: Sequence[Cells], right: Sequence[Cells]) -> int:
    """How many rows from the start are equal."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(left), len(right)))


def _numbered(rows: Sequence[Cells]) -> Iterator[tuple[Cells, int]]:
    """Each row with the number of equal rows before it: no two are the same."""
    seen: Counter[Cells] = Counter()
    for row in rows:
        yield row, seen[row]
        seen[row] += 1


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of pairs, in order, whose second numbers rise; the first ones do already."""
    lowest: list[int] = []  # the lowest end of a choice of each length, and where in `pairs` that is
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        length = bisect_left(lowest, j)
        before.append(at[length - 1] if length else -1)
        lowest[length : length + 1] = [j]
        at[length : length + 1] = [n]
    found: list[tuple[int, int]] = []
    n = at[-1] if at else -1
    while n >= 0:
        found.append(pairs[n])
        n = before[n]
    return found[::-1]


def _headers(ours: SourceTable, theirs: SourceTable) -> Iterator[Difference]:
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


def _cells(ours: SourceTable, i: int, theirs: SourceTable, j: int) -> Iterator[Difference]:
    one, other = ours.rows[i], theirs.rows[j]
    for column, (text, captured) in enumerate(zip(one.cells, other.cells, strict=True)):
        if text != captured:
            place = ours.cell_locator(one, column)
            yield {"kind": "cell", "table_name": ours.name, "locator": place, "transcribed": text, "captured": captured}


def _in_order_of(ours: SourceTable, theirs: SourceTable) -> SourceTable:
    """The captured table with its columns in the order of ours; both have the same layout."""
    names = [normalise_header(name) for name in theirs.columns]
    order = [names.index(normalise_header(name)) for name in ours.columns]
    rows = tuple(
        replace(
            row,
            cells=tuple(row.cells[i] for i in order),
            cell_locators=tuple(theirs.cell_locator(row, i) for i in order),
        )
        for row in theirs.rows
    )
    return replace(theirs, columns=tuple(theirs.columns[i] for i in order), rows=rows)
