"""Refuse a PDF that unpacks to more than the limits, before a library unpacks it."""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from pdfminer.ascii85 import ascii85decode, asciihexdecode

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import (
    MAX_IMAGE_PIXELS,
    MAX_UNPACKED_IMAGE_BYTES,
    MAX_UNPACKED_PDF_BYTES,
    MAX_UNPACKED_STREAM_BYTES,
)
from ipu_results.read.paper.terms import spell_out

STREAM = re.compile(rb"(?<!end)stream(?:\r?\n|\r)")
FILTERS = re.compile(rb"/(?:Filter|F)\s*(\[[^\]]*\]|/[^\s/<>\[\]()]+)")
NAME = re.compile(rb"/([^\s/<>\[\]()]+)")
ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
IMAGE = re.compile(rb"/Subtype\s*/Image\b")
SIDES = re.compile(rb"/(Width|Height|W|H)\s+(\d{1,9})\b(?!\s+\d+\s+R)")
DICTIONARY_BYTES = 16_384
PIECE = 1 << 16
SHORT_NAMES = {b"Fl": b"FlateDecode", b"LZW": b"LZWDecode", b"A85": b"ASCII85Decode", b"AHx": b"ASCIIHexDecode"}
SHORT_NAMES[b"RL"] = b"RunLengthDecode"
TEXT_FILTERS = {b"ASCII85Decode": ascii85decode, b"ASCIIHexDecode": asciihexdecode}
END_OF_RUNS = 128
LZW_CLEAR, LZW_END, LZW_PHRASES, LZW_WIDTHS = 256, 257, 4096, (9, 12)
MAX_RATIOS = {b"FlateDecode": 1032, b"LZWDecode": 2600, b"RunLengthDecode": 64, b"ASCII85Decode": 4}
"""How many times its size a stream unpacks to at most: phrases of 258 bytes in 2 bits (RFC 1951) or of 3,838 bytes in
12 bits, runs of 128 bytes in two bytes, four zeros in one."""


@dataclass(frozen=True, slots=True)
class PackedStream:
    """The bytes of a stream as they are in the file, its filters in order, and how much it may unpack to."""

    packed: memoryview
    filters: Sequence[bytes]
    limit: int

    @property
    def bound(self) -> int:
        return len(self.packed) * math.prod(MAX_RATIOS.get(name, 1) for name in self.filters)


def check_unpacked_size(data: bytes) -> None:
    """Raise DocumentTooLargeError if a stream or all streams of a PDF unpack to more than the limits.

    Streams are found by their keyword and not by the index of the file, so none is missed that a library would repair.
    """
    streams = [_describe(data, match.start(), match.end()) for match in STREAM.finditer(data)]
    bounds = [stream.bound for stream in streams]
    if sum(bounds) > MAX_UNPACKED_PDF_BYTES or any(stream.bound > stream.limit for stream in streams):
        total = 0
        for stream in streams:
            total += measure_stream(stream)
            if total > MAX_UNPACKED_PDF_BYTES:
                raise DocumentTooLargeError(f"unpacks to more than {MAX_UNPACKED_PDF_BYTES:,} bytes")


def _describe(data: bytes, keyword: int, start: int) -> PackedStream:
    head = data.rfind(b"obj", max(0, keyword - DICTIONARY_BYTES), keyword)
    dictionary = data[max(head, keyword - DICTIONARY_BYTES, 0) : keyword]
    is_image = IMAGE.search(dictionary) is not None
    if is_image:
        _check_pixels(dictionary)
    end = data.find(b"endstream", start)
    limit = MAX_UNPACKED_IMAGE_BYTES if is_image else MAX_UNPACKED_STREAM_BYTES
    packed = memoryview(data)[start : end if end >= 0 else None]
    return PackedStream(packed, _find_filters(dictionary, data, start), limit)


def _check_pixels(dictionary: bytes) -> None:
    sides = {key[:1]: int(value) for key, value in SIDES.findall(dictionary)}
    if sides.get(b"W", 0) * sides.get(b"H", 0) > MAX_IMAGE_PIXELS:
        raise DocumentTooLargeError(f"has an image of more than {MAX_IMAGE_PIXELS:,} pixels")


def _find_filters(dictionary: bytes, data: bytes, start: int) -> Sequence[bytes]:
    """Return the filters of a stream; if they are not in its dictionary, that which its first bytes look like."""
    match = FILTERS.search(ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), dictionary))
    if match is not None:
        return list_filters(NAME.findall(match[1]))
    head = data[start : start + 2]
    is_zlib = len(head) == 2 and head[0] & 0x0F == 8 and int.from_bytes(head) % 31 == 0
    return [b"FlateDecode"] if is_zlib else []


def list_filters(names: Iterable[bytes]) -> list[bytes]:
    """Return the full names of filters."""
    return [SHORT_NAMES.get(name, name) for name in names]


