"""A document of many generated rows."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import tomli_w
from ipu_results.add import extract
from ipu_results.record.read.context import digest_context

from benchmarks.generate import BOW, BOW_GAIN, generate_rows

COLUMNS = (
    "model",
    "variant",
    "platform",
    "sdk_version",
    "framework",
    "dataset",
    "batch_size",
    "precision",
    "throughput (items/s)",
)
SIDECAR = {
    "document_id": "large",
    "title": "One document of many rows",
    "publisher": "generated",
    "url": "https://example.org",
    "kind": "transcription",
    "licence": "CC-BY-4.0",
    "reader": "performance-csv",
    "note": "generated",
    "means": "items per second",
}


def write_document(raw: Path, rows: int) -> None:
    """Write a CSV document of many rows, `large.csv`, with its sidecar."""
    raw.mkdir()
    path = raw / "large.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(cells[: len(COLUMNS)] for cells in generate_rows(rows, 0, BOW, BOW_GAIN))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    context = digest_context(extract(path, SIDECAR["reader"]).context)
    entry = {**SIDECAR, "sha256": digest, "context": context}
    path.with_name("large.csv.toml").write_text(tomli_w.dumps(entry), encoding="utf-8")
