"""Read the tables and setup metadata of a paper from a PDF in one column or two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read.document import (
    FirstRow,
    MetadataItem,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
)
from ipu_results.read.pdf_captions import (
    Caption,
    assign_to_tables,
    find_captions,
    find_promised_header,
    join_continued,
)
from ipu_results.read.pdf_lines import (
    Box,
    PrintedCell,
    PrintedLine,
    Strip,
    build_lines,
    enclose,
    make_columns,
    split_columns,
)
from ipu_results.read.pdf_pages import (
    PageWords,
    describe_failure,
    open_pdf,
    read_page_texts,
    read_words,
)
from ipu_results.read.pdf_rows import PrintedRow
from ipu_results.read.pdf_tables import (
    HEADER_LEADING,
    MAX_HEADER_LINES,
    PrintedTable,
    find_tables,
    join_cells,
)
from ipu_results.read.text import (
    LIGATURES,
    METADATA_LABELS,
    is_caption,
    is_figure,
    is_power,
    known_names,
    label_names,
    lift_footnote,
    mentions_measure,
    normalise_text,
    refuse_incomplete_tables,
    refuse_scaled_tables,
    spell_out,
    split_metadata,
)
from ipu_results.schema.vocabulary import TableHeader, find_headers, normalise_header, strip_unit

# What is reported and not read
NEAR_LINES = 2  # a header is broken over at most this many lines
BLOCK_LINES = 12  # a table with its names in the first column has at most this many lines
EDGE_SLACK = 6.0  # names in one column begin at the same place, to within this, in points
FIGURE_GAP = 1.6  # a figure is under its name with at most this gap, in heights of a line
LONG_HEADER = 5  # no prose has as many names of a header as this on one line

# Headers that are drafted
MIN_COLUMNS = 2  # of a table; a single figure on a line may be a page number
MIN_SHARE_OF_FIGURES = 0.3  # of the cells of a row, at least this share are figures
FIRST_ROW_GAP = 2.5  # the first row follows the header with at most this gap, in heights of a line
MAX_NAME = 40  # longer text is prose
MAX_DRAFTED_PAGES = 40  # pages with a caption that are read for a draft

CAPTION_ANYWHERE = re.compile(r"\btable\s+(?:\d|[ivxl]+\b)")


def read_pdf(data: bytes, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read the tables whose column names are those of one of `headers`, with captions, boxes and
    setup metadata.

    A cell belongs to the column that it is under: a lost label is `""`. A row without its figure,
    or with cells whose columns are ambiguous, is a problem, and so is a caption whose table has no
    known header. Metadata is read by line.

    Raises DamagedDocumentError for anything but a whole PDF that opens without a password,
    DocumentTooLargeError above MAX_PAGES pages, and UnrecognisedDocumentError if there is no
    table.
    """
    data = open_pdf(data)
    texts = read_page_texts(data)
    pages: list[PageWords] = []
    more = _select_pages(texts, headers)
    while True:
        pages = sorted([*pages, *read_words(data, more)], key=lambda page: page.number)
        tables, columns, wide = _find_tables(pages, headers)
        # A table may continue on the page after the one that it ends on.
        following = {
            row.box.page + 1 for table in tables for row in table.rows if row.box.page < len(texts)
        }
        more = sorted(following - {page.number for page in pages})
        if not more:
            break
    document = _make_document(tables, columns, wide, headers)
    problems = (*document.problems, *find_turned_tables(pages, headers))
    if not document.tables and not problems:
        hidden = [
            page.number
            for page in pages
            if any(_may_be_table(page.hidden, header) for header in headers)
        ]
        raise UnrecognisedDocumentError(describe_failure(data, hidden))
    document = replace(document, problems=problems)
    return refuse_incomplete_tables(document, headers)


def _find_tables(
    pages: Sequence[PageWords], headers: Sequence[TableHeader]
) -> tuple[list[PrintedTable], list[Strip], list[Strip]]:
    """Return the tables on some pages, the columns of these pages, and the whole of those with
    several columns.
    """
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
        words = re.sub(r"[\s\-_]+", " ", text.translate(LIGATURES)).casefold()
        # The words of long names may be on several lines.
        if any(
            all(name in words for name in header.keys)
            or set(" ".join(header.keys).split()) <= set(words.split())
            for header in headers
        ):
            pages |= {number, number + 1}
        elif CAPTION_ANYWHERE.search(words) or any(
            f"{label.casefold()}:" in words for label in METADATA_LABELS
        ):
            pages.add(number)
    return sorted(number for number in pages if number <= len(texts))


