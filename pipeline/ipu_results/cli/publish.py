"""The commands that make a release, check one, and compare two."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results._util.text import escape_unprintable
from ipu_results.cli.common import FOLDER, Command, spinner, tell

if TYPE_CHECKING:
    from ipu_results.release import Published

SHOWN = 20


@click.command(cls=Command)
@click.option("--version", help="MAJOR.MINOR.PATCH; the least that the change allows when left out.")
@click.option("--out", type=FOLDER, default="release", show_default=True, help="Folder that becomes the release.")
@click.option("--previous", type=FOLDER, help="The release before; the one that stands in OUT when left out.")
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option(
    "--corrections",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML that names the rows which are gone, each with a reason.",
)
@click.option(
    "--date", "day", type=click.DateTime(["%Y-%m-%d"]), metavar="YYYY-MM-DD", help="Day of publication; today in UTC."
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait while another process publishes there.",
)
def publish(
    version: str | None,
    out: Path,
    previous: Path | None,
    warehouse: Path,
    corrections: Path | None,
    day: datetime | None,
    wait: float,
) -> None:
    """Make OUT a release of the warehouse: tables in three formats, descriptions, dataset card and checksums.

    The version must suit the change since the previous release: major for a changed or removed figure, row or column,
    minor for new ones, patch for words. Rows that vanished stop it unless the corrections file names them with a
    reason. A release that stands in OUT is replaced in one step, or stays; of the same tables it is made again as it
    was.

    \b
    Example:
      ipu-results publish --out release
      ipu-results publish --out release --corrections corrections.toml
      ipu-results publish --out release-2.0.0 --previous release-1.0.0
    """
    from ipu_results.release import Asked
    from ipu_results.release import publish as run

    published_on = (day or datetime.now(UTC)).date()
    with spinner() as progress:
        done = run(Asked(warehouse, out, published_on, version, previous, corrections, wait), progress)
    click.echo(_summary(out, done))
    unused = [f"correction {one.number} names no row of {one.table} that vanished" for one in done.decision.unused]
    tell(unused, strict=False, where=str(corrections))


def _summary(out: Path, done: Published) -> str:
    changes = [escape_unprintable(f"  {change.level}: {change.what}") for change in done.decision.changes[:SHOWN]]
    if (more := len(done.decision.changes) - SHOWN) > 0:
        changes.append(f"  and {more} more, all in release.json")
    told = f"{out}: version {done.decision.version}, {done.files} files, {done.bytes:,} bytes, {done.rows:,} rows"
    return "\n".join([told, *changes, f"build {done.build_id[:12]}, sha256 of SHA256SUMS {done.seal}"])


@click.command(cls=Command)
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--format", "output", type=click.Choice(("text", "json")), default="text", show_default=True)
def verify(folder: Path, output: str) -> None:
    """Check a release: every byte, every row in Parquet, CSV and DuckDB, and every description.

    A problem is one line on stderr and makes the exit status 1.

    \b
    Example:
      ipu-results verify release
    """
    from ipu_results._util.text import format_json
    from ipu_results.release import check

    with spinner() as progress:
        progress("verify", str(folder))
        problems = check(folder)
    if output == "json":
        click.echo(format_json({"ok": not problems, "problems": [problem._asdict() for problem in problems]}))
    elif not problems:
        click.echo(f"OK {folder}")
    for problem in problems:
        click.echo(f"FAIL {problem.line}", err=True)
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
    help="Rows and cells shown of each kind and table; counts are always of all.",
)
def diff(old: Path, new: Path, output: str, limit: int) -> None:
    """List tables, columns, rows and figures that were added, removed and changed from OLD to NEW.

    OLD and NEW are releases, or warehouses. Rows are paired by primary key.

    \b
    Example:
      ipu-results diff release-1.0.0 release-2.0.0
      ipu-results diff release warehouse --format html > changes.html
    """
    from ipu_results.release import compare, read_side
    from ipu_results.release.page import as_page
    from ipu_results.release.show import as_record, as_text

    with spinner() as progress:
        progress("compare", f"{old} {new}")
        found = compare(read_side(old), read_side(new), limit)
    show = {"text": as_text, "json": as_record, "html": as_page}[output]
    click.echo(show(found, limit))
