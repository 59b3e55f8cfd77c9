"""The commands that publish, verify and compare releases, and that make and check a submission."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipu_results.doors.cli import common
from ipu_results.errors import SubmissionError
from ipu_results.kit.text import escape_unprintable, format_count

if TYPE_CHECKING:
    from ipu_results.doors.submission.check import CheckedBundle

DAY = click.DateTime(["%Y-%m-%d"])
MAX_CHANGES = 20  # of a release on the terminal
MAX_NAMED = 3  # bundles in the message that refuses them
RECORDS = "docs/releases"


@click.command(cls=common.Command)
@click.option("--version", help="MAJOR.MINOR.PATCH. Default: that of the repository.")
@common.folder_option("--out", "release", "Folder that becomes the release.")
@click.option("--previous", type=common.FOLDER, help="Previous release. Default: the one in OUT.")
@common.folder_option("--warehouse", "warehouse")
@click.option(
    "--corrections",
    type=common.FILE,
    metavar="FILE",
    help="TOML file that gives the reason for each removed row.",
)
@click.option(
    "--date",
    "day",
    type=DAY,
    metavar="YYYY-MM-DD",
    help="Date of publication. Default: today in UTC.",
)
@common.wait_option("publishes there")
@click.option(
    "--record",
    type=common.FOLDER,
    help=(
        f"Folder for VERSION.json, which says what changed. Default: {RECORDS} where there is such"
        " a folder."
    ),
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

    The version must fit the change since the previous release: major for changed or removed
    figures, rows or columns, minor for new ones, patch for descriptions. It is that of
    pyproject.toml, so raise it there first. Removed rows need a reason in the corrections file. A
    release in OUT is replaced as a whole or not at all.

    \b
    Example:
      ipu-results publish --out release
      ipu-results publish --out release --corrections corrections.toml
      ipu-results publish --out release-2.0.0 --previous release-1.0.0
    """
    from ipu_results import release
    from ipu_results.kit.files import read_version

    published_on = (day or datetime.now(UTC)).date()
    if record is None and Path(RECORDS).is_dir():
        record = Path(RECORDS)
    request = release.ReleaseRequest(
        warehouse,
        out,
        published_on,
        version,
        previous,
        corrections,
        wait,
        record,
        default_version=read_version(),
    )
    with common.show_step() as progress:
        published = release.publish(request, progress)
    decision = published.decision
    changes = [
        escape_unprintable(f"  {change.level}: {change.what}")
        for change in decision.changes[:MAX_CHANGES]
    ]
    more = len(decision.changes) - MAX_CHANGES
    if more > 0:
        changes.append(f"  and {more} more, see release.json")
    sizes = f"{published.files} files, {published.size_bytes:,} bytes, {published.rows:,} rows"
    checksum = f"build {published.build_id[:12]}, sha256 of SHA256SUMS {published.checksum}"
    common.echo_text("\n".join([f"{out}: version {decision.version}, {sizes}", *changes, checksum]))
    common.report_findings(published.decision.unused, strict=False, where=str(corrections))


@click.command(cls=common.Command)
@click.argument("folder", type=common.FOLDER, metavar="DIR")
@click.option(
    "--root", metavar="SHA256", help="The sha256 of SHA256SUMS that was announced with the release."
)
@common.format_option("text", "json")
def verify(folder: Path, root: str | None, output: str) -> None:
    """Check a release: every byte against SHA256SUMS, and every row in Parquet, CSV and DuckDB.

    Each problem is one line on stderr, and the exit status is then 1. Notes on stderr say what
    could not be checked: without --root a release that someone rewrote as a whole looks sound.

    \b
    Example:
      ipu-results verify release
      ipu-results verify release --root "$ANNOUNCED"
      ssh-keygen -Y verify -f signers -I NAME -n ipu-results -s release/SHA256SUMS.sig < release/SHA256SUMS
    """
    from ipu_results.kit.text import format_json
    from ipu_results.release import list_limitations, verify_release

    with common.show_step("verify", str(folder)) as progress:
        problems = verify_release(folder, progress, root)
    notes = [] if problems else list_limitations(folder, root)
    if output == "json":
        records = [problem._asdict() for problem in problems]
        click.echo(format_json({"ok": not problems, "problems": records, "notes": notes}))
    elif not problems:
        common.echo_text(f"OK {folder}")
    for problem in problems:
        click.echo(f"FAIL {problem.line}", err=True)
    for note in notes:
        common.echo_text(f"note: {note}", err=True)
    if problems:
        raise click.exceptions.Exit(1)


@click.command(cls=common.Command)
@click.argument("old", type=common.FOLDER)
@click.argument("new", type=common.FOLDER)
@common.format_option("text", "json", "html")
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

    with common.show_step("read", f"{old} {new}") as progress:
        difference = diff_releases(old, new, limit, progress)
    formats = {"text": format_diff_text, "json": format_diff_json, "html": format_diff_html}
    click.echo(formats[output](difference))


