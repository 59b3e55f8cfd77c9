"""Lay an accepted bundle in `raw/submissions/<who>/<id>/`, where the next `ingest` reads it as a document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import tomli_w

from ipu_results._util.files import is_inside, write_atomically, write_folder
from ipu_results.errors import SubmissionError
from ipu_results.sources.catalogue import PART
from ipu_results.sources.sidecar import SUBMISSION
from ipu_results.submission.bundle import Bundle, Submission
from ipu_results.submission.contents import RESULTS, SIDECAR
from ipu_results.submission.template import READER, TABLE

SUBMISSIONS = "submissions"


def get_folder(raw: Path, submission: Submission) -> Path:
    """Return where the bundle of a submission belongs."""
    return raw / SUBMISSIONS / submission.folder / submission.id


def format_sidecar(bundle: Bundle) -> bytes:
    """Return the sidecar of the figures of a bundle; it follows from the bundle alone."""
    submission = bundle.submission
    who = submission.who
    sources = ", ".join(f"{source.file} ({source.adapter}, sha256 {source.sha256})" for source in submission.sources)
    notes = [
        f"Handed in by a user and not repeated here. How it was measured: {' '.join(submission.how.split())}",
        f"Relation to the maker of the machine: {submission.relation}.",
        f"Read from: {sources or 'the template itself'}.",
    ]
    attached = {name: data for name, data in sorted(bundle.files.items()) if name not in (RESULTS, SIDECAR)}
    entry = {
        "document_id": submission.document_id,
        "title": f"Figures handed in by {who.name} on {submission.submitted_on}: {submission.machine}",
        "publisher": who.name,
        "published_on": submission.submitted_on,
        "retrieved_on": submission.submitted_on,
        "kind": SUBMISSION,
        "licence": submission.licence,
        "sha256": _digest(bundle.files[RESULTS]),
        "reader": READER,
        "note": " ".join(notes),
        "measured_by": ", ".join(filter(None, (who.name, who.affiliation))),
        "measured_on": submission.machine,
        "tables": {TABLE: {"rows": len(bundle.rows)}},
        "attachments": {name: _digest(data) for name, data in attached.items()},
    }
    return tomli_w.dumps(entry).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lay_bundle(bundle: Bundle, raw: Path) -> Path:
    """Write the bundle with its sidecar under `raw` in one step, or only the sidecar, and return the folder.

    Raises IpuResultsError if it cannot be written, SubmissionError for a folder that is a link.
    """
    folder = get_folder(raw, bundle.submission)
    if not is_inside(folder, str(raw / SUBMISSIONS)):
        raise SubmissionError("is a link that leads out of the folder of submissions", place=str(folder))
    files = {**bundle.files, SIDECAR: format_sidecar(bundle)}
    if folder.is_dir():
        write_atomically(folder / SIDECAR, files[SIDECAR])
    else:
        write_bundle(folder, files)
    return folder


def write_bundle(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a bundle as a new folder, whole or not at all."""
    write_folder(folder, files, folder.with_name(f".{folder.name}{PART}"))
