"""The command that drafts the sidecar of a new document and shows what the document would add."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import FOLDER, Command, limit_options, show_step
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.ground.text import escape_unprintable
from ipu_results.schema.vocabulary import ALIASES, KINDS

if TYPE_CHECKING:
    import pandas as pd

    from ipu_results.add import AddConfig, UnknownWords

INGESTED = [name for name, kind in KINDS.items() if kind.is_ingested and not kind.local]
HEADERS = "schema/vocabulary/table_headers.toml"
MAX_ROWS = 50
RESULT_COLUMNS = (
    *("table_name", "row_number", "task", "model", "variant", "platform", "chip_count", "framework", "sdk_version"),
    *("precision", "compute_precision", "batch_size", "throughput", "item", "latency_ms", "efficiency"),
    *("time_to_train_s", "time_to_result_s", "quality_value", "quality_metric"),
)
QUARANTINE_COLUMNS = ("locator", "reason", "message")
FLAG_COLUMNS = ("rule", "severity", "table_name", "row_number", "column_name", "message")


@click.command(cls=Command, extra="ingest")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--url", help="Where the document was published.")
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Documents and their sidecars.")
@click.option(
    "--kind",
    type=click.Choice([*INGESTED, *ALIASES]),
    metavar="KIND",
    help=f"What the file is, guessed if left out: {', '.join(INGESTED)}.",
)
@click.option("--dry-run", is_flag=True, help="Show rows, quarantine and flags; write nothing.")
@click.option("--force", is_flag=True, help="Draft an existing sidecar again; what was filled in is kept.")
@limit_options
def add(
    file: Path, url: str | None, raw: Path, kind: str | None, dry_run: bool, force: bool, max_bytes: int, max_pages: int
) -> None:
    """Draft the sidecar of FILE, a new document, as FILE.toml.

    The draft has the sha256, the kind and the tables that were recognised. What a person must fill in begins with TODO.
    Every word that the vocabulary does not have is named with the nearest known one. If no header is known, the entry
    for schema/vocabulary/table_headers.toml is drafted instead and the exit status is 1.

    --dry-run reads FILE with its sidecar, or with a drafted one, and shows what it would add. It writes nothing.

    \b
    Example:
      ipu-results add raw/graphcore/performance-2023-07-04.html --dry-run
    """
    from ipu_results.add import AddConfig

    config = AddConfig(file, raw, url, kind, force, max_bytes, max_pages)
    try:
        with show_step() as progress:
            progress("read", file.name)
            lines = _preview(config) if dry_run else _draft(config)
    except UnrecognisedDocumentError as error:
        raise click.exceptions.Exit(_explain_headers(config, error)) from error
    for line in "\n".join(lines).split("\n"):
        click.echo(escape_unprintable(line))


def _draft(config: AddConfig) -> list[str]:
    from ipu_results.add import add_source
    from ipu_results.sources.catalogue import list_placeholders

    draft = add_source(config)
    lines = [f"{config.file}: {draft.entry['reader']}, sha256 {draft.entry['sha256'][:12]}…"]
    lines += [f"table {name}: {rows} {'row' if rows == 1 else 'rows'}" for name, rows in draft.tables.items()]
    lines += [f"not readable: {problem}" for problem in draft.problems]
    lines += _format_words(draft.words)
    lines.append(f"wrote {draft.sidecar}: fill in {', '.join(list_placeholders(draft.entry)) or 'nothing'}")
    if not config.file.resolve().is_relative_to(config.raw.resolve()):
        lines.append(f"{config.file.name} is not in {config.raw}: move it there with its sidecar")
    return [*lines, f"next: ipu-results add {config.file} --dry-run"]


def _preview(config: AddConfig) -> list[str]:
    from ipu_results.add import preview_source

    preview = preview_source(config)
    rows = preview.rows
    lines = [
        f"{preview.document_id}: {rows.extracted} rows, {rows.accepted} accepted, {rows.quarantined} quarantined, "
        f"{rows.duplicates} duplicates; {len(preview.results)} results, {len(preview.flags)} flags"
    ]
    lines += _format_frame("results", preview.results, RESULT_COLUMNS)
    lines += _format_frame("quarantine", preview.quarantine, QUARANTINE_COLUMNS)
    lines += _format_frame("flags", preview.flags, FLAG_COLUMNS)
    words = _format_words(preview.words)
    return [*lines, *([""] if words else []), *words]


def _format_words(words: UnknownWords) -> list[str]:
    """Format the unknown words with what becomes of their rows."""
    refused = [f"{word}; its rows are quarantined" for word in words.refused]
    return [*refused, *(f"{word}; kept as printed" for word in words.kept)]


def _format_frame(title: str, frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Format the columns that are not blank in all rows, up to MAX_ROWS rows."""
    from ipu_results.ground.text import format_table

    if frame.empty:
        return []
    shown = frame[[name for name in columns if frame[name].notna().any()]].head(MAX_ROWS)
    rows = shown.astype(object).where(shown.notna(), None).itertuples(index=False)
    more = [f"and {len(frame) - MAX_ROWS} more"] if len(frame) > MAX_ROWS else []
    return ["", f"{title}:", format_table(list(shown.columns), rows), *more]


def _explain_headers(config: AddConfig, error: UnrecognisedDocumentError) -> int:
    """Print the drafted entries of `table_headers.toml`, and return the exit status."""
    from ipu_results.add import draft_headers

    headers = draft_headers(config)
    if headers:
        click.echo(f"Add this to {HEADERS} with each TODO filled in, and run again:\n\n{headers}")
    advice = "" if headers else "; copy its tables to a CSV file, or to lines of `a | b | c`"
    click.echo(f"error: {escape_unprintable(str(error))}{advice}", err=True)
    return 1
