"""Write the committed calibration and predictions again: a change of the model, to be logged with
its scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.target import CALIBRATION_FILE, Calibration, load_calibration, load_target
from ipu_results.kit.text import format_csv

from benchmarks.emulator.rows import BLIND, DATA, PublishedRow
from benchmarks.emulator.scoring import (
    PREDICTIONS_FILE,
    ScoredRow,
    predict_rows,
    recalibrate,
)

VALIDATED_FILE = "validated.csv"
VALIDATED_COLUMNS = ("result_id", "set", "time", "emulated_ms")
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
PACKAGE_DATA = Path(str(files("ipu_results.emulator") / "data"))


def freeze(
    rows: Sequence[PublishedRow], package: Path = PACKAGE_DATA, folder: Path = DATA
) -> list[Path]:
    """Write the calibration and the validated rows into `package`, the predictions of the blind set
    into `folder`. Return the paths.
    """
    calibration = recalibrate(rows)
    scored = predict_rows(rows, calibration)
    blind = [each for each in scored if each.row.set == BLIND]
    texts = {
        package / CALIBRATION_FILE: format_calibration(calibration),
        package / VALIDATED_FILE: format_validated(scored),
        folder / PREDICTIONS_FILE: format_predictions(blind),
    }
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    load_calibration.cache_clear()
    return list(texts)


def format_validated(scored: Sequence[ScoredRow]) -> str:
    """Return the text of the file that the site reads: every row, by which figure of it a batch is
    timed, and its prediction.
    """
    rows: list[Sequence[object]] = [VALIDATED_COLUMNS]
    for each in scored:
        row = each.row
        rows.append((row.result_id, row.set, row.selector.time, f"{each.seconds * MS:.6g}"))
    return f"{format_csv(rows)}\n"


def format_calibration(calibration: Calibration) -> str:
    """Return the text of `calibration.toml`."""
    fits = [("[fit]", calibration.fit)]
    fits += [("[[jackknife]]", fit) for fit in calibration.jackknife]
    fits += [("[[ends]]", fit) for fit in calibration.ends]
    lines = [HEADER, f'constants = "{calibration.constants}"']
    for title, fit in fits:
        lines += ["", title]
        lines += [f"{name} = {value!r}" for name, value in asdict(fit).items()]
    return "\n".join(lines) + "\n"


def format_predictions(scored: Sequence[ScoredRow]) -> str:
    """Return the text of `predictions.csv`. Of the published row it holds the batch size alone."""
    rows: list[Sequence[object]] = [COLUMNS]
    for each in scored:
        row = each.row
        selector = row.selector
        prediction = each.prediction
        labels = (row.result_id, selector.network, selector.target, prediction.protocol)
        times = (f"{each.seconds * MS:.9g}", f"{prediction.latency_ms:.9g}")
        constants = load_target(selector.target).digest
        rows.append((*labels, row.batch_size, *times, prediction.calibration_id, constants))
    return f"{format_csv(rows)}\n"
