"""Refuse a PDF that unpacks to more, or whose pages draw more, than the limits, before a library
reads it.
"""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pdfminer.ascii85 import ascii85decode, asciihexdecode
from pdfminer.lzw import LZWDecoder
from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import PDFStream, resolve1
from pdfminer.psparser import literal_name

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.limits import (
    MAX_DRAWN_BYTES,
    MAX_IMAGE_PIXELS,
    MAX_PAGE_OBJECTS,
    MAX_PAGES,
    MAX_UNPACKED_IMAGE_BYTES,
    MAX_UNPACKED_PDF_BYTES,
    MAX_UNPACKED_STREAM_BYTES,
)

STREAM = re.compile(rb"(?<!end)stream(?:\r?\n|\r)")
FILTERS = re.compile(rb"/(?:Filter|F)\s*(\[[^\]]*\]|/[^\s/<>\[\]()]+)")
NAME = re.compile(rb"/([^\s/<>\[\]()]+)")
ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
IMAGE = re.compile(rb"/Subtype\s*/Image\b")
SIDES = re.compile(rb"/(Width|Height|W|H)\s+(\d{1,9})\b(?!\s+\d+\s+R)")
DICTIONARY_BYTES = 16_384  # before the keyword of a stream, in which its dictionary is
FULL_NAMES = b"FlateDecode LZWDecode ASCII85Decode ASCIIHexDecode RunLengthDecode".split()
PIECE = 1 << 16  # bytes that are unpacked at a time: a stream is measured without being kept
SHORT_NAMES = dict(zip(b"Fl LZW A85 AHx RL".split(), FULL_NAMES, strict=True))
TEXT_DECODERS = {b"ASCII85Decode": ascii85decode, b"ASCIIHexDecode": asciihexdecode}
END_OF_RUNS = 128
LZW_CLEAR = 256
DRAW = re.compile(rb"/([^\s/<>\[\](){}%]+)(?:\s|%[^\r\n]*[\r\n])+Do\b")
# what draws text, a shape or an image
OPERATOR = re.compile(rb"(?:T[jJ]|['\"]|[SsfFBb]\*?|sh|EI)(?=[\s/(\[<%]|$)")
SMALL = 2 * MAX_PAGE_OBJECTS  # instructions of fewer bytes cannot draw too many objects
# How many times its size a stream unpacks to at most: phrases of 258 bytes in 2 bits (RFC 1951) or
# of 3,838 bytes in 12 bits, runs of 128 bytes in two bytes, four zeros in one.
MAX_RATIOS = {b"FlateDecode": 1032, b"LZWDecode": 2600, b"RunLengthDecode": 64, b"ASCII85Decode": 4}

Drawn = tuple[int, int]
"""Bytes of instructions, and objects that they draw."""


@dataclass(frozen=True, slots=True)
class PackedStream:
    """The bytes of a stream as they are in the file, its filters in order, and how much it may
    unpack to.
    """

    packed: memoryview
    filters: Sequence[bytes]
    limit: int

    @property
    def bound(self) -> int:
        return len(self.packed) * math.prod(MAX_RATIOS.get(name, 1) for name in self.filters)


def check_unpacked_size(data: bytes) -> None:
    """Raise DocumentTooLargeError if a stream or all streams of a PDF unpack to more than the
    limits.

    Streams are found by their keyword and not by the index of the file, so none is missed that a
    library would repair.
    """
    streams = [_describe(data, match.start(), match.end()) for match in STREAM.finditer(data)]
    bounds = [stream.bound for stream in streams]
    if sum(bounds) > MAX_UNPACKED_PDF_BYTES or any(
        stream.bound > stream.limit for stream in streams
    ):
        total = 0
        for stream in streams:
            total += measure_stream(stream)
            if total > MAX_UNPACKED_PDF_BYTES:
                raise DocumentTooLargeError(
                    f"unpacks to more than {MAX_UNPACKED_PDF_BYTES:,} bytes"
                )


def _describe(data: bytes, keyword: int, start: int) -> PackedStream:
    head = data.rfind(b"obj", max(0, keyword - DICTIONARY_BYTES), keyword)
    dictionary = data[max(head, keyword - DICTIONARY_BYTES, 0) : keyword]
    is_image = IMAGE.search(dictionary) is not None
    sides = {key[:1]: int(value) for key, value in SIDES.findall(dictionary)} if is_image else {}
    if sides.get(b"W", 0) * sides.get(b"H", 0) > MAX_IMAGE_PIXELS:
        raise DocumentTooLargeError(f"has an image of more than {MAX_IMAGE_PIXELS:,} pixels")
    end = data.find(b"endstream", start)
    limit = MAX_UNPACKED_IMAGE_BYTES if is_image else MAX_UNPACKED_STREAM_BYTES
    packed = memoryview(data)[start : end if end >= 0 else None]
    return PackedStream(packed, _find_filters(dictionary, data, start), limit)


