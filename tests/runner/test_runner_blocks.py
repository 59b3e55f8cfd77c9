"""Windows and latencies by hand on small stamps."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ipu_results.runner.estimate import Block, Stamps

TEXT = Path(__file__).with_name("windows.toml").read_text(encoding="utf-8")
WINDOWS = tomllib.loads(TEXT)["window"]


def make_session(*times: int) -> tuple[Stamps, ...]:
    """Return iterations one after the other, of which only the ends matter."""
    return tuple((start, start, start, end, end) for start, end in pairwise(times))


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case["why"])
def test_window_and_its_items_by_hand(case: dict[str, Any]) -> None:
    sessions = tuple(make_session(*times) for times in case["sessions"])
    window = Block(0, 0, case["batch"], "amortised", "", sessions).window
    assert [window.start, window.end, window.items] == pytest.approx(case["expected"])


def test_gap_belongs_to_the_next_iteration() -> None:
    late = ((0, 0, 0, 10, 10), (20, 20, 20, 30, 30))
    window = Block(0, 0, 2, "amortised", "", (late, make_session(0, 20))).window
    assert (window.start, window.end, window.items) == (0, 20, 1.5 + 1)


def test_images_made_ahead_do_not_count_twice() -> None:
    overlapping = ((0, 5, 10, 18, 20), (12, 14, 20, 28, 30))
    window = Block(0, 0, 1, "amortised", "", (overlapping,)).window
    assert (window.start, window.end, window.items) == (0, 30, 2)


def test_latencies_are_from_the_first_start_to_the_last_end() -> None:
    first = ((1_000_000, 0, 0, 0, 5_000_000), (10_000_000, 0, 0, 0, 12_000_000))
    second = ((2_000_000, 0, 0, 0, 4_000_000), (9_000_000, 0, 0, 0, 15_000_000))
    assert Block(0, 0, 2, "isolated", "", (first, second)).latencies_ms == [4.0, 6.0]
