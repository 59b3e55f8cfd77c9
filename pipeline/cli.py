"""The command line. Every command is a thin call of one module; nothing imports this one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.accepted import KINDS, MAX_BYTES, MAX_PAGES
from pipeline.errors import IpuResultsError

if TYPE_CHECKING:
    from pipeline.catalogue import Document
    from pipeline.ingest import Summary

MEGABYTE = 1_000_000
MAX_MEGABYTES = 1_000_000
MAX_LINE = 400
FOLDER = click.Path(file_okay=False, path_type=Path)


class Failure(click.ClickException):
    """A data or environment error, told in one line."""

    exit_code = 1

    def show(self, file: Any = None) -> None:  # noqa: ARG002
        click.echo(f"error: {self.message}", err=True)


class Command(click.Command):
    """A command with `--debug`, which turns errors into tracebacks instead of one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["debug"] = "--debug" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            raise Failure("interrupted; what was begun is finished or discarded by the next command") from error
        except Exception as error:
            if ctx.meta["debug"]:
                raise
            raise Failure(_one_line(error)) from error


def _one_line(error: Exception) -> str:
    told = " ".join(str(error).split())
    if isinstance(error, IpuResultsError):
        return told
    return f"{type(error).__name__}: {told[:300]} (--debug shows where)"


class Group(click.Group):
    command_class = Command


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ipu-results", prog_name="ipu-results")
def main() -> None:
    """The open, verified record of Graphcore IPU performance.

    \b
    Start with:
      ipu-results ingest
      ipu-results query "SELECT model, platform, throughput FROM inference LIMIT 5"
    """


def _megabytes(_: click.Context, param: click.Parameter, value: float) -> int:
    """Bytes of a size in MB."""
    if not 0 < value <= MAX_MEGABYTES:
        raise click.BadParameter(f"{value:g} is not a size from 0 to {MAX_MEGABYTES:,} MB", param=param)
    return int(value * MEGABYTE)


def size_option(function: Callable[..., Any]) -> Callable[..., Any]:
    said = "Refuse a document over so many MB."
    return click.option(
        "--max-size", "max_bytes", default=MAX_BYTES / MEGABYTE, show_default=True, callback=_megabytes, help=said
    )(function)


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    pages = click.option(
        "--max-pages", type=click.IntRange(min=1), default=MAX_PAGES, show_default=True, help="Refuse a longer PDF."
    )
    return size_option(pages(function))


@main.command()
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Documents and their sidecars.")
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True, help="Where the dataset is written.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait while another process builds it.",
)
@click.option("--strict", is_flag=True, help="Exit 1 when rows were quarantined or captures differ.")
@limit_options
def ingest(raw: Path, warehouse: Path, wait: float, strict: bool, max_bytes: int, max_pages: int) -> None:
    """Build the whole warehouse from the documents in RAW, without network.

    The old build stays until the new one is complete, and after any failure. Quarantined rows are named on stderr
    and leave exit status 0.

    \b
    Example:
      ipu-results ingest --raw raw --warehouse warehouse
    """
    from pipeline.ingest import Limits
    from pipeline.ingest import ingest as run

    with _spinner() as progress:
        summary = run(raw, warehouse, Limits(max_bytes, max_pages, wait), progress)
    click.echo(_summary_table(summary))
    click.echo(f"{summary.results} results in {warehouse}, build {summary.build_id[:12]}")
    _tell(summary.findings, strict)


def _summary_table(summary: Summary) -> str:
    from pipeline.present import as_table

    columns = ("document", "extracted", "accepted", "quarantined", "duplicate", "results", "error", "warn", "info", "s")
    rows: list[tuple[Any, ...]] = [
        (
            one.document_id,
            *(one.extracted, one.accepted, one.quarantined, one.duplicates, one.results),
            *one.flags.values(),
            round(one.seconds, 3),
        )
        for one in summary.documents
    ]
    total = (
        "total",
        *(sum(row[index] for row in rows) for index in range(1, 9)),
        round(sum(row[9] for row in rows), 3),
    )
    return as_table(columns, [*rows, total])


