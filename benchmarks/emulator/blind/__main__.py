"""Run `python -m benchmarks.emulator.blind [--out DIR | --score]`."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from ipu_results.emulator.target import load_calibration

from benchmarks.emulator.blind.predictions import (
    CONVOLUTIONS,
    FOLDER,
    MACHINES,
    SHAPES,
    YOLOV4,
    format_rows,
    hash_file,
    load_machine,
    predict_set,
)
from benchmarks.emulator.blind.scoring import format_scores, score_convolutions
from benchmarks.emulator.blind.scoring_yolov4 import format_yolov4, score_yolov4

SETS = (CONVOLUTIONS, YOLOV4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict again with the present model, and compare with the committed predictions or write a
    new folder.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.emulator.blind", description=main.__doc__
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write the predictions there; never overwrites a file",
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="score the committed predictions instead, as they stand",
    )
    options = parser.parse_args(arguments)
    if options.score:
        print(f"{format_scores(score_convolutions())}\n{format_yolov4(score_yolov4())}")
        return 0
    for name in SETS:
        text = format_rows(predict_set(name))
        if options.out is None:
            print(compare(name, text))
            continue
        options.out.mkdir(parents=True, exist_ok=True)
        with (options.out / f"{name}.csv").open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        print(f"wrote {options.out / name}.csv", file=sys.stderr)
        print(describe_model(name, options.out / f"{name}.csv"))
    return 0


def compare(name: str, text: str) -> str:
    """Report how far the present model has moved from the committed predictions of a set."""
    committed = (FOLDER / f"{name}.csv").read_text(encoding="utf-8")
    old, new = (list(csv.DictReader(lines.splitlines())) for lines in (committed, text))
    changes = [
        float(b["time_ms"]) / float(a["time_ms"]) - 1
        for a, b in zip(old, new, strict=True)
        if a["time_ms"] != b["time_ms"]
    ]
    largest = max(map(abs, changes), default=0.0)
    return (
        f"{name}: {len(changes)} of {len(old)} predictions differ from the committed ones, by at"
        f" most {largest:.2%}"
    )


def describe_model(name: str, path: Path) -> str:
    """Return the lines of a sidecar that say what the predictions rest on."""
    machines = {
        machine: load_machine(set_, precision)
        for (set_, precision), machine in MACHINES.items()
        if set_ == name
    }
    digests = "\n".join(f'"{machine}" = "{target.digest}"' for machine, target in machines.items())
    return (
        f'sha256 = "{hash_file(path)}"\ncalibration_id = "{load_calibration().id}"\nshapes ='
        f' "{SHAPES[name]}"\nshapes_sha256 ='
        f' "{hash_file(FOLDER / SHAPES[name])}"\n\n[machines]\n{digests}\n'
    )


if __name__ == "__main__":
    sys.exit(main())
