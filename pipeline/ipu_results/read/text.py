"""Turn bytes into text, and text into cells: what every reader cleans in the same way."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ipu_results.errors import DamagedDocumentError
from ipu_results.read.align import NO_HEADER, Assembler, RawRow, align, contains_row
from ipu_results.read.document import ParsedDocument
from ipu_results.schema.table_headers import TableHeader, explain_mismatch, find_headers, normalise_header

ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
BLANKS = re.compile(r"\s+")
MARKS = "*†‡§¶⁎∗¹²³⁰⁴-⁹"  # inside of a character class
MARK_CHARACTERS = frozenset(char for char in map(chr, range(0x2300)) if re.fullmatch(f"[{MARKS}]", char))
TRAILING_MARKS = re.compile(rf"(?<=[^\s{MARKS}])\s*([{MARKS}][{MARKS}\s]*)$")
POWER_BASE = re.compile(r"(?:(?:^|[^\d.,])10|^2)[⁺⁻]?$")
EXPONENT = re.compile(r"[-+−]?[\d⁰¹²³⁴-⁹]+")
# Encodings of web pages. Python knows others, such as punycode, in which no page is written.
WEB_ENCODING = re.compile(r"cp(?:125\d|874)|iso8859-\d+|koi8-[ru]|gb(?:k|2312|18030)|big5|euc_(?:jp|kr)|shift_jis")
MAX_CONTROL_SHARE = 0.01
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")  # but tab, line and page breaks, and escape
CONTROL_SAMPLE = 100_000


def clean(raw: str) -> str:
    """Return the text of a cell: no zero-width characters, blanks of any kind collapsed and trimmed, in NFC."""
    if raw.isascii():
        return " ".join(raw.split())
    return BLANKS.sub(" ", unicodedata.normalize("NFC", raw).translate(ZERO_WIDTH)).strip()


def lift_footnote(text: str) -> tuple[str, str]:
    """Split trailing footnote marks off a cell: `'37,112*'` becomes `('37,112', '*')`; `'10⁶'` is a power."""
    match = TRAILING_MARKS.search(text) if text[-1:] in MARK_CHARACTERS else None
    if match is None or is_power(text[: match.start(1)], match[1]):
        return text, ""
    return text[: match.start()], match[1]


def is_power(base: str, raised: str) -> bool:
    """Check whether digits raised after `base` are an exponent. No one prints a first power, so a 1 is a footnote."""
    return raised not in ("1", "¹") and POWER_BASE.search(base) is not None and EXPONENT.fullmatch(raised) is not None


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a document: UTF-8 (with or without a BOM), UTF-16 with a BOM, or the encoding that it declares.

    Raises DamagedDocumentError for an empty document, for binary data and for bytes that fit none of these encodings.
    """
    if not data.strip():
        raise DamagedDocumentError("is empty")
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", *_web_encoding(declared or "")]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        sample = text[:CONTROL_SAMPLE]
        if len(CONTROL.findall(sample)) > MAX_CONTROL_SHARE * len(sample):
            raise DamagedDocumentError("is not text: binary data")
        return text
    raise DamagedDocumentError("is not text in UTF-8 or in an encoding that it declares")


def _web_encoding(declared: str) -> list[str]:
    """Return the encoding that browsers use for a declared one: ASCII and Latin-1 mean windows-1252."""
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return []
    if name in ("ascii", "iso8859-1"):
        return ["cp1252"]
    return [name] if WEB_ENCODING.fullmatch(name) else []


RULE = re.compile(r"[|\s:+-]+")
DELIMITERS = ("|", "\t")

Block = list[tuple[int, str]]
"""Consecutive lines, each with its number from 1, up to an empty line."""


class BrokenHeader(NamedTuple):
    """Half-open range of lines that are nearly a header, and what is wrong with them."""

    start: int
    stop: int
    message: str


def read_page_text(text: str, headers: Sequence[TableHeader]) -> ParsedDocument:
    """Read every table of the text whose header is one of `headers`.

    An empty line ends a table; a line of U+00A0 or of zero-width characters is a blank cell. A row that lost or
    gained a line becomes a problem; the rows around it are kept if only one alignment of the lines explains them.
    Raises UnrecognisedDocumentError if no header resembles a known one.
    """
    assembler = Assembler(headers)
    for block in _split_blocks(text):
        before = len(assembler.tables) + len(assembler.problems)
        if any(delimiter in line for _, line in block for delimiter in DELIMITERS):
            _read_delimited(block, assembler)
        _read_one_cell_a_line(block, assembler)
        if before == len(assembler.tables) + len(assembler.problems):
            _report_lost_rows(block, assembler)
    return assembler.finish()


