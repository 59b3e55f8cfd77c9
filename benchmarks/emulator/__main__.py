"""Run `python -m benchmarks.emulator [tables|scores|steps|bands|page|training|freeze]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from benchmarks.emulator import bias, scores, steps, training
from benchmarks.emulator.accuracy import (
    build_tables,
    load_rows,
    load_validation,
    render_scatter,
    tabulate_sensitivity,
)
from benchmarks.emulator.freezing import DATA, freeze
from benchmarks.emulator.page import PAGE, update_page, write_parts
from benchmarks.emulator.sensitivity import measure_changes
from benchmarks.report import Report, format_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the actions on the committed warehouse and return the exit status."""
    options = _build_parser().parse_args(arguments)
    if options.action == "freeze":
        for path in freeze(load_rows()):
            print(f"wrote {path}; log the change in {PAGE.name}", file=sys.stderr)
        return 0
    if options.action in ("scores", "bands"):
        rows = scores.score_all()
        if options.action == "bands":
            (DATA / "bands.toml").write_text(
                scores.format_bands(rows), encoding="utf-8", newline="\n"
            )
        if options.out is not None:
            scores.write_rows(rows, options.out)
        print(*bias.generate_parts(rows).values(), sep="\n")
        return 0
    if options.action == "steps":
        print(
            tabulate(
                steps.tabulate_steps(), headers=steps.HEADER, tablefmt="pipe", disable_numparse=True
            )
        )
        return 0
    if options.action == "training":
        training.update_page(sensitivity=options.sensitivity)
        return 0
    validation = load_validation()
    if options.action == "page":
        update_page(validation, sensitivity=options.sensitivity)
        write_parts(bias.generate_parts(scores.read_rows()))
        return 0
    tables = build_tables(validation)
    if options.sensitivity:
        changes = measure_changes(load_rows(), workers=os.cpu_count() or 1)
        tables.append(tabulate_sensitivity(validation, changes))
    print(
        format_report(
            Report(
                "emulator",
                f"emulated, not measured; calibration {validation.calibration.id}",
                tables,
            )
        )
    )
    if options.plot is not None:
        options.plot.write_bytes(render_scatter(validation, options.plot.suffix.lower()))
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.emulator",
        description="Compare the emulator with every published row.",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("tables", "scores", "steps", "bands", "page", "training", "freeze"),
        default="tables",
        help=(
            "tables: print the accuracy (default); scores: print error, bias and coverage of every"
            " set; steps: switch corrections of training off one by one; bands: write bands.toml"
            " from them too; page: write the generated parts of docs/explanation/emulator.md;"
            " training: those of emulator-training.md; freeze: write calibration.toml and"
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
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw predicted against published as .svg or .png"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