def _make_document(
    printed: Sequence[PrintedTable],
    columns: Sequence[Strip],
    wide: Sequence[Strip],
    headers: Sequence[TableHeader],
) -> ParsedDocument:
    names = known_names(headers)
    cells = (cell.box for table in printed for row in table.rows for cell in row.printed)
    taken = frozenset(cells).union(*(table.header.boxes for table in printed))
    captions = find_captions(columns, taken, names)
    parts = assign_to_tables(printed, captions, headers)
    printed, assigned = join_continued(printed, parts, captions, [*columns, *wide], len(columns))
    tables: dict[str, SourceTable] = {}
    problems: list[ReadProblem] = []
    for number, table in enumerate(printed):
        name = table.header.header.table
        if name in tables or not table.rows:
            refusal = ("duplicate-table", "a table with this header was already read")
            refusal = refusal if name in tables else ("cells-missing", "no rows under the header")
            problems.append(ReadProblem(name, None, table.locator, *refusal, table.header.names))
            continue
        rows, row_problems = _read_rows(table, headers)
        problems += row_problems
        if rows:
            caption = captions[assigned[number]].text if number in assigned else ""
            tables[name] = SourceTable.from_rows(
                name, table.header.names, rows, table.locator, caption
            )
    free = [caption for number, caption in enumerate(captions) if number not in parts.values()]
    missing = [
        header for header in headers if all(table.header.header is not header for table in printed)
    ]
    problems += _report_broken_promises(free, columns, taken, missing, headers)
    problems += _report_rows_below(printed, taken)
    reported = {problem.table_name for problem in problems if problem.row_number is None}
    undivided = list(find_undivided_headers([*columns, *wide], taken, headers))
    problems += (
        undivided
        if tables
        else [problem for problem in undivided if problem.table_name not in reported]
    )
    reported |= {problem.table_name for problem in undivided}
    times: Counter[str] = Counter()
    for problem in find_unread_tables(columns, taken, headers):
        times[problem.message] += 1  # a name that is there again belongs to another table
        count = times[problem.message]
        name = problem.table_name if count == 1 else f"{problem.table_name}, {count}"
        if name not in reported:
            reported.add(name)
            problems.append(problem)
    near = {
        table.locator: [
            line.text for strip in columns for line in strip if line.box.page == table.header.page
        ]
        for table in printed
    }
    document = ParsedDocument(
        tuple(tables.values()), tuple(problems), tuple(_find_metadata(columns))
    )
    return refuse_scaled_tables(document, near)


def _read_rows(
    table: PrintedTable, headers: Sequence[TableHeader]
) -> tuple[tuple[SourceRow, ...], list[ReadProblem]]:
    """Divide the rows into those that have their figures and the problems of the others."""
    optional = make_columns(table.header.cells, table.header.headers).optional
    rows: list[SourceRow] = []
    problems: list[ReadProblem] = []
    for number, row in enumerate(table.rows, 1):
        lost = {column for column, cell in enumerate(row.cells) if cell is None}
        doubts = ((cell, _find_doubt(cell)) for cell in row.cells if cell)
        doubt = next((f"{cell.text!r}: {doubt}" for cell, doubt in doubts if doubt), "")
        doubt = doubt or row.doubt or _find_other_table(table, row, headers)
        if row.loose or not lost <= optional or doubt:
            message = doubt or (
                "the cells are not under the header"
                if row.loose
                else "a figure is missing in the row"
            )
            raw = tuple(cell.text if cell else "" for cell in row.loose or row.cells)
            problems.append(
                ReadProblem(
                    table.header.header.table, number, str(row.box), "row-width", message, raw
                )
            )
            continue
        lifted = [
            (*lift_footnote(cell.text), cell.footnotes) if cell else ("", "", "")
            for cell in row.cells
        ]
        footnotes = tuple(
            (column, mark + raised)
            for column, (_, mark, raised) in enumerate(lifted)
            if mark + raised
        )
        places = tuple(str(cell.box if cell else row.box) for cell in row.cells)
        rows.append(
            SourceRow(number, tuple(text for text, _, _ in lifted), str(row.box), places, footnotes)
        )
    return tuple(rows), problems


def _find_doubt(cell: PrintedCell) -> str:
    """Return why the text of a cell is not what it seems; `""` if it is."""
    is_raised = bool(cell.footnotes) and is_power(cell.text, cell.footnotes)
    return f"to the power of {cell.footnotes}" if is_raised else cell.doubt


