"""The commands that make the dataset: from documents, and scores from official MLPerf logs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipu_results.doors.cli import common
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.kit.limits import exempt_from_collection, pause_garbage_collection
from ipu_results.kit.text import escape_unprintable
from ipu_results.schema.vocabulary import ALIASES, KINDS

if TYPE_CHECKING:
    import pandas as pd

    from ipu_results.add import AddConfig, UnknownWords
    from ipu_results.build import IngestSummary
    from ipu_results.record.read import ParsedDocument
    from ipu_results.record.read.document import Words


MAX_WORDS = 1000  # lines that name unknown words
WHERE = "the table quarantine"
COLUMNS = (
    "document",
    "extracted",
    "accepted",
    "quarantined",
    "duplicate",
    "results",
    "error",
    "warn",
    "info",
    "s",
)


def kind_option(function: Callable[..., Any]) -> Callable[..., Any]:
    text = f"What the file is, guessed if left out: {', '.join(KINDS)}."
    choice = click.Choice([*KINDS, *ALIASES])
    return click.option("--kind", type=choice, metavar="KIND", help=text)(function)


SIZE = re.compile(r"[1-9][0-9]{0,6}(\.[0-9]+)?\s*[KMGT]i?B", re.IGNORECASE)


def _check_size(_: click.Context, param: click.Parameter, value: str) -> str:
    if not SIZE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a size such as 2GB", param=param)
    return value


@click.command(cls=common.Command, extra="ingest")
@common.folder_option("--raw", "raw", "Documents and their sidecars.")
@common.folder_option("--warehouse", "warehouse", "Where the dataset is written.")
@common.wait_option("builds it")
@click.option(
    "--memory-limit",
    callback=_check_size,
    default="2GB",
    show_default=True,
    help="What DuckDB may take; the rest of the rows waits on the disk, beside the warehouse.",
)
@click.option(
    "--strict", is_flag=True, help="Exit 1 if there is a finding, such as a quarantined row."
)
def ingest(raw: Path, warehouse: Path, wait: float, memory_limit: str, strict: bool) -> None:
    """Build the whole warehouse from the documents in RAW, without network.

    The old build stays until the new one is complete, and after any failure. Quarantined rows are
    named on stderr and leave exit status 0. A document that cannot be read is left out, named on
    stderr, and makes the exit status 1.

    \b
    Example:
      ipu-results ingest --raw raw --warehouse warehouse
    """
    with pause_garbage_collection():
        import pyarrow as pa

        from ipu_results.build import IngestConfig
        from ipu_results.build import ingest as run

    # Arrow's own allocator keeps 90 MB of what it freed
    pa.set_memory_pool(pa.system_memory_pool())
    config = IngestConfig(raw, warehouse, wait, memory_limit)
    with exempt_from_collection(), common.show_step() as progress:
        summary = run(config, progress)
    click.echo(_format_summary(summary))
    common.echo_text(f"{summary.results} results in {warehouse}, build {summary.build_id[:12]}")
    common.report_findings(summary.unknown_words, strict=False, limit=MAX_WORDS, where=WHERE)
    for error in summary.refused:
        common.echo_error(error)
    common.report_findings(summary.findings, strict, where=WHERE)
    if summary.refused:
        raise click.exceptions.Exit(1)


def _format_summary(summary: IngestSummary) -> str:
    from ipu_results.kit.text import format_table

    rows: list[list[Any]] = []
    for document in summary.documents:
        fates = document.rows
        counts = [fates.extracted, fates.accepted, fates.quarantined, fates.duplicates]
        counts += [document.results, *document.flags.values()]
        rows.append([document.document_id, *counts, document.seconds])
    total: list[Any] = ["total"]
    for position in range(1, len(COLUMNS)):
        total.append(sum(row[position] for row in rows))
    rows.append(total)
    for row in rows:
        row[-1] = round(row[-1], 3)
    return format_table(COLUMNS, rows)


@click.command(cls=common.Command, extra="ingest")
@click.argument("file", type=click.Path(path_type=Path))
@kind_option
@common.format_option("csv", "json")
def extract(file: Path, kind: str | None, output: str) -> None:
    """Print the tables of one document as printed, as `add FILE --print` does.

    FILE may be HTML, PDF or plain text (one cell a line, or `a | b | c` rows). Rows that cannot be
    read are named on stderr and make the exit status 1.

    \b
    Example:
      ipu-results extract raw/qwant/resnext101-c2-2020-02-28.pdf --format json
    """
    from ipu_results.add import extract as run

    _print_tables(file, output, lambda: run(file, kind))


def _print_tables(file: Path, output: str, read: Callable[[], ParsedDocument]) -> None:
    from ipu_results.add import format_problem, format_tables

    with common.show_step("read", file.name):
        reading = read()
    if reading.tables or output == "json":
        click.echo(format_tables(output, reading))
    for problem in reading.problems:
        common.echo_labelled("error", format_problem(file.name, problem))
    if reading.problems and not reading.tables:
        click.echo(
            "next: ipu-results add FILE drafts the header entry of each table that is not known",
            err=True,
        )
    if reading.problems:
        raise click.exceptions.Exit(1)


HEADERS = "schema/vocabulary/table_headers.toml"
MAX_ROWS = 50  # of each table of a preview
PREVIEW_COLUMNS = {
    "results": (
        "table_name",
        "row_number",
        "task",
        "model",
        "variant",
        "platform",
        "chip_count",
        "framework",
        "sdk_version",
        "precision",
        "batch_size",
        "throughput",
        "item",
        "latency_ms",
        "efficiency",
        "time_to_train_s",
    ),
    "quarantine": ("locator", "reason", "message"),
    "flags": ("rule", "severity", "table_name", "row_number", "column_name", "message"),
    "figures": ("table_name", "row_number", "metric", "value", "unit", "scope"),
}


@click.command(cls=common.Command, extra="ingest")
@click.argument("source", metavar="FILE|URL")
@common.folder_option("--raw", "raw", "Documents and their sidecars.")
@kind_option
@click.option("--dry-run", is_flag=True, help="Show rows, quarantine and flags; write nothing.")
@click.option("--print", "tables", is_flag=True, help="Print the tables as printed; write nothing.")
@click.option(
    "--format",
    "output",
    type=click.Choice(("csv", "json")),
    help="Of the tables of --print.  [default: csv]",
)
@click.option(
    "--force", is_flag=True, help="Draft an existing sidecar again; what was filled in is kept."
)
def add(
    source: str,
    raw: Path,
    kind: str | None,
    dry_run: bool,
    tables: bool,
    output: str | None,
    force: bool,
) -> None:
    """Draft the sidecar of FILE, a new document, as FILE.toml.

    The draft has the sha256, the kind and the tables that were recognised. What a person must fill
    in begins with TODO. Every word that the vocabulary does not have is named with the nearest
    known one. If no header is known, the entry for schema/vocabulary/table_headers.toml is drafted
    instead and the exit status is 1.

    A page that is not plain is opened in Chromium, if it is installed, with the files beside it and
    without network: what it shows is kept as FILE.shown.json, and `ingest` compares it.

    A URL of a web page, PDF, CSV or text is downloaded to RAW/downloads first, which git ignores.

    --dry-run reads FILE with its sidecar, or with a drafted one, and shows what it would add. It
    writes nothing.

    \b
    Example:
      ipu-results add raw/graphcore/performance-2023-07-04.html --dry-run
      ipu-results add https://example.org/results.html
      ipu-results add raw/qwant/resnext101-c2-2020-02-28.pdf --print --format json
    """
    from ipu_results.add import AddConfig, read_source, save_download

    if output is not None and not tables:
        raise click.UsageError("--format needs --print")
    config = AddConfig(Path(source), raw, kind, force)
    lines: list[str] = []
    with ExitStack() as stack:
        if "://" in source:
            keep = not (dry_run or tables)
            config = stack.enter_context(save_download(source, config, keep=keep))
        if tables:
            _print_tables(config.file, output or "csv", lambda: read_source(config)[0])
        else:
            lines = _add(config, dry_run)
    # A download stays whatever becomes of these lines: their reader may be gone.
    for line in "\n".join(lines).splitlines():
        click.echo(escape_unprintable(line))


def _add(config: AddConfig, dry_run: bool) -> list[str]:
    """Draft the sidecar, or find what the file would add; return what to print."""
    try:
        with common.show_step("read", config.file.name):
            return _preview(config) if dry_run else _draft(config)
    except UnrecognisedDocumentError as error:
        from ipu_results.add import draft_headers

        headers = draft_headers(config)
        if headers:
            click.echo(
                f"Add this to {HEADERS} with each TODO filled in, and run again:\n\n{headers}"
            )
        advice = "" if headers else "; copy its tables to a CSV file, or to lines of `a | b | c`"
        click.echo(f"error: {escape_unprintable(str(error))}{advice}", err=True)
        raise click.exceptions.Exit(1) from error


def _draft(config: AddConfig) -> list[str]:
    from ipu_results.add import add_source
    from ipu_results.record.sources.catalogue import list_placeholders

    draft = add_source(config)
    lines = [f"{config.file}: {draft.entry['reader']}, sha256 {draft.entry['sha256'][:12]}…"]
    for name, count in draft.tables.items():
        noun = "row" if count == 1 else "rows"
        lines.append(f"table {name}: {count} {noun}")
    lines += [f"not readable: {problem}" for problem in draft.problems]
    lines += _format_words(draft.words)
    if draft.evidence:
        lines.append(f"wrote {config.file}.shown.json: what Chromium shows of the page")
    lines += _format_context(draft.context)
    lines.append(
        f"wrote {draft.sidecar}: fill in {', '.join(list_placeholders(draft.entry)) or 'nothing'}"
    )
    if not config.file.resolve().is_relative_to(config.raw.resolve()):
        lines.append(f"{config.file.name} is not in {config.raw}: move it there with its sidecar")
    command = ["ipu-results", "add", str(config.file), "--dry-run"]
    if config.raw != Path("raw"):
        command += ["--raw", str(config.raw)]
    return [*lines, f"next: {shlex.join(command)}"]


def _preview(config: AddConfig) -> list[str]:
    from ipu_results.add import preview_source

    preview = preview_source(config)
    rows = preview.rows
    lines = [
        f"{preview.document_id}: {rows.extracted} rows, {rows.accepted} accepted,"
        f" {rows.quarantined} quarantined, {rows.duplicates} duplicates; {len(preview.results)}"
        f" results, {len(preview.flags)} flags"
    ]
    for name, columns in PREVIEW_COLUMNS.items():
        lines += _format_frame(name, getattr(preview, name), columns)
    words = _format_words(preview.words) + _format_context(preview.context)
    if words:
        lines.append("")
    return lines + words


def _format_context(context: Sequence[Words]) -> list[str]:
    """Format the words that a person has to sign, all of them, since one of them may matter."""
    title = "sign what these words mean for the figures (`means` in the sidecar):"
    lines = [f"  {place}: {text}" for place, text in context]
    return [title, *lines] if lines else []


def _format_words(words: UnknownWords) -> list[str]:
    """Format the unknown words with what becomes of their rows."""
    refused = [f"{word}; its rows are quarantined" for word in words.refused]
    return refused + [f"{word}; kept as printed" for word in words.kept]


def _format_frame(title: str, frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Format the columns that are not blank in all rows, up to MAX_ROWS rows."""
    from ipu_results.kit.text import format_table

    if frame.empty:
        return []
    shown = frame[[name for name in columns if frame[name].notna().any()]].head(MAX_ROWS)
    rows = shown.astype(object).where(shown.notna(), None).itertuples(index=False)
    lines = ["", f"{title}:", format_table(list(shown.columns), rows)]
    if len(frame) > MAX_ROWS:
        lines.append(f"and {len(frame) - MAX_ROWS} more")
    return lines


