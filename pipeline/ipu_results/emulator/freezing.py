"""Writes the committed calibration and predictions anew: a change of the model, to be logged with scores."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ipu_results.emulator.calibration import frozen, told
from ipu_results.emulator.published import Row
from ipu_results.emulator.validation import COMMITTED, committed_text, predicted, recalibrated

CALIBRATION = "calibration.toml"


def freeze(rows: Sequence[Row], folder: Path | None = None) -> tuple[Path, Path]:
    """Both files, written into the package unless a folder is given."""
    where = folder or Path(str(files("ipu_results.emulator")))
    calibration = recalibrated(rows)
    honest = predicted([row for row in rows if row.how.set == "honest"], calibration)
    paths = where / CALIBRATION, where / COMMITTED
    for path, text in zip(paths, (told(calibration), committed_text(honest)), strict=True):
        path.write_text(text, encoding="utf-8", newline="\n")
    frozen.cache_clear()
    return paths
