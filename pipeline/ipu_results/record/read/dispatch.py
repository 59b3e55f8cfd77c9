"""Choose the reader of a document by its kind and its bytes, and draft headers of a document that
no reader knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

import pyarrow as pa

from ipu_results.errors import (
    DocumentError,
    IpuResultsError,
    ReaderFailedError,
    UnrecognisedDocumentError,
)
from ipu_results.kit.limits import pause_garbage_collection
from ipu_results.kit.sql import get_first_line
from ipu_results.mlperf.log import MARK
from ipu_results.record.read.context import list_context
from ipu_results.record.read.document import FirstRow, Headers, ParsedDocument
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.html import TABLE_TAG, find_charset, is_message, parse_page, read_html
from ipu_results.record.read.html.cells import read_cell
from ipu_results.record.read.html.shown import ShownPage
from ipu_results.record.read.plain_text import read_plain_text, split_lines
from ipu_results.record.read.records import (
    parse_line,
    read_csv,
    read_csv_columns,
    read_mlperf_log,
    read_sweep_record,
)
from ipu_results.record.read.text import decode, lift_footnote
from ipu_results.schema.vocabulary import ALIASES, KINDS

PDF_SIGNATURE = b"%PDF-"
PDF_HEAD_BYTES = 1024  # in which a reader of PDFs looks for the signature
# The only kind that a document with these bytes can be of.
SIGNATURES = {PDF_SIGNATURE: "inference-paper", MARK: "mlperf-log"}
# the first bytes, in which a signature is: a saved page may have a long header before it
SIGNATURE_BYTES = 100_000
# prose may have `<table>.toml`, the name of a file: after the tag of a table is a blank or a tag
HTML = re.compile(rb"<(?:!doctype\s+html\b|html\b|body\b|table\b(?!>[^\s<]))", re.I)
# A package is missing, or memory: any other exception is a refusal of the one document.
NOT_OF_THE_DOCUMENT = (IpuResultsError, ImportError, MemoryError, pa.lib.ArrowCapacityError)
MIN_COLUMNS = 3  # fewer words in a row may be ordinary text


class Reader(Protocol):
    """Reads the documents of one format.

    It opens no file and keeps nothing between two documents.
    """

    def __call__(self, data: bytes, headers: Headers, /) -> ParsedDocument:
        """Return the tables of a document, each row and cell with its place, and a problem for what
        is not read.

        `data` is the whole document. `headers` are the known headers of its kind: a table is read
        if its names are those of one of them.

        Raises UnrecognisedDocumentError if there is nothing that resembles a known table, so that
        another kind may be tried, DamagedDocumentError for a document that is cut off or broken,
        and DocumentTooLargeError.
        """


def _read_pdf(data: bytes, headers: Headers) -> ParsedDocument:
    # pdfminer takes longer to import than a page to read
    from ipu_results.record.read.pdf import read_pdf  # noqa: PLC0415

    return read_pdf(data, headers)


READERS: dict[str, Reader] = {
    "text": read_plain_text,
    "csv": read_csv,
    "csv-columns": read_csv_columns,
    "run-record": read_sweep_record,
    "mlperf-log": lambda data, _: read_mlperf_log(data),
}
"""The reader of each format of `schema/kinds.toml`; a text may be a PDF or HTML by its bytes."""


def read_document(
    data: bytes,
    headers: Headers,
    kind: str | None = None,
    shown: ShownPage | None = None,
) -> ParsedDocument:
    """Read the tables of one document that have one of the `headers` of its kind.

    Without `kind`, guess it. `shown` is what a browser shows of a page.

    Raises a DocumentError for a document that cannot be read at all. Rows that cannot be read
    become problems.
    """
    with pause_garbage_collection():
        if kind is None:
            return _read_by_trial(data, headers, shown)
        known = ALIASES.get(kind, kind)
        if known not in KINDS:
            raise UnrecognisedDocumentError(
                f"cannot be of kind {known!r}; the kinds are {', '.join(KINDS)}"
            )
        return _read_as(known, data, headers, shown)


def _read_by_trial(data: bytes, headers: Headers, shown: ShownPage | None) -> ParsedDocument:
    """Read as the first kind that finds a table, else as the first that finds a nearly known
    header.

    Raises the error of a kind that can read it no further, unless one before found such a header.
    """
    start = data[:SIGNATURE_BYTES]
    for sign, kind in SIGNATURES.items():
        if sign in start:
            return _read_as(kind, data, headers, shown)
    nearly: ParsedDocument | None = None
    for kind in KINDS:
        try:
            document = _read_as(kind, data, headers, shown)
        except UnrecognisedDocumentError:
            continue
        except DocumentError:
            if nearly is None:
                raise
            continue
        if document.tables:
            return document
        if nearly is None:
            nearly = document
    if nearly is not None:
        return nearly
    raise UnrecognisedDocumentError(f"is none of {', '.join(KINDS)}: no table with a known header")


def _read_as(kind: str, data: bytes, headers: Headers, shown: ShownPage | None) -> ParsedDocument:
    read = READERS[KINDS[kind].format]
    if _is_pdf(data):
        read = _read_pdf
    elif read is read_plain_text and is_page(data):
        read = partial(read_html, shown=shown)
    of_kind = [header for header in headers if header.reader == kind]
    try:
        document = read(data, of_kind)
        return replace(document, context=list_context(document, kind, of_kind))
    except NOT_OF_THE_DOCUMENT:
        raise
    except Exception as error:
        message = f"the reader failed: {type(error).__name__}: {get_first_line(error)}"
        raise ReaderFailedError(f"{message} (--debug shows where)") from error


def _is_pdf(data: bytes) -> bool:
    start = data[:PDF_HEAD_BYTES].find(PDF_SIGNATURE)
    return start >= 0 and not HTML.search(data[:start]) and not is_message(data)


def is_page(data: bytes) -> bool:
    """Check whether a document is an HTML page, or a message with one."""
    start = data[:SIGNATURE_BYTES].replace(b"\0", b"")  # without the NULs of UTF-16
    return is_message(data) or HTML.search(start) is not None


def find_first_rows(data: bytes, suffix: str) -> list[FirstRow]:
    """Find the first row of words of each HTML table, block of delimited text or CSV file, or each
    header of a PDF.

    A header can be drafted from it, in a document without a known one. Raises a DocumentError, as
    `read_document` does.
    """
    if suffix == ".pdf":
        # pdfminer is slow to import
        from ipu_results.record.read.pdf import find_pdf_headers  # noqa: PLC0415

        return find_pdf_headers(data)
    text = decode(data, find_charset(data))
    if suffix == ".csv":
        columns = tuple(parse_line(text.split("\n", 1)[0]))
        return [("line 1", columns)] if _is_header(columns) else []
    if TABLE_TAG.search(text):
        return list(_find_in_html(text))
    return list(_find_in_text(text))


def _find_in_html(text: str) -> Iterator[FirstRow]:
    for number, table in enumerate(parse_page(text).iter("table"), start=1):
        for row in table.iter("tr"):
            columns = tuple(read_cell(cell).text for cell in row.iter("th", "td"))
            if _is_header(columns):
                yield f"table {number}", columns
                break


def _find_in_text(text: str) -> Iterator[FirstRow]:
    within = False
    for line in split_lines(text):
        columns = tuple(lift_footnote(cell)[0] for cell in line.cells)
        if not within and _is_header(columns):
            yield line.place, columns
        within = len(columns) >= MIN_COLUMNS


def _is_header(columns: tuple[str, ...]) -> bool:
    words = [text for text in columns if text and not is_figure(text)]
    return len(words) >= MIN_COLUMNS and len(words) == len(columns)
