"""Write the committed calibration and predictions again: a change of the model, to be logged with
its scores.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from ipu_results.emulator.check import BLIND, PublishedRow
from ipu_results.emulator.check.scoring import (
    PREDICTIONS_FILE,
    ScoredRow,
    predict_rows,
    recalibrate,
)
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.target import CALIBRATION_FILE, Calibration, load_calibration, load_target

COLUMNS = (
    "result_id",
    "model",
    "target",
    "protocol",
    "batch",
    "time_ms",
    "latency_ms",
    "calibration_id",
    "constants",
)
HEADER = "# Made by `python -m benchmarks.emulator freeze` from the six C2 rows; not to be edited."
DATA = Path(str(files("ipu_results.emulator") / "data"))


def freeze(rows: Sequence[PublishedRow], folder: Path = DATA) -> tuple[Path, Path]:
    """Write both files and return their paths."""
    calibration = recalibrate(rows)
    blind = predict_rows([row for row in rows if row.set == BLIND], calibration)
    paths = folder / CALIBRATION_FILE, folder / PREDICTIONS_FILE
    for path, text in zip(
        paths, (format_calibration(calibration), format_predictions(blind)), strict=True
    ):
        path.write_text(text, encoding="utf-8", newline="\n")
    load_calibration.cache_clear()
    return paths


def format_calibration(calibration: Calibration) -> str:
    """Return the text of `calibration.toml`."""
    fits = (
        ("[fit]", calibration.fit),
        *(("[[jackknife]]", fit) for fit in calibration.jackknife),
        *(("[[ends]]", fit) for fit in calibration.ends),
    )
    parts = [
        [title, *(f"{name} = {value!r}" for name, value in asdict(fit).items())]
        for title, fit in fits
    ]
    lines = [
        HEADER,
        f'constants = "{calibration.constants}"',
        *("\n" + "\n".join(part) for part in parts),
    ]
    return "\n".join(lines) + "\n"


def format_predictions(scored: Sequence[ScoredRow]) -> str:
    """Return the text of `predictions.csv`. Of the published row it holds the batch size alone."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in scored:
        selector, prediction = each.row.selector, each.prediction
        labels = (
            each.row.result_id,
            selector.network,
            selector.target,
            prediction.protocol,
            each.row.batch_size,
        )
        times = (f"{each.seconds * MS:.9g}", f"{prediction.latency_ms:.9g}")
        writer.writerow(
            (*labels, *times, prediction.calibration_id, load_target(selector.target).digest)
        )
    return out.getvalue()
