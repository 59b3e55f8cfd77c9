"""The tables and setup facts of the paper from a PDF, in one column or two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read import paper
from ipu_results.read.paper import FACT_LABELS, of_one_sweep
from ipu_results.read.pdf.captions import Caption, captions_of, give_captions, promised_header
from ipu_results.read.pdf.pages import page_texts, words_of_pages
from ipu_results.read.pdf.tables import Found, Header, headers_of, rows_under
from ipu_results.read.pdf.words import Box, Strip, columns_of, lines_of, union
from ipu_results.read.reading import MetadataItem, ParsedDocument, ReadProblem, SourceRow, SourceTable
from ipu_results.read.text import lift_mark
from ipu_results.schema.layouts import TableHeader

__all__ = ["FACT_LABELS", "read_pdf"]

CAPTION_ANYWHERE = re.compile(r"\btable\s+(?:\d|[ivxl]+\b)")


@dataclass(frozen=True, slots=True)
class Printed:
    """A header with the rows that stand under it."""

    header: Header
    rows: Sequence[Found]

    @property
    def boxes(self) -> Iterator[Box]:
        """The boxes of all its cells."""
        yield from (cell.box for cell in self.header.cells)
        for row in self.rows:
            yield from (cell.box for cell in (*row.cells, *row.loose) if cell is not None)

    @property
    def parts(self) -> list[Box]:
        """A box for each stretch of the table that stands in one piece."""
        parts = [union(cell.box for cell in self.header.cells)]
        strip, place = self.header.strip, self.header.place
        for row in self.rows:
            if (row.strip, row.place) == (strip, place + 1):
                parts[-1] = union((parts[-1], row.box))
            else:
                parts.append(row.box)
            strip, place = row.strip, row.place
        return parts

    @property
    def locator(self) -> str:
        return "; ".join(map(str, self.parts))


def read_pdf(data: bytes, layouts: Sequence[TableHeader], *, max_pages: int = 500) -> ParsedDocument:
    """Tables whose header names are those of `layouts`, wherever they stand, with captions, boxes and setup facts.

    A cell is told by its place under the header: a lost label is `""`. A row without its figure, or with cells that
    cannot be told apart, is a problem, and so is a caption whose table has no known header. A fact is one line.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password, DocumentTooLargeError above
    `max_pages` pages, and UnrecognisedDocumentError where no table is found.
    """
    texts = page_texts(data, max_pages)
    pages = words_of_pages(data, candidates(texts, layouts))
    wholes = [lines_of(words) for words, _ in pages]
    columns = [columns_of(lines, width) for lines, (_, width) in zip(wholes, pages, strict=True)]
    strips = [strip for page in columns for strip in page]
    wide = [lines for lines, page in zip(wholes, columns, strict=True) if len(page) > 1]
    return reading_of(strips, [*strips, *wide], layouts)


def candidates(texts: Sequence[str], layouts: Sequence[TableHeader]) -> list[int]:
    """The numbers of the pages with a header, a caption or a fact on them, and of those where a table may go on."""
    found: set[int] = set()
    for number, text in enumerate(texts, 1):
        words = re.sub(r"[\s\-_]+", " ", text.translate(paper.LIGATURES)).casefold()
        if any(all(name in words for name in layout.keys) for layout in layouts):
            found |= {number, number + 1}
        elif CAPTION_ANYWHERE.search(words) or any(f"{label.casefold()}:" in words for label in FACT_LABELS):
            found.add(number)
    return sorted(number for number in found if number <= len(texts))


def reading_of(columns: Sequence[Strip], strips: Sequence[Strip], layouts: Sequence[TableHeader]) -> ParsedDocument:
    """The reading of the lines of `columns` in order; `strips` has whole pages after them."""
    names = paper.known_names(layouts)
    headers = headers_of(strips, len(columns), layouts)
    printed = [Printed(header, rows_under(header, strips, names)) for header in headers]
    taken = frozenset(box for table in printed for box in table.boxes)
    captions = captions_of(columns, taken, names)
    given = give_captions([(table.header.layout, table.parts) for table in printed], captions, layouts)
    texts = [captions[given[place]].text if place in given else "" for place in range(len(printed))]
    tables, problems = tables_and_problems(printed, texts)
    free = [caption for number, caption in enumerate(captions) if number not in given.values()]
    problems += broken_promises(free, columns, taken, [header.layout for header in headers], layouts)
    if not tables and not problems:
        raise UnrecognisedDocumentError("no table with a known header")
    return of_one_sweep(ParsedDocument(tuple(tables), tuple(problems), tuple(facts_of(columns))))


def tables_and_problems(
    printed: Sequence[Printed], captions: Sequence[str]
) -> tuple[list[SourceTable], list[ReadProblem]]:
    tables: dict[str, SourceTable] = {}
    problems: list[ReadProblem] = []
    for table, caption in zip(printed, captions, strict=True):
        name = table.header.layout.table
        if name in tables or not table.rows:
            problems.append(refused(table, repeated=name in tables))
            continue
        good, bad = rows_and_problems(table.header, table.rows)
        problems += bad
        if good:
            tables[name] = SourceTable(name, table.header.names, good, table.locator, caption)
    return list(tables.values()), problems


def refused(table: Printed, *, repeated: bool) -> ReadProblem:
    """The problem with a table as a whole."""
    reason, message = "cells-missing", "no rows under the header"
    if repeated:
        reason, message = "duplicate-table", "a table with this header has been read already"
    return ReadProblem(table.header.layout.table, None, table.locator, reason, message, table.header.names)


def rows_and_problems(header: Header, found: Sequence[Found]) -> tuple[tuple[SourceRow, ...], list[ReadProblem]]:
    optional = paper.label_columns(header.names, header.layout)
    numbered = list(enumerate(found, 1))
    good = tuple(row_of(number, row) for number, row in numbered if is_whole(row, optional))
    name = header.layout.table
    return good, [width_problem(name, number, row) for number, row in numbered if not is_whole(row, optional)]


def is_whole(row: Found, optional: frozenset[int]) -> bool:
    lost = {place for place, cell in enumerate(row.cells) if cell is None}
    return not row.loose and lost <= optional


def row_of(number: int, row: Found) -> SourceRow:
    lifted = [(*lift_mark(cell.text), cell.marks) if cell else ("", "", "") for cell in row.cells]
    marks = tuple((place, mark + raised) for place, (_, mark, raised) in enumerate(lifted) if mark + raised)
    places = tuple(str(cell.box if cell else row.box) for cell in row.cells)
    return SourceRow(number, tuple(text for text, _, _ in lifted), str(row.box), places, marks)


def width_problem(name: str, number: int, row: Found) -> ReadProblem:
    if row.loose:
        raw = tuple(cell.text for cell in row.loose)
        return ReadProblem(name, number, str(row.box), "row-width", "the cells do not stand under the header", raw)
    raw = tuple(cell.text if cell else "" for cell in row.cells)
    return ReadProblem(name, number, str(row.box), "row-width", "a figure is missing in the row", raw)


def broken_promises(
    captions: Sequence[Caption],
    strips: Sequence[Strip],
    taken: frozenset[Box],
    found: Sequence[TableHeader],
    layouts: Sequence[TableHeader],
) -> Iterator[ReadProblem]:
    """A problem for each caption that names the measure of a table not found, or stands by a half-known header."""
    missing = [layout for layout in layouts if layout not in found]
    names = paper.known_names(layouts)
    for caption in captions:
        named = [layout for layout in missing if paper.mentions(caption.text, layout, layouts)]
        line = promised_header(caption, strips, taken, names)
        if missing and (named or line):
            layout = (named or missing)[0]
            missing.remove(layout)
            raw = tuple(cell.text for cell in line.cells) if line else ()
            header = " | ".join(raw) if line else "no header"
            message = f"{header!r} is not the header that the caption {caption.text!r} promises"
            yield ReadProblem(
                layout.table, None, str(line.box if line else caption.box), "unknown-header", message, raw
            )


def facts_of(strips: Sequence[Strip]) -> Iterator[MetadataItem]:
    """Lines `Label: value`, also where a wide gap follows the colon."""
    for strip in strips:
        for line in strip:
            for place, cell in enumerate(line.cells):
                alone = cell.text.endswith(":") and place + 1 < len(line.cells)
                parts = line.cells[place : place + 2] if alone else (cell,)
                if fact := paper.split_fact(" ".join(part.text for part in parts)):
                    yield MetadataItem(*fact, str(union(part.box for part in parts)))
