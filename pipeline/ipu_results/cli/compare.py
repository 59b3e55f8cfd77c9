"""Compare figures of a run with the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipu_results.cli.common import Command, plot_option, warehouse_option

FINDINGS = ("implausible", "doubtful")
BASES = ("per-batch", "several-in-flight", "per-item")
NUMBERS = click.FLOAT


@click.command(cls=Command)
@click.argument("source", required=False, type=click.Path(exists=True, path_type=Path), metavar="[RUN|FILE.csv]")
@click.option("--model", metavar="NAME", help="Network, such as resnet50.")
@click.option(
    "--platform", metavar="NAME", help="Machine, such as ipu-m2000. Leave it out for one that is unknown here."
)
@click.option("--batch-size", type=int, metavar="N", help="Items per batch over the whole machine.")
@click.option("--throughput", type=NUMBERS, metavar="X", help="Items per second of the whole machine.")
@click.option("--latency-ms", type=NUMBERS, metavar="X", help="Milliseconds per batch.")
@click.option("--latency-basis", type=click.Choice(BASES), help="What the latency times.  [default: not stated]")
@click.option(
    "--latency-kind", type=click.Choice(("amortised", "isolated")), help="Period between batches, or one alone."
)
@click.option("--precision", metavar="NAME", help="Such as 16.16, fp16, fp32, mixed.")
@click.option("--framework", metavar="NAME", help="Such as PyTorch.")
@click.option("--sdk-version", metavar="V", help="Such as 3.3.")
@click.option("--chips", type=int, metavar="N", help="Processors that took part.  [default: all of the platform]")
@click.option("--power-w", type=NUMBERS, metavar="W", help="Power drawn.")
@click.option(
    "--power-scope",
    metavar="NAME",
    help="What the power covers: device (chip), board (card), package, machine, wall, declared.",
)
@click.option("--efficiency", type=NUMBERS, metavar="X", help="Items per second per watt.")
@click.option(
    "--task", type=click.Choice(("inference", "training")), help="[default: inference, or training with --minutes]"
)
@click.option("--item", metavar="NAME", help="What one item is.  [default: that of the network]")
@click.option("--phase", metavar="NAME", help="Phase of training, such as 'pre-training phase 1'.")
@click.option("--sequence-length", type=int, metavar="N", help="Tokens a sequence.")
@click.option("--packed/--not-packed", default=None, help="Whether several sequences share a row of the batch.")
@click.option("--sparsity", type=NUMBERS, metavar="X", help="Share of weights left out as zero.  [default: dense]")
@click.option("--variant", metavar="NAME", help="Variant as a source prints it.")
@click.option("--dataset", metavar="NAME", help="Data that was used.")
@click.option("--origin", type=click.Choice(("measured", "emulated")), help="[default: measured]")
@click.option("--benchmark", metavar="NAME", help="mlperf-training, for a run under the rules of MLPerf.")
@click.option("--division", metavar="NAME", help="MLPerf division: closed or open.")
@click.option("--round", "mlperf_round", metavar="V", help="MLPerf round, such as 2.0.")
@click.option("--minutes", type=NUMBERS, metavar="X", help="MLPerf score.")
@plot_option("Draw your figures and the nearest rows, .svg or .png.")
@click.option("--format", "output", type=click.Choice(("text", "json", "html")), default="text", show_default=True)
@click.option("--strict", is_flag=True, help="Exit 1 if a figure is implausible or doubtful.")
@warehouse_option
def compare(source: Path | None, warehouse: Path, output: str, plot: Path | None, strict: bool, **figures: Any) -> None:
    """Compare a run with the record: whether it is plausible, and which published figure is nearest.

    A run folder of `sweep`, a CSV file with columns of the table `results`, or figures as options. You get the nearest
    row of each kind (published by the maker or by others, official, measured or emulated here), the ratio, what
    differs, Little's law, the peak of the chips, the power rating, and a verdict in one line. Figures that may not be
    compared are refused with the reason. "No comparable row" is an answer, too. Nothing is uploaded or appended.

    \b
    Examples:
      ipu-results compare --model resnet50 --platform ipu-m2000 --batch-size 4 --throughput 7800
      ipu-results compare raw/runs/20261121-141051-emulator-c2-0912 --format html > run.html
      ipu-results compare my-runs.csv --format json --plot my-runs.svg
    """
    stated = {name: value for name, value in figures.items() if value is not None}
    if (source is None) == (not stated):
        raise click.UsageError("state a run folder or a CSV file, or figures as options such as --throughput")
    from ipu_results.comparison import compare as run
    from ipu_results.comparison.report import format_comparisons

    comparisons = run(source, warehouse=warehouse, **stated)
    if plot is not None:
        from ipu_results._util.files import write_atomically
        from ipu_results.comparison.chart import draw_comparisons

        write_atomically(plot, draw_comparisons(comparisons, plot.suffix.lower()))
    click.echo(format_comparisons(comparisons, output))
    if strict and any(comparison.status in FINDINGS for comparison in comparisons):
        raise click.exceptions.Exit(1)
