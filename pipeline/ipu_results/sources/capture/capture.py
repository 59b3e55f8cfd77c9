"""Keep a downloaded version of a catalogued document next to its transcription, with a sidecar of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from ipu_results._util.files import write_atomically
from ipu_results._util.limits import MAX_BYTES
from ipu_results.errors import DocumentError, FetchError
from ipu_results.read.html import find_charset
from ipu_results.read.text import decode
from ipu_results.sources.capture.download import Download, Progress, download
from ipu_results.sources.catalogue import Document

SUFFIXES = {
    "text/html": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "text/markdown": ".txt",
}
CONTENT_TYPE_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)


@dataclass(frozen=True, slots=True)
class Capture:
    """A downloaded version. If an equal one was there before, `kept` is False and the others describe that one."""

    document_id: str
    path: Path
    kept: bool


def select_fetchable(documents: Sequence[Document]) -> list[Document]:
    """Return the documents that have an address and are not captures themselves."""
    return [document for document in documents if _fetch_url(document) and not document.is_capture]


def capture(
    document: Document,
    documents: Sequence[Document],
    *,
    max_bytes: int = MAX_BYTES,
    timeout: float = 30.0,
    retries: int = 4,
    progress: Progress = lambda size, total: None,  # noqa: ARG005
) -> Capture:
    """Download one document and keep it as a further version of it, unless one of `documents` is equal to it.

    Raises FetchError, or IpuResultsError if a file cannot be written. Nothing half-written stays.
    """
    media_type = document.fetch.media_type if document.fetch else "text/html"
    url = _fetch_url(document)
    result = download(
        url, media_type=media_type, max_bytes=max_bytes, timeout=timeout, retries=retries, progress=progress
    )
    if media_type != "application/pdf":
        _check_text(document, result)
    sha256 = hashlib.sha256(result.data).hexdigest()
    if known := next((other for other in documents if other.sha256 == sha256), None):
        return Capture(known.document_id, known.path, kept=False)
    try:
        return _keep(document, result, SUFFIXES.get(media_type, ".bin"))
    except OSError as error:
        message = f"cannot be kept: {error.strerror or error}"
        raise FetchError(message, document=document.document_id) from error


def _fetch_url(document: Document) -> str:
    """Return where a document is downloaded from; empty if its sidecar does not say."""
    return (document.fetch.url or document.url or "") if document.fetch else ""


def _check_text(document: Document, result: Download) -> None:
    """Refuse bytes that are not text in UTF-8 or in the encoding that the server, or else the page itself, declares."""
    served = CONTENT_TYPE_CHARSET.search(result.content_type)
    try:
        decode(result.data, served[1] if served else find_charset(result.data))
    except DocumentError as error:
        raise FetchError(error.message, document=document.document_id) from error


def _keep(document: Document, result: Download, suffix: str) -> Capture:
    """Write the capture and its sidecar, named after the time; a number follows if that name is taken."""
    moment = stamp = result.retrieved_at.strftime("%Y%m%dT%H%M%SZ")
    stem = document.path.name.removesuffix(document.path.suffix)
    number = 1
    while True:
        path = document.path.with_name(f"{stem}.capture-{stamp}{suffix}")
        capture_id = f"{document.document_id}@{stamp.lower()}"
        sidecar = tomli_w.dumps(_make_sidecar(document, result, capture_id))
        if _write_pair(path, result.data, sidecar.encode()):
            return Capture(capture_id, path, kept=True)
        number += 1
        stamp = f"{moment}-{number}"


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
        try:
            write_atomically(path, data)
            write_atomically(sidecar, sidecar_data)
        finally:
            if not sidecar.exists():
                path.unlink(missing_ok=True)
        return True
    finally:
        lock.unlink(missing_ok=True)


def _make_sidecar(document: Document, result: Download, capture_id: str) -> dict[str, Any]:
    return {
        "document_id": capture_id,
        "transcription_of": document.document_id,
        "title": document.title,
        "publisher": document.publisher,
        "url": _fetch_url(document),
        "retrieved_on": result.retrieved_at.date(),
        "kind": "capture",
        "licence": document.licence,
        "sha256": hashlib.sha256(result.data).hexdigest(),
        "reader": document.reader,
        "note": f"The document as downloaded at {result.retrieved_at.isoformat()}; compared, adds no rows.",
    }
