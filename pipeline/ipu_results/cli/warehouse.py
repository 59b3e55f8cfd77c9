"""The commands that build and read the warehouse. Each is a thin call of one module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipu_results.cli.common import (
    FOLDER,
    Command,
    echo_labelled,
    echo_text,
    is_wider_than_terminal,
    limit_options,
    report_findings,
    show_step,
    size_option,
    warehouse_option,
)
from ipu_results.errors import IpuResultsError
from ipu_results.ground.limits import exempt_from_collection, pause_garbage_collection
from ipu_results.schema.vocabulary import ALIASES, KINDS
from ipu_results.sources import RETRIES, TIMEOUT_S

if TYPE_CHECKING:
    from ipu_results.build import IngestSummary
    from ipu_results.sources.catalogue import Document
    from ipu_results.sources.download import TransferOptions

KIND_HELP = f"What the file is, guessed if left out: {', '.join(KINDS)}."
MAX_WORDS = 1000  # lines that name unknown words
WHERE = "the tables quarantine and capture_differences"
COLUMNS = ("document", "extracted", "accepted", "quarantined", "duplicate", "results", "error", "warn", "info", "s")


@click.command(cls=Command, extra="ingest")
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Documents and their sidecars.")
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True, help="Where the dataset is written.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait while another process builds it.",
)
@click.option("--strict", is_flag=True, help="Exit 1 if rows were quarantined or captures differ.")
@limit_options
def ingest(raw: Path, warehouse: Path, wait: float, strict: bool, max_bytes: int, max_pages: int) -> None:
    """Build the whole warehouse from the documents in RAW, without network.

    The old build stays until the new one is complete, and after any failure. Quarantined rows are named on stderr and
    leave exit status 0.

    \b
    Example:
      ipu-results ingest --raw raw --warehouse warehouse
    """
    with pause_garbage_collection():
        from ipu_results.build import IngestConfig
        from ipu_results.build import ingest as run

    with exempt_from_collection(), show_step() as progress:
        summary = run(IngestConfig(raw, warehouse, max_bytes, max_pages, wait), progress)
    click.echo(_format_summary(summary))
    echo_text(f"{summary.results} results in {warehouse}, build {summary.build_id[:12]}")
    report_findings(summary.unknown_words, strict=False, limit=MAX_WORDS, where=WHERE)
    report_findings(summary.findings, strict, where=WHERE)


def _format_summary(summary: IngestSummary) -> str:
    from ipu_results.ground.text import format_table

    rows: list[tuple[Any, ...]] = [
        (
            document.document_id,
            *(document.rows.extracted, document.rows.accepted, document.rows.quarantined, document.rows.duplicates),
            document.results,
            *document.flags.values(),
            document.seconds,
        )
        for document in summary.documents
    ]
    total = ("total", *map(sum, list(zip(*rows, strict=True))[1:]))
    return format_table(COLUMNS, [(*row[:-1], round(row[-1], 3)) for row in [*rows, total]])


@click.command(cls=Command, extra="ingest")
@click.argument("document_id", nargs=-1)
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Documents and their sidecars.")
@click.option(
    "--timeout", default=TIMEOUT_S, show_default=True, help="Seconds of silence after which a try is given up."
)
@click.option("--retries", default=RETRIES, show_default=True, help="Further tries after a temporary failure.")
@size_option
@click.option("--strict", is_flag=True, help="Exit 1 if a capture differs from its transcription.")
def fetch(document_id: tuple[str, ...], raw: Path, timeout: float, retries: int, max_bytes: int, strict: bool) -> None:
    """Download the real documents named in the catalogue into RAW, next to our transcriptions.

    Each download becomes a capture with a sidecar. It is compared with the transcription cell by cell and adds no rows
    to the results. `ingest` never needs it. Without DOCUMENT_ID, every document with an address is fetched.

    \b
    Example:
      ipu-results fetch graphcore-performance-2023-07-04
    """
    from ipu_results.build import IngestConfig, list_capture_findings
    from ipu_results.sources.capture import select_fetchable
    from ipu_results.sources.catalogue import load_catalogue
    from ipu_results.sources.download import TransferOptions

    documents = load_catalogue(raw)
    options = TransferOptions(max_bytes, timeout, retries)
    known = {document.document_id: document for document in select_fetchable(documents)}
    if unknown := [name for name in document_id if name not in known]:
        raise click.BadParameter(f"no document {unknown[0]!r} to fetch; choose from: {', '.join(known)}")
    failed = [name for name in document_id or known if not _fetch_document(known[name], documents, options)]
    report_findings(list_capture_findings(IngestConfig(raw, max_bytes=max_bytes)), strict, where=WHERE)
    if failed:
        raise click.exceptions.Exit(1)


def _fetch_document(document: Document, documents: Sequence[Document], options: TransferOptions) -> bool:
    from ipu_results.sources.capture import capture

    name = document.document_id
    try:
        with show_step() as spin:

            def progress(done: int, total: int | None) -> None:
                spin("fetch", f"{name} {done:,} of {total:,} bytes" if total else f"{name} {done:,} bytes")

            captured = capture(document, documents, replace(options, progress=progress))
    except IpuResultsError as error:
        echo_labelled("error", f"{name}: {error}")
        return False
    status = "captured as" if captured.kept else "unchanged since"
    echo_text(f"{name}: {status} {captured.document_id} ({captured.path.name})")
    return True


@click.command(cls=Command, extra="ingest")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice([*KINDS, *ALIASES]), metavar="KIND", help=KIND_HELP)
@click.option("--format", "output", type=click.Choice(("csv", "json")), default="csv", show_default=True)
@limit_options
def extract(file: Path, kind: str | None, output: str, max_bytes: int, max_pages: int) -> None:
    """Print the tables of one document as printed, without building anything.

    FILE may be HTML, PDF or plain text (one cell a line, or `a | b | c` rows). Rows that cannot be read are named on
    stderr and make the exit status 1.

    \b
    Example:
      ipu-results extract raw/qwant/resnext101-c2-2020-02-28.pdf --format json
    """
    from ipu_results.extract import extract as run
    from ipu_results.extract import format_problem, format_tables

    with show_step() as progress:
        progress("read", file.name)
        reading = run(file, kind, max_bytes, max_pages)
    if reading.tables or output == "json":
        click.echo(format_tables(output, reading))
    for problem in reading.problems:
        echo_labelled("error", format_problem(file.name, problem))
    if reading.problems and not reading.tables:
        click.echo("next: ipu-results add FILE drafts the header entry of each table that is not known", err=True)
    if reading.problems:
        raise click.exceptions.Exit(1)


@click.command(cls=Command)
@click.argument("sql")
@warehouse_option
@click.option(
    "--format", "output", type=click.Choice(("table", "record", "csv", "json")), default="table", show_default=True
)
def query(sql: str, warehouse: Path, output: str) -> None:
    """Run one read-only SQL statement over the warehouse.

    It reads the DuckDB file, or the committed Parquet files if none was built. The table `columns` describes every
    table, view and column. `--format record` prints one line per value; a table that is wider than the terminal is
    printed in the same way.

    \b
    Examples:
      ipu-results query "FROM results WHERE model = 'ResNet-50 v1.5' AND errors = 0 LIMIT 1" --format record
      ipu-results query "SELECT model, platform, batch_size, latency_ms FROM inference
        WHERE latency_basis = 'per-batch' AND errors = 0 ORDER BY latency_ms LIMIT 3"
    """
    from ipu_results.ground.sql import run_query
    from ipu_results.ground.text import format_records
    from ipu_results.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        result = run_query(connection, sql)
    columns = [column.to_pylist() for column in result.columns]
    rows = list(zip(*columns, strict=True))
    text = format_records(output, result.column_names, rows)
    if output == "table" and is_wider_than_terminal(text):
        text = format_records("record", result.column_names, rows)
    click.echo(text)
    if output in ("table", "record"):
        click.echo(f"{result.num_rows} {'row' if result.num_rows == 1 else 'rows'}", err=True)
