"""Compare figures with the record as `compare` does, without what a third party would measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
from ipu_results.doors.comparison import Comparison
from ipu_results.doors.comparison.verdict import build_stated, compare_with_rows
from ipu_results.doors.comparison.words import KnownWords, load_known_words
from ipu_results.record.store.query import connect_warehouse

RESNET = {"model": "resnet50", "platform": "ipu-m2000", "batch_size": 4}


@cache
def _open(warehouse: Path) -> tuple[duckdb.DuckDBPyConnection, KnownWords]:
    connection = connect_warehouse(warehouse)
    return connection, load_known_words(connection)


def compare_many(warehouse: Path, runs: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """Compare runs in one session, which takes little longer than one of them."""
    connection, words = _open(warehouse)
    measurements = [build_stated(run, words) for run in runs]
    models = sorted({own.model for own in measurements})
    where = "list_contains($models, model)"
    return compare_with_rows(connection, measurements, where, {"models": models})


def compare_one(warehouse: Path, **figures: Any) -> Comparison:
    [comparison] = compare_many(warehouse, [figures])
    return comparison
