"""Run `python -m benchmarks.emulator [validate|scores|bands|page|training|freeze]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.emulator import scores, training
from benchmarks.emulator.accuracy import tabulate_rows
from benchmarks.emulator.freezing import PACKAGE_DATA, freeze
from benchmarks.emulator.page import PAGE, update_page
from benchmarks.emulator.rows import SETS, load_rows
from benchmarks.emulator.sets import score_all
from benchmarks.emulator.validation import Validation, load_validation
from benchmarks.report import Report, format_report

ACTIONS = {
    "validate": (
        "print the published inference rows one by one (default), and exit 1 if the calibration"
        " or a prediction differs from the committed one"
    ),
    "scores": (
        "print error, bias and coverage of every row that can be built, next to simpler models"
    ),
    "bands": "write bands.toml from the scores, too",
    "page": "write the generated parts of docs/explanation/emulator.md",
    "training": "those of emulator-training.md",
    "freeze": "write calibration.toml, validated.csv and predictions.csv from the warehouse",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the actions on the committed warehouse and return the exit status."""
    options = _build_parser().parse_args(arguments)
    if options.action == "validate":
        return _print_validation(load_validation())
    if options.action == "page":
        update_page(load_validation(), scores.read_rows())
    elif options.action == "training":
        training.update_page()
    elif options.action == "freeze":
        for path in freeze(load_rows()):
            print(f"wrote {path}; log the change in {PAGE.name}", file=sys.stderr)
    else:
        _print_scores(score_all(), options.out, bands=options.action == "bands")
    return 0


def _print_validation(validation: Validation) -> int:
    subject = f"emulated, not measured; calibration {validation.calibration.id}"
    tables = [tabulate_rows(validation, name) for name in SETS]
    print(format_report(Report("emulator", subject, tables)))
    return refuse_changes(validation)


def _print_scores(rows: Sequence[scores.Score], out: Path | None, *, bands: bool) -> None:
    if bands:
        path = PACKAGE_DATA / "bands.toml"
        path.write_text(scores.format_bands(rows), encoding="utf-8", newline="\n")
    if out is not None:
        scores.write_rows(rows, out)
    subject = "emulated, not measured; errors are predicted over measured time minus 1"
    print(format_report(Report("emulator", subject, scores.build_tables(rows))))


def refuse_changes(validation: Validation) -> int:
    """Name on stderr what differs from the committed files, and return the exit status."""
    messages = []
    if validation.calibration_differs:
        messages.append("the warehouse gives another calibration than calibration.toml")
    for scored in validation.changed_predictions:
        messages.append(f"the prediction of {scored.row.result_id} differs from predictions.csv")
    for message in messages:
        print(f"error: {message}", file=sys.stderr)
    return 1 if messages else 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.emulator",
        description="Compare the emulator with every published row.",
    )
    described = "; ".join(f"{name}: {text}" for name, text in ACTIONS.items())
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="validate", help=described)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="with scores: write every row as CSV"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