def _find_other_table(table: PrintedTable, row: PrintedRow, headers: Sequence[TableHeader]) -> str:
    """Return which other table with the same header lists the machine of a row; `""` if none does."""
    others = [
        header
        for header in find_headers(table.header.names, headers)
        if header is not table.header.header
    ]
    for cell in row.cells if others else ():
        for header in others:
            if cell and header.lists(cell.text) and not table.header.header.lists(cell.text):
                return f"{cell.text!r} is in the table {header.table}"
    return ""


def _report_rows_below(
    printed: Sequence[PrintedTable], taken: frozenset[Box]
) -> Iterator[ReadProblem]:
    """Yield a problem for each table that has text in the shape of its rows below it."""
    for table in printed:
        rows = [
            row for row in table.below if not any(cell and cell.box in taken for cell in row.cells)
        ]
        if rows:
            raw = tuple(cell.text if cell else "" for cell in rows[0].cells)
            message = (
                f"below the table, {len(rows)} lines of text have the shape of its rows: not read"
            )
            yield ReadProblem(
                table.header.header.table, None, str(rows[0].box), "rows-below", message, raw
            )


def _report_broken_promises(
    captions: Sequence[Caption],
    strips: Sequence[Strip],
    taken: frozenset[Box],
    missing: Sequence[TableHeader],
    headers: Sequence[TableHeader],
) -> Iterator[ReadProblem]:
    """Yield a problem for each caption that names the measure of a missing table, or is near a
    half-known header.
    """
    missing = list(missing)
    names = known_names(headers)
    for caption in captions:
        named = [header for header in missing if mentions_measure(caption.text, header, headers)]
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
    for line in chain(*strips):
        for place, cell in enumerate(line.cells):
            parts = line.cells[place : place + 2] if cell.text.endswith(":") else (cell,)
            if item := split_metadata(" ".join(part.text for part in parts)):
                yield MetadataItem(*item, str(enclose(part.box for part in parts)))


def find_unread_tables(
    strips: Sequence[Strip], taken: frozenset[Box], headers: Sequence[TableHeader]
) -> Iterator[ReadProblem]:
    """Yield a problem for each name of a figure that has figures under it or next to it, and a
    label near it.
    """
    labels = label_names(headers)
    for strip in strips:
        for place, line in enumerate(strip):
            for number, cell in enumerate(line.cells):
                name, has_figures = _split_figures(cell.text)
                owners = [header for header in headers if name in header.keys - labels]
                if not owners or cell.box in taken or not _has_label(strip, place, cell, labels):
                    continue
                to_the_right = has_figures or any(
                    is_figure(other.text) for other in line.cells[number + 1 :][:1]
                )
                if to_the_right or _has_figure_below(strip, place, cell):
                    raw = tuple(other.text for other in line.cells)
                    message = (
                        f"{cell.text!r} looks like a column or row of a known table, but its header"
                        " is not known"
                    )
                    yield ReadProblem(
                        owners[0].table, None, str(line.box), "unknown-header", message, raw
                    )


def find_undivided_headers(
    strips: Sequence[Strip], taken: frozenset[Box], headers: Sequence[TableHeader]
) -> Iterator[ReadProblem]:
    """Yield a problem for each line with all names of a known header, of which some are too close
    for cells.
    """
    names = known_names(headers)
    for line in chain(*strips):
        free = [cell for cell in line.cells if cell.box not in taken]
        parts = {name for cell in free for name in _split_names(cell.text, names)}
        letters = _join_letters(" ".join(cell.text for cell in free))
        long = [
            header
            for header in headers
            if len(header.keys) >= LONG_HEADER and _has_names(letters, header)
        ]
        owners = [header for header in headers if header.keys <= parts or header in long]
        if owners:
            raw = tuple(cell.text for cell in free)
            message = (
                "the names of a known table are too close together, or another name is between"
                " them: not read"
            )
            yield ReadProblem(owners[-1].table, None, str(line.box), "unknown-header", message, raw)


def _split_names(text: str, names: frozenset[str]) -> list[str]:
    """Return the known names that a text consists of, each with its unit or without; none if it has
    another word.
    """
    parts: list[str] = []
    words = spell_out(text).split()
    while words:
        for stop in range(len(words), 0, -1):
            if (name := normalise_text(" ".join(words[:stop]))) in names:
                parts.append(name)
                words = words[stop:]
                break
        else:
            return []
    return parts


def find_turned_tables(
    pages: Sequence[PageWords], headers: Sequence[TableHeader]
) -> Iterator[ReadProblem]:
    """Yield a problem for each page with the names of a known table in text that is turned."""
    for page in pages:
        for header in headers:
            if _may_be_table(page.turned, header):
                message = "the table is turned or mirrored: only upright text is read"
                yield ReadProblem(
                    header.table,
                    None,
                    f"page {page.number}",
                    "unknown-header",
                    message,
                    header.names,
                )


