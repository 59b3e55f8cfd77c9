"""Two numbers from six rows: known ones are found again."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.emulator.calibration import Calibration, Fit, Observation, calibrate, fit, frozen, seconds, told
from ipu_results.emulator.target import load_target

MK1 = load_target("c2")
COUNTS = (937, 885, 880, 890, 883, 870)


def observed(kappa: float, host: float, noise: float = 0.0) -> list[Observation]:
    rows = []
    for images, count in enumerate(COUNTS, start=1):
        fixed = 4e-4 + 3e-4 * images
        time = fixed + count / 1.6e9 * kappa + images * host
        rows.append(Observation(fixed, count / 1.6e9, images, time * (1 + noise * (-1) ** images)))
    return rows


@settings(max_examples=50, derandomize=True)
@given(kappa=st.floats(50, 2000), host=st.floats(1e-5, 1e-3))
def test_known_numbers_are_found_again(kappa: float, host: float) -> None:
    found = calibrate(observed(kappa, host), MK1)
    for one in (found.fit, *found.jackknife):
        assert (one.superstep, one.per_image) == pytest.approx((kappa, host), rel=1e-9)


def test_two_rows_are_solved_by_hand() -> None:
    rows = [Observation(1e-3, 1e-6, 1, 1e-3 + 700e-6 + 3e-4), Observation(2e-3, 2e-6, 4, 2e-3 + 1400e-6 + 12e-4)]
    found = fit(rows)
    assert (found.superstep, found.per_image) == pytest.approx((700, 3e-4), rel=1e-9)
    assert [seconds(one, Fit(700, 3e-4)) for one in rows] == pytest.approx([one.seconds for one in rows], rel=1e-12)


def test_errors_count_relative_to_the_time() -> None:
    """One unknown, two rows that ask for 1 and 3: weights 1 / 10² and 1 / 1² lie near the second."""
    rows = [Observation(9.0, 1.0, 0, 10.0), Observation(-2.0, 1.0, 0, 1.0)]
    assert fit(rows).superstep == pytest.approx((1 / 100 + 3) / (1 / 100 + 1), rel=1e-12)


def test_each_row_is_left_out_once() -> None:
    rows = observed(700, 3e-4, noise=0.02)
    found = calibrate(rows, MK1)
    assert len(found.jackknife) == len(rows) == 6
    assert found.jackknife == tuple(fit([one for one in rows if one is not left]) for left in rows)
    assert len({found.fit, *found.jackknife}) == 7


def test_the_id_tells_the_fit_and_the_constants() -> None:
    rows = observed(700, 3e-4)
    found = calibrate(rows, MK1)
    assert found.id == calibrate(rows, load_target("c2")).id
    assert found.id.startswith("c2-")
    assert len(found.id) == 15
    others = {calibrate(rows, MK1.changed(reduce__rest=8)).id, calibrate(observed(701, 3e-4), MK1).id}
    assert len({found.id, *others}) == 3


def test_the_frozen_calibration_is_of_the_present_constants() -> None:
    assert frozen().constants == MK1.digest
    assert len(frozen().jackknife) == 6
    assert 400 < frozen().fit.superstep < 1000
    assert 2e-4 < frozen().fit.per_image < 5e-4


def test_the_frozen_fit_lies_within_its_jackknife() -> None:
    for name in ("superstep", "per_image"):
        others = [getattr(one, name) for one in frozen().jackknife]
        assert min(others) <= getattr(frozen().fit, name) <= max(others)


def test_what_is_written_is_read_to_the_last_digit() -> None:
    found = calibrate(observed(699.123456789, 1 / 3000, noise=0.01), MK1)
    data = tomllib.loads(told(found))
    read = Calibration(Fit(**data["fit"]), tuple(Fit(**one) for one in data["jackknife"]), data["constants"])
    assert read == found
    assert read.id == found.id
