"""Windows and latencies by hand on small stamps."""

from __future__ import annotations

from typing import Any

import pytest
from ipu_results.runner.estimate import Block, Stamps


def session(*ends: int, start: int = 0) -> tuple[Stamps, ...]:
    """Return iterations one after the other, of which only the ends matter."""
    stamps = []
    for end in ends:
        stamps.append((start, start, start, end, end))
        start = end
    return tuple(stamps)


LATE = ((0, 0, 0, 10, 10), (20, 20, 20, 30, 30))
OVERLAPPING = ((0, 5, 10, 18, 20), (12, 14, 20, 28, 30))


@pytest.mark.parametrize(
    ("stamps", "batch", "expected"),
    [
        ([session(10, 20, 40)], 4, (0, 40, 12)),
        # from the last start to the first end
        ([session(10, 20, 30, 40), session(15, 25, 35, 45, 55, start=5)], 2, (5, 40, 7)),
        # an iteration counts for its part
        ([session(40), session(15, 20, 25, 30, start=10)], 2, (10, 30, 20 / 40 + 4)),
        # items are shares of the batch
        ([session(10, 20), session(10, 20)], 12, (0, 20, 24)),
        # a gap belongs to the next iteration
        ([LATE, session(20)], 2, (0, 20, 1.5 + 1)),
        # images made ahead do not count twice
        ([OVERLAPPING], 1, (0, 30, 2)),
        # never at work together
        ([session(10, 20), session(40, 50, start=30)], 2, (0, 50, 4)),
        # shorter than the clock's resolution
        ([session(10, 10, 20)], 1, (0, 20, 3)),
    ],
)
def test_window_and_its_items_by_hand(
    stamps: list[Any], batch: int, expected: tuple[float, ...]
) -> None:
    window = Block(0, 0, batch, "amortised", "", tuple(stamps)).window
    assert (window.start, window.end, window.items) == pytest.approx(expected)


def test_latencies_are_from_the_first_start_to_the_last_end() -> None:
    first = ((1_000_000, 0, 0, 0, 5_000_000), (10_000_000, 0, 0, 0, 12_000_000))
    second = ((2_000_000, 0, 0, 0, 4_000_000), (9_000_000, 0, 0, 0, 15_000_000))
    assert Block(0, 0, 2, "isolated", "", (first, second)).latencies_ms == [4.0, 6.0]
