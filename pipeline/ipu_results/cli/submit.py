"""Hand in figures: make a bundle, and check one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipu_results._util.text import format_count
from ipu_results.cli.common import FOLDER, Command, echo_labelled, echo_text, warehouse_option
from ipu_results.errors import SubmissionError

DEFAULTS = "COLUMN=TEXT"


def _parse_defaults(_: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    from ipu_results.submission.template import COLUMNS

    pairs = [text.partition("=") for text in value]
    for name, sign, text in pairs:
        if not sign or not text or name not in COLUMNS or name == "value":
            known = ", ".join(column for column in COLUMNS if column != "value")
            raise click.BadParameter(f"{name!r} is not {DEFAULTS}; the columns are {known}", param=param)
    return {name: text for name, _, text in pairs}


@click.command(cls=Command, extra="ingest")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="RUN|FILES...")
@click.option("--who", "name", required=True, metavar="NAME", help="Who measured; published with the figures.")
@click.option("--licence", required=True, metavar="SPDX", help="Licence of the figures, such as CC-BY-4.0.")
@click.option("--how", required=True, metavar="TEXT", help="How it was measured, in plain words.")
@click.option("--machine", metavar="TEXT", help="The machine in words.  [default: the platforms of the figures]")
@click.option(
    "--relation",
    type=click.Choice(("none", "maker", "employee", "customer", "partner")),
    default="none",
    show_default=True,
    help="What you are to the maker of the machine.",
)
@click.option("--orcid", metavar="ID", help="Your ORCID iD.")
@click.option("--affiliation", metavar="TEXT", help="Where you work.")
@click.option("--contact", metavar="TEXT", help="How to reach you; published.")
@click.option("--account", metavar="LOGIN", help="Your account on GitHub, if you hand in by pull request.")
@click.option("--set", "defaults", multiple=True, callback=_parse_defaults, metavar=DEFAULTS, help="Fill blank cells.")
@click.option("--adapter", metavar="NAME", help="The form of the files, if their content suits several.")
@click.option(
    "--new-word", "new_words", multiple=True, metavar="WORD", help="A name that the record does not know yet."
)
@click.option("--out", type=FOLDER, default="submissions", show_default=True, help="Folder for <who>/<id>/.")
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Submissions that are here already.")
@warehouse_option
def submit(paths: tuple[Path, ...], out: Path, raw: Path, warehouse: Path, **options: Any) -> None:
    """Make a bundle of your figures: a run folder of `sweep`, or files that an adapter reads.

    The bundle holds the figures as they were printed, who measured them, under which licence and how, the environment,
    and the sha256 of your files. Your files are not in it. A bundle that would be refused is not written. Nothing is
    uploaded.

    \b
    Example:
      ipu-results submit raw/runs/20261121-130222-onnxruntime-cpu-fp32-97e7 --who "Ada Example" \\
        --licence CC-BY-4.0 --how "ipu-results sweep, machine idle"
    """
    from ipu_results.submission.check import CheckRequest, check_files
    from ipu_results.submission.lay import write_bundle
    from ipu_results.submission.prepare import SubmissionRequest, prepare_bundle
    from ipu_results.submission.report import format_checks

    place, files, remarks = prepare_bundle(SubmissionRequest(paths, **options))
    for remark in remarks:
        echo_labelled("finding", remark)
    folder = out / place
    checked = check_files(files, CheckRequest(raw, warehouse, options["account"]), place, folder)
    echo_text(format_checks([checked], "text"))
    _require_accepted([checked], "nothing was written; correct what is named above")
    if folder.exists():
        raise SubmissionError("exists already, with the same content", place=str(folder))
    write_bundle(folder, files)
    echo_text(
        f"wrote {folder}; next: ipu-results check-submission {folder}, then a pull request with raw/submissions/{place}"
    )


@click.command("check-submission", cls=Command, extra="ingest")
@click.argument("path", type=click.Path(exists=True, path_type=Path), metavar="DIR|ZIP")
@click.option("--format", "output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--lay", is_flag=True, help="Lay accepted bundles in RAW/submissions, for the next ingest.")
@click.option("--account", metavar="LOGIN", help="Account on GitHub that hands the bundle in.")
@click.option("--raw", type=FOLDER, default="raw", show_default=True, help="Submissions that are here already.")
@warehouse_option
def check_submission(path: Path, output: str, lay: bool, account: str | None, raw: Path, warehouse: Path) -> None:
    """Check a bundle, or a folder of bundles <who>/<id>/, and show what it would publish.

    A bundle is data: nothing of it is executed, no link is followed, nothing is downloaded. You get every reason for
    which it is refused, flags, the nearest rows of the record, and the rows that it would publish. Exit 1 if one is
    refused. In a folder of bundles, those that RAW has already are left out.

    --lay writes the accepted bundles to RAW/submissions/<who>/<id>/ with a sidecar, which the next `ingest` reads.

    \b
    Example:
      ipu-results check-submission submissions/ada-example/0123456789ab --format json
    """
    from ipu_results.submission.check import CheckRequest
    from ipu_results.submission.check import check_submission as check
    from ipu_results.submission.lay import lay_bundle
    from ipu_results.submission.report import format_checks

    checks = check(path, CheckRequest(raw, warehouse, account))
    echo_text(format_checks(checks, output))
    _require_accepted(checks, "see above")
    for checked in checks:
        if lay and checked.bundle is not None:
            folder = lay_bundle(checked.bundle, raw)
            click.echo(f"laid in {folder}; next: ipu-results ingest", err=output == "json")


def _require_accepted(checks: Any, advice: str) -> None:
    refused = [checked for checked in checks if not checked.accepted]
    if refused:
        count = sum(len(checked.faults) for checked in refused)
        message = f"refused for {format_count(count, 'reason')}: {advice}"
        raise SubmissionError(message, place=", ".join(own.name for own in refused[:3]))
