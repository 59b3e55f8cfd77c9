"""Two numbers are fitted to six rows: known numbers come out again."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.emulator.calibration import (
    Calibration,
    Fit,
    Observation,
    calibrate,
    fit_observations,
    format_calibration,
    load_calibration,
    predict_seconds,
)
from ipu_results.emulator.target import load_target

MK1 = load_target("c2")
SUPERSTEPS = (937, 885, 880, 890, 883, 870)


def observe(kappa: float, host: float, noise: float = 0.0) -> list[Observation]:
    rows = []
    for images, count in enumerate(SUPERSTEPS, start=1):
        fixed = 4e-4 + 3e-4 * images
        time = fixed + count / 1.6e9 * kappa + images * host
        rows.append(Observation(fixed, count / 1.6e9, images, time * (1 + noise * (-1) ** images)))
    return rows


@settings(max_examples=50, derandomize=True)
@given(kappa=st.floats(50, 2000), host=st.floats(1e-5, 1e-3))
def test_exact_rows_return_the_numbers_they_were_made_with(kappa: float, host: float) -> None:
    calibration = calibrate(observe(kappa, host), MK1)
    for fit in (calibration.fit, *calibration.jackknife):
        assert (fit.superstep, fit.per_image) == pytest.approx((kappa, host), rel=1e-9)


def test_two_rows_are_solved_by_hand() -> None:
    rows = [Observation(1e-3, 1e-6, 1, 1e-3 + 700e-6 + 3e-4), Observation(2e-3, 2e-6, 4, 2e-3 + 1400e-6 + 12e-4)]
    fit = fit_observations(rows)
    assert (fit.superstep, fit.per_image) == pytest.approx((700, 3e-4), rel=1e-9)
    assert [predict_seconds(row, fit) for row in rows] == pytest.approx([row.seconds for row in rows], rel=1e-12)


def test_fit_minimises_relative_errors_and_jackknife_excludes_each_row() -> None:
    rows = observe(700, 3e-4, noise=0.02)
    calibration = calibrate(rows, MK1)

    def sum_squares(fit: Fit) -> float:
        return sum((predict_seconds(row, fit) / row.seconds - 1) ** 2 for row in rows)

    kappa, host = calibration.fit.superstep, calibration.fit.per_image
    moved = [Fit(kappa + 5, host), Fit(kappa - 5, host), Fit(kappa, host * 1.02), Fit(kappa, host * 0.98)]
    assert all(sum_squares(calibration.fit) < sum_squares(fit) for fit in moved)
    expected = tuple(fit_observations([row for row in rows if row is not excluded]) for excluded in rows)
    assert calibration.jackknife == expected
    assert len({calibration.fit, *expected}) == 7


def test_id_depends_on_fit_and_constants() -> None:
    rows = observe(700, 3e-4)
    ids = [
        calibrate(rows, MK1).id,
        calibrate(rows, MK1.with_constants({"reduce.rest": 8})).id,
        calibrate(observe(701, 3e-4), MK1).id,
    ]
    assert len(set(ids)) == 3
    assert calibrate(rows, load_target("c2")).id == ids[0]
    assert all(each.startswith("c2-") and len(each) == 15 for each in ids)


def test_committed_calibration_is_of_the_present_constants() -> None:
    calibration = load_calibration()
    assert (calibration.id, calibration.constants) == ("c2-a0b01e501cbf", MK1.digest)
    assert len(calibration.jackknife) == 6
    for name in ("superstep", "per_image"):
        values = [getattr(fit, name) for fit in calibration.jackknife]
        assert min(values) <= getattr(calibration.fit, name) <= max(values)


def test_formatted_calibration_is_read_back_to_the_last_digit() -> None:
    calibration = calibrate(observe(699.123456789, 1 / 3000, noise=0.01), MK1)
    data = tomllib.loads(format_calibration(calibration))
    read = Calibration(Fit(**data["fit"]), tuple(Fit(**fit) for fit in data["jackknife"]), data["constants"])
    assert read == calibration
