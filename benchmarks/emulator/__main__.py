"""Run `python -m benchmarks.emulator [validate|tables|scores|bands|page|training|freeze]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.emulator import scores, training
from benchmarks.emulator.accuracy import tabulate_rows, tabulate_sensitivity
from benchmarks.emulator.freezing import PACKAGE_DATA, freeze
from benchmarks.emulator.page import PAGE, update_page
from benchmarks.emulator.rows import SETS, load_rows
from benchmarks.emulator.sensitivity import measure_changes
from benchmarks.emulator.sets import score_all
from benchmarks.emulator.validation import Validation, load_validation, to_json
from benchmarks.report import Report, format_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the actions on the committed warehouse and return the exit status."""
    options = _build_parser().parse_args(arguments)
    if options.action == "freeze":
        for path in freeze(load_rows()):
            print(f"wrote {path}; log the change in {PAGE.name}", file=sys.stderr)
        return 0
    if options.action in ("scores", "bands"):
        return _print_scores(score_all(), options.out, bands=options.action == "bands")
    if options.action == "training":
        training.update_page(sensitivity=options.sensitivity)
        return 0
    validation = load_validation()
    if options.action == "page":
        update_page(validation, scores.read_rows(), sensitivity=options.sensitivity)
        return 0
    if options.action == "validate":
        record = to_json(validation, training.load_scores())
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return refuse_changes(validation)
    tables = [tabulate_rows(validation, name) for name in SETS]
    if options.sensitivity:
        changes = measure_changes(load_rows(), workers=os.cpu_count() or 1)
        tables.append(tabulate_sensitivity(validation, changes))
    print(format_report(Report("emulator", _describe(validation), tables)))
    return 0


def _print_scores(rows: Sequence[scores.Score], out: Path | None, *, bands: bool) -> int:
    if bands:
        (PACKAGE_DATA / "bands.toml").write_text(
            scores.format_bands(rows), encoding="utf-8", newline="\n"
        )
    if out is not None:
        scores.write_rows(rows, out)
    subject = "emulated, not measured; errors are predicted over measured time minus 1"
    print(format_report(Report("emulator", subject, scores.build_tables(rows))))
    return 0


def _describe(validation: Validation) -> str:
    return f"emulated, not measured; calibration {validation.calibration.id}"


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
    parser.add_argument(
        "action",
        nargs="?",
        choices=("validate", "tables", "scores", "bands", "page", "training", "freeze"),
        default="tables",
        help=(
            "scores: print error, bias and coverage of every row that can be built, next to simpler"
            " models; tables: print the published inference rows one by one (default); validate:"
            " print these and training as JSON, and exit 1 if the calibration or a prediction"
            " differs from the committed one; bands: write bands.toml from the scores too; page:"
            " write the generated parts of docs/explanation/emulator.md; training: those of"
            " emulator-training.md; freeze: write calibration.toml, validated.csv and"
            " predictions.csv from the warehouse"
        ),
    )
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="also change each assumed constant; takes minutes",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="with scores: write every row as CSV"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
