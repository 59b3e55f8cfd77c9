"""Refuse a PDF whose pages draw more than the limit: a stream may be drawn many times, and draw others many times."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import PDFStream, resolve1
from pdfminer.psparser import literal_name

from ipu_results._util.limits import MAX_DRAWN_BYTES, MAX_PAGE_OBJECTS, MAX_UNPACKED_STREAM_BYTES
from ipu_results.errors import DocumentTooLargeError
from ipu_results.read.pdf.streams import PackedStream, list_filters, measure_stream

DRAW = re.compile(rb"/([^\s/<>\[\](){}%]+)(?:\s|%[^\r\n]*[\r\n])+Do\b")


OPERATOR = re.compile(rb"(?:T[jJ]|['\"]|[SsfFBb]\*?|sh|EI)(?=[\s/(\[<%]|$)")
"""What draws text, a shape or an image."""
SMALL = 2 * MAX_PAGE_OBJECTS
"""Instructions of fewer bytes cannot draw too many objects."""

Drawn = tuple[int, int]
"""Bytes of instructions, and objects that they draw."""


def check_drawn_size(data: bytes, max_pages: int) -> None:
    """Raise DocumentTooLargeError for a page that draws more than the limits, with all forms that are drawn in it."""
    pages = PDFPage.create_pages(PDFDocument(PDFParser(io.BytesIO(data))))
    for number, page in enumerate(islice(pages, max_pages), 1):
        streams = [stream for content in page.contents if isinstance(stream := resolve1(content), PDFStream)]
        if not resolve1(page.resources.get("XObject")) and sum(map(_bound, streams)) < SMALL:
            continue
        size, count = _measure(streams, page.resources, {})
        if size > MAX_DRAWN_BYTES or count > MAX_PAGE_OBJECTS:
            raise DocumentTooLargeError(
                f"draws more than {MAX_PAGE_OBJECTS:,} characters, lines and images on page {number}"
                if count > MAX_PAGE_OBJECTS
                else f"draws more than {MAX_DRAWN_BYTES:,} bytes on page {number}"
            )


def _bound(stream: PDFStream) -> int:
    """Return the size of a stream, or if it is certain to be small, more than that."""
    filters = list_filters(literal_name(name).encode() for name, _ in stream.get_filters())
    packed = PackedStream(memoryview(stream.rawdata or stream.data or b""), filters, MAX_UNPACKED_STREAM_BYTES)
    return packed.bound if packed.bound < SMALL else measure_stream(packed)


def _measure(streams: Sequence[PDFStream], resources: Any, forms: dict[int, Drawn]) -> Drawn:
    """Return what streams draw; `forms` has what each form does, nothing while it is measured."""
    size = count = 0
    known = resolve1(resolve1(resources or {}).get("XObject")) or {}
    for stream in streams:
        content = stream.get_data()
        size += len(content)
        count += len(OPERATOR.findall(content))
        for name in DRAW.findall(content):
            form = resolve1(known.get(name.decode("latin-1")))
            if isinstance(form, PDFStream) and literal_name(form.get("Subtype")) == "Form":
                if id(form) not in forms:
                    forms[id(form)] = (0, 0)
                    forms[id(form)] = _measure([form], form.get("Resources") or resources, forms)
                size, count = size + forms[id(form)][0], count + forms[id(form)][1]
                if size > MAX_DRAWN_BYTES or count > MAX_PAGE_OBJECTS:
                    return size, count
    return size, count