def measure_stream(stream: PackedStream) -> int:
    """Return the largest size that a stream has on its way through its filters."""
    packed, largest = stream.packed, len(stream.packed)
    for number, name in enumerate(stream.filters, 1):
        kept, size = io.BytesIO(), 0
        for piece in _unpack(name, packed):
            size += len(piece)
            if size > stream.limit:
                raise DocumentTooLargeError(f"has a stream that unpacks to more than {stream.limit:,} bytes")
            if number < len(stream.filters):
                kept.write(piece)
        largest = max(largest, size)
        packed = kept.getbuffer()
    return largest


def _unpack(name: bytes, stream: memoryview) -> Iterator[bytes]:
    """Yield the pieces of a stream after one filter: up to the first damage, and none for a filter of images."""
    with suppress(zlib.error, ValueError):
        if name == b"FlateDecode":
            yield from _inflate(stream)
        elif name == b"LZWDecode":
            yield from _expand_phrases(stream)
        elif name == b"RunLengthDecode":
            yield from _expand_runs(stream)
        elif name in TEXT_FILTERS:
            yield TEXT_FILTERS[name](bytes(stream))


def _inflate(stream: memoryview) -> Iterator[bytes]:
    decoder = zlib.decompressobj()
    for start in range(0, len(stream), PIECE):
        rest: bytes | memoryview = stream[start : start + PIECE]
        while rest and not decoder.eof:
            yield decoder.decompress(rest, PIECE)
            rest = decoder.unconsumed_tail


def _expand_runs(stream: memoryview) -> Iterator[bytes]:
    place = 0
    while place + 1 < len(stream) and (length := stream[place]) != END_OF_RUNS:
        is_run = length > END_OF_RUNS
        yield (
            bytes(stream[place + 1 : place + 2]) * (257 - length)
            if is_run
            else bytes(stream[place + 1 :][: length + 1])
        )
        place += 2 if is_run else length + 2


def _expand_phrases(stream: memoryview) -> Iterator[bytes]:
    """Yield the phrases of an LZW stream (PDF 32000-1, 7.4.4)."""
    alphabet = [bytes((letter,)) for letter in range(256)] + [b"", b""]
    phrases = list(alphabet)
    last, width, bits, value = b"", LZW_WIDTHS[0], 0, 0
    for byte in stream:
        bits, value = bits + 8, (value << 8 | byte) & 0xFFFFFF
        if bits < width:
            continue
        bits -= width
        code = value >> bits & (1 << width) - 1
        if code == LZW_END:
            return
        if code == LZW_CLEAR:
            phrases, last, width = list(alphabet), b"", LZW_WIDTHS[0]
            continue
        if code > len(phrases) or (code == len(phrases) and not last):
            return
        phrase = phrases[code] if code < len(phrases) else last + last[:1]
        if last and len(phrases) < LZW_PHRASES:
            phrases.append(last + phrase[:1])
        last = phrase
        width = min(max(LZW_WIDTHS[0], (len(phrases) + 1).bit_length()), LZW_WIDTHS[1])
        yield phrase


SAME_LINE = 0.35
"""Words are on one line if their middles differ by less than this share of their height."""
WORD_GAP = 0.12
"""Words of one cell are set solid below this gap, in ems."""
CELL_GAP = 0.75
"""A wider gap divides words into two cells, in ems."""
FOOTNOTE_SIZE = 0.8
"""A raised word of at most this share of the size is a footnote mark."""
FOOTNOTE_RISE = 0.1
"""How far, in ems, the foot of a mark is above that of the word it follows."""
RAISED_MARK = 0.2
"""A smaller word of any size is a footnote mark if its baseline is at least this much higher, in ems."""
BASELINE_SLACK = 0.05
"""Baselines of one word differ by at most this, in ems."""
SIZE_SLACK = 0.03
"""Sizes of one figure differ by at most this share."""
GUTTER_ZONE = (0.4, 0.6)
"""Where the gutter of a page in two columns may be, as shares of the page width."""
GUTTER_STEPS = 200
"""Places across the page width at which a gutter is searched."""
LONG_LINE = 0.25
"""A line of prose is at least this share of the page wide."""
GUTTER_CROSSINGS = 0.25
"""Share of the long lines (titles, wide captions) that may cross a gutter."""
MIN_LONG_LINES = 3
"""This many long lines must keep to their side of a gutter."""


@dataclass(frozen=True, slots=True)
class Box:
    """A place on a page (from 1), in points from its top left corner."""

    page: int
    x0: float
    top: float
    x1: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def __str__(self) -> str:
        return f"page {self.page}, box {self.x0:.1f},{self.top:.1f},{self.x1:.1f},{self.bottom:.1f}"


@dataclass(frozen=True, slots=True)
class Word:
    """One word, its font size and baseline in points, why its text is in doubt, and its font, if it has only one."""

    text: str
    size: float
    box: Box
    baseline: float
    doubt: str = ""
    font: str = ""


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """Words without a wide gap between them; `footnotes` are the raised marks after them."""

    text: str
    footnotes: str
    size: float
    box: Box
    doubt: str = ""
    """Why it is unclear what is printed, if it is."""
    fonts: frozenset[str] = frozenset()
    """The fonts of its words; `""` is among them if one is not known."""


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """Cells on one baseline, from left to right."""

    cells: tuple[PrintedCell, ...]
    box: Box

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