def _find_filters(dictionary: bytes, data: bytes, start: int) -> Sequence[bytes]:
    """Return the filters of a stream; if they are not in its dictionary, that which its first bytes
    look like.
    """
    match = FILTERS.search(ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), dictionary))
    if match is not None:
        return list_filters(NAME.findall(match[1]))
    head = data[start : start + 2]
    is_zlib = len(head) == 2 and head[0] & 0x0F == 8 and int.from_bytes(head) % 31 == 0
    return [b"FlateDecode"] if is_zlib else []


def list_filters(names: Iterable[bytes]) -> list[bytes]:
    """Return the full names of filters."""
    return [SHORT_NAMES.get(name, name) for name in names]


def get_filters(stream: PDFStream) -> list[bytes]:
    """Return the full names of the filters of a stream, in order."""
    return list_filters(literal_name(name).encode() for name, _ in stream.get_filters())


def measure_stream(stream: PackedStream) -> int:
    """Return the largest size that a stream has on its way through its filters."""
    packed = stream.packed
    largest = len(stream.packed)
    for number, name in enumerate(stream.filters, 1):
        kept = io.BytesIO()
        size = 0
        for piece in _unpack(name, packed):
            size += len(piece)
            if size > stream.limit:
                raise DocumentTooLargeError(
                    f"has a stream that unpacks to more than {stream.limit:,} bytes"
                )
            if number < len(stream.filters):
                kept.write(piece)
        largest = max(largest, size)
        packed = kept.getbuffer()
    return largest


def _unpack(name: bytes, stream: memoryview) -> Iterator[bytes]:
    """Yield the pieces of a stream after one filter: up to the first damage, and none for a filter
    of images.
    """
    with suppress(zlib.error, ValueError, IndexError):
        if name == b"FlateDecode":
            decoder = zlib.decompressobj()
            for start in range(0, len(stream), PIECE):
                rest: bytes | memoryview = stream[start : start + PIECE]
                while rest and not decoder.eof:
                    yield decoder.decompress(rest, PIECE)
                    rest = decoder.unconsumed_tail
        elif name == b"LZWDecode":
            phrases = LZWDecoder(io.BytesIO(stream))
            # a stream that does not begin with this code is expanded by other libraries
            phrases.feed(LZW_CLEAR)
            yield from phrases.run()
        elif name == b"RunLengthDecode":
            yield from _expand_runs(stream)
        elif name in TEXT_DECODERS:
            yield TEXT_DECODERS[name](bytes(stream))


def _expand_runs(stream: memoryview) -> Iterator[bytes]:
    place = 0
    while place + 1 < len(stream) and (length := stream[place]) != END_OF_RUNS:
        size, times = (1, 257 - length) if length > END_OF_RUNS else (length + 1, 1)
        yield bytes(stream[place + 1 : place + 1 + size]) * times
        place += 1 + size


def check_drawn_size(data: bytes) -> None:
    """Raise DocumentTooLargeError for a page that draws more than the limits, with all forms that
    are drawn in it.

    A stream may be drawn many times, and draw others many times.
    """
    pages = PDFPage.create_pages(PDFDocument(PDFParser(io.BytesIO(data))))
    for number, page in enumerate(islice(pages, MAX_PAGES), 1):
        streams = [
            stream
            for content in page.contents
            if isinstance(stream := resolve1(content), PDFStream)
        ]
        if not resolve1(page.resources.get("XObject")) and sum(map(_bound, streams)) < SMALL:
            continue
        size, count = _measure(streams, page.resources, {})
        if count > MAX_PAGE_OBJECTS:
            what = f"{MAX_PAGE_OBJECTS:,} characters, lines and images"
            raise DocumentTooLargeError(f"draws more than {what} on page {number}")
        if size > MAX_DRAWN_BYTES:
            raise DocumentTooLargeError(
                f"draws more than {MAX_DRAWN_BYTES:,} bytes on page {number}"
            )


def _bound(stream: PDFStream) -> int:
    """Return the size of a stream, or if it is certain to be small, more than that."""
    data = memoryview(stream.rawdata or stream.data or b"")
    packed = PackedStream(data, get_filters(stream), MAX_UNPACKED_STREAM_BYTES)
    return packed.bound if packed.bound < SMALL else measure_stream(packed)


def _measure(streams: Sequence[PDFStream], resources: Any, forms: dict[int, Drawn | None]) -> Drawn:
    """Return what streams draw; `forms` has what each form does, None while it is measured.

    To draw one counts, too.
    """
    size = count = 0
    known = resolve1(resolve1(resources or {}).get("XObject")) or {}
    for stream in streams:
        content = stream.get_data()
        size += len(content)
        count += len(OPERATOR.findall(content))
        for name in DRAW.findall(content):
            key = ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), name).decode("latin-1")
            form = resolve1(known.get(key))
            if isinstance(form, PDFStream) and literal_name(form.get("Subtype")) == "Form":
                if id(form) not in forms:
                    forms[id(form)] = None
                    forms[id(form)] = _measure([form], form.get("Resources") or resources, forms)
                drawn = forms[id(form)]
                if drawn is None:
                    raise DocumentTooLargeError("has a form that draws itself")
                size += drawn[0]
                count += drawn[1] + 1
                if size > MAX_DRAWN_BYTES or count > MAX_PAGE_OBJECTS:
                    return size, count
    return size, count
