"""Compare captures with transcriptions: list every cell in which a downloaded version differs from
ours.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from ipu_results.errors import CatalogueError, DocumentError, FetchError
from ipu_results.ground.files import write_atomically
from ipu_results.read import ParsedDocument, SourceTable
from ipu_results.read.dispatch import read_document
from ipu_results.read.html import find_charset
from ipu_results.read.text import decode
from ipu_results.schema.vocabulary import Vocabulary, normalise_header
from ipu_results.sources.catalogue import Document

if TYPE_CHECKING:
    from ipu_results.sources.download import TransferOptions

CaptureDifference = dict[str, Any]
"""A row of the table `capture_differences`; absent keys are null."""
Cells = tuple[str, ...]


def compare_captures(
    captures: Sequence[Document],
    documents: Mapping[str, ParsedDocument],
    vocabulary: Vocabulary,
    max_bytes: int,
    max_pages: int,
) -> list[CaptureDifference]:
    """Return the rows of `capture_differences`.

    A capture that cannot be read, or that is not the file its sidecar describes, is one difference;
    it never stops a build. Raises CatalogueError for a capture of a document that is not in the
    catalogue.
    """
    rows: list[CaptureDifference] = []
    for capture in captures:
        original = capture.transcription_of or ""
        if original not in documents:
            message = f"is a capture of {original!r}, which is not in the catalogue"
            raise CatalogueError(message, document=capture.document_id)
        keys = {"document_id": original, "capture_id": capture.document_id}
        try:
            data = capture.read_bytes(max_bytes)
            captured = read_document(
                data,
                vocabulary.table_headers,
                capture.reader,
                max_bytes=max_bytes,
                max_pages=max_pages,
            )
        except (CatalogueError, DocumentError) as error:
            place = error.place or "document"
            rows.append(
                keys
                | {
                    "number": 1,
                    "kind": "unreadable",
                    "locator": place,
                    "captured": error.message,
                }
            )
        else:
            differences = enumerate(find_differences(documents[original], captured), start=1)
            rows += [keys | {"number": number} | difference for number, difference in differences]
    return rows


def find_differences(ours: ParsedDocument, theirs: ParsedDocument) -> Iterator[CaptureDifference]:
    """Yield the cells, rows and tables in which two documents differ.

    Rows are matched in order, not by position.
    """
    captured = {table.name: table for table in theirs.tables}
    for table in ours.tables:
        if table.name in captured:
            yield from _compare_tables(table, captured.pop(table.name))
        else:
            yield {
                "kind": "table",
                "table_name": table.name,
                "locator": table.locator,
                "transcribed": table.name,
            }
    for table in captured.values():
        yield {
            "kind": "table",
            "table_name": table.name,
            "locator": table.locator,
            "captured": table.name,
        }
    for problem in theirs.problems:
        name = problem.table_name or None
        yield {
            "kind": "row",
            "table_name": name,
            "locator": problem.locator,
            "captured": problem.message,
        }


def _compare_tables(ours: SourceTable, theirs: SourceTable) -> Iterator[CaptureDifference]:
    theirs = _reorder_columns(ours, theirs)
    for column, names in enumerate(zip(ours.columns, theirs.columns, strict=True), start=1):
        yield from _compare_texts(ours.name, f"{ours.locator}, header, column {column}", *names)
    left, right = [row.cells for row in ours.rows], [row.cells for row in theirs.rows]
    for a, b, c, d in _find_changed_ranges(left, right):
        shared = min(b - a, d - c)
        for row, cells in zip(ours.rows[a : a + shared], right[c : c + shared], strict=True):
            for column, texts in enumerate(zip(row.cells, cells, strict=True)):
                yield from _compare_texts(ours.name, ours.cell_locator(row, column), *texts)
        lost, added = ours.rows[a + shared : b], theirs.rows[c + shared : d]
        for side, rows in (("transcribed", lost), ("captured", added)):
            for row in rows:
                yield {
                    "kind": "row",
                    "table_name": ours.name,
                    "locator": row.locator,
                    side: " | ".join(row.cells),
                }


def _compare_texts(
    table_name: str, locator: str, transcribed: str, captured: str
) -> Iterator[CaptureDifference]:
    if transcribed != captured:
        texts = {"transcribed": transcribed, "captured": captured}
        yield {"kind": "cell", "table_name": table_name, "locator": locator, **texts}


def _find_changed_ranges(
    left: Sequence[Cells], right: Sequence[Cells]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (a, b, c, d) for each place where left[a:b] and right[c:d] differ.

    Equal rows at both ends match. Between them the n-th of several equal rows can only match the
    n-th, so that no two elements of a side are equal, and difflib's time hardly grows faster than
    the rows.
    """
    head = _count_equal(left, right)
    tail = _count_equal(left[head:][::-1], right[head:][::-1])
    ours, theirs = (_number_repeats(rows[head : len(rows) - tail]) for rows in (left, right))
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            yield a + head, b + head, c + head, d + head


def _count_equal(left: Sequence[Cells], right: Sequence[Cells]) -> int:
    """Count the rows from the start that are equal."""
    return sum(
        1 for _ in takewhile(lambda rows: rows[0] == rows[1], zip(left, right, strict=False))
    )


