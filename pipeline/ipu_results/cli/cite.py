"""Cite results, and make a table with footnotes."""

from __future__ import annotations

from pathlib import Path

import click

from ipu_results.cli.common import Command, warehouse_option


@click.command(cls=Command)
@click.argument("result_id", nargs=-1, required=True, metavar="ID...")
@click.option(
    "--format",
    "output",
    type=click.Choice(("markdown", "bibtex", "csl-json", "latex")),
    default="markdown",
    show_default=True,
)
@warehouse_option
def cite(result_id: tuple[str, ...], output: str, warehouse: Path) -> None:
    """Print how to cite results: source, place, day of retrieval, and the version of the dataset.

    ID is a `result_id`. Figures are as their source prints them. BibTeX and CSL-JSON have one item per source and one
    for the dataset, LaTeX has a table row with a footnote. MLPerf figures come with the attribution that MLCommons
    requires; emulated ones say that they are not measured.

    \b
    Example:
      ipu-results query "SELECT result_id, throughput FROM inference WHERE model = 'ResNet-50 v1.5' LIMIT 1"
      ipu-results cite 0c5c57a7f21dbd8a --format bibtex
    """
    from ipu_results.citation import cite as run

    click.echo(run(result_id, format=output, warehouse=warehouse))


@click.command(cls=Command)
@click.argument("sql", metavar="QUERY")
@click.option(
    "--format", "output", type=click.Choice(("latex", "markdown", "html")), default="markdown", show_default=True
)
@warehouse_option
def table(sql: str, output: str, warehouse: Path) -> None:
    """Print the rows of a QUERY as a publishable table with one footnote per source.

    QUERY is one read-only SQL statement that selects `result_id`, which is not printed. A query of pairs selects the id
    of each side, such as ipu_result_id and gpu_result_id. Figures are exactly as printed by the source, with its unit.
    What the query computes is marked. MLPerf figures are marked as unverified and emulated ones as emulated.

    \b
    Example:
      ipu-results table --format latex "SELECT result_id, model, batch_size, throughput, latency_ms FROM inference
        WHERE platform = 'C2' AND publisher = 'Qwant' ORDER BY batch_size"
    """
    from ipu_results.citation import format_cited_table

    click.echo(format_cited_table(sql, output, warehouse))
