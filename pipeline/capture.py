"""Fetch: a downloaded version of a catalogued document, kept beside its transcription with a sidecar of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from pipeline.accepted import MAX_BYTES
from pipeline.catalogue import Document
from pipeline.errors import DocumentError, FetchError
from pipeline.fetch import Download, download
from pipeline.read.text import decode

SUFFIXES = {
    "text/html": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "text/markdown": ".txt",
}
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Capture:
    """`kept` is False where the download equals a capture that is here already; `path` is that one then."""

    document_id: str
    path: Path
    kept: bool


def fetchable(documents: Sequence[Document]) -> list[Document]:
    return [document for document in documents if document.fetch and document.transcription_of is None]


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
    media_type = document.fetch.get("media_type", "text/html")
    url = document.fetch.get("url", document.url)
    draft = document.path.with_name(f".{document.document_id}.download")
    draft.unlink(missing_ok=True)
    try:
        got = download(
            url, draft, media_type=media_type, max_bytes=max_bytes, timeout=timeout, retries=retries, progress=progress
        )
        _assert_text(document, draft, media_type)
        if known := next((one for one in documents if one.sha256 == got.sha256), None):
            return Capture(known.document_id, known.path, kept=False)
        return _keep(document, got, draft, media_type)
    finally:
        draft.unlink(missing_ok=True)


def _assert_text(document: Document, path: Path, media_type: str) -> None:
    if media_type != "application/pdf":
        try:
            decode(path.read_bytes())
        except DocumentError as error:
            raise FetchError(error.message, document=document.document_id) from error


def _keep(document: Document, got: Download, draft: Path, media_type: str) -> Capture:
    """Name the file after its time, write the sidecar, and let each appear whole."""
    stamp = got.retrieved_at.strftime("%Y%m%dT%H%M%SZ")
    stem = document.path.name.removesuffix(document.path.suffix)
    path = document.path.with_name(f"{stem}.capture-{stamp}{SUFFIXES.get(media_type, '.bin')}")
    capture_id = f"{document.document_id}@{stamp.lower()}"
    sidecar = path.with_name(f"{path.name}.toml")
    part = sidecar.with_name(f"{sidecar.name}.part")
    part.write_text(tomli_w.dumps(_sidecar(document, got, capture_id)), encoding="utf-8")
    os.replace(draft, path)
    os.replace(part, sidecar)
    return Capture(capture_id, path, kept=True)


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
