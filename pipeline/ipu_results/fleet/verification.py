"""Check a copied run as `ingest` will read it: sidecars, digests, record and points. Nothing of it is executed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ipu_results.build import IngestConfig, load_document
from ipu_results.check.conservation import check_expected_tables
from ipu_results.check.gate import gate_results
from ipu_results.errors import CatalogueError, DamagedRunError
from ipu_results.fleet.folders import ATTACHMENTS, POINTS, RECORD
from ipu_results.link.configurations import build_run_frames
from ipu_results.normalise.by_source import get_run_id
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import RUN, load_catalogue
from ipu_results.submission.refusals import check_text

DOCUMENTS = (POINTS, RECORD)
TEXT_FAULTS = ("control-characters", "markup")  # of a text that a page or a terminal acts on


def compute_run_digest(digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for the files of a run, in the order of their names."""
    return hashlib.sha256("".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()).hexdigest()


def check_run(raw: Path, run_id: str) -> None:
    """Check the only run under `raw`: every file is in a sidecar with its digest, and the run can be ingested.

    Raises IpuResultsError that names document and place.
    """
    documents = load_catalogue(raw)
    if tuple(sorted(document.path.name for document in documents)) != DOCUMENTS:
        raise CatalogueError(f"describes other documents than {' and '.join(DOCUMENTS)}", place=run_id)
    vocabulary, config = load_vocabulary(), IngestConfig()
    loaded = []
    for document in documents:
        if document.kind != RUN or get_run_id(document) != run_id:
            raise CatalogueError(f"is not a document of the run {run_id}", document=document.document_id)
        _check_texts(
            {"title": document.title, "note": document.note, "licence": document.licence}, document.document_id
        )
        loaded.append(load_document(document, vocabulary, config))  # compares every digest
        check_expected_tables(document, loaded[-1].parsed)
    attached = {path.name for document in documents for path in document.attached}
    if attached != set(ATTACHMENTS):
        message = f"attaches {', '.join(sorted(attached)) or 'nothing'}, not {' and '.join(ATTACHMENTS)}"
        raise CatalogueError(message, place=run_id)
    build_run_frames([own.normalised for own in loaded], {}, {})  # the record is that of these points
    results, accepted = gate_results([own.normalised for own in loaded])
    if results.empty:
        rejected = [row.message for own in accepted for row in own.rejected]
        raise DamagedRunError(f"no point of it makes a result: {', '.join(rejected[:1])}", document=run_id)
    for column, texts in results.select_dtypes(exclude="number").items():
        for text in {text for text in texts if isinstance(text, str)}:
            _check_texts({str(column): text}, run_id)
    if len(origins := sorted(set(results["origin"]))) > 1:
        raise DamagedRunError(f"mixes origins: {', '.join(origins)}", document=run_id)


def _check_texts(texts: Mapping[str, str], document: str) -> None:
    """Raise DamagedRunError for a text that hides something, or that a terminal or a page would act on."""
    for name, text in texts.items():
        for fault in check_text(text, name, len(text)):
            if fault.reason in TEXT_FAULTS:
                raise DamagedRunError(f"{name} {fault.message}", document=document)