HAS_DIGIT = re.compile(r"\d").search

Strip = tuple[PrintedLine, ...]
"""The lines of one column of a page, or of a whole page, from the top."""


def enclose(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes of one page."""
    parts = list(boxes)
    return Box(
        parts[0].page,
        min(box.x0 for box in parts),
        min(box.top for box in parts),
        max(box.x1 for box in parts),
        max(box.bottom for box in parts),
    )


def make_line(cells: Sequence[PrintedCell]) -> PrintedLine:
    return PrintedLine(tuple(cells), enclose(cell.box for cell in cells))


def build_lines(words: Sequence[Word]) -> Strip:
    """Build the lines of a page across all its columns."""
    return tuple(make_line(list(_split_cells(row))) for row in _group_rows(words))


def split_columns(lines: Strip, width: float) -> tuple[Strip, ...]:
    """Return the columns of a page in reading order; what crosses the gutter goes with the first."""
    gutter = _find_gutter(lines, width)
    if gutter is None:
        return (lines,)
    return tuple(_take_side(lines, gutter, right=False)), tuple(_take_side(lines, gutter, right=True))


def _group_rows(words: Sequence[Word]) -> list[list[Word]]:
    """Group words on one baseline, left to right. The largest words open a row, smaller ones join it."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (-round(word.size, 1), word.box.top)):
        row = next((row for row in reversed(rows) if _on_one_line(row[0].box, word.box)), None)
        if row is None:
            rows.append([word])
        else:
            row.append(word)
    rows.sort(key=lambda row: row[0].box.middle)
    return [sorted(row, key=lambda word: word.box.x0) for row in rows]


def _on_one_line(first: Box, other: Box) -> bool:
    return abs(first.middle - other.middle) < SAME_LINE * max(first.height, other.height)


def _split_cells(row: Sequence[Word]) -> Iterator[PrintedCell]:
    start = 0
    for place, (word, following) in enumerate(pairwise(row), 1):
        if following.box.x0 - word.box.x1 > CELL_GAP * max(word.size, following.size):
            yield _make_cell(row[start:place])
            start = place
    yield _make_cell(row[start:])


def _make_cell(words: Sequence[Word]) -> PrintedCell:
    largest = max(words, key=lambda word: word.size)
    footnotes = [word for word in words if _is_footnote(word, largest)]
    body = [word for word in words if word not in footnotes]
    text = body[0].text
    for word, following in pairwise(body):
        gap = following.box.x0 - word.box.x1
        text += following.text if gap < WORD_GAP * largest.size else f" {following.text}"
    marks = "".join(word.text for word in footnotes)
    doubt = next((word.doubt for word in words if word.doubt), "")
    if not doubt and any(_are_at_odds(word, following, largest.size) for word, following in pairwise(body)):
        doubt = "digits differ in size or height: a footnote mark or a part of the figure"
    fonts = frozenset(word.font for word in body)
    return PrintedCell(spell_out(text), marks, largest.size, enclose(word.box for word in words), doubt, fonts)


def _is_footnote(word: Word, largest: Word) -> bool:
    if word.size <= FOOTNOTE_SIZE * largest.size:
        return largest.box.bottom - word.box.bottom > FOOTNOTE_RISE * largest.size
    smaller = word.size < (1 - SIZE_SLACK) * largest.size
    return smaller and largest.baseline - word.baseline >= RAISED_MARK * largest.size


def _are_at_odds(word: Word, following: Word, size: float) -> bool:
    """Check whether digits follow other text without a blank, but differ in size or height."""
    if following.box.x0 - word.box.x1 >= WORD_GAP * size or not HAS_DIGIT(following.text):
        return False
    resized = abs(word.size - following.size) > SIZE_SLACK * size
    return resized or abs(word.baseline - following.baseline) > BASELINE_SLACK * size


def _find_gutter(lines: Sequence[PrintedLine], width: float) -> float | None:
    """Return the middle of the gap between two columns; None for a page in one column.

    The gutter is where the fewest cells cross, and of several such places the one nearest to the middle of the page.
    """
    boxes = [cell.box for line in lines for cell in line.cells]
    long = [box for box in boxes if box.x1 - box.x0 >= LONG_LINE * width]
    first, last = (int(GUTTER_STEPS * share) for share in GUTTER_ZONE)
    places = [width * step / GUTTER_STEPS for step in range(first, last + 1)]
    crossings = {x: sum(box.x0 < x < box.x1 for box in boxes) for x in places}
    gutter = min(places, key=lambda x: (crossings[x], abs(x - width / 2)))
    crossing = sum(box.x0 < gutter < box.x1 for box in long)
    if len(long) - crossing < MIN_LONG_LINES or crossing > GUTTER_CROSSINGS * len(long):
        return None
    return gutter


def _take_side(lines: Iterable[PrintedLine], gutter: float, *, right: bool) -> Iterator[PrintedLine]:
    for line in lines:
        cells = [cell for cell in line.cells if (cell.box.x0 >= gutter) == right]
        if cells:
            yield make_line(cells)
