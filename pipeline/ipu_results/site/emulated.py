"""Predictions made in advance, since no browser runs the emulator, and those of published rows beside their figures."""

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
DIGITS = 6  # of what is calculated; a published time has all of its own
EXACT = 15


def data(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Predictions of the form, and the published rows that the emulator is validated on beside their predictions."""
    rows = published(connection)
    with saved() as planner:
        return {"predictions": _predictions(planner), "points": [_point(row, planner) for row in rows]}


def _predictions(planner: Plans) -> list[dict[str, Any]]:
    """Of each built-in image network on each machine, with the machine's own protocol."""
    return [
        {field: _cut(value, DIGITS) for field, value in record(one, name).items() if field in FIELDS}
        for target, batches in BATCHES.items()
        for name in IMAGES
        for one in predict(network(name), load_target(target), batches, planner=planner)
    ]


def _point(row: Row, planner: Plans) -> dict[str, Any]:
    """Published against emulated time per batch, as the row's selector says."""
    how = row.how
    (found,) = predict(network(how.network), load_target(how.target), [row.batch], how.path, planner=planner)
    return {
        "result_id": row.result_id,
        "set": how.set,
        "label": row.label,
        "platform": how.platform,
        "batch": row.batch,
        "published": _cut(row.seconds * MS, EXACT),
        "emulated": _cut(found.timing.period * MS, DIGITS),
    }


def _cut(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
