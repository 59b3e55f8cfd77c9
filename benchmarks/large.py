"""Run `ipu-results ingest` over one CSV document of 300,000 rows, as long a file as a limit of 50
MB allows.
"""

from __future__ import annotations

import csv
import hashlib
import os
import tempfile
from pathlib import Path

import tomli_w
from ipu_results.add import extract
from ipu_results.record.read.context import digest_context

from benchmarks.generate import BOW, BOW_GAIN, COLUMNS, generate_rows
from benchmarks.processes import find_program, measure_command
from benchmarks.report import Options, Report, ReportTable, ReportTarget

ROWS = 300_000
QUICK_ROWS = 2_000
MIN_ROWS_PER_S = 15_000.0
MAX_MB = 1_500.0
POLL_S = 0.02  # between readings of the peak memory, which only grows
HEADERS = COLUMNS[:-1]  # without the latency: rows have one figure
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


def run(options: Options) -> Report:
    """Build a warehouse from one generated document, once."""
    rows = QUICK_ROWS if options.quick else ROWS
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "raw")
        warehouse = Path(folder, "warehouse")
        size = write_document(raw, rows)
        folders = ["--raw", str(raw), "--warehouse", str(warehouse)]
        command = [*find_program(), "ingest", *folders]
        cost = measure_command(command, Path(os.devnull), poll_s=POLL_S)
    peak = cost.main_peak or 0.0
    speed = rows / cost.wall
    columns = ("rows", "MB of CSV", "s", "CPU s", "rows/s", "peak MB")
    figures = (f"{rows:,}", size, cost.wall, cost.cpu, speed, peak)
    return Report(
        "large",
        "build the warehouse from one document of many rows",
        [
            ReportTable("The whole process", columns, [figures]),
        ],
        [
            ReportTarget(
                "rows/s through the whole of ingest", speed, MIN_ROWS_PER_S, at_least=True
            ),
            ReportTarget("peak memory of ingest, MB", peak, MAX_MB),
        ],
        ["One run in a fresh process, with start and imports."],
    )


def write_document(raw: Path, rows: int) -> float:
    """Write the document with its sidecar and return its size in MB."""
    raw.mkdir()
    path = raw / "large.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADERS)
        writer.writerows(cells[: len(HEADERS)] for cells in generate_rows(rows, 0, BOW, BOW_GAIN))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    context = digest_context(extract(path, SIDECAR["reader"]).context)
    entry = {**SIDECAR, "sha256": digest, "context": context}
    path.with_name("large.csv.toml").write_text(tomli_w.dumps(entry), encoding="utf-8")
    return path.stat().st_size / 1e6
