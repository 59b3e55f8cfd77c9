"""The commands that compare figures with the record, cite results, and make a table with footnotes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipu_results.cli.common import Command, format_option, plot_option, warehouse_option


@click.command(cls=Command)
@click.argument("result_id", nargs=-1, required=True, metavar="ID...")
@format_option("markdown", "bibtex", "csl-json", "latex")
@warehouse_option
def cite(result_id: tuple[str, ...], output: str, warehouse: Path) -> None:
    """Print how to cite results: source, place, day of retrieval, and the version of the dataset.

    ID is a `result_id`. Figures are as their source prints them. BibTeX and CSL-JSON have one item
    per source and one for the dataset, LaTeX has a table row with a footnote. MLPerf figures come
    with the attribution that MLCommons requires; emulated ones say that they are not measured.

    \b
    Example:
      ipu-results query "SELECT result_id, throughput FROM inference WHERE model = 'ResNet-50 v1.5' LIMIT 1"
      ipu-results cite 0c5c57a7f21dbd8a --format bibtex
    """
    from ipu_results.serve import cite as run

    click.echo(run(result_id, format=output, warehouse=warehouse))


@click.command(cls=Command)
@click.argument("sql", metavar="QUERY")
@click.option(
    "--format",
    "output",
    type=click.Choice(("latex", "markdown", "html")),
    default="markdown",
    show_default=True,
)
@warehouse_option
def table(sql: str, output: str, warehouse: Path) -> None:
    """Print the rows of a QUERY as a publishable table with one footnote per source.

    QUERY is one read-only SQL statement that selects `result_id`, which is not printed. A query of
    pairs selects the id of each side, such as ipu_result_id and gpu_result_id. Figures are exactly
    as printed by the source, with its unit. What the query computes is marked. MLPerf figures are
    marked as unverified and emulated ones as emulated.

    \b
    Example:
      ipu-results table --format latex "SELECT result_id, model, batch_size, throughput, latency_ms FROM inference
        WHERE platform = 'C2' AND publisher = 'Qwant' ORDER BY batch_size"
    """
    from ipu_results.serve import format_cited_table

    click.echo(format_cited_table(sql, output, warehouse))


FINDINGS = ("implausible", "doubtful")
BASES = ("per-batch", "several-in-flight", "per-item")
NUMBERS = click.FLOAT


@click.command(cls=Command)
@click.argument(
    "source", required=False, type=click.Path(exists=True, path_type=Path), metavar="[RUN|FILE.csv]"
)
@click.option("--model", metavar="NAME", help="Network, such as resnet50.")
@click.option(
    "--platform",
    metavar="NAME",
    help="Machine, such as ipu-m2000. Leave it out for one that is unknown here.",
)
@click.option(
    "--against",
    metavar="NAME",
    help="Compare with rows of this machine alone, such as '1x A100-40GB'.",
)
@click.option(
    "--chip",
    metavar="NAME",
    help="Chip of a machine that is unknown here, such as H200; with --chips.",
)
@click.option("--batch-size", type=int, metavar="N", help="Items per batch over the whole machine.")
@click.option(
    "--throughput", type=NUMBERS, metavar="X", help="Items per second of the whole machine."
)
@click.option("--latency-ms", type=NUMBERS, metavar="X", help="Milliseconds per batch.")
@click.option(
    "--latency-max-ms",
    type=NUMBERS,
    metavar="X",
    help="Longest of the timed latencies: shows a missing warm-up.",
)
@click.option(
    "--latency-basis",
    type=click.Choice(BASES),
    help="What the latency times.  [default: not stated]",
)
@click.option(
    "--latency-scope",
    type=click.Choice(("host", "device")),
    help="With copies to the chip, or without.",
)
@click.option(
    "--latency-kind",
    type=click.Choice(("amortised", "isolated")),
    help="Period between batches, or one alone.",
)
@click.option("--precision", metavar="NAME", help="Such as 16.16, fp16, fp32, mixed.")
@click.option("--framework", metavar="NAME", help="Such as PyTorch.")
@click.option("--sdk-version", metavar="V", help="Such as 3.3.")
@click.option(
    "--chips",
    type=int,
    metavar="N",
    help="Processors that took part.  [default: all of the platform]",
)
@click.option("--power-w", type=NUMBERS, metavar="W", help="Power drawn.")
@click.option(
    "--power-scope",
    metavar="NAME",
    help="What the power covers: device (chip), board (card), package, machine, wall, declared.",
)
@click.option("--efficiency", type=NUMBERS, metavar="X", help="Items per second per watt.")
@click.option(
    "--task",
    type=click.Choice(("inference", "training")),
    help="[default: inference, or training with --minutes]",
)
@click.option("--item", metavar="NAME", help="What one item is.  [default: that of the network]")
@click.option("--phase", metavar="NAME", help="Phase of training, such as 'pre-training phase 1'.")
@click.option("--sequence-length", type=int, metavar="N", help="Tokens a sequence.")
@click.option(
    "--packed/--not-packed",
    default=None,
    help="Whether several sequences share a row of the batch.",
)
@click.option(
    "--sparsity",
    type=NUMBERS,
    metavar="X",
    help="Share of weights left out as zero.  [default: dense]",
)
@click.option("--variant", metavar="NAME", help="Variant as a source prints it.")
@click.option("--dataset", metavar="NAME", help="Data that was used.")
@click.option("--origin", type=click.Choice(("measured", "emulated")), help="[default: measured]")
@click.option(
    "--benchmark", metavar="NAME", help="mlperf-training, for a run under the rules of MLPerf."
)
@click.option("--division", metavar="NAME", help="MLPerf division: closed or open.")
@click.option("--round", "mlperf_round", metavar="V", help="MLPerf round, such as 2.0.")
@click.option("--minutes", type=NUMBERS, metavar="X", help="MLPerf score.")
@plot_option("Draw your figures and the nearest rows, .svg or .png.")
@format_option("text", "json", "html")
@click.option("--strict", is_flag=True, help="Exit 1 if a figure is implausible or doubtful.")
@warehouse_option
def compare(
    source: Path | None,
    against: str | None,
    warehouse: Path,
    output: str,
    plot: Path | None,
    strict: bool,
    **figures: Any,
) -> None:
    """Compare a run with the record: whether it is plausible, and which published figure is nearest.

    A run folder of `sweep`, a CSV file with columns of the table `results`, or figures as options.
    You get the nearest row of each kind (published by the maker or by others, official, measured or
    emulated here), the ratio, what differs, Little's law, the peak of the chips, the power rating,
    and a verdict in one line. Figures that may not be compared are refused with the reason. "No
    comparable row" is an answer, too. Nothing is uploaded or appended.

    \b
    Examples:
      ipu-results compare --model resnet50 --platform ipu-m2000 --batch-size 4 --throughput 7800
      ipu-results compare raw/runs/20261121-141051-emulator-c2-0912 --format html > run.html
      ipu-results compare my-runs.csv --format json --plot my-runs.svg
      ipu-results compare --model bert-large --sequence-length 128 --platform bow-2000 --batch-size 8
        --precision fp16 --latency-ms 1.94 --latency-basis per-batch --latency-scope host --against "1x A100-40GB"
    """
    stated = {name: value for name, value in figures.items() if value is not None}
    if (source is None) == (not stated):
        raise click.UsageError(
            "state a run folder or a CSV file, or figures as options such as --throughput"
        )
    from ipu_results.comparison import compare as run
    from ipu_results.comparison.report import format_comparisons

    comparisons = run(source, against=against, warehouse=warehouse, **stated)
    if plot is not None:
        from ipu_results.comparison.report import draw_comparisons
        from ipu_results.ground.files import write_atomically

        write_atomically(plot, draw_comparisons(comparisons, plot.suffix.lower()))
    click.echo(format_comparisons(comparisons, output))
    if strict and any(comparison.status in FINDINGS for comparison in comparisons):
        raise click.exceptions.Exit(1)


@click.command(cls=Command)
@click.argument("result_id", required=False, metavar="[ID]")
@click.option("--model", metavar="NAME", help="Network, such as resnet50.")
@click.option("--platform", metavar="NAME", help="Machine, such as bow-pod16.")
@click.option("--task", type=click.Choice(("inference", "training")), help="[default: both]")
@click.option("--chips", type=int, metavar="N", help="Processors that took part.")
@click.option("--batch-size", type=int, metavar="N", help="Items per batch over the whole machine.")
@click.option("--precision", metavar="NAME", help="Such as 16.16.")
@click.option("--round", "mlperf_round", metavar="V", help="MLPerf round, such as 5.1.")
@format_option("text", "json")
@warehouse_option
def expect(result_id: str | None, output: str, warehouse: Path, **conditions: Any) -> None:
    """Say what a third party will measure where a maker printed a figure.

    ID is the `result_id` of a maker's figure, or name it by conditions: one answer for each figure
    that fits. You get intervals at 80 and 95 %, the pairs of the record that they rest on, and how
    often such intervals contained pairs that they were not made from. Where the record has no pair
    of that kind, such as inference on IPUs, the answer is a refusal with the reason, and exit 1.

    \b
    Examples:
      ipu-results expect --model llama2_70b_lora --round 5.1
      ipu-results expect --model resnet50 --platform bow-pod16 --task training --format json
    """
    if (result_id is None) == all(value is None for value in conditions.values()):
        raise click.UsageError(
            "name one figure by its ID, or figures by conditions such as --model and --platform"
        )
    import json

    from ipu_results.comparison.expect import expect as run
    from ipu_results.comparison.expect import format_expectations

    answers = run(result_id, warehouse=warehouse, **conditions)
    records = [answer.to_record() for answer in answers]
    click.echo(
        format_expectations(answers)
        if output == "text"
        else json.dumps(records, ensure_ascii=False, indent=1)
    )
