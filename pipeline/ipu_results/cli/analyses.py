"""The command that answers a question from the warehouse."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import Command, echo_text, plot_option, warehouse_option

if TYPE_CHECKING:
    from ipu_results.analyses import Analysis, Frames

WIDTH = 100


def _parse_settings(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    settings = {}
    for text in values:
        name, _equals, figure = text.partition("=")
        try:
            settings[name] = float(figure)
        except ValueError as error:
            raise click.BadParameter(f"{text!r} is not NAME=NUMBER", param=param) from error
        if not 0 < settings[name] < float("inf"):
            raise click.BadParameter(f"{text!r} is not a number above 0", param=param)
    return settings


@click.command(cls=Command)
@click.argument("name", required=False)
@warehouse_option
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option(
    "--set", "settings", multiple=True, callback=_parse_settings, metavar="NAME=NUMBER", help="Set a parameter of it."
)
@plot_option("Draw it to FILE, .svg or .png.")
def analyse(name: str | None, warehouse: Path, output: str, settings: dict[str, float], plot: Path | None) -> None:
    """Answer one question from the warehouse: print its rows, and a summary of them on stderr.

    Without NAME the questions are listed.

    \b
    Example:
      ipu-results analyse generations
      ipu-results analyse per_dollar --set ipu_price=120000 --plot per-dollar.svg
    """
    from ipu_results._util.files import write_atomically
    from ipu_results._util.text import format_records
    from ipu_results.analyses import ANALYSES, draw_chart, load_frames
    from ipu_results.store.query import open_warehouse

    by_name = {analysis.name: analysis for analysis in ANALYSES}
    if name is None:
        questions = [(analysis.name, analysis.question) for analysis in ANALYSES]
        click.echo(format_records(output, ("name", "question"), questions))
        return
    if name not in by_name:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(by_name)}", param_hint="NAME")
    analysis = by_name[name]
    _reject_unknown(analysis, settings)
    with open_warehouse(warehouse) as connection:
        frames = load_frames(connection, analysis, settings)
    if plot is not None:
        write_atomically(plot, draw_chart(analysis, frames, plot.suffix.lower()))
    _print(analysis, frames, output)


def _reject_unknown(analysis: Analysis, settings: dict[str, float]) -> None:
    from ipu_results.schema import VIEWS

    known = dict.fromkeys(name for view in VIEWS if view.name in analysis.views for name, _ in view.parameters)
    if unknown := sorted(settings.keys() - known):
        choices = f"it has {', '.join(known)}" if known else "it has none"
        raise click.BadParameter(f"{analysis.name} has no parameter {unknown[0]!r}; {choices}", param_hint="--set")


def _print(analysis: Analysis, frames: Frames, output: str) -> None:
    from ipu_results._util.text import format_records
    from ipu_results.schema import VIEWS

    view = next(view for view in VIEWS if view.name == analysis.views[0])
    integers = {column.name: "Int64" for column in view.columns if column.kind == "integer"}
    frame = frames[view.name].astype(integers).astype(object)
    rows = frame.where(frame.notna(), None)
    click.echo(format_records(output, list(rows.columns), rows.itertuples(index=False, name=None)))
    for paragraph in analysis.summarise(frames).split("\n\n"):
        echo_text("\n" + textwrap.fill(paragraph, WIDTH, break_on_hyphens=False), err=True)