def _may_be_table(text: str, header: TableHeader) -> bool:
    letters = _join_letters(text)
    return any(letter.isdigit() for letter in letters) and _has_names(letters, header)


def _join_letters(text: str) -> str:
    """Return a text without blanks, which may be anywhere in text that is turned or set too close."""
    return "".join(normalise_text(text).split())


def _has_names(letters: str, header: TableHeader) -> bool:
    return all("".join(key.split()) in letters for key in header.keys)


def _split_figures(text: str) -> tuple[str, bool]:
    """Return the name that a text begins with, and whether nothing but figures follow it."""
    words = text.split()
    while len(words) > 1 and is_figure(words[-1]):
        words.pop()
    return normalise_text(" ".join(words)), len(words) < len(text.split())


def _has_label(strip: Strip, place: int, cell: PrintedCell, labels: frozenset[str]) -> bool:
    """Check whether the name of a label, or a word of it, is next to, above or below a cell."""
    parts = labels | {word for label in labels for word in label.split()}
    for number in range(max(place - BLOCK_LINES, 0), min(place + BLOCK_LINES + 1, len(strip))):
        for other in strip[number].cells:
            aligned = abs(other.box.x0 - cell.box.x0) <= EDGE_SLACK
            if (abs(number - place) < NEAR_LINES or aligned) and _split_figures(other.text)[
                0
            ] in parts:
                return strip[number].box.page == cell.box.page
    return False


def _has_figure_below(strip: Strip, place: int, cell: PrintedCell) -> bool:
    for line in strip[place + 1 :]:
        below = [other for other in line.cells if other.box.overlaps(cell.box)]
        if below:
            near = below[0].box.top - cell.box.bottom <= FIGURE_GAP * cell.box.height
            return near and is_figure(below[0].text)
    return False


def find_pdf_headers(data: bytes) -> list[FirstRow]:
    """Return place and names of each header on pages with a caption, once for each set of names.

    Raises DamagedDocumentError and DocumentTooLargeError, as `read_pdf` does.
    """
    data = open_pdf(data)
    texts = read_page_texts(data)
    lines_of = (map(str.strip, text.splitlines()) for text in texts)
    numbers = [number for number, lines in enumerate(lines_of, 1) if any(map(is_caption, lines))]
    headers: dict[frozenset[str], FirstRow] = {}
    for page in read_words(data, numbers[:MAX_DRAFTED_PAGES]):
        whole = build_lines(page.words)
        columns = split_columns(whole, page.width)
        on_page: list[FirstRow] = []
        for strip in (whole, *columns) if len(columns) > 1 else (whole,):
            # A table over both columns of the page comes first: its halves are not tables.
            known = {normalise_header(name) for _, names in on_page for name in names}
            on_page += [
                row for row in _find_headers(strip) if not {*map(normalise_header, row[1])} & known
            ]
        for place, names in on_page:
            headers.setdefault(frozenset(map(normalise_header, names)), (place, names))
    return list(headers.values())


def _find_headers(strip: Strip) -> Iterator[FirstRow]:
    for number, line in enumerate(strip):
        if _is_row(line) and number and not _is_row(strip[number - 1]):
            block = _take_header(strip, number)
            for start in range(len(block)):
                cells = join_cells([above.cells for above in block[start:]])
                names = tuple(cell.text for cell in cells)
                are_names = all(
                    len(name) <= MAX_NAME and any(map(str.isalpha, strip_unit(name)))
                    for name in names
                )
                if len(cells) >= MIN_COLUMNS and are_names:
                    yield str(enclose(cell.box for cell in cells)), names
                    break


def _take_header(strip: Strip, row: int) -> list[PrintedLine]:
    """Return the lines close above a row without a figure or a caption, from the top."""
    block: list[PrintedLine] = []
    for line in reversed(strip[max(row - MAX_HEADER_LINES, 0) : row]):
        below = block[0] if block else strip[row]
        leading = HEADER_LEADING if block else FIRST_ROW_GAP
        is_close = (
            line.box.page == below.box.page
            and below.box.top - line.box.bottom <= leading * line.box.height
        )
        if (
            not is_close
            or is_caption(line.text)
            or any(is_figure(cell.text) for cell in line.cells)
        ):
            break
        block.insert(0, line)
    return block


def _is_row(line: PrintedLine) -> bool:
    figures = sum(is_figure(cell.text.split()[0]) for cell in line.cells if cell.text.split())
    return len(line.cells) >= MIN_COLUMNS and figures >= MIN_SHARE_OF_FIGURES * len(line.cells)
