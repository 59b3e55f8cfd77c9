"""What one can ask of every benchmark."""

from __future__ import annotations

from dataclasses import dataclass

ROWS, QUICK_ROWS = 10_000_000, 20_000


@dataclass(frozen=True, slots=True)
class Options:
    """`rows` is the size of the table that is queried; `quick` takes sizes at which nothing is worth reading."""

    quick: bool = False
    rows: int = ROWS
