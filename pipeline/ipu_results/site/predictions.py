"""Predictions made in advance, since no browser runs the emulator, and published rows with their predictions."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.emulator.cache import PlanCache, open_plan_cache
from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import MS, predict
from ipu_results.emulator.published import PublishedRow, load_published_rows
from ipu_results.emulator.records import FIELDS, to_record
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, load_target
from ipu_results.networks import IMAGES

DIGITS = 6  # of what is calculated
ALL_DIGITS = 15  # of a published time


def build_predictions(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the predictions of the form, and the validation rows with published and emulated time."""
    with open_plan_cache() as planner:
        return {"predictions": _predict_all(planner), "points": build_points(connection, planner)}


def build_points(connection: duckdb.DuckDBPyConnection, planner: PlanCache | None = None) -> list[dict[str, Any]]:
    """Predict the time per batch of each published row that the emulator is validated on."""
    rows = load_published_rows(connection)
    if planner is not None:
        return [_make_point(row, planner) for row in rows]
    with open_plan_cache() as opened:
        return [_make_point(row, opened) for row in rows]


def _predict_all(planner: PlanCache) -> list[dict[str, Any]]:
    """Predict each built-in image network on each machine, with the machine's own protocol."""
    return [
        {field: _round(value, DIGITS) for field, value in to_record(prediction, name).items() if field in FIELDS}
        for target, batches in DEFAULT_BATCH_SIZES.items()
        for name in IMAGES
        for prediction in predict(load_network(name), load_target(target), batches, planner=planner)
    ]


def _make_point(row: PublishedRow, planner: PlanCache) -> dict[str, Any]:
    """Predict the time per batch of one published row."""
    selector = row.selector
    network, target = load_network(selector.network), load_target(selector.target)
    (prediction,) = predict(network, target, [row.batch_size], row.protocol, planner=planner)
    return {
        "result_id": row.result_id,
        "set": row.set,
        "label": row.label,
        "platform": selector.platform,
        "batch": row.batch_size,
        "published": _round(row.seconds * MS, ALL_DIGITS),
        "emulated": _round(prediction.timing.period * MS, DIGITS),
    }


def _round(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
