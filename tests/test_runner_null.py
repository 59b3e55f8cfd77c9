"""The null device: its clock does what its options say, the same every time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import BackendError
from ipu_results.runner.backends import null
from ipu_results.runner.backends.base import KINDS, Spec

FLIPS = (1.6, 5.0, 15.0)
WRITTEN = [275.201494, 888.277737, 633.482544, 176.574071, 287.315885, 299.545808]
NANOSECOND = 1.01e-6  # in ms: the clock counts whole ones


def opened(session: int = 0, micro: int = 4, **options: Any) -> null.NullSession:
    spec = Spec(null.NAME, "", micro_batches=(micro,), sessions=2, session=session, options=options)
    found = null.open(spec)
    found.prepare(micro, "amortised")
    return found


def times(session: null.NullSession, count: int) -> list[float]:
    """Milliseconds of each of so many runs."""
    clocks = [session.clock()]
    for _ in range(count):
        session.run(None)
        clocks.append(session.clock())
    return [(later - sooner) / 1e6 for sooner, later in pairwise(clocks)]


def test_one_device_that_is_simulated_and_usable() -> None:
    (device,) = null.probe()
    assert (device.backend, device.name, device.kind, device.usable) == ("null", "null", "simulated", True)
    assert device.kind in KINDS


def test_session_is_virtual_and_says_that_nothing_is_computed() -> None:
    session = opened()
    assert session.virtual
    assert (null.VIRTUAL, null.COMPUTES) == (True, False)
    assert session.facts.compute_precision == "none"
    assert session.facts.platform == "null"
    assert "simulated" in session.facts.notes[0]


@given(st.floats(0, 50), st.floats(0.1, 50), st.integers(1, 64))
def test_quiet_machine_takes_base_and_items(base: float, item: float, micro: int) -> None:
    taken = times(opened(micro=micro, base_ms=base, per_item_ms=item), 3)
    assert taken == pytest.approx([base + micro * item] * 3, abs=NANOSECOND)


def test_images_give_zeros_of_a_thousand_classes() -> None:
    session = opened(micro=3)
    outputs = session.run(np.ones((3, 3, 2, 2), np.float32))
    assert (outputs.shape, outputs.dtype, outputs.any()) == ((3, 1000), np.float32, False)
    assert session.clock() == 140_000_000


def test_time_does_not_depend_on_there_being_images() -> None:
    bare, given_ = opened(noise=0.1, seed=3), opened(noise=0.1, seed=3)
    bare.run(None)
    given_.run(np.zeros((4, 3, 2, 2), np.float32))
    assert bare.clock() == given_.clock()


def test_images_of_another_count_are_refused() -> None:
    with pytest.raises(BackendError, match="2 images for a micro-batch of 4"):
        opened().run(np.zeros((2, 3, 2, 2), np.float32))


def test_nothing_runs_before_a_batch_size_is_prepared() -> None:
    with pytest.raises(BackendError, match="no batch size was prepared"):
        null.open(Spec("null", "")).run(None)


def test_wait_moves_the_clock_forward_only() -> None:
    session = opened()
    session.wait_until(500)
    session.wait_until(100)
    assert session.clock() == 500


def test_same_seed_same_times() -> None:
    options: dict[str, Any] = {"noise": 0.2, "regimes": FLIPS, "outliers": (0.1, 3), "drift": 0.01, "seed": 5}
    assert times(opened(**options), 200) == times(opened(**options), 200)
    assert times(opened(**options), 200) != times(opened(**{**options, "seed": 6}), 200)


def test_times_of_a_seed_are_those_that_were_written_down() -> None:
    """Another generator or another order of drawing would change every simulated sweep."""
    found = times(opened(noise=0.1, regimes=(1.6, 0.2, 0.2), outliers=(0.2, 3.0), seed=1), 6)
    assert found == pytest.approx(WRITTEN, abs=1e-4)


def test_sessions_differ_in_their_noise() -> None:
    assert times(opened(0, noise=0.1), 5) != times(opened(1, noise=0.1), 5)


def test_noise_has_the_median_and_the_spread_that_were_asked_for() -> None:
    logs = np.log(np.array(times(opened(noise=0.2), 4000)) / 185)
    assert np.median(logs) == pytest.approx(0, abs=5 * 1.2533 * 0.2 / 4000**0.5)
    assert np.std(logs) == pytest.approx(0.2, rel=5 / (2 * 4000) ** 0.5)


def test_drift_is_a_share_a_second() -> None:
    session = opened(drift=0.01)
    session.wait_until(10_000_000_000)
    assert times(session, 1) == pytest.approx([185 * 1.1])


def test_outliers_are_a_share_of_the_iterations() -> None:
    found = np.array(times(opened(outliers=(0.1, 4)), 2000))
    assert set(np.round(found, 3)) == {185.0, 740.0}
    assert np.mean(found > 200) == pytest.approx(0.1, abs=5 * (0.1 * 0.9 / 2000) ** 0.5)


def test_regimes_are_shared_by_the_sessions() -> None:
    one, two = opened(0, regimes=FLIPS, noise=0.1, seed=9), opened(1, regimes=FLIPS, noise=0.1, seed=9)
    two.run(None)
    moments = [second / 7 for second in range(700)]
    assert [one.regimes.factor(at) for at in reversed(moments)] == [two.regimes.factor(at) for at in reversed(moments)]
    assert {one.regimes.factor(at) for at in moments} == {1.0, 1.6}


@pytest.mark.parametrize(("slow", "quiet"), [(5.0, 15.0), (3.0, 27.0), (5.0, 5.0)])
def test_machine_is_slow_for_the_share_that_was_asked_for(slow: float, quiet: float) -> None:
    """Over 4000 spells of each kind the share's standard error is about share · (1 − share) · sqrt(2 / 4000)."""
    regimes, share = opened(regimes=(2.0, slow, quiet)).regimes, slow / (slow + quiet)
    end = 4000 * (slow + quiet)
    found = np.mean([regimes.factor(at) == 2.0 for at in np.linspace(0, end, 40_000)])
    assert found == pytest.approx(share, abs=5 * share * (1 - share) * (2 / 4000) ** 0.5)


