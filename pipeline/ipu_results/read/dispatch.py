"""Choose the reader of a document by its bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ipu_results.errors import DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.ground.limits import MAX_BYTES, MAX_PAGES, pause_garbage_collection
from ipu_results.read.csv_table import read_csv
from ipu_results.read.document import ParsedDocument
from ipu_results.read.html import read_html
from ipu_results.read.paper.text import read_paper_text
from ipu_results.read.run_record import MARK, read_mlperf_log, read_sweep_record
from ipu_results.read.saved_page import is_message, unpack_saved_page
from ipu_results.read.text import decode, read_page_text
from ipu_results.schema.table_headers import TableHeader
from ipu_results.schema.vocabulary import ALIASES, KINDS

PDF_SIGNATURE = b"%PDF-"
SIGNATURES = {PDF_SIGNATURE: ("inference-paper",), MARK: ("mlperf-log",)}
SIGNATURE_BYTES = 100_000
HTML = re.compile(rb"<(?:!doctype\s+html|html|table|body)\b", re.I)


def read_document(
    data: bytes,
    headers: Sequence[TableHeader],
    kind: str | None = None,
    *,
    max_bytes: int = MAX_BYTES,
    max_pages: int = MAX_PAGES,
) -> ParsedDocument:
    """Read the tables of one document that have one of the `headers` of its kind. Without `kind`, guess it.

    Raises a DocumentError for a document that cannot be read at all. Rows that cannot be read become problems.
    """
    if len(data) > max_bytes:
        raise DocumentTooLargeError(f"has {len(data):,} bytes, the limit is {max_bytes:,}")
    kind = ALIASES.get(kind or "", kind)
    if kind not in (None, *KINDS):
        raise UnrecognisedDocumentError(f"cannot be of kind {kind!r}; the kinds are {', '.join(KINDS)}")
    with pause_garbage_collection():
        if kind is None:
            return _read_by_trial(data, headers, max_pages)
        return _read_as(kind, data, headers, max_pages)


def _read_by_trial(data: bytes, headers: Sequence[TableHeader], max_pages: int) -> ParsedDocument:
    """Read as the first kind that finds a table, else as the first that finds a nearly known header."""
    kinds = next((kinds for sign, kinds in SIGNATURES.items() if sign in data[:SIGNATURE_BYTES]), KINDS)
    failures: list[UnrecognisedDocumentError] = []
    nearly: ParsedDocument | None = None
    for kind in kinds:
        try:
            document = _read_as(kind, data, headers, max_pages)
        except UnrecognisedDocumentError as failure:
            failures.append(failure)
        except DocumentError:
            if nearly is None:
                raise
        else:
            if document.tables:
                return document
            nearly = nearly or document
    if nearly is not None:
        return nearly
    if len(failures) == 1:
        raise failures[0]
    raise UnrecognisedDocumentError(f"is none of {', '.join(KINDS)}: no table with a known header")


def _read_as(kind: str, data: bytes, headers: Sequence[TableHeader], max_pages: int) -> ParsedDocument:
    headers = [header for header in headers if header.reader == kind]
    if data.lstrip()[: len(PDF_SIGNATURE)] == PDF_SIGNATURE:
        from ipu_results.read.pdf import read_pdf  # noqa: PLC0415  (pdfplumber takes longer to import than a page to read)

        return read_pdf(data, headers, max_pages=max_pages)
    file_format = KINDS[kind].format
    if file_format == "mlperf-log":
        return read_mlperf_log(data)
    if file_format == "run-record":
        return read_sweep_record(data, headers)
    if file_format == "csv-columns":
        from ipu_results.read.csv_table import read_csv_columns  # noqa: PLC0415  (pyarrow's CSV reader)

        return read_csv_columns(data, headers)
    if file_format == "csv":
        return read_csv(data, headers)
    if is_message(data):
        page = unpack_saved_page(data)
        return read_html(page.data, headers, page.charset)
    if HTML.search(data[:SIGNATURE_BYTES].replace(b"\0", b"")):  # without the NULs of UTF-16
        return read_html(data, headers)
    return (read_page_text if file_format == "page" else read_paper_text)(decode(data), headers)
