"""Publish a release, verify one, and compare two."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results._util.text import escape_unprintable
from ipu_results.cli.common import FOLDER, Command, echo_text, report_findings, show_step

if TYPE_CHECKING:
    from ipu_results.release import PublishedRelease

MAX_CHANGES = 20
RECORDS = "docs/releases"


@click.command(cls=Command)
@click.option("--version", help="MAJOR.MINOR.PATCH. Default: that of the repository.")
@click.option("--out", type=FOLDER, default="release", show_default=True, help="Folder that becomes the release.")
@click.option("--previous", type=FOLDER, help="Previous release. Default: the one in OUT.")
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option(
    "--corrections",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML file that gives the reason for each removed row.",
)
@click.option(
    "--date",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="Date of publication. Default: today in UTC.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait while another process publishes there.",
)
@click.option(
    "--record",
    type=FOLDER,
    help=f"Folder for VERSION.json, which says what changed. Default: {RECORDS} where there is such a folder.",
)
def publish(
    version: str | None,
    out: Path,
    previous: Path | None,
    warehouse: Path,
    corrections: Path | None,
    day: datetime | None,
    wait: float,
    record: Path | None,
) -> None:
    """Make OUT a release of the warehouse: tables in three formats, descriptors, dataset card and checksums.

    The version must fit the change since the previous release: major for changed or removed figures, rows or columns,
    minor for new ones, patch for descriptions. It is that of pyproject.toml, so raise it there first. Removed rows need
    a reason in the corrections file. A release in OUT is replaced as a whole or not at all.

    \b
    Example:
      ipu-results publish --out release
      ipu-results publish --out release --corrections corrections.toml
      ipu-results publish --out release-2.0.0 --previous release-1.0.0
    """
    from ipu_results import release
    from ipu_results._util.version import read_version

    published_on = (day or datetime.now(UTC)).date()
    record = record or (Path(RECORDS) if Path(RECORDS).is_dir() else None)
    request = release.ReleaseRequest(
        *(warehouse, out, published_on, version, previous, corrections, wait, record), default_version=read_version()
    )
    with show_step() as progress:
        published = release.publish(request, progress)
    echo_text(_format_summary(out, published))
    report_findings(published.decision.unused, strict=False, where=str(corrections))


def _format_summary(out: Path, published: PublishedRelease) -> str:
    decision = published.decision
    changes = [escape_unprintable(f"  {change.level}: {change.what}") for change in decision.changes[:MAX_CHANGES]]
    if (more := len(decision.changes) - MAX_CHANGES) > 0:
        changes.append(f"  and {more} more, see release.json")
    sizes = f"{published.files} files, {published.size_bytes:,} bytes, {published.rows:,} rows"
    checksum = f"build {published.build_id[:12]}, sha256 of SHA256SUMS {published.checksum}"
    return "\n".join([f"{out}: version {decision.version}, {sizes}", *changes, checksum])


@click.command(cls=Command)
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--format", "output", type=click.Choice(("text", "json")), default="text", show_default=True)
def verify(folder: Path, output: str) -> None:
    """Check a release: every byte, row and description, in Parquet, CSV and DuckDB and in every descriptor.

    Each problem is one line on stderr, and the exit status is then 1. Notes on stderr say what could not be checked:
    text files that other code wrote, and a release that someone rewrote as a whole. Only a signature finds that.

    \b
    Example:
      ipu-results verify release
      ssh-keygen -Y verify -f signers -I NAME -n ipu-results -s release/SHA256SUMS.sig < release/SHA256SUMS
    """
    from ipu_results._util.text import format_json
    from ipu_results.release import list_limitations, verify_release

    with show_step() as progress:
        progress("verify", str(folder))
        problems = verify_release(folder)
    notes = [] if problems else list_limitations(folder)
    if output == "json":
        records = [problem._asdict() for problem in problems]
        click.echo(format_json({"ok": not problems, "problems": records, "notes": notes}))
    elif not problems:
        echo_text(f"OK {folder}")
    for problem in problems:
        click.echo(f"FAIL {problem.line}", err=True)
    for note in notes:
        echo_text(f"note: {note}", err=True)
    if problems:
        raise click.exceptions.Exit(1)


@click.command(cls=Command)
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option("--format", "output", type=click.Choice(("text", "json", "html")), default="text", show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=0, max=1_000_000),
    default=100,
    show_default=True,
    help="Rows and cells to list of each kind and table. Counts are always complete.",
)
def diff(old: Path, new: Path, output: str, limit: int) -> None:
    """List tables, columns, rows and figures that were added, removed or changed from OLD to NEW.

    OLD and NEW are releases or warehouses. Rows are matched by primary key.

    \b
    Example:
      ipu-results diff release-1.0.0 release-2.0.0
      ipu-results diff release warehouse --format html > changes.html
    """
    from ipu_results.release import diff_releases
    from ipu_results.release.diff_report import format_diff_html, format_diff_json, format_diff_text

    with show_step() as progress:
        progress("compare", f"{old} {new}")
        difference = diff_releases(old, new, limit)
    format_diff = {"text": format_diff_text, "json": format_diff_json, "html": format_diff_html}[output]
    click.echo(format_diff(difference))
