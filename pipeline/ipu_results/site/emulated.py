"""Predictions made in advance, since no browser runs the emulator, and those of published rows beside their figures."""

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

DIGITS = 6  # of what is calculated; a published time has all of its own
EXACT = 15


def data(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Predictions of the form, and the published rows that the emulator is validated on beside their predictions."""
    rows = load_published_rows(connection)
    with open_plan_cache() as planner:
        return {"predictions": _predictions(planner), "points": [_point(row, planner) for row in rows]}


def _predictions(planner: PlanCache) -> list[dict[str, Any]]:
    """Of each built-in image network on each machine, with the machine's own protocol."""
    return [
        {field: _cut(value, DIGITS) for field, value in to_record(one, name).items() if field in FIELDS}
        for target, batches in DEFAULT_BATCH_SIZES.items()
        for name in IMAGES
        for one in predict(load_network(name), load_target(target), batches, planner=planner)
    ]


def _point(row: PublishedRow, planner: PlanCache) -> dict[str, Any]:
    """Return the published and the emulated time per batch, by the row's selector."""
    selector = row.selector
    (found,) = predict(
        load_network(selector.network),
        load_target(selector.target),
        [row.batch_size],
        selector.host_path,
        planner=planner,
    )
    return {
        "result_id": row.result_id,
        "set": row.set,
        "label": row.label,
        "platform": selector.platform,
        "batch": row.batch_size,
        "published": _cut(row.seconds * MS, EXACT),
        "emulated": _cut(found.timing.period * MS, DIGITS),
    }


def _cut(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
