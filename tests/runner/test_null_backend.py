"""The simulated device of tests and benchmarks: its clock follows its options, the same every time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import BackendError
from ipu_results.runner.backends import KINDS, SessionSpec

from benchmarks.runner import null_backend
from benchmarks.runner.null_backend import NullOptions, NullSession


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


def test_device_is_simulated_and_its_sessions_say_so() -> None:
    (device,) = null_backend.probe()
    assert (device.backend, device.name, device.kind, device.usable) == (
        "null",
        "null",
        "simulated",
        True,
    )
    assert device.kind in KINDS
    session = open_session()
    assert session.virtual
    assert (session.facts.compute_precision, session.facts.platform) == ("none", "null")
    assert "simulated" in session.facts.notes[0]


def test_images_become_zeros_in_the_same_time() -> None:
    session = open_session(micro=3)
    outputs = session.run(np.ones((3, 3, 2, 2), np.float32))
    assert (outputs.shape, outputs.dtype, outputs.any()) == ((3, 1000), np.float32, False)
    assert session.clock() == 140_000_000
    with pytest.raises(BackendError, match="2 images for a micro-batch of 3"):
        session.run(np.zeros((2, 3, 2, 2), np.float32))
    with pytest.raises(BackendError, match="no batch size was prepared"):
        null_backend.open(SessionSpec("null", "")).run(None)


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


@given(st.integers(0, 30), st.floats(0, 60), st.floats(0.001, 8), st.floats(0.001, 3))
def test_work_across_a_switch_is_the_sum_of_its_parts(
    seed: int, start: float, work: float, more: float
) -> None:
    """The time that it takes, counted in steps at the speed of each, is the work."""
    regimes = open_session(regimes=(1.6, 0.5, 0.7), seed=seed).regimes
    end = regimes.finish_time(start, work)
    steps = np.linspace(start, end, 4001)[:-1] + (end - start) / 8000
    done = sum(1 / regimes.factor_at(at) for at in steps) * (end - start) / 4000
    assert done == pytest.approx(work, rel=0.01)
    assert work <= (end - start) * (1 + 1e-9)
    assert end - start <= 1.6 * work * (1 + 1e-9)
    assert regimes.finish_time(end, more) == pytest.approx(regimes.finish_time(start, work + more))


def test_probe_costs_no_time_and_shows_the_regime_of_its_moment() -> None:
    session = open_session(regimes=(1.6, 5, 5), seed=2)
    moments = range(0, 200_000_000_000, 1_300_000_000)
    probes = [session.probe_ms(now) for now in moments]
    expected = [null_backend.PROBE_MS * session.regimes.factor_at(now / 1e9) for now in moments]
    same = [probe == pytest.approx(value) for probe, value in zip(probes, expected, strict=True)]
    assert np.mean(same) > 0.97, "a probe can lie across a switch, but rarely does"
    session = open_session(probe_noise=0.05)
    first = session.probe_ms(1000)
    session.run(None)
    assert session.clock() == 185_000_000
    assert session.probe_ms(1000) == first != session.probe_ms(1001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 1}, "no option 'speed'"),
        ({"noise": "loud"}, "noise of the null device cannot be 'loud'"),
        ({"noise": -0.1}, "negative"),
        ({"base_ms": 0, "per_item_ms": 0}, "must take time"),
        ({"regimes": (1.6, 5)}, "regimes of the null device cannot be"),
        ({"regimes": (1.6, 0, 5)}, "mean times of at least"),
        ({"outliers": (2, 3)}, "share from 0 to 1"),
        ({"base_ms": float("inf")}, "base_ms of the null device cannot be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError, match=message):
        open_session(**options)


def test_options_may_come_from_json() -> None:
    machine = open_session(regimes=[1.6, 5, 15], base_ms="7", seed="3", outliers=None).machine
    assert machine == NullOptions(base_ms=7.0, regimes=(1.6, 5.0, 15.0), seed=3)
    with pytest.raises(BackendError, match="no device 'cpu'"):
        null_backend.open(SessionSpec("cpu", ""))