DAY = click.DateTime(("%Y-%m-%d",))
ENTRIES_PER_WORKER = 500  # a round has at most 262, on which two workers are hardly faster than one


def _parse_round(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ipu_results.mlperf.rules import parse_round

    version = parse_round(value) if value else None
    if value and version is None:
        raise click.BadParameter(f"{value!r} is not a round such as 2.0", param=param)
    return version


@click.command(cls=common.Command)
@click.argument("path")
@common.format_option(
    "table",
    "csv",
    "json",
    "parquet",
    "summary",
    text="Parquet needs --out; summary is the results_summary.json of a round.",
)
@click.option("--out", type=common.FILE, help="Write to FILE instead of stdout.")
@click.option(
    "--runs",
    is_flag=True,
    help="One record per log file, with its sha256, instead of one per entry.",
)
@click.option(
    "--round",
    "round_",
    callback=_parse_round,
    help="Round of a checkout whose folder names none, such as 2.0.",
)
@click.option(
    "--ruleset",
    callback=_parse_round,
    help="Score by the rules of this round, such as 2.0, instead of each entry's own.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help=(
        "Processes that read logs; an archive is read by one.  [default: one per core and 500"
        " entries]"
    ),
)
@click.option(
    "--retrieved", type=DAY, help="Day on which PATH was downloaded, for the attribution."
)
@click.option("--strict", is_flag=True, help="Exit 1 when there is any finding.")
def mlperf(
    path: str,
    output: str,
    out: Path | None,
    runs: bool,
    round_: str | None,
    ruleset: str | None,
    workers: int | None,
    retrieved: datetime | None,
    strict: bool,
) -> None:
    """Score every entry of the official MLPerf Training results under PATH, by the official rule.

    PATH is a checkout of one round, a folder of several, or a part of one: the folder of a
    submitter, a system or a benchmark, or a log. It is never written to.
    Logs that do not count, missing logs and files that cannot be read are listed on stderr and
    leave exit status 0.

    PATH may also be an archive of such a folder (.tar, .tar.gz, .tar.xz), which is read in one pass
    and not unpacked.

    \b
    Example:
      ipu-results mlperf training_results_v2.0
      ipu-results mlperf training_results_v2.0 --format csv --out scores.csv
      ipu-results mlperf training_v2.0_results.tar.xz --format json
    """
    from ipu_results.kit.files import is_inside, write_atomically
    from ipu_results.kit.parallel import choose_workers, open_processes
    from ipu_results.mlperf.archive import is_archive
    from ipu_results.mlperf.records import entry_records, format_scores, run_records
    from ipu_results.mlperf.round import score_path

    if output == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    if output == "summary" and runs:
        raise click.UsageError("--format summary is of entries; leave out --runs")
    if out is not None and is_inside(out, path):
        raise click.UsageError(
            "--out is inside PATH, which is never written to; choose another file"
        )
    one_stream = is_archive(path)
    processes = 1
    if not one_stream:
        processes = workers or choose_workers(_count_entries(path), ENTRIES_PER_WORKER)
    with (
        open_processes(processes) as executor,
        common.show_progress("MB" if one_stream else "entries") as progress,
    ):
        scored = score_path(path, executor, round_=round_, ruleset=ruleset, progress=progress)
    day = retrieved.date() if retrieved else None
    if runs:
        records = [record for entry in scored.entries for record in run_records(entry)]
    else:
        records = entry_records(scored.entries, ruleset, day)
    data = format_scores(output, "mlperf_runs" if runs else "mlperf_entries", records)
    if out is None:
        click.echo(data, nl=False)
    else:
        write_atomically(out, data)
    common.report_findings([str(finding) for finding in scored.findings], strict, limit=None)


def _count_entries(path: str) -> int:
    """Count the folders of entries of a round, or of a folder of rounds."""
    of_round = list(Path(path).glob("*/results/*/*"))
    of_rounds = list(Path(path).glob("*/*/results/*/*"))
    return len(of_round) + len(of_rounds)
