"""Fetch: a downloaded version of a catalogued document, kept beside its transcription with a sidecar of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import tomli_w

from ipu_results._util.limits import MAX_BYTES
from ipu_results.errors import DocumentError, FetchError
from ipu_results.read.html import declared_charset
from ipu_results.read.text import decode
from ipu_results.sources.capture.download import Download, download
from ipu_results.sources.catalogue import Document

SUFFIXES = {
    "text/html": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "text/markdown": ".txt",
}
CONTENT_TYPE_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Capture:
    """`kept` is False where the download equals a capture that is here already; `path` is that one then."""

    document_id: str
    path: Path
    kept: bool


def fetchable(documents: Sequence[Document]) -> list[Document]:
    return [document for document in documents if _address(document) and not document.is_capture]


def _address(document: Document) -> str:
    """Where it is downloaded from; empty where nothing tells."""
    return (document.fetch.url or document.url or "") if document.fetch else ""


def capture(
    document: Document,
    documents: Sequence[Document],
    *,
    max_bytes: int = MAX_BYTES,
    timeout: float = 30.0,
    retries: int = 4,
    progress: Progress | None = None,
) -> Capture:
    """Download one document and keep it as a further version of it. Raises FetchError; nothing half-written stays."""
    media_type = document.fetch.media_type if document.fetch else "text/html"
    url = _address(document)
    with _draft(document) as draft:
        got = download(
            url, draft, media_type=media_type, max_bytes=max_bytes, timeout=timeout, retries=retries, progress=progress
        )
        _assert_text(document, got, draft, media_type)
        if known := next((one for one in documents if one.sha256 == got.sha256), None):
            return Capture(known.document_id, known.path, kept=False)
        return _keep(document, got, draft, media_type)


@contextmanager
def _draft(document: Document) -> Iterator[Path]:
    """A hidden name of this fetch alone, gone at the end; `.part` is what the catalogue passes over."""
    draft = document.path.with_name(f".{document.document_id}.{uuid4().hex}.part")
    try:
        yield draft
    except OSError as error:
        message = f"cannot be kept: {error.strerror or error}"
        raise FetchError(message, document=document.document_id) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _assert_text(document: Document, got: Download, path: Path, media_type: str) -> None:
    if media_type != "application/pdf":
        data = path.read_bytes()
        try:
            decode(data, _declared(got.content_type, data))
        except DocumentError as error:
            raise FetchError(error.message, document=document.document_id) from error


def _declared(content_type: str, data: bytes) -> str | None:
    """The encoding that the server names, or else the page itself."""
    if served := CONTENT_TYPE_CHARSET.search(content_type):
        return served[1]
    return declared_charset(data)


def _keep(document: Document, got: Download, draft: Path, media_type: str) -> Capture:
    """Name the file after its time, write the sidecar, and let each appear whole."""
    stamp, path = _claim(document, got.retrieved_at.strftime("%Y%m%dT%H%M%SZ"), SUFFIXES.get(media_type, ".bin"))
    capture_id = f"{document.document_id}@{stamp.lower()}"
    _publish(draft, path, tomli_w.dumps(_sidecar(document, got, capture_id)))
    return Capture(capture_id, path, kept=True)


def _claim(document: Document, moment: str, suffix: str) -> tuple[str, Path]:
    """A stamp and a path that no other fetch has; the empty `.toml.part` beside the path claims it."""
    stem = document.path.name.removesuffix(document.path.suffix)
    stamp, number = moment, 1
    while True:
        path = document.path.with_name(f"{stem}.capture-{stamp}{suffix}")
        sidecar, part = _beside(path)
        with suppress(FileExistsError):
            part.touch(exist_ok=False)
            if not (path.exists() or sidecar.exists()):
                return stamp, path
            part.unlink(missing_ok=True)
        number += 1
        stamp = f"{moment}-{number}"


def _publish(draft: Path, path: Path, text: str) -> None:
    """Both files or none."""
    sidecar, part = _beside(path)
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(draft, path)
        os.replace(part, sidecar)
    finally:
        if not sidecar.exists():
            path.unlink(missing_ok=True)
        part.unlink(missing_ok=True)


def _beside(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.toml"), path.with_name(f"{path.name}.toml.part")


def _sidecar(document: Document, got: Download, capture_id: str) -> dict[str, Any]:
    return {
        "document_id": capture_id,
        "transcription_of": document.document_id,
        "title": document.title,
        "publisher": document.publisher,
        "url": got.url,
        "retrieved_on": got.retrieved_at.date(),
        "kind": "capture",
        "licence": document.licence,
        "sha256": got.sha256,
        "reader": document.reader,
        "note": f"The document as downloaded at {got.retrieved_at.isoformat()}; compared, adds no rows.",
    }