def _number_repeats(rows: Sequence[Cells]) -> list[tuple[Cells, int]]:
    """Return each row with the number of equal rows before it."""
    seen: defaultdict[Cells, count[int]] = defaultdict(count)
    return [(row, next(seen[row])) for row in rows]


def _reorder_columns(ours: SourceTable, theirs: SourceTable) -> SourceTable:
    """Return the captured table with its columns in the order of ours; both have the same header
    names.
    """
    names = [normalise_header(name) for name in theirs.columns]
    order = [names.index(normalise_header(name)) for name in ours.columns]
    rows = tuple(
        row._replace(
            cells=tuple(row.cells[column] for column in order),
            cell_locators=tuple(theirs.cell_locator(row, column) for column in order),
        )
        for row in theirs.rows
    )
    columns = tuple(theirs.columns[column] for column in order)
    return SourceTable.from_rows(theirs.name, columns, rows, theirs.locator, theirs.caption)


CONTENT_TYPE_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)


@dataclass(frozen=True, slots=True)
class Capture:
    """A downloaded version.

    If an equal one was there before, `kept` is False and the others describe that one.
    """

    document_id: str
    path: Path
    kept: bool


def select_fetchable(documents: Sequence[Document]) -> list[Document]:
    """Return the documents that have an address and are not captures themselves."""
    return [
        document for document in documents if _get_address(document) and not document.is_capture
    ]


def capture(
    document: Document, documents: Sequence[Document], options: TransferOptions | None = None
) -> Capture:
    """Download one document and keep it as a further version of it, unless one of `documents` is
    equal to it.

    Raises FetchError, or IpuResultsError if a file cannot be written. Nothing half-written stays.
    """
    from ipu_results.sources.download import (  # noqa: PLC0415  (a build needs no requests)
        MEDIA_TYPES,
        download,
    )

    media_type = document.fetch.media_type if document.fetch else "text/html"
    result = download(_get_address(document), media_type, options)
    if (
        media_type != "application/pdf"
    ):  # text must be in UTF-8 or in the encoding that server or page declares
        served = CONTENT_TYPE_CHARSET.search(result.content_type)
        try:
            decode(result.data, served[1] if served else find_charset(result.data))
        except DocumentError as error:
            raise FetchError(error.message, document=document.document_id) from error
    sha256 = hashlib.sha256(result.data).hexdigest()
    if known := next((other for other in documents if other.sha256 == sha256), None):
        return Capture(known.document_id, known.path, kept=False)
    moment = result.retrieved_at.strftime("%Y%m%dT%H%M%SZ")
    for number in count(1):  # several captures of one second
        stamp = moment if number == 1 else f"{moment}-{number}"
        path = document.path.with_name(
            f"{document.path.stem}.capture-{stamp}{MEDIA_TYPES[media_type].suffix}"
        )
        sidecar = {
            "document_id": f"{document.document_id}@{stamp.lower()}",
            "transcription_of": document.document_id,
            "title": document.title,
            "publisher": document.publisher,
            "url": _get_address(document),
            "retrieved_on": result.retrieved_at.date(),
            "kind": "capture",
            "licence": document.licence,
            "sha256": sha256,
            "reader": document.reader,
            "note": (
                f"The document as downloaded at {result.retrieved_at.isoformat()}; compared, adds"
                " no rows."
            ),
        }
        try:
            if _write_pair(path, result.data, tomli_w.dumps(sidecar).encode()):
                return Capture(str(sidecar["document_id"]), path, kept=True)
        except OSError as error:
            message = f"cannot be kept: {error.strerror or error}"
            raise FetchError(message, document=document.document_id) from error
    raise AssertionError("numbers do not end")


def _get_address(document: Document) -> str:
    """Return where a document is downloaded from; empty if its sidecar does not say."""
    return (document.fetch.url or document.url or "") if document.fetch else ""


def _write_pair(path: Path, data: bytes, sidecar_data: bytes) -> bool:
    """Write a file and its sidecar, both or neither. Returns False if the name is taken."""
    sidecar = path.with_name(f"{path.name}.toml")
    lock = path.with_name(f"{path.name}.toml.part")  # the catalogue ignores `.part` files
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return False
    try:
        if path.exists() or sidecar.exists():
            return False
        write_atomically(path, data)
        write_atomically(sidecar, sidecar_data)
        return True
    except BaseException:
        if not sidecar.exists():
            path.unlink(missing_ok=True)
        raise
    finally:
        lock.unlink(missing_ok=True)


def describe_difference(difference: CaptureDifference) -> str:
    """Describe where a capture differs from its transcription, in one line."""
    place = f"{difference['capture_id']}: {difference['locator']}"
    if difference["kind"] == "unreadable":
        return f"capture cannot be read: {place}: {difference['captured']}"
    ours, theirs = (
        repr(difference[key]) if key in difference else "nothing"
        for key in ("transcribed", "captured")
    )
    return f"capture differs: {place}: {ours} here, {theirs} there"
