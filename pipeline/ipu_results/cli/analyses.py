"""The command that answers a reader's questions from the warehouse."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import FOLDER, Command, plot_option

if TYPE_CHECKING:
    from ipu_results.analyses import Analysis, Frames

WIDTH = 100


def _settings(_: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for one in value:
        name, figure = (*one.split("=", 1), "")[:2]
        try:
            found[name] = float(figure)
        except ValueError as error:
            raise click.BadParameter(f"{one!r} is not NAME=FIGURE", param=param) from error
        if not 0 < found[name] < float("inf"):
            raise click.BadParameter(f"{one!r} is no figure above 0", param=param)
    return found


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option("--set", "settings", multiple=True, callback=_settings, metavar="NAME=FIGURE", help="A parameter of it.")
@plot_option("Draw it to FILE, .svg or .png.")
def analyse(name: str | None, warehouse: Path, output: str, settings: dict[str, float], plot: Path | None) -> None:
    """Answer one question from the warehouse: its rows, and a paragraph on stderr of what they show.

    Without NAME the questions are listed.

    \b
    Example:
      ipu-results analyse generations
      ipu-results analyse per_dollar --set ipu_price=120000 --plot per-dollar.svg
    """
    from ipu_results._util.files import write_atomically
    from ipu_results._util.text import format_records
    from ipu_results.analyses import ANALYSES, draw, rows
    from ipu_results.store.query import open_warehouse

    if name is None:
        click.echo(format_records(output, ("name", "question"), [(one.name, one.question) for one in ANALYSES]))
        return
    asked = next((one for one in ANALYSES if one.name == name), None)
    if asked is None:
        raise click.BadParameter(f"{name!r} is none of {', '.join(one.name for one in ANALYSES)}", param_hint="NAME")
    _assert_known(asked, settings)
    with open_warehouse(warehouse) as connection:
        frames = rows(connection, asked, settings)
    if plot is not None:
        write_atomically(plot, draw(asked, frames, plot.suffix.lower()))
    _show(asked, frames, output)


def _assert_known(asked: Analysis, settings: dict[str, float]) -> None:
    from ipu_results.schema import VIEWS

    known = [name for view in VIEWS if view.name in asked.views for name, _ in view.parameters]
    if unknown := sorted(settings.keys() - set(known)):
        there = f"it has {', '.join(dict.fromkeys(known))}" if known else "it has none"
        raise click.BadParameter(f"{asked.name} has no parameter {unknown[0]!r}; {there}", param_hint="--set")


def _show(asked: Analysis, frames: Frames, output: str) -> None:
    from ipu_results._util.text import format_records
    from ipu_results.schema import VIEWS

    [view] = [one for one in VIEWS if one.name == asked.views[0]]
    whole = {column.name: "Int64" for column in view.columns if column.kind == "integer"}
    frame = frames[view.name].astype(whole).astype(object)
    found = frame.where(frame.notna(), None)
    click.echo(format_records(output, list(found.columns), found.itertuples(index=False, name=None)))
    click.echo("\n" + textwrap.fill(asked.told(frames), WIDTH), err=True)
