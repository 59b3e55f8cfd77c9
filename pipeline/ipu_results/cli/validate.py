"""The command that holds the emulator against every published row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import FOLDER, Command, plot_option

if TYPE_CHECKING:
    from ipu_results.emulator.published import Row
    from ipu_results.emulator.report import Report


@click.command("validate-emulator", cls=Command)
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option("--format", "output", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.option("--recalibrate", is_flag=True, help="Freeze what the warehouse gives: calibration and predictions.")
@click.option("--sensitivity", is_flag=True, help="Also change each assumed constant; takes minutes.")
@plot_option("Draw as .svg or .png.")
def validate_emulator(warehouse: Path, output: str, recalibrate: bool, sensitivity: bool, plot: Path | None) -> None:
    """Recompute calibration, predictions and errors from the warehouse, against published rows and baselines.

    Exits 1 where the calibration or a prediction is not the committed one. Targets that are missed are told and leave
    exit status 0: the accuracy is what it is.

    \b
    Example:
      ipu-results validate-emulator
      ipu-results validate-emulator --format json
      ipu-results validate-emulator --plot emulator.svg
    """
    from ipu_results.emulator.published import published
    from ipu_results.emulator.report import validate
    from ipu_results.emulator.report_json import as_json
    from ipu_results.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        rows = published(connection)
    if recalibrate:
        _freeze(rows)
    report = validate(rows)
    if output == "json":
        click.echo(json.dumps(as_json(report), indent=2, ensure_ascii=False))
    else:
        _tell(report)
    if sensitivity:
        _tell_sensitivity(report, rows)
    if plot is not None:
        from ipu_results._util.files import write_atomically
        from ipu_results.emulator.scatter import draw

        write_atomically(plot, draw(report, plot.suffix.lower()))
    _refuse(report)


def _freeze(rows: list[Row]) -> None:
    from ipu_results.emulator.freezing import freeze

    for path in freeze(rows):
        click.echo(f"wrote {path.name}; log the change in docs/emulator.md", err=True)


def _tell(report: Report) -> None:
    from ipu_results.emulator.report import ratios, tables

    for table in tables(report):
        click.echo(f"{table.title}\n{table.told('simple')}\n")
    for one in ratios(report):
        click.echo(
            f"{one.watched:.1f} times nearer than the {one.against} on the 19 held-out rows (target {one.target:g}): "
            f"{one.verdict}; {one.honest:.1f} times on the rows that were never watched"
        )
    click.echo(f"emulated, not measured; calibration {report.calibration.id}")


def _tell_sensitivity(report: Report, rows: list[Row]) -> None:
    from ipu_results.emulator.report import sensitivity
    from ipu_results.emulator.sensitivity import changes

    table = sensitivity(report, changes(rows))
    click.echo(f"{table.title}\n{table.told('simple')}", err=True)


def _refuse(report: Report) -> None:
    if report.differs:
        click.echo("error: the warehouse gives another calibration than calibration.toml", err=True)
    for one in report.departed:
        click.echo(f"error: the prediction of {one.row.result_id} is not that of predictions.csv", err=True)
    if report.differs or report.departed:
        raise click.exceptions.Exit(1)
