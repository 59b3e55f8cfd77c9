"""Report what looks like a known table and was not read, and pages that cannot be read at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipu_results.read.document import ReadProblem
from ipu_results.read.paper import terms
from ipu_results.read.pdf.pages import PageWords
from ipu_results.read.pdf.words import Box, PrintedCell, Strip
from ipu_results.schema.table_headers import TableHeader

NEAR_LINES = 2
"""A header is broken over at most this many lines."""
BLOCK_LINES = 12
"""A table with its names in the first column has at most this many lines."""
EDGE_SLACK = 6.0
"""Names in one column begin at the same place, to within this, in points."""
FIGURE_GAP = 1.6
"""A figure is under its name with at most this gap, in heights of a line."""
LONG_HEADER = 5
"""No prose has as many names of a header as this on one line."""


def find_unread_tables(
    strips: Sequence[Strip], taken: frozenset[Box], headers: Sequence[TableHeader]
) -> Iterator[ReadProblem]:
    """Yield a problem for each name of a figure that has figures under it or next to it, and a label near it."""
    labels = terms.label_names(headers)
    for strip in strips:
        for place, line in enumerate(strip):
            for number, cell in enumerate(line.cells):
                name, has_figures = _split_figures(cell.text)
                owners = [header for header in headers if name in header.keys - labels]
                if not owners or cell.box in taken or not _has_label(strip, place, cell, labels):
                    continue
                to_the_right = has_figures or any(terms.is_figure(other.text) for other in line.cells[number + 1 :][:1])
                if to_the_right or _has_figure_below(strip, place, cell):
                    raw = tuple(other.text for other in line.cells)
                    message = f"{cell.text!r} looks like a column or row of a known table, but its header is not known"
                    yield ReadProblem(owners[0].table, None, str(line.box), "unknown-header", message, raw)


def find_undivided_headers(
    strips: Sequence[Strip], taken: frozenset[Box], headers: Sequence[TableHeader]
) -> Iterator[ReadProblem]:
    """Yield a problem for each line with all names of a known header, of which some are too close for cells."""
    names = terms.known_names(headers)
    for strip in strips:
        for line in strip:
            free = [cell for cell in line.cells if cell.box not in taken]
            parts = [name for cell in free for name in _split_names(cell.text, names)]
            text = " ".join(cell.text for cell in free)
            owners = [header for header in headers if header.keys <= set(parts) or _is_named_in(text, header)]
            if owners:
                raw = tuple(cell.text for cell in free)
                message = "the names of a known table are too close together, or another name is between them: not read"
                yield ReadProblem(owners[-1].table, None, str(line.box), "unknown-header", message, raw)


def _is_named_in(text: str, header: TableHeader) -> bool:
    """Check whether a text has all names of a long header, with blanks or without."""
    letters = "".join(terms.normalise_text(text).split())
    return len(header.keys) >= LONG_HEADER and all("".join(key.split()) in letters for key in header.keys)


def _split_names(text: str, names: frozenset[str]) -> list[str]:
    """Return the known names that a text consists of, each with its unit or without; none if it has another word."""
    parts: list[str] = []
    words = terms.spell_out(text).split()
    while words:
        for stop in range(len(words), 0, -1):
            if (name := terms.normalise_text(" ".join(words[:stop]))) in names:
                parts.append(name)
                words = words[stop:]
                break
        else:
            return []
    return parts


def find_turned_tables(pages: Sequence[PageWords], headers: Sequence[TableHeader]) -> Iterator[ReadProblem]:
    """Yield a problem for each page with the names of a known table in text that is turned."""
    for page in pages:
        for header in headers:
            if _contains(page.turned, header):
                message = "the table is turned or mirrored: only upright text is read"
                yield ReadProblem(header.table, None, f"page {page.number}", "unknown-header", message, header.names)


def find_hidden_pages(pages: Sequence[PageWords], headers: Sequence[TableHeader]) -> list[int]:
    """Return the pages with the names of a known table in text that cannot be seen."""
    return [page.number for page in pages if any(_contains(page.hidden, header) for header in headers)]


def _contains(text: str, header: TableHeader) -> bool:
    letters = "".join(terms.normalise_text(text).split())
    return any(letter.isdigit() for letter in letters) and all(key.replace(" ", "") in letters for key in header.keys)


def _split_figures(text: str) -> tuple[str, bool]:
    """Return the name that a text begins with, and whether nothing but figures follow it."""
    words = text.split()
    while len(words) > 1 and terms.is_figure(words[-1]):
        words.pop()
    return terms.normalise_text(" ".join(words)), len(words) < len(text.split())


def _has_label(strip: Strip, place: int, cell: PrintedCell, labels: frozenset[str]) -> bool:
    """Check whether the name of a label, or a word of it, is next to, above or below a cell."""
    parts = labels | {word for label in labels for word in label.split()}
    for number in range(max(place - BLOCK_LINES, 0), min(place + BLOCK_LINES + 1, len(strip))):
        for other in strip[number].cells:
            aligned = abs(other.box.x0 - cell.box.x0) <= EDGE_SLACK
            if (abs(number - place) < NEAR_LINES or aligned) and _split_figures(other.text)[0] in parts:
                return strip[number].box.page == cell.box.page
    return False


def _has_figure_below(strip: Strip, place: int, cell: PrintedCell) -> bool:
    for line in strip[place + 1 :]:
        below = [other for other in line.cells if other.box.x1 > cell.box.x0 and other.box.x0 < cell.box.x1]
        if below:
            near = below[0].box.top - cell.box.bottom <= FIGURE_GAP * cell.box.height
            return near and terms.is_figure(below[0].text)
    return False