def _split_blocks(text: str) -> Iterator[Block]:
    block: Block = []
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        if line.strip(" \t\f\v"):
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _read_delimited(block: Block, assembler: Assembler) -> None:
    """Add the tables of lines that pipes or tabs divide into cells."""
    lines = [(number, line) for number, line in block if not RULE.fullmatch(line)]
    names = [[_clean_text(cell) for cell in split_line(line, is_fenced(line))] for _, line in lines]
    start = next((i for i, columns in enumerate(names) if find_headers(columns, assembler.headers)), None)
    if start is None:
        start = next((i for i, columns in enumerate(names) if explain_mismatch(columns, assembler.headers)), None)
    if start is not None:
        fenced = is_fenced(lines[start][1])
        rows = [(number, split_line(line, fenced)) for number, line in lines]
        grid = [(_format_place(number), _make_row(cells, [number] * len(cells))) for number, cells in rows]
        assembler.add_grid(grid[start][0], grid)


def is_fenced(line: str) -> bool:
    """Check whether a line begins and ends with a pipe, as in Markdown, or next to a blank cell."""
    bare = line.strip(" ")
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def split_line(line: str, fenced: bool) -> list[str]:
    """Return the cells of a line. Outer pipes divide no cells if the header has them too (`fenced`)."""
    delimiter = next((delimiter for delimiter in DELIMITERS if delimiter in line), None)
    if delimiter is None:
        return [line]
    cells = line.split(delimiter)
    return cells[1:-1] if delimiter == "|" and fenced and is_fenced(line) else cells


def _read_one_cell_a_line(block: Block, assembler: Assembler) -> None:
    """Add the table whose header is the first run of lines that is a known one."""
    headers = assembler.headers
    keys = {key for header in headers for key in header.keys}
    lines = [_clean_text(line) for _, line in block]
    known = [normalise_header(line) in keys for line in lines]
    widths = sorted({len(header.fields) for header in headers}, reverse=True)
    for start in (i for i, is_name in enumerate(known) if is_name):
        for width in widths:
            columns = lines[start : start + width]
            if len(columns) == width and find_headers(columns, headers):
                _report_rows_above(block, lines[:start], known[:start], assembler)
                _align_rows(block[start:], columns, assembler)
                return
    if broken := _find_broken_header(lines, known, headers):
        assembler.add_header_problem(_format_place(block[broken.start][0]), broken.message)


def _align_rows(block: Block, columns: Sequence[str], assembler: Assembler) -> None:
    """Add the table of a block that starts with its header, one cell a line."""
    width = len(columns)
    header, body = block[:width], block[width:]
    fields = [find_headers(columns, assembler.headers)[0].field_of(name) for name in columns]
    place = _format_place(header[0][0])
    grid = [(place, _make_row(columns, [number for number, _ in header]))]
    for span in align([_clean_text(line) for _, line in body], fields):
        numbers, lines = zip(*body[span.start : span.stop], strict=True)
        problem = None if span.readable else f"{len(lines)} lines that are not the {width} cells of one row"
        grid.append((_format_place(numbers[0]), _make_row(lines, numbers, problem)))
    assembler.add_grid(place, grid)


def _find_broken_header(
    lines: Sequence[str], known: Sequence[bool], headers: Sequence[TableHeader]
) -> BrokenHeader | None:
    """Find the first run of names, one foreign line allowed between two of them, that is nearly a header."""
    stop = 0
    for start in (i for i, is_name in enumerate(known) if is_name):
        if start < stop:
            continue
        stop = start
        while stop < len(known) and (known[stop] or (stop + 1 < len(known) and known[stop + 1])):
            stop += 1
        if message := explain_mismatch(lines[start:stop], headers):
            return BrokenHeader(start, stop, message)
    return None


def _report_rows_above(block: Block, lines: Sequence[str], known: Sequence[bool], assembler: Assembler) -> None:
    """Report rows above the header, and rows under a broken header there, which would be lost without a word."""
    broken = _find_broken_header(lines, known, assembler.headers)
    if broken is not None and len(lines) - broken.stop > 1:
        assembler.add_header_problem(_format_place(block[broken.start][0]), broken.message)
    elif contains_row(lines, assembler.headers):
        assembler.add_header_problem(_format_place(block[0][0]), NO_HEADER)


def _report_lost_rows(block: Block, assembler: Assembler) -> None:
    """Report rows that an empty line or a lost header has cut off from their table."""
    lines = [line for _, line in block]
    split = [cell for line in lines for cell in split_line(line, is_fenced(line))]
    if any(contains_row([_clean_text(cell) for cell in cells], assembler.headers) for cells in (lines, split)):
        assembler.add_header_problem(_format_place(block[0][0]), NO_HEADER)


def _format_place(line_number: int) -> str:
    return f"line {line_number}"


def _clean_text(line: str) -> str:
    return lift_footnote(clean(line))[0]


def _make_row(lines: Sequence[str], numbers: Sequence[int], problem: str | None = None) -> RawRow:
    lifted = [lift_footnote(clean(line)) for line in lines]
    return RawRow(
        tuple(text for text, _ in lifted),
        tuple(mark for _, mark in lifted),
        tuple(map(_format_place, numbers)),
        problem,
    )