def _shortened(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def _tell(findings: list[str], strict: bool, most: int = 50) -> None:
    for line in findings[:most]:
        click.echo(f"finding: {_shortened(line)}", err=True)
    if len(findings) > most:
        click.echo(
            f"finding: and {len(findings) - most} more; see the tables quarantine and capture_differences", err=True
        )
    if findings and strict:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("document_id", nargs=-1)
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Documents and their sidecars.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds of silence after which a try is given up.")
@click.option("--retries", default=4, show_default=True, help="Further tries after a failure that may pass.")
@size_option
@click.option("--strict", is_flag=True, help="Exit 1 when a capture differs from its transcription.")
def fetch(document_id: tuple[str, ...], raw: Path, timeout: float, retries: int, max_bytes: int, strict: bool) -> None:
    """Download the real documents named in the catalogue into RAW, beside our transcriptions.

    Each becomes a capture with a sidecar. It is compared with the transcription cell by cell and adds no rows to the
    results. Never needed by ingest. Without DOCUMENT_ID every document that has an address is fetched.

    \b
    Example:
      ipu-results fetch graphcore-performance-2023-07-04
    """
    from pipeline.capture import fetchable
    from pipeline.catalogue import load_catalogue
    from pipeline.ingest import Limits, capture_findings

    documents = load_catalogue(raw)
    options = {"max_bytes": max_bytes, "timeout": timeout, "retries": retries}
    known = {document.document_id: document for document in fetchable(documents)}
    if unknown := [name for name in document_id if name not in known]:
        raise click.BadParameter(f"no document {unknown[0]!r} to fetch; there are: {', '.join(known)}")
    failed = [name for name in document_id or known if not _fetch_one(known[name], documents, options)]
    _tell(capture_findings(raw, Limits(max_bytes)), strict)
    if failed:
        raise click.exceptions.Exit(1)


def _fetch_one(document: Document, documents: Sequence[Document], options: dict[str, Any]) -> bool:
    from pipeline.capture import capture

    name = document.document_id
    try:
        with _spinner() as spin:

            def progress(done: int, total: int | None) -> None:
                spin("fetch", _progress_line(name, done, total))

            got = capture(document, documents, progress=progress, **options)
    except IpuResultsError as error:
        click.echo(f"error: {name}: {error}", err=True)
        return False
    said = "captured as" if got.kept else "unchanged since"
    click.echo(f"{name}: {said} {got.document_id} ({got.path.name})")
    return True


def _progress_line(name: str, done: int, total: int | None) -> str:
    return f"{name} {done:,} of {total:,} bytes" if total else f"{name} {done:,} bytes"


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(KINDS), help="What the file is; guessed when left out.")
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
    from pipeline.extract import extract as run
    from pipeline.extract import problem_line, tables_as

    with _spinner() as progress:
        progress("read", file.name)
        reading = run(file, kind, max_bytes, max_pages)
    if reading.tables or output == "json":
        click.echo(tables_as(output, reading))
    for problem in reading.problems:
        click.echo(f"error: {problem_line(file.name, problem)}", err=True)
    if reading.problems:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("sql")
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
def query(sql: str, warehouse: Path, output: str) -> None:
    """Run one read-only SQL statement over the warehouse.

    Works on the DuckDB file, or on the committed Parquet files where none was built. The table `columns` describes
    every table, view and column.

    \b
    Example:
      ipu-results query "SELECT model, platform, batch_size, latency_ms FROM inference ORDER BY latency_ms LIMIT 3"
    """
    from pipeline.present import records_as
    from pipeline.query import open_warehouse, run_query

    with open_warehouse(warehouse) as connection:
        found = run_query(connection, sql)
    columns = [column.to_pylist() for column in found.columns]
    rows = zip(*columns, strict=True) if columns else iter(())
    click.echo(records_as(output, found.column_names, rows))
    if output == "table":
        click.echo(f"{found.num_rows} {'row' if found.num_rows == 1 else 'rows'}", err=True)


@contextmanager
def _spinner() -> Iterator[Callable[[str, str], None]]:
    """Shows the current step on a terminal, and nothing where stderr is not one."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda step, what: status.update(f"{step} {what}")
