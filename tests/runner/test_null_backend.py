"""The simulated device of tests and benchmarks: its clock follows its options, the same every time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from ipu_results.runner.backends import SessionSpec

from benchmarks.runner.null_backend import NullSession


def run_times(count: int, session: int = 0, **options: Any) -> list[float]:
    """Return the milliseconds of each of N runs of four items."""
    device = NullSession(SessionSpec("null", "", sessions=2, session=session, options=options))
    device.prepare(4, "amortised")
    clocks = [device.clock()]
    for _ in range(count):
        device.run(None)
        clocks.append(device.clock())
    return [(later - sooner) / 1e6 for sooner, later in pairwise(clocks)]


def test_times_follow_from_the_seed() -> None:
    """Another generator or another order of drawing would change every simulated sweep."""
    options = {"noise": 0.1, "regimes": (1.6, 0.2, 0.2), "outliers": (0.2, 3.0)}
    expected = [275.201494, 888.277737, 633.482544, 176.574071, 287.315885, 299.545808]
    assert run_times(6, seed=1, **options) == pytest.approx(expected, abs=1e-4)
    assert run_times(6, seed=2, **options) != pytest.approx(expected, rel=0.01)
    assert run_times(5, 0, noise=0.1) != run_times(5, 1, noise=0.1)
