"""What one can ask of every benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROWS, QUICK_ROWS = 10_000_000, 20_000


@dataclass(frozen=True, slots=True)
class Options:
    """`rows` is the size of the table that is queried; `quick` takes sizes at which nothing is worth reading.

    `mlperf` is the archive or the checkout of a round of MLPerf Training, `official` an interpreter that has
    mlperf-logging, `loadgen` one that has mlcommons-loadgen, `torch` one that has torch, numpy and pillow.
    """

    quick: bool = False
    rows: int = ROWS
    mlperf: Path | None = None
    official: Path | None = None
    loadgen: Path | None = None
    torch: Path | None = None


class Skipped(Exception):
    """Why a benchmark cannot run here."""
