"""The simulated device of tests and benchmarks: its clock follows its options, the same every time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from ipu_results.runner.backends import SessionSpec

from benchmarks.runner import null_backend
from benchmarks.runner.null_backend import NullSession


def open_session(session: int = 0, micro: int = 4, **options: Any) -> NullSession:
    own = null_backend.open(
        SessionSpec(
            "null", "", micro_batches=(micro,), sessions=2, session=session, options=options
        )
    )
    own.prepare(micro, "amortised")
    return own


def run_times(session: NullSession, count: int) -> list[float]:
    """Return the milliseconds of each of N runs."""
    clocks = [session.clock()]
    for _ in range(count):
        session.run(None)
        clocks.append(session.clock())
    return [(later - sooner) / 1e6 for sooner, later in pairwise(clocks)]


def test_times_follow_from_the_seed() -> None:
    """Another generator or another order of drawing would change every simulated sweep."""
    options: dict[str, Any] = {
        "noise": 0.2,
        "regimes": (1.6, 5.0, 15.0),
        "outliers": (0.1, 3),
        "drift": 0.01,
        "seed": 5,
    }
    assert run_times(open_session(**options), 200) == run_times(open_session(**options), 200)
    assert run_times(open_session(**options), 200) != run_times(
        open_session(**{**options, "seed": 6}), 200
    )
    assert run_times(open_session(0, noise=0.1), 5) != run_times(open_session(1, noise=0.1), 5)
    frozen = run_times(
        open_session(noise=0.1, regimes=(1.6, 0.2, 0.2), outliers=(0.2, 3.0), seed=1), 6
    )
    expected = [275.201494, 888.277737, 633.482544, 176.574071, 287.315885, 299.545808]
    assert frozen == pytest.approx(expected, abs=1e-4)
