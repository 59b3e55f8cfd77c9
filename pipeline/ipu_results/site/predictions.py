"""Predictions made in advance, since no browser runs the emulator, and published rows with their predictions."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.emulator.cache import Plans, saved
from ipu_results.emulator.network import network
from ipu_results.emulator.prediction import MS, predict
from ipu_results.emulator.published import Row, published
from ipu_results.emulator.records import FIELDS, record
from ipu_results.emulator.target import load_target
from ipu_results.networks import IMAGES

BATCHES = {"c2": (2, 4, 6, 8, 10, 12), "m2000": (4, 8, 16, 32, 64), "bow-2000": (4, 8, 16, 32, 64)}
DIGITS = 6  # of what is calculated
ALL_DIGITS = 15  # of a published time


def build_predictions(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the predictions of the form, and the validation rows with published and emulated time."""
    rows = published(connection)
    with saved() as planner:
        return {"predictions": _predict_all(planner), "points": [_make_point(row, planner) for row in rows]}


def _predict_all(planner: Plans) -> list[dict[str, Any]]:
    """Predict each built-in image network on each machine, with the machine's own protocol."""
    return [
        {field: _round(value, DIGITS) for field, value in record(prediction, name).items() if field in FIELDS}
        for target, batches in BATCHES.items()
        for name in IMAGES
        for prediction in predict(network(name), load_target(target), batches, planner=planner)
    ]


def _make_point(row: Row, planner: Plans) -> dict[str, Any]:
    """Predict the time per batch of one published row."""
    how = row.how
    (prediction,) = predict(network(how.network), load_target(how.target), [row.batch], how.path, planner=planner)
    return {
        "result_id": row.result_id,
        "set": how.set,
        "label": row.label,
        "platform": how.platform,
        "batch": row.batch,
        "published": _round(row.seconds * MS, ALL_DIGITS),
        "emulated": _round(prediction.timing.period * MS, DIGITS),
    }


def _round(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
