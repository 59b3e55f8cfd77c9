"""The command that merges the run folders of many machines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from ipu_results.cli.common import FOLDER, Command, echo_labelled, echo_text, show_progress
from ipu_results.runner.config import RUNS


@click.command(cls=Command, extra="ingest")
@click.argument("sources", nargs=-1, required=True, metavar="DIR|URL...")
@click.option("--into", type=FOLDER, default=RUNS, show_default=True, help="Folder to add the runs to.")
@click.option("--conflicts", type=FOLDER, help="Copy a run here if another one of its id is in place.")
@click.option("--workers", type=click.IntRange(1, 64), default=8, show_default=True, help="Runs to copy at once.")
@click.option("--format", "output", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.option("--strict", is_flag=True, help="Exit 1 if a run is unfinished, too.")
def collect(
    sources: tuple[str, ...], into: Path, conflicts: Path | None, workers: int, output: str, strict: bool
) -> None:
    """Merge the runs of other machines into one folder, for the next `ingest`.

    DIR or URL is a run folder of `sweep`, or holds run folders at any place below it. A URL is whatever fsspec
    knows, such as an object store or a web server. Every file is compared with the digests of the run's sidecars, and
    the run is read as `ingest` reads it. Then it appears in one rename.

    A run that is in place is not added again. Another run of the same id is a conflict: what is in place stays, and
    so does the source. Unfinished runs are skipped. Links, other files in place of a run's, and files that are too
    large are refused. Exit 1 if a run is in conflict, refused or cannot be read; all others are added even so.

    \b
    Extras:
      URLs: pip install 'ipu-results[remote]', and the package that fsspec names for an object store

    \b
    Example:
      ipu-results collect /mnt/lab-1/runs /mnt/lab-2/runs
      ipu-results collect s3://lab-results/runs https://lab.example/runs/ --format json
      ipu-results collect ~/runs --into raw/runs --conflicts build/conflicts
    """
    from ipu_results.fleet import FAULTS
    from ipu_results.fleet import collect as run
    from ipu_results.ground.text import format_json, format_table

    with show_progress("runs") as progress:
        outcomes = run(sources, into, conflicts=conflicts, workers=workers, progress=progress)
    columns = ("run_id", "status", "digest", "size", "source", "reason")
    if output == "json":
        click.echo(format_json([{name: getattr(own, name) for name in columns} for own in outcomes]))
    elif taken := [own for own in outcomes if own.status in ("added", "present")]:
        rows = [(own.run_id, own.status, (own.digest or "")[:12], own.size, own.source) for own in taken]
        echo_text(format_table(columns[:5], rows))
    for own in outcomes:
        if own.reason is not None:
            label = "error" if own.status in FAULTS else "finding"
            echo_labelled(label, f"{own.status}: {own.source}: {own.reason}")
    counts: Counter[str] = Counter(own.status for own in outcomes)
    echo_text(f"{into}: {', '.join(f'{count} {status}' for status, count in counts.items())}", err=True)
    if any(counts[status] for status in FAULTS) or (strict and counts["unfinished"]):
        raise click.exceptions.Exit(1)