def _parse_stated(
    context: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    from ipu_results.doors.submission.prepare import SETTABLE

    stated = common.parse_settings(context, param, values)
    for name in stated:
        if name not in SETTABLE:
            message = f"{name!r} cannot be set; the names are {', '.join(SETTABLE)}"
            raise click.BadParameter(message, param=param)
    return stated


@click.command(cls=common.Command, extra="ingest")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="RUN|FILES...",
)
@click.option(
    "--who", "name", required=True, metavar="NAME", help="Who measured; published with the figures."
)
@click.option(
    "--licence", required=True, metavar="SPDX", help="Licence of the figures, such as CC-BY-4.0."
)
@click.option("--how", required=True, metavar="TEXT", help="How it was measured, in plain words.")
@click.option(
    "--set",
    "stated",
    multiple=True,
    callback=_parse_stated,
    metavar="NAME=TEXT",
    help=(
        "Fill a blank column, or state the machine, your relation to its maker, orcid,"
        " affiliation, contact or account on GitHub."
    ),
)
@click.option(
    "--new-word",
    "new_words",
    multiple=True,
    metavar="WORD",
    help="A name that the record does not know yet.",
)
@common.folder_option("--out", "submissions", "Folder for <who>/<id>/.")
@common.warehouse_option
def submit(paths: tuple[Path, ...], out: Path, warehouse: Path, **options: Any) -> None:
    """Make a bundle of your figures: a run folder of `sweep`, the CSV template, or a log of MLPerf.

    The bundle holds the figures as they were printed, who measured them, under which licence and
    how, the environment, and the sha256 of your files. Your files are not in it. A bundle that
    would be refused is not written. Nothing is uploaded. Submissions in ./raw are looked at, too.

    \b
    Example:
      ipu-results submit raw/runs/20261121-130222-onnxruntime-cpu-fp32-97e7 --who "Ada Example" \\
        --licence CC-BY-4.0 --how "ipu-results sweep, machine idle" --set account=ada-example
    """
    from ipu_results.doors.submission.bundle import write_bundle
    from ipu_results.doors.submission.check import CheckRequest, check_files, format_checks
    from ipu_results.doors.submission.prepare import SubmissionRequest, prepare_bundle

    place, files, remarks = prepare_bundle(SubmissionRequest(paths, **options))
    for remark in remarks:
        common.echo_labelled("finding", remark)
    folder = out / place
    request = CheckRequest(warehouse=warehouse, account=options["stated"].get("account"))
    checked = check_files(files, request, place, folder)
    common.echo_text(format_checks([checked], "text"))
    _require_accepted([checked], "nothing was written; correct what is named above")
    if folder.exists():
        raise SubmissionError("exists already, with the same content", place=str(folder))
    write_bundle(folder, files)
    common.echo_text(
        f"wrote {folder}; next: ipu-results check-submission {folder}, then a pull request with"
        f" raw/submissions/{place}"
    )


@click.command("check-submission", cls=common.Command, extra="ingest")
@click.argument("path", type=click.Path(exists=True, path_type=Path), metavar="DIR|ZIP")
@common.format_option("text", "json")
@click.option(
    "--lay", is_flag=True, help="Lay accepted bundles in RAW/submissions, for the next ingest."
)
@click.option("--account", metavar="LOGIN", help="Account on GitHub that hands the bundle in.")
@common.folder_option("--raw", "raw", "Submissions that are here already.")
@common.warehouse_option
def check_submission(
    path: Path, output: str, lay: bool, account: str | None, raw: Path, warehouse: Path
) -> None:
    """Check a bundle, or a folder of bundles <who>/<id>/, and show what it would publish.

    A bundle is data: nothing of it is executed, no link is followed, nothing is downloaded. You get
    every reason for which it is refused, flags, the nearest rows of the record, and the rows that
    it would publish. Exit 1 if one is refused. In a folder of bundles, those that RAW has already
    are left out.

    --lay writes the accepted bundles to RAW/submissions/<who>/<id>/ with a sidecar, which the next
    `ingest` reads.

    \b
    Example:
      ipu-results check-submission submissions/ada-example/0123456789ab --format json
    """
    from ipu_results.doors.submission.bundle import lay_bundle
    from ipu_results.doors.submission.check import CheckRequest, format_checks
    from ipu_results.doors.submission.check import check_submission as check

    checks = check(path, CheckRequest(raw, warehouse, account))
    common.echo_text(format_checks(checks, output))
    _require_accepted(checks, "see above")
    for checked in checks:
        if lay and checked.bundle is not None:
            folder = lay_bundle(checked.bundle, raw)
            click.echo(f"laid in {folder}; next: ipu-results ingest", err=output == "json")


def _require_accepted(checks: Sequence[CheckedBundle], advice: str) -> None:
    refused = [checked for checked in checks if not checked.accepted]
    if refused:
        count = sum(len(checked.faults) for checked in refused)
        message = f"refused for {format_count(count, 'reason')}: {advice}"
        raise SubmissionError(
            message, place=", ".join(checked.name for checked in refused[:MAX_NAMED])
        )