def test_machine_begins_slow_as_often_as_it_is_slow() -> None:
    starts = [opened(regimes=(2.0, 5, 15), seed=seed).regimes.factor(0.0) for seed in range(400)]
    assert np.mean(np.array(starts) == 2.0) == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 400) ** 0.5)


@given(st.integers(0, 30), st.floats(0, 60), st.floats(0.001, 8))
def test_work_across_a_switch_is_the_sum_of_its_parts(seed: int, start: float, work: float) -> None:
    """The time that it takes, counted in steps at the speed of each, is the work."""
    regimes = opened(regimes=(1.6, 0.5, 0.7), seed=seed).regimes
    end = regimes.after(start, work)
    steps = np.linspace(start, end, 4001)[:-1] + (end - start) / 8000
    done = sum(1 / regimes.factor(at) for at in steps) * (end - start) / 4000
    assert done == pytest.approx(work, rel=0.01)
    assert work <= (end - start) * (1 + 1e-9)
    assert end - start <= 1.6 * work * (1 + 1e-9)


@given(st.integers(0, 30), st.floats(0, 20), st.floats(0.001, 3), st.floats(0.001, 3))
def test_work_in_two_goes_ends_when_it_does_in_one(seed: int, start: float, one: float, two: float) -> None:
    regimes = opened(regimes=(1.6, 0.5, 0.7), seed=seed).regimes
    assert regimes.after(regimes.after(start, one), two) == pytest.approx(regimes.after(start, one + two))


def test_probe_sees_the_regime_of_its_moment() -> None:
    session = opened(regimes=(1.6, 5, 5), seed=2)
    moments = range(0, 200_000_000_000, 1_300_000_000)
    found = [session.probe_ms(now) for now in moments]
    wanted = [null.PROBE_MS * session.regimes.factor(now / 1e9) for now in moments]
    agree = [a == pytest.approx(b) for a, b in zip(found, wanted, strict=True)]
    assert np.mean(agree) > 0.97, "a probe can lie across a switch, but rarely does"
    assert {round(one, 6) for one, same in zip(found, agree, strict=True) if same} == {5.0, 8.0}


def test_probe_costs_no_time_and_depends_on_the_moment_alone() -> None:
    session = opened(probe_noise=0.05)
    first = session.probe_ms(1000)
    session.run(None)
    assert session.clock() == 185_000_000
    assert session.probe_ms(1000) == first
    assert session.probe_ms(1001) != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 1}, "no option 'speed'"),
        ({"noise": "loud"}, "noise of the null device cannot be 'loud'"),
        ({"noise": -0.1}, "negative"),
        ({"base_ms": 0, "per_item_ms": 0}, "must take time"),
        ({"regimes": (1.6, 5)}, "regimes of the null device cannot be"),
        ({"regimes": (1.6, 0, 5)}, "mean times of at least"),
        ({"regimes": 1.6}, "regimes of the null device cannot be"),
        ({"outliers": (2, 3)}, "share from 0 to 1"),
        ({"seed": -1}, "negative"),
        ({"noise": float("nan")}, "noise of the null device cannot be"),
        ({"base_ms": float("inf")}, "base_ms of the null device cannot be"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError, match=message):
        opened(**options)


def test_options_may_be_lists_and_text_as_they_come_from_json() -> None:
    machine = opened(regimes=[1.6, 5, 15], base_ms="7", seed="3", outliers=None).machine
    assert machine == null.Machine(base_ms=7.0, regimes=(1.6, 5.0, 15.0), seed=3)


def test_another_device_is_refused() -> None:
    with pytest.raises(BackendError, match="no device 'cpu'"):
        null.open(Spec("cpu", ""))
