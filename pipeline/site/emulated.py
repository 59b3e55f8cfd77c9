"""Predictions made in advance, since no browser runs the emulator, and those of published rows beside their figures."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

import duckdb

from pipeline.emulator.cache import saved
from pipeline.emulator.network import network
from pipeline.emulator.prediction import MS, predict
from pipeline.emulator.published import Row, published
from pipeline.emulator.records import FIELDS, record
from pipeline.emulator.target import load_target
from pipeline.emulator.validation import COMMITTED
from pipeline.networks import IMAGES

BATCHES = {"c2": (2, 4, 6, 8, 10, 12), "m2000": (4, 8, 16, 32, 64), "bow-2000": (4, 8, 16, 32, 64)}
DIGITS = 6


def data(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return {"predictions": _predictions(), "points": _points(published(connection))}


def _predictions() -> list[dict[str, Any]]:
    """Of each built-in image network on each machine, with the machine's own protocol."""
    with saved() as planner:
        return [
            _rounded(record(one, name))
            for target, batches in BATCHES.items()
            for name in IMAGES
            for one in predict(network(name), load_target(target), batches, planner=planner)
        ]


def _points(rows: list[Row]) -> list[dict[str, Any]]:
    """Published against emulated time per batch, of the frozen predictions."""
    text = (files("pipeline.emulator") / COMMITTED).read_text(encoding="utf-8")
    frozen = {line["result_id"]: line for line in csv.DictReader(text.splitlines())}
    return [_point(row, frozen[row.result_id]) for row in rows if row.result_id in frozen]


def _point(row: Row, line: dict[str, str]) -> dict[str, Any]:
    return {
        "result_id": row.result_id,
        "set": row.how.set,
        "label": row.label,
        "platform": row.how.platform,
        "batch": row.batch,
        "published": _short(row.seconds * MS),
        "emulated": _short(float(line["time_ms"])),
    }


def _rounded(values: Any) -> dict[str, Any]:
    return {name: _short(values[name]) for name in FIELDS}


def _short(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
