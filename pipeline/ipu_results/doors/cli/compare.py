"""The commands that compare a run with the record, and cite results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipu_results.doors.cli.common import (
    Command,
    format_option,
    parse_settings,
    warehouse_option,
)


@click.command(cls=Command)
@click.argument("result_id", nargs=-1, required=True, metavar="ID...")
@format_option("markdown", "bibtex", "csl-json")
@warehouse_option
def cite(result_id: tuple[str, ...], output: str, warehouse: Path) -> None:
    """Print how to cite results: source, place, day of retrieval, and the version of the dataset.

    ID is a `result_id`. Figures are as their source prints them. BibTeX and CSL-JSON have one item
    per source and one for the dataset, LaTeX has a table row with a footnote. MLPerf figures come
    with the attribution that MLCommons requires; emulated ones say that they are not measured.

    \b
    Example:
      ipu-results query "SELECT result_id, throughput FROM inference WHERE model = 'ResNet-50 v1.5' AND usable LIMIT 1"
      ipu-results cite r0c5c57a7f21dbd8a --format bibtex
    """
    from ipu_results.doors.cite import cite as run

    click.echo(run(result_id, format=output, warehouse=warehouse))


FINDINGS = ("implausible", "doubtful")


@click.command(cls=Command)
@click.argument(
    "source", required=False, type=click.Path(exists=True, path_type=Path), metavar="[FILE]"
)
@click.option("--model", metavar="NAME", help="Network, such as resnet50, in any spelling.")
@click.option(
    "--platform",
    metavar="NAME",
    help="Machine, such as ipu-m2000. Leave it out for one that is unknown here.",
)
@click.option("--batch-size", type=int, metavar="N", help="Items per batch over the whole machine.")
@click.option(
    "--throughput", type=float, metavar="X", help="Items per second of the whole machine."
)
@click.option("--latency-ms", type=float, metavar="X", help="Milliseconds per batch.")
@click.option(
    "--precision", metavar="NAME", help="Such as fp16, which 16.16 and half are, too, fp32, mixed."
)
@click.option(
    "--set",
    "columns",
    multiple=True,
    callback=parse_settings,
    metavar="COLUMN=VALUE",
    help="State any other column of a run, such as latency_basis=per-batch. Repeatable.",
)
@click.option(
    "--against",
    metavar="NAME",
    help="Compare with rows of this machine alone, such as '1x A100-40GB'.",
)
@format_option("text", "json")
@click.option("--strict", is_flag=True, help="Exit 1 if a figure is implausible or doubtful.")
@warehouse_option
def compare(
    source: Path | None,
    columns: dict[str, str],
    against: str | None,
    warehouse: Path,
    output: str,
    strict: bool,
    **figures: Any,
) -> None:
    """Compare a run with the record: whether it is plausible, and which published figure is nearest.

    FILE is a TOML file of one run, such as `latency_ms = 1.94`, a CSV file with a run a row, or a
    run folder of `sweep`. Its keys are columns of the table `results`. Without FILE, state the run
    by options. You get the nearest row of each kind (published by the maker or by others, official,
    measured or emulated here), the ratio, what differs, what a third party is expected to measure,
    Little's law, the peak of the chips, the power rating, and a verdict in one line. Figures that
    may not be compared are refused with the reason. No verdict rests on a row that is not usable
    (an error, suspect, repeated, emulated, submitted); you get their number. "No comparable row" is
    an answer, too. Nothing is uploaded or appended.

    \b
    Examples:
      ipu-results compare --model resnet50 --platform ipu-m2000 --batch-size 4 --throughput 7800
      ipu-results compare my-run.toml --against "1x A100-40GB"
      ipu-results compare my-runs.csv --format json
      ipu-results compare raw/runs/20261121-141051-emulator-c2-0912
      ipu-results compare --model bert-large --platform bow-2000 --batch-size 8 --latency-ms 1.94
        --set sequence_length=128 --set latency_basis=per-batch --set latency_scope=host
    """
    stated = dict(columns)
    for name, value in figures.items():
        if value is None:
            continue
        if name in stated:
            raise click.UsageError(f"{name} is stated twice: by an option and by --set")
        stated[name] = value
    has_file = source is not None
    has_figures = bool(stated)
    if has_file == has_figures:
        raise click.UsageError(
            "state either a FILE or the figures of a run, by options such as --throughput and --set"
        )
    from ipu_results.doors.comparison import compare as run
    from ipu_results.doors.comparison.measurement import check_columns
    from ipu_results.doors.comparison.report import format_comparisons

    check_columns(columns)
    comparisons = run(source, against=against, warehouse=warehouse, **stated)
    click.echo(format_comparisons(comparisons, output))
    if strict and any(comparison.status in FINDINGS for comparison in comparisons):
        raise click.exceptions.Exit(1)
