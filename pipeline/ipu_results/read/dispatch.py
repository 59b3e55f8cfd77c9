"""Which reader takes a document, told from its bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ipu_results._util.garbage import pause_garbage_collection
from ipu_results._util.limits import MAX_BYTES, MAX_PAGES
from ipu_results.errors import DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.read.csv_table import read_csv
from ipu_results.read.html import read_html
from ipu_results.read.mlperf_log import MARK, read_mlperf_log
from ipu_results.read.page_text import read_page_text
from ipu_results.read.paper.text import read_paper_text
from ipu_results.read.reading import ParsedDocument
from ipu_results.read.run_record import read_sweep_record
from ipu_results.read.text import decode
from ipu_results.schema.kinds import KINDS
from ipu_results.schema.layouts import TableHeader

SIGNS = {b"%PDF-": ("qwant-paper",), MARK: ("mlperf-log",)}
SIGN_WITHIN = 100_000
HTML = re.compile(rb"<(?:!doctype\s+html|html|table|body)\b", re.I)


def read_document(
    data: bytes,
    layouts: Sequence[TableHeader],
    kind: str | None = None,
    *,
    max_bytes: int = MAX_BYTES,
    max_pages: int = MAX_PAGES,
) -> ParsedDocument:
    """Tables of one document with the `layouts` of its kind; the kind is guessed where it is not given.

    Raises a DocumentError for a document that cannot be read at all; rows that cannot are its problems.
    """
    if len(data) > max_bytes:
        raise DocumentTooLargeError(f"has {len(data):,} bytes, the limit is {max_bytes:,}")
    if kind not in (None, *KINDS):
        raise UnrecognisedDocumentError(f"cannot be of kind {kind!r}; the kinds are {', '.join(KINDS)}")
    with pause_garbage_collection():
        if kind is None:
            return _first_that_reads(data, layouts, max_pages)
        return _read_as(kind, data, [layout for layout in layouts if layout.reader == kind], max_pages)


def _first_that_reads(data: bytes, layouts: Sequence[TableHeader], max_pages: int) -> ParsedDocument:
    """The first kind that finds a table, else one that finds what nearly is; headers tell, never a publisher's name."""
    kinds = next((kinds for sign, kinds in SIGNS.items() if sign in data[:SIGN_WITHIN]), KINDS)
    failures: list[UnrecognisedDocumentError] = []
    nearly: ParsedDocument | None = None
    for kind in kinds:
        try:
            reading = _read_as(kind, data, [layout for layout in layouts if layout.reader == kind], max_pages)
        except UnrecognisedDocumentError as failure:
            failures.append(failure)
        except DocumentError:
            if nearly is None:
                raise
        else:
            if reading.tables:
                return reading
            nearly = nearly or reading
    if nearly is not None:
        return nearly
    if len(failures) == 1:
        raise failures[0]
    raise UnrecognisedDocumentError(f"is none of {', '.join(KINDS)}: no table with a known header")


def _read_as(kind: str, data: bytes, layouts: Sequence[TableHeader], max_pages: int) -> ParsedDocument:
    file_format = KINDS[kind].format
    if data.lstrip()[:5] == b"%PDF-":
        from ipu_results.read.pdf import read_pdf  # noqa: PLC0415 (pdfplumber takes longer to import than a page to read)

        return read_pdf(data, layouts, max_pages=max_pages)
    if file_format == "mlperf-log":
        return read_mlperf_log(data)
    if file_format == "run-record":
        return read_sweep_record(data, layouts)
    if file_format == "csv":
        return read_csv(data, layouts)
    if HTML.search(data[:SIGN_WITHIN].replace(b"\0", b"")):  # NULs: UTF-16
        return read_html(data, layouts)
    text = decode(data)
    return read_page_text(text, layouts) if file_format == "page" else read_paper_text(text, layouts)
