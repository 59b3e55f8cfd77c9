"""Read the tables and setup metadata of a paper from a PDF in one column or two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read.document import MetadataItem, ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.read.paper import terms
from ipu_results.read.pdf.captions import Caption, assign_to_tables, find_captions, find_promised_header
from ipu_results.read.pdf.columns import make_columns
from ipu_results.read.pdf.continued import join_continued
from ipu_results.read.pdf.pages import PageWords, describe_failure, open_pdf, read_page_texts, read_words
from ipu_results.read.pdf.rows import PrintedRow
from ipu_results.read.pdf.tables import PrintedTable, find_tables
from ipu_results.read.pdf.unread import (
    find_hidden_pages,
    find_turned_tables,
    find_undivided_headers,
    find_unread_tables,
)
from ipu_results.read.pdf.words import Box, PrintedCell, Strip, build_lines, enclose, split_columns
from ipu_results.read.text import is_power, lift_footnote
from ipu_results.schema.table_headers import TableHeader, find_headers

CAPTION_ANYWHERE = re.compile(r"\btable\s+(?:\d|[ivxl]+\b)")


def read_pdf(data: bytes, headers: Sequence[TableHeader], *, max_pages: int = 500) -> ParsedDocument:
    """Read the tables whose column names are those of one of `headers`, with captions, boxes and setup metadata.

    A cell belongs to the column that it is under: a lost label is `""`. A row without its figure, or with cells whose
    columns are ambiguous, is a problem, and so is a caption whose table has no known header. Metadata is read by line.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password, DocumentTooLargeError above
    `max_pages` pages, and UnrecognisedDocumentError if there is no table.
    """
    data = open_pdf(data, max_pages)
    texts = read_page_texts(data, max_pages)
    pages = read_words(data, _select_pages(texts, headers))
    while more := _find_next_pages(pages, len(texts), headers):
        pages = sorted([*pages, *read_words(data, more)], key=lambda page: page.number)
    tables, columns, wide = _find_tables(pages, headers)
    document = _make_document(tables, columns, wide, headers)
    problems = (*document.problems, *find_turned_tables(pages, headers))
    if not document.tables and not problems:
        raise UnrecognisedDocumentError(describe_failure(data, find_hidden_pages(pages, headers)))
    document = replace(document, problems=problems)
    return terms.refuse_incomplete_tables(document, headers)


def _find_next_pages(pages: Sequence[PageWords], count: int, headers: Sequence[TableHeader]) -> list[int]:
    """Return the pages after those that a table ends on, if they were not read."""
    numbers = {page.number for page in pages}
    ends = {row.box.page for table in _find_tables(pages, headers)[0] for row in table.rows}
    return sorted({page + 1 for page in ends if page < count} - numbers)


def _find_tables(
    pages: Sequence[PageWords], headers: Sequence[TableHeader]
) -> tuple[list[PrintedTable], list[Strip], list[Strip]]:
    """Return the tables on some pages, the columns of these pages, and the whole of those with several columns."""
    wholes = [build_lines(page.words) for page in pages]
    split = [split_columns(lines, page.width) for lines, page in zip(wholes, pages, strict=True)]
    columns = [column for page in split for column in page]
    # A table may span both columns of a page, so such pages are also searched as a whole.
    wide = [lines for lines, page in zip(wholes, split, strict=True) if len(page) > 1]
    return find_tables([*columns, *wide], len(columns), headers), columns, wide


def _select_pages(texts: Sequence[str], headers: Sequence[TableHeader]) -> list[int]:
    """Return the pages with a header, a caption or metadata, and those where a table may continue."""
    pages: set[int] = set()
    for number, text in enumerate(texts, 1):
        words = re.sub(r"[\s\-_]+", " ", text.translate(terms.LIGATURES)).casefold()
        if any(all(name in words for name in header.keys) or _has_words(words, header) for header in headers):
            pages |= {number, number + 1}
        elif CAPTION_ANYWHERE.search(words) or any(f"{label.casefold()}:" in words for label in terms.METADATA_LABELS):
            pages.add(number)
    return sorted(number for number in pages if number <= len(texts))


def _has_words(text: str, header: TableHeader) -> bool:
    """Check whether a page has all words of a header with long names: they may be on several lines."""
    return set(text.split()) >= {word for name in header.keys for word in name.split()}


def _make_document(
    printed: Sequence[PrintedTable], columns: Sequence[Strip], wide: Sequence[Strip], headers: Sequence[TableHeader]
) -> ParsedDocument:
    names = terms.known_names(headers)
    taken = frozenset(box for table in printed for box in table.cell_boxes)
    captions = find_captions(columns, taken, names)
    parts = assign_to_tables(printed, captions, headers)
    printed, assigned = join_continued(printed, parts, captions, [*columns, *wide], len(columns))
    tables: dict[str, SourceTable] = {}
    problems: list[ReadProblem] = []
    for number, table in enumerate(printed):
        name = table.header.header.table
        if name in tables or not table.rows:
            reason, message = "cells-missing", "no rows under the header"
            if name in tables:
                reason, message = "duplicate-table", "a table with this header was already read"
            problems.append(ReadProblem(name, None, table.locator, reason, message, table.header.names))
            continue
        rows, row_problems = _read_rows(table, headers)
        problems += row_problems
        if rows:
            caption = captions[assigned[number]].text if number in assigned else ""
            tables[name] = SourceTable(name, table.header.names, rows, table.locator, caption)
    free = [caption for number, caption in enumerate(captions) if number not in parts.values()]
    missing = [header for header in headers if all(table.header.header is not header for table in printed)]
    problems += _report_broken_promises(free, columns, taken, missing, headers)
    problems += _report_rows_below(printed, taken)
    reported = {problem.table_name for problem in problems if problem.row_number is None}
    undivided = list(find_undivided_headers([*columns, *wide], taken, headers))
    problems += undivided if tables else [problem for problem in undivided if problem.table_name not in reported]
    reported |= {problem.table_name for problem in undivided}
    times: Counter[str] = Counter()
    for problem in find_unread_tables(columns, taken, headers):
        # A name that is there again belongs to another table.
        key = problem.message
        times[key] += 1
        name = problem.table_name if times[key] == 1 else f"{problem.table_name}, {times[key]}"
        if name not in reported:
            reported.add(name)
            problems.append(problem)
    return ParsedDocument(tuple(tables.values()), tuple(problems), tuple(_find_metadata(columns)))


def _read_rows(table: PrintedTable, headers: Sequence[TableHeader]) -> tuple[tuple[SourceRow, ...], list[ReadProblem]]:
    """Divide the rows into those that have their figures and the problems of the others."""
    optional = make_columns(table.header.cells, table.header.headers).optional
    rows: list[SourceRow] = []
    problems: list[ReadProblem] = []
    for number, row in enumerate(table.rows, 1):
        lost = {column for column, cell in enumerate(row.cells) if cell is None}
        doubt = next((f"{cell.text!r}: {doubt}" for cell in row.cells if cell and (doubt := _find_doubt(cell))), "")
        doubt = doubt or row.doubt or _find_other_table(table, row, headers)
        if not row.loose and lost <= optional and not doubt:
            rows.append(_make_row(number, row))
            continue
        message = doubt or ("the cells are not under the header" if row.loose else "a figure is missing in the row")
        raw = tuple(cell.text if cell else "" for cell in row.loose or row.cells)
        problems.append(ReadProblem(table.header.header.table, number, str(row.box), "row-width", message, raw))
    return tuple(rows), problems


def _find_other_table(table: PrintedTable, row: PrintedRow, headers: Sequence[TableHeader]) -> str:
    """Return which other table with the same header lists the machine of a row; `""` if none does."""
    others = [header for header in find_headers(table.header.names, headers) if header is not table.header.header]
    for cell in row.cells if others else ():
        for header in others:
            if cell and header.lists(cell.text) and not table.header.header.lists(cell.text):
                return f"{cell.text!r} is in the table {header.table}"
    return ""


def _report_rows_below(printed: Sequence[PrintedTable], taken: frozenset[Box]) -> Iterator[ReadProblem]:
    """Yield a problem for each table that has text in the shape of its rows below it."""
    for table in printed:
        rows = [row for row in table.below if not any(cell and cell.box in taken for cell in row.cells)]
        if rows:
            raw = tuple(cell.text if cell else "" for cell in rows[0].cells)
            message = f"below the table, {len(rows)} lines of text have the shape of its rows: not read"
            yield ReadProblem(table.header.header.table, None, str(rows[0].box), "rows-below", message, raw)


def _find_doubt(cell: PrintedCell) -> str:
    """Return why the text of a cell is not what it seems; `""` if it is."""
    is_raised = bool(cell.footnotes) and is_power(cell.text, cell.footnotes)
    return f"to the power of {cell.footnotes}" if is_raised else cell.doubt


def _make_row(number: int, row: PrintedRow) -> SourceRow:
    lifted = [(*lift_footnote(cell.text), cell.footnotes) if cell else ("", "", "") for cell in row.cells]
    footnotes = tuple((column, mark + raised) for column, (_, mark, raised) in enumerate(lifted) if mark + raised)
    places = tuple(str(cell.box if cell else row.box) for cell in row.cells)
    return SourceRow(number, tuple(text for text, _, _ in lifted), str(row.box), places, footnotes)


def _report_broken_promises(
    captions: Sequence[Caption],
    strips: Sequence[Strip],
    taken: frozenset[Box],
    missing: Sequence[TableHeader],
    headers: Sequence[TableHeader],
) -> Iterator[ReadProblem]:
    """Yield a problem for each caption that names the measure of a missing table, or is near a half-known header."""
    missing = list(missing)
    names = terms.known_names(headers)
    for caption in captions:
        named = [header for header in missing if terms.mentions_measure(caption.text, header, headers)]
        line = find_promised_header(caption, strips, taken, names)
        if missing and (named or line):
            header = (named or missing)[0]
            missing.remove(header)
            raw = tuple(cell.text for cell in line.cells) if line else ()
            printed = " | ".join(raw) if line else "no header"
            message = f"{printed!r} is not the header that the caption {caption.text!r} promises"
            place = str(line.box if line else caption.box)
            yield ReadProblem(header.table, None, place, "unknown-header", message, raw)


def _find_metadata(strips: Sequence[Strip]) -> Iterator[MetadataItem]:
    """Yield the lines `Label: value`, also if a wide gap follows the colon."""
    for strip in strips:
        for line in strip:
            for place, cell in enumerate(line.cells):
                alone = cell.text.endswith(":") and place + 1 < len(line.cells)
                parts = line.cells[place : place + 2] if alone else (cell,)
                if item := terms.split_metadata(" ".join(part.text for part in parts)):
                    yield MetadataItem(*item, str(enclose(part.box for part in parts)))
