"""The command that compares the emulator with every published row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import FOLDER, Command

if TYPE_CHECKING:
    from ipu_results.emulator.training_scoring import TrainingScore
    from ipu_results.emulator.validation import Validation


@click.command("validate-emulator", cls=Command)
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option("--format", "output", type=click.Choice(("table", "json")), default="table", show_default=True)
def validate_emulator(warehouse: Path, output: str) -> None:
    """Recompute calibration, predictions and errors from the warehouse, against published rows and simpler models.

    Training rows are predicted too. They are in no fit, but their figures were known: sets that begin with `train`.

    Exits 1 if the calibration or a prediction differs from the committed one. Targets that are missed are reported and
    leave exit status 0. JSON has every row. docs/explanation/emulator.md has all tables and what each constant moves.

    \b
    Example:
      ipu-results validate-emulator
      ipu-results validate-emulator --format json
    """
    from ipu_results.emulator.published import load_published_rows
    from ipu_results.emulator.training_rows import load_training_rows
    from ipu_results.emulator.training_scoring import add_training_json, score_training
    from ipu_results.emulator.validation import to_json, validate
    from ipu_results.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        rows, training_rows = load_published_rows(connection), load_training_rows(connection)
    validation = validate(rows)
    training = score_training(training_rows, [row for row in rows if row.set == "calibration"])
    if output == "json":
        click.echo(json.dumps(add_training_json(to_json(validation), training), indent=2, ensure_ascii=False))
    else:
        click.echo(_format_table(validation, training))
    _refuse_changes(validation)


def _format_table(validation: Validation, training: Sequence[TrainingScore]) -> str:
    """Return the scores with their targets, the comparisons with simpler models, and what the figures are."""
    from ipu_results._util.text import format_table
    from ipu_results.emulator.validation import LIMITS

    rows = []
    for name, limits in LIMITS.items():
        errors = validation.score(name)
        shares = (errors.mean, limits.mean, errors.max, limits.max)
        percent = ["" if share is None else f"{100 * share:.1f}" for share in shares]
        rows.append((name, errors.rows, *percent, "met" if all(limits.check(errors)) else "missed"))
    columns = ("set", "rows", "MAPE %", "target %", "max %", "max target %", "verdict")
    lines = [format_table(columns, rows), ""]
    for ratio in validation.compute_ratios():
        lines.append(
            f"{ratio.development:.1f} times nearer than the {ratio.against} on the development sets, resnext and ten "
            f"(target {ratio.target:g}): {'met' if ratio.met else 'missed'}; {ratio.blind:.1f} times on the set honest"
        )
    lines += ["", _format_training(training), ""]
    return "\n".join([*lines, f"emulated, not measured; calibration {validation.calibration.id}"])


def _format_training(training: Sequence[TrainingScore]) -> str:
    from ipu_results._util.text import format_table
    from ipu_results.emulator import training_scoring as scoring
    from ipu_results.emulator.scoring import summarise_errors

    rows = []
    for name, members in scoring.iterate_sets(training):
        summary = summarise_errors([each.error for each in members])
        simple = [
            summarise_errors([each.get_baseline_error(model) for each in members]).median
            for model in members[0].baselines
        ]
        verdict = ("met" if all(scoring.check_aim(summary)) else "missed") if name == scoring.AIMED else ""
        shares = (summary.median, summary.mean, summary.max, *simple)
        rows.append((name, summary.rows, *(f"{100 * share:.1f}" for share in shares), verdict))
    models = tuple(f"{name}, median %" for name in training[0].baselines)
    columns = ("training set", "rows", "median %", "MAPE %", "max %", *models, "median 12 %, max 30 %")
    return format_table(columns, rows)


def _refuse_changes(validation: Validation) -> None:
    if validation.calibration_differs:
        click.echo("error: the warehouse gives another calibration than calibration.toml", err=True)
    for scored in validation.changed_predictions:
        click.echo(f"error: the prediction of {scored.row.result_id} differs from predictions.csv", err=True)
    if validation.calibration_differs or validation.changed_predictions:
        raise click.exceptions.Exit(1)
